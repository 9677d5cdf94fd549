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
    CHECK(link.schedule(4'000'000, now) - now == 5ms);
}

TEST_CASE("transfers queue behind each other") {
    LinkClock link(kBytesPerS, 0);
    const auto now = LinkClock::Clock::now();
    link.schedule(1'000'000, now);
    CHECK(link.schedule(1'000'000, now) - now == 2ms);
}

TEST_CASE("an idle link starts at once") {
    LinkClock link(kBytesPerS, 0);
    const auto now = LinkClock::Clock::now();
    link.schedule(1'000'000, now);
    CHECK(link.schedule(1'000'000, now + 10ms) - now == 11ms);
}

TEST_CASE("a transfer never ends before the link could have done it") {
    LinkClock link(kBytesPerS, 0);
    const auto start = LinkClock::Clock::now();
    for (int i = 0; i < 20; ++i) link.transfer(1'000'000);
    CHECK(LinkClock::Clock::now() - start >= 20ms);
}
