#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "errors.hpp"
#include "interface.hpp"
#include "sizes.hpp"

namespace xlm {
namespace {

// After a wake or a larger budget, shards come back between graphs in pieces of this share, so that the
// engine runs meanwhile.
constexpr std::size_t kRefillPieces = 32;

std::size_t free_bytes(ggml_backend_dev_t device) {
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    return free;
}

const ggml_tensor* root_of(const ggml_tensor* tensor) {
    return tensor->view_src != nullptr ? tensor->view_src : tensor;
}

// New tokens of flash attention, or of either product of attention without it.
std::int64_t attending_tokens(const ggml_tensor* op) {
    const ggml_tensor* rows = op->op == GGML_OP_FLASH_ATTN_EXT ? op->src[0] : op;
    return rows->ne[1] * rows->ne[3];
}

}  // namespace

Device::Device(Plan plan, ggml_backend_dev_t inner, ggml_backend_reg_t registry,
               std::optional<std::string> corrupt_tensor)
    : plan_(std::move(plan)),
      inner_(inner),
      description_(std::string("xlm over ") + ggml_backend_dev_name(inner) + " (" +
                   ggml_backend_dev_description(inner) + ")"),
      free_at_start_(free_bytes(inner)),
      corrupt_tensor_(std::move(corrupt_tensor)),
      ledger_(plan_.budget_bytes()),
      store_(plan_, ggml_backend_dev_buffer_type(inner)),
      device_{device_interface(), registry, this},
      buffer_type_{device_type_interface(), &device_, this},
      host_type_{host_type_interface(), &device_, this},
      host_kv_type_{host_kv_type_interface(), &device_, this} {}

ggml_backend_buffer_type_t Device::kv_type(int layer) {
    asked_for_kv_ = true;
    return plan_.keeps_kv_on_host(layer) ? &host_kv_type_ : &buffer_type_;
}

void Device::hold(ggml_tensor* tensor) {
    const std::lock_guard lock(mutex_);
    const std::string name = ggml_get_name(tensor);
    if (cache_ && base_weight(name) != name)
        throw Error("the adapter's tensor '" + name + "' comes too late; load adapters before a context");
    store_.add(tensor);
}

void Device::release(const ggml_tensor* tensor) {
    const std::lock_guard lock(mutex_);
    store_.remove(tensor);
}

std::optional<std::size_t> Device::planned_shard(const ggml_tensor* op) const {
    if (op->op != GGML_OP_MUL_MAT && op->op != GGML_OP_MUL_MAT_ID) return std::nullopt;
    return plan_.shard_of(ggml_get_name(root_of(op->src[0])));
}

bool Device::reads_host_kv(const ggml_tensor* op) const {
    return std::any_of(std::begin(op->src), std::end(op->src), [this](const ggml_tensor* source) {
        if (source == nullptr) return false;
        ggml_backend_buffer_t buffer = root_of(source)->buffer;
        return buffer != nullptr && buffer->buft == &host_kv_type_;
    });
}

bool Device::supports(const ggml_tensor* op) const {
    if (plan_.keeps_any_kv_on_host() && reads_host_kv(op)) {
        // The engine copies what such an operation reads; all others it runs where the cache lies.
        const bool attends = op->op == GGML_OP_FLASH_ATTN_EXT || op->op == GGML_OP_MUL_MAT;
        if (!attends || attending_tokens(op) < plan_.host_kv_device_tokens()) return false;
    }
    const ggml_tensor* weight = op->src[0] != nullptr ? root_of(op->src[0]) : nullptr;
    ggml_backend_buffer_t buffer = weight != nullptr ? weight->buffer : nullptr;
    // The loader asks where a weight may live with a buffer of no bytes.
    const bool is_question = buffer != nullptr && ggml_backend_buffer_get_size(buffer) == 0;
    const auto shard = planned_shard(op);
    if (is_question && buffer->buft == &host_type_) {
        if (!shard || plan_.on_cpu_everywhere(*shard)) return false;
    } else if (is_question && buffer->buft == &buffer_type_) {
        if (shard) return false;
    } else if (shard && plan_.placement(*shard, new_tokens(op)) == Placement::cpu) {
        return false;
    }
    return ggml_backend_dev_supports_op(inner_, op);
}

ggml_backend_buffer_t Device::allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty() && plan_.keeps_any_kv_on_host() && !asked_for_kv_) {
        report(
            "the plan keeps KV caches in host memory, but this engine lacks xlm's patch for that; build it "
            "with 'xlm engine build', or plan with host layers");
        return nullptr;
    }
    const Use use = streams_.empty() ? Use::weights : Use::kv_and_compute;
    ledger_.reconcile(device_bytes());
    if (cache_) {
        synchronize();
        cache_->make_room(bytes);
        settled_ = false;
    }
    if (!ledger_.hand_out(use, bytes)) {
        report("the engine needs " + mib(bytes) + " for " +
               (use == Use::weights ? "small weights" : "KV cache and compute buffers") + ", which is " +
               mib(ledger_.missing_bytes(bytes)) + " above the budget of " + mib(ledger_.budget_bytes()));
        return nullptr;
    }
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(inner_), bytes);
    if (buffer == nullptr)
        report(std::string(ggml_backend_dev_name(inner_)) + " has no room for " + mib(bytes));
    return buffer;
}

