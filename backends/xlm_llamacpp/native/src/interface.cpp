#include "interface.hpp"

#include <cstring>
#include <memory>

#include "device.hpp"
#include "errors.hpp"
#include "ggml-cpp.h"

namespace xlm {
namespace {

Device& device_of(ggml_backend_dev_t device) {
    return *static_cast<Device*>(device->context);
}
Device& device_of(ggml_backend_buffer_type_t type) {
    return *static_cast<Device*>(type->context);
}
ggml_backend_t inner_of(ggml_backend_t backend) {
    return static_cast<ggml_backend_t>(backend->context);
}

ggml_backend_buffer_type_t inner_type(ggml_backend_buffer_type_t type) {
    return ggml_backend_dev_buffer_type(device_of(type).inner());
}

// Pinned where the wrapped device offers it.
ggml_backend_buffer_type_t host_memory_type(Device& device) {
    ggml_backend_buffer_type_t pinned = ggml_backend_dev_host_buffer_type(device.inner());
    return pinned != nullptr ? pinned : ggml_backend_cpu_buffer_type();
}

// Host weight buffers: the wrapped device's host memory, whose tensors are entered in the store.

struct HostBuffer {
    Device& device;
    ggml_backend_buffer_ptr memory;
    std::vector<const ggml_tensor*> tensors;
};

HostBuffer& host_of(ggml_backend_buffer_t buffer) {
    return *static_cast<HostBuffer*>(buffer->context);
}

void host_free(ggml_backend_buffer_t buffer) {
    const std::unique_ptr<HostBuffer> host(&host_of(buffer));
    for (const ggml_tensor* tensor : host->tensors) host->device.release(tensor);
}

ggml_status host_init_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor) try {
    if (tensor->view_src != nullptr) return GGML_STATUS_SUCCESS;
    host_of(buffer).device.hold(tensor);
    host_of(buffer).tensors.push_back(tensor);
    return GGML_STATUS_SUCCESS;
} catch (const Error& error) {
    report(error.what());
    return GGML_STATUS_FAILED;
}

ggml_backend_buffer_i host_interface() {
    ggml_backend_buffer_i interface {};
    interface.free_buffer = host_free;
    interface.get_base = [](ggml_backend_buffer_t buffer) {
        return ggml_backend_buffer_get_base(host_of(buffer).memory.get());
    };
    interface.init_tensor = host_init_tensor;
    interface.memset_tensor = [](ggml_backend_buffer_t, ggml_tensor* tensor, std::uint8_t value,
                                 std::size_t offset, std::size_t size) {
        std::memset(static_cast<char*>(tensor->data) + offset, value, size);
    };
    interface.set_tensor = [](ggml_backend_buffer_t, ggml_tensor* tensor, const void* data,
                              std::size_t offset, std::size_t size) {
        std::memcpy(static_cast<char*>(tensor->data) + offset, data, size);
    };
    interface.get_tensor = [](ggml_backend_buffer_t, const ggml_tensor* tensor, void* data,
                              std::size_t offset, std::size_t size) {
        std::memcpy(data, static_cast<const char*>(tensor->data) + offset, size);
    };
    interface.clear = [](ggml_backend_buffer_t buffer, std::uint8_t value) {
        ggml_backend_buffer_clear(host_of(buffer).memory.get(), value);
    };
    return interface;
}

ggml_backend_buffer_t allocate_host(ggml_backend_buffer_type_t type, std::size_t size, const char* what,
                                    const ggml_backend_buffer_i& interface) {
    Device& device = device_of(type);
    ggml_backend_buffer_ptr memory(ggml_backend_buft_alloc_buffer(host_memory_type(device), size));
    if (!memory) {
        report("the host has no room for " + std::to_string(size) + " bytes of " + what);
        return nullptr;
    }
    auto host = std::make_unique<HostBuffer>(HostBuffer{device, std::move(memory), {}});
    return ggml_backend_buffer_init(type, interface, host.release(), size);
}

ggml_backend_buffer_t allocate_weights(ggml_backend_buffer_type_t type, std::size_t size) {
    return allocate_host(type, size, "weights", host_interface());
}

ggml_backend_buffer_t allocate_kv(ggml_backend_buffer_type_t type, std::size_t size) {
    ggml_backend_buffer_i interface = host_interface();
    interface.init_tensor = nullptr;
    return allocate_host(type, size, "KV cache", interface);
}

// Streams

ggml_guid_t stream_guid() {
    static ggml_guid guid = {0x78, 0x6c, 0x6d, 0x2d, 0x73, 0x74, 0x72, 0x65,
                             0x61, 0x6d, 0x5b, 0x19, 0xe2, 0x07, 0x8d, 0x33};
    return &guid;
}

void stream_free(ggml_backend_t backend) {
    device_of(backend->device).closed(inner_of(backend));
    ggml_backend_free(inner_of(backend));
    delete backend;
}

// Takes whatever arguments this ggml's graph_optimize has: releases differ.
template <typename... Arguments>
auto forward_optimize(void (*)(ggml_backend_t, Arguments...)) {
    return [](ggml_backend_t backend, Arguments... arguments) {
        inner_of(backend)->iface.graph_optimize(inner_of(backend), arguments...);
    };
}

// Offers only what the wrapped stream offers, so that ggml's own fallbacks stay in force.
ggml_backend_i stream_interface(const ggml_backend_i& inner) {
    ggml_backend_i interface {};
    interface.get_name = [](ggml_backend_t) { return "XLM0"; };
    interface.free = stream_free;
    if (inner.set_tensor_async != nullptr) {
        interface.set_tensor_async = [](ggml_backend_t backend, ggml_tensor* tensor, const void* data,
                                        std::size_t offset, std::size_t size) {
            ggml_backend_tensor_set_async(inner_of(backend), tensor, data, offset, size);
        };
    }
    if (inner.get_tensor_async != nullptr) {
        interface.get_tensor_async = [](ggml_backend_t backend, const ggml_tensor* tensor, void* data,
                                        std::size_t offset, std::size_t size) {
            ggml_backend_tensor_get_async(inner_of(backend), tensor, data, offset, size);
        };
    }
    if (inner.cpy_tensor_async != nullptr) {
        interface.cpy_tensor_async = [](ggml_backend_t source, ggml_backend_t target, const ggml_tensor* from,
                                        ggml_tensor* to) {
            ggml_backend_t inner_target = unwrap(target);
            return inner_target->iface.cpy_tensor_async(unwrap(source), inner_target, from, to);
        };
    }
    if (inner.synchronize != nullptr) {
        interface.synchronize = [](ggml_backend_t backend) { ggml_backend_synchronize(inner_of(backend)); };
    }
    if (inner.event_record != nullptr) {
        interface.event_record = [](ggml_backend_t backend, ggml_backend_event_t event) {
            ggml_backend_event_record(event, inner_of(backend));
        };
    }
    if (inner.event_wait != nullptr) {
        interface.event_wait = [](ggml_backend_t backend, ggml_backend_event_t event) {
            ggml_backend_event_wait(inner_of(backend), event);
        };
    }
    if (inner.graph_optimize != nullptr) {
        interface.graph_optimize = forward_optimize(inner.graph_optimize);
    }
    interface.graph_compute = [](ggml_backend_t backend, ggml_cgraph* graph) {
        return device_of(backend->device).compute(inner_of(backend), graph);
    };
    return interface;
}

ggml_backend_t stream_new(ggml_backend_dev_t wrapper, const char* params) try {
    Device& device = device_of(wrapper);
    ggml_backend_ptr inner(ggml_backend_dev_init(device.inner(), params));
    if (!inner) return nullptr;
    device.opened(inner.get());
    auto stream = std::make_unique<ggml_backend>();
    stream->guid = stream_guid();
    stream->iface = stream_interface(inner->iface);
    stream->device = wrapper;
    stream->context = inner.release();
    return stream.release();
} catch (const Error& error) {
    report(error.what());
    return nullptr;
}

// Device

void device_memory(ggml_backend_dev_t wrapper, std::size_t* free, std::size_t* total) {
    const Device& device = device_of(wrapper);
    std::size_t inner_total = 0;
    ggml_backend_dev_memory(device.inner(), free, &inner_total);
    *total = device.ledger().budget_bytes();
    const std::size_t taken = device.ledger().total_bytes();
    *free = std::min(*free, *total > taken ? *total - taken : 0);
}

void device_props(ggml_backend_dev_t wrapper, ggml_backend_dev_props* props) {
    ggml_backend_dev_get_props(device_of(wrapper).inner(), props);
    props->name = "XLM0";
    props->description = device_of(wrapper).description();
    props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
    // The engine drops a device whose id it has seen.
    props->device_id = nullptr;
    props->caps.buffer_from_host_ptr = false;
    device_memory(wrapper, &props->memory_free, &props->memory_total);
}

bool device_supports_type(ggml_backend_dev_t wrapper, ggml_backend_buffer_type_t type) {
    Device& device = device_of(wrapper);
    if (type == device.host_kv_type()) return false;
    return type == device.buffer_type() || type == device.host_type() ||
           ggml_backend_dev_supports_buft(device.inner(), type);
}

}  // namespace

