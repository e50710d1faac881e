#include "objects/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "libs/error.hpp"

namespace vkd {

namespace {

void check_settings(const Device& device, const SamplerSettings& s) {
  const bool known = s.mag_filter <= VK_FILTER_LINEAR && s.min_filter <= VK_FILTER_LINEAR &&
                     s.mip_filter <= VK_SAMPLER_MIPMAP_MODE_LINEAR &&
                     s.address_mode <= VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE &&
                     s.border_color <= VK_BORDER_COLOR_INT_OPAQUE_WHITE;
  if (!known) {
    throw Error(ErrorKind::invalid_value, "a filter, address mode or border colour is unknown");
  }
  if (s.address_mode == VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE &&
      !device.properties().features12.samplerMirrorClampToEdge) {
    throw Error(ErrorKind::invalid_value,
                "the device does not support the address mode MIRROR_CLAMP_TO_EDGE");
  }
  // Written so that NaN fails.
  const float most = device.properties().core.limits.maxSamplerLodBias;
  if (!(std::fabs(s.mip_lod_bias) <= most)) {
    throw Error(ErrorKind::invalid_value, "mip_lod_bias: expected -" + std::to_string(most) + " to " +
                                              std::to_string(most) + ", got " +
                                              std::to_string(s.mip_lod_bias));
  }
  if (!(s.min_lod <= s.max_lod)) {
    throw Error(ErrorKind::invalid_value, "min_lod, max_lod: " + std::to_string(s.min_lod) +
                                              " is more than " + std::to_string(s.max_lod));
  }
}

}  // namespace

Sampler::Sampler(const std::vector<Device*>& queue_devices, const SamplerSettings& settings)
    : Resource(queue_devices.size()) {
  VkSamplerCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO;
  info.magFilter = settings.mag_filter;
  info.minFilter = settings.min_filter;
  info.mipmapMode = settings.mip_filter;
  info.addressModeU = info.addressModeV = info.addressModeW = settings.address_mode;
  info.mipLodBias = settings.mip_lod_bias;
  info.minLod = settings.min_lod;
  info.maxLod = settings.max_lod;
  info.borderColor = settings.border_color;
  try {
    for (Device* device : queue_devices) {
      auto same = std::find_if(handles_.begin(), handles_.end(),
                               [device](const Handle& each) { return each.device == device; });
      if (same == handles_.end()) {
        check_settings(*device, settings);
        VkSampler handle = VK_NULL_HANDLE;
        check(device->fn().vkCreateSampler(device->handle(), &info, nullptr, &handle), "vkCreateSampler");
        handles_.push_back({device, handle});
        same = handles_.end() - 1;
      }
      sampler_of_queue_.push_back(static_cast<size_t>(same - handles_.begin()));
    }
  } catch (...) {
    release();
    throw;
  }
}

void Sampler::release() noexcept {
  for (const Handle& each : handles_) {
    each.device->fn().vkDestroySampler(each.device->handle(), each.handle, nullptr);
  }
  handles_.clear();
}

}  // namespace vkd
