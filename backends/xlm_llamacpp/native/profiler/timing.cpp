#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace xlm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewest = 3;
constexpr std::size_t kTrusted = 7;
constexpr std::size_t kMost = 101;
constexpr double kTight = 0.02;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double quantile(const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

Outcome time_runs(const std::function<void()>& once, double limit_s, int repeats) {
    once();
    std::vector<double> runs;
    Outcome outcome;
    const Clock::time_point begin = Clock::now();
    while (runs.size() < kMost) {
        const Clock::time_point start = Clock::now();
        once();
        const double seconds = seconds_since(start) / repeats;
        runs.insert(std::upper_bound(runs.begin(), runs.end(), seconds), seconds);
        outcome.seconds = quantile(runs, 0.5);
        outcome.spread_seconds = (quantile(runs, 0.75) - quantile(runs, 0.25)) / 2;
        if (runs.size() >= kFewest && seconds_since(begin) > limit_s) break;
        if (runs.size() >= kTrusted && outcome.spread_seconds < kTight * outcome.seconds) break;
    }
    outcome.rounds = static_cast<int>(runs.size());
    return outcome;
}

}  // namespace xlm