ggml_backend_t unwrap(ggml_backend_t backend) {
    return ggml_guid_matches(backend->guid, stream_guid()) ? inner_of(backend) : backend;
}

ggml_backend_device_i device_interface() {
    ggml_backend_device_i interface {};
    interface.get_name = [](ggml_backend_dev_t) { return "XLM0"; };
    interface.get_description = [](ggml_backend_dev_t device) { return device_of(device).description(); };
    interface.get_memory = device_memory;
    interface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    interface.get_props = device_props;
    interface.init_backend = stream_new;
    interface.get_buffer_type = [](ggml_backend_dev_t device) { return device_of(device).buffer_type(); };
    interface.get_host_buffer_type = [](ggml_backend_dev_t device) {
        return ggml_backend_dev_host_buffer_type(device_of(device).inner());
    };
    interface.supports_op = [](ggml_backend_dev_t device, const ggml_tensor* op) {
        return device_of(device).supports(op);
    };
    interface.supports_buft = device_supports_type;
    interface.offload_op = [](ggml_backend_dev_t device, const ggml_tensor* op) {
        return !device_of(device).is_planned(op) &&
               ggml_backend_dev_offload_op(device_of(device).inner(), op);
    };
    interface.event_new = [](ggml_backend_dev_t device) {
        return ggml_backend_event_new(device_of(device).inner());
    };
    interface.event_free = [](ggml_backend_dev_t, ggml_backend_event_t event) {
        ggml_backend_event_free(event);
    };
    interface.event_synchronize = [](ggml_backend_dev_t, ggml_backend_event_t event) {
        ggml_backend_event_synchronize(event);
    };
    return interface;
}

