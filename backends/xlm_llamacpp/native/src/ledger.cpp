#include "ledger.hpp"

#include <algorithm>
#include <numeric>

namespace xlm {
namespace {

constexpr std::size_t index(Use use) {
    return static_cast<std::size_t>(use);
}

}  // namespace

std::optional<Ledger::Claim> Ledger::claim(Use use, std::size_t bytes) {
    if (!hand_out(use, bytes)) return std::nullopt;
    return Claim(this, use, bytes);
}

bool Ledger::hand_out(Use use, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t taken = sum();
    if (bytes > budget_bytes_ || taken > budget_bytes_ - bytes) return false;
    taken_[index(use)] += bytes;
    return true;
}

void Ledger::reconcile(std::size_t device_bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t taken = sum();
    if (device_bytes == 0 || taken <= device_bytes) return;
    std::size_t& handed_out = taken_[index(Use::kv_and_compute)];
    handed_out -= std::min(handed_out, taken - device_bytes);
}

void Ledger::set_budget(std::size_t budget_bytes) {
    const std::lock_guard lock(mutex_);
    budget_bytes_ = budget_bytes;
}

std::size_t Ledger::budget_bytes() const {
    const std::lock_guard lock(mutex_);
    return budget_bytes_;
}

std::size_t Ledger::bytes(Use use) const {
    const std::lock_guard lock(mutex_);
    return taken_[index(use)];
}

std::size_t Ledger::total_bytes() const {
    const std::lock_guard lock(mutex_);
    return sum();
}

std::size_t Ledger::missing_bytes(std::size_t more) const {
    const std::lock_guard lock(mutex_);
    const std::size_t wanted = sum() + more;
    return wanted > budget_bytes_ ? wanted - budget_bytes_ : 0;
}

void Ledger::release(Use use, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    taken_[index(use)] -= bytes;
}

std::size_t Ledger::sum() const {
    return std::accumulate(taken_.begin(), taken_.end(), std::size_t{0});
}

}  // namespace xlm
