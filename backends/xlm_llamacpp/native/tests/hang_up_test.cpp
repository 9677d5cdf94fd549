#include "hang_up.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>

#include "control.hpp"

using xlm::Descriptor;

namespace {

struct Pipe {
    Pipe() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reading = Descriptor(ends[0]);
        writing = Descriptor(ends[1]);
    }
    Descriptor reading;
    Descriptor writing;
};

}  // namespace

TEST_CASE("an owner that is gone is noticed, and not before it is") {
    Pipe pipe;
    const auto gone = std::make_shared<std::promise<void>>();
    std::future<void> noticed = gone->get_future();
    xlm::when_hung_up(pipe.reading.number(), [gone] { gone->set_value(); });
    REQUIRE(::write(pipe.writing.number(), "still here", 10) == 10);
    CHECK(noticed.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
    pipe.writing = Descriptor();
    noticed.get();
}
