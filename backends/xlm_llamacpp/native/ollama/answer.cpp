#include "answer.hpp"

#include <nlohmann/json.hpp>

#include "errors.hpp"

namespace xlm {
namespace {

constexpr int kProtocol = 1;

}  // namespace

Answer Answer::parse(const std::string& text) try {
    const auto document = nlohmann::json::parse(text);
    if (document.at("xlm") != kProtocol) throw Error("the planner speaks another protocol");
    Answer answer;
    if (document.contains("stock")) {
        answer.stock = document.at("stock").get<std::string>();
        if (answer.stock.empty()) answer.stock = "the planner gives no reason";
        return answer;
    }
    document.at("arguments").get_to(answer.arguments);
    document.at("environment").get_to(answer.environment);
    return answer;
} catch (const nlohmann::json::exception&) {
    throw Error("the planner's answer cannot be read");
}

}  // namespace xlm
