#include "gpu.hpp"

#include <cstring>
#include <stdexcept>

namespace floor_program {

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS)
    throw std::runtime_error(std::string(call) + " returned " + std::to_string(result));
}

Gpu::Gpu() {
  check(volkInitialize(), "volkInitialize");
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  check(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
  volkLoadInstance(instance_);
  choose_device();
  make_device();
  make_layout();
}

Gpu::~Gpu() {
  vkDeviceWaitIdle(device);
  vkDestroySemaphore(device, timeline_, nullptr);
  vkDestroyFence(device, fence_, nullptr);
  vkDestroyPipelineLayout(device, layout, nullptr);
  vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
  vkDestroyDescriptorPool(device, descriptors_, nullptr);
  vkDestroyCommandPool(device, commands_, nullptr);
  vkDestroyDevice(device, nullptr);
  vkDestroyInstance(instance_, nullptr);
}

void Gpu::choose_device() {
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> all(count);
  check(vkEnumeratePhysicalDevices(instance_, &count, all.data()), "vkEnumeratePhysicalDevices");
  int best = -1;
  for (VkPhysicalDevice candidate : all) {
    VkPhysicalDeviceProperties found;
    vkGetPhysicalDeviceProperties(candidate, &found);
    const int rank = found.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 3
                     : found.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 2
                     : found.deviceType == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? 1
                                                                                  : 0;
    if (rank > best) {
      best = rank;
      physical = candidate;
      properties = found;
    }
  }
  if (best < 0) throw std::runtime_error("there is no Vulkan device");
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  while (family_ < count && !(families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;
  if (family_ == count) throw std::runtime_error("the device has no compute queue");
}

void Gpu::make_device() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  features.timelineSemaphore = VK_TRUE;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  volkLoadDevice(device);
  vkGetDeviceQueue(device, family_, 0, &queue_);
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device, &pool, nullptr, &commands_), "vkCreateCommandPool");
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(device, &fence, nullptr, &fence_), "vkCreateFence");
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  semaphore.pNext = &type;
  check(vkCreateSemaphore(device, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
}

void Gpu::make_layout() {
  VkDescriptorSetLayoutBinding bindings[2]{};
  for (uint32_t i = 0; i < 2; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = 2;
  set.pBindings = bindings;
  check(vkCreateDescriptorSetLayout(device, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Numbers)};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device, &info, nullptr, &layout), "vkCreatePipelineLayout");
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 32};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
  pool.maxSets = 16;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool");
}

