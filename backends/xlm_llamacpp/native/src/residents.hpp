// The shards that lie in device memory as long as the budget allows.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "copy_stream.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "weights.hpp"

namespace xlm {

class Residents {
  public:
    // first_slot: where this set's places begin among the copy stream's slots (one for each shard).
    Residents(const Plan& plan, const WeightStore& store, ggml_backend_buffer_type_t type, Ledger& ledger,
              CopyStream& stream, std::size_t first_slot)
        : plan_(plan),
          store_(store),
          type_(type),
          ledger_(ledger),
          stream_(stream),
          first_slot_(first_slot),
          copies_(plan.shards().size()) {}

    // The device's copy of a shard, or null when it is not resident.
    const ShardCopy* find(std::size_t shard) const;

    // Uploads pinned shards that are missing, in plan order, at most about max_bytes (0: nothing); returns
    // when they can be used.
    void fill(std::size_t max_bytes);

    // Frees the last resident shard of the plan; false when there is none.
    bool drop_last();
    void drop_all();

    std::size_t count() const;
    // Pinned by the plan but not here.
    std::size_t missing() const;
    std::size_t missing_bytes() const;

  private:
    struct Resident {
        DeviceMemory memory;
        ShardCopy copy;
    };

    bool wanted(std::size_t shard) const;
    bool load(std::size_t shard);

    const Plan& plan_;
    const WeightStore& store_;
    ggml_backend_buffer_type_t type_;
    Ledger& ledger_;
    CopyStream& stream_;
    std::size_t first_slot_;
    std::vector<std::unique_ptr<Resident>> copies_;
};

}  // namespace xlm
