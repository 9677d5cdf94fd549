#include "measure_request.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "errors.hpp"

namespace xlm {

MeasureRequest MeasureRequest::parse(const std::string& line) {
    try {
        const nlohmann::json document = nlohmann::json::parse(line);
        MeasureRequest request;
        request.op = document.at("op").get<std::string>();
        request.type = document.value("type", "");
        request.shape = document.at("shape").get<std::vector<std::int64_t>>();
        request.new_tokens = document.value("new_tokens", std::int64_t{1});
        request.threads = document.value("threads", 1);
        request.on_device = document.value("on", "host") == "device";
        request.beside_copy = document.value("beside_copy", false);
        request.limit_s = document.value("limit_s", request.limit_s);
        if (request.new_tokens < 1 || request.threads < 1) throw Error("tokens and threads start at 1");
        return request;
    } catch (const nlohmann::json::exception& error) {
        throw Error(std::string("not a request: ") + error.what());
    }
}

void MeasureRequest::check_shape(std::size_t extents) const {
    const bool positive =
        std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent > 0; });
    if (shape.size() != extents || !positive)
        throw Error(op + " takes " + std::to_string(extents) + " extents above zero");
}

std::string Outcome::to_json() const {
    return nlohmann::json{{"seconds", seconds}, {"spread_seconds", spread_seconds}, {"rounds", rounds}}
        .dump();
}

std::string error_json(const std::string& sentence) {
    return nlohmann::json{{"error", sentence}}.dump();
}

}  // namespace xlm
