// xlm_fuzz [COUNT] [SEED]: feeds every reader COUNT faulty inputs. Build it with a sanitizer.

#include <cstdio>
#include <cstdlib>

#include "targets.hpp"

int main(int count, char** arguments) {
    const std::size_t inputs = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 100000;
    const unsigned seed = count > 2 ? static_cast<unsigned>(std::strtoul(arguments[2], nullptr, 10)) : 0;
    for (const xlm::Target& target : xlm::targets())
        std::printf("%s: %zu of %zu inputs refused\n", target.name, xlm::fuzz(target, seed, inputs), inputs);
}
