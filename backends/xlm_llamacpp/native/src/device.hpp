// XLM0: the device that the engine sees. It wraps a real one and keeps planned weights in host memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gate.hpp"
#include "ggml-backend-impl.h"
#include "ledger.hpp"
#include "loaded_plan.hpp"

namespace xlm {

struct Stats {
    std::string model_name;
    std::size_t device_bytes = 0;
    std::size_t resident_shards = 0;
    std::size_t demoted_shards = 0;
    bool plan_is_waiting = false;  // one was loaded, and no graph has come since
    CopyStats copies;
    RingStats ring;
    ExpertStats experts;
    std::map<std::int64_t, std::size_t> steps;  // by the tier's new tokens
};

class Device {
  public:
    Device(Plan plan, ggml_backend_dev_t inner, ggml_backend_reg_t registry,
           std::optional<std::string> corrupt_tensor);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    ggml_backend_dev_t device() { return &device_; }
    ggml_backend_dev_t inner() const { return inner_; }
    ggml_backend_buffer_type_t buffer_type() { return &buffer_type_; }
    ggml_backend_buffer_type_t host_type() { return &host_type_; }
    ggml_backend_buffer_type_t host_kv_type() { return &host_kv_type_; }
    // Where this layer's KV cache lies. Engines with our patch ask.
    ggml_backend_buffer_type_t kv_type(int layer);
    const char* description() const { return description_.c_str(); }
    const Ledger& ledger() const { return ledger_; }

    // Takes a tensor that the engine has placed in host weight memory, and lets it go. Throws Error like
    // WeightStore, and for an adapter that comes when a context is there already.
    void hold(ggml_tensor* tensor);
    void release(const ggml_tensor* tensor);

    // Whether the wrapped device runs the operation, by the plan and by what the device can do.
    bool supports(const ggml_tensor* op) const;
    bool is_planned(const ggml_tensor* op) const { return planned_shard(op).has_value(); }

    // Memory that the engine asks for: KV cache, compute buffers, weights that no plan moves.
    ggml_backend_buffer_t allocate(std::size_t bytes);

    // The engine opens and closes streams.
    void opened(ggml_backend_t inner);
    void closed(ggml_backend_t inner);

    ggml_status compute(ggml_backend_t inner, ggml_cgraph* graph);

    // Live control. Takes effect at once when nothing computes, else before the next graph.
    void set_state(State state);
    // Throws Error that says the least budget when budget_bytes is below it.
    void set_budget(std::size_t budget_bytes);
    // Throws Error with the reason why the plan cannot take the place of the one in force, and what budget
    // would do where its own is too small. Takes effect at the next graph, on what the engine then divides
    // anew; its counters begin at 0.
    void load_plan(Plan plan);
    State state() const { return gate_.state(); }
    Stats stats();

  private:
    std::optional<std::size_t> planned_shard(const ggml_tensor* op) const;
    bool reads_host_kv(const ggml_tensor* op) const;
    std::size_t device_bytes() const;
    std::unique_ptr<Cache> make_cache(LoadedPlan& loaded);
    std::size_t handed_out() const;
    void swap_plan();
    void settle();
    void settle_if_idle();
    // In llama.cpp's words: Ollama counts a running engine's memory by such lines of its log.
    void say_own_memory();
    void synchronize();

    ggml_backend_dev_t inner_;
    std::string description_;
    std::size_t free_at_start_;
    std::optional<std::string> corrupt_tensor_;
    Ledger ledger_;
    Gate gate_;
    // Guards everything below; held while a graph is launched.
    std::mutex mutex_;
    std::vector<ggml_backend_t> streams_;
    // Replaced between two graphs, on the engine's own thread.
    std::unique_ptr<LoadedPlan> loaded_;
    std::unique_ptr<LoadedPlan> next_;
    // The engine has divided a graph by the plan in force.
    mutable std::atomic<bool> divided_{true};
    std::atomic<bool> settled_{false};
    bool filled_once_ = false;
    std::atomic<bool> asked_for_kv_{false};
    std::size_t said_bytes_ = 0;

    ggml_backend_device device_;
    ggml_backend_buffer_type buffer_type_;
    ggml_backend_buffer_type host_type_;
    ggml_backend_buffer_type host_kv_type_;
};

}  // namespace xlm
