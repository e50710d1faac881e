// A Vulkan layer that makes chosen calls fail, and watches that nothing leaks or ends while the device uses
// it.
//
// It stands between the loader and the driver, and is driven by the functions `fault_*` at the end, through
// ctypes. A call that is made to fail does not reach the driver: a submit that fails has submitted nothing.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <vulkan/vk_layer.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Functions that return a VkResult and take an instance or a physical device, or a device, queue or command
// buffer.
#define INSTANCE_FUNCTIONS(F)                                           \
  F(vkEnumeratePhysicalDevices)                                         \
  F(vkEnumerateDeviceExtensionProperties)                               \
  F(vkGetPhysicalDeviceImageFormatProperties)                           \
  F(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)                     \
  F(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)                  \
  F(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV) \
  F(vkCreateDebugUtilsMessengerEXT)
#define DEVICE_FUNCTIONS(F)         \
  F(vkAllocateMemory)               \
  F(vkMapMemory)                    \
  F(vkFlushMappedMemoryRanges)      \
  F(vkInvalidateMappedMemoryRanges) \
  F(vkBindBufferMemory)             \
  F(vkBindBufferMemory2)            \
  F(vkBindImageMemory)              \
  F(vkBindImageMemory2)             \
  F(vkCreateBuffer)                 \
  F(vkCreateImage)                  \
  F(vkCreateImageView)              \
  F(vkCreateSampler)                \
  F(vkCreateShaderModule)           \
  F(vkCreatePipelineCache)          \
  F(vkGetPipelineCacheData)         \
  F(vkCreateComputePipelines)       \
  F(vkCreatePipelineLayout)         \
  F(vkCreateDescriptorSetLayout)    \
  F(vkCreateDescriptorPool)         \
  F(vkResetDescriptorPool)          \
  F(vkAllocateDescriptorSets)       \
  F(vkCreateCommandPool)            \
  F(vkResetCommandPool)             \
  F(vkAllocateCommandBuffers)       \
  F(vkBeginCommandBuffer)           \
  F(vkEndCommandBuffer)             \
  F(vkCreateQueryPool)              \
  F(vkGetQueryPoolResults)          \
  F(vkGetCalibratedTimestampsEXT)   \
  F(vkCreateFence)                  \
  F(vkGetFenceStatus)               \
  F(vkResetFences)                  \
  F(vkWaitForFences)                \
  F(vkCreateSemaphore)              \
  F(vkGetSemaphoreCounterValue)     \
  F(vkSignalSemaphore)              \
  F(vkWaitSemaphores)               \
  F(vkQueueSubmit)                  \
  F(vkQueueBindSparse)              \
  F(vkQueueWaitIdle)                \
  F(vkDeviceWaitIdle)               \
  F(vkGetDeviceFaultInfoEXT)        \
  F(vkGetMemoryFdKHR)               \
  F(vkGetSemaphoreFdKHR)            \
  F(vkGetMemoryHostPointerPropertiesEXT)
// What destroys an object: the function, the object's type, and what made it.
#define DESTROYERS(F)                                                                 \
  F(vkFreeMemory, VkDeviceMemory, vkAllocateMemory)                                   \
  F(vkDestroyBuffer, VkBuffer, vkCreateBuffer)                                        \
  F(vkDestroyImage, VkImage, vkCreateImage)                                           \
  F(vkDestroyImageView, VkImageView, vkCreateImageView)                               \
  F(vkDestroySampler, VkSampler, vkCreateSampler)                                     \
  F(vkDestroyShaderModule, VkShaderModule, vkCreateShaderModule)                      \
  F(vkDestroyPipelineCache, VkPipelineCache, vkCreatePipelineCache)                   \
  F(vkDestroyPipeline, VkPipeline, vkCreateComputePipelines)                          \
  F(vkDestroyPipelineLayout, VkPipelineLayout, vkCreatePipelineLayout)                \
  F(vkDestroyDescriptorSetLayout, VkDescriptorSetLayout, vkCreateDescriptorSetLayout) \
  F(vkDestroyDescriptorPool, VkDescriptorPool, vkCreateDescriptorPool)                \
  F(vkDestroyCommandPool, VkCommandPool, vkCreateCommandPool)                         \
  F(vkDestroyQueryPool, VkQueryPool, vkCreateQueryPool)                               \
  F(vkDestroyFence, VkFence, vkCreateFence)                                           \
  F(vkDestroySemaphore, VkSemaphore, vkCreateSemaphore)

