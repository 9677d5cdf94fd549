// Each allocation of the socket's thread fails once. Not those of plans and requests: the JSON reader
// allocates in its destructors, where a failure ends the process.

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "control.hpp"
#include "failing_new.hpp"

using xlm::FailingNew;

TEST_CASE("the socket goes on answering after each allocation of its thread has failed") {
    char folder[] = "/tmp/xlm-allocation-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/s";
    const auto ask = [&path](bool must_answer) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        const xlm::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
        REQUIRE(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        // A connection that the server had no memory for may be closed already.
        const bool was_sent = ::send(socket.number(), "hello\n", 6, MSG_NOSIGNAL) == 6;
        char answer[64];
        const ssize_t count = ::recv(socket.number(), answer, sizeof answer, 0);
        if (must_answer) REQUIRE((was_sent && count == 41));
    };
    {
        const xlm::ControlServer server(path, [](const std::string&) { return std::string(40, 'x'); });
        std::size_t successes = 0;
        for (bool failed = true; failed; ++successes) {
            {
                const FailingNew failing(successes);
                ask(false);
                failed = failing.has_failed();
            }
            ask(true);
        }
        CHECK(successes > 3);
    }
    ::rmdir(folder);
}
