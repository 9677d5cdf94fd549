#include "commands.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "errors.hpp"
#include "request.hpp"

namespace xlm {
namespace {

using Json = nlohmann::json;

Json stats(Device& device) {
    const Stats stats = device.stats();
    Json ledger_bytes = Json::object();
    for (std::size_t use = 0; use < kUseNames.size(); ++use) {
        ledger_bytes[kUseNames[use]] = device.ledger().bytes(static_cast<Use>(use));
    }
    Json steps = Json::object();
    for (const auto& [new_tokens, count] : stats.steps) steps[std::to_string(new_tokens)] = count;
    return {{"pid", getpid()},
            {"plan_model", stats.model_name},
            {"plan_is_waiting", stats.plan_is_waiting},
            {"state", name(device.state())},
            {"budget_bytes", device.ledger().budget_bytes()},
            {"ledger_bytes", ledger_bytes},
            {"device_bytes", stats.device_bytes},
            {"link_bytes", stats.copies.link_bytes},
            {"link_seconds", stats.copies.link_seconds},
            {"steps", steps},
            {"resident_shards", stats.resident_shards},
            {"demoted_shards", stats.demoted_shards},
            {"prefetch_hits", stats.ring.hits},
            {"prefetch_misses", stats.ring.misses},
            {"expert_hits", stats.experts.hits},
            {"expert_misses", stats.experts.misses},
            {"prefetch_waits", stats.copies.waits},
            {"wait_seconds", stats.copies.wait_seconds}};
}

Json set_state(Device& device, State state) {
    device.set_state(state);
    return {{"state", name(state)}};
}

Json run(Device& device, const Request& request) {
    const std::string& command = request.command;
    if (command == "stats") return stats(device);
    if (command == "pause") return set_state(device, State::paused);
    if (command == "park") return set_state(device, State::parked);
    if (command == "resume" || command == "wake") return set_state(device, State::running);
    if (command == "set_budget") {
        device.set_budget(request.size("budget_bytes"));
        return stats(device);
    }
    if (command == "load_plan") {
        device.load_plan(Plan::parse(request.argument("plan").dump()));
        return stats(device);
    }
    throw Error("command '" + command + "' is not known");
}

}  // namespace

std::string answer(Device& device, const std::string& line) {
    return answer(line, [&device](const Request& request) { return run(device, request); });
}

}  // namespace xlm
