// Timing something often enough to trust its median.
#pragma once

#include <functional>

#include "measure_request.hpp"

namespace xlm {

// Runs `once` to warm up, then until its spread is small or `limit_s` is over, three times at least.
// Each run does `repeats` of what is measured; the outcome is of one.
Outcome time_runs(const std::function<void()>& once, double limit_s, int repeats = 1);

}  // namespace xlm
