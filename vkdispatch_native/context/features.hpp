// The Vulkan features that the engine and kernels use, by Vulkan name.
#pragma once

#include <functional>
#include <vector>

#include "context/device.hpp"

namespace vkd {

struct Feature {
  const char* name;
  VkBool32* value;        // points into the queried DeviceProperties
  const char* extension;  // that introduced it; null: core in Vulkan 1.2
  bool required;          // by the engine
};

std::vector<Feature> features_of(DeviceProperties& properties);

// Clears all other features, including those that are not in features_of().
void keep_features(DeviceProperties& properties, const std::function<bool(const Feature&)>& keep);

}  // namespace vkd
