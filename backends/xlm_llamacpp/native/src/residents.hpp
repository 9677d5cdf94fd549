// The shards that lie in device memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "copy_stream.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "weights.hpp"

namespace xlm {

class Residents {
  public:
    // first_slot: where this set's places begin among the copy stream's slots (one for each shard).
    Residents(std::size_t shards, const WeightStore& store, ggml_backend_buffer_type_t type, Ledger& ledger,
              CopyStream& stream, std::size_t first_slot)
        : store_(store),
          type_(type),
          ledger_(ledger),
          stream_(stream),
          first_slot_(first_slot),
          copies_(shards) {}

    // The device's copy of a shard, or null when it is not resident.
    const ShardCopy* find(std::size_t shard) const;

    // Begins to upload a shard; it may be used once the copy stream has drained. False when the budget or
    // the device has no room.
    bool load(std::size_t shard);
    void drop(std::size_t shard) { copies_[shard].reset(); }

    std::size_t count() const;

  private:
    struct Resident {
        DeviceMemory memory;
        ShardCopy copy;
    };

    const WeightStore& store_;
    ggml_backend_buffer_type_t type_;
    Ledger& ledger_;
    CopyStream& stream_;
    std::size_t first_slot_;
    std::vector<std::unique_ptr<Resident>> copies_;
};

}  // namespace xlm
