// Routed experts in device memory: the selected ones are copied there, and those selected often stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "copy_stream.hpp"
#include "expert_scores.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace xlm {

struct ExpertStats {
    std::size_t hits = 0;
    std::size_t misses = 0;
};

// Cells are equal, and any expert of any layer fits one. A node that selects among E experts is given a
// tensor of all cells instead, and ids that name cells.
class ExpertCache {
  public:
    // Slots from first_slot on of the copy stream are this cache's: kSlots of them. Throws Error for a shard
    // with other tensors than those of the planned number of experts.
    ExpertCache(const Plan& plan, const WeightStore& store, ggml_backend_buffer_type_t type, Ledger& ledger,
                CopyStream& stream, std::size_t first_slot);

    static constexpr std::size_t kSlots = 8;

    // Takes memory for `cells` experts (0: frees it). False, with the memory freed, when there is no room.
    bool open(std::size_t cells);
    bool is_open() const { return cells_ > 0; }

    // Cells with which any step of a tier that selects experts can run; 0 when no tier does.
    std::size_t least_cells() const { return least_cells_; }
    std::size_t bytes(std::size_t cells) const;

    // Begins to copy what `ids` selects of a shard and is not here. `ids` lies on the device, which computes
    // nothing now. Returns ids of cells, on the device, valid until the next call; nothing when the step
    // selects more experts than there are cells.
    std::optional<ggml_tensor> gather(std::size_t shard, const ggml_tensor* ids);

    // Whether the last gather copies parts of this weight, so that its readers must await it.
    bool is_coming(const Weight& weight) const;
    void await(const Weight& weight, ggml_backend_t compute);

    // All cells, seen as the weight's experts.
    ggml_tensor cells_of(const Weight& weight) const;

    const ExpertStats& stats() const { return stats_; }

  private:
    std::vector<std::int32_t> read(const ggml_tensor* ids) const;
    ggml_tensor write(const ggml_tensor* ids, const std::vector<std::int32_t>& cells);
    std::size_t slot_of(const Weight& weight) const;
    void measure();
    void require_experts(const Weight& weight) const;

    const Plan& plan_;
    const WeightStore& store_;
    ggml_backend_buffer_type_t type_;
    Ledger& ledger_;
    CopyStream& stream_;
    std::size_t first_slot_;

    std::size_t least_cells_ = 0;
    std::size_t cell_bytes_ = 0;
    std::size_t ids_bytes_ = 0;
    std::size_t cells_ = 0;
    std::optional<DeviceMemory> memory_;
    ExpertScores scores_;
    // What the copy stream writes to, by weight, until the next gather.
    std::unordered_map<const Weight*, ggml_tensor> targets_;
    ExpertStats stats_;
};

}  // namespace xlm
