// A Vulkan layer that provides the extensions for diagnosing a lost device, and loses the device at the
// test's request. DIAGNOSIS lists what it provides, separated by commas: nvidia, amd, fault. The driver's own
// versions of these are hidden. Supports one instance, and one device that is used at a time.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

PFN_vkGetInstanceProcAddr next_instance = nullptr;
PFN_vkGetDeviceProcAddr next_device = nullptr;
// Query it during instance creation: later the loader returns the first layer's function.
PFN_vkEnumerateDeviceExtensionProperties next_enumerate = nullptr;
PFN_vkGetPhysicalDeviceFeatures2 next_features = nullptr;
VkInstance instance = VK_NULL_HANDLE;
VkDevice device = VK_NULL_HANDLE;
std::atomic<bool> lost{false};
std::atomic<uint32_t> top{0}, bottom{0};  // for NVIDIA: how many marks were reached and passed
std::mutex mutex;
std::vector<const void*> marks;
std::string enabled;  // extensions, each followed by a comma
std::string misuse;

bool gives(const char* name) {
  const char* all = std::getenv("DIAGNOSIS");
  return all != nullptr && std::strstr(all, name) != nullptr;
}

void note_misuse(const char* what) {
  std::lock_guard lock(mutex);
  misuse += std::string(what) + "; ";
}

template <typename Function>
Function below(const char* name) {
  return reinterpret_cast<Function>(next_device(device, name));
}

struct Extension {
  const char* name;
  const char* need;  // required entry of DIAGNOSIS
};

constexpr Extension extensions[] = {{VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME, "nvidia"},
                                    {VK_AMD_BUFFER_MARKER_EXTENSION_NAME, "amd"},
                                    {VK_EXT_DEVICE_FAULT_EXTENSION_NAME, "fault"}};

bool is_ours(const char* name) {
  return std::any_of(std::begin(extensions), std::end(extensions),
                     [&](const Extension& each) { return std::strcmp(each.name, name) == 0; });
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* a, VkInstance* made) {
  auto* link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
         link->function != VK_LAYER_LINK_INFO) {
    link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(link->pNext));
  }
  next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(next_instance(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, a, made);
  if (result == VK_SUCCESS) {
    instance = *made;
    next_enumerate = reinterpret_cast<PFN_vkEnumerateDeviceExtensionProperties>(
        next_instance(instance, "vkEnumerateDeviceExtensionProperties"));
    next_features = reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures2>(
        next_instance(instance, "vkGetPhysicalDeviceFeatures2"));
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* a, VkDevice* made) {
  auto* link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO) {
    link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(link->pNext));
  }
  const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;

  // The driver below does not support what this layer provides.
  VkDeviceCreateInfo passed = *info;
  std::vector<const char*> names;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const char* name = info->ppEnabledExtensionNames[i];
    if (is_ours(name)) {
      enabled += std::string(name) + ",";
    } else {
      names.push_back(name);
    }
  }
  passed.enabledExtensionCount = static_cast<uint32_t>(names.size());
  passed.ppEnabledExtensionNames = names.data();
  auto* before = reinterpret_cast<VkBaseOutStructure*>(&passed);
  while (before->pNext != nullptr) {
    if (before->pNext->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT) {
      const auto* features = reinterpret_cast<const VkPhysicalDeviceFaultFeaturesEXT*>(before->pNext);
      enabled += features->deviceFault == VK_TRUE ? "deviceFault," : "";
      enabled += features->deviceFaultVendorBinary == VK_TRUE ? "deviceFaultVendorBinary," : "";
      before->pNext = before->pNext->pNext;
      break;
    }
    before = before->pNext;
  }
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(get(instance, "vkCreateDevice"));
  const VkResult result = create(physical, &passed, a, made);
  if (result == VK_SUCCESS) {
    device = *made;
    next_device = get_device;
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice which, const VkAllocationCallbacks* a) {
  const auto destroy = reinterpret_cast<PFN_vkDestroyDevice>(next_device(which, "vkDestroyDevice"));
  destroy(which, a);
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_extensions(VkPhysicalDevice physical, const char* layer,
                                                    uint32_t* count, VkExtensionProperties* properties) {
  uint32_t number = 0;
  next_enumerate(physical, layer, &number, nullptr);
  std::vector<VkExtensionProperties> all(number);
  next_enumerate(physical, layer, &number, all.data());
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const VkExtensionProperties& each) { return is_ours(each.extensionName); }),
            all.end());
  for (const Extension& each : extensions) {
    if (gives(each.need)) {
      VkExtensionProperties own{};
      std::strcpy(own.extensionName, each.name);
      all.push_back(own);
    }
  }
  if (properties == nullptr) {
    *count = static_cast<uint32_t>(all.size());
    return VK_SUCCESS;
  }
  const uint32_t written = std::min(*count, static_cast<uint32_t>(all.size()));
  std::copy(all.begin(), all.begin() + written, properties);
  *count = written;
  return written < all.size() ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2* features) {
  next_features(physical, features);
  for (auto* each = reinterpret_cast<VkBaseOutStructure*>(features); each != nullptr; each = each->pNext) {
    if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT) {
      auto* own = reinterpret_cast<VkPhysicalDeviceFaultFeaturesEXT*>(each);
      own->deviceFault = own->deviceFaultVendorBinary = gives("fault") ? VK_TRUE : VK_FALSE;
    }
  }
}

VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice which, const VkSemaphoreWaitInfo* info,
                                               uint64_t timeout) {
  return lost ? VK_ERROR_DEVICE_LOST : below<PFN_vkWaitSemaphores>("vkWaitSemaphores")(which, info, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL get_value(VkDevice which, VkSemaphore semaphore, uint64_t* value) {
  const auto next = below<PFN_vkGetSemaphoreCounterValue>("vkGetSemaphoreCounterValue");
  return lost ? VK_ERROR_DEVICE_LOST : next(which, semaphore, value);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* info,
                                      VkFence fence) {
  return lost ? VK_ERROR_DEVICE_LOST : below<PFN_vkQueueSubmit>("vkQueueSubmit")(queue, count, info, fence);
}

VKAPI_ATTR void VKAPI_CALL set_checkpoint(VkCommandBuffer, const void* mark) {
  std::lock_guard lock(mutex);
  marks.push_back(mark);
}

VKAPI_ATTR void VKAPI_CALL get_checkpoints(VkQueue, uint32_t* count, VkCheckpointDataNV* data) {
  if (!lost) {
    note_misuse("checkpoints asked for before the loss");
  }
  if (data == nullptr) {
    *count = 2;
    return;
  }
  for (uint32_t i = 0; i < *count; ++i) {
    if (data[i].sType != VK_STRUCTURE_TYPE_CHECKPOINT_DATA_NV || data[i].pNext != nullptr) {
      note_misuse("VkCheckpointDataNV");
    }
  }
  std::lock_guard lock(mutex);
  const auto mark = [](uint32_t number) {
    return number > 0 && number <= marks.size() ? const_cast<void*>(marks[number - 1]) : nullptr;
  };
  *count = std::min(*count, 2U);
  data[0].stage = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  data[0].pCheckpointMarker = mark(bottom);
  data[1].stage = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
  data[1].pCheckpointMarker = mark(top);
}

// A fill that waits for all earlier commands: each has ended, except for the last.
VKAPI_ATTR void VKAPI_CALL write_marker(VkCommandBuffer commands, VkPipelineStageFlagBits stage,
                                        VkBuffer buffer, VkDeviceSize offset, uint32_t mark) {
  if (offset % 4 != 0 ||
      (stage != VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT && stage != VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)) {
    note_misuse("vkCmdWriteBufferMarkerAMD");
  }
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = all.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  below<PFN_vkCmdPipelineBarrier>("vkCmdPipelineBarrier")(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                                          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &all, 0,
                                                          nullptr, 0, nullptr);
  below<PFN_vkCmdFillBuffer>("vkCmdFillBuffer")(commands, buffer, offset, 4, mark);
}

VKAPI_ATTR VkResult VKAPI_CALL get_fault(VkDevice, VkDeviceFaultCountsEXT* counts,
                                         VkDeviceFaultInfoEXT* info) {
  if (!lost) {
    note_misuse("a fault asked for before the loss");
  }
  if (counts->sType != VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT ||
      (info != nullptr && info->sType != VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT)) {
    note_misuse("vkGetDeviceFaultInfoEXT");
  }
  const VkDeviceFaultAddressInfoEXT addresses[] = {
      {VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT, 0x12345678, 0x1000},
      {VK_DEVICE_FAULT_ADDRESS_TYPE_NONE_EXT, 0, 1},
      {VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT, 0xabc, 1}};
  if (info == nullptr) {
    *counts = {counts->sType, counts->pNext, 3, 1, 4096};
    return VK_SUCCESS;
  }
  if (counts->vendorBinarySize != 0 && info->pVendorBinaryData == nullptr) {
    note_misuse("a vendor binary without room for it");
  }
  std::strcpy(info->description, "page fault");
  counts->addressInfoCount = std::min(counts->addressInfoCount, 3U);
  std::copy(addresses, addresses + counts->addressInfoCount, info->pAddressInfos);
  counts->vendorInfoCount = std::min(counts->vendorInfoCount, 1U);
  if (counts->vendorInfoCount == 1) {
    std::memset(info->pVendorInfos->description, 'x', VK_MAX_DESCRIPTION_SIZE);  // unterminated
    std::memcpy(info->pVendorInfos->description, "MMU", 4);
    info->pVendorInfos->vendorFaultCode = 7;
    info->pVendorInfos->vendorFaultData = 255;
  }
  return VK_INCOMPLETE;  // as if there were no room for the vendor's binary
}

struct Named {
  const char* name;
  PFN_vkVoidFunction function;
  const char* need;  // required entry of DIAGNOSIS
};

#define NAMED(name, function, need) {#name, reinterpret_cast<PFN_vkVoidFunction>(function), need}

PFN_vkVoidFunction own(const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice which, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found != nullptr ? found : next_device(which, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance which, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found != nullptr ? found : next_instance != nullptr ? next_instance(which, name) : nullptr;
}

PFN_vkVoidFunction own(const char* name) {
  static const Named functions[] = {
      NAMED(vkGetInstanceProcAddr, instance_function, ""),
      NAMED(vkGetDeviceProcAddr, device_function, ""),
      NAMED(vkCreateInstance, create_instance, ""),
      NAMED(vkCreateDevice, create_device, ""),
      NAMED(vkDestroyDevice, destroy_device, ""),
      NAMED(vkEnumerateDeviceExtensionProperties, enumerate_extensions, ""),
      NAMED(vkGetPhysicalDeviceFeatures2, get_features, ""),
      NAMED(vkWaitSemaphores, wait_semaphores, ""),
      NAMED(vkGetSemaphoreCounterValue, get_value, ""),
      NAMED(vkQueueSubmit, submit, ""),
      NAMED(vkCmdSetCheckpointNV, set_checkpoint, "nvidia"),
      NAMED(vkGetQueueCheckpointDataNV, get_checkpoints, "nvidia"),
      NAMED(vkCmdWriteBufferMarkerAMD, write_marker, "amd"),
      NAMED(vkGetDeviceFaultInfoEXT, get_fault, "fault"),
  };
  for (const Named& each : functions) {
    if (std::strcmp(each.name, name) == 0 && (*each.need == '\0' || gives(each.need))) {
      return each.function;
    }
  }
  return nullptr;
}

}  // namespace

EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* layer) {
  layer->loaderLayerInterfaceVersion = 2;
  layer->pfnGetInstanceProcAddr = instance_function;
  layer->pfnGetDeviceProcAddr = device_function;
  layer->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

// Called by tests.
EXPORT void diagnosis_lose(int is_lost) {
  lost = is_lost != 0;
}
EXPORT void diagnosis_reach(uint32_t begun, uint32_t passed) {
  top = begun;
  bottom = passed;
}
EXPORT uint32_t diagnosis_marks() {
  std::lock_guard lock(mutex);
  return static_cast<uint32_t>(marks.size());
}
EXPORT const char* diagnosis_enabled() {
  return enabled.c_str();
}
EXPORT const char* diagnosis_misuse() {
  return misuse.c_str();
}
