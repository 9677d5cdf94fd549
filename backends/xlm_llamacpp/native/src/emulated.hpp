// EMU0: an accelerator made of CPU kernels behind a link of a stated speed, with its own memory cap.
//
// It is a complete ggml device: its memory is not host memory, so the engine copies to and from it as it
// would with a real card. It has no events and computes synchronously.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "ggml-backend-impl.h"
#include "link.hpp"
#include "settings.hpp"

namespace xlm {

class EmulatedDevice {
  public:
    EmulatedDevice(const EmulatedSettings& settings, ggml_backend_reg_t registry);
    EmulatedDevice(const EmulatedDevice&) = delete;
    EmulatedDevice& operator=(const EmulatedDevice&) = delete;

    ggml_backend_dev_t device() { return &device_; }
    ggml_backend_buffer_type_t buffer_type() { return &buffer_type_; }
    const char* name() const { return "EMU0"; }
    const char* description() const { return description_.c_str(); }

    std::size_t memory_bytes() const { return memory_bytes_; }
    std::size_t used_bytes() const { return used_bytes_; }
    bool take(std::size_t bytes);
    void give_back(std::size_t bytes) { used_bytes_ -= bytes; }

    LinkClock& upload_link() { return upload_link_; }
    LinkClock& download_link() { return download_link_; }

  private:
    std::size_t memory_bytes_;
    std::string description_;
    std::atomic<std::size_t> used_bytes_{0};
    LinkClock upload_link_;
    LinkClock download_link_;
    ggml_backend_device device_;
    ggml_backend_buffer_type buffer_type_;
};

// Sets the number of CPU threads that an EMU0 backend computes with.
void set_emulated_threads(ggml_backend_t backend, int threads);
bool is_emulated(ggml_backend_t backend);

}  // namespace xlm
