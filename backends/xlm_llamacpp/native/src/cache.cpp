#include "cache.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"

namespace xlm {
namespace {

// One slot is filled while the other is read.
constexpr std::size_t kLeastSlots = 2;

std::size_t slots_of(const Plan& plan) {
    return std::max(plan.slots(), kLeastSlots);
}

[[noreturn]] void throw_no_room() {
    throw Error("the budget has no room for the slots of the largest shard");
}

}  // namespace

Cache::Cache(const Plan& plan, const WeightStore& store, ggml_backend_dev_t inner,
             ggml_backend_buffer_type_t host_type, Ledger& ledger)
    : plan_(plan),
      store_(store),
      ledger_(ledger),
      stream_(make_copy_stream(inner, slots_of(plan) + plan.shards().size() + ExpertCache::kSlots)),
      residents_(plan.shards().size(), store, ggml_backend_dev_buffer_type(inner), ledger, *stream_,
                 slots_of(plan)),
      ring_(store, ggml_backend_dev_buffer_type(inner), ledger, *stream_, slots_of(plan)),
      experts_(plan, store, ggml_backend_dev_buffer_type(inner), ledger, *stream_,
               slots_of(plan) + plan.shards().size()),
      executor_(plan, host_type, store, residents_, ring_, experts_) {}

bool Cache::settle(std::size_t max_bytes) {
    const Layout layout = choose(room(0));
    drop_all_but(layout.resident);
    if (!experts_.open(cells_)) {
        // Slots of an earlier layout may stand in the way.
        ring_.open(0);
        if (!experts_.open(cells_)) throw_no_room();
    }

    // The largest first: while a shard is missing, the slots must hold it.
    std::vector<std::size_t> missing;
    std::size_t missing_bytes = 0;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        if (!layout.resident[shard] || residents_.find(shard) != nullptr) continue;
        missing.push_back(shard);
        missing_bytes += store_.shard(shard).bytes;
    }
    std::stable_sort(missing.begin(), missing.end(), [this](std::size_t a, std::size_t b) {
        return store_.shard(a).bytes < store_.shard(b).bytes;
    });
    const auto slot_bytes = [&] {
        return std::max(layout.slot_bytes, missing.empty() ? 0 : store_.shard(missing.back()).bytes);
    };
    const auto load_next = [&] {
        if (!residents_.load(missing.back())) return false;
        missing.pop_back();
        return true;
    };

    if (missing_bytes <= max_bytes) {
        if (!ring_.open(layout.slot_bytes)) throw_no_room();
        while (!missing.empty() && load_next()) {
        }
    } else {
        while (!ring_.open(slot_bytes())) {
            if (missing.empty() || !load_next()) throw_no_room();
        }
        for (std::size_t loaded = 0; !missing.empty() && loaded < max_bytes;) {
            loaded += store_.shard(missing.back()).bytes;
            if (!load_next()) break;
        }
    }
    stream_->drain();
    while (!ring_.open(slot_bytes())) {
        if (missing.empty() || !load_next()) throw_no_room();
        stream_->drain();
    }
    return missing.empty();
}

Layout Cache::choose(std::size_t room_bytes) {
    for (const std::size_t cells :
         {std::max(plan_.cached_experts(), experts_.least_cells()), experts_.least_cells()}) {
        cells_ = experts_.least_cells() == 0 ? 0 : cells;
        const std::size_t bytes = experts_.bytes(cells_);
        if (bytes > room_bytes) continue;
        if (const auto layout = choose_layout(needs(), ring_.slots(), room_bytes - bytes)) return *layout;
    }
    throw_no_room();
}

void Cache::make_room(std::size_t bytes) {
    const std::size_t room_bytes = room(bytes + ledger_.bytes(Use::expert_cache));
    if (const auto layout = choose_layout(needs(), ring_.slots(), room_bytes)) drop_all_but(layout->resident);
}

void Cache::drop_all() {
    drop_all_but(std::vector<bool>(plan_.shards().size(), false));
    ring_.open(0);
    experts_.open(0);
}

std::size_t Cache::least_bytes() const {
    return least_room(needs(), ring_.slots()) + experts_.bytes(experts_.least_cells());
}

void Cache::drop_all_but(const std::vector<bool>& resident) {
    for (std::size_t shard = 0; shard < resident.size(); ++shard) {
        if (!resident[shard]) residents_.drop(shard);
    }
}

std::vector<ShardNeeds> Cache::needs() const {
    std::vector<ShardNeeds> needs;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        const std::size_t bytes = store_.shard(shard).bytes;
        const bool lingers = !lingering_.empty() && lingering_[shard];
        needs.push_back({bytes, bytes > 0 && plan_.pinned_somewhere(shard),
                         plan_.streamed_somewhere(shard) || (lingers && !plan_.pinned_somewhere(shard))});
    }
    return needs;
}

std::size_t Cache::pinned_bytes() const {
    std::size_t bytes = 0;
    for (const ShardNeeds& shard : needs()) bytes += shard.pinned ? shard.bytes : 0;
    return bytes;
}

std::size_t Cache::missing() const {
    std::size_t pinned = 0;
    for (const ShardNeeds& shard : needs()) pinned += shard.pinned;
    return pinned - residents_.count();
}

std::size_t Cache::room(std::size_t bytes) const {
    const std::size_t others = ledger_.bytes(Use::weights) + ledger_.bytes(Use::kv_and_compute) + bytes;
    const std::size_t budget = ledger_.budget_bytes();
    return budget > others ? budget - others : 0;
}

}  // namespace xlm
