// The library's entry point: what this process is told to register.

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "control.hpp"
#include "device.hpp"
#include "emulated.hpp"
#include "errors.hpp"
#include "ggml-backend-impl.h"
#include "hang_up.hpp"
#include "installed.hpp"
#include "interface.hpp"
#include "settings.hpp"
#include "start.hpp"
#include "supported.hpp"

namespace xlm {
namespace {

class Registry {
  public:
    // Without devices until they are added.
    Registry() : registry_{GGML_BACKEND_API_VERSION, registry_interface(), this} {}

    // Throws Error for settings that cannot be used.
    void add_emulated(const Settings& settings) {
        if (!settings.emulated || emulated_) return;
        emulated_ = std::make_unique<EmulatedDevice>(*settings.emulated, &registry_);
        devices_.push_back(emulated_->device());
    }

    // Throws Error for a plan that cannot be used.
    void add_planned(const Settings& settings) {
        if (!settings.plan_path) return;
        ggml_backend_dev_t inner = emulated_ && settings.inner_device == emulated_->name()
                                       ? emulated_->device()
                                       : ggml_backend_dev_by_name(settings.inner_device.c_str());
        if (inner == nullptr)
            throw Error("there is no device '" + settings.inner_device + "' to run the plan on");
        device_ = std::make_unique<Device>(Plan::read(*settings.plan_path), inner, &registry_,
                                           settings.corrupt_tensor);
        if (settings.socket_path) {
            Device& device = *device_;
            control_ = std::make_unique<ControlServer>(
                *settings.socket_path, [&device](const std::string& line) { return answer(device, line); });
        }
        devices_.push_back(device_->device());
        extra_types_[0] = device_->host_type();
    }

    ggml_backend_reg_t registry() { return &registry_; }
    const std::vector<ggml_backend_dev_t>& devices() const { return devices_; }
    ggml_backend_buffer_type_t* extra_types() { return extra_types_; }
    ggml_backend_buffer_type_t kv_type(int layer) { return device_->kv_type(layer); }
    bool is_wrapper(ggml_backend_dev_t device) const { return device_ && device == device_->device(); }

  private:
    static ggml_backend_reg_i registry_interface();

    ggml_backend_reg registry_;
    std::unique_ptr<EmulatedDevice> emulated_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<ControlServer> control_;
    std::vector<ggml_backend_dev_t> devices_;
    ggml_backend_buffer_type_t extra_types_[2] = {nullptr, nullptr};
};

Registry& registry_of(ggml_backend_reg_t registry) {
    return *static_cast<Registry*>(registry->context);
}

ggml_backend_buffer_type_t* extra_buffer_types(ggml_backend_dev_t device) {
    static ggml_backend_buffer_type_t none[] = {nullptr};
    Registry& registry = registry_of(device->reg);
    return registry.is_wrapper(device) ? registry.extra_types() : none;
}

ggml_backend_buffer_type_t kv_buffer_type(ggml_backend_dev_t device, int layer) {
    Registry& registry = registry_of(device->reg);
    return registry.is_wrapper(device) ? registry.kv_type(layer) : ggml_backend_dev_buffer_type(device);
}

void set_threads(ggml_backend_t backend, int threads) {
    ggml_backend_t inner = unwrap(backend);
    if (is_emulated(inner)) set_emulated_threads(inner, threads);
}

ggml_backend_reg_i Registry::registry_interface() {
    ggml_backend_reg_i interface {};
    interface.get_name = [](ggml_backend_reg_t) { return "XLM"; };
    interface.get_device_count = [](ggml_backend_reg_t registry) {
        return registry_of(registry).devices().size();
    };
    interface.get_device = [](ggml_backend_reg_t registry, std::size_t index) {
        return registry_of(registry).devices()[index];
    };
    interface.get_proc_address = [](ggml_backend_reg_t, const char* name) -> void* {
        const std::string wanted = name;
        if (wanted == "ggml_backend_dev_get_extra_bufts") return reinterpret_cast<void*>(extra_buffer_types);
        if (wanted == "ggml_backend_dev_get_kv_buft") return reinterpret_cast<void*>(kv_buffer_type);
        if (wanted == "ggml_backend_set_n_threads") return reinterpret_cast<void*>(set_threads);
        return nullptr;
    };
    return interface;
}

// Returns our registry, with the devices that the environment asks for.
ggml_backend_reg_t own_registry(bool planned) {
    static Registry registry;
    refuse_other_ggml(ggml_version());
    const Settings settings = Settings::from_environment();
    // At once: an engine in a step, or held by a pause, would not end in order.
    if (settings.ends_with_stdin) when_hung_up(STDIN_FILENO, [] { ::_exit(EXIT_FAILURE); });
    registry.add_emulated(settings);
    if (planned) registry.add_planned(settings);
    return registry.registry();
}

ggml_backend_reg_t choose_registry() {
    static Registry without_devices;
    try {
        if (const auto installed = Installed::beside_library()) return start(*installed, own_registry);
        return own_registry(true);
    } catch (const Error& error) {
        report(error.what());
        return without_devices.registry();
    }
}

}  // namespace
}  // namespace xlm

// ggml calls this more than once in a process.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
    static ggml_backend_reg_t registry = xlm::choose_registry();
    return registry;
}
