#include "settings.hpp"

#include <cstdlib>
#include <sstream>

#include "errors.hpp"

namespace xlm {
namespace {

std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

double parse_number(const std::string& text, bool zero_allowed) {
    std::istringstream stream(text);
    double number = 0;
    if (!(stream >> number) || !stream.eof() || number < 0 || (number == 0 && !zero_allowed)) {
        throw Error("XLM_EMULATED has '" + text + "' where a number above zero is needed");
    }
    return number;
}

}  // namespace

EmulatedSettings EmulatedSettings::parse(const std::string& text) {
    EmulatedSettings settings;
    std::istringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) {
        const std::size_t equals = item.find('=');
        const std::string key = item.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
        if (key == "memory_bytes") {
            settings.memory_bytes = static_cast<std::size_t>(parse_number(value, false));
        } else if (key == "link_bytes_per_s") {
            settings.link_bytes_per_s = parse_number(value, false);
        } else if (key == "link_latency_s") {
            settings.link_latency_s = parse_number(value, true);
        } else {
            throw Error("XLM_EMULATED has an unknown key '" + key + "'");
        }
    }
    if (settings.memory_bytes == 0 || settings.link_bytes_per_s == 0) {
        throw Error("XLM_EMULATED needs memory_bytes and link_bytes_per_s");
    }
    return settings;
}

Settings Settings::from_environment() {
    Settings settings;
    settings.plan_path = variable("XLM_PLAN");
    settings.inner_device = variable("XLM_DEVICE").value_or("");
    settings.socket_path = variable("XLM_SOCKET");
    settings.corrupt_tensor = variable("XLM_TEST_CORRUPT");
    settings.ends_with_stdin = variable("XLM_END_WITH_STDIN").has_value();
    if (const auto emulated = variable("XLM_EMULATED"))
        settings.emulated = EmulatedSettings::parse(*emulated);
    return settings;
}

}  // namespace xlm
