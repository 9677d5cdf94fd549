// Copies from host to device that run while the device computes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-cpp.h"

namespace xlm {

// Bytes of host memory that go to a place in a device tensor.
struct Copy {
    ggml_tensor* target;
    std::size_t offset;
    const void* source;
    std::size_t bytes;
};

struct CopyStats {
    std::size_t link_bytes = 0;
    double link_seconds = 0;  // 0 where the device cannot say (events)
    double wait_seconds = 0;  // that the host stood still for a copy
    std::size_t waits = 0;
};

// Slots are numbered places in device memory. Between a copy and its use, and between a use and the next
// copy, the stream keeps the order; it never waits longer than that.
class CopyStream {
  public:
    virtual ~CopyStream() = default;

    // Fills slot by `copies`, after every use of the slot that mark_used has announced.
    virtual void begin(std::size_t slot, std::vector<Copy> copies) = 0;
    // Lets work that is launched on `compute` from now on read the slot.
    virtual void await(std::size_t slot, ggml_backend_t compute) = 0;
    // Work that reads the slot has been launched on `compute`.
    virtual void mark_used(std::size_t slot, ggml_backend_t compute) = 0;
    // Returns when no copy is under way.
    virtual void drain() = 0;
    virtual CopyStats stats() const = 0;
};

// Uses a second stream of the device with events where it has them, else a thread of our own.
std::unique_ptr<CopyStream> make_copy_stream(ggml_backend_dev_t device, std::size_t slots);

}  // namespace xlm
