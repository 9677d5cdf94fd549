#include "fallback.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace xlm {
namespace {

std::unique_ptr<const Invocation> stock_engine;

void on_crash(int signal) {
    constexpr char kSaid[] = "xlm: the engine crashed under its plan; the stock engine starts in its place\n";
    (void)!::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
#ifdef SYS_close_range
    // A port that stayed open would take connections that nobody accepts.
    ::syscall(SYS_close_range, 3, ~0U, 0);
#endif
    stock_engine->execute();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

}  // namespace

void catch_crashes(std::unique_ptr<const Invocation> stock) {
    stock_engine = std::move(stock);
    struct sigaction action {};
    action.sa_handler = on_crash;
    // The engine that starts in the handler must not find its signal blocked.
    action.sa_flags = SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

}  // namespace xlm
