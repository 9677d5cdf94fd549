#include "hang_up.hpp"

#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace xlm {

void when_hung_up(int descriptor, std::function<void()> then) {
    std::thread([descriptor, then = std::move(then)] {
        char dropped[256];
        ssize_t count = 0;
        do {
            count = ::read(descriptor, dropped, sizeof dropped);
        } while (count > 0 || (count < 0 && errno == EINTR));
        // A descriptor that cannot be read says nothing about the owner.
        if (count == 0) then();
    }).detach();
}

}  // namespace xlm
