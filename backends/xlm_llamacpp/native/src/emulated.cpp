#include "emulated.hpp"

#include <cstring>
#include <memory>
#include <new>

#include "errors.hpp"
#include "ggml-cpp.h"

namespace xlm {
namespace {

constexpr std::size_t kAlignment = 128;

struct AlignedDelete {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t(kAlignment)); }
};

// The memory of one buffer, counted against the device for as long as it lives.
class EmulatedMemory {
  public:
    EmulatedMemory(EmulatedDevice& device, std::size_t bytes)
        : device_(device), bytes_(bytes), data_(new (std::align_val_t(kAlignment)) std::byte[bytes]) {}
    ~EmulatedMemory() { device_.give_back(bytes_); }
    EmulatedMemory(const EmulatedMemory&) = delete;
    EmulatedMemory& operator=(const EmulatedMemory&) = delete;

    EmulatedDevice& device() { return device_; }
    std::byte* data() { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

  private:
    EmulatedDevice& device_;
    std::size_t bytes_;
    std::unique_ptr<std::byte[], AlignedDelete> data_;
};

EmulatedDevice& device_of(ggml_backend_dev_t device) {
    return *static_cast<EmulatedDevice*>(device->context);
}
EmulatedDevice& device_of(ggml_backend_buffer_type_t type) {
    return *static_cast<EmulatedDevice*>(type->context);
}
EmulatedMemory& memory_of(ggml_backend_buffer_t buffer) {
    return *static_cast<EmulatedMemory*>(buffer->context);
}
ggml_backend_t cpu_of(ggml_backend_t backend) {
    return static_cast<ggml_backend_t>(backend->context);
}

ggml_backend_dev_t cpu_device() {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

// Buffers

void buffer_free(ggml_backend_buffer_t buffer) {
    delete &memory_of(buffer);
}

void* buffer_base(ggml_backend_buffer_t buffer) {
    return memory_of(buffer).data();
}

void buffer_memset(ggml_backend_buffer_t, ggml_tensor* tensor, std::uint8_t value, std::size_t offset,
                   std::size_t size) {
    std::memset(static_cast<std::byte*>(tensor->data) + offset, value, size);
}

// The copy itself is part of the transfer's time.
void transfer(LinkClock& link, void* target, const void* source, std::size_t size) {
    const LinkClock::Clock::time_point end = link.book(size, LinkClock::Clock::now());
    std::memcpy(target, source, size);
    link.wait_until(end);
}

void buffer_upload(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, std::size_t offset,
                   std::size_t size) {
    transfer(memory_of(buffer).device().upload_link(), static_cast<std::byte*>(tensor->data) + offset, data,
             size);
}

void buffer_download(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, std::size_t offset,
                     std::size_t size) {
    transfer(memory_of(buffer).device().download_link(), data,
             static_cast<const std::byte*>(tensor->data) + offset, size);
}

bool buffer_copy(ggml_backend_buffer_t buffer, const ggml_tensor* source, ggml_tensor* target) {
    if (source->buffer->buft != buffer->buft) return false;
    std::memcpy(target->data, source->data, ggml_nbytes(source));
    return true;
}

void buffer_clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
    std::memset(memory_of(buffer).data(), value, memory_of(buffer).bytes());
}

ggml_backend_buffer_i buffer_interface() {
    ggml_backend_buffer_i interface {};
    interface.free_buffer = buffer_free;
    interface.get_base = buffer_base;
    interface.memset_tensor = buffer_memset;
    interface.set_tensor = buffer_upload;
    interface.get_tensor = buffer_download;
    interface.cpy_tensor = buffer_copy;
    interface.clear = buffer_clear;
    return interface;
}

// Buffer type

ggml_backend_buffer_t type_allocate(ggml_backend_buffer_type_t type, std::size_t size) {
    EmulatedDevice& device = device_of(type);
    if (!device.take(size)) return nullptr;
    try {
        auto memory = std::make_unique<EmulatedMemory>(device, size);
        return ggml_backend_buffer_init(type, buffer_interface(), memory.release(), size);
    } catch (const std::bad_alloc&) {
        device.give_back(size);
        return nullptr;
    }
}

ggml_backend_buffer_type_i type_interface() {
    ggml_backend_buffer_type_i interface {};
    interface.get_name = [](ggml_backend_buffer_type_t type) { return device_of(type).name(); };
    interface.alloc_buffer = type_allocate;
    interface.get_alignment = [](ggml_backend_buffer_type_t) { return kAlignment; };
    return interface;
}

// Backend: a CPU backend of its own

ggml_guid_t emulated_guid() {
    static ggml_guid guid = {0x78, 0x6c, 0x6d, 0x2d, 0x65, 0x6d, 0x75, 0x30,
                             0x9b, 0x1f, 0x40, 0x52, 0xa7, 0x3e, 0x11, 0xc4};
    return &guid;
}

void backend_free(ggml_backend_t backend) {
    ggml_backend_free(cpu_of(backend));
    delete backend;
}

ggml_backend_t backend_new(ggml_backend_dev_t device, const char* /*params*/) {
    ggml_backend_ptr cpu(ggml_backend_dev_init(cpu_device(), nullptr));
    if (!cpu) return nullptr;
    ggml_backend_i interface {};
    interface.get_name = [](ggml_backend_t backend) { return device_of(backend->device).name(); };
    interface.free = backend_free;
    interface.graph_compute = [](ggml_backend_t backend, ggml_cgraph* graph) {
        return ggml_backend_graph_compute(cpu_of(backend), graph);
    };
    auto backend = std::make_unique<ggml_backend>();
    backend->guid = emulated_guid();
    backend->iface = interface;
    backend->device = device;
    backend->context = cpu.release();
    return backend.release();
}

// Device

void device_memory(ggml_backend_dev_t device, std::size_t* free, std::size_t* total) {
    *total = device_of(device).memory_bytes();
    *free = *total - device_of(device).used_bytes();
}

void device_props(ggml_backend_dev_t device, ggml_backend_dev_props* props) {
    *props = {};
    props->name = device_of(device).name();
    props->description = device_of(device).description();
    props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
    device_memory(device, &props->memory_free, &props->memory_total);
}

ggml_backend_device_i device_interface() {
    ggml_backend_device_i interface {};
    interface.get_name = [](ggml_backend_dev_t device) { return device_of(device).name(); };
    interface.get_description = [](ggml_backend_dev_t device) { return device_of(device).description(); };
    interface.get_memory = device_memory;
    interface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    interface.get_props = device_props;
    interface.init_backend = backend_new;
    interface.get_buffer_type = [](ggml_backend_dev_t device) { return device_of(device).buffer_type(); };
    interface.supports_op = [](ggml_backend_dev_t, const ggml_tensor* op) {
        return ggml_backend_dev_supports_op(cpu_device(), op);
    };
    interface.supports_buft = [](ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
        return type == device_of(device).buffer_type();
    };
    return interface;
}

std::string describe(const EmulatedSettings& settings) {
    char text[128];
    std::snprintf(text, sizeof text, "emulated accelerator: CPU kernels, %.1f GB/s link",
                  settings.link_bytes_per_s / 1e9);
    return text;
}

}  // namespace

EmulatedDevice::EmulatedDevice(const EmulatedSettings& settings, ggml_backend_reg_t registry)
    : memory_bytes_(settings.memory_bytes),
      description_(describe(settings)),
      upload_link_(settings.link_bytes_per_s, settings.link_latency_s),
      download_link_(settings.link_bytes_per_s, settings.link_latency_s),
      device_{device_interface(), registry, this},
      buffer_type_{type_interface(), &device_, this} {}

bool EmulatedDevice::take(std::size_t bytes) {
    std::size_t used = used_bytes_;
    do {
        if (bytes > memory_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
    return true;
}

bool is_emulated(ggml_backend_t backend) {
    return ggml_guid_matches(backend->guid, emulated_guid());
}

void set_emulated_threads(ggml_backend_t backend, int threads) {
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(cpu_device());
    void* address = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
    if (address != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(address)(cpu_of(backend), threads);
}

}  // namespace xlm
