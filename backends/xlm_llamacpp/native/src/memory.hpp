// Device memory of our own, paid for from the ledger.
#pragma once

#include <cstddef>
#include <optional>

#include "ggml-backend-impl.h"
#include "ggml-cpp.h"
#include "ledger.hpp"

namespace xlm {

class DeviceMemory {
  public:
    // Nothing when the budget or the device has no room.
    static std::optional<DeviceMemory> allocate(ggml_backend_buffer_type_t type, std::size_t bytes,
                                                Ledger& ledger, Use use);

    ggml_backend_buffer_t buffer() const { return buffer_.get(); }

  private:
    DeviceMemory(Ledger::Claim claim, ggml_backend_buffer_ptr buffer)
        : claim_(std::move(claim)), buffer_(std::move(buffer)) {}

    Ledger::Claim claim_;
    ggml_backend_buffer_ptr buffer_;
};

}  // namespace xlm
