// The C tables through which ggml calls a Device and its streams.
#pragma once

#include "ggml-backend-impl.h"

namespace xlm {

ggml_backend_device_i device_interface();

// Memory that the engine asks for: counted, then the wrapped device's own.
ggml_backend_buffer_type_i device_type_interface();

// Host memory for planned weights, pinned where the wrapped device offers it.
ggml_backend_buffer_type_i host_type_interface();
ggml_backend_buffer_type_i host_kv_type_interface();

// The wrapped device's stream behind one of ours; other backends are returned as they are.
ggml_backend_t unwrap(ggml_backend_t backend);

}  // namespace xlm
