#include "control.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "errors.hpp"

using xlm::ControlServer;
using xlm::Descriptor;

namespace {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        if (::mkdtemp(path_) == nullptr) std::abort();
    }
    ~TemporaryFolder() { ::rmdir(path_); }
    std::string socket() const { return std::string(path_) + "/s"; }

  private:
    char path_[32] = "/tmp/xlm-control-XXXXXX";
};

Descriptor connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return socket;
}

void say(const Descriptor& socket, const std::string& text) {
    REQUIRE(::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
}

std::string hear_line(const Descriptor& socket) {
    std::string line;
    for (char letter = 0; ::recv(socket.number(), &letter, 1, 0) == 1 && letter != '\n';) line += letter;
    return line;
}

std::string echo(const std::string& line) {
    return "<" + line + ">";
}

}  // namespace

TEST_CASE("each line gets one answer, however it is cut") {
    const TemporaryFolder folder;
    const ControlServer server(folder.socket(), echo);
    const Descriptor socket = connect_to(folder.socket());
    say(socket, "one\ntw");
    CHECK(hear_line(socket) == "<one>");
    say(socket, "o\n");
    CHECK(hear_line(socket) == "<two>");
}

TEST_CASE("only the owner may speak") {
    const TemporaryFolder folder;
    const ControlServer server(folder.socket(), echo);
    struct stat status {};
    REQUIRE(::stat(folder.socket().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a peer that leaves in the middle of a line disturbs nobody") {
    const TemporaryFolder folder;
    const ControlServer server(folder.socket(), echo);
    const Descriptor staying = connect_to(folder.socket());
    {
        const Descriptor leaving = connect_to(folder.socket());
        say(leaving, "half");
    }
    say(staying, "here\n");
    CHECK(hear_line(staying) == "<here>");
}

TEST_CASE("a peer that dies at any moment of a request or an answer disturbs nobody") {
    const TemporaryFolder folder;
    const std::string long_answer(1 << 20, 'x');
    const ControlServer server(folder.socket(), [&long_answer](const std::string& line) {
        return line == "long" ? long_answer : echo(line);
    });
    const Descriptor staying = connect_to(folder.socket());
    const std::string request = "long\nlong\n";
    for (std::size_t length = 0; length <= request.size(); ++length) {
        const Descriptor leaving = connect_to(folder.socket());
        say(leaving, request.substr(0, length));
        char answered[100];
        if (length == request.size()) ::recv(leaving.number(), answered, sizeof answered, 0);
    }
    say(staying, "here\n");
    CHECK(hear_line(staying) == "<here>");
}

TEST_CASE("the socket's file goes with the server") {
    const TemporaryFolder folder;
    { const ControlServer server(folder.socket(), echo); }
    CHECK(::access(folder.socket().c_str(), F_OK) != 0);
}

TEST_CASE("a path that exists, is too long or cannot be made is refused") {
    const TemporaryFolder folder;
    const ControlServer server(folder.socket(), echo);
    CHECK_THROWS_AS(ControlServer(folder.socket(), echo), xlm::Error);
    // Whoever has it keeps it.
    const Descriptor socket = connect_to(folder.socket());
    say(socket, "here\n");
    CHECK(hear_line(socket) == "<here>");
    CHECK_THROWS_AS(ControlServer("/tmp/" + std::string(200, 'x'), echo), xlm::Error);
    CHECK_THROWS_AS(ControlServer("/nowhere/socket", echo), xlm::Error);
}
