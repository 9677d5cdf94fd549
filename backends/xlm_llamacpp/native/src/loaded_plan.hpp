// A plan at work: the weights by its shards, and the cache that carries it out.
#pragma once

#include <memory>
#include <utility>

#include "cache.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace xlm {

struct LoadedPlan {
    LoadedPlan(Plan new_plan, ggml_backend_buffer_type_t device_type)
        : plan(std::move(new_plan)), store(plan, device_type) {}
    // For the weights that `other` holds. Throws Error for one that the plan does not name.
    LoadedPlan(Plan new_plan, const LoadedPlan& other)
        : plan(std::move(new_plan)), store(plan, other.store) {}
    LoadedPlan(const LoadedPlan&) = delete;
    LoadedPlan& operator=(const LoadedPlan&) = delete;

    const Plan plan;
    WeightStore store;
    std::unique_ptr<Cache> cache;  // while the engine has streams open
};

}  // namespace xlm
