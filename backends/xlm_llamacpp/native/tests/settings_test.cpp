#include "settings.hpp"

#include <doctest/doctest.h>

#include "errors.hpp"

using xlm::EmulatedSettings;

TEST_CASE("an emulated device is described by its memory and its link") {
    const auto settings =
        EmulatedSettings::parse("memory_bytes=1048576,link_bytes_per_s=16e9,link_latency_s=0");
    CHECK(settings.memory_bytes == 1048576);
    CHECK(settings.link_bytes_per_s == 16e9);
    CHECK(settings.link_latency_s == 0);
}

TEST_CASE("a faulty description is refused") {
    for (const char* text : {"", "memory_bytes=1", "memory_bytes=0,link_bytes_per_s=1",
                             "memory_bytes=1,link_bytes_per_s=-1", "memory_bytes=1x,link_bytes_per_s=1",
                             "memory_bytes=1,link_bytes_per_s=1,colour=2", "memory_bytes"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(EmulatedSettings::parse(text), xlm::Error);
    }
}