namespace {

enum Id : size_t {
#define F(name) id_##name,
  INSTANCE_FUNCTIONS(F) DEVICE_FUNCTIONS(F)
#undef F
      id_vkCreateInstance,
  id_vkCreateDevice,
  kFunctions
};

constexpr const char* kNames[] = {
#define F(name) #name,
    INSTANCE_FUNCTIONS(F) DEVICE_FUNCTIONS(F)
#undef F
        "vkCreateInstance",
    "vkCreateDevice"};

// Those that a lost device makes fail from then on (Vulkan 1.3, "Lost Device").
constexpr bool tells_of_loss(size_t id) {
  switch (id) {
    case id_vkQueueSubmit:
    case id_vkQueueBindSparse:
    case id_vkQueueWaitIdle:
    case id_vkDeviceWaitIdle:
    case id_vkWaitForFences:
    case id_vkGetFenceStatus:
    case id_vkWaitSemaphores:
    case id_vkGetSemaphoreCounterValue:
    case id_vkGetQueryPoolResults:
      return true;
    default:
      return false;
  }
}

// ---- what is to fail

struct Rule {
  size_t id = kFunctions;
  uint64_t skip = 0;   // calls that succeed before
  uint64_t times = 0;  // how many calls fail; 0: all
  VkResult result = VK_SUCCESS;
  bool sticky = false;  // a lost device stays lost
  bool settles =
      false;  // a device that is lost has stopped: what runs on it is waited for before it is reported
};

std::mutex rule_mutex;
Rule rule;                                // under rule_mutex
std::atomic<uint64_t> calls[kFunctions];  // all, failed ones too
std::atomic<uint64_t> failures_made{0};

std::mutex problems_mutex;
std::vector<std::string> problems;

void report(std::string text) {
  std::lock_guard lock(problems_mutex);
  problems.push_back(std::move(text));
}

// ---- devices and instances

// A loader's dispatchable handle begins with the address of its dispatch table, which all of a device share.
template <typename Handle>
void* key_of(Handle handle) {
  return *reinterpret_cast<void**>(handle);
}

struct Submission {
  std::vector<VkCommandPool> pools;
  std::vector<std::pair<VkSemaphore, uint64_t>> signals;
  VkFence fence = VK_NULL_HANDLE;
};

struct InstanceState {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr next_address = nullptr;
  PFN_GetPhysicalDeviceProcAddr next_physical_address = nullptr;
  PFN_vkDestroyInstance destroy = nullptr;
  PFN_vkVoidFunction next[kFunctions] = {};
};

struct DeviceState {
  VkDevice handle = VK_NULL_HANDLE;
  PFN_vkGetDeviceProcAddr next_address = nullptr;
  PFN_vkDestroyDevice destroy = nullptr;
  PFN_vkVoidFunction next[kFunctions] = {};
  std::unordered_map<std::string, PFN_vkVoidFunction> destroyers;
  std::atomic<bool> lost{false};

  std::mutex mutex;                                       // of what follows
  std::unordered_map<uint64_t, size_t> live[kFunctions];  // handles, which a driver may give twice
  std::unordered_map<VkCommandBuffer, VkCommandPool> pool_of;
  std::deque<Submission> pending;

