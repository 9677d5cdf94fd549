#include "real_backend.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace xlm {
namespace {

namespace fs = std::filesystem;

int rank(const std::string& folder) {
    const char* const preferred[] = {"cuda", "rocm", "hip", "vulkan"};
    for (int i = 0; i < 4; ++i) {
        if (folder.compare(0, std::char_traits<char>::length(preferred[i]), preferred[i]) == 0) return i;
    }
    return 4;
}

bool is_accelerator(const fs::path& file) {
    const std::string name = file.filename().string();
    return name.find("libggml-") == 0 && file.extension() == ".so" && name.find("libggml-base") != 0 &&
           name.find("libggml-cpu") != 0;
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::error_code failure;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        found.push_back(entry->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

// Ollama names our folder alone to the loader, so that libcublas and others beside the backend are not found
// by their names. Those that are loaded already are.
void load_neighbours(const fs::path& library) {
    // Twice, since they stand on each other.
    for (int round = 0; round < 2; ++round) {
        for (const fs::path& file : entries(library.parent_path())) {
            if (file != library && file.filename().string().find(".so") != std::string::npos)
                ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
        }
    }
}

// Kept open for as long as the process runs: a backend's threads may outlive all that uses it.
void* open_library(const fs::path& library) {
    if (void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    load_neighbours(library);
    return ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
}

ggml_backend_reg_t load(const fs::path& library) {
    void* handle = open_library(library);
    if (handle == nullptr) return nullptr;
    const auto score = reinterpret_cast<ggml_backend_score_t>(::dlsym(handle, "ggml_backend_score"));
    if (score != nullptr && score() == 0) return nullptr;
    const auto init = reinterpret_cast<ggml_backend_init_t>(::dlsym(handle, "ggml_backend_init"));
    ggml_backend_reg_t registry = init != nullptr ? init() : nullptr;
    if (registry == nullptr || registry->api_version != GGML_BACKEND_API_VERSION) return nullptr;
    return ggml_backend_reg_dev_count(registry) > 0 ? registry : nullptr;
}

}  // namespace

std::vector<fs::path> real_backends(const fs::path& folder, const std::string& only) {
    auto folders = entries(folder.parent_path());
    std::stable_sort(folders.begin(), folders.end(), [](const fs::path& left, const fs::path& right) {
        const std::string first = left.filename().string(), second = right.filename().string();
        return rank(first) != rank(second) ? rank(first) < rank(second) : first > second;
    });
    std::vector<fs::path> libraries;
    for (const fs::path& candidate : folders) {
        if (candidate == folder || (!only.empty() && candidate.filename() != only)) continue;
        // Ollama takes the first too.
        const auto files = entries(candidate);
        const auto found = std::find_if(files.begin(), files.end(), is_accelerator);
        if (found != files.end()) libraries.push_back(*found);
    }
    return libraries;
}

ggml_backend_reg_t load_real_backend(const std::vector<fs::path>& libraries) {
    for (const fs::path& library : libraries) {
        if (ggml_backend_reg_t registry = load(library)) return registry;
    }
    return nullptr;
}

}  // namespace xlm
