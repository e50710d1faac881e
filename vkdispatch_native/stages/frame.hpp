// The objects that one recording needs until the device has finished: command buffers, descriptor sets,
// uniforms.
#pragma once

#include <memory>
#include <vector>

#include "objects/memory.hpp"
#include "stages/launches.hpp"
#include "stages/timing.hpp"

namespace vkd {

struct UniformSlice {
  VkBuffer buffer;
  VkDeviceSize offset;
  std::byte* mapped;
};

// Scratch memory for descriptors and arguments. It is reused, since every dispatch needs some.
struct DescriptorScratch {
  std::vector<VkDescriptorBufferInfo> buffers;
  std::vector<VkDescriptorImageInfo> images;
  std::vector<VkWriteDescriptorSet> writes;
  std::vector<std::byte> arguments;
  // The state bound by the last dispatch.
  std::vector<Binding> bound;
  std::vector<std::byte> constants;
};

class Frame {
 public:
  Frame(Device& device, uint32_t queue_family);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Begins the next command buffer. Earlier ones of this frame must have been ended.
  VkCommandBuffer begin(VkCommandBufferUsageFlags usage);
  void end(VkCommandBuffer commands);
  VkDescriptorSet allocate_set(VkDescriptorSetLayout layout);
  UniformSlice allocate_uniform(VkDeviceSize size);
  void reset();  // the device must have finished everything recorded here

  Stopwatch& stopwatch();  // created on first use
  bool is_timed() const noexcept { return stopwatch_ != nullptr; }

  Device& device() noexcept { return device_; }
  bool only_copies() const noexcept { return device_.only_copies(family_); }
  DescriptorScratch& scratch() noexcept { return scratch_; }
  std::vector<Mark>& marks() noexcept { return marks_; }  // in order; empty if the device writes none

 private:
  Device& device_;
  const uint32_t family_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> command_buffers_;
  size_t used_command_buffers_ = 0;
  std::vector<VkDescriptorPool> descriptor_pools_;
  size_t used_descriptor_pools_ = 0;
  DescriptorScratch scratch_;
  std::vector<Mark> marks_;
  std::vector<Memory> uniform_blocks_;
  size_t uniform_block_ = 0;
  VkDeviceSize uniform_offset_ = 0;
  std::unique_ptr<Stopwatch> stopwatch_;
};

}  // namespace vkd
