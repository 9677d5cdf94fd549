#include "sizes.hpp"

#include <cstdio>

namespace xlm {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

}  // namespace

std::string mib(std::size_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / static_cast<double>(kMib));
    return text;
}

std::string enough_mib(std::size_t bytes) {
    const std::size_t rest = bytes % kMib;
    const std::size_t hundredths = (100 * rest + kMib - 1) / kMib;
    char text[32];
    std::snprintf(text, sizeof text, "%zu.%02zuMiB", bytes / kMib + hundredths / 100, hundredths % 100);
    return text;
}

}  // namespace xlm
