#include "kernels.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "errors.hpp"

namespace xlm {
namespace {

constexpr int kMostRepeats = 32;
constexpr int kTensorsEach = 8;
// More than the caches that one core can count on; less work than a limit of time can bear.
constexpr double kColdBytes = 96e6;
constexpr double kMostOperations = 2e9;

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// GGUF's tools write types in capitals, ggml mostly does not.
ggml_type type_named(const std::string& name) {
    for (int number = 0; number < GGML_TYPE_COUNT; ++number) {
        const auto type = static_cast<ggml_type>(number);
        const char* found = ggml_type_name(type);
        if (found != nullptr && lower(name) == lower(found)) return type;
    }
    throw Error("ggml knows no type '" + name + "'");
}

void check_rows(ggml_type type, std::int64_t length) {
    if (length % ggml_blck_size(type) != 0)
        throw Error("rows of " + std::to_string(length) + " elements are no whole blocks");
}

int repeats_for(double bytes, double operations) {
    const double wanted = std::ceil(kColdBytes / std::max(1.0, bytes));
    const double bearable = std::max(1.0, kMostOperations / std::max(1.0, operations));
    return static_cast<int>(std::clamp(std::min(wanted, bearable), 1.0, double{kMostRepeats}));
}

struct Builder {
    ggml_context* context;
    const MeasureRequest& request;
    ggml_type type;
    std::vector<ggml_tensor*> choices;  // of experts

    ggml_tensor* floats(std::int64_t a, std::int64_t b, std::int64_t c = 1) const {
        return ggml_new_tensor_3d(context, GGML_TYPE_F32, a, b, c);
    }

    ggml_tensor* mul_mat() const {
        const auto& [width, rows] = std::tie(request.shape[0], request.shape[1]);
        ggml_tensor* weights = ggml_new_tensor_2d(context, type, width, rows);
        return ggml_mul_mat(context, weights, floats(width, request.new_tokens));
    }

    ggml_tensor* mul_mat_id() {
        const auto& shape = request.shape;
        ggml_tensor* weights = ggml_new_tensor_3d(context, type, shape[0], shape[1], shape[2]);
        choices.push_back(ggml_new_tensor_2d(context, GGML_TYPE_I32, shape[3], request.new_tokens));
        return ggml_mul_mat_id(context, weights, floats(shape[0], 1, request.new_tokens), choices.back());
    }

    ggml_tensor* attention() const {
        const auto& shape = request.shape;
        ggml_tensor* queries = floats(shape[0], request.new_tokens, shape[1]);
        ggml_tensor* keys = ggml_new_tensor_3d(context, type, shape[0], shape[3], shape[2]);
        ggml_tensor* values = ggml_new_tensor_3d(context, type, shape[0], shape[3], shape[2]);
        ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, shape[3], request.new_tokens);
        const float scale = 1.0f / std::sqrt(static_cast<float>(shape[0]));
        return ggml_flash_attn_ext(context, queries, keys, values, mask, scale, 0.0f, 0.0f);
    }

    ggml_tensor* small(const std::string& op) const {
        ggml_tensor* input = floats(request.shape[0], request.new_tokens);
        if (op == "RMS_NORM") return ggml_rms_norm(context, input, 1e-6f);
        ggml_tensor* other = floats(request.shape[0], request.new_tokens);
        return op == "ADD" ? ggml_add(context, input, other) : ggml_swiglu_split(context, input, other);
    }
};

// Each token selects different experts, all as likely.
void choose_experts(ggml_tensor* choices, std::int64_t experts) {
    std::mt19937 random(1);
    std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::int32_t> chosen;
    for (std::int64_t token = 0; token < choices->ne[1]; ++token) {
        std::shuffle(order.begin(), order.end(), random);
        chosen.insert(chosen.end(), order.begin(), order.begin() + choices->ne[0]);
    }
    ggml_backend_tensor_set(choices, chosen.data(), 0, ggml_nbytes(choices));
}

}  // namespace

Kernel::Kernel(const MeasureRequest& request, ggml_backend_t backend) : backend_(backend) {
    const auto& shape = request.shape;
    const auto product = [&](std::size_t first, std::size_t last) {
        return std::accumulate(shape.begin() + first, shape.begin() + last, 1.0, std::multiplies<>());
    };
    const bool weighs = request.op == "MUL_MAT" || request.op == "MUL_MAT_ID";
    const bool attends = request.op == "FLASH_ATTN_EXT";
    const bool small = request.op == "RMS_NORM" || request.op == "ADD" || request.op == "SWIGLU";
    if (!weighs && !attends && !small) throw Error("there is no op '" + request.op + "' to measure");
    request.check_shape(request.op == "MUL_MAT" ? 2 : small ? 1 : 4);
    if (request.op == "MUL_MAT_ID" && shape[3] > shape[2])
        throw Error("more experts are selected than there are");
    const ggml_type type = small ? GGML_TYPE_F32 : type_named(request.type);
    check_rows(type, shape[0]);

    const double tokens = static_cast<double>(request.new_tokens);
    const double row_bytes =
        static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
    if (small) {
        repeats_ = kMostRepeats;
    } else if (attends) {
        const double operations = 4 * tokens * product(0, 2) * static_cast<double>(shape[3]);
        repeats_ =
            repeats_for(2 * row_bytes * static_cast<double>(shape[0] * shape[2] * shape[3]), operations);
    } else {
        const double used = request.op == "MUL_MAT_ID" ? static_cast<double>(shape[3]) : 1.0;
        const std::size_t extents = request.op == "MUL_MAT_ID" ? 3 : 2;
        repeats_ = repeats_for(row_bytes * product(0, extents), 2 * tokens * product(0, 2) * used);
    }

    const auto nodes = static_cast<std::size_t>(repeats_);
    context_.reset(
        ggml_init({ggml_tensor_overhead() * nodes * kTensorsEach + ggml_graph_overhead(), nullptr, true}));
    graph_ = ggml_new_graph(context_.get());
    Builder builder{context_.get(), request, type, {}};
    for (int repeat = 0; repeat < repeats_; ++repeat) {
        ggml_tensor* node = request.op == "MUL_MAT"      ? builder.mul_mat()
                            : request.op == "MUL_MAT_ID" ? builder.mul_mat_id()
                            : attends                    ? builder.attention()
                                                         : builder.small(request.op);
        if (!ggml_backend_supports_op(backend, node)) throw Error("the device lacks the op for this type");
        ggml_build_forward_expand(graph_, node);
    }
    memory_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend));
    if (!memory_) throw Error("there is no memory for the tensors");
    // Small numbers in every type; never denormal.
    ggml_backend_buffer_clear(memory_.get(), 0x11);
    for (ggml_tensor* choices : builder.choices) choose_experts(choices, shape[2]);
}

void Kernel::run() {
    if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) throw Error("the op failed");
}

}  // namespace xlm
