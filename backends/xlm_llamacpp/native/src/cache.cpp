#include "cache.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"

namespace xlm {
namespace {

constexpr std::size_t kLeastSlots = 2;  // one is filled while the other is read
constexpr const char* kNoRoom = "the budget has no room for the slots of the largest shard";

}  // namespace

Cache::Cache(const Plan& plan, const WeightStore& store, ggml_backend_dev_t inner,
             ggml_backend_buffer_type_t host_type, Ledger& ledger)
    : plan_(plan),
      store_(store),
      ledger_(ledger),
      slots_(std::max(plan.slots(), kLeastSlots)),
      stream_(make_copy_stream(inner, slots_ + plan.shards().size())),
      residents_(plan, store, ggml_backend_dev_buffer_type(inner), ledger, *stream_, slots_),
      ring_(store, ggml_backend_dev_buffer_type(inner), ledger, *stream_, slots_),
      executor_(plan, host_type, store, residents_, ring_) {}

bool Cache::settle(std::size_t max_bytes) {
    while (ledger_.missing_bytes(0) > 0 && residents_.drop_last()) {
    }
    const bool at_once = max_bytes >= residents_.missing_bytes();
    // What will be resident in a moment needs no room in the ring.
    if (!open_ring(largest(!at_once))) throw Error(kNoRoom);
    const std::size_t missing_before = residents_.missing();
    residents_.fill(max_bytes);
    while (!open_ring(largest(true))) {
        if (!residents_.drop_last()) throw Error(kNoRoom);
    }
    return residents_.missing() == 0 || residents_.missing() >= missing_before;
}

void Cache::drop_all() {
    residents_.drop_all();
    ring_.close();
}

std::size_t Cache::least_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        if (!plan_.on_cpu_everywhere(shard)) bytes = std::max(bytes, store_.shard(shard).bytes);
    }
    return slots_ * bytes;
}

std::size_t Cache::largest(bool with_missing) const {
    std::size_t bytes = 0;
    for (std::size_t shard = 0; shard < plan_.shards().size(); ++shard) {
        const bool missing =
            with_missing && plan_.pinned_somewhere(shard) && residents_.find(shard) == nullptr;
        if (plan_.streamed_somewhere(shard) || missing) bytes = std::max(bytes, store_.shard(shard).bytes);
    }
    return bytes;
}

bool Cache::open_ring(std::size_t slot_bytes) {
    return slot_bytes == 0 || ring_.open(slot_bytes);
}

}  // namespace xlm
