#include "ledger.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using xlm::Ledger;
using xlm::Use;

TEST_CASE("a claim is refused when it would exceed the budget") {
    Ledger ledger(100);
    const auto claim = ledger.claim(Use::resident, 60);
    CHECK(claim.has_value());
    CHECK_FALSE(ledger.claim(Use::staging, 41).has_value());
    CHECK(ledger.missing_bytes(41) == 1);
    CHECK(ledger.total_bytes() == 60);
}

TEST_CASE("a claim gives its bytes back when it goes") {
    Ledger ledger(100);
    {
        auto first = ledger.claim(Use::resident, 100);
        const auto moved = std::move(*first);
        CHECK(ledger.bytes(Use::resident) == 100);
    }
    CHECK(ledger.total_bytes() == 0);
}

TEST_CASE("a claim larger than any budget does not wrap around") {
    Ledger ledger(100);
    CHECK_FALSE(ledger.claim(Use::resident, static_cast<std::size_t>(-1)).has_value());
}

TEST_CASE("the device's own count corrects what the engine has freed") {
    Ledger ledger(100);
    const auto resident = ledger.claim(Use::resident, 30);
    CHECK(ledger.hand_out(Use::kv_and_compute, 50));
    ledger.reconcile(60);
    CHECK(ledger.bytes(Use::kv_and_compute) == 30);
    CHECK(ledger.bytes(Use::resident) == 30);
}

TEST_CASE("a device that counts nothing corrects nothing") {
    Ledger ledger(100);
    CHECK(ledger.hand_out(Use::kv_and_compute, 50));
    ledger.reconcile(0);
    CHECK(ledger.total_bytes() == 50);
}

TEST_CASE("a lower budget says what is missing") {
    Ledger ledger(100);
    const auto resident = ledger.claim(Use::resident, 80);
    ledger.set_budget(50);
    CHECK(ledger.missing_bytes(0) == 30);
}

TEST_CASE("claims from many threads never exceed the budget") {
    Ledger ledger(1000);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&ledger] {
            for (int round = 0; round < 1000; ++round) {
                const auto claim = ledger.claim(Use::staging, 300);
                if (ledger.total_bytes() > 1000) std::abort();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(ledger.total_bytes() == 0);
}
