// What the process is told by its environment.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace xlm {

// XLM_EMULATED="memory_bytes=...,link_bytes_per_s=...,link_latency_s=..."
struct EmulatedSettings {
    std::size_t memory_bytes = 0;
    double link_bytes_per_s = 0;
    double link_latency_s = 0;

    // Throws Error for unknown keys and values that are not above zero.
    static EmulatedSettings parse(const std::string& text);
};

struct Settings {
    std::optional<std::string> plan_path;       // XLM_PLAN
    std::string inner_device;                   // XLM_DEVICE
    std::optional<std::string> socket_path;     // XLM_SOCKET
    std::optional<EmulatedSettings> emulated;   // XLM_EMULATED
    std::optional<std::string> corrupt_tensor;  // XLM_TEST_CORRUPT
    bool ends_with_stdin = false;               // XLM_END_WITH_STDIN

    static Settings from_environment();
};

}  // namespace xlm
