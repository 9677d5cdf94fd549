#include "layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using xlm::choose_layout;
using xlm::Layout;
using xlm::least_room;
using xlm::ShardNeeds;

namespace {

constexpr std::size_t kSlots = 2;

std::size_t bytes(const std::vector<ShardNeeds>& shards, const Layout& layout) {
    std::size_t sum = kSlots * layout.slot_bytes;
    for (std::size_t i = 0; i < shards.size(); ++i) sum += layout.resident[i] ? shards[i].bytes : 0;
    return sum;
}

}  // namespace

TEST_CASE("everything pinned that fits is resident, without a ring") {
    const auto layout = choose_layout({{10, true, false}, {20, true, false}}, kSlots, 30);
    REQUIRE(layout.has_value());
    CHECK(layout->resident == std::vector<bool>{true, true});
    CHECK(layout->slot_bytes == 0);
}

TEST_CASE("the last shard that the slots hold anyway goes first") {
    const std::vector<ShardNeeds> shards = {
        {10, true, false}, {10, true, false}, {10, false, true}, {30, true, false}};
    const auto layout = choose_layout(shards, kSlots, 60);
    REQUIRE(layout.has_value());
    CHECK(layout->resident == std::vector<bool>{true, false, false, true});
    CHECK(layout->slot_bytes == 10);
}

TEST_CASE("slots grow as little as they can") {
    const std::vector<ShardNeeds> shards = {
        {50, true, false}, {4, true, false}, {4, true, false}, {4, true, false}, {5, true, false}};
    const auto layout = choose_layout(shards, kSlots, 66);
    REQUIRE(layout.has_value());
    CHECK(layout->resident == std::vector<bool>{true, false, false, false, true});
    CHECK(layout->slot_bytes == 4);
}

TEST_CASE("there is no layout below the least room") {
    const std::vector<ShardNeeds> shards = {{50, true, false}, {10, false, true}};
    CHECK(least_room(shards, kSlots) == 70);
    CHECK(choose_layout(shards, kSlots, 70).has_value());
    CHECK_FALSE(choose_layout(shards, kSlots, 69).has_value());
}

TEST_CASE("a layout fits its room, holds what streams, and exists from the least room up") {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        std::vector<ShardNeeds> shards(1 + random() % 8);
        for (ShardNeeds& shard : shards) shard = {1 + random() % 100, random() % 2 == 0, random() % 3 == 0};
        const std::size_t least = least_room(shards, kSlots);
        const std::size_t room = random() % 800;
        const auto layout = choose_layout(shards, kSlots, room);
        CHECK(layout.has_value() == (room >= least));
        if (!layout) continue;
        CHECK(bytes(shards, *layout) <= room);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            const bool passes_ring = shards[i].streamed || (shards[i].pinned && !layout->resident[i]);
            if (passes_ring) CHECK(shards[i].bytes <= layout->slot_bytes);
        }
    }
}
