#include "targets.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "errors.hpp"
#include "mutator.hpp"
#include "plan.hpp"
#include "request.hpp"

namespace xlm {
namespace {

using Json = nlohmann::json;

constexpr const char* kPlan = R"({
  "format": "xlm.plan/1", "model": {"name": "m"}, "budget_bytes": 1000, "staging": {"slots": 2},
  "expert_cache": {"experts": 2, "whole_from_tokens": 32},
  "shards": [
    {"name": "blk.0.attn", "tensors": ["blk.0.attn_q.weight", "blk.0.attn_k.weight"]},
    {"name": "blk.0.experts", "tensors": ["blk.0.ffn_up_exps.weight"], "experts": 8}],
  "tiers": [
    {"new_tokens": 1, "placements": {"blk.0.attn": "pin", "blk.0.experts": "stream"}},
    {"new_tokens": 512, "placements": {"blk.0.attn": "stream", "blk.0.experts": "cpu"}}]})";

std::size_t refused = 0;

void require(bool holds, const char* what, const std::string& input) {
    if (holds) return;
    std::fprintf(stderr, "%s: %s\n", what, input.c_str());
    std::abort();
}

void read_plan(const std::string& input) try {
    const Plan plan = Plan::parse(input);
    require(!plan.tiers().empty(), "a plan without tiers was accepted", input);
    for (std::size_t shard = 0; shard < plan.shards().size(); ++shard) {
        for (const std::string& tensor : plan.shards()[shard].tensors) {
            // What looks like an adapter's tensor belongs to the base weight's shard, if any.
            if (base_weight(tensor) == tensor)
                require(plan.shard_of(tensor) == shard, "a tensor is not found in its shard", input);
        }
        for (const std::int64_t new_tokens : {std::int64_t{0}, std::int64_t{1}, INT64_MAX})
            (void)plan.placement(shard, new_tokens);
        for (std::size_t tier = 0; tier < plan.tiers().size(); ++tier)
            (void)plan.selects_experts(shard, tier);
        (void)plan.streamed_somewhere(shard);
        (void)plan.on_cpu_everywhere(shard);
    }
    for (const Tier& tier : plan.tiers()) require(tier.new_tokens >= 0, "a tier of negative size", input);
} catch (const Error&) {
    ++refused;
}

// Stands for a device that takes any budget above 1000 bytes.
Json carry_out(const Request& request) {
    if (request.command == "stats") return {{"state", "running"}};
    if (request.command != "set_budget") throw Error("command '" + request.command + "' is not known");
    if (request.size("budget_bytes") < 1000) throw Error("too small");
    return {{"budget_bytes", request.size("budget_bytes")}};
}

void answer_request(const std::string& input) {
    const std::string text = answer(input, carry_out);
    const Json reply = Json::parse(text, nullptr, false);
    require(text.find('\n') == std::string::npos, "an answer of several lines", input);
    require(reply.is_object() && reply.value("xlm", 0) == 1, "an answer that is none", input);
    const bool ok = reply.at("ok").get<bool>();
    require(ok || !reply.value("error", "").empty(), "a refusal without a reason", input);
    refused += !ok;
}

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all = {
        {"plan", read_plan, {kPlan}},
        {"control protocol",
         answer_request,
         {R"({"xlm": 1, "command": "stats"})",
          R"({"xlm": 1, "command": "set_budget", "budget_bytes": 50331648})"}},
    };
    return all;
}

std::size_t fuzz(const Target& target, unsigned seed, std::size_t count) {
    refused = 0;
    for (const std::string& input : target.good) target.run(input);
    if (refused > 0) return count;
    Mutator mutator(seed);
    for (std::size_t i = 0; i < count; ++i) target.run(mutator.mutate(target.good[i % target.good.size()]));
    return refused;
}

}  // namespace xlm
