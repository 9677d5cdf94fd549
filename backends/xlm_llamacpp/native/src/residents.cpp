#include "residents.hpp"

#include <algorithm>

namespace xlm {

const ShardCopy* Residents::find(std::size_t shard) const {
    return copies_[shard] ? &copies_[shard]->copy : nullptr;
}

void Residents::fill(std::size_t max_bytes) {
    std::size_t loaded_bytes = 0;
    for (std::size_t shard = 0; shard < copies_.size() && loaded_bytes < max_bytes; ++shard) {
        if (copies_[shard] || !wanted(shard)) continue;
        if (!load(shard)) break;
        loaded_bytes += store_.shard(shard).bytes;
    }
    if (loaded_bytes > 0) stream_.drain();
}

bool Residents::load(std::size_t shard) {
    auto memory = DeviceMemory::allocate(type_, store_.shard(shard).bytes, ledger_, Use::resident);
    if (!memory) return false;
    ShardCopy copy(store_.shard(shard), memory->buffer());
    copies_[shard] = std::make_unique<Resident>(Resident{std::move(*memory), std::move(copy)});
    stream_.begin(first_slot_ + shard, copies_[shard]->copy);
    return true;
}

bool Residents::drop_last() {
    const auto last =
        std::find_if(copies_.rbegin(), copies_.rend(), [](const auto& copy) { return copy != nullptr; });
    if (last == copies_.rend()) return false;
    last->reset();
    return true;
}

void Residents::drop_all() {
    for (auto& copy : copies_) copy.reset();
}

bool Residents::wanted(std::size_t shard) const {
    return plan_.pinned_somewhere(shard) && !store_.shard(shard).weights.empty();
}

std::size_t Residents::count() const {
    return static_cast<std::size_t>(
        std::count_if(copies_.begin(), copies_.end(), [](const auto& copy) { return copy != nullptr; }));
}

std::size_t Residents::missing() const {
    std::size_t shards = 0;
    for (std::size_t shard = 0; shard < copies_.size(); ++shard) shards += !copies_[shard] && wanted(shard);
    return shards;
}

std::size_t Residents::missing_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t shard = 0; shard < copies_.size(); ++shard) {
        if (!copies_[shard] && wanted(shard)) bytes += store_.shard(shard).bytes;
    }
    return bytes;
}

}  // namespace xlm
