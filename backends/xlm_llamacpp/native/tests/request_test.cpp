#include "request.hpp"

#include <doctest/doctest.h>

#include "errors.hpp"

using Json = nlohmann::json;

namespace {

Json answer_to(const std::string& line) {
    const auto echo = [](const xlm::Request& request) { return Json{{"carried", request.command}}; };
    return Json::parse(xlm::answer(line, echo));
}

}  // namespace

TEST_CASE("a request is carried out and answered in its protocol") {
    CHECK(answer_to(R"({"xlm": 1, "command": "stats"})") ==
          Json{{"xlm", 1}, {"ok", true}, {"carried", "stats"}});
}

TEST_CASE("a request of another version is refused with both versions, whatever else it holds") {
    for (const char* version : {"2", "0", "-1", "18446744073709551615"}) {
        const Json answer = answer_to("{\"xlm\": " + std::string(version) + ", \"order\": [\"stats\"]}");
        CHECK(answer["ok"] == false);
        CHECK(answer["error"] ==
              "protocol " + std::string(version) + " is not known; this device speaks protocol 1");
    }
}

TEST_CASE("a line that is no request is refused with what is wrong") {
    for (const auto& [line, sentence] : {
             std::pair{"", "the request is not a JSON object"},
             std::pair{"[1]", "the request is not a JSON object"},
             std::pair{"{}", "the request does not say its protocol, such as \"xlm\": 1"},
             std::pair{R"({"xlm": "1"})", "the request does not say its protocol, such as \"xlm\": 1"},
             std::pair{R"({"xlm": 1})", "the request names no command"},
             std::pair{R"({"xlm": 1, "command": 7})", "the request names no command"},
         }) {
        CHECK(answer_to(line) == Json{{"xlm", 1}, {"ok", false}, {"error", sentence}});
    }
}

TEST_CASE("a size that is missing or no whole number is refused") {
    for (const char* size : {"-1", "1.5", "\"1\"", "null", "18446744073709551616"}) {
        const auto request = xlm::Request::parse(
            "{\"xlm\": 1, \"command\": \"set_budget\", \"budget_bytes\": " + std::string(size) + "}");
        CHECK_THROWS_WITH_AS((void)request.size("budget_bytes"),
                             "command 'set_budget' needs budget_bytes, a whole number", xlm::Error);
        CHECK_THROWS_WITH_AS((void)request.argument("other"), "command 'set_budget' needs other", xlm::Error);
    }
}
