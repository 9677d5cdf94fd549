#include "weights.hpp"

#include <algorithm>

#include "errors.hpp"

namespace xlm {
namespace {

std::size_t round_up(std::size_t bytes, std::size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

// ggml pads a row of a quantised matrix to 512 elements, of at most 4 bytes each.
constexpr std::size_t kLongestPadding = 2048;

ggml_tensor bytes_behind(const ggml_tensor& tensor, std::size_t bytes) {
    ggml_tensor behind{};
    behind.type = GGML_TYPE_I8;
    behind.buffer = tensor.buffer;
    behind.data = static_cast<char*>(tensor.data) + ggml_nbytes(&tensor);
    behind.ne[0] = static_cast<std::int64_t>(bytes);
    behind.ne[1] = behind.ne[2] = behind.ne[3] = 1;
    behind.nb[0] = 1;
    behind.nb[1] = behind.nb[2] = behind.nb[3] = bytes;
    return behind;
}

}  // namespace

WeightStore::WeightStore(const Plan& plan, ggml_backend_buffer_type_t device_type)
    : plan_(plan), device_type_(device_type), shards_(plan.shards().size()) {}

WeightStore::WeightStore(const Plan& plan, const WeightStore& other) : WeightStore(plan, other.device_type_) {
    for (const ShardWeights& shard : other.shards_) {
        for (const Weight* weight : shard.weights) enter(weight->host);
    }
}

void WeightStore::take_over() {
    for (const auto& [name, weight] : weights_) weight->host->extra = weight.get();
}

void WeightStore::add(ggml_tensor* tensor) {
    tensor->extra = enter(tensor);
}

Weight* WeightStore::enter(ggml_tensor* tensor) {
    const std::string name = ggml_get_name(tensor);
    const auto index = plan_.shard_of(name);
    if (!index) throw Error("tensor '" + name + "' is not in the plan");
    if (base_weight(name) == name && weights_.count(name) > 0) {
        throw Error("tensor '" + name +
                    "' is loaded twice; give the second model another device (--device-draft)");
    }
    ShardWeights& shard = shards_[*index];
    const auto place = weights_.emplace(name, std::make_unique<Weight>(Weight{tensor, *index, shard.bytes}));
    const std::size_t size = ggml_backend_buft_get_alloc_size(device_type_, tensor);
    shard.bytes += round_up(size, ggml_backend_buft_get_alignment(device_type_));
    shard.weights.push_back(place->second.get());
    return place->second.get();
}

void WeightStore::remove(const ggml_tensor* tensor) {
    const auto [begin, end] = weights_.equal_range(ggml_get_name(tensor));
    const auto found =
        std::find_if(begin, end, [tensor](const auto& entry) { return entry.second->host == tensor; });
    if (found == end) return;
    ShardWeights& shard = shards_[found->second->shard];
    const auto place = std::find(shard.weights.begin(), shard.weights.end(), found->second.get());
    shard.weights.erase(place);
    if (shard.weights.empty()) shard.bytes = 0;
    weights_.erase(found);
}

Weight* WeightStore::find(const ggml_tensor* tensor, ggml_backend_buffer_type_t host_type) {
    const ggml_tensor* root = tensor->view_src != nullptr ? tensor->view_src : tensor;
    if (root->buffer == nullptr || root->buffer->buft != host_type) return nullptr;
    return static_cast<Weight*>(root->extra);
}

void WeightStore::corrupt(const std::string& tensor) {
    const auto found = weights_.find(tensor);
    if (found == weights_.end())
        throw Error("XLM_TEST_CORRUPT names '" + tensor + "', which is not held here");
    ggml_tensor* host = found->second->host;
    auto* bytes = static_cast<unsigned char*>(host->data);
    for (std::size_t i = 0; i < ggml_nbytes(host); i += 7) bytes[i] ^= 0x18;
}

ShardCopy::ShardCopy(const ShardWeights& shard, ggml_backend_buffer_t buffer) {
    auto* base = static_cast<char*>(ggml_backend_buffer_get_base(buffer));
    for (const Weight* weight : shard.weights) {
        ggml_tensor tensor = *weight->host;
        tensor.buffer = buffer;
        tensor.data = base + weight->offset;
        tensor.extra = nullptr;
        tensors_.emplace(weight, tensor);
        const std::size_t padding =
            ggml_backend_buffer_get_alloc_size(buffer, &tensor) - ggml_nbytes(&tensor);
        if (padding > 0) paddings_.push_back(bytes_behind(tensor, padding));
    }
}

std::vector<Copy> ShardCopy::copies() {
    static const std::vector<char> zeros(kLongestPadding);
    std::vector<Copy> copies;
    for (auto& [weight, tensor] : tensors_)
        copies.push_back({&tensor, 0, weight->host->data, ggml_nbytes(&tensor)});
    for (ggml_tensor& padding : paddings_) {
        copies.push_back({&padding, 0, zeros.data(), std::min(zeros.size(), ggml_nbytes(&padding))});
    }
    return copies;
}

}  // namespace xlm
