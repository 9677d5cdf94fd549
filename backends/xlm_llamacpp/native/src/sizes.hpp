// Sizes as sentences have them.
#pragma once

#include <cstddef>
#include <string>

namespace xlm {

// "61.25 MiB", to the nearest hundredth.
std::string mib(std::size_t bytes);

// "61.25MiB", at least `bytes`: what a user may paste as a budget.
std::string enough_mib(std::size_t bytes);

}  // namespace xlm
