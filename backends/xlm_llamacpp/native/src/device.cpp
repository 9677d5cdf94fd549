#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "errors.hpp"
#include "interface.hpp"
#include "plan_swap.hpp"
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

void require_enough(std::size_t budget_bytes, std::size_t least_bytes) {
    if (budget_bytes >= least_bytes) return;
    throw Error("a budget of " + mib(budget_bytes) + " is too small; the least that works is " +
                enough_mib(least_bytes));
}

}  // namespace

Device::Device(Plan plan, ggml_backend_dev_t inner, ggml_backend_reg_t registry,
               std::optional<std::string> corrupt_tensor)
    : inner_(inner),
      description_(std::string("xlm over ") + ggml_backend_dev_name(inner) + " (" +
                   ggml_backend_dev_description(inner) + ")"),
      free_at_start_(free_bytes(inner)),
      corrupt_tensor_(std::move(corrupt_tensor)),
      ledger_(plan.budget_bytes()),
      loaded_(std::make_unique<LoadedPlan>(std::move(plan), ggml_backend_dev_buffer_type(inner))),
      device_{device_interface(), registry, this},
      buffer_type_{device_type_interface(), &device_, this},
      host_type_{host_type_interface(), &device_, this},
      host_kv_type_{host_kv_type_interface(), &device_, this} {}

ggml_backend_buffer_type_t Device::kv_type(int layer) {
    asked_for_kv_ = true;
    return loaded_->plan.keeps_kv_on_host(layer) ? &host_kv_type_ : &buffer_type_;
}

void Device::hold(ggml_tensor* tensor) {
    const std::lock_guard lock(mutex_);
    const std::string name = ggml_get_name(tensor);
    if (loaded_->cache && base_weight(name) != name)
        throw Error("the adapter's tensor '" + name + "' comes too late; load adapters before a context");
    loaded_->store.add(tensor);
}

void Device::release(const ggml_tensor* tensor) {
    const std::lock_guard lock(mutex_);
    loaded_->store.remove(tensor);
    if (next_) next_->store.remove(tensor);
}

std::optional<std::size_t> Device::planned_shard(const ggml_tensor* op) const {
    if (op->op != GGML_OP_MUL_MAT && op->op != GGML_OP_MUL_MAT_ID) return std::nullopt;
    return loaded_->plan.shard_of(ggml_get_name(root_of(op->src[0])));
}

bool Device::reads_host_kv(const ggml_tensor* op) const {
    return std::any_of(std::begin(op->src), std::end(op->src), [this](const ggml_tensor* source) {
        if (source == nullptr) return false;
        ggml_backend_buffer_t buffer = root_of(source)->buffer;
        return buffer != nullptr && buffer->buft == &host_kv_type_;
    });
}

bool Device::supports(const ggml_tensor* op) const {
    if (loaded_->plan.keeps_any_kv_on_host() && reads_host_kv(op)) {
        // The engine copies what such an operation reads; all others it runs where the cache lies.
        const bool attends = op->op == GGML_OP_FLASH_ATTN_EXT || op->op == GGML_OP_MUL_MAT;
        if (!attends || attending_tokens(op) < loaded_->plan.host_kv_device_tokens()) return false;
    }
    const ggml_tensor* weight = op->src[0] != nullptr ? root_of(op->src[0]) : nullptr;
    ggml_backend_buffer_t buffer = weight != nullptr ? weight->buffer : nullptr;
    // The loader asks where a weight may live with a buffer of no bytes.
    const bool is_question = buffer != nullptr && ggml_backend_buffer_get_size(buffer) == 0;
    const auto shard = planned_shard(op);
    if (!is_question) divided_ = true;
    if (is_question && buffer->buft == &host_type_) {
        if (!shard || loaded_->plan.on_cpu_everywhere(*shard)) return false;
    } else if (is_question && buffer->buft == &buffer_type_) {
        if (shard) return false;
    } else if (shard && loaded_->plan.placement(*shard, new_tokens(op)) == Placement::cpu) {
        return false;
    }
    return ggml_backend_dev_supports_op(inner_, op);
}

ggml_backend_buffer_t Device::allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty() && loaded_->plan.keeps_any_kv_on_host() && !asked_for_kv_) {
        report(
            "the plan keeps KV caches in host memory, but this engine lacks xlm's patch for that; build it "
            "with 'xlm engine build', or plan with host layers");
        return nullptr;
    }
    const Use use = streams_.empty() ? Use::weights : Use::kv_and_compute;
    ledger_.reconcile(device_bytes());
    if (loaded_->cache) {
        synchronize();
        loaded_->cache->make_room(bytes);
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
    if (!loaded_->cache) loaded_->cache = make_cache(*loaded_);
}

