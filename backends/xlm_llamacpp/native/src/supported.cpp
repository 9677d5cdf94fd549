#include "supported.hpp"

#include "errors.hpp"

namespace xlm {

void refuse_other_ggml(const std::string& found) {
    if (found == XLM_GGML_VERSION) return;
    throw Error("this engine's ggml is " + found +
                ", and this device was built for " XLM_GGML_VERSION "; supported are " XLM_SUPPORTED_GGML);
}

}  // namespace xlm
