#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "control.hpp"
#include "errors.hpp"

namespace xlm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestAnswer = 1 << 20;

struct Pipe {
    Descriptor read;
    Descriptor write;

    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe can be made");
        read = Descriptor(ends[0]);
        write = Descriptor(ends[1]);
    }
};

// A child that is killed and reaped when it goes out of scope.
class Child {
  public:
    Child(const Question& question, const Pipe& output, const Pipe& messages) {
        const Invocation invocation(question.command.at(0), question.command, question.environment);
        const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) throw Error("no process can be started: " + std::string(std::strerror(errno)));
        if (pid_ > 0) return;
        // Between fork and exec only what a signal handler may do, as other threads may hold locks.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);
        ::signal(SIGPIPE, SIG_DFL);
        ::dup2(nothing.number(), 0);
        ::dup2(output.write.number(), 1);
        ::dup2(messages.write.number(), 2);
        invocation.execute();
        ::_exit(127);
    }
    ~Child() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Throws Error when it goes on past the deadline.
    int wait_until(Clock::time_point deadline) {
        while (Clock::now() < deadline) {
            int status = 0;
            if (::waitpid(pid_, &status, WNOHANG) == pid_) {
                pid_ = -1;
                return status;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        throw Error("it does not end");
    }

  private:
    pid_t pid_;
};

// False at the end of the pipe.
bool read_more(const Descriptor& source, std::string& text) {
    char chunk[4096];
    const ssize_t count = ::read(source.number(), chunk, sizeof chunk);
    if (count > 0) text.append(chunk, static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
}

void hand_on_lines(std::string& text, const std::function<void(const std::string&)>& on_line) {
    for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
        on_line(text.substr(0, end));
}

}  // namespace

std::string ask(const Question& question) {
    Pipe output, messages;
    Child child(question, output, messages);
    output.write = Descriptor();
    messages.write = Descriptor();
    const auto deadline = Clock::now() + question.limit;
    std::string answer, text;
    bool answering = true, speaking = true;
    while (answering || speaking) {
        pollfd waiting[] = {{answering ? output.read.number() : -1, POLLIN, 0},
                            {speaking ? messages.read.number() : -1, POLLIN, 0}};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) throw Error(question.command[0] + " takes too long");
        const int ready = ::poll(waiting, 2, static_cast<int>(std::min(left, question.silence).count()));
        if (ready == 0) question.on_silence();
        if (waiting[0].revents != 0) answering = read_more(output.read, answer);
        if (waiting[1].revents != 0) {
            speaking = read_more(messages.read, text);
            hand_on_lines(text, question.on_line);
        }
        if (answer.size() > kLongestAnswer || text.size() > kLongestAnswer)
            throw Error(question.command[0] + " says too much");
    }
    if (!text.empty()) question.on_line(text);
    const int status = child.wait_until(deadline);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        throw Error(question.command[0] + " cannot be started");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error(question.command[0] + " failed");
    return answer;
}

}  // namespace xlm
