#include "errors.hpp"

#include <cstdio>

namespace xlm {

void report(const std::string& sentence) {
    std::fprintf(stderr, "xlm: error: %s\n", sentence.c_str());
}

}  // namespace xlm
