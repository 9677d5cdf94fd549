// What the control protocol's commands do.
#pragma once

#include <string>

#include "device.hpp"

namespace xlm {

// Answers one request line. Never throws; faults come back as {"ok": false, "error": "..."}.
std::string answer(Device& device, const std::string& line);

}  // namespace xlm
