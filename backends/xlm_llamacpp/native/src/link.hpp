// The clock of an emulated link: a transfer ends when a link of the stated speed would have ended it.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

namespace xlm {

class LinkClock {
  public:
    using Clock = std::chrono::steady_clock;

    LinkClock(double bytes_per_s, double latency_s) : bytes_per_s_(bytes_per_s), latency_s_(latency_s) {}

    // Books a transfer of `bytes` that is asked for at `now`; returns when it ends.
    Clock::time_point book(std::size_t bytes, Clock::time_point now);

    // Sleeps until `end`.
    void wait_until(Clock::time_point end);

  private:
    std::mutex mutex_;
    double bytes_per_s_;
    double latency_s_;
    Clock::time_point free_at_{};
    // When the last sleep woke up: a transfer that is asked for at once then starts where the last one
    // ended, so that the timer's jitter does not add up.
    Clock::time_point woke_at_{};
};

}  // namespace xlm
