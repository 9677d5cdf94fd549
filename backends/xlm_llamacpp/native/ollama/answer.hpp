// What the planner says about one start.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace xlm {

struct Answer {
    // Why the start stays stock; "" where it does not.
    std::string stock;
    // Without the program's name.
    std::vector<std::string> arguments;
    Variables environment;

    // Throws Error for what is none.
    static Answer parse(const std::string& text);
};

}  // namespace xlm
