#include "sizes.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("a size that must be enough is rounded up, and never by a hundredth or more") {
    CHECK(xlm::enough_mib(0) == "0.00MiB");
    CHECK(xlm::enough_mib(1) == "0.01MiB");
    CHECK(xlm::enough_mib(82610816) == "78.79MiB");
    CHECK(xlm::enough_mib((5 << 20) - 1) == "5.00MiB");
    for (std::size_t bytes = 1; bytes < (std::size_t{1} << 40); bytes = 3 * bytes + 1) {
        const double shown = std::stod(xlm::enough_mib(bytes)) * (1 << 20);
        CHECK(shown >= static_cast<double>(bytes) - 1e-3);
        CHECK(shown - static_cast<double>(bytes) < 0.0101 * (1 << 20));
    }
}

TEST_CASE("other sizes are rounded to the nearest hundredth") {
    CHECK(xlm::mib(82610816) == "78.78 MiB");
}