void Device::opened(ggml_backend_t inner) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(inner);
    if (!cache_) cache_ = std::make_unique<Cache>(plan_, store_, inner_, &host_type_, ledger_);
}

void Device::closed(ggml_backend_t inner) {
    const std::lock_guard lock(mutex_);
    streams_.erase(std::remove(streams_.begin(), streams_.end(), inner), streams_.end());
    // The engine frees its weights after its last stream.
    if (streams_.empty()) cache_.reset();
}

ggml_status Device::compute(ggml_backend_t inner, ggml_cgraph* graph) try {
    gate_.wait_until_running();
    const std::lock_guard lock(mutex_);
    if (!settled_) settle();
    const ggml_status status = cache_->executor().run(inner, graph);
    if (!settled_) settle();
    return status;
} catch (const Error& error) {
    report(error.what());
    return GGML_STATUS_FAILED;
}

void Device::settle() {
    synchronize();
    if (gate_.state() == State::parked) {
        cache_->drop_all();
        say_own_memory();
        return;
    }
    if (corrupt_tensor_) {
        // A name that is not held fails every graph: llama-server tries one before the first request.
        store_.corrupt(*corrupt_tensor_);
        corrupt_tensor_.reset();
    }
    ledger_.reconcile(device_bytes());
    const std::size_t pinned_bytes = cache_->pinned_bytes();
    settled_ = cache_->settle(filled_once_ ? pinned_bytes / kRefillPieces : pinned_bytes);
    filled_once_ = true;
    if (settled_) say_own_memory();
}

void Device::say_own_memory() {
    const std::size_t bytes =
        ledger_.bytes(Use::staging) + ledger_.bytes(Use::resident) + ledger_.bytes(Use::expert_cache);
    if (bytes == said_bytes_) return;
    said_bytes_ = bytes;
    std::fprintf(stderr, "xlm: %s model buffer size = %s\n", ggml_backend_dev_name(inner_),
                 mib(bytes).c_str());
}

void Device::settle_if_idle() {
    settled_ = false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && cache_ && filled_once_) settle();
}

void Device::set_state(State state) {
    gate_.set(state);
    settle_if_idle();
}

void Device::set_budget(std::size_t budget_bytes) {
    {
        const std::lock_guard lock(mutex_);
        const std::size_t handed_out = ledger_.bytes(Use::weights) + ledger_.bytes(Use::kv_and_compute);
        const std::size_t least = handed_out + (cache_ ? cache_->least_bytes() : 0);
        if (budget_bytes < least) {
            throw Error("a budget of " + mib(budget_bytes) + " is too small; the least that works is " +
                        enough_mib(least));
        }
        ledger_.set_budget(budget_bytes);
    }
    settle_if_idle();
}

Stats Device::stats() {
    const std::lock_guard lock(mutex_);
    Stats stats{device_bytes(), 0, 0, {}, {}, {}, std::vector<std::size_t>(plan_.tiers().size(), 0)};
    if (!cache_) return stats;
    ledger_.reconcile(stats.device_bytes);
    stats.resident_shards = cache_->residents().count();
    stats.demoted_shards = cache_->missing();
    stats.copies = cache_->copy_stats();
    stats.ring = cache_->ring().stats();
    stats.experts = cache_->experts().stats();
    stats.steps = cache_->executor().steps();
    return stats;
}

std::size_t Device::device_bytes() const {
    const std::size_t free = free_bytes(inner_);
    return free_at_start_ > free ? free_at_start_ - free : 0;
}

void Device::synchronize() {
    for (ggml_backend_t stream : streams_) ggml_backend_synchronize(stream);
}

}  // namespace xlm
