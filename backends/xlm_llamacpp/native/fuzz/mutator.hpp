// Makes faulty inputs from good ones: always the same ones from the same seed.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace xlm {

class Mutator {
  public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    // One of the documents' values replaced, removed or doubled, or some of its bytes changed, several times
    // over.
    std::string mutate(const std::string& text);

  private:
    std::size_t below(std::size_t bound);
    std::string change_value(const std::string& text);
    std::string change_bytes(std::string text);

    std::mt19937 random_;
};

}  // namespace xlm
