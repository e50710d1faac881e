// A device with one compute queue, and the few objects that the measures need. Errors are exceptions.
#pragma once

#include <volk.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace floor_program {

// Throws std::runtime_error that names the call.
void check(VkResult result, const char* call);

class Buffer;
class Pipeline;

struct Numbers {
  float factor;
  uint32_t count;
};

class Gpu {
 public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  using Record = std::function<void(VkCommandBuffer)>;
  // A command buffer that may be submitted any number of times; freed by `forget`.
  VkCommandBuffer record(const Record& body);
  void forget(VkCommandBuffer commands);
  void submit(VkCommandBuffer commands);  // signals nothing
  uint64_t submit_signalling(
      VkCommandBuffer commands);                 // signals the timeline's next value, which is returned
  void submit_fenced(VkCommandBuffer commands);  // signals the fence
  void wait_sleeping(uint64_t value);
  void wait_spinning(uint64_t value);
  void wait_fence();
  void wait_idle();
  void run(VkCommandBuffer commands) { wait_spinning(submit_signalling(commands)); }

  VkDescriptorSet bind(const Buffer& first, const Buffer& second);
  void unbind(VkDescriptorSet set);

  VkPhysicalDeviceProperties properties{};
  VkDevice device = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory{};
  VkPipelineLayout layout = VK_NULL_HANDLE;

 private:
  void choose_device();
  void make_device();
  void make_layout();

  VkInstance instance_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  uint64_t last_ = 0;
};

class Buffer {
 public:
  // `host`: in memory of the host, cached, mapped at `data`.
  Buffer(Gpu& gpu, VkDeviceSize size, bool host);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void fill(float value);
  float element(VkDeviceSize index);

  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceSize size;
  void* data = nullptr;

 private:
  Gpu& gpu_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

class Pipeline {
 public:
  Pipeline(Gpu& gpu, const std::vector<uint32_t>& spirv, uint32_t group);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  VkPipeline handle = VK_NULL_HANDLE;
  uint32_t group;

 private:
  Gpu& gpu_;
  VkShaderModule module_ = VK_NULL_HANDLE;
};

void begin_kernel(VkCommandBuffer commands, Gpu& gpu, const Pipeline& pipeline, VkDescriptorSet set);
void dispatch(VkCommandBuffer commands, Gpu& gpu, Numbers numbers, uint32_t groups);
// What the next dispatch reads or overwrites has been written by the last one.
void dispatch_barrier(VkCommandBuffer commands);
// The same for dispatches and copies.
void barrier(VkCommandBuffer commands);

}  // namespace floor_program
