#include "ring.hpp"

#include <algorithm>

namespace xlm {

bool Ring::open(std::size_t slot_bytes) {
    if (slot_bytes == slot_bytes_) return true;
    close();
    if (slot_bytes == 0) return true;
    while (memory_.size() < slots_) {
        auto memory = DeviceMemory::allocate(type_, slot_bytes, ledger_, Use::staging);
        if (!memory) {
            close();
            return false;
        }
        memory_.push_back(std::move(*memory));
    }
    slot_bytes_ = slot_bytes;
    state_.assign(slots_, {});
    copies_.resize(slots_);
    return true;
}

void Ring::close() {
    stream_.drain();
    slot_bytes_ = 0;
    copies_.clear();
    state_.clear();
    memory_.clear();
}

void Ring::prefetch(std::size_t shard, std::size_t slot) {
    if (state_[slot].in_use || slot_of(shard)) return;
    begin(shard, slot);
}

const ShardCopy& Ring::acquire(std::size_t shard, std::size_t slot, ggml_backend_t compute) {
    if (state_[slot].shard == shard) {
        ++stats_.hits;
    } else {
        begin(shard, slot);
        ++stats_.misses;
    }
    state_[slot].in_use = true;
    stream_.await(slot, compute);
    return copy(shard, slot);
}

void Ring::release(std::size_t shard, ggml_backend_t compute) {
    const auto slot = slot_of(shard);
    if (!slot) return;
    stream_.mark_used(*slot, compute);
    state_[*slot].in_use = false;
}

std::optional<std::size_t> Ring::slot_of(std::size_t shard) const {
    const auto found =
        std::find_if(state_.begin(), state_.end(), [shard](const Slot& slot) { return slot.shard == shard; });
    if (found == state_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - state_.begin());
}

ShardCopy& Ring::copy(std::size_t shard, std::size_t slot) {
    return copies_[slot].try_emplace(shard, store_.shard(shard), memory_[slot].buffer()).first->second;
}

void Ring::begin(std::size_t shard, std::size_t slot) {
    state_[slot].shard = shard;
    stream_.begin(slot, copy(shard, slot).copies());
}

}  // namespace xlm
