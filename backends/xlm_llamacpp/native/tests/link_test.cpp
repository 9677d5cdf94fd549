#include "link.hpp"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using xlm::LinkClock;

namespace {

constexpr double kBytesPerS = 1e9;

}  // namespace

TEST_CASE("a transfer takes its latency and its bytes over the rate") {
    LinkClock link(kBytesPerS, 0.001);
    const auto now = LinkClock::Clock::now();
    CHECK(link.book(4'000'000, now) - now == 5ms);
}

TEST_CASE("transfers queue behind each other") {
    LinkClock link(kBytesPerS, 0);
    const auto now = LinkClock::Clock::now();
    link.book(1'000'000, now);
    CHECK(link.book(1'000'000, now) - now == 2ms);
}

TEST_CASE("an idle link starts at once") {
    LinkClock link(kBytesPerS, 0);
    const auto now = LinkClock::Clock::now();
    link.book(1'000'000, now);
    CHECK(link.book(1'000'000, now + 10ms) - now == 11ms);
}

TEST_CASE("a late wake-up does not slow the link down") {
    LinkClock link(kBytesPerS, 0);
    const auto start = LinkClock::Clock::now();
    auto end = start;
    for (int i = 0; i < 20; ++i) {
        end = link.book(1'000'000, i == 0 ? start : LinkClock::Clock::now());
        link.wait_until(end);
    }
    CHECK(end - start >= 20ms);
    CHECK(LinkClock::Clock::now() >= end);
}