void Device::closed(ggml_backend_t inner) {
    const std::lock_guard lock(mutex_);
    streams_.erase(std::remove(streams_.begin(), streams_.end(), inner), streams_.end());
    // The engine frees its weights after its last stream.
    if (!streams_.empty()) return;
    next_.reset();
    loaded_->cache.reset();
}

std::unique_ptr<Cache> Device::make_cache(LoadedPlan& loaded) {
    return std::make_unique<Cache>(loaded.plan, loaded.store, inner_, &host_type_, ledger_);
}

ggml_status Device::compute(ggml_backend_t inner, ggml_cgraph* graph) try {
    gate_.wait_until_running();
    const std::lock_guard lock(mutex_);
    if (next_) swap_plan();
    if (divided_ && !loaded_->cache->lingering().empty()) {
        loaded_->cache->expect({});
        settled_ = false;
    }
    if (!settled_) settle();
    const ggml_status status = loaded_->cache->executor().run(inner, graph);
    if (!settled_) settle();
    return status;
} catch (const Error& error) {
    report(error.what());
    return GGML_STATUS_FAILED;
}

void Device::settle() {
    synchronize();
    if (gate_.state() == State::parked) {
        loaded_->cache->drop_all();
        say_own_memory();
        return;
    }
    if (corrupt_tensor_) {
        // A name that is not held fails every graph: llama-server tries one before the first request.
        loaded_->store.corrupt(*corrupt_tensor_);
        corrupt_tensor_.reset();
    }
    ledger_.reconcile(device_bytes());
    const std::size_t pinned_bytes = loaded_->cache->pinned_bytes();
    settled_ = loaded_->cache->settle(filled_once_ ? pinned_bytes / kRefillPieces : pinned_bytes);
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
    if (lock && loaded_->cache && filled_once_) settle();
}

void Device::set_state(State state) {
    gate_.set(state);
    settle_if_idle();
}

void Device::set_budget(std::size_t budget_bytes) {
    {
        const std::lock_guard lock(mutex_);
        require_enough(budget_bytes, handed_out() + (loaded_->cache ? loaded_->cache->least_bytes() : 0));
        ledger_.set_budget(budget_bytes);
    }
    settle_if_idle();
}

void Device::load_plan(Plan plan) {
    const std::lock_guard lock(mutex_);
    if (!loaded_->cache) throw Error("the engine is still loading its model");
    const WeightStore& store = loaded_->store;
    require_swappable(loaded_->plan, plan,
                      [&store](const std::string& tensor) { return store.holds(tensor); });
    auto next = std::make_unique<LoadedPlan>(std::move(plan), *loaded_);
    next->cache = make_cache(*next);
    next->cache->expect(lingering_shards(loaded_->plan, next->plan, loaded_->cache->lingering()));
    require_enough(next->plan.budget_bytes(), handed_out() + next->cache->least_bytes());
    next_ = std::move(next);
}

void Device::swap_plan() {
    synchronize();
    loaded_ = std::move(next_);
    loaded_->store.take_over();
    ledger_.set_budget(loaded_->plan.budget_bytes());
    divided_ = false;
    settled_ = false;
}

Stats Device::stats() {
    const std::lock_guard lock(mutex_);
    Stats stats;
    stats.model_name = loaded_->plan.model_name();
    stats.device_bytes = device_bytes();
    stats.plan_is_waiting = next_ != nullptr;
    for (const Tier& tier : loaded_->plan.tiers()) stats.steps[tier.new_tokens] = 0;
    if (!loaded_->cache) return stats;
    ledger_.reconcile(stats.device_bytes);
    stats.resident_shards = loaded_->cache->residents().count();
    stats.demoted_shards = loaded_->cache->missing();
    stats.copies = loaded_->cache->copy_stats();
    stats.ring = loaded_->cache->ring().stats();
    stats.experts = loaded_->cache->experts().stats();
    const std::vector<std::size_t>& steps = loaded_->cache->executor().steps();
    for (std::size_t tier = 0; tier < steps.size(); ++tier)
        stats.steps[loaded_->plan.tiers()[tier].new_tokens] = steps[tier];
    return stats;
}

std::size_t Device::handed_out() const {
    return ledger_.bytes(Use::weights) + ledger_.bytes(Use::kv_and_compute);
}

std::size_t Device::device_bytes() const {
    const std::size_t free = free_bytes(inner_);
    return free_at_start_ > free ? free_at_start_ - free : 0;
}

void Device::synchronize() {
    for (ggml_backend_t stream : streams_) ggml_backend_synchronize(stream);
}

}  // namespace xlm
