// What is fed with faulty inputs, and what must hold for each of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace xlm {

struct Target {
    const char* name;
    // Aborts the program, or is caught by a sanitizer, where the input breaks something.
    void (*run)(const std::string& input);
    std::vector<std::string> good;
};

const std::vector<Target>& targets();

// Runs the target on its good inputs and on `count` faulty ones, and returns how many were refused.
std::size_t fuzz(const Target& target, unsigned seed, std::size_t count);

}  // namespace xlm
