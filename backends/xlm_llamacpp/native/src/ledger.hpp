// Every byte of device memory that this process takes, against one budget.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

namespace xlm {

enum class Use { weights, kv_and_compute, staging, resident, expert_cache };

constexpr std::array<const char*, 5> kUseNames = {"weights", "kv_and_compute", "staging", "resident",
                                                  "expert_cache"};

class Ledger {
  public:
    // A share of the budget, given back when it goes out of scope.
    class Claim {
      public:
        Claim(Claim&& other) noexcept
            : ledger_(std::exchange(other.ledger_, nullptr)), use_(other.use_), bytes_(other.bytes_) {}
        Claim& operator=(Claim&& other) noexcept {
            std::swap(ledger_, other.ledger_);
            std::swap(use_, other.use_);
            std::swap(bytes_, other.bytes_);
            return *this;
        }
        ~Claim() {
            if (ledger_ != nullptr) ledger_->release(use_, bytes_);
        }

      private:
        friend class Ledger;
        Claim(Ledger* ledger, Use use, std::size_t bytes) : ledger_(ledger), use_(use), bytes_(bytes) {}

        Ledger* ledger_;
        Use use_;
        std::size_t bytes_;
    };

    explicit Ledger(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    // Nothing when the budget does not allow it.
    std::optional<Claim> claim(Use use, std::size_t bytes);

    // Counts memory that the engine owns and frees without telling us; false when the budget does not allow
    // it.
    bool hand_out(Use use, std::size_t bytes);

    // The device says that it holds device_bytes in all: what the ledger counts above that, the engine has
    // freed. 0 means that the device does not say.
    void reconcile(std::size_t device_bytes);

    void set_budget(std::size_t budget_bytes);
    std::size_t budget_bytes() const;
    std::size_t bytes(Use use) const;
    std::size_t total_bytes() const;
    // Bytes above the budget if `more` were taken; 0 when it fits.
    std::size_t missing_bytes(std::size_t more) const;

  private:
    void release(Use use, std::size_t bytes);
    std::size_t sum() const;

    mutable std::mutex mutex_;
    std::size_t budget_bytes_;
    std::array<std::size_t, kUseNames.size()> taken_{};
};

}  // namespace xlm
