// Ollama reads its engine's log.
#pragma once

#include <string>

namespace xlm {

// The line in other words where Ollama would take it for a failure of the engine.
std::string harmless(std::string line);

}  // namespace xlm
