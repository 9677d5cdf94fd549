#include "devices.hpp"

#include "errors.hpp"

namespace xlm {
namespace {

constexpr std::size_t kBackgroundBytes = std::size_t{4} << 20;

ggml_backend_ptr start(ggml_backend_dev_t device, const std::string& name) {
    ggml_backend_ptr backend(device == nullptr ? nullptr : ggml_backend_dev_init(device, nullptr));
    if (!backend) throw Error("the device '" + name + "' cannot be started");
    return backend;
}

ggml_backend_buffer_type_t pinned_type(ggml_backend_t device) {
    return ggml_backend_dev_host_buffer_type(ggml_backend_get_device(device));
}

void set_threads_of(ggml_backend_t backend, int threads) {
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void* address = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
    if (address != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(address)(backend, threads);
}

}  // namespace

bool has_pinned_memory(ggml_backend_t device) {
    return pinned_type(device) != nullptr;
}

Devices::Devices(const std::string& folder, const std::string& device_name) {
    ggml_backend_load_all_from_path(folder.c_str());
    host_ = start(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), "CPU");
    if (!device_name.empty()) device_ = start(ggml_backend_dev_by_name(device_name.c_str()), device_name);
}

ggml_backend_t Devices::device() const {
    if (!device_) throw Error("there is no device");
    return device_.get();
}

ggml_backend_ptr Devices::second_device() const {
    return start(ggml_backend_get_device(device()), "second instance");
}

void Devices::set_threads(int threads) const {
    set_threads_of(host_.get(), threads);
    if (device_) set_threads_of(device_.get(), threads);
}

CopyPair::CopyPair(ggml_backend_t device, std::size_t bytes, bool pinned)
    : device_(device), context_(ggml_init({ggml_tensor_overhead(), nullptr, true})) {
    tensor_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I8, static_cast<std::int64_t>(bytes));
    memory_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), device));
    if (!memory_) throw Error("the device has no memory for " + std::to_string(bytes) + " bytes");
    if (pinned) {
        if (!has_pinned_memory(device)) throw Error("the device has no pinned memory");
        pinned_.reset(ggml_backend_buft_alloc_buffer(pinned_type(device), bytes));
        if (!pinned_) throw Error("the memory cannot be pinned");
        ggml_backend_buffer_clear(pinned_.get(), 0x11);
        host_data_ = ggml_backend_buffer_get_base(pinned_.get());
    } else {
        pageable_.resize(bytes, std::byte{0x11});
        host_data_ = pageable_.data();
    }
}

void CopyPair::upload() {
    ggml_backend_tensor_set_async(device_, tensor_, host_data_, 0, ggml_nbytes(tensor_));
    ggml_backend_synchronize(device_);
}

void CopyPair::download() {
    ggml_backend_tensor_get_async(device_, tensor_, host_data_, 0, ggml_nbytes(tensor_));
    ggml_backend_synchronize(device_);
}

BackgroundCopy::BackgroundCopy(const Devices& devices)
    : device_(devices.second_device()),
      pair_(device_.get(), kBackgroundBytes, has_pinned_memory(device_.get())),
      thread_([this] {
          while (!done_) pair_.upload();
      }) {}

BackgroundCopy::~BackgroundCopy() {
    done_ = true;
    thread_.join();
}

}  // namespace xlm
