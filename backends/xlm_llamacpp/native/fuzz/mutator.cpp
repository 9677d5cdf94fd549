#include "mutator.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace xlm {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostChanges = 4;

// What readers stumble over.
const std::array kValues = {"null",
                            "true",
                            "-1",
                            "0",
                            "1",
                            "9223372036854775808",
                            "18446744073709551615",
                            "18446744073709551616",
                            "1e308",
                            "0.5",
                            "\"\"",
                            "\"pin\"",
                            "\"\\u0000\"",
                            "[]",
                            "{}",
                            "[[]]",
                            "{\"\":[]}"};

void collect(Json& value, std::vector<Json*>& found) {
    found.push_back(&value);
    if (value.is_structured()) {
        for (Json& inner : value) collect(inner, found);
    }
}

}  // namespace

std::string Mutator::mutate(const std::string& text) {
    std::string mutated = text;
    for (std::size_t changes = 1 + below(kMostChanges); changes > 0; --changes)
        mutated = below(3) > 0 ? change_value(mutated) : change_bytes(std::move(mutated));
    return mutated;
}

std::size_t Mutator::below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
}

std::string Mutator::change_value(const std::string& text) {
    Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) return change_bytes(text);
    std::vector<Json*> values;
    collect(document, values);
    Json& value = *values[below(values.size())];
    switch (below(4)) {
        case 0:
            if (value.is_structured() && !value.empty())
                value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size()))));
            break;
        case 1: {
            const Json other = *values[below(values.size())];
            value = other;
            break;
        }
        case 2:
            if (value.is_array()) {
                const Json again = value.empty() ? Json() : value[below(value.size())];
                value.push_back(again);
            }
            break;
        default:
            value = Json::parse(kValues[below(kValues.size())]);
    }
    return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Mutator::change_bytes(std::string text) {
    const std::size_t place = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - place, below(16));
    switch (below(4)) {
        case 0:
            text.resize(place);
            break;
        case 1:
            text.erase(place, length);
            break;
        case 2:
            text.insert(place, text.substr(place, length));
            break;
        default:
            text.insert(place, 1, static_cast<char>(below(256)));
    }
    return text;
}

}  // namespace xlm
