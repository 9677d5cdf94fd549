#include "copy_stream.hpp"

#include <chrono>

#include "errors.hpp"

namespace xlm {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

class EventStream final : public CopyStream {
  public:
    EventStream(ggml_backend_ptr stream, ggml_backend_dev_t device, std::size_t slots)
        : stream_(std::move(stream)) {
        for (std::size_t i = 0; i < slots; ++i) {
            filled_.emplace_back(ggml_backend_event_new(device));
            used_.emplace_back(ggml_backend_event_new(device));
        }
    }
    ~EventStream() override { ggml_backend_synchronize(stream_.get()); }

    void begin(std::size_t slot, std::vector<Copy> copies) override {
        ggml_backend_event_wait(stream_.get(), used_[slot].get());
        for (const Copy& copy : copies) {
            ggml_backend_tensor_set_async(stream_.get(), copy.target, copy.source, copy.offset, copy.bytes);
            stats_.link_bytes += copy.bytes;
        }
        ggml_backend_event_record(filled_[slot].get(), stream_.get());
    }

    void await(std::size_t slot, ggml_backend_t compute) override {
        ggml_backend_event_wait(compute, filled_[slot].get());
    }

    void mark_used(std::size_t slot, ggml_backend_t compute) override {
        ggml_backend_event_record(used_[slot].get(), compute);
    }

    void drain() override { ggml_backend_synchronize(stream_.get()); }

    CopyStats stats() const override { return stats_; }

  private:
    ggml_backend_ptr stream_;
    std::vector<ggml_backend_event_ptr> filled_;
    std::vector<ggml_backend_event_ptr> used_;
    CopyStats stats_;
};

class ThreadStream final : public CopyStream {
  public:
    explicit ThreadStream(std::size_t slots) : pending_(slots, 0), worker_([this] { work(); }) {}

    ~ThreadStream() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }

    void begin(std::size_t slot, std::vector<Copy> copies) override {
        {
            const std::lock_guard lock(mutex_);
            ++pending_[slot];
            queue_.push_back({slot, std::move(copies)});
        }
        changed_.notify_all();
    }

    void await(std::size_t slot, ggml_backend_t /*compute*/) override {
        std::unique_lock lock(mutex_);
        if (pending_[slot] == 0) return;
        const Clock::time_point start = Clock::now();
        changed_.wait(lock, [&] { return pending_[slot] == 0; });
        stats_.wait_seconds += seconds_since(start);
        ++stats_.waits;
    }

    void mark_used(std::size_t /*slot*/, ggml_backend_t compute) override {
        ggml_backend_synchronize(compute);
    }

    void drain() override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
    }

    CopyStats stats() const override {
        const std::lock_guard lock(mutex_);
        return stats_;
    }

  private:
    struct Job {
        std::size_t slot;
        std::vector<Copy> copies;
    };

    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            const Job job = std::move(queue_.front());
            queue_.pop_front();
            busy_ = true;
            lock.unlock();
            const Clock::time_point start = Clock::now();
            std::size_t bytes = 0;
            for (const Copy& copy : job.copies) {
                ggml_backend_tensor_set(copy.target, copy.source, copy.offset, copy.bytes);
                bytes += copy.bytes;
            }
            const double seconds = seconds_since(start);
            lock.lock();
            busy_ = false;
            --pending_[job.slot];
            stats_.link_bytes += bytes;
            stats_.link_seconds += seconds;
            changed_.notify_all();
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> queue_;
    std::vector<std::size_t> pending_;  // copies under way to each slot
    CopyStats stats_;
    bool busy_ = false;
    bool stopping_ = false;
    std::thread worker_;
};

bool has_events(ggml_backend_dev_t device) {
    ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    return props.caps.async && props.caps.events && ggml_backend_event_ptr(ggml_backend_event_new(device));
}

}  // namespace

std::unique_ptr<CopyStream> make_copy_stream(ggml_backend_dev_t device, std::size_t slots) {
    if (!has_events(device)) return std::make_unique<ThreadStream>(slots);
    ggml_backend_ptr stream(ggml_backend_dev_init(device, nullptr));
    if (!stream) throw Error("no second stream can be opened on the device");
    return std::make_unique<EventStream>(std::move(stream), device, slots);
}

}  // namespace xlm
