#include "plan_swap.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "errors.hpp"

using json = nlohmann::json;
using xlm::Plan;

namespace {

json document(const char* decode, const char* prefill) {
    return {
        {"format", "xlm.plan/1"},
        {"model", {{"name", "tiny"}, {"fingerprint", "sha256:1"}}},
        {"budget_bytes", 1000},
        {"staging", {{"slots", 2}, {"slot_bytes", 100}}},
        {"shards",
         {{{"name", "blk.0.attn"}, {"tensors", {"q", "k"}}}, {{"name", "blk.0.ffn"}, {"tensors", {"up"}}}}},
        {"tiers",
         {{{"new_tokens", 1}, {"placements", {{"blk.0.attn", "pin"}, {"blk.0.ffn", decode}}}},
          {{"new_tokens", 64}, {"placements", {{"blk.0.attn", "pin"}, {"blk.0.ffn", prefill}}}}}}};
}

Plan plan(const char* decode, const char* prefill) {
    return Plan::parse(document(decode, prefill).dump());
}

std::string refusal(const json& next, bool holds = true) {
    try {
        xlm::require_swappable(plan("pin", "stream"), Plan::parse(next.dump()),
                               [holds](const std::string&) { return holds; });
    } catch (const xlm::Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a plan with other placements of the same tensors may take another's place") {
    CHECK(refusal(document("stream", "cpu")) == "");
}

TEST_CASE("a plan that the engine was not loaded for is refused with the reason") {
    json next = document("pin", "pin");
    SUBCASE("another model") {
        next["model"] = {{"name", "huge"}, {"fingerprint", "sha256:2"}};
        CHECK(refusal(next) == "the plan is for another model, 'huge'");
    }
    SUBCASE("a tensor too few") {
        next["shards"][0]["tensors"] = {"q"};
        CHECK(refusal(next) == "the plan leaves out tensor 'k'");
    }
    SUBCASE("a tensor too many") {
        next["shards"][0]["tensors"] = {"q", "k", "v"};
        CHECK(refusal(next) == "the plan names an unknown tensor 'v'");
    }
    SUBCASE("other KV caches in host memory") {
        next["host_kv_layers"] = {0};
        next["host_kv_device_tokens"] = 32;
        CHECK(refusal(next) ==
              "the plan keeps other KV caches in host memory; start the engine anew for that");
    }
    SUBCASE("weights that only the CPU can read") {
        CHECK(refusal(next, false) ==
              "shard 'blk.0.attn' was loaded for the CPU alone; start the engine anew to place it elsewhere");
    }
}

TEST_CASE("what moves to the CPU still comes to the device until the graph is divided anew") {
    using Shards = std::vector<bool>;
    const auto lingering = [](const Plan& now, const Plan& next, const Shards& already = {}) {
        return xlm::lingering_shards(now, next, already);
    };
    CHECK(lingering(plan("pin", "stream"), plan("cpu", "stream")) == Shards{false, true});
    CHECK(lingering(plan("cpu", "stream"), plan("pin", "pin")) == Shards{false, false});
    CHECK(lingering(plan("cpu", "cpu"), plan("cpu", "stream")) == Shards{false, false});
    // A third plan comes before the engine has divided its graph by the second.
    CHECK(lingering(plan("cpu", "stream"), plan("cpu", "stream"), {false, true}) == Shards{false, true});
    CHECK(lingering(plan("cpu", "stream"), plan("pin", "stream"), {false, true}) == Shards{false, false});
}
