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

// Points nodes at device copies, and back at the model's own tensors when it goes out of scope.
class Swap {
  public:
    explicit Swap(ggml_cgraph* graph) : graph_(graph) {}
    ~Swap() {
        for (const auto& [place, original] : originals_) *place = original;
    }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

    void point(int node, int source, const ggml_tensor& copy) {
        ggml_tensor** place = &graph_->nodes[node]->src[source];
        originals_.emplace_back(place, *place);
        shadows_.push_back(copy);
        *place = &shadows_.back();
    }

    // Where the node reads a view of a weight, it is given the same view of the copy.
    void point_at_weight(int node, int source, const ggml_tensor& copy) {
        const ggml_tensor* original = graph_->nodes[node]->src[source];
        if (original->view_src == nullptr) return point(node, source, copy);
        shadows_.push_back(copy);
        ggml_tensor view = *original;
        view.buffer = copy.buffer;
        view.data = static_cast<char*>(copy.data) + original->view_offs;
        view.view_src = &shadows_.back();
        point(node, source, view);
    }

  private:
    ggml_cgraph* graph_;
    std::deque<ggml_tensor> shadows_;
    std::vector<std::pair<ggml_tensor**, ggml_tensor*>> originals_;
};

}  // namespace

std::int64_t new_tokens(const ggml_tensor* node) {
    if (node->op == GGML_OP_MUL_MAT_ID) return node->ne[2];
    const ggml_tensor* weight = node->src[0];
    // Batched weights (MLA) hold one matrix for each head in dimension 2.
    return weight->ne[2] * weight->ne[3] == 1 ? node->ne[1] * node->ne[2] * node->ne[3] : node->ne[1];
}

// One pass over a graph: launches it in pieces that end where a weight is not there yet.
class Executor::Run {
  public:
    Run(Executor& executor, ggml_backend_t compute, ggml_cgraph* graph, const std::vector<Read>& reads)
        : executor_(executor), compute_(compute), graph_(graph), swap_(graph) {
        for (const Read& read : reads) last_read_[read.weight->shard] = read.node;
    }

    void point(const Read& read) {
        const std::size_t shard = read.weight->shard;
        const ShardCopy* resident = executor_.residents_.find(shard);
        if (resident != nullptr && !executor_.streams(shard, read.tier)) {
            swap_.point_at_weight(read.node, read.source, resident->tensor(*read.weight));
        } else if (!point_at_selected(read)) {
            swap_.point_at_weight(read.node, read.source, in_ring(read).tensor(*read.weight));
        }
    }

    void finish() {
        launch_until(graph_->n_nodes);
        for (const auto& [shard, copy] : held_) executor_.ring_.release(shard, compute_);
    }

  private:
    // Throws the status of a failed launch.
    void launch_until(int end) {
        if (end == launched_) return;
        ggml_cgraph part = slice(graph_, launched_, end);
        launched_ = end;
        const ggml_status status = ggml_backend_graph_compute_async(compute_, &part);
        if (status != GGML_STATUS_SUCCESS) throw status;
    }

    const ShardCopy& in_ring(const Read& read) {
        const std::size_t shard = read.weight->shard;
        if (const auto found = held_.find(shard); found != held_.end()) return *found->second;
        launch_until(read.node);
        Ring& ring = executor_.ring_;
        const std::vector<std::size_t>& order = order_of(read.tier);
        // A shard that has just moved to the CPU comes out of turn.
        const std::size_t position = executor_.position_of(shard, order);
        const std::size_t slot = ring.place(shard, position % ring.slots());
        release_done(read.node, slot);
        const ShardCopy& copy = ring.acquire(shard, slot, compute_);
        held_[shard] = &copy;
        for (std::size_t ahead = 1; !order.empty() && ahead < ring.slots(); ++ahead) {
            const std::size_t next = (position + ahead) % order.size();
            ring.prefetch(order[next], next % ring.slots());
        }
        return copy;
    }

    // Releases what no later node reads, and what lies where the next shard goes: if it is read again, it
    // comes again.
    void release_done(int node, std::size_t slot) {
        for (auto it = held_.begin(); it != held_.end();) {
            const bool in_the_way = executor_.ring_.place(it->first, slot) == slot;
            if (last_read_[it->first] >= node && !in_the_way) {
                ++it;
                continue;
            }
            executor_.ring_.release(it->first, compute_);
            it = held_.erase(it);
        }
    }

    const std::vector<std::size_t>& order_of(std::size_t tier) {
        const auto [order, is_new] = orders_.try_emplace(tier);
        if (is_new) order->second = executor_.streamed(tier);
        return order->second;
    }

    // Gives a node that selects experts the cells of the expert cache instead. False where it reads the
    // whole shard.
    bool point_at_selected(const Read& read) {
        ExpertCache& experts = executor_.experts_;
        const ggml_tensor* node = graph_->nodes[read.node];
        const std::size_t shard = read.weight->shard;
        if (!experts.is_open() || node->op != GGML_OP_MUL_MAT_ID ||
            !executor_.plan_.selects_experts(shard, read.tier))
            return false;
        if (selected_shard_ != shard) {
            launch_until(read.node);
            ggml_backend_synchronize(compute_);
            selected_ids_ = experts.gather(shard, node->src[2]);
            selected_shard_ = shard;
        }
        if (!selected_ids_) return false;
        if (experts.is_coming(*read.weight)) {
            launch_until(read.node);
            experts.await(*read.weight, compute_);
        }
        swap_.point(read.node, read.source, experts.cells_of(*read.weight));
        swap_.point(read.node, 2, *selected_ids_);
        return true;
    }

    Executor& executor_;
    ggml_backend_t compute_;
    ggml_cgraph* graph_;
    Swap swap_;
    int launched_ = 0;
    std::unordered_map<std::size_t, int> last_read_;
    std::map<std::size_t, const ShardCopy*> held_;
    std::map<std::size_t, std::vector<std::size_t>> orders_;
    std::optional<std::size_t> selected_shard_;
    std::optional<ggml_tensor> selected_ids_;
};

Executor::Executor(const Plan& plan, ggml_backend_buffer_type_t host_type, const WeightStore& store,
                   const Residents& residents, Ring& ring, ExpertCache& experts)
    : plan_(plan),
      host_type_(host_type),
      store_(store),
      residents_(residents),
      ring_(ring),
      experts_(experts),
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
    if (!ring_.holds(store_.shard(shard).bytes)) {
        throw Error("shard '" + plan_.shards()[shard].name +
                    "' came to the device, and no slot is ready for it");
    }
    return static_cast<std::size_t>(found - order.begin());
}

std::vector<std::size_t> Executor::streamed(std::size_t tier) const {
    std::vector<std::size_t> order;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        const bool selected = experts_.is_open() && plan_.selects_experts(shard, tier);
        if (streams(shard, tier) && !selected && !store_.shard(shard).weights.empty()) order.push_back(shard);
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

ggml_status Executor::run(ggml_backend_t compute, ggml_cgraph* graph) try {
    const std::vector<Read> reads = find_reads(graph);
    if (reads.empty()) return ggml_backend_graph_compute_async(compute, graph);
    count_step(reads);
    Run run(*this, compute, graph, reads);
    for (const Read& read : reads) run.point(read);
    run.finish();
    return GGML_STATUS_SUCCESS;
} catch (ggml_status status) {
    return status;
}

}  // namespace xlm
