// Which ggml this library was built for. Its interfaces differ between releases.
#pragma once

#include <string>

namespace xlm {

// Throws Error where the engine's ggml is not the one that we were built for, and says which there are.
void refuse_other_ggml(const std::string& found);

}  // namespace xlm
