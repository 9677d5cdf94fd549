#include "control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "errors.hpp"

namespace xlm {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

Descriptor listen_at(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw Error("the socket path " + path + " is longer than " +
                    std::to_string(sizeof address.sun_path - 1) + " bytes");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const mode_t mask = ::umask(0177);
    const int bound = ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int cause = errno;
    ::umask(mask);
    if (bound != 0) throw Error("the socket " + path + " cannot be made: " + std::strerror(cause));
    if (::listen(socket.number(), 8) != 0) throw Error("the socket " + path + " cannot be listened to");
    return socket;
}

bool send_all(int socket, const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        sent += static_cast<std::size_t>(count);
    }
    return true;
}

// A peer that does not read its answers must not hold up the others.
void limit_sending(int socket) {
    const timeval limit{1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

ControlServer::ControlServer(std::string path, Answer answer)
    : path_(std::move(path)), answer_(std::move(answer)), listener_(listen_at(path_)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe can be made for the control socket");
    wake_read_ = Descriptor(ends[0]);
    wake_write_ = Descriptor(ends[1]);
    thread_ = std::thread([this] { serve(); });
}

ControlServer::~ControlServer() {
    (void)!::write(wake_write_.number(), "", 1);
    thread_.join();
    ::unlink(path_.c_str());
}

void ControlServer::serve() {
    while (true) {
        try {
            if (!serve_once()) return;
        } catch (const std::bad_alloc&) {
            // The engine goes on; its peers may come again.
            clients_.clear();
        }
    }
}

bool ControlServer::serve_once() {
    std::vector<pollfd> waiting = {{wake_read_.number(), POLLIN, 0}, {listener_.number(), POLLIN, 0}};
    for (const auto& [socket, client] : clients_) waiting.push_back({socket, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) return errno == EINTR;
    if (waiting[0].revents != 0) return false;
    if (waiting[1].revents != 0) {
        Descriptor socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
        const int number = socket.number();
        if (number >= 0) {
            limit_sending(number);
            clients_.emplace(number, Client{std::move(socket), {}});
        }
    }
    for (std::size_t i = 2; i < waiting.size(); ++i) {
        if (waiting[i].revents != 0 && !read(clients_.at(waiting[i].fd))) clients_.erase(waiting[i].fd);
    }
    return true;
}

bool ControlServer::read(Client& client) const {
    char chunk[4096];
    const ssize_t count = ::recv(client.socket.number(), chunk, sizeof chunk, 0);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    client.unread.append(chunk, static_cast<std::size_t>(count));
    for (std::size_t end; (end = client.unread.find('\n')) != std::string::npos;) {
        const std::string line = client.unread.substr(0, end);
        client.unread.erase(0, end + 1);
        if (!send_all(client.socket.number(), answer_(line) + "\n")) return false;
    }
    return client.unread.size() <= kLongestLine;
}

}  // namespace xlm
