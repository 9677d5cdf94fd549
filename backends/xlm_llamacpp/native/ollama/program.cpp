#include "program.hpp"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "errors.hpp"

extern char** environ;

namespace xlm {
namespace {

std::vector<std::string> changed_environment(const Variables& changes) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (changes.count(text.substr(0, text.find('='))) == 0) variables.push_back(text);
    }
    for (const auto& [name, value] : changes) {
        if (!value.empty()) variables.push_back(name + "=" + value);
    }
    return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

Invocation::Invocation(std::string program, std::vector<std::string> arguments, const Variables& changes)
    : program_(std::move(program)),
      arguments_(std::move(arguments)),
      environment_(changed_environment(changes)),
      argument_pointers_(pointers_to(arguments_)),
      environment_pointers_(pointers_to(environment_)) {}

void Invocation::execute() const {
    ::execve(program_.c_str(), argument_pointers_.data(), environment_pointers_.data());
}

std::string own_program() {
    std::error_code failure;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
    if (failure || !std::filesystem::exists(program, failure))
        throw Error("the engine's own file is not there any more");
    return program.string();
}

}  // namespace xlm
