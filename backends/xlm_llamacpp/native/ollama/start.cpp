#include "start.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "answer.hpp"
#include "child.hpp"
#include "errors.hpp"
#include "fallback.hpp"
#include "ggml.h"
#include "option.hpp"
#include "real_backend.hpp"
#include "words.hpp"

namespace xlm {
namespace {

using nlohmann::json;

// Ollama's variables that would mislead a program that is no engine.
const Variables kForPlanner = {{"LD_LIBRARY_PATH", ""}, {"GGML_BACKEND_PATH", ""}, {"XLM_START", ""}};

// What this process is to go back to where it cannot go on under its plan.
struct Stock {
    Arguments arguments;
    // As they were before the plan; "" for what was not there.
    Variables environment;
};

// How far this process has come. XLM_START tells it from one beginning to the next; one of another process
// says nothing.
struct Stage {
    bool begun = false;
    // Of a process under a plan.
    std::optional<Stock> stock;

    static Stage from_environment() {
        const char* text = std::getenv("XLM_START");
        const json document = json::parse(text != nullptr ? text : "", nullptr, false);
        if (!document.is_object() || document.value("pid", 0) != ::getpid()) return {};
        if (!document.contains("arguments")) return {true, std::nullopt};
        return {true, Stock{document.at("arguments").get<Arguments>(),
                            document.at("environment").get<Variables>()}};
    }

    std::string to_json() const {
        json document = {{"pid", ::getpid()}};
        if (stock) document.update({{"arguments", stock->arguments}, {"environment", stock->environment}});
        return document.dump();
    }
};

void say(const std::string& sentence) {
    std::fprintf(stderr, "xlm: %s\n", harmless(sentence).c_str());
}

class Start {
  public:
    Start(const Installed& installed, const OwnRegistry& own, Arguments arguments)
        : installed_(installed), own_(own), arguments_(std::move(arguments)), stock_(arguments_) {
        for (const std::string& adapter : values_of(arguments_, "--lora")) {
            if (!is_option(adapter)) continue;
            has_option_ = true;
            stock_ = without(stock_, "--lora", adapter);
        }
    }

    ggml_backend_reg_t registry() {
        if (!has_option_ || !value_of(arguments_, "--model")) return as_stock();
        try {
            begin_planned();
        } catch (const std::exception& error) {
            say(std::string("this model runs without its plan: ") + error.what());
        }
        // An option that the engine does not read as an adapter cannot be wrong for the model.
        begin(stock_, {}, {true, std::nullopt});
        return as_stock();
    }

    // The accelerator's own backend, or the emulated accelerator.
    ggml_backend_reg_t as_stock() {
        if (std::getenv("XLM_EMULATED") == nullptr) {
            if (ggml_backend_reg_t real = load_real()) return real;
        }
        return own_(false);
    }

    ggml_backend_reg_t as_planned(const Stock& stock) {
        const Stage as_stock_engine = {true, std::nullopt};
        try {
            catch_crashes(std::make_unique<Invocation>(own_program(), stock.arguments,
                                                       variables(stock.environment, as_stock_engine)));
            if (ggml_backend_reg_t real = load_real()) ggml_backend_register(real);
            return own_(true);
        } catch (const std::exception& error) {
            say(std::string("this model runs without its plan: ") + error.what());
            begin(stock.arguments, stock.environment, as_stock_engine);
            throw;
        }
    }

  private:
    ggml_backend_reg_t load_real() const {
        return load_real_backend(real_backends(installed_.folder, installed_.accelerator));
    }

    static Variables variables(Variables changes, const Stage& stage) {
        changes["XLM_START"] = stage.to_json();
        return changes;
    }

    // Returns where it cannot be done.
    static void begin(const Arguments& arguments, const Variables& changes, const Stage& stage) try {
        std::fflush(nullptr);
        Invocation(own_program(), arguments, variables(changes, stage)).execute();
    } catch (const Error&) {
    }

    void begin_planned() {
        if (!installed_.defect.empty()) throw Error(installed_.defect);
        if (installed_.ggml_version != ggml_version())
            throw Error("this engine's ggml is " + std::string(ggml_version()) +
                        ", and xlm is installed for " + installed_.ggml_version);
        const Answer answer = Answer::parse(ask_planner());
        if (!answer.stock.empty()) throw Error(answer.stock);
        Arguments arguments = {arguments_[0]};
        arguments.insert(arguments.end(), answer.arguments.begin(), answer.arguments.end());
        Stock stock{stock_, {}};
        for (const auto& [name, value] : answer.environment) {
            const char* before = std::getenv(name.c_str());
            stock.environment[name] = before != nullptr ? before : "";
        }
        begin(arguments, answer.environment, {true, stock});
        throw Error("the engine cannot begin anew");
    }

    std::string ask_planner() {
        Question question;
        question.command = installed_.planner;
        question.command.insert(question.command.end(), arguments_.begin() + 1, arguments_.end());
        question.environment = kForPlanner;
        question.environment["XLM_START_DEVICES"] = devices().dump();
        question.on_line = say;
        question.on_silence = [] { say("still planning"); };
        return ask(question);
    }

    json devices() {
        json found = json::array();
        ggml_backend_reg_t registry = as_stock();
        for (std::size_t i = 0; i < ggml_backend_reg_dev_count(registry); ++i) {
            ggml_backend_dev_t device = ggml_backend_reg_dev_get(registry, i);
            std::size_t free = 0, total = 0;
            ggml_backend_dev_memory(device, &free, &total);
            found.push_back({{"name", ggml_backend_dev_name(device)},
                             {"description", ggml_backend_dev_description(device)},
                             {"backend", ggml_backend_reg_name(registry)},
                             {"free_bytes", free},
                             {"total_bytes", total}});
        }
        return found;
    }

    const Installed& installed_;
    const OwnRegistry& own_;
    const Arguments arguments_;
    Arguments stock_;
    bool has_option_ = false;
};

}  // namespace

ggml_backend_reg_t start(const Installed& installed, const OwnRegistry& own) try {
    const Stage stage = Stage::from_environment();
    if (!stage.begun) return Start(installed, own, own_arguments()).registry();
    Start started(installed, own, {});
    return stage.stock ? started.as_planned(*stage.stock) : started.as_stock();
} catch (const std::exception& error) {
    say(error.what());
    return Start(installed, own, {}).as_stock();
}

}  // namespace xlm
