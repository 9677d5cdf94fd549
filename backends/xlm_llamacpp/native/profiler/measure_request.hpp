// One line of JSON in, one out: what to measure, and what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xlm {

struct MeasureRequest {
    std::string op;
    std::string type;
    std::vector<std::int64_t> shape;
    std::int64_t new_tokens = 1;
    int threads = 1;
    bool on_device = false;
    bool beside_copy = false;  // while a copy to the device runs
    double limit_s = 0.25;     // of measuring, warm-up not counted

    // Throws Error for a line that is no request.
    static MeasureRequest parse(const std::string& line);

    // Throws Error unless the shape has that many extents, all above zero.
    void check_shape(std::size_t extents) const;
};

struct Outcome {
    double seconds = 0;         // median
    double spread_seconds = 0;  // half the interquartile range
    int rounds = 0;

    std::string to_json() const;
};

std::string error_json(const std::string& sentence);

}  // namespace xlm