  template <typename Function>
  Function real(size_t id) const {
    return reinterpret_cast<Function>(next[id]);
  }
};

std::mutex states_mutex;
std::unordered_map<void*, std::shared_ptr<InstanceState>> instances;
std::unordered_map<void*, std::shared_ptr<DeviceState>> devices;
int64_t leaked[kFunctions] = {};  // objects of devices that were destroyed before them; under states_mutex
int64_t live_devices = 0;
int64_t live_instances = 0;

template <typename Map>
auto find(const Map& map, void* key) {
  std::lock_guard lock(states_mutex);
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

template <typename Handle>
uint64_t number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// Under the device's mutex.
bool is_done(DeviceState& device, const Submission& work) {
  if (work.fence != VK_NULL_HANDLE) {
    return device.real<PFN_vkGetFenceStatus>(id_vkGetFenceStatus)(device.handle, work.fence) != VK_NOT_READY;
  }
  for (const auto& [semaphore, value] : work.signals) {
    uint64_t now = 0;
    device.real<PFN_vkGetSemaphoreCounterValue>(id_vkGetSemaphoreCounterValue)(device.handle, semaphore,
                                                                               &now);
    return now >= value;
  }
  return true;  // nothing tells
}

// Under the device's mutex.
void forget_done(DeviceState& device) {
  for (size_t i = device.pending.size(); i-- > 0;) {
    if (is_done(device, device.pending[i])) {
      device.pending.erase(device.pending.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Under the device's mutex. Whether something that the device was given and has not finished is of this kind.
template <typename Test>
void check_unused(DeviceState& device, const char* function, const Test& uses) {
  forget_done(device);
  for (const Submission& work : device.pending) {
    if (uses(work)) {
      report(std::string(function) + ": the device still uses it");
      return;
    }
  }
}

void settle(DeviceState& device) {
  for (int round = 0; round < 2000; ++round) {  // two seconds: it may wait for the host
    {
      std::lock_guard lock(device.mutex);
      forget_done(device);
      if (device.pending.empty()) {
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// ---- what each function does besides: before the driver is asked, and after it succeeded

template <size_t id, typename... Args>
void before_call(DeviceState&, Args...) {}

template <size_t id>
void before_call(DeviceState& device, VkDevice, VkCommandPool pool, VkCommandPoolResetFlags) {
  if constexpr (id == id_vkResetCommandPool) {
    std::lock_guard lock(device.mutex);
    check_unused(device, "vkResetCommandPool", [&](const Submission& work) {
      for (VkCommandPool each : work.pools) {
        if (each == pool) {
          return true;
        }
      }
      return false;
    });
  }
}

template <size_t id, typename... Args>
void after_call(DeviceState&, Args...) {}

template <size_t id, typename Info, typename Handle>
void after_call(DeviceState& device, VkDevice, const Info*, const VkAllocationCallbacks*, Handle* made) {
  std::lock_guard lock(device.mutex);
  ++device.live[id][number(*made)];
}

template <size_t id>
void after_call(DeviceState& device, VkDevice, VkPipelineCache, uint32_t count,
                const VkComputePipelineCreateInfo*, const VkAllocationCallbacks*, VkPipeline* made) {
  std::lock_guard lock(device.mutex);
  for (uint32_t i = 0; i < count; ++i) {
    ++device.live[id][number(made[i])];
  }
}

template <size_t id>
void after_call(DeviceState& device, VkDevice, const VkCommandBufferAllocateInfo* info,
                VkCommandBuffer* made) {
  std::lock_guard lock(device.mutex);
  for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
    device.pool_of[made[i]] = info->commandPool;
  }
}

// The work as the layer knows it; made before the submit, for it may be done right after.
Submission describe(DeviceState& device, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  Submission work;
  work.fence = fence;
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t i = 0; i < infos[s].commandBufferCount; ++i) {
      const auto found = device.pool_of.find(infos[s].pCommandBuffers[i]);
      if (found != device.pool_of.end()) {
        work.pools.push_back(found->second);
      }
    }
    for (auto* next = static_cast<const VkBaseInStructure*>(infos[s].pNext); next != nullptr;
         next = next->pNext) {
      if (next->sType == VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) {
        const auto& values = *reinterpret_cast<const VkTimelineSemaphoreSubmitInfo*>(next);
        for (uint32_t i = 0; i < values.signalSemaphoreValueCount; ++i) {
          work.signals.emplace_back(infos[s].pSignalSemaphores[i], values.pSignalSemaphoreValues[i]);
        }
      }
    }
  }
  return work;
}

template <size_t id>
void after_call(DeviceState& device, VkQueue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  std::lock_guard lock(device.mutex);
  Submission work = describe(device, count, infos, fence);
  forget_done(device);
  device.pending.push_back(std::move(work));
}

// ---- failing

// What a call that fails leaves behind: "undefined contents" where the specification does not say more.
template <typename... Args>
void spoil(Args...) {}

template <typename Info, typename Handle>
void spoil(VkDevice, const Info*, const VkAllocationCallbacks*, Handle* made) {
  *made = reinterpret_cast<Handle>(uintptr_t{0xbad});
}

void spoil(VkDevice, VkPipelineCache, uint32_t count, const VkComputePipelineCreateInfo*,
           const VkAllocationCallbacks*, VkPipeline* made) {
  std::fill_n(made, count, VkPipeline{VK_NULL_HANDLE});
}

void spoil(VkDevice, const VkCommandBufferAllocateInfo* info, VkCommandBuffer* made) {
  std::fill_n(made, info->commandBufferCount, VkCommandBuffer{VK_NULL_HANDLE});
}

void spoil(VkDevice, const VkDescriptorSetAllocateInfo* info, VkDescriptorSet* made) {
  std::fill_n(made, info->descriptorSetCount, VkDescriptorSet{VK_NULL_HANDLE});
}

struct Fault {
  VkResult result = VK_SUCCESS;
  bool sticky = false;
  bool settles = false;
};

// What a call of a function comes to; VK_SUCCESS: what the driver makes of it. `may_be` tells whether a
// result is one that the specification has for the call's arguments.
template <typename Test>
Fault decide(size_t id, const Test& may_be) {
  calls[id].fetch_add(1);
  std::lock_guard lock(rule_mutex);
  if (rule.id != id || !may_be(rule.result)) {
    return {};
  }
  if (rule.skip > 0) {
    --rule.skip;
    return {};
  }
  const Fault fault{rule.result, rule.sticky, rule.settles};
  if (rule.times > 0 && --rule.times == 0) {
    rule = Rule{};
  }
  failures_made.fetch_add(1);
  return fault;
}

template <size_t id, typename Function>
struct Hook;

template <size_t id, typename... Args>
struct Hook<id, VkResult(VKAPI_PTR*)(Args...)> {
  using Function = VkResult(VKAPI_PTR*)(Args...);

  static VKAPI_ATTR VkResult VKAPI_CALL on_instance(Args... args) {
    const auto state = find(instances, key_of(std::get<0>(std::tuple<Args...>(args...))));
    const Fault fault = decide_for(args...);
    if (fault.result < VK_SUCCESS) {
      return fault.result;
    }
    const VkResult result = reinterpret_cast<Function>(state->next[id])(args...);
    return result == VK_SUCCESS ? fault.result : result;
  }

  static VKAPI_ATTR VkResult VKAPI_CALL on_device(Args... args) {
    const auto state = find(devices, key_of(std::get<0>(std::tuple<Args...>(args...))));
    Fault fault = decide_for(args...);
    if (fault.result == VK_SUCCESS && tells_of_loss(id) && state->lost.load()) {
      fault.result = VK_ERROR_DEVICE_LOST;
    }
    if (fault.result == VK_ERROR_DEVICE_LOST) {
      lose(*state, fault);
      if constexpr (id == id_vkQueueWaitIdle || id == id_vkDeviceWaitIdle || id == id_vkWaitForFences) {
        reinterpret_cast<Function>(state->next[id])(
            args...);  // "must return in finite time", and have waited
      }
    }
    // Of the results that are no errors, these two stand for a device that takes its time.
    if (fault.result < VK_SUCCESS || fault.result == VK_NOT_READY || fault.result == VK_TIMEOUT) {
      spoil(args...);
      return fault.result;
    }
    before_call<id>(*state, args...);
    const VkResult result = reinterpret_cast<Function>(state->next[id])(args...);
    if (result >= VK_SUCCESS) {
      after_call<id>(*state, args...);
    }
    return result == VK_SUCCESS ? fault.result : result;
  }

 private:
  // Who waits for ever is never told that the time is over, and who asks how many never that there are more.
  static Fault decide_for(Args... args) {
    const auto last = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
    return decide(id, [&](VkResult result) {
      if constexpr (std::is_pointer_v<decltype(last)>) {
        return result != VK_INCOMPLETE || last != nullptr;
      } else if constexpr (id == id_vkWaitSemaphores || id == id_vkWaitForFences) {
        return result != VK_TIMEOUT || last != ~uint64_t{0};
      } else {
        return true;
      }
    });
  }

  static void lose(DeviceState& state, const Fault& fault) {
    if (fault.settles) {
      settle(state);
    }
    if (fault.sticky) {
      state.lost.store(true);
    }
  }
};

template <typename Handle>
void note_end(DeviceState& device, const char* function, size_t creator, Handle handle) {
  if (handle == VK_NULL_HANDLE) {
    return;
  }
  std::lock_guard lock(device.mutex);
  auto& live = device.live[creator];
  const auto found = live.find(number(handle));
  if (found == live.end()) {
    report(std::string(function) + ": there is no such object, or it was destroyed before");
    return;
  }
  if (--found->second == 0) {
    live.erase(found);
  }
  if constexpr (std::is_same_v<Handle, VkCommandPool>) {
    check_unused(device, function, [&](const Submission& work) {
      for (VkCommandPool each : work.pools) {
        if (each == handle) {
          return true;
        }
      }
      return false;
    });
    for (auto each = device.pool_of.begin(); each != device.pool_of.end();) {
      each = each->second == handle ? device.pool_of.erase(each) : std::next(each);
    }
  } else if constexpr (std::is_same_v<Handle, VkSemaphore>) {
    const auto uses = [&](const Submission& work) {
      for (const auto& signal : work.signals) {
        if (signal.first == handle) {
          return true;
        }
      }
      return false;
    };
    check_unused(device, function, uses);
    for (size_t i = device.pending.size(); i-- > 0;) {  // its value cannot be asked for any more
      if (uses(device.pending[i])) {
        device.pending.erase(device.pending.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  } else if constexpr (std::is_same_v<Handle, VkFence>) {
    check_unused(device, function, [&](const Submission& work) { return work.fence == handle; });
    for (size_t i = device.pending.size(); i-- > 0;) {
      if (device.pending[i].fence == handle) {
        device.pending.erase(device.pending.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
}

#define F(name, Type, creator)                                                    \
  VKAPI_ATTR void VKAPI_CALL end_##name(VkDevice device, Type object,             \
                                        const VkAllocationCallbacks* allocator) { \
    const auto state = find(devices, key_of(device));                             \
    const auto next = reinterpret_cast<PFN_##name>(state->destroyers.at(#name));  \
    note_end(*state, #name, id_##creator, object);                                \
    next(device, object, allocator);                                              \
  }
DESTROYERS(F)
#undef F

// ---- making and destroying instances and devices

template <typename Link>
Link* find_link(const void* next, VkStructureType type) {
  for (auto* each = static_cast<const VkBaseInStructure*>(next); each != nullptr; each = each->pNext) {
    auto* link = reinterpret_cast<Link*>(const_cast<VkBaseInStructure*>(each));
    if (each->sType == type && link->function == VK_LAYER_LINK_INFO) {
      return link;
    }
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator, VkInstance* made) {
  auto* link =
      find_link<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  const Fault fault = decide(id_vkCreateInstance, [](VkResult) { return true; });
  if (fault.result != VK_SUCCESS) {
    return fault.result;
  }
  auto state = std::make_shared<InstanceState>();
  state->next_address = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  state->next_physical_address = link->u.pLayerInfo->pfnNextGetPhysicalDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(state->next_address(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, allocator, made);
  if (result != VK_SUCCESS) {
    return result;
  }
  state->handle = *made;
  state->destroy = reinterpret_cast<PFN_vkDestroyInstance>(state->next_address(*made, "vkDestroyInstance"));
#define F(name) state->next[id_##name] = state->next_address(*made, #name);
  INSTANCE_FUNCTIONS(F)
#undef F
  std::lock_guard lock(states_mutex);
  instances[key_of(*made)] = state;
  ++live_instances;
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) {
    return;
  }
  const auto state = find(instances, key_of(instance));
  {
    std::lock_guard lock(states_mutex);
    instances.erase(key_of(instance));
    --live_instances;
  }
  state->destroy(instance, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator, VkDevice* made) {
  auto* link = find_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  const auto instance = find(instances, key_of(physical));
  if (link == nullptr || instance == nullptr) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  const Fault fault = decide(id_vkCreateDevice, [](VkResult) { return true; });
  if (fault.result != VK_SUCCESS) {
    return fault.result;
  }
  const PFN_vkGetInstanceProcAddr next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  auto state = std::make_shared<DeviceState>();
  state->next_address = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(next_instance(instance->handle, "vkCreateDevice"));
  const VkResult result = create(physical, info, allocator, made);
  if (result != VK_SUCCESS) {
    return result;
  }
  state->handle = *made;
  state->destroy = reinterpret_cast<PFN_vkDestroyDevice>(state->next_address(*made, "vkDestroyDevice"));
#define F(name) state->next[id_##name] = state->next_address(*made, #name);
  DEVICE_FUNCTIONS(F)
#undef F
#define F(name, Type, creator) state->destroyers[#name] = state->next_address(*made, #name);
  DESTROYERS(F)
#undef F
  std::lock_guard lock(states_mutex);
  devices[key_of(*made)] = state;
  ++live_devices;
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) {
    return;
  }
  const auto state = find(devices, key_of(device));
  {
    std::lock_guard lock(state->mutex);
    check_unused(*state, "vkDestroyDevice", [](const Submission&) { return true; });
  }
  {
    std::lock_guard lock(states_mutex);
    for (size_t id = 0; id < kFunctions; ++id) {
      for (const auto& [handle, count] : state->live[id]) {
        leaked[id] += static_cast<int64_t>(count);
      }
    }
    devices.erase(key_of(device));
    --live_devices;
  }
  state->destroy(device, allocator);
}

// ---- the loader's questions

PFN_vkVoidFunction instance_hook(const char* name) {
#define F(function)                                                                                \
  if (std::strcmp(name, #function) == 0) {                                                         \
    return reinterpret_cast<PFN_vkVoidFunction>(Hook<id_##function, PFN_##function>::on_instance); \
  }
  INSTANCE_FUNCTIONS(F)
#undef F
  return nullptr;
}

PFN_vkVoidFunction device_hook(const char* name) {
#define F(function)                                                                              \
  if (std::strcmp(name, #function) == 0) {                                                       \
    return reinterpret_cast<PFN_vkVoidFunction>(Hook<id_##function, PFN_##function>::on_device); \
  }
  DEVICE_FUNCTIONS(F)
#undef F
#define F(function, Type, creator)                               \
  if (std::strcmp(name, #function) == 0) {                       \
    return reinterpret_cast<PFN_vkVoidFunction>(end_##function); \
  }
  DESTROYERS(F)
#undef F
  return std::strcmp(name, "vkDestroyDevice") == 0 ? reinterpret_cast<PFN_vkVoidFunction>(destroy_device)
                                                   : nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_address(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(device_address);
  }
  const PFN_vkVoidFunction below = find(devices, key_of(device))->next_address(device, name);
  const PFN_vkVoidFunction ours = device_hook(name);
  return ours != nullptr && below != nullptr ? ours : below;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL physical_address(VkInstance instance, const char* name) {
  const auto state = find(instances, key_of(instance));
  if (state == nullptr || state->next_physical_address == nullptr) {
    return nullptr;
  }
  const PFN_vkVoidFunction below = state->next_physical_address(instance, name);
  const PFN_vkVoidFunction ours = instance_hook(name);
  return ours != nullptr && below != nullptr ? ours : below;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_address(VkInstance instance, const char* name) {
  const std::pair<const char*, PFN_vkVoidFunction> own[] = {
      {"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(instance_address)},
      {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(device_address)},
      {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(create_instance)},
      {"vkDestroyInstance", reinterpret_cast<PFN_vkVoidFunction>(destroy_instance)},
      {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(create_device)},
  };
  for (const auto& [known, function] : own) {
    if (std::strcmp(name, known) == 0) {
      return function;
    }
  }
  const auto state = instance == VK_NULL_HANDLE ? nullptr : find(instances, key_of(instance));
  if (state == nullptr) {
    return nullptr;
  }
  const PFN_vkVoidFunction below = state->next_address(instance, name);
  PFN_vkVoidFunction ours = instance_hook(name);
  if (ours == nullptr) {
    ours = device_hook(name);
  }
  return ours != nullptr && below != nullptr ? ours : below;
}

size_t id_of(const char* name) {
  for (size_t id = 0; id < kFunctions; ++id) {
    if (std::strcmp(name, kNames[id]) == 0) {
      return id;
    }
  }
  return kFunctions;
}

}  // namespace

EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* wanted) {
  if (wanted == nullptr || wanted->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
      wanted->loaderLayerInterfaceVersion < 2) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  wanted->loaderLayerInterfaceVersion = 2;
  wanted->pfnGetInstanceProcAddr = instance_address;
  wanted->pfnGetDeviceProcAddr = device_address;
  wanted->pfnGetPhysicalDeviceProcAddr = physical_address;
  return VK_SUCCESS;
}

// ---- for the tests

// The name of a function that can fail; null after the last.
EXPORT const char* fault_name(size_t id) {
  return id < kFunctions ? kNames[id] : nullptr;
}

// The n-th call from now on (from 1) and the `times` - 1 after it fail; 0: all after it. False: no such
// function.
EXPORT bool fault_arm(const char* name, uint64_t n, int result, uint64_t times, bool sticky, bool settles) {
  const size_t id = id_of(name);
  if (id == kFunctions || n == 0) {
    return false;
  }
  std::lock_guard lock(rule_mutex);
  rule = {id, n - 1, times, static_cast<VkResult>(result), sticky, settles};
  failures_made.store(0);
  return true;
}

// Nothing fails any more, save the calls on devices that are lost.
EXPORT void fault_disarm() {
  std::lock_guard lock(rule_mutex);
  rule = Rule{};
}

// How many calls were made to fail since `fault_arm`.
EXPORT uint64_t fault_made() {
  return failures_made.load();
}

EXPORT uint64_t fault_calls(const char* name) {
  const size_t id = id_of(name);
  return id == kFunctions ? 0 : calls[id].load();
}

// Objects that a function has made and that are there; those whose device was destroyed before them count,
// too.
EXPORT int64_t fault_live(const char* name) {
  const size_t id = id_of(name);
  std::lock_guard lock(states_mutex);
  if (id == id_vkCreateInstance || id == id_vkCreateDevice) {
    return id == id_vkCreateInstance ? live_instances : live_devices;
  }
  if (id == kFunctions) {
    return 0;
  }
  int64_t count = leaked[id];
  for (const auto& [key, device] : devices) {
    std::lock_guard device_lock(device->mutex);
    for (const auto& [handle, times] : device->live[id]) {
      count += static_cast<int64_t>(times);
    }
  }
  return count;
}

// Writes what was done wrong since the last call, a line each, as far as it fits; returns the number of
// bytes.
EXPORT size_t fault_problems(char* text, size_t size) {
  std::lock_guard lock(problems_mutex);
  std::string all;
  for (const std::string& problem : problems) {
    all += problem + "\n";
  }
  problems.clear();
  const size_t count = all.size() < size ? all.size() : size;
  std::memcpy(text, all.data(), count);
  return count;
}
