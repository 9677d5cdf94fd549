#include "expert_scores.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

using xlm::CellChoice;
using xlm::ExpertScores;

namespace {

constexpr std::size_t kShards = 3;
constexpr std::size_t kExperts = 8;

}  // namespace

TEST_CASE("an expert that was chosen before is still there") {
    ExpertScores scores(kShards, kExperts, 4);
    const auto first = scores.choose(0, {1, 5});
    const auto second = scores.choose(0, {5});
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK((*first)[1].is_new);
    CHECK_FALSE((*second)[0].is_new);
    CHECK((*second)[0].cell == (*first)[1].cell);
}

TEST_CASE("the same expert of another shard is another expert") {
    ExpertScores scores(kShards, kExperts, 4);
    scores.choose(0, {1});
    CHECK((*scores.choose(1, {1}))[0].is_new);
}

TEST_CASE("the one that is selected least gives way") {
    ExpertScores scores(kShards, kExperts, 2);
    scores.choose(0, {1});
    scores.choose(0, {1});
    scores.choose(0, {2});
    scores.choose(0, {3});
    CHECK_FALSE((*scores.choose(0, {1}))[0].is_new);
    CHECK((*scores.choose(0, {2}))[0].is_new);
}

TEST_CASE("what was hot long ago cools down") {
    ExpertScores scores(kShards, kExperts, 2);
    for (int i = 0; i < 50; ++i) scores.choose(0, {1});
    for (int i = 0; i < 20'000; ++i) scores.choose(1, {static_cast<std::size_t>(i % 2)});
    CHECK((*scores.choose(0, {1}))[0].is_new);
}

TEST_CASE("more experts than cells are refused") {
    ExpertScores scores(kShards, kExperts, 2);
    CHECK_FALSE(scores.choose(0, {1, 2, 3}).has_value());
}

TEST_CASE("experts of one choice never share a cell, and a cell holds the last expert it was given") {
    ExpertScores scores(kShards, kExperts, 5);
    std::mt19937 random(11);
    std::vector<std::pair<std::size_t, std::size_t>> holds(5, {99, 99});
    for (int round = 0; round < 5000; ++round) {
        const std::size_t shard = random() % kShards;
        std::set<std::size_t> wanted;
        while (wanted.size() < 1 + random() % 5) wanted.insert(random() % kExperts);
        const std::vector<std::size_t> experts(wanted.begin(), wanted.end());
        const auto choices = scores.choose(shard, experts);
        REQUIRE(choices.has_value());
        std::set<std::size_t> cells;
        for (std::size_t i = 0; i < experts.size(); ++i) {
            const CellChoice& choice = (*choices)[i];
            CHECK(cells.insert(choice.cell).second);
            const std::pair key(shard, experts[i]);
            CHECK((holds[choice.cell] == key) == !choice.is_new);
            holds[choice.cell] = key;
        }
    }
}
