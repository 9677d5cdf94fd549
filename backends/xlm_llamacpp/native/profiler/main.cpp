// xlm-measure FOLDER [DEVICE]: answers requests on stdin, one JSON line each, with the backends in FOLDER.

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "devices.hpp"
#include "errors.hpp"
#include "kernels.hpp"
#include "measure_request.hpp"
#include "timing.hpp"

namespace xlm {
namespace {

// Reads `bytes` with as many threads as asked for.
Outcome measure_host_read(const MeasureRequest& request) {
    request.check_shape(1);
    const auto words = static_cast<std::size_t>(request.shape[0]) / sizeof(std::uint64_t);
    const std::vector<std::uint64_t> memory(words, 0x11);
    const auto threads = static_cast<std::size_t>(request.threads);
    std::vector<std::uint64_t> sums(threads * 8);
    const auto read = [&] {
        std::vector<std::thread> readers;
        for (std::size_t each = 0; each < threads; ++each) {
            readers.emplace_back([&, each] {
                std::uint64_t sum = 0;
                for (std::size_t at = words * each / threads; at < words * (each + 1) / threads; ++at)
                    sum += memory[at];
                sums[each * 8] += sum;
            });
        }
        for (std::thread& reader : readers) reader.join();
    };
    const Outcome outcome = time_runs(read, request.limit_s);
    if (std::all_of(sums.begin(), sums.end(), [](std::uint64_t sum) { return sum == 0; }))
        throw Error("nothing was read");
    return outcome;
}

Outcome measure_copy(const MeasureRequest& request, const Devices& devices) {
    request.check_shape(1);
    CopyPair pair(devices.device(), static_cast<std::size_t>(request.shape[0]), request.type == "pinned");
    if (request.op == "UPLOAD") return time_runs([&] { pair.upload(); }, request.limit_s);
    return time_runs([&] { pair.download(); }, request.limit_s);
}

// The link while host or device compute.
Outcome measure_copy_beside(const MeasureRequest& request, const Devices& devices) {
    MeasureRequest busy;
    busy.op = "MUL_MAT";
    busy.type = "f16";
    busy.shape = {1024, 1024};
    Kernel kernel(busy, devices.choose(request.on_device));
    std::atomic<bool> done{false};
    std::thread computing([&] {
        while (!done) kernel.run();
    });
    struct Joining {
        std::atomic<bool>& done;
        std::thread& thread;
        ~Joining() {
            done = true;
            thread.join();
        }
    } joining{done, computing};
    const ggml_backend_ptr second = devices.second_device();
    request.check_shape(1);
    CopyPair pair(second.get(), static_cast<std::size_t>(request.shape[0]), request.type == "pinned");
    return time_runs([&] { pair.upload(); }, request.limit_s);
}

// There and back: two crossings, with the little that both sides compute between them.
Outcome measure_crossing(const MeasureRequest& request, const Devices& devices) {
    request.check_shape(1);
    MeasureRequest little;
    little.op = "ADD";
    little.shape = {64};
    Kernel on_host(little, devices.host()), on_device(little, devices.device());
    CopyPair pair(devices.device(), static_cast<std::size_t>(request.shape[0]), false);
    const Outcome apart = time_runs([&] { on_host.run(); }, request.limit_s / 2);
    const Outcome there = time_runs([&] { on_device.run(); }, request.limit_s / 2);
    Outcome outcome = time_runs(
        [&] {
            on_host.run();
            pair.upload();
            on_device.run();
            pair.download();
        },
        request.limit_s, 2);
    // What the graphs themselves take is no part of a crossing, but for their start.
    const double nodes = static_cast<double>(on_host.repeats());
    const double computing = (apart.seconds + there.seconds) * (nodes - 1) / nodes / 2;
    outcome.seconds = std::max(outcome.seconds - computing, 1e-7);
    return outcome;
}

Outcome measure(const MeasureRequest& request, const Devices& devices) {
    devices.set_threads(request.threads);
    if (request.op == "HOST_READ") return measure_host_read(request);
    if (request.op == "CROSSING") return measure_crossing(request, devices);
    if (request.op == "UPLOAD" && request.beside_copy) return measure_copy_beside(request, devices);
    if (request.op == "UPLOAD" || request.op == "DOWNLOAD") return measure_copy(request, devices);
    Kernel kernel(request, devices.choose(request.on_device));
    std::unique_ptr<BackgroundCopy> copy;
    if (request.beside_copy) copy = std::make_unique<BackgroundCopy>(devices);
    return time_runs([&] { kernel.run(); }, request.limit_s, kernel.repeats());
}

std::string answer(const std::string& line, const Devices& devices) {
    try {
        return measure(MeasureRequest::parse(line), devices).to_json();
    } catch (const std::exception& error) {
        return error_json(error.what());
    }
}

}  // namespace
}  // namespace xlm

int main(int count, char** arguments) {
    if (count < 2 || count > 3) {
        std::cerr << "usage: xlm-measure FOLDER [DEVICE]\n";
        return 2;
    }
    ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    try {
        const xlm::Devices devices(arguments[1], count == 3 ? arguments[2] : "");
        std::cout << "{\"ready\":true}" << std::endl;
        for (std::string line; std::getline(std::cin, line);)
            std::cout << xlm::answer(line, devices) << std::endl;
    } catch (const std::exception& error) {
        std::cout << xlm::error_json(error.what()) << std::endl;
        return 1;
    }
    return 0;
}
