// The control protocol: one JSON object in, one out.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace xlm {

struct Request {
    std::string command;
    nlohmann::json arguments;

    // Throws Error for a line that is no request, and for one of another version of the protocol.
    static Request parse(const std::string& line);

    // Throws Error where the argument is missing.
    const nlohmann::json& argument(const char* name) const;

    // An argument that is a number of bytes. Throws Error where it is missing or something else.
    std::size_t size(const char* name) const;
};

// Returns the members of an answer. May throw Error.
using Carry = std::function<nlohmann::json(const Request&)>;

// Answers one line. Never throws; faults come back as {"ok": false, "error": "..."}.
std::string answer(const std::string& line, const Carry& carry_out) noexcept;

}  // namespace xlm
