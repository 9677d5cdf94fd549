// VRAM as a cache of host weights: residents and ring, kept within the budget.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "copy_stream.hpp"
#include "executor.hpp"
#include "expert_cache.hpp"
#include "layout.hpp"
#include "ledger.hpp"
#include "residents.hpp"
#include "ring.hpp"

namespace xlm {

// Not thread-safe: the owner serialises calls, and makes those that free memory only while the device
// computes nothing.
class Cache {
  public:
    Cache(const Plan& plan, const WeightStore& store, ggml_backend_dev_t inner,
          ggml_backend_buffer_type_t host_type, Ledger& ledger);
    // Ends copies to memory that goes with it.
    ~Cache() { stream_->drain(); }
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    // Brings residents and ring to what plan and budget allow, uploading at most about max_bytes beyond
    // what no step can do without. Returns true when nothing is left to do. Throws Error when not even the
    // ring fits.
    bool settle(std::size_t max_bytes);

    // Frees residents, as far as they go, until the ledger has room for `bytes` more.
    void make_room(std::size_t bytes);

    // Shards that may come to the device although the plan runs them on the CPU: slots must hold them.
    void expect(std::vector<bool> lingering) { lingering_ = std::move(lingering); }
    const std::vector<bool>& lingering() const { return lingering_; }

    // Frees everything; the host keeps the clean copy.
    void drop_all();

    // Device bytes of our own without which no step can run.
    std::size_t least_bytes() const;
    // Bytes of the shards that the plan pins.
    std::size_t pinned_bytes() const;
    // Shards that the plan pins and that are not resident.
    std::size_t missing() const;

    Executor& executor() { return executor_; }
    const Residents& residents() const { return residents_; }
    const Ring& ring() const { return ring_; }
    const ExpertCache& experts() const { return experts_; }
    CopyStats copy_stats() const { return stream_->stats(); }

  private:
    std::vector<ShardNeeds> needs() const;
    // What the budget leaves for residents and ring, now and after `bytes` more for the engine.
    std::size_t room(std::size_t bytes) const;
    // Opens the expert cache as large as the plan says, or as small as it works.
    Layout choose(std::size_t room_bytes);
    void drop_all_but(const std::vector<bool>& resident);

    const Plan& plan_;
    const WeightStore& store_;
    Ledger& ledger_;
    std::unique_ptr<CopyStream> stream_;
    Residents residents_;
    Ring ring_;
    ExpertCache experts_;
    std::size_t cells_ = 0;
    std::vector<bool> lingering_;
    Executor executor_;
};

}  // namespace xlm
