// What an engine that Ollama starts reads and decides before it has a plan.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "answer.hpp"
#include "child.hpp"
#include "command_line.hpp"
#include "errors.hpp"
#include "installed.hpp"
#include "option.hpp"
#include "words.hpp"

namespace fs = std::filesystem;

namespace {

class Folder {
  public:
    Folder() : path_(fs::temp_directory_path() / ("xlm-start-" + std::to_string(::getpid()))) {
        fs::create_directories(path_);
    }
    ~Folder() { fs::remove_all(path_); }

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name, std::ios::binary) << text;
        return path_ / name;
    }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

std::string gguf(char tensors, const std::string& key) {
    return std::string("GGUF\3\0\0\0", 8) + tensors + std::string(7, '\0') +
           std::string("\1\0\0\0\0\0\0\0", 8) + key;
}

xlm::Question shell(const std::string& script) {
    xlm::Question question;
    question.command = {"/bin/sh", "-c", script};
    question.on_line = [](const std::string&) {};
    question.on_silence = [] {};
    return question;
}

const xlm::Arguments kStart = {"llama-server", "--model", "/m",     "--lora", "/a",
                               "--lora",       "/b",      "--port", "1"};

}  // namespace

TEST_CASE("an option is a GGUF file without tensors that speaks of xlm") {
    const Folder folder;
    CHECK(xlm::is_option(folder.write("option", gguf(0, "xlm.version"))));
    CHECK_FALSE(xlm::is_option(folder.write("adapter", gguf(1, "xlm.version"))));
    CHECK_FALSE(xlm::is_option(folder.write("empty-adapter", gguf(0, "general.type"))));
    CHECK_FALSE(xlm::is_option(folder.write("short", "GGUF")));
    CHECK_FALSE(xlm::is_option(folder.write("large", gguf(0, "xlm." + std::string(1 << 17, 'x')))));
    CHECK_FALSE(xlm::is_option(folder.path() / "nowhere"));
}

TEST_CASE("an option is taken off the command line, and other adapters stay") {
    CHECK(xlm::values_of(kStart, "--lora") == std::vector<std::string>{"/a", "/b"});
    CHECK(xlm::without(kStart, "--lora", "/a") ==
          xlm::Arguments{"llama-server", "--model", "/m", "--lora", "/b", "--port", "1"});
}

TEST_CASE("a process reads its own command line") {
    CHECK_FALSE(xlm::own_arguments().empty());
}

TEST_CASE("an answer is a plan's arguments, or a reason to stay stock") {
    const auto planned =
        xlm::Answer::parse(R"({"xlm": 1, "arguments": ["--port", "1"], "environment": {"XLM_PLAN": "/p"}})");
    CHECK(planned.stock.empty());
    CHECK(planned.arguments == std::vector<std::string>{"--port", "1"});
    CHECK(xlm::Answer::parse(R"({"xlm": 1, "stock": "too small"})").stock == "too small");
    for (const char* text : {"", "[]", "{}", R"({"xlm": 2, "stock": "x"})", R"({"xlm": 1})",
                             R"({"xlm": 1, "arguments": 7, "environment": {}})"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(xlm::Answer::parse(text), xlm::Error);
    }
}

TEST_CASE("an install that cannot be read says so, and a folder without one is none") {
    const Folder folder;
    CHECK_FALSE(xlm::Installed::in(folder.path() / "elsewhere"));
    folder.write("xlm.json", "{");
    CHECK(xlm::Installed::in(folder.path())->defect != "");
    folder.write("xlm.json", R"({"planner": ["python"], "ggml_version": "0.20.2"})");
    const auto installed = xlm::Installed::in(folder.path());
    CHECK(installed->defect == "");
    CHECK(installed->planner == std::vector<std::string>{"python"});
}

TEST_CASE("a program's answer is what it writes to stdout, and its lines on stderr are handed on") {
    auto question = shell("echo one >&2; printf two >&2; echo answer");
    std::string lines;
    question.on_line = [&](const std::string& line) { lines += line + ";"; };
    CHECK(xlm::ask(question) == "answer\n");
    CHECK(lines == "one;two;");
}

TEST_CASE("a program sees the environment, changed") {
    ::setenv("TEST_LEFT", "left", 1);
    ::setenv("TEST_GONE", "gone", 1);
    auto question = shell("echo $TEST_LEFT$TEST_GONE$TEST_NEW");
    question.environment = {{"TEST_GONE", ""}, {"TEST_NEW", "new"}};
    CHECK(xlm::ask(question) == "leftnew\n");
}

TEST_CASE("a program that fails or is not there is an error") {
    CHECK_THROWS_AS(xlm::ask(shell("exit 3")), xlm::Error);
    auto question = shell("");
    question.command = {"/nowhere/python"};
    CHECK_THROWS_AS(xlm::ask(question), xlm::Error);
}

TEST_CASE("a program that is silent is spoken for, and one that does not end is ended") {
    auto question = shell("sleep 60");
    question.silence = std::chrono::milliseconds(10);
    question.limit = std::chrono::milliseconds(100);
    int silences = 0;
    question.on_silence = [&] { ++silences; };
    CHECK_THROWS_AS(xlm::ask(question), xlm::Error);
    CHECK(silences > 0);
    // One that has closed its pipes too.
    question.command = {"/bin/sh", "-c", "exec >&- 2>&-; sleep 60"};
    CHECK_THROWS_AS(xlm::ask(question), xlm::Error);
}

TEST_CASE("words that Ollama takes for a failure are said in others") {
    CHECK(xlm::harmless("CUDA error: Out of memory") == "CUDA fault: short of memory");
    CHECK(xlm::harmless("Error: x") == "fault: x");
    CHECK(xlm::harmless("planning takes a while") == "planning takes a while");
}