VkCommandBuffer Gpu::record(const Record& body) {
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = commands_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands;
  check(vkAllocateCommandBuffers(device, &info, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  body(commands);
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  return commands;
}

void Gpu::forget(VkCommandBuffer commands) {
  vkFreeCommandBuffers(device, commands_, 1, &commands);
}

void Gpu::submit(VkCommandBuffer commands) {
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  check(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

uint64_t Gpu::submit_signalling(VkCommandBuffer commands) {
  const uint64_t value = ++last_;
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.pNext = &values;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  check(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  return value;
}

void Gpu::submit_fenced(VkCommandBuffer commands) {
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  check(vkQueueSubmit(queue_, 1, &info, fence_), "vkQueueSubmit");
}

void Gpu::wait_sleeping(uint64_t value) {
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  check(vkWaitSemaphores(device, &info, UINT64_MAX), "vkWaitSemaphores");
}

void Gpu::wait_spinning(uint64_t value) {
  uint64_t reached = 0;
  while (reached < value) {
    check(vkGetSemaphoreCounterValue(device, timeline_, &reached), "vkGetSemaphoreCounterValue");
  }
}

void Gpu::wait_fence() {
  check(vkWaitForFences(device, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(device, 1, &fence_), "vkResetFences");
}

void Gpu::wait_idle() {
  check(vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
}

VkDescriptorSet Gpu::bind(const Buffer& first, const Buffer& second) {
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = descriptors_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &set_layout_;
  VkDescriptorSet set;
  check(vkAllocateDescriptorSets(device, &info, &set), "vkAllocateDescriptorSets");
  const VkDescriptorBufferInfo buffers[2] = {{first.handle, 0, VK_WHOLE_SIZE},
                                             {second.handle, 0, VK_WHOLE_SIZE}};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set;
  write.descriptorCount = 2;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers;
  vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
  return set;
}

void Gpu::unbind(VkDescriptorSet set) {
  vkFreeDescriptorSets(device, descriptors_, 1, &set);
}

namespace {

uint32_t memory_type(const Gpu& gpu, uint32_t allowed, VkMemoryPropertyFlags wanted) {
  for (uint32_t i = 0; i < gpu.memory.memoryTypeCount; ++i) {
    const bool has = (gpu.memory.memoryTypes[i].propertyFlags & wanted) == wanted;
    if ((allowed >> i & 1) && has) return i;
  }
  return UINT32_MAX;
}

}  // namespace

Buffer::Buffer(Gpu& gpu, VkDeviceSize bytes, bool host) : size(bytes), gpu_(gpu) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check(vkCreateBuffer(gpu.device, &info, nullptr, &handle), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(gpu.device, handle, &needs);
  const VkMemoryPropertyFlags mapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags first = host ? mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT
                                           : VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = memory_type(gpu, needs.memoryTypeBits, first);
  if (allocation.memoryTypeIndex == UINT32_MAX) {
    allocation.memoryTypeIndex = memory_type(gpu, needs.memoryTypeBits, host ? mapped : 0);
  }
  check(vkAllocateMemory(gpu.device, &allocation, nullptr, &memory_), "vkAllocateMemory");
  check(vkBindBufferMemory(gpu.device, handle, memory_, 0), "vkBindBufferMemory");
  if (host) check(vkMapMemory(gpu.device, memory_, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
}

Buffer::~Buffer() {
  vkDestroyBuffer(gpu_.device, handle, nullptr);
  vkFreeMemory(gpu_.device, memory_, nullptr);
}

void Buffer::fill(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  VkCommandBuffer commands =
      gpu_.record([&](VkCommandBuffer target) { vkCmdFillBuffer(target, handle, 0, VK_WHOLE_SIZE, bits); });
  gpu_.run(commands);
  gpu_.forget(commands);
}

float Buffer::element(VkDeviceSize index) {
  Buffer host(gpu_, sizeof(float), true);
  const VkBufferCopy region{index * sizeof(float), 0, sizeof(float)};
  VkCommandBuffer commands = gpu_.record([&](VkCommandBuffer target) {
    barrier(target);
    vkCmdCopyBuffer(target, handle, host.handle, 1, &region);
    VkMemoryBarrier visible{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    visible.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    visible.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(target, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &visible,
                         0, nullptr, 0, nullptr);
  });
  gpu_.run(commands);
  gpu_.forget(commands);
  float value;
  std::memcpy(&value, host.data, sizeof value);
  return value;
}

Pipeline::Pipeline(Gpu& gpu, const std::vector<uint32_t>& spirv, uint32_t size) : group(size), gpu_(gpu) {
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = spirv.size() * sizeof(uint32_t);
  code.pCode = spirv.data();
  check(vkCreateShaderModule(gpu.device, &code, nullptr, &module_), "vkCreateShaderModule");
  const VkSpecializationMapEntry entry{0, 0, sizeof group};
  const VkSpecializationInfo constants{1, &entry, sizeof group, &group};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module_;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = gpu.layout;
  check(vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 1, &info, nullptr, &handle),
        "vkCreateComputePipelines");
}

Pipeline::~Pipeline() {
  vkDestroyPipeline(gpu_.device, handle, nullptr);
  vkDestroyShaderModule(gpu_.device, module_, nullptr);
}

void begin_kernel(VkCommandBuffer commands, Gpu& gpu, const Pipeline& pipeline, VkDescriptorSet set) {
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, gpu.layout, 0, 1, &set, 0, nullptr);
}

void dispatch(VkCommandBuffer commands, Gpu& gpu, Numbers numbers, uint32_t groups) {
  vkCmdPushConstants(commands, gpu.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof numbers, &numbers);
  vkCmdDispatch(commands, groups, 1, 1);
}

void dispatch_barrier(VkCommandBuffer commands) {
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  vkCmdPipelineBarrier(commands, stage, stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void barrier(VkCommandBuffer commands) {
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace floor_program
