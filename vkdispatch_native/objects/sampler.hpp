// How kernels sample an image: a VkSampler, created on every device of the engine.
#pragma once

#include <vector>

#include "context/device.hpp"
#include "objects/resource.hpp"

namespace vkd {

struct SamplerSettings {
  VkFilter mag_filter;
  VkFilter min_filter;
  VkSamplerMipmapMode mip_filter;
  VkSamplerAddressMode address_mode;
  float mip_lod_bias;
  float min_lod;
  float max_lod;
  VkBorderColor border_color;
};

class Sampler final : public Resource {
 public:
  Sampler(const std::vector<Device*>& queue_devices, const SamplerSettings& settings);
  ~Sampler() override { release(); }
  void release() noexcept override;

  VkSampler handle(size_t queue) const noexcept { return handles_[sampler_of_queue_[queue]].handle; }

 private:
  struct Handle {
    Device* device;
    VkSampler handle;
  };
  std::vector<Handle> handles_;
  std::vector<size_t> sampler_of_queue_;
};

}  // namespace vkd
