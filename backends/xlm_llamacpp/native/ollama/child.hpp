// A program that this process asks one question.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "program.hpp"

namespace xlm {

struct Question {
    std::vector<std::string> command;
    Variables environment;
    // Called with each line that the program writes to stderr.
    std::function<void(const std::string& line)> on_line;
    // Called after each `silence` without a line.
    std::function<void()> on_silence;
    std::chrono::milliseconds silence{30'000};
    std::chrono::milliseconds limit{240'000};
};

// What the program writes to stdout. It dies with this process, and holds none of its pipes. Throws Error
// when it cannot start, takes longer than the limit, or exits with other than 0.
std::string ask(const Question& question);

}  // namespace xlm
