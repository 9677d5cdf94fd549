#include "memory.hpp"

namespace xlm {

std::optional<DeviceMemory> DeviceMemory::allocate(ggml_backend_buffer_type_t type, std::size_t bytes,
                                                   Ledger& ledger, Use use) {
    auto claim = ledger.claim(use, bytes);
    if (!claim) return std::nullopt;
    ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, bytes));
    if (!buffer) return std::nullopt;
    ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    return DeviceMemory(std::move(*claim), std::move(buffer));
}

}  // namespace xlm
