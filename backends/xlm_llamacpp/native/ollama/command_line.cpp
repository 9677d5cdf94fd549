#include "command_line.hpp"

#include <fstream>

#include "errors.hpp"

namespace xlm {

Arguments own_arguments() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    if (!file) throw Error("this system does not tell a process its command line");
    Arguments arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    if (arguments.empty()) throw Error("this process has no command line");
    return arguments;
}

std::vector<std::string> values_of(const Arguments& arguments, const std::string& option) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
        if (arguments[i] == option) values.push_back(arguments[i + 1]);
    }
    return values;
}

std::optional<std::string> value_of(const Arguments& arguments, const std::string& option) {
    const auto values = values_of(arguments, option);
    if (values.empty()) return std::nullopt;
    return values.back();
}

Arguments without(const Arguments& arguments, const std::string& option, const std::string& value) {
    Arguments rest;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (i + 1 < arguments.size() && arguments[i] == option && arguments[i + 1] == value) {
            ++i;
        } else {
            rest.push_back(arguments[i]);
        }
    }
    return rest;
}

}  // namespace xlm
