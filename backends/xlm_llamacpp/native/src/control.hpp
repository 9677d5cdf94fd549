// A Unix socket that answers lines, on a thread of its own.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>

namespace xlm {

// A file descriptor that is closed when it goes out of scope.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();

    int number() const { return number_; }

  private:
    int number_;
};

class ControlServer {
  public:
    using Answer = std::function<std::string(const std::string& line)>;

    // Listens at `path` with mode 0600. Throws Error when the path is too long, exists or cannot be made.
    ControlServer(std::string path, Answer answer);
    ~ControlServer();
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;

  private:
    struct Client {
        Descriptor socket;
        std::string unread;
    };

    void serve();
    // False when the server ends.
    bool serve_once();
    // False when the peer is gone or talks nonsense.
    bool read(Client& client) const;

    std::string path_;
    Answer answer_;
    Descriptor listener_;
    Descriptor wake_read_;
    Descriptor wake_write_;
    std::map<int, Client> clients_;
    std::thread thread_;
};

}  // namespace xlm
