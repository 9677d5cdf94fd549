// The option that a Modelfile names as ADAPTER: a GGUF file without tensors, with xlm's keys.
#pragma once

#include <string>

namespace xlm {

// Whether the file is one, damaged ones too: who reads its keys says what is wrong with them. False for what
// cannot be read.
bool is_option(const std::string& path);

}  // namespace xlm
