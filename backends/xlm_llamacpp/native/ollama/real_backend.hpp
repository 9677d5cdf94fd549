// The accelerator's own ggml backend, as an Ollama install has it: lib/ollama/cuda_v13/libggml-cuda.so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ggml-backend-impl.h"

namespace xlm {

// The libraries in the folders beside `folder`, the preferred first: CUDA, then ROCm, then Vulkan, then
// others, and the newer of two. `only`, unless empty, names the one folder to look at.
std::vector<std::filesystem::path> real_backends(const std::filesystem::path& folder,
                                                 const std::string& only = "");

// Loads the first of them that finds a device. Null where none does. Libraries that it stands on are taken
// from its own folder.
ggml_backend_reg_t load_real_backend(const std::vector<std::filesystem::path>& libraries);

}  // namespace xlm
