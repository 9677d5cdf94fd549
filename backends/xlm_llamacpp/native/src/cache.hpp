// VRAM as a cache of host weights: residents and ring, kept within the budget.
#pragma once

#include <cstddef>
#include <memory>

#include "copy_stream.hpp"
#include "executor.hpp"
#include "ledger.hpp"
#include "residents.hpp"
#include "ring.hpp"

namespace xlm {

// Not thread-safe: the owner serialises calls, and calls the ones that free memory only while the device
// computes nothing.
class Cache {
  public:
    Cache(const Plan& plan, const WeightStore& store, ggml_backend_dev_t inner,
          ggml_backend_buffer_type_t host_type, Ledger& ledger);

    // Brings residents and ring to what budget and plan allow, uploading at most about max_bytes. Returns
    // true when nothing is left to do. Throws Error when even the ring does not fit.
    bool settle(std::size_t max_bytes);

    // Frees the last resident shard; false when there is none.
    bool drop_last() { return residents_.drop_last(); }
    // Frees everything; the host keeps the clean copy.
    void drop_all();

    // Device bytes without which no step can run: a ring that the largest shard fits, and no residents.
    std::size_t least_bytes() const;

    Executor& executor() { return executor_; }
    const Residents& residents() const { return residents_; }
    const Ring& ring() const { return ring_; }
    CopyStats copy_stats() const { return stream_->stats(); }

  private:
    std::size_t largest(bool with_missing) const;
    bool open_ring(std::size_t slot_bytes);

    const Plan& plan_;
    const WeightStore& store_;
    Ledger& ledger_;
    std::size_t slots_;
    std::unique_ptr<CopyStream> stream_;
    Residents residents_;
    Ring ring_;
    Executor executor_;
};

}  // namespace xlm
