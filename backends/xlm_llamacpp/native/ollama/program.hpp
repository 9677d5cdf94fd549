// This process's program, and how to begin anew in the same process: no other process, the same open pipes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace xlm {

// What to change in an environment; an empty value removes the variable.
using Variables = std::map<std::string, std::string>;

// A command as exec wants it.
class Invocation {
  public:
    // This process's own environment, changed.
    Invocation(std::string program, std::vector<std::string> arguments, const Variables& changes);
    Invocation(const Invocation&) = delete;
    Invocation& operator=(const Invocation&) = delete;

    // Returns where it cannot be done. Allocates nothing: safe in a signal handler and after fork.
    void execute() const;

  private:
    const std::string program_;
    const std::vector<std::string> arguments_;
    const std::vector<std::string> environment_;
    const std::vector<char*> argument_pointers_;
    const std::vector<char*> environment_pointers_;
};

// The path of this process's program. Throws Error when it is gone, as after an upgrade.
std::string own_program();

}  // namespace xlm
