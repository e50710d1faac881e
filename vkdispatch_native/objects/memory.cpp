#include "objects/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr VkMemoryPropertyFlags kDeviceAndHost = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                                 VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                 VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkDeviceSize kLargestPiece = VkDeviceSize{1} << 30;  // of a sparse buffer's memory

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
    case MemoryUse::host:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      info.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      break;
    case MemoryUse::device_host:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      info.requiredFlags = kDeviceAndHost;
      break;
  }
  return info;
}

void check_has_both(const Device& device) {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device.physical(), &memory);
  const bool has = std::any_of(
      memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount,
      [](const VkMemoryType& type) { return (type.propertyFlags & kDeviceAndHost) == kDeviceAndHost; });
  if (!has) {
    throw Error(ErrorKind::out_of_memory,
                "kind: " + std::string(device.properties().core.deviceName) +
                    " has no device memory that the host can access; use kind 'host'");
  }
}

VkBufferCreateInfo buffer_info(const Device& device, VkDeviceSize size, VkBufferUsageFlags usage) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size;
  info.usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  // Queues of several families copy from each other's buffers.
  const std::vector<uint32_t>& families = device.families();
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  return info;
}

VkBufferUsageFlags shader_usage(const Device& device) {
  VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
  if (device.properties().features12.bufferDeviceAddress) {
    usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  }
  return usage;
}

// 0 if the device has no addresses.
VkDeviceAddress address_of(const Device& device, const VkBufferCreateInfo& info, VkBuffer buffer) {
  if ((info.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) == 0) {
    return 0;
  }
  VkBufferDeviceAddressInfo address_info{};
  address_info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address_info.buffer = buffer;
  return device.fn().vkGetBufferDeviceAddress(device.handle(), &address_info);
}

// Returns a host-coherent memory type among these, preferably a cached one.
uint32_t host_type(const Device& device, uint32_t types) {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device.physical(), &memory);
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (const VkMemoryPropertyFlags required : {kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kHost}) {
    for (uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
      if ((types >> type & 1) != 0 && (memory.memoryTypes[type].propertyFlags & required) == required) {
        return type;
      }
    }
  }
  throw Error(ErrorKind::out_of_memory, "no memory type supports host pages");
}

}  // namespace

Memory::Memory(Device& device, VkDeviceSize size, MemoryUse use, bool apart) : device_(&device), size_(size) {
  if (use == MemoryUse::device_host) {
    check_has_both(device);
  }
  // Kernels may access small elements as whole words.
  const VkBufferCreateInfo info = buffer_info(device, (size + 3) & ~VkDeviceSize{3}, shader_usage(device));
  if (size > device.max_allocation() && !allocate_beyond_limit(info, use)) {
    try {
      allocate_sparse(info, use);
    } catch (...) {
      release();
      throw;
    }
  } else if (handle_ == VK_NULL_HANDLE) {
    VmaAllocationCreateInfo allocation = allocation_info(device, use);
    if (apart) {
      allocation.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    }
    allocate(info, allocation);
  }
  if (use == MemoryUse::device) {
    device.count_allocation();
  }
  address_ = address_of(device, info, handle_);
}

Memory::Memory(Device& device, const DevicePages& pages)
    : device_(&device), size_(pages.size()), mapped_(pages.data()) {
  try {
    import(pages.data(), buffer_info(device, pages.size(), 0));
  } catch (...) {
    release();
    throw;
  }
}

Memory::Memory(Device& device, std::byte* data, VkDeviceSize size, std::shared_ptr<void> owner)
    : device_(&device), size_(size), mapped_(data), owner_(std::move(owner)) {
  const VkDeviceSize page = device.import_alignment();
  const VkPhysicalDeviceLimits& limits = device.properties().core.limits;
  const auto address = static_cast<VkDeviceSize>(reinterpret_cast<uintptr_t>(data));
  start_ = address % page;
  const VkDeviceSize alignment =
      std::max(limits.minStorageBufferOffsetAlignment, limits.minUniformBufferOffsetAlignment);
  if (start_ % alignment != 0) {
    throw Error(ErrorKind::invalid_value,
                "the host memory does not begin at a multiple of " + std::to_string(alignment) + " bytes");
  }
  const VkBufferCreateInfo info =
      buffer_info(device, (start_ + size + page - 1) / page * page, shader_usage(device));
  try {
    import(data - start_, info);
    address_ = address_of(device, info, handle_);
  } catch (...) {
    release();
    throw;
  }
  address_ += address_ != 0 ? start_ : 0;
}

