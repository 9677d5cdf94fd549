#include <doctest/doctest.h>

#include "targets.hpp"

TEST_CASE("no faulty input breaks a reader, and not all of them are refused") {
    constexpr std::size_t kInputs = 3000;
    for (const xlm::Target& target : xlm::targets()) {
        CAPTURE(target.name);
        const std::size_t refused = xlm::fuzz(target, 1, kInputs);
        CHECK(refused > kInputs / 4);
        CHECK(refused < kInputs);
    }
}
