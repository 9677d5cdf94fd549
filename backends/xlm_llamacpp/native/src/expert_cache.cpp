#include "expert_cache.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "errors.hpp"

namespace xlm {
namespace {

std::size_t round_up(std::size_t bytes, std::size_t step) {
    return (bytes + step - 1) / step * step;
}

ggml_tensor bare(ggml_type type, ggml_backend_buffer_t buffer, std::size_t offset) {
    ggml_tensor tensor{};
    tensor.type = type;
    tensor.buffer = buffer;
    tensor.data = static_cast<char*>(ggml_backend_buffer_get_base(buffer)) + offset;
    return tensor;
}

}  // namespace

ExpertCache::ExpertCache(const Plan& plan, const WeightStore& store, ggml_backend_buffer_type_t type,
                         Ledger& ledger, CopyStream& stream, std::size_t first_slot)
    : plan_(plan),
      store_(store),
      type_(type),
      ledger_(ledger),
      stream_(stream),
      first_slot_(first_slot),
      scores_(0, 0, 0) {
    measure();
}

void ExpertCache::measure() {
    const std::size_t alignment = ggml_backend_buft_get_alignment(type_);
    std::size_t step = alignment;
    std::int64_t most_tokens = 0;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        for (std::size_t tier = 0; tier < plan_.tiers().size(); ++tier) {
            if (!plan_.selects_experts(shard, tier)) continue;
            least_cells_ = std::max(least_cells_, plan_.shards()[shard].experts);
            most_tokens = std::max(most_tokens, plan_.tiers()[tier].new_tokens);
        }
        if (plan_.shards()[shard].experts == 0) continue;
        std::size_t bytes = 0;
        for (const Weight* weight : store_.shard(shard).weights) {
            require_experts(*weight);
            bytes += round_up(weight->host->nb[2], alignment);
            // Kernels count strides in blocks of the weight's type.
            step = std::lcm(step, ggml_type_size(weight->host->type));
        }
        cell_bytes_ = std::max(cell_bytes_, bytes);
    }
    cell_bytes_ = round_up(cell_bytes_, step);
    ids_bytes_ = static_cast<std::size_t>(most_tokens) * least_cells_ * sizeof(std::int32_t);
}

void ExpertCache::require_experts(const Weight& weight) const {
    const PlannedShard& shard = plan_.shards()[weight.shard];
    if (weight.host->ne[2] == static_cast<std::int64_t>(shard.experts)) return;
    throw Error("shard '" + shard.name + "' is planned to have " + std::to_string(shard.experts) +
                " experts, and its tensor '" + ggml_get_name(weight.host) + "' has " +
                std::to_string(weight.host->ne[2]));
}

std::size_t ExpertCache::bytes(std::size_t cells) const {
    // One cell more: kernels may read past the last row of the last expert.
    return cells == 0 ? 0 : (cells + 1) * cell_bytes_ + ids_bytes_;
}

bool ExpertCache::open(std::size_t cells) {
    if (cells == cells_) return true;
    stream_.drain();
    cells_ = 0;
    targets_.clear();
    memory_.reset();
    if (cells == 0) return true;
    memory_ = DeviceMemory::allocate(type_, bytes(cells), ledger_, Use::expert_cache);
    if (!memory_) return false;
    ggml_backend_buffer_clear(memory_->buffer(), 0);
    cells_ = cells;
    scores_ = ExpertScores(plan_.shards().size(), least_cells_, cells);
    return true;
}

