#include "context/device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "context/features.hpp"
#include "context/foreign.hpp"
#include "libs/environment.hpp"
#include "libs/error.hpp"
#include "libs/pages.hpp"

namespace vkd {

namespace {

// Fractions of memory that may be kept for reuse: of device memory, and of memory that host programs need as
// well.
constexpr VkDeviceSize kIdleShare = 4;
constexpr VkDeviceSize kSharedIdleShare = 16;

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

bool has_memory_of_host(VkPhysicalDeviceType type) noexcept {
  return type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
}

// Reading mapped device memory is only worthwhile if the CPU caches it.
bool prefers_host_mapped(VkPhysicalDevice physical, VkPhysicalDeviceType type) {
  if (!has_memory_of_host(type)) {
    return false;
  }
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  constexpr VkMemoryPropertyFlags required =
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  return std::any_of(memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount,
                     [](const VkMemoryType& t) { return (t.propertyFlags & required) == required; });
}

// Whether the driver can read its clock and the monotonic clock at one instant.
bool has_calibrated_clock(VkPhysicalDevice physical, const DeviceProperties& properties) {
  // read the variable first: an invalid value is refused on every device
  if (read_switch("VKDISPATCH_NO_CALIBRATION") ||
      !properties.has_extension(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) {
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

// Returns the alignment that imported host memory needs; 0 if the device imports none.
VkDeviceSize host_import_alignment(VkPhysicalDevice physical, const DeviceProperties& properties) {
  if (!properties.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) ||
      read_switch("VKDISPATCH_NO_HOST_IMPORT")) {
    return 0;
  }
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{};
  host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &host;
  vkGetPhysicalDeviceProperties2(physical, &all);
  return host.minImportedHostPointerAlignment;
}

// Whether buffers in the device's own memory, and timelines, can be exported as opaque file descriptors.
bool can_export(VkPhysicalDevice physical, const DeviceProperties& properties) {
  if (read_switch("VKDISPATCH_NO_EXPORT") ||
      !properties.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) ||
      !properties.has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME)) {
    return false;
  }
  VkPhysicalDeviceExternalBufferInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  buffer.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkExternalBufferProperties memory{};
  memory.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  vkGetPhysicalDeviceExternalBufferProperties(physical, &buffer, &memory);
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkPhysicalDeviceExternalSemaphoreInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO;
  semaphore.pNext = &type;
  semaphore.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkExternalSemaphoreProperties timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES;
  vkGetPhysicalDeviceExternalSemaphoreProperties(physical, &semaphore, &timeline);
  const VkExternalMemoryFeatureFlags features = memory.externalMemoryProperties.externalMemoryFeatures;
  return (features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT) != 0 &&
         (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) == 0 &&
         (timeline.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) != 0;
}

// One mutex per VkQueue of the process: engines on a foreign device may share queues. The table is never
// destroyed: a daemon thread may still create engines during process exit.
std::shared_ptr<std::mutex> shared_mutex(VkQueue queue) {
  static std::mutex guard;
  static auto& known = *new std::map<VkQueue, std::weak_ptr<std::mutex>>;
  std::lock_guard lock(guard);
  std::weak_ptr<std::mutex>& entry = known[queue];
  std::shared_ptr<std::mutex> found = entry.lock();
  if (!found) {
    found = std::make_shared<std::mutex>();
    entry = found;
  }
  return found;
}

// Repeats a wait until the driver has the memory for it, for at most a second.
template <typename Wait>
VkResult persist(Wait wait) noexcept {
  constexpr int kTries = 100;
  VkResult result = wait();
  for (int i = 1; i < kTries && is_shortage(result); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    result = wait();
  }
  return result;
}

bool contains(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Prepends the feature structures of available extensions to the chain `next`, and returns these extensions.
void* chain_features(DeviceProperties& p, void* next, std::vector<const char*>* used = nullptr) {
  const auto add = [&](const char* extension, auto& structure) {
    if (p.has_extension(extension)) {
      structure.pNext = next;
      next = &structure;
      if (used != nullptr) {
        used->push_back(extension);
      }
      return true;
    }
    return false;
  };
  if (add(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, p.atomic_float)) {
    add(VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME, p.atomic_float2);
  }
  if (add(kCooperativeMatrix, p.cooperative_matrix)) {
    add(kCooperativeMatrix2, p.cooperative_matrix2);
  }
  add(kBfloat16, p.bfloat16);
  add(VK_EXT_DEVICE_FAULT_EXTENSION_NAME, p.device_fault);
  return next;
}

}  // namespace

bool DeviceProperties::has_extension(const char* name) const {
  return contains(extensions, name);
}

DeviceProperties query_properties(VkInstance instance, VkPhysicalDevice physical) {
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
    VkPhysicalDeviceMaintenance4Properties maintenance4{};
    maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
    if (p.core.apiVersion >= VK_API_VERSION_1_3 || p.has_extension(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
      p.subgroup.pNext = &maintenance4;
    }
    vkGetPhysicalDeviceProperties2(physical, &properties);
    p.max_buffer = maintenance4.maxBufferSize;
  }
  if (p.core.apiVersion >= VK_API_VERSION_1_2) {
    p.features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    p.features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    p.atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    p.atomic_float2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT;
    p.device_fault.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT;
    p.features12.pNext = &p.features11;
    p.features11.pNext = chain_features(p, nullptr);
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &p.features12;
    vkGetPhysicalDeviceFeatures2(physical, &features);
    if (p.cooperative_matrix.cooperativeMatrix) {
      p.matrix_products = matrix_products(
          instance, physical, p.cooperative_matrix2.cooperativeMatrixFlexibleDimensions != VK_FALSE);
    }
  }

  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  p.queue_families.resize(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, p.queue_families.data());
  p.missing = missing_requirements(p);
  // The chains point into this function's frame or object: clear them before the struct is copied.
  p.maintenance3.pNext = p.id.pNext = p.subgroup.pNext = p.features12.pNext = p.features11.pNext = nullptr;
  p.atomic_float.pNext = p.atomic_float2.pNext = nullptr;
  p.cooperative_matrix.pNext = p.cooperative_matrix2.pNext = p.bfloat16.pNext = nullptr;
  p.device_fault.pNext = nullptr;
  return p;
}

void Device::inspect(VkInstance instance, VkPhysicalDevice physical, bool force_staging) {
  physical_ = physical;
  properties_ = query_properties(instance, physical);
  if (!properties_.missing.empty()) {
    std::string text;
    for (const std::string& item : properties_.missing) {
      text += (text.empty() ? "" : ", ") + item;
    }
    throw Error(ErrorKind::vulkan, std::string(properties_.core.deviceName) + " lacks " + text);
  }
  host_mapped_ = !force_staging && prefers_host_mapped(physical, properties_.core.deviceType);
}

Device::Device(VkInstance instance, VkPhysicalDevice physical, const std::vector<uint32_t>& queue_families,
               const std::vector<std::string>& extensions, bool force_staging)
    : Device() {
  inspect(instance, physical, force_staging);
  create(queue_families, extensions);
  create_allocator(instance);
}

Device::Device(VkInstance instance, const ForeignDevice& foreign, bool force_staging) : Device() {
  inspect(instance, foreign.physical, force_staging);
  for (const std::string& name : foreign.extensions) {
    if (!properties_.has_extension(name.c_str())) {
      throw Error(ErrorKind::invalid_value, std::string(properties_.core.deviceName) + " has no " + name);
    }
  }
  properties_.extensions = foreign.extensions;
  keep_features(properties_, [&](const Feature& feature) {
    return feature.required ||
           (contains(foreign.features, feature.name) &&
            (feature.extension == nullptr || properties_.has_extension(feature.extension)));
  });
  choose_extensions();
  borrowed_ = true;
  handle_ = foreign.handle;
  check_device(handle_, foreign.physical);
  volkLoadDeviceTable(&fn_, handle_);
  take_queues(foreign.queues);
  create_allocator(instance);
}

// Selects among the available extensions those that the engine uses.
void Device::choose_extensions() {
  push_descriptors_ = !read_switch("VKDISPATCH_NO_PUSH_DESCRIPTORS") &&
                      properties_.has_extension(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  calibrated_ = has_calibrated_clock(physical_, properties_);
  import_alignment_ = host_import_alignment(physical_, properties_);
  exports_ = can_export(physical_, properties_) && !host_mapped_;
  imports_pages_ = import_alignment_ > 0 && import_alignment_ <= DevicePages::kAlignment;
  diagnosis_ = choose_diagnosis(properties_);
  if (!diagnosis_.faults) {
    std::vector<std::string>& names = properties_.extensions;
    names.erase(std::remove(names.begin(), names.end(), VK_EXT_DEVICE_FAULT_EXTENSION_NAME), names.end());
    properties_.device_fault.deviceFault = VK_FALSE;
  }
}

// The families of each queue's transfer queues. Empty if host memory and device memory are the same, since
// nothing would be gained. For tests, VKDISPATCH_FORCE_TRANSFER_QUEUE=0 disables them, and 1 or 2 creates one
// or two for each queue, on its own family if there is no other.
std::vector<std::vector<uint32_t>> Device::transfer_families(
    const std::vector<uint32_t>& queue_families) const {
  const std::string force = read_choice("VKDISPATCH_FORCE_TRANSFER_QUEUE", {"0", "1", "2"});
  const bool forced = force == "1" || force == "2";
  std::vector<std::vector<uint32_t>> families;
  if (force == "0") {
    return families;
  }
  if (!host_mapped_) {
    constexpr VkQueueFlags kOthers = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT |
                                     VK_QUEUE_VIDEO_DECODE_BIT_KHR | VK_QUEUE_VIDEO_ENCODE_BIT_KHR;
    for (uint32_t family = 0; family < properties_.queue_families.size(); ++family) {
      const VkQueueFamilyProperties& p = properties_.queue_families[family];
      if ((p.queueFlags & VK_QUEUE_TRANSFER_BIT) != 0 && (p.queueFlags & kOthers) == 0) {
        const size_t count = forced ? (force == "2" ? 2 : 1) : std::min(p.queueCount, 2U);
        families.assign(queue_families.size(), std::vector<uint32_t>(count, family));
        return families;
      }
    }
  }
  if (forced) {
    for (uint32_t family : queue_families) {
      families.emplace_back(force == "2" ? 2 : 1, family);
    }
  }
  return families;
}

void Device::check_family(uint32_t family) const {
  if (family >= properties_.queue_families.size()) {
    throw Error(ErrorKind::invalid_value, "queue family " + std::to_string(family) + " does not exist");
  }
  if ((properties_.queue_families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    throw Error(ErrorKind::invalid_value, "queue family " + std::to_string(family) + " cannot compute");
  }
}

std::mutex* Device::mutex_of(VkQueue queue) {
  std::shared_ptr<std::mutex> mutex = shared_mutex(queue);
  if (std::find(queue_mutexes_.begin(), queue_mutexes_.end(), mutex) == queue_mutexes_.end()) {
    queue_mutexes_.push_back(mutex);
  }
  return mutex.get();
}

void Device::take_queues(const std::vector<ForeignDevice::Queue>& queues) {
  for (const ForeignDevice::Queue& foreign : queues) {
    check_family(foreign.family);
    const bool by_index = foreign.handle == VK_NULL_HANDLE;
    QueueHandle queue{foreign.handle, foreign.family, by_index ? foreign.index : kUnknownIndex, nullptr};
    if (by_index) {
      fn_.vkGetDeviceQueue(handle_, foreign.family, foreign.index, &queue.handle);
    }
    if (queue.handle == VK_NULL_HANDLE) {
      throw Error(ErrorKind::invalid_value, "the device was created without queue " +
                                                std::to_string(foreign.index) + " of family " +
                                                std::to_string(foreign.family));
    }
    check_queue(queue.handle, handle_);
    queue.mutex = mutex_of(queue.handle);
    queues_.push_back(queue);
    if (std::find(families_.begin(), families_.end(), foreign.family) == families_.end()) {
      families_.push_back(foreign.family);
    }
  }
}

void Device::create(const std::vector<uint32_t>& queue_families, std::vector<std::string> extensions) {
  std::map<uint32_t, uint32_t> queue_counts;  // family -> how many queues
  for (uint32_t family : queue_families) {
    check_family(family);
    queue_counts[family] += 1;
  }
  const std::vector<std::vector<uint32_t>> families = transfer_families(queue_families);
  for (const std::vector<uint32_t>& pair : families) {
    for (uint32_t family : pair) {
      queue_counts[family] += 1;
    }
  }
  std::vector<VkDeviceQueueCreateInfo> queue_infos;
  uint32_t most = 0;
  for (auto& [family, count] : queue_counts) {
    count = std::min(count, properties_.queue_families[family].queueCount);
    most = std::max(most, count);
    families_.push_back(family);
  }
  const std::vector<float> priorities(most, 1.0f);
  for (const auto& [family, count] : queue_counts) {
    VkDeviceQueueCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    info.queueFamilyIndex = family;
    info.queueCount = count;
    info.pQueuePriorities = priorities.data();
    queue_infos.push_back(info);
  }

  // Enables every feature that kernels can use and the device has, and no others.
  keep_features(properties_, [](const Feature&) { return true; });
  choose_extensions();
  const auto enable = [&](const char* name) {
    if (!contains(extensions, name)) {
      extensions.emplace_back(name);
    }
  };
  if (push_descriptors_) {
    enable(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  }
  if (calibrated_) {
    enable(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  }
  if (imports_pages_) {
    enable(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  if (properties_.has_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) {
    enable(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  }
  if (exports_) {
    enable(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    enable(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  }
  if (diagnosis_.marks == Diagnosis::Marks::nvidia) {
    enable(VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME);
  } else if (diagnosis_.marks == Diagnosis::Marks::amd) {
    enable(VK_AMD_BUFFER_MARKER_EXTENSION_NAME);
  }
  if (properties_.has_extension("VK_KHR_portability_subset")) {
    enable("VK_KHR_portability_subset");
  }
  DeviceProperties on = properties_;
  on.features11.pNext = &on.features12;
  std::vector<const char*> used;
  on.features12.pNext = chain_features(on, nullptr, &used);
  // SPIR-V 1.6 keeps the size of workgroups where only maintenance4 allows it to be specialized
  VkPhysicalDeviceMaintenance4Features maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES;
  maintenance4.maintenance4 = VK_TRUE;
  if (properties_.core.apiVersion >= VK_API_VERSION_1_3) {
    maintenance4.pNext = on.features12.pNext;
    on.features12.pNext = &maintenance4;
  }
  std::for_each(used.begin(), used.end(), enable);
  std::vector<const char*> names(extensions.size());
  std::transform(extensions.begin(), extensions.end(), names.begin(),
                 [](const std::string& name) { return name.c_str(); });

  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &on.features11;
  info.queueCreateInfoCount = static_cast<uint32_t>(queue_infos.size());
  info.pQueueCreateInfos = queue_infos.data();
  info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  info.pEnabledFeatures = &on.features;
  check_created(vkCreateDevice(physical_, &info, nullptr, &handle_), handle_, "vkCreateDevice");
  volkLoadDeviceTable(&fn_, handle_);
  properties_.extensions = extensions;

  std::map<uint32_t, uint32_t> next;
  auto take = [&](uint32_t family) {
    const uint32_t index = next[family]++ % queue_counts[family];
    QueueHandle queue{VK_NULL_HANDLE, family, index, nullptr};
    fn_.vkGetDeviceQueue(handle_, family, index, &queue.handle);
    queue.mutex = mutex_of(queue.handle);
    return queue;
  };
  for (uint32_t family : queue_families) {
    queues_.push_back(take(family));
  }
  for (const std::vector<uint32_t>& pair : families) {
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
  if (properties_.has_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) {
    info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  }
  VmaDeviceMemoryCallbacks callbacks{};
  callbacks.pfnFree = [](VmaAllocator, uint32_t, VkDeviceMemory memory, VkDeviceSize, void* device) {
    auto* self = static_cast<Device*>(device);
    std::lock_guard lock(self->blocks_mutex_);
    const auto found = self->blocks_.find(memory);
    if (found != self->blocks_.end()) {
      self->freed_blocks_.push_back(found->second);
      self->blocks_.erase(found);
    }
  };
  callbacks.pUserData = this;
  info.pDeviceMemoryCallbacks = exports_ ? &callbacks : nullptr;
  check(vmaCreateAllocator(&info, &allocator_), "vmaCreateAllocator");
  if (exports_) {
    create_export_pool();
  }

  if (diagnosis_.marks != Diagnosis::Marks::none) {
    checkpoints_ = std::make_unique<Checkpoints>(*this);
  }

  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  const VkPhysicalDeviceType type = properties_.core.deviceType;
  const VkDeviceSize share = has_memory_of_host(type) ? kSharedIdleShare : kIdleShare;
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap) {
    if ((memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
      most_idle_bytes_ = std::max(most_idle_bytes_, memory.memoryHeaps[heap].size / share);
    }
  }
}

void Device::create_export_pool() {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.pNext = &external;
  buffer.size = 1 << 16;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (properties_.features12.bufferDeviceAddress) {
    buffer.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  }
  VmaAllocationCreateInfo allocation{};
  allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
  allocation.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  export_info_.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  export_info_.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VmaPoolCreateInfo pool{};
  pool.pMemoryAllocateNext = &export_info_;
  if (vmaFindMemoryTypeIndexForBufferInfo(allocator_, &buffer, &allocation, &pool.memoryTypeIndex) !=
          VK_SUCCESS ||
      vmaCreatePool(allocator_, &pool, &export_pool_) != VK_SUCCESS) {
    export_pool_ = VK_NULL_HANDLE;
    exports_ = false;
  }
}

uint64_t Device::block_number(VkDeviceMemory memory) {
  std::lock_guard lock(blocks_mutex_);
  uint64_t& number = blocks_[memory];
  if (number == 0) {
    number = ++last_block_;
  }
  return number;
}

std::vector<uint64_t> Device::take_freed_blocks() {
  std::lock_guard lock(blocks_mutex_);
  return std::exchange(freed_blocks_, {});
}

int Device::export_memory(VkDeviceMemory memory) {
  VkMemoryGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = memory;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int file = -1;
  check(fn_.vkGetMemoryFdKHR(handle_, &info, &file), "vkGetMemoryFdKHR");
  return file;
}

int Device::export_semaphore(VkSemaphore semaphore) {
  VkSemaphoreGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR;
  info.semaphore = semaphore;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  int file = -1;
  check(fn_.vkGetSemaphoreFdKHR(handle_, &info, &file), "vkGetSemaphoreFdKHR");
  return file;
}

VkSemaphore Device::create_timeline(bool exported) {
  VkExportSemaphoreCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO;
  external.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.pNext = exported ? &external : nullptr;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check_created(fn_.vkCreateSemaphore(handle_, &info, nullptr, &semaphore), semaphore, "vkCreateSemaphore");
  return semaphore;
}

VkSemaphore Device::incoming(size_t number) {
  std::lock_guard lock(incoming_mutex_);
  VkSemaphore& semaphore = incoming_[number];
  if (semaphore == VK_NULL_HANDLE) {
    semaphore = create_timeline(true);
  }
  return semaphore;
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
    result = wait_for(fence);
  }
  fn_.vkDestroyFence(handle_, fence, nullptr);
  check(result, "vkQueueBindSparse");
}

bool Device::wait_idle() noexcept {
  const VkResult result = persist([this] { return wait_once(); });
  return result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST;
}

VkResult Device::wait_for(VkFence fence) noexcept {
  return persist([&] { return fn_.vkWaitForFences(handle_, 1, &fence, VK_TRUE, ~uint64_t{0}); });
}

VkResult Device::wait_once() noexcept {
  if (borrowed_) {  // its other queues may not be waited for
    for (const QueueHandle& queue : queues_) {
      std::lock_guard lock(*queue.mutex);
      const VkResult result = fn_.vkQueueWaitIdle(queue.handle);
      if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST) {
        return result;
      }
    }
    return VK_SUCCESS;
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& mutex : queue_mutexes_) {
    locks.emplace_back(*mutex);
  }
  return fn_.vkDeviceWaitIdle(handle_);
}

Device::~Device() {
  if (allocator_ != VK_NULL_HANDLE) {
    checkpoints_.reset();
    for (const auto& [number, semaphore] : incoming_) {
      fn_.vkDestroySemaphore(handle_, semaphore, nullptr);
    }
    vmaDestroyPool(allocator_, export_pool_);
    vmaDestroyAllocator(allocator_);
  }
  if (handle_ != VK_NULL_HANDLE && !borrowed_) {
    fn_.vkDestroyDevice(handle_, nullptr);
  }
}

}  // namespace vkd
