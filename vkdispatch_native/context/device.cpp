#include "context/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "libs/error.hpp"

namespace vkd {

namespace {

std::vector<std::string> extension_names(VkPhysicalDevice physical) {
  uint32_t count = 0;
  check(vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> extensions(count);
  check(vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data()),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<std::string> names;
  names.reserve(count);
  for (const VkExtensionProperties& extension : extensions) {
    names.emplace_back(extension.extensionName);
  }
  return names;
}

std::vector<std::string> missing_requirements(const DeviceProperties& p) {
  std::vector<std::string> missing;
  if (p.core.apiVersion < VK_API_VERSION_1_2) {
    missing.emplace_back("Vulkan 1.2 (it has " + std::to_string(VK_API_VERSION_MAJOR(p.core.apiVersion)) +
                         "." + std::to_string(VK_API_VERSION_MINOR(p.core.apiVersion)) + ")");
    return missing;  // the features below are only reported from 1.2 on
  }
  if (!p.features12.timelineSemaphore) {
    missing.emplace_back("timelineSemaphore");
  }
  if (!p.features12.scalarBlockLayout) {
    missing.emplace_back("scalarBlockLayout");
  }
  const bool compute = std::any_of(p.queue_families.begin(), p.queue_families.end(), [](const auto& family) {
    return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
  });
  if (!compute) {
    missing.emplace_back("a compute queue");
  }
  return missing;
}

// A mapped copy of device memory is worth reading only when the CPU caches it.
bool prefers_host_mapped(VkPhysicalDevice physical, VkPhysicalDeviceType type) {
  if (type != VK_PHYSICAL_DEVICE_TYPE_CPU && type != VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) {
    return false;
  }
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  constexpr VkMemoryPropertyFlags wanted =
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  return std::any_of(memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount,
                     [](const VkMemoryType& t) { return (t.propertyFlags & wanted) == wanted; });
}

// Whether the driver reads its clock and the monotonic one at one instant.
bool has_calibrated_clock(VkPhysicalDevice physical, const DeviceProperties& properties) {
  if (!properties.has_extension(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) ||
      std::getenv("VKDISPATCH_NO_CALIBRATION") != nullptr) {
    return false;
  }
  uint32_t count = 0;
  vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, &count, nullptr);
  std::vector<VkTimeDomainEXT> domains(count);
  vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, &count, domains.data());
  const auto has = [&](VkTimeDomainEXT domain) {
    return std::find(domains.begin(), domains.end(), domain) != domains.end();
  };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

// Every shader feature that codegen can use and the device has; nothing else is switched on.
VkPhysicalDeviceFeatures wanted_features(const VkPhysicalDeviceFeatures& has) {
  VkPhysicalDeviceFeatures features{};
  features.shaderFloat64 = has.shaderFloat64;
  features.shaderInt64 = has.shaderInt64;
  features.shaderInt16 = has.shaderInt16;
  features.shaderStorageImageExtendedFormats = has.shaderStorageImageExtendedFormats;
  features.sparseBinding = has.sparseBinding;
  return features;
}

VkPhysicalDeviceVulkan11Features wanted_features(const VkPhysicalDeviceVulkan11Features& has) {
  VkPhysicalDeviceVulkan11Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features.storageBuffer16BitAccess = has.storageBuffer16BitAccess;
  features.uniformAndStorageBuffer16BitAccess = has.uniformAndStorageBuffer16BitAccess;
  features.storagePushConstant16 = has.storagePushConstant16;
  features.variablePointers = has.variablePointers;
  features.variablePointersStorageBuffer = has.variablePointersStorageBuffer;
  return features;
}

VkPhysicalDeviceVulkan12Features wanted_features(const VkPhysicalDeviceVulkan12Features& has) {
  VkPhysicalDeviceVulkan12Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.timelineSemaphore = VK_TRUE;
  features.scalarBlockLayout = VK_TRUE;
  features.shaderFloat16 = has.shaderFloat16;
  features.samplerMirrorClampToEdge = has.samplerMirrorClampToEdge;
  features.shaderInt8 = has.shaderInt8;
  features.storageBuffer8BitAccess = has.storageBuffer8BitAccess;
  features.uniformAndStorageBuffer8BitAccess = has.uniformAndStorageBuffer8BitAccess;
  features.storagePushConstant8 = has.storagePushConstant8;
  features.shaderBufferInt64Atomics = has.shaderBufferInt64Atomics;
  features.shaderSharedInt64Atomics = has.shaderSharedInt64Atomics;
  features.shaderSubgroupExtendedTypes = has.shaderSubgroupExtendedTypes;
  features.bufferDeviceAddress = has.bufferDeviceAddress;
  features.hostQueryReset = has.hostQueryReset;
  features.vulkanMemoryModel = has.vulkanMemoryModel;
  features.vulkanMemoryModelDeviceScope = has.vulkanMemoryModelDeviceScope;
  return features;
}

}  // namespace

bool DeviceProperties::has_extension(const char* name) const {
  return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
}

DeviceProperties query_properties(VkPhysicalDevice physical) {
  DeviceProperties p;
  p.extensions = extension_names(physical);
  vkGetPhysicalDeviceProperties(physical, &p.core);
  vkGetPhysicalDeviceFeatures(physical, &p.features);

  if (p.core.apiVersion >= VK_API_VERSION_1_1) {
    p.subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    p.id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    p.id.pNext = &p.subgroup;
    p.maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    p.maintenance3.pNext = &p.id;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &p.maintenance3;
    vkGetPhysicalDeviceProperties2(physical, &properties);
  }
  if (p.core.apiVersion >= VK_API_VERSION_1_2) {
    p.features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    p.features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    p.features12.pNext = &p.features11;
    if (p.has_extension(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME)) {
      p.atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
      p.features11.pNext = &p.atomic_float;
      if (p.has_extension(VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME)) {
        p.atomic_float2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT;
        p.atomic_float.pNext = &p.atomic_float2;
      }
    }
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &p.features12;
    vkGetPhysicalDeviceFeatures2(physical, &features);
  }

  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  p.queue_families.resize(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, p.queue_families.data());
  p.missing = missing_requirements(p);
  // The chains point into this very function's frame or object: cut them before the struct is copied.
  p.maintenance3.pNext = p.id.pNext = p.features12.pNext = p.features11.pNext = nullptr;
  p.atomic_float.pNext = nullptr;
  return p;
}

Device::Device(VkInstance instance, VkPhysicalDevice physical, const std::vector<uint32_t>& queue_families,
               bool force_staging)
    : Device() {
  physical_ = physical;
  properties_ = query_properties(physical);
  if (!properties_.missing.empty()) {
    std::string text;
    for (const std::string& item : properties_.missing) {
      text += (text.empty() ? "" : ", ") + item;
    }
    throw Error(ErrorKind::vulkan, std::string(properties_.core.deviceName) + " lacks " + text);
  }
  host_mapped_ = !force_staging && prefers_host_mapped(physical, properties_.core.deviceType);
  create(queue_families);
  create_allocator(instance);
}

// The families of each queue's twins. None where host memory and device memory are one: nothing is to be
// gained. VKDISPATCH_FORCE_TRANSFER_QUEUE, for tests: 0 does without, 1 makes one and 2 makes two for each
// queue, on its own family where there is no other.
std::vector<std::vector<uint32_t>> Device::transfer_families(
    const std::vector<uint32_t>& queue_families) const {
  const char* setting = std::getenv("VKDISPATCH_FORCE_TRANSFER_QUEUE");
  const std::string force = setting != nullptr ? setting : "";
  const bool forced = force == "1" || force == "2";
  std::vector<std::vector<uint32_t>> twins;
  if (force == "0") {
    return twins;
  }
  if (!host_mapped_) {
    constexpr VkQueueFlags kOthers = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT |
                                     VK_QUEUE_VIDEO_DECODE_BIT_KHR | VK_QUEUE_VIDEO_ENCODE_BIT_KHR;
    for (uint32_t family = 0; family < properties_.queue_families.size(); ++family) {
      const VkQueueFamilyProperties& p = properties_.queue_families[family];
      if ((p.queueFlags & VK_QUEUE_TRANSFER_BIT) != 0 && (p.queueFlags & kOthers) == 0) {
        const size_t count = forced ? (force == "2" ? 2 : 1) : std::min(p.queueCount, 2U);
        twins.assign(queue_families.size(), std::vector<uint32_t>(count, family));
        return twins;
      }
    }
  }
  if (forced) {
    for (uint32_t family : queue_families) {
      twins.emplace_back(force == "2" ? 2 : 1, family);
    }
  }
  return twins;
}

void Device::create(const std::vector<uint32_t>& queue_families) {
  std::map<uint32_t, uint32_t> wanted;  // family -> how many queues
  for (uint32_t family : queue_families) {
    if (family >= properties_.queue_families.size()) {
      throw Error(ErrorKind::invalid_value, "queue family " + std::to_string(family) + " does not exist");
    }
    if ((properties_.queue_families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
      throw Error(ErrorKind::invalid_value, "queue family " + std::to_string(family) + " cannot compute");
    }
    wanted[family] += 1;
  }
  const std::vector<std::vector<uint32_t>> twins = transfer_families(queue_families);
  for (const std::vector<uint32_t>& pair : twins) {
    for (uint32_t family : pair) {
      wanted[family] += 1;
    }
  }
  std::vector<VkDeviceQueueCreateInfo> queue_infos;
  uint32_t most = 0;
  for (auto& [family, count] : wanted) {
    count = std::min(count, properties_.queue_families[family].queueCount);
    most = std::max(most, count);
    families_.push_back(family);
  }
  const std::vector<float> priorities(most, 1.0f);
  for (const auto& [family, count] : wanted) {
    VkDeviceQueueCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    info.queueFamilyIndex = family;
    info.queueCount = count;
    info.pQueuePriorities = priorities.data();
    queue_infos.push_back(info);
  }

  VkPhysicalDeviceFeatures core = wanted_features(properties_.features);
  VkPhysicalDeviceVulkan11Features features11 = wanted_features(properties_.features11);
  VkPhysicalDeviceVulkan12Features features12 = wanted_features(properties_.features12);
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float = properties_.atomic_float;
  features11.pNext = &features12;

  std::vector<const char*> extensions;
  push_descriptors_ = properties_.has_extension(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME) &&
                      std::getenv("VKDISPATCH_NO_PUSH_DESCRIPTORS") == nullptr;
  if (push_descriptors_) {
    extensions.push_back(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  }
  calibrated_ = has_calibrated_clock(physical_, properties_);
  if (calibrated_) {
    extensions.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  }
  if (properties_.has_extension("VK_KHR_portability_subset")) {
    extensions.push_back("VK_KHR_portability_subset");
  }
  VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2 = properties_.atomic_float2;
  if (properties_.has_extension(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME)) {
    extensions.push_back(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
    atomic_float.shaderImageFloat32Atomics = VK_FALSE;
    atomic_float.shaderImageFloat32AtomicAdd = VK_FALSE;
    atomic_float.sparseImageFloat32Atomics = VK_FALSE;
    atomic_float.sparseImageFloat32AtomicAdd = VK_FALSE;
    features12.pNext = &atomic_float;
    if (properties_.has_extension(VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME);
      atomic_float2.shaderImageFloat32AtomicMinMax = VK_FALSE;
      atomic_float2.sparseImageFloat32AtomicMinMax = VK_FALSE;
      atomic_float.pNext = &atomic_float2;
    }
  }

  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features11;
  info.queueCreateInfoCount = static_cast<uint32_t>(queue_infos.size());
  info.pQueueCreateInfos = queue_infos.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  info.pEnabledFeatures = &core;
  check(vkCreateDevice(physical_, &info, nullptr, &handle_), "vkCreateDevice");
  volkLoadDeviceTable(&fn_, handle_);

  std::map<std::pair<uint32_t, uint32_t>, std::mutex*> mutexes;
  std::map<uint32_t, uint32_t> next;
  auto take = [&](uint32_t family) {
    const uint32_t index = next[family]++ % wanted[family];
    std::mutex*& mutex = mutexes[{family, index}];
    if (mutex == nullptr) {
      mutex = queue_mutexes_.emplace_back(std::make_unique<std::mutex>()).get();
    }
    QueueHandle queue{VK_NULL_HANDLE, family, mutex};
    fn_.vkGetDeviceQueue(handle_, family, index, &queue.handle);
    return queue;
  };
  for (uint32_t family : queue_families) {
    queues_.push_back(take(family));
  }
  for (const std::vector<uint32_t>& pair : twins) {
    std::vector<QueueHandle>& taken = transfer_queues_.emplace_back();
    std::transform(pair.begin(), pair.end(), std::back_inserter(taken), take);
  }
}

void Device::create_allocator(VkInstance instance) {
  VmaVulkanFunctions functions{};
  functions.vkGetInstanceProcAddr = vkGetInstanceProcAddr;
  functions.vkGetDeviceProcAddr = vkGetDeviceProcAddr;
  VmaAllocatorCreateInfo info{};
  info.vulkanApiVersion = VK_API_VERSION_1_2;
  info.instance = instance;
  info.physicalDevice = physical_;
  info.device = handle_;
  info.pVulkanFunctions = &functions;
  if (properties_.features12.bufferDeviceAddress) {
    info.flags |= VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  }
  check(vmaCreateAllocator(&info, &allocator_), "vmaCreateAllocator");
}

const QueueHandle* Device::sparse_queue() const noexcept {
  if (!properties_.features.sparseBinding) {
    return nullptr;
  }
  const auto found = std::find_if(queues_.begin(), queues_.end(), [this](const QueueHandle& queue) {
    return (properties_.queue_families[queue.family].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT) != 0;
  });
  return found == queues_.end() ? nullptr : &*found;
}

void Device::bind_sparse(VkBuffer buffer, const std::vector<VkSparseMemoryBind>& binds) {
  const QueueHandle& queue = *sparse_queue();
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  check(fn_.vkCreateFence(handle_, &fence_info, nullptr, &fence), "vkCreateFence");

  const VkSparseBufferMemoryBindInfo whole{buffer, static_cast<uint32_t>(binds.size()), binds.data()};
  VkBindSparseInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO;
  info.bufferBindCount = 1;
  info.pBufferBinds = &whole;
  VkResult result = VK_SUCCESS;
  {
    std::lock_guard lock(*queue.mutex);
    result = fn_.vkQueueBindSparse(queue.handle, 1, &info, fence);
  }
  if (result == VK_SUCCESS) {
    result = fn_.vkWaitForFences(handle_, 1, &fence, VK_TRUE, ~uint64_t{0});
  }
  fn_.vkDestroyFence(handle_, fence, nullptr);
  check(result, "vkQueueBindSparse");
}

Device::~Device() {
  if (allocator_ != VK_NULL_HANDLE) {
    vmaDestroyAllocator(allocator_);
  }
  if (handle_ != VK_NULL_HANDLE) {
    fn_.vkDestroyDevice(handle_, nullptr);
  }
}

}  // namespace vkd
