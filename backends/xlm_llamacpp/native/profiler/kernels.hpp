// Graphs of one op, repeated over weights of its own each time, so that caches do not flatter it.
#pragma once

#include "ggml-cpp.h"
#include "measure_request.hpp"

namespace xlm {

class Kernel {
  public:
    // Throws Error for ops, types and shapes that cannot be measured, and where memory is short.
    Kernel(const MeasureRequest& request, ggml_backend_t backend);

    void run();
    int repeats() const { return repeats_; }

  private:
    ggml_backend_t backend_;
    ggml_context_ptr context_;
    ggml_cgraph* graph_ = nullptr;
    ggml_backend_buffer_ptr memory_;
    int repeats_ = 1;
};

}  // namespace xlm
