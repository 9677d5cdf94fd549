// What `xlm ollama install` has written beside the library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace xlm {

struct Installed {
    std::filesystem::path folder;
    // Why nothing can be planned here; "" where it can.
    std::string defect;
    // The planner's command, to which the engine's arguments are added.
    std::vector<std::string> planner;
    // Of the engines that the library was made for.
    std::string ggml_version;
    // The one folder beside ours whose backend is wanted; "" is the first that finds a device.
    std::string accelerator;

    // Nothing where the library lies in no Ollama.
    static std::optional<Installed> in(const std::filesystem::path& folder);
    static std::optional<Installed> beside_library();
};

}  // namespace xlm