Memory::Memory(std::shared_ptr<Memory> whole, VkDeviceSize offset, VkDeviceSize size)
    : device_(whole->device_),
      handle_(whole->handle_),
      size_(size),
      mapped_(whole->mapped_ == nullptr ? nullptr : whole->mapped_ + offset),
      address_(whole->address_ == 0 ? 0 : whole->address_ + offset),
      start_(whole->start_ + offset),
      borrowed_(true),
      whole_(std::move(whole)) {}

void Memory::import(std::byte* pages, VkBufferCreateInfo info) {
  constexpr VkExternalMemoryHandleTypeFlagBits kPages =
      VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const VolkDeviceTable& fn = device_->fn();
  const VkDevice device = device_->handle();
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = kPages;
  info.pNext = &external;
  check_created(fn.vkCreateBuffer(device, &info, nullptr, &handle_), handle_, "vkCreateBuffer");
  VkMemoryRequirements needs{};
  fn.vkGetBufferMemoryRequirements(device, handle_, &needs);
  VkMemoryHostPointerPropertiesEXT possible{};
  possible.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  check(fn.vkGetMemoryHostPointerPropertiesEXT(device, kPages, pages, &possible),
        "vkGetMemoryHostPointerPropertiesEXT");
  VkImportMemoryHostPointerInfoEXT source{};
  source.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  source.handleType = kPages;
  source.pHostPointer = pages;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  if ((info.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0) {
    source.pNext = &flags;
  }
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.pNext = &source;
  allocation.allocationSize = info.size;
  allocation.memoryTypeIndex = host_type(*device_, needs.memoryTypeBits & possible.memoryTypeBits);
  if (needs.size > info.size) {
    throw Error(ErrorKind::out_of_memory, "the host pages are too few for a buffer of their size");
  }
  check_created(fn.vkAllocateMemory(device, &allocation, nullptr, &imported_), imported_, "vkAllocateMemory");
  check(fn.vkBindBufferMemory(device, handle_, imported_, 0), "vkBindBufferMemory");
}

void Memory::allocate(VkBufferCreateInfo info, const VmaAllocationCreateInfo& allocation) {
  if (allocation.usage == VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE && allocation.requiredFlags == 0 &&
      allocate_exported(info, allocation.flags)) {
    return;
  }
  VmaAllocationInfo result{};
  VkResult code = vmaCreateBuffer(device_->allocator(), &info, &allocation, &handle_, &allocation_, &result);
  if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY || code == VK_ERROR_OUT_OF_HOST_MEMORY) {
    device_->free_idle_memory();
    code = vmaCreateBuffer(device_->allocator(), &info, &allocation, &handle_, &allocation_, &result);
  }
  check(code, "vmaCreateBuffer");
  mapped_ = static_cast<std::byte*>(result.pMappedData);
  allocated_ = result.size;
}

// Returns false if the device exports no memory, or has none left for that.
bool Memory::allocate_exported(VkBufferCreateInfo info, VmaAllocationCreateFlags flags) {
  if (device_->export_pool() == VK_NULL_HANDLE) {
    return false;
  }
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  info.pNext = &external;
  VmaAllocationCreateInfo allocation{};
  allocation.pool = device_->export_pool();
  allocation.flags = flags;
  VmaAllocationInfo result{};
  if (vmaCreateBuffer(device_->allocator(), &info, &allocation, &handle_, &allocation_, &result) !=
      VK_SUCCESS) {
    handle_ = VK_NULL_HANDLE;
    allocation_ = VK_NULL_HANDLE;
    return false;
  }
  allocated_ = result.size;
  exported_ = true;
  return true;
}

Memory::Block Memory::block() const noexcept {
  if (whole_) {
    Block block = whole_->block();
    block.offset += start_ - whole_->start_;
    return block;
  }
  if (!exported_ || allocation_ == VK_NULL_HANDLE) {
    return {VK_NULL_HANDLE, 0, 0, false};
  }
  VmaAllocationInfo2 info{};
  vmaGetAllocationInfo2(device_->allocator(), allocation_, &info);
  return {info.allocationInfo.deviceMemory, info.allocationInfo.offset, info.blockSize,
          info.dedicatedMemory == VK_TRUE};
}

