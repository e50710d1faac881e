#include "stages/frame.hpp"

#include <algorithm>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr VkDeviceSize kUniformBlock = 64 * 1024;
constexpr uint32_t kSetsPerPool = 256;

VkDeviceSize align_up(VkDeviceSize offset, VkDeviceSize alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

Frame::Frame(Device& device, uint32_t queue_family) : device_(device), family_(queue_family) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.queueFamilyIndex = queue_family;
  check(device.fn().vkCreateCommandPool(device.handle(), &info, nullptr, &pool_), "vkCreateCommandPool");
}

Frame::~Frame() {
  for (VkDescriptorPool pool : descriptor_pools_) {
    device_.fn().vkDestroyDescriptorPool(device_.handle(), pool, nullptr);
  }
  device_.fn().vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

VkCommandBuffer Frame::begin(VkCommandBufferUsageFlags usage) {
  if (used_command_buffers_ == command_buffers_.size()) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(device_.fn().vkAllocateCommandBuffers(device_.handle(), &info, &commands),
          "vkAllocateCommandBuffers");
    command_buffers_.push_back(commands);
  }
  VkCommandBuffer commands = command_buffers_[used_command_buffers_++];
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = usage;
  check(device_.fn().vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  return commands;
}

void Frame::end(VkCommandBuffer commands) {
  check(device_.fn().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

VkDescriptorSet Frame::allocate_set(VkDescriptorSetLayout layout) {
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  for (bool fresh = false;; fresh = true) {
    if (used_descriptor_pools_ > 0) {
      info.descriptorPool = descriptor_pools_[used_descriptor_pools_ - 1];
      VkDescriptorSet set = VK_NULL_HANDLE;
      const VkResult result = device_.fn().vkAllocateDescriptorSets(device_.handle(), &info, &set);
      if (result == VK_SUCCESS) {
        return set;
      }
      if (fresh || (result != VK_ERROR_OUT_OF_POOL_MEMORY && result != VK_ERROR_FRAGMENTED_POOL)) {
        check(result, "vkAllocateDescriptorSets");
      }
    }
    if (used_descriptor_pools_ == descriptor_pools_.size()) {
      const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 8 * kSetsPerPool},
                                            {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 2 * kSetsPerPool},
                                            {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 2 * kSetsPerPool},
                                            {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 2 * kSetsPerPool}};
      VkDescriptorPoolCreateInfo pool{};
      pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
      pool.maxSets = kSetsPerPool;
      pool.poolSizeCount = static_cast<uint32_t>(std::size(sizes));
      pool.pPoolSizes = sizes;
      VkDescriptorPool handle = VK_NULL_HANDLE;
      check(device_.fn().vkCreateDescriptorPool(device_.handle(), &pool, nullptr, &handle),
            "vkCreateDescriptorPool");
      descriptor_pools_.push_back(handle);
    }
    ++used_descriptor_pools_;
  }
}

UniformSlice Frame::allocate_uniform(VkDeviceSize size) {
  const VkDeviceSize alignment =
      std::max<VkDeviceSize>(device_.properties().core.limits.minUniformBufferOffsetAlignment, 16);
  VkDeviceSize offset = align_up(uniform_offset_, alignment);
  while (uniform_block_ < uniform_blocks_.size() && offset + size > uniform_blocks_[uniform_block_].size()) {
    ++uniform_block_;
    offset = 0;
  }
  if (uniform_block_ == uniform_blocks_.size()) {
    uniform_blocks_.emplace_back(device_, std::max(size, kUniformBlock), MemoryUse::upload);
    offset = 0;
  }
  uniform_offset_ = offset + size;
  Memory& block = uniform_blocks_[uniform_block_];
  return {block.handle(), offset, block.mapped() + offset};
}

Stopwatch& Frame::stopwatch() {
  if (!stopwatch_) {
    stopwatch_ = std::make_unique<Stopwatch>(device_);
  }
  return *stopwatch_;
}

void Frame::reset() {
  if (used_command_buffers_ > 0) {  // a batch that only replays has none
    check(device_.fn().vkResetCommandPool(device_.handle(), pool_, 0), "vkResetCommandPool");
  }
  for (size_t i = 0; i < used_descriptor_pools_; ++i) {
    check(device_.fn().vkResetDescriptorPool(device_.handle(), descriptor_pools_[i], 0),
          "vkResetDescriptorPool");
  }
  marks_.clear();
  used_command_buffers_ = 0;
  used_descriptor_pools_ = 0;
  uniform_block_ = 0;
  uniform_offset_ = 0;
}

}  // namespace vkd
