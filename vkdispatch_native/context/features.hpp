// The features of Vulkan that the engine and kernels use, by Vulkan's names.
#pragma once

#include <functional>
#include <vector>

#include "context/device.hpp"

namespace vkd {

struct Feature {
  const char* name;
  VkBool32* value;        // in the DeviceProperties that it was asked of
  const char* extension;  // that it belongs to; null: Vulkan 1.2 has it
  bool required;          // the engine does not run without
};

std::vector<Feature> features_of(DeviceProperties& properties);

// Takes all other features away, those too that are not among features_of().
void keep_features(DeviceProperties& properties, const std::function<bool(const Feature&)>& keep);

}  // namespace vkd
