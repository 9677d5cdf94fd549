#include "plan.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "errors.hpp"

using nlohmann::json;
using xlm::Placement;
using xlm::Plan;

namespace {

json small_plan() {
    return {{"format", "xlm.plan/1"},
            {"model", {{"name", "tiny"}}},
            {"budget_bytes", 4096},
            {"staging", {{"slots", 2}, {"slot_bytes", 1024}}},
            {"shards",
             {{{"name", "blk.0.attn"}, {"tensors", {"blk.0.attn_q.weight", "blk.0.attn_k.weight"}}},
              {{"name", "blk.0.ffn"}, {"tensors", {"blk.0.ffn_up.weight"}}}}},
            {"tiers",
             {{{"new_tokens", 1}, {"placements", {{"blk.0.attn", "pin"}, {"blk.0.ffn", "cpu"}}}},
              {{"new_tokens", 512}, {"placements", {{"blk.0.attn", "pin"}, {"blk.0.ffn", "stream"}}}}}}};
}

std::string fault(const json& document) {
    try {
        Plan::parse(document.dump());
    } catch (const xlm::Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a plan places tensors by shard and tier") {
    const Plan plan = Plan::parse(small_plan().dump());
    const auto ffn = plan.shard_of("blk.0.ffn_up.weight");
    REQUIRE(ffn.has_value());
    CHECK(plan.placement(*ffn, 1) == Placement::cpu);
    CHECK(plan.placement(*ffn, 2) == Placement::stream);
    CHECK_FALSE(plan.shard_of("output.weight").has_value());
}

TEST_CASE("the factors of a LoRA adapter go where the weight goes that they change") {
    const Plan plan = Plan::parse(small_plan().dump());
    const auto ffn = plan.shard_of("blk.0.ffn_up.weight");
    CHECK(plan.shard_of("blk.0.ffn_up.weight.lora_a") == ffn);
    CHECK(plan.shard_of("blk.0.ffn_up.weight.lora_b") == ffn);
    CHECK_FALSE(plan.shard_of("output.weight.lora_a").has_value());
    CHECK_FALSE(plan.shard_of(".lora_a").has_value());
}

TEST_CASE("a plan says which layers keep their KV cache in host memory, and from where on it is copied") {
    json document = small_plan();
    CHECK_FALSE(Plan::parse(document.dump()).keeps_any_kv_on_host());
    document["host_kv_layers"] = {1, 3};
    document["host_kv_device_tokens"] = 32;
    const Plan plan = Plan::parse(document.dump());
    CHECK(plan.keeps_kv_on_host(3));
    CHECK_FALSE(plan.keeps_kv_on_host(2));
    CHECK(plan.host_kv_device_tokens() == 32);
}

TEST_CASE("steps above the last tier use the last tier") {
    const Plan plan = Plan::parse(small_plan().dump());
    CHECK(plan.tier_for(512) == 1);
    CHECK(plan.tier_for(4096) == 1);
}

TEST_CASE("a shard knows where it ever goes") {
    const Plan plan = Plan::parse(small_plan().dump());
    CHECK(plan.pinned_somewhere(0));
    CHECK_FALSE(plan.streamed_somewhere(0));
    CHECK(plan.streamed_somewhere(1));
    CHECK_FALSE(plan.on_cpu_everywhere(1));
}

TEST_CASE("a plan that contradicts itself is refused with its first fault") {
    json document = small_plan();
    SUBCASE("another version") {
        document["format"] = "xlm.plan/2";
        CHECK(fault(document) == "the plan's format is 'xlm.plan/2'; this device reads xlm.plan/1");
    }
    SUBCASE("an unknown placement") {
        document["tiers"][0]["placements"]["blk.0.ffn"] = "disk";
        CHECK(fault(document) ==
              "the plan places shard 'blk.0.ffn' as 'disk', which is not pin, stream or cpu");
    }
    SUBCASE("a shard without a placement") {
        document["tiers"][1]["placements"].erase("blk.0.ffn");
        CHECK(fault(document) == "tier 512 of the plan does not place every shard once");
    }
    SUBCASE("a placement of a shard that is not there") {
        document["tiers"][0]["placements"] = {{"blk.0.attn", "pin"}, {"blk.9.ffn", "pin"}};
        CHECK(fault(document) == "tier 1 of the plan does not place shard 'blk.0.ffn'");
    }
    SUBCASE("a tensor in two shards") {
        document["shards"][1]["tensors"] = {"blk.0.attn_q.weight"};
        CHECK(fault(document) == "the plan places tensor 'blk.0.attn_q.weight' twice");
    }
    SUBCASE("falling tiers") {
        document["tiers"][1]["new_tokens"] = 1;
        CHECK(fault(document) == "the plan's tiers do not rise");
    }
    SUBCASE("no tiers") {
        document["tiers"] = json::array();
        CHECK(fault(document) == "the plan has no tiers");
    }
    SUBCASE("a negative budget") {
        document["budget_bytes"] = -1;
        CHECK(fault(document) == "the plan's budget_bytes is not a whole number");
    }
}

TEST_CASE("what is not JSON is refused") {
    CHECK_THROWS_AS(Plan::parse("{"), xlm::Error);
    CHECK_THROWS_AS(Plan::parse("[]"), xlm::Error);
    CHECK_THROWS_AS(Plan::read("/nowhere/plan.json"), xlm::Error);
}
