#include "objects/memory.hpp"

#include <utility>
#include <vector>

#include "libs/error.hpp"

namespace vkd {

namespace {

VmaAllocationCreateInfo allocation_info(const Device& device, MemoryUse use) {
  VmaAllocationCreateInfo info{};
  switch (use) {
    case MemoryUse::device:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
      if (device.host_mapped()) {
        info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
        info.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      }
      break;
    case MemoryUse::upload:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
      info.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      break;
    case MemoryUse::download:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      info.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      break;
  }
  return info;
}

}  // namespace

Memory::Memory(Device& device, VkDeviceSize size, MemoryUse use) : device_(&device), size_(size) {
  if (size > device.max_allocation()) {
    throw Error(ErrorKind::out_of_memory, "a buffer of " + std::to_string(size) + " bytes is more than the " +
                                              std::to_string(device.max_allocation()) +
                                              " bytes that the device allocates at once");
  }
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (use == MemoryUse::device && device.properties().features12.bufferDeviceAddress) {
    info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  }
  // Queues of several families copy from each other's buffers.
  const std::vector<uint32_t>& families = device.families();
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  const VmaAllocationCreateInfo allocation = allocation_info(device, use);
  VmaAllocationInfo result{};
  check(vmaCreateBuffer(device.allocator(), &info, &allocation, &handle_, &allocation_, &result),
        "vmaCreateBuffer");
  mapped_ = static_cast<std::byte*>(result.pMappedData);
}

void Memory::release() noexcept {
  if (handle_ != VK_NULL_HANDLE) {
    vmaDestroyBuffer(device_->allocator(), handle_, allocation_);
    handle_ = VK_NULL_HANDLE;
    mapped_ = nullptr;
  }
}

void Memory::swap(Memory& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(allocation_, other.allocation_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
}

}  // namespace vkd
