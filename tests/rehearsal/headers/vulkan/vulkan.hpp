// The structures of VK_EXT_layer_settings, which ggml's Vulkan backend uses whether a layer is there or not, and which Debian 12's headers
// lack. For tests/rehearsal/gpu.
#pragma once

#include_next <vulkan/vulkan.hpp>

#ifndef VK_EXT_layer_settings

#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT : uint32_t { eBool32 = 0 };

struct LayerSettingEXT {
    const char * layer;
    const char * name;
    LayerSettingTypeEXT type;
    uint32_t count;
    const void * values;
};

struct LayerSettingsCreateInfoEXT {
    explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT> & all)
        : count(static_cast<uint32_t>(all.size())), settings(all.data()) {}

    VkStructureType type = static_cast<VkStructureType>(1000496000);
    const void * next = nullptr;
    uint32_t count;
    const LayerSettingEXT * settings;
};

}  // namespace vk

#endif
