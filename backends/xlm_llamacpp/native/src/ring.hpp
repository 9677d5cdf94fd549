// The ring of equal slots that streamed shards pass through.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "copy_stream.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "weights.hpp"

namespace xlm {

struct RingStats {
    std::size_t hits = 0;    // shards that were on their way when they were needed
    std::size_t misses = 0;  // shards whose copy began only then
};

class Ring {
  public:
    // Slots [0, slots) of the copy stream are this ring's.
    Ring(const WeightStore& store, ggml_backend_buffer_type_t type, Ledger& ledger, CopyStream& stream,
         std::size_t slots)
        : store_(store), type_(type), ledger_(ledger), stream_(stream), slots_(slots) {}

    // Makes every slot slot_bytes large (0: frees the ring). False, with the ring freed, when the budget or
    // the device has no room.
    bool open(std::size_t slot_bytes);
    bool holds(std::size_t bytes) const { return slot_bytes_ > 0 && bytes <= slot_bytes_; }

    // The slot that holds the shard, or else `slot`.
    std::size_t place(std::size_t shard, std::size_t slot) const { return slot_of(shard).value_or(slot); }

    // Starts to fill `slot` with `shard`, unless it holds it already or a user still needs the slot.
    void prefetch(std::size_t shard, std::size_t slot);

    // Makes `shard` readable for work launched on `compute` from now on. Overwrites what `slot` held; the
    // shard that held it must have been released.
    const ShardCopy& acquire(std::size_t shard, std::size_t slot, ggml_backend_t compute);

    // All work that reads `shard` has been launched; its slot may be overwritten.
    void release(std::size_t shard, ggml_backend_t compute);

    std::size_t slots() const { return slots_; }
    const RingStats& stats() const { return stats_; }

  private:
    struct Slot {
        std::optional<std::size_t> shard;
        bool in_use = false;
    };

    std::optional<std::size_t> slot_of(std::size_t shard) const;
    ShardCopy& copy(std::size_t shard, std::size_t slot);
    void begin(std::size_t shard, std::size_t slot);
    void close();

    const WeightStore& store_;
    ggml_backend_buffer_type_t type_;
    Ledger& ledger_;
    CopyStream& stream_;
    std::size_t slots_;
    std::size_t slot_bytes_ = 0;
    std::vector<DeviceMemory> memory_;
    std::vector<Slot> state_;
    // By slot and shard. Kept, so that a shard has the same addresses each time it comes to a slot.
    std::vector<std::unordered_map<std::size_t, ShardCopy>> copies_;
    RingStats stats_;
};

}  // namespace xlm