// Drivers may support larger allocations than they report (NVIDIA's do), with larger pages: that takes a
// tenth of the time of a sparse buffer's pieces.
bool Memory::allocate_beyond_limit(const VkBufferCreateInfo& info, MemoryUse use) {
  if (use != MemoryUse::device || device_->host_mapped() || info.size > device_->properties().max_buffer) {
    return false;
  }
  if (allocate_exported(info, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT)) {
    return true;
  }
  VmaAllocationCreateInfo allocation = allocation_info(*device_, use);
  allocation.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
  allocation.requiredFlags |= VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  VmaAllocationInfo result{};
  if (vmaCreateBuffer(device_->allocator(), &info, &allocation, &handle_, &allocation_, &result) !=
      VK_SUCCESS) {
    handle_ = VK_NULL_HANDLE;
    allocation_ = VK_NULL_HANDLE;
    return false;
  }
  allocated_ = result.size;
  return true;
}

void Memory::allocate_sparse(VkBufferCreateInfo info, MemoryUse use) {
  Device& device = *device_;
  // The host could not map the pieces contiguously.
  const bool able = use == MemoryUse::device && device.sparse_queue() != nullptr;
  if (!able || size_ > device.properties().core.limits.sparseAddressSpaceSize) {
    throw Error(ErrorKind::out_of_memory, "a buffer of " + std::to_string(size_) + " bytes exceeds the " +
                                              std::to_string(device.max_allocation()) +
                                              " bytes that the device allocates at once");
  }
  info.flags |= VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
  check_created(device.fn().vkCreateBuffer(device.handle(), &info, nullptr, &handle_), handle_,
                "vkCreateBuffer");

  VkMemoryRequirements needs{};
  device.fn().vkGetBufferMemoryRequirements(device.handle(), handle_, &needs);
  const VkDeviceSize most = std::min(device.max_allocation(), kLargestPiece);
  const VkDeviceSize piece = std::max(most / needs.alignment, VkDeviceSize{1}) * needs.alignment;
  VmaAllocationCreateInfo allocation{};
  allocation.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
  allocation.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  std::vector<VkSparseMemoryBind> binds;
  for (VkDeviceSize offset = 0; offset < needs.size; offset += piece) {
    VkMemoryRequirements part = needs;
    part.size = std::min(piece, needs.size - offset);
    VmaAllocation piece = VK_NULL_HANDLE;
    VmaAllocationInfo result{};
    pieces_.reserve(pieces_.size() + 1);
    check(vmaAllocateMemory(device.allocator(), &part, &allocation, &piece, &result), "vmaAllocateMemory");
    pieces_.push_back(piece);
    allocated_ += part.size;
    binds.push_back({offset, part.size, result.deviceMemory, result.offset, 0});
  }
  device.bind_sparse(handle_, binds);
}

void Memory::release() noexcept {
  if (handle_ == VK_NULL_HANDLE) {
    return;
  }
  if (borrowed_) {
    borrowed_ = false;
  } else if (allocation_ != VK_NULL_HANDLE) {
    vmaDestroyBuffer(device_->allocator(), handle_, allocation_);
    allocation_ = VK_NULL_HANDLE;
  } else {
    device_->fn().vkDestroyBuffer(device_->handle(), handle_, nullptr);
    for (VmaAllocation piece : pieces_) {
      vmaFreeMemory(device_->allocator(), piece);
    }
    pieces_.clear();
    device_->fn().vkFreeMemory(device_->handle(), imported_, nullptr);
    imported_ = VK_NULL_HANDLE;
  }
  handle_ = VK_NULL_HANDLE;
  mapped_ = nullptr;
  address_ = 0;
  start_ = 0;
  owner_.reset();
  whole_.reset();
}

void Memory::swap(Memory& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(allocation_, other.allocation_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(allocated_, other.allocated_);
  std::swap(exported_, other.exported_);
  std::swap(address_, other.address_);
  std::swap(pieces_, other.pieces_);
  std::swap(imported_, other.imported_);
  std::swap(start_, other.start_);
  std::swap(owner_, other.owner_);
  std::swap(borrowed_, other.borrowed_);
  std::swap(whole_, other.whole_);
}

}  // namespace vkd
