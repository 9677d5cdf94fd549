#include "option.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>

namespace xlm {
namespace {

// Options take under 1 KiB; adapters that have tensors take more than this.
constexpr std::size_t kLargestBytes = 64 << 10;

}  // namespace

bool is_option(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(kLargestBytes + 1, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    // GGUF begins with its magic, a version of 4 bytes and the number of tensors in 8 bytes.
    if (bytes.size() < 16 || bytes.size() > kLargestBytes || bytes.compare(0, 4, "GGUF") != 0) return false;
    std::uint64_t tensors = 0;
    std::memcpy(&tensors, bytes.data() + 8, sizeof tensors);
    return tensors == 0 && bytes.find("xlm.") != std::string::npos;
}

}  // namespace xlm
