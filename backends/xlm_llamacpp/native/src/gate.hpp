// Holds the engine's compute thread between two graphs.
#pragma once

#include <condition_variable>
#include <mutex>

namespace xlm {

enum class State { running, paused, parked };

constexpr const char* name(State state) {
    switch (state) {
        case State::paused:
            return "paused";
        case State::parked:
            return "parked";
        default:
            return "running";
    }
}

class Gate {
  public:
    void set(State state) {
        {
            const std::lock_guard lock(mutex_);
            state_ = state;
        }
        opened_.notify_all();
    }

    State state() const {
        const std::lock_guard lock(mutex_);
        return state_;
    }

    void wait_until_running() {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return state_ == State::running; });
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable opened_;
    State state_ = State::running;
};

}  // namespace xlm
