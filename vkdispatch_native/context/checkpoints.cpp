#include "context/checkpoints.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "context/device.hpp"
#include "libs/environment.hpp"
#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr uint32_t kMostFaults = 8;  // addresses, and as many vendor descriptions

// Text that the driver has written into an array, possibly without a terminator.
template <size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return {text, std::find(text, text + kSize, '\0')};
}

std::string hexadecimal(uint64_t value) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

const char* describe_type(VkDeviceFaultAddressTypeEXT type) {
  switch (type) {
    case VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT:
      return "invalid read of address ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT:
      return "invalid write to address ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT:
      return "invalid code at address ";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_UNKNOWN_EXT:
    case VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_INVALID_EXT:
    case VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_FAULT_EXT:
      return "fault of the instruction at address ";
    default:
      return nullptr;
  }
}

// The address lies in the aligned block of `addressPrecision` bytes, a power of two, around it.
std::string describe_address(const VkDeviceFaultAddressInfoEXT& info) {
  const char* what = describe_type(info.addressType);
  if (what == nullptr) {
    return {};
  }
  if (info.addressPrecision <= 1) {
    return what + hexadecimal(info.reportedAddress);
  }
  const VkDeviceAddress first = info.reportedAddress & ~(info.addressPrecision - 1);
  const VkDeviceAddress last = info.reportedAddress | (info.addressPrecision - 1);
  return what + hexadecimal(first) + " to " + hexadecimal(last);
}

void append(std::string& text, const std::string& more) {
  if (!more.empty()) {
    text += (text.empty() ? "" : ", ") + more;
  }
}

}  // namespace

Diagnosis choose_diagnosis(const DeviceProperties& device) {
  const Setting setting = read_setting("VKDISPATCH_CHECKPOINTS");
  Diagnosis found;
  found.faults = setting != Setting::off && device.has_extension(VK_EXT_DEVICE_FAULT_EXTENSION_NAME) &&
                 device.device_fault.deviceFault == VK_TRUE;
  if (device.has_extension(VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME)) {
    found.possible = Diagnosis::Marks::nvidia;
  } else if (device.has_extension(VK_AMD_BUFFER_MARKER_EXTENSION_NAME)) {
    found.possible = Diagnosis::Marks::amd;
  }
  // The validation layer of debug mode reports AMD's markers, which all write to one location, as hazards.
  const bool debug =
      read_setting("VKDISPATCH_DEBUG") == Setting::on && found.possible != Diagnosis::Marks::amd;
  if (setting == Setting::on || (setting == Setting::unset && debug)) {
    found.marks = found.possible;
  }
  return found;
}

Checkpoints::Checkpoints(Device& device) : device_(device) {
  if (device.diagnosis().marks != Diagnosis::Marks::amd) {
    return;
  }
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = kQueues * sizeof(Reached);
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const std::vector<uint32_t>& families = device.families();
  if (families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  VmaAllocationCreateInfo allocation{};
  allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
  allocation.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
  allocation.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VmaAllocationInfo result{};
  check(vmaCreateBuffer(device.allocator(), &info, &allocation, &buffer_, &allocation_, &result),
        "vmaCreateBuffer");
  std::memset(result.pMappedData, 0, info.size);
  words_ = static_cast<const volatile uint32_t*>(result.pMappedData);
}

Checkpoints::~Checkpoints() {
  vmaDestroyBuffer(device_.allocator(), buffer_, allocation_);
}

uint32_t Checkpoints::mark(VkCommandBuffer commands, size_t queue) noexcept {
  const VolkDeviceTable& fn = device_.fn();
  const uint32_t mark = next_.fetch_add(1, std::memory_order_relaxed);
  if (buffer_ == VK_NULL_HANDLE) {
    // Never dereferenced: any pointer value will do.
    fn.vkCmdSetCheckpointNV(commands, reinterpret_cast<const void*>(static_cast<uintptr_t>(mark)));
    return mark;
  }
  if (queue >= kQueues) {
    return 0;
  }
  const VkDeviceSize place = queue * sizeof(Reached);
  fn.vkCmdWriteBufferMarkerAMD(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, buffer_,
                               place + offsetof(Reached, begun), mark);
  fn.vkCmdWriteBufferMarkerAMD(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, buffer_,
                               place + offsetof(Reached, passed), mark);
  return mark;
}

Checkpoints::Reached Checkpoints::read(VkQueue handle, size_t queue, bool lost) const {
  Reached reached;
  if (buffer_ != VK_NULL_HANDLE) {
    if (queue < kQueues) {
      const volatile uint32_t* words = words_ + queue * (sizeof(Reached) / sizeof(uint32_t));
      reached.begun = words[offsetof(Reached, begun) / sizeof(uint32_t)];
      reached.passed = words[offsetof(Reached, passed) / sizeof(uint32_t)];
    }
    return reached;
  }
  if (!lost) {
    return reached;
  }
  const VolkDeviceTable& fn = device_.fn();
  uint32_t count = 0;
  fn.vkGetQueueCheckpointDataNV(handle, &count, nullptr);
  VkCheckpointDataNV empty{};
  empty.sType = VK_STRUCTURE_TYPE_CHECKPOINT_DATA_NV;
  std::vector<VkCheckpointDataNV> found(count, empty);
  fn.vkGetQueueCheckpointDataNV(handle, &count, found.data());
  found.resize(std::min<size_t>(found.size(), count));
  for (const VkCheckpointDataNV& each : found) {
    const auto mark = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(each.pCheckpointMarker));
    if (each.stage == VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT) {
      reached.passed = mark;
    } else if (each.stage == VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT || reached.begun == 0) {
      reached.begun = mark;
    }
  }
  return reached;
}

std::string describe_fault(const Device& device) noexcept {
  try {
    if (!device.diagnosis().faults) {
      return {};
    }
    const auto ask = device.fn().vkGetDeviceFaultInfoEXT;
    VkDeviceFaultCountsEXT counts{};
    counts.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT;
    if (ask(device.handle(), &counts, nullptr) < VK_SUCCESS) {
      return {};
    }
    counts.addressInfoCount = std::min(counts.addressInfoCount, kMostFaults);
    counts.vendorInfoCount = std::min(counts.vendorInfoCount, kMostFaults);
    counts.vendorBinarySize = 0;  // a crash dump for the vendor's tools
    std::vector<VkDeviceFaultAddressInfoEXT> addresses(counts.addressInfoCount);
    std::vector<VkDeviceFaultVendorInfoEXT> vendor(counts.vendorInfoCount);
    VkDeviceFaultInfoEXT info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT;
    info.pAddressInfos = addresses.empty() ? nullptr : addresses.data();
    info.pVendorInfos = vendor.empty() ? nullptr : vendor.data();
    if (ask(device.handle(), &counts, &info) < VK_SUCCESS) {  // VK_INCOMPLETE: there is more
      return {};
    }
    addresses.resize(std::min<size_t>(addresses.size(), counts.addressInfoCount));
    vendor.resize(std::min<size_t>(vendor.size(), counts.vendorInfoCount));
    std::string text = text_of(info.description);
    for (const VkDeviceFaultAddressInfoEXT& each : addresses) {
      append(text, describe_address(each));
    }
    for (const VkDeviceFaultVendorInfoEXT& each : vendor) {
      append(text, text_of(each.description) + " (code " + hexadecimal(each.vendorFaultCode) + ", data " +
                       hexadecimal(each.vendorFaultData) + ")");
    }
    return text;
  } catch (...) {  // out of memory for the text
    return {};
  }
}

}  // namespace vkd
