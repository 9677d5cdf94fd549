// The engine's own backends: host and device, and copies between them.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "ggml-cpp.h"

namespace xlm {

// The host's and the device's backend. Without a device name there is only the host.
class Devices {
  public:
    // Loads the backends that lie in `folder`. Throws Error where one cannot be had.
    Devices(const std::string& folder, const std::string& device_name);

    ggml_backend_t host() const { return host_.get(); }
    // Throws Error where there is none.
    ggml_backend_t device() const;
    ggml_backend_t choose(bool on_device) const { return on_device ? device() : host(); }
    // A second instance, whose work runs beside the first's. Throws Error where there is none.
    ggml_backend_ptr second_device() const;
    void set_threads(int threads) const;

  private:
    ggml_backend_ptr host_;
    ggml_backend_ptr device_;
};

// A tensor of bytes in device memory and its counterpart on the host.
class CopyPair {
  public:
    // Throws Error where `pinned` memory is asked for and the device has none.
    CopyPair(ggml_backend_t device, std::size_t bytes, bool pinned);

    void upload();
    void download();

  private:
    ggml_backend_t device_;
    ggml_context_ptr context_;
    ggml_tensor* tensor_;
    ggml_backend_buffer_ptr memory_;
    ggml_backend_buffer_ptr pinned_;
    std::vector<std::byte> pageable_;
    void* host_data_;
};

// Copies to the device for as long as it lives.
class BackgroundCopy {
  public:
    explicit BackgroundCopy(const Devices& devices);
    ~BackgroundCopy();
    BackgroundCopy(const BackgroundCopy&) = delete;
    BackgroundCopy& operator=(const BackgroundCopy&) = delete;

  private:
    ggml_backend_ptr device_;
    CopyPair pair_;
    std::atomic<bool> done_{false};
    std::thread thread_;
};

bool has_pinned_memory(ggml_backend_t device);

}  // namespace xlm
