// This process's own command line, read and rewritten.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xlm {

// With the program's name first, like argv.
using Arguments = std::vector<std::string>;

// Throws Error where the system does not tell.
Arguments own_arguments();

std::vector<std::string> values_of(const Arguments& arguments, const std::string& option);
// The last one, which counts.
std::optional<std::string> value_of(const Arguments& arguments, const std::string& option);

// Without the option wherever it stands before just this value.
Arguments without(const Arguments& arguments, const std::string& option, const std::string& value);

}  // namespace xlm
