#include "link.hpp"

#include <algorithm>
#include <thread>

namespace xlm {

LinkClock::Clock::time_point LinkClock::schedule(std::size_t bytes, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> seconds(latency_s_ + static_cast<double>(bytes) / bytes_per_s_);
    const bool follows_at_once = now - free_at_ <= 2 * overslept_;
    const Clock::time_point start = follows_at_once ? free_at_ : std::max(now, free_at_);
    free_at_ = start + std::chrono::duration_cast<Clock::duration>(seconds);
    overslept_ = {};
    return free_at_;
}

void LinkClock::transfer(std::size_t bytes) {
    const Clock::time_point end = schedule(bytes, Clock::now());
    std::this_thread::sleep_until(end);
    const std::lock_guard lock(mutex_);
    overslept_ = std::max(Clock::now() - end, Clock::duration::zero());
}

}  // namespace xlm
