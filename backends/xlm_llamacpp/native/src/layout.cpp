#include "layout.hpp"

#include <algorithm>

namespace xlm {
namespace {

class Draft {
  public:
    Draft(const std::vector<ShardNeeds>& shards, std::size_t slots) : shards_(shards), slots_(slots) {
        layout_.slot_bytes = 0;
        for (const ShardNeeds& shard : shards) {
            layout_.resident.push_back(shard.pinned);
            if (shard.pinned) resident_bytes_ += shard.bytes;
            if (shard.streamed) layout_.slot_bytes = std::max(layout_.slot_bytes, shard.bytes);
        }
    }

    std::size_t bytes() const { return resident_bytes_ + slots_ * layout_.slot_bytes; }
    const Layout& layout() const { return layout_; }

    bool drop_one() {
        const auto victim = choose_victim();
        if (!victim) return false;
        layout_.resident[*victim] = false;
        resident_bytes_ -= shards_[*victim].bytes;
        layout_.slot_bytes = std::max(layout_.slot_bytes, shards_[*victim].bytes);
        return true;
    }

  private:
    std::optional<std::size_t> choose_victim() const {
        std::optional<std::size_t> smallest;
        for (std::size_t shard = shards_.size(); shard-- > 0;) {
            if (!layout_.resident[shard]) continue;
            if (shards_[shard].bytes <= layout_.slot_bytes) return shard;
            if (!smallest || shards_[shard].bytes < shards_[*smallest].bytes) smallest = shard;
        }
        return smallest;
    }

    const std::vector<ShardNeeds>& shards_;
    std::size_t slots_;
    Layout layout_;
    std::size_t resident_bytes_ = 0;
};

}  // namespace

std::optional<Layout> choose_layout(const std::vector<ShardNeeds>& shards, std::size_t slots,
                                    std::size_t room_bytes) {
    Draft draft(shards, slots);
    while (draft.bytes() > room_bytes) {
        if (!draft.drop_one()) return std::nullopt;
    }
    return draft.layout();
}

std::size_t least_room(const std::vector<ShardNeeds>& shards, std::size_t slots) {
    Draft draft(shards, slots);
    std::size_t least = draft.bytes();
    while (draft.drop_one()) least = std::min(least, draft.bytes());
    return least;
}

}  // namespace xlm
