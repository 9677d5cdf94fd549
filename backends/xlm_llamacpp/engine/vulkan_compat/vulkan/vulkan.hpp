// Older Vulkan headers (Debian 12 has 1.3.239) lack VK_EXT_layer_settings, which ggml-vulkan names to set
// up the validation layer. Values are those of the Vulkan registry; newer headers pass through untouched.

#pragma once

#include_next <vulkan/vulkan.hpp>

#ifndef VK_EXT_layer_settings

#include <cstdint>
#include <vector>

namespace VULKAN_HPP_NAMESPACE {

enum class LayerSettingTypeEXT : std::uint32_t {
    eBool32  = 0,
    eInt32   = 1,
    eInt64   = 2,
    eUint32  = 3,
    eUint64  = 4,
    eFloat32 = 5,
    eFloat64 = 6,
    eString  = 7,
};

struct LayerSettingEXT {
    const char *        pLayerName;
    const char *        pSettingName;
    LayerSettingTypeEXT type;
    std::uint32_t       valueCount;
    const void *        pValues;
};

struct LayerSettingsCreateInfoEXT {
    StructureType           sType = static_cast<StructureType>(1000496000);
    const void *            pNext = nullptr;
    std::uint32_t           settingCount;
    const LayerSettingEXT * pSettings;

    explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT> & settings)
        : settingCount(static_cast<std::uint32_t>(settings.size())), pSettings(settings.data()) {}
};

} // namespace VULKAN_HPP_NAMESPACE

#endif
