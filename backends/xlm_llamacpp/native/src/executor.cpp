#include "executor.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "errors.hpp"
#include "ggml-impl.h"

namespace xlm {
namespace {

bool computes_nothing(const ggml_tensor* node) {
    switch (node->op) {
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
            return true;
        default:
            return false;
    }
}

ggml_cgraph slice(const ggml_cgraph* graph, int begin, int end) {
    ggml_cgraph part = *graph;
    part.size = 0;
    part.nodes = graph->nodes + begin;
    part.n_nodes = end - begin;
    part.n_leafs = 0;
    part.grads = nullptr;
    part.grad_accs = nullptr;
    part.leafs = nullptr;
    part.uid = 0;
    return part;
}

}  // namespace

std::int64_t new_tokens(const ggml_tensor* node) {
    if (node->op == GGML_OP_MUL_MAT_ID) return node->ne[2];
    const ggml_tensor* weight = node->src[0];
    // Batched weights (MLA) hold one matrix for each head in dimension 2.
    return weight->ne[2] * weight->ne[3] == 1 ? node->ne[1] * node->ne[2] * node->ne[3] : node->ne[1];
}

// Points nodes at device copies, and back at the model's own tensors when it goes out of scope.
class Executor::Swap {
  public:
    explicit Swap(ggml_cgraph* graph) : graph_(graph) {}
    ~Swap() {
        for (const auto& [place, original] : originals_) *place = original;
    }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

    void point(const Read& read, const ShardCopy& copy) {
        ggml_tensor** place = &graph_->nodes[read.node]->src[read.source];
        originals_.emplace_back(place, *place);
        const ggml_tensor* original = *place;
        shadows_.push_back(copy.tensor(*read.weight));
        if (original->view_src != nullptr) {
            const ggml_tensor& root = shadows_.back();
            ggml_tensor view = *original;
            view.buffer = root.buffer;
            view.data = static_cast<char*>(root.data) + original->view_offs;
            view.view_src = &shadows_.back();
            shadows_.push_back(view);
        }
        *place = &shadows_.back();
    }

  private:
    ggml_cgraph* graph_;
    std::deque<ggml_tensor> shadows_;
    std::vector<std::pair<ggml_tensor**, ggml_tensor*>> originals_;
};

Executor::Executor(const Plan& plan, ggml_backend_buffer_type_t host_type, const WeightStore& store,
                   const Residents& residents, Ring& ring)
    : plan_(plan),
      host_type_(host_type),
      store_(store),
      residents_(residents),
      ring_(ring),
      steps_(plan.tiers().size(), 0) {}

std::vector<Executor::Read> Executor::find_reads(const ggml_cgraph* graph) const {
    std::vector<Read> reads;
    for (int node = 0; node < graph->n_nodes; ++node) {
        const ggml_tensor* tensor = graph->nodes[node];
        if (computes_nothing(tensor)) continue;
        for (int source = 0; source < GGML_MAX_SRC && tensor->src[source] != nullptr; ++source) {
            const Weight* weight = WeightStore::find(tensor->src[source], host_type_);
            if (weight != nullptr)
                reads.push_back({node, source, weight, plan_.tier_for(new_tokens(tensor))});
        }
    }
    return reads;
}

bool Executor::streams(std::size_t shard, std::size_t tier) const {
    const Placement placement = plan_.tiers()[tier].placements[shard];
    return placement == Placement::stream ||
           (placement == Placement::pin && residents_.find(shard) == nullptr);
}

std::size_t Executor::position_of(std::size_t shard, const std::vector<std::size_t>& order) const {
    const auto found = std::find(order.begin(), order.end(), shard);
    if (found == order.end() || !ring_.is_open()) {
        throw Error("shard '" + plan_.shards()[shard].name +
                    "' came to the device, and no slot is ready for it");
    }
    return static_cast<std::size_t>(found - order.begin());
}

std::vector<std::size_t> Executor::streamed(std::size_t tier) const {
    std::vector<std::size_t> order;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        if (streams(shard, tier) && !store_.shard(shard).weights.empty()) order.push_back(shard);
    }
    return order;
}

void Executor::count_step(const std::vector<Read>& reads) {
    for (const Read& read : reads) {
        // Within a step shards come in plan order, so an earlier one begins the next step.
        if (!last_shard_ || read.weight->shard < *last_shard_) ++steps_[read.tier];
        last_shard_ = read.weight->shard;
    }
}

ggml_status Executor::run(ggml_backend_t compute, ggml_cgraph* graph) {
    const std::vector<Read> reads = find_reads(graph);
    if (reads.empty()) return ggml_backend_graph_compute_async(compute, graph);
    count_step(reads);

    std::unordered_map<std::size_t, int> last_read;
    for (const Read& read : reads) last_read[read.weight->shard] = read.node;

    Swap swap(graph);
    int launched = 0;
    const auto launch_until = [&](int end) {
        if (end == launched) return GGML_STATUS_SUCCESS;
        ggml_cgraph part = slice(graph, launched, end);
        launched = end;
        return ggml_backend_graph_compute_async(compute, &part);
    };

    std::map<std::size_t, const ShardCopy*> held;
    std::map<std::size_t, std::vector<std::size_t>> orders;
    for (const Read& read : reads) {
        const std::size_t shard = read.weight->shard;
        const ShardCopy* resident = residents_.find(shard);
        if (resident != nullptr && !streams(shard, read.tier)) {
            swap.point(read, *resident);
            continue;
        }
        if (held.count(shard) == 0) {
            const ggml_status status = launch_until(read.node);
            if (status != GGML_STATUS_SUCCESS) return status;
            const auto [order, is_new] = orders.try_emplace(read.tier);
            if (is_new) order->second = streamed(read.tier);
            const std::size_t position = position_of(shard, order->second);
            const std::size_t slot = ring_.place(shard, position % ring_.slots());
            for (auto it = held.begin(); it != held.end();) {
                const bool in_the_way = ring_.place(it->first, slot) == slot;
                if (last_read[it->first] >= read.node && !in_the_way) {
                    ++it;
                    continue;
                }
                ring_.release(it->first, compute);
                it = held.erase(it);
            }
            held[shard] = &ring_.acquire(shard, slot, compute);
            for (std::size_t ahead = 1; ahead < ring_.slots(); ++ahead) {
                const std::size_t next = (position + ahead) % order->second.size();
                ring_.prefetch(order->second[next], next % ring_.slots());
            }
        }
        swap.point(read, *held[shard]);
    }
    const ggml_status status = launch_until(graph->n_nodes);
    for (const auto& [shard, copy] : held) ring_.release(shard, compute);
    return status;
}

}  // namespace xlm
