// Lets one allocation of this program fail.
#pragma once

#include <cstddef>

namespace xlm {

// The allocation after `successes` more of them in other threads throws std::bad_alloc, while this lives.
class FailingNew {
  public:
    explicit FailingNew(std::size_t successes);
    ~FailingNew();
    FailingNew(const FailingNew&) = delete;
    FailingNew& operator=(const FailingNew&) = delete;

    bool has_failed() const;
};

}  // namespace xlm
