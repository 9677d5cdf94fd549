#include "link.hpp"

#include <algorithm>
#include <thread>

namespace xlm {
namespace {

constexpr std::chrono::microseconds kAtOnce{100};

}  // namespace

LinkClock::Clock::time_point LinkClock::book(std::size_t bytes, Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> seconds(latency_s_ + static_cast<double>(bytes) / bytes_per_s_);
    const bool follows_at_once = now - woke_at_ <= kAtOnce;
    const Clock::time_point start = follows_at_once ? free_at_ : std::max(now, free_at_);
    free_at_ = start + std::chrono::duration_cast<Clock::duration>(seconds);
    return free_at_;
}

void LinkClock::wait_until(Clock::time_point end) {
    std::this_thread::sleep_until(end);
    const std::lock_guard lock(mutex_);
    woke_at_ = Clock::now();
}

}  // namespace xlm