std::optional<ggml_tensor> ExpertCache::gather(std::size_t shard, const ggml_tensor* ids) {
    const std::vector<std::int32_t> selected = read(ids);
    if (selected.size() * sizeof(std::int32_t) > ids_bytes_)
        throw Error("a step of " + std::to_string(ids->ne[1]) + " tokens is above the plan's last tier");
    std::vector<std::size_t> distinct(selected.begin(), selected.end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const auto choices = scores_.choose(shard, distinct);
    if (!choices) return std::nullopt;

    stream_.drain();
    targets_.clear();
    for (const Weight* weight : store_.shard(shard).weights) {
        std::vector<Copy> copies;
        ggml_tensor& target = targets_.emplace(weight, cells_of(*weight)).first->second;
        const std::size_t expert_bytes = weight->host->nb[2];
        for (std::size_t i = 0; i < distinct.size(); ++i) {
            if (!(*choices)[i].is_new) continue;
            const auto* source = static_cast<const char*>(weight->host->data) + distinct[i] * expert_bytes;
            copies.push_back({&target, (*choices)[i].cell * cell_bytes_, source, expert_bytes});
        }
        if (copies.empty()) {
            targets_.erase(weight);
        } else {
            stream_.begin(slot_of(*weight), std::move(copies));
        }
    }
    for (const CellChoice& choice : *choices) ++(choice.is_new ? stats_.misses : stats_.hits);

    std::vector<std::int32_t> cells(selected.size());
    std::transform(selected.begin(), selected.end(), cells.begin(), [&](std::int32_t expert) {
        const auto found =
            std::lower_bound(distinct.begin(), distinct.end(), static_cast<std::size_t>(expert));
        return static_cast<std::int32_t>((*choices)[static_cast<std::size_t>(found - distinct.begin())].cell);
    });
    return write(ids, cells);
}

std::vector<std::int32_t> ExpertCache::read(const ggml_tensor* ids) const {
    std::vector<std::int32_t> raw(ggml_nbytes(ids) / sizeof(std::int32_t));
    ggml_backend_tensor_get(ids, raw.data(), 0, raw.size() * sizeof(std::int32_t));
    // A view of all experts by rank: its rows are longer than what it selects.
    std::vector<std::int32_t> selected;
    for (std::int64_t token = 0; token < ids->ne[1]; ++token) {
        const auto row = raw.begin() + token * static_cast<std::int64_t>(ids->nb[1] / sizeof(std::int32_t));
        selected.insert(selected.end(), row, row + ids->ne[0]);
    }
    return selected;
}

ggml_tensor ExpertCache::write(const ggml_tensor* ids, const std::vector<std::int32_t>& cells) {
    ggml_tensor tensor = bare(GGML_TYPE_I32, memory_->buffer(), (cells_ + 1) * cell_bytes_);
    std::copy(std::begin(ids->ne), std::end(ids->ne), std::begin(tensor.ne));
    tensor.nb[0] = sizeof(std::int32_t);
    for (int i = 1; i < GGML_MAX_DIMS; ++i)
        tensor.nb[i] = tensor.nb[i - 1] * static_cast<std::size_t>(tensor.ne[i - 1]);
    ggml_backend_tensor_set(&tensor, cells.data(), 0, cells.size() * sizeof(std::int32_t));
    return tensor;
}

std::size_t ExpertCache::slot_of(const Weight& weight) const {
    const auto& weights = store_.shard(weight.shard).weights;
    const auto place = std::find(weights.begin(), weights.end(), &weight) - weights.begin();
    return first_slot_ + static_cast<std::size_t>(place) % kSlots;
}

bool ExpertCache::is_coming(const Weight& weight) const {
    return targets_.count(&weight) > 0;
}

void ExpertCache::await(const Weight& weight, ggml_backend_t compute) {
    stream_.await(slot_of(weight), compute);
}

ggml_tensor ExpertCache::cells_of(const Weight& weight) const {
    const std::size_t alignment = ggml_backend_buft_get_alignment(type_);
    std::size_t offset = 0;
    for (const Weight* other : store_.shard(weight.shard).weights) {
        if (other == &weight) break;
        offset += round_up(other->host->nb[2], alignment);
    }
    ggml_tensor tensor = bare(weight.host->type, memory_->buffer(), offset);
    std::copy(std::begin(weight.host->ne), std::end(weight.host->ne), std::begin(tensor.ne));
    std::copy(std::begin(weight.host->nb), std::end(weight.host->nb), std::begin(tensor.nb));
    std::copy(std::begin(weight.host->name), std::end(weight.host->name), std::begin(tensor.name));
    tensor.ne[2] = static_cast<std::int64_t>(cells_);
    tensor.nb[2] = cell_bytes_;
    tensor.nb[3] = cell_bytes_ * cells_;
    return tensor;
}

}  // namespace xlm
