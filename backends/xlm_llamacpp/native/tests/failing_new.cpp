#include "failing_new.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr long kNever = -1;

std::atomic<long> successes_left{kNever};
std::atomic<bool> failed{false};
thread_local bool is_test_thread = false;

bool fails_now() {
    if (successes_left.load() == kNever || is_test_thread) return false;
    if (successes_left.fetch_sub(1) != 0) return false;
    failed = true;
    return true;
}

}  // namespace

void* operator new(std::size_t size) {
    if (fails_now()) throw std::bad_alloc();
    void* memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace xlm {

FailingNew::FailingNew(std::size_t successes) {
    is_test_thread = true;
    failed = false;
    successes_left = static_cast<long>(successes);
}

FailingNew::~FailingNew() {
    successes_left = kNever;
}

bool FailingNew::has_failed() const {
    return failed;
}

}  // namespace xlm
