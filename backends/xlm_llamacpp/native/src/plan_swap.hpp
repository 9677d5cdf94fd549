// When one plan may take another's place while the engine runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan.hpp"

namespace xlm {

// Throws Error with the reason why `next` cannot take the place of `now`. `holds` says whether a tensor lies
// in host weight memory; all others were loaded for the CPU alone.
void require_swappable(const Plan& now, const Plan& next,
                       const std::function<bool(const std::string& tensor)>& holds);

// Shards of `next` that it runs on the CPU in some step in which `now` does not, or which linger under `now`
// already (by its shards; empty: none do). Until the engine divides its graph anew, such steps still come to
// the device.
std::vector<bool> lingering_shards(const Plan& now, const Plan& next, const std::vector<bool>& already);

}  // namespace xlm
