// Ends an engine whose owner is gone, however it went.
#pragma once

#include <functional>

namespace xlm {

// Calls `then` once nobody holds the other end of `descriptor`, from a thread that lives until then.
// Bytes that come meanwhile are dropped.
void when_hung_up(int descriptor, std::function<void()> then);

}  // namespace xlm
