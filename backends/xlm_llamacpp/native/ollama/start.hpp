// What a llama-server that Ollama has started becomes: stock, or an engine under a plan.
//
// Ollama starts its own llama-server and names this library in GGML_BACKEND_PATH. A start with an option
// among its adapters (--lora) asks the planner and begins anew, in the same process, with the plan's
// arguments. Every other one, and each where anything is in doubt, gets the accelerator's own backend, as if
// we were not there.
#pragma once

#include <functional>

#include "ggml-backend-impl.h"
#include "installed.hpp"

namespace xlm {

// Our own registry: with the plan that the environment names, or without. Throws Error.
using OwnRegistry = std::function<ggml_backend_reg_t(bool planned)>;

// The registry for this process. Does not return where the process begins anew.
ggml_backend_reg_t start(const Installed& installed, const OwnRegistry& own);

}  // namespace xlm
