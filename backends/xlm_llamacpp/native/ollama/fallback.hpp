// The way back to the stock engine, for an engine under a plan that crashes.
#pragma once

#include <memory>

#include "program.hpp"

namespace xlm {

// From now on a crash of this process starts `stock` in its place.
void catch_crashes(std::unique_ptr<const Invocation> stock);

}  // namespace xlm
