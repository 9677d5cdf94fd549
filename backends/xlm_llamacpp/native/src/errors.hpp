// Errors that reach the user as one sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace xlm {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Prints "xlm: error: <sentence>" on stderr, where the launcher looks for it.
void report(const std::string& sentence);

}  // namespace xlm
