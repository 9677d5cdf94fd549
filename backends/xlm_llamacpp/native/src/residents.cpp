#include "residents.hpp"

#include <algorithm>

namespace xlm {

const ShardCopy* Residents::find(std::size_t shard) const {
    return copies_[shard] ? &copies_[shard]->copy : nullptr;
}

bool Residents::load(std::size_t shard) {
    auto memory = DeviceMemory::allocate(type_, store_.shard(shard).bytes, ledger_, Use::resident);
    if (!memory) return false;
    ShardCopy copy(store_.shard(shard), memory->buffer());
    copies_[shard] = std::make_unique<Resident>(Resident{std::move(*memory), std::move(copy)});
    stream_.begin(first_slot_ + shard, copies_[shard]->copy.copies());
    return true;
}

std::size_t Residents::count() const {
    return static_cast<std::size_t>(
        std::count_if(copies_.begin(), copies_.end(), [](const auto& copy) { return copy != nullptr; }));
}

}  // namespace xlm
