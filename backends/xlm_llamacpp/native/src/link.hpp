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

    // When a transfer of `bytes` that is asked for at `now` ends; later transfers queue behind it.
    Clock::time_point schedule(std::size_t bytes, Clock::time_point now);

    // Sleeps until a transfer of `bytes` that starts now has ended.
    void transfer(std::size_t bytes);

  private:
    std::mutex mutex_;
    double bytes_per_s_;
    double latency_s_;
    Clock::time_point free_at_{};
    // How late the last sleep woke up: a transfer that follows at once starts where the last one ended, so
    // that the timer's jitter does not add up.
    Clock::duration overslept_{};
};

}  // namespace xlm
