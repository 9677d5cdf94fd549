#include "supported.hpp"

#include <doctest/doctest.h>

#include <string>

#include "errors.hpp"

TEST_CASE("another ggml is refused with what was found and what is supported") {
    CHECK_NOTHROW(xlm::refuse_other_ggml(XLM_GGML_VERSION));
    for (const char* found : {"0.9.9", "", XLM_GGML_VERSION "0"}) {
        const std::string sentence = std::string("this engine's ggml is ") + found +
                                     ", and this device was built for " XLM_GGML_VERSION
                                     "; supported are 0.20.2 (llama.cpp b10488), 0.26.0 (llama.cpp b11434)";
        CHECK_THROWS_WITH_AS(xlm::refuse_other_ggml(found), sentence.c_str(), xlm::Error);
    }
}
