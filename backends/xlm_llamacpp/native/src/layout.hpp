// Which pinned shards are resident, and how large the ring's slots are, in a given room.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace xlm {

struct ShardNeeds {
    std::size_t bytes;
    bool pinned;    // resident where there is room
    bool streamed;  // passes through the ring in some tier, resident or not
};

struct Layout {
    std::vector<bool> resident;  // by shard index
    std::size_t slot_bytes;      // 0: no ring
};

// Keeps as many pinned shards as fit beside the ring. What must go: first the last shard of the plan that
// the slots hold anyway, then the smallest, so that slots grow as little as they can. Nothing when even an
// all-streaming layout does not fit.
std::optional<Layout> choose_layout(const std::vector<ShardNeeds>& shards, std::size_t slots,
                                    std::size_t room_bytes);

// The smallest room for which there is a layout.
std::size_t least_room(const std::vector<ShardNeeds>& shards, std::size_t slots);

}  // namespace xlm
