#include "request.hpp"

#include <new>

#include "errors.hpp"

namespace xlm {
namespace {

using Json = nlohmann::json;

constexpr int kProtocol = 1;

std::string reply(Json members, bool ok) {
    members["xlm"] = kProtocol;
    members["ok"] = ok;
    return members.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string refuse(const std::string& sentence) {
    return reply({{"error", sentence}}, false);
}

}  // namespace

Request Request::parse(const std::string& line) {
    Json document = Json::parse(line, nullptr, false);
    if (!document.is_object()) throw Error("the request is not a JSON object");
    const auto version = document.find("xlm");
    if (version == document.end() || !version->is_number_integer())
        throw Error("the request does not say its protocol, such as \"xlm\": " + std::to_string(kProtocol));
    // Compared as it is: a number that no int holds is another version too.
    if (*version != kProtocol) {
        throw Error("protocol " + version->dump() + " is not known; this device speaks protocol " +
                    std::to_string(kProtocol));
    }
    const auto command = document.find("command");
    if (command == document.end() || !command->is_string()) throw Error("the request names no command");
    std::string name = command->get<std::string>();
    return {std::move(name), std::move(document)};
}

const Json& Request::argument(const char* name) const {
    const auto found = arguments.find(name);
    if (found == arguments.end()) throw Error("command '" + command + "' needs " + name);
    return *found;
}

std::size_t Request::size(const char* name) const {
    const Json& value = argument(name);
    if (!value.is_number_unsigned())
        throw Error("command '" + command + "' needs " + name + ", a whole number");
    return value.get<std::size_t>();
}

std::string answer(const std::string& line, const Carry& carry_out) noexcept {
    try {
        try {
            return reply(carry_out(Request::parse(line)), true);
        } catch (const std::bad_alloc&) {
            return refuse("the host's memory ran out");
        } catch (const std::exception& error) {
            return refuse(error.what());
        }
    } catch (const std::exception&) {
        // Short enough to need no memory of its own.
        return R"({"ok":false})";
    }
}

}  // namespace xlm
