// Runs a graph with its planned weights swapped for device copies.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "expert_cache.hpp"
#include "ggml-backend-impl.h"
#include "plan.hpp"
#include "residents.hpp"
#include "ring.hpp"

namespace xlm {

// The number of new tokens that a node with a weight works on.
std::int64_t new_tokens(const ggml_tensor* node);

class Executor {
  public:
    Executor(const Plan& plan, ggml_backend_buffer_type_t host_type, const WeightStore& store,
             const Residents& residents, Ring& ring, ExpertCache& experts);

    // Launches the graph on `compute`. Throws Error when a shard must stream and there is no ring.
    ggml_status run(ggml_backend_t compute, ggml_cgraph* graph);

    // Steps so far, by tier index.
    const std::vector<std::size_t>& steps() const { return steps_; }

  private:
    // A place in the graph where a planned weight is read.
    struct Read {
        int node;
        int source;
        const Weight* weight;
        std::size_t tier;
    };

    class Run;

    std::vector<Read> find_reads(const ggml_cgraph* graph) const;
    void count_step(const std::vector<Read>& reads);
    bool streams(std::size_t shard, std::size_t tier) const;
    // The shards that stream in a tier, in plan order; a shard's slot follows from its position there, so
    // that its addresses stay the same from step to step.
    std::vector<std::size_t> streamed(std::size_t tier) const;
    std::size_t position_of(std::size_t shard, const std::vector<std::size_t>& order) const;

    const Plan& plan_;
    ggml_backend_buffer_type_t host_type_;
    const WeightStore& store_;
    const Residents& residents_;
    Ring& ring_;
    ExpertCache& experts_;
    std::vector<std::size_t> steps_;
    std::optional<std::size_t> last_shard_;
};

}  // namespace xlm
