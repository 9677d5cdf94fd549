#include "words.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace xlm {
namespace {

// What Ollama's log reader (llm/status.go) looks for, and what says the same.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"error:", "fault:"},
    {"cuda error", "CUDA fault"},
    {"out of memory", "short of memory"},
    {"not enough memory", "too little memory"},
    {"failed to allocate", "could not allocate"},
    {"allocation failed", "allocation was refused"},
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

}  // namespace

std::string harmless(std::string line) {
    for (const auto& [word, other] : kWords) {
        for (std::size_t at; (at = lower(line).find(word)) != std::string::npos;)
            line.replace(at, std::char_traits<char>::length(word), other);
    }
    return line;
}

}  // namespace xlm
