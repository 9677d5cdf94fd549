#include "installed.hpp"

#include <dlfcn.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace xlm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "xlm.json";

}  // namespace

std::optional<Installed> Installed::in(const fs::path& folder) {
    std::ifstream file(folder / kFile, std::ios::binary);
    if (!file) return std::nullopt;
    Installed installed;
    installed.folder = folder;
    try {
        const auto document = nlohmann::json::parse(file);
        document.at("planner").get_to(installed.planner);
        document.at("ggml_version").get_to(installed.ggml_version);
        installed.accelerator = document.value("accelerator", "");
        if (installed.planner.empty()) installed.defect = "its planner has no command";
    } catch (const nlohmann::json::exception&) {
        installed.defect = std::string(kFile) + " cannot be read; install xlm anew";
    }
    return installed;
}

std::optional<Installed> Installed::beside_library() {
    Dl_info library{};
    if (::dladdr(reinterpret_cast<const void*>(&kFile), &library) == 0 || library.dli_fname == nullptr)
        return std::nullopt;
    std::error_code failure;
    const fs::path path = fs::absolute(library.dli_fname, failure);
    if (failure) return std::nullopt;
    return in(path.parent_path());
}

}  // namespace xlm