ggml_backend_buffer_type_i device_type_interface() {
    ggml_backend_buffer_type_i interface {};
    interface.get_name = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_name(inner_type(type));
    };
    interface.alloc_buffer = [](ggml_backend_buffer_type_t type, std::size_t size) {
        return device_of(type).allocate(size);
    };
    interface.get_alignment = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_get_alignment(inner_type(type));
    };
    interface.get_max_size = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_get_max_size(inner_type(type));
    };
    interface.get_alloc_size = [](ggml_backend_buffer_type_t type, const ggml_tensor* tensor) {
        return ggml_backend_buft_get_alloc_size(inner_type(type), tensor);
    };
    interface.is_host = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_is_host(inner_type(type));
    };
    return interface;
}

ggml_backend_buffer_type_i host_type_interface() {
    ggml_backend_buffer_type_i interface {};
    interface.get_name = [](ggml_backend_buffer_type_t) { return "XLM_Host"; };
    interface.alloc_buffer = allocate_weights;
    interface.get_alignment = [](ggml_backend_buffer_type_t type) {
        return ggml_backend_buft_get_alignment(host_memory_type(device_of(type)));
    };
    interface.is_host = [](ggml_backend_buffer_type_t) { return true; };
    return interface;
}

ggml_backend_buffer_type_i host_kv_type_interface() {
    ggml_backend_buffer_type_i interface = host_type_interface();
    interface.get_name = [](ggml_backend_buffer_type_t) { return "XLM_Host_KV"; };
    interface.alloc_buffer = allocate_kv;
    return interface;
}

}  // namespace xlm
