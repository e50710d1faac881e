#include "libs/vkfft.hpp"

#include <glslang/Include/glslang_c_interface.h>
#include <vulkan/vulkan_core.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include <locale.h>

#include "libs/error.hpp"

namespace {

// ---- the virtual device. VkFFT gets its objects as Vulkan handles; they live as long as the device.

struct Memory {
  uint64_t size = 0;
  std::vector<std::byte> bytes;  // allocated on first use

  std::vector<std::byte>& contents() {
    bytes.resize(size);
    return bytes;
  }
};

struct BufferObject {
  uint64_t size = 0;
  size_t number = 0;
  std::shared_ptr<Memory> memory;
};

struct SetLayout {
  uint32_t bindings = 0;
};

struct Set {
  std::vector<BufferObject*> buffers;
};

struct Layout {
  uint32_t bindings = 0;
  uint32_t push_constants = 0;
};

struct Pipeline {
  std::string source;
  Layout layout;
};

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  std::vector<BufferObject*> buffers;
  std::vector<std::byte> push_constants;
  std::array<uint32_t, 3> groups{};
};

struct CopyCommand {
  BufferObject* from = nullptr;
  BufferObject* to = nullptr;
  VkBufferCopy region{};
};

struct Command {
  Dispatch dispatch;
  CopyCommand copy;  // a null `from` means a dispatch
};

struct VirtualDevice;

struct Commands {
  VirtualDevice* device = nullptr;
  std::vector<Command> list;
  Dispatch state;
  const Set* set = nullptr;
};

struct VirtualDevice {
  vkd::FftDevice properties;
  const vkd::FftRun* run = nullptr;
  std::exception_ptr failure;  // thrown by `run`
  std::string complaint;       // an unsupported use of the virtual device

  // Containers that never move their elements.
  std::deque<BufferObject> buffers;
  std::deque<std::shared_ptr<Memory>> memories;
  std::deque<SetLayout> set_layouts;
  std::deque<Set> sets;
  std::deque<Layout> layouts;
  std::deque<std::string> modules;
  std::deque<Pipeline> pipelines;
  std::deque<Commands> commands;

  BufferObject& new_buffer(uint64_t size) {
    buffers.push_back({size, buffers.size(), nullptr});
    return buffers.back();
  }
};

template <typename Handle, typename Object>
Handle handle(Object* object) {
  // Handles are pointers or integers, depending on the platform.
  return (Handle)(reinterpret_cast<uintptr_t>(object));
}

template <typename Object, typename Handle>
Object& object(Handle handle) {
  return *reinterpret_cast<Object*>((uintptr_t)(handle));
}

// Translates commands to FftProgram: renumbers buffers and lists pipelines.
class Translation {
 public:
  // The first `own_count` buffers keep their numbers and are not listed.
  explicit Translation(size_t own_count) : own_count_(own_count) {}

  vkd::FftPass pass(const Dispatch& dispatch) {
    vkd::FftPass pass;
    const auto [kernel, is_new] = kernels_.try_emplace(dispatch.pipeline, program.kernels.size());
    if (is_new) {
      const Pipeline& pipeline = *dispatch.pipeline;
      program.kernels.push_back({pipeline.source, pipeline.layout.bindings, pipeline.layout.push_constants});
    }
    pass.kernel = kernel->second;
    for (const BufferObject* buffer : dispatch.buffers) {
      pass.buffers.push_back(number(*buffer));
    }
    pass.push_constants = dispatch.push_constants;
    pass.groups = dispatch.groups;
    return pass;
  }

  const std::vector<const BufferObject*>& listed() const { return listed_; }

  vkd::FftProgram program;

 private:
  size_t number(const BufferObject& buffer) {
    if (buffer.number < own_count_) {
      return buffer.number;
    }
    const auto [found, is_new] = numbers_.try_emplace(&buffer, own_count_ + listed_.size());
    if (is_new) {
      listed_.push_back(&buffer);
      program.buffers.push_back(
          {buffer.size, buffer.memory ? buffer.memory->bytes : std::vector<std::byte>()});
    }
    return found->second;
  }

  size_t own_count_;
  std::map<const Pipeline*, size_t> kernels_;
  std::map<const BufferObject*, size_t> numbers_;
  std::vector<const BufferObject*> listed_;
};

void execute(VirtualDevice& device, const std::vector<Command>& commands) {
  auto next = commands.begin();
  while (next != commands.end()) {
    if (next->copy.from != nullptr) {
      const CopyCommand& copy = next->copy;
      const std::vector<std::byte>& from = copy.from->memory->contents();
      std::vector<std::byte>& to = copy.to->memory->contents();
      std::memcpy(to.data() + copy.region.dstOffset, from.data() + copy.region.srcOffset, copy.region.size);
      ++next;
      continue;
    }
    Translation translation(0);
    for (; next != commands.end() && next->copy.from == nullptr; ++next) {
      translation.program.forward.push_back(translation.pass(next->dispatch));
    }
    (*device.run)(translation.program);
    const std::vector<const BufferObject*>& listed = translation.listed();
    for (size_t i = 0; i < listed.size(); ++i) {
      listed[i]->memory->bytes = std::move(translation.program.buffers.at(i).contents);
      listed[i]->memory->contents();  // at least its size
    }
  }
}

// ---- the Vulkan functions that VkFFT uses, under their own names but local to this file. No loader is
// involved.

void vkGetPhysicalDeviceProperties(VkPhysicalDevice physical, VkPhysicalDeviceProperties* properties) {
  const vkd::FftDevice& device = object<VirtualDevice>(physical).properties;
  std::memset(properties, 0, sizeof(*properties));
  properties->vendorID = device.vendor;
  properties->limits.maxComputeWorkGroupInvocations = device.most_invocations;
  properties->limits.maxComputeSharedMemorySize = device.shared_memory;
  for (size_t axis = 0; axis < 3; ++axis) {
    properties->limits.maxComputeWorkGroupCount[axis] = device.group_counts[axis];
    properties->limits.maxComputeWorkGroupSize[axis] = device.group_sizes[axis];
  }
}

void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties* properties) {
  std::memset(properties, 0, sizeof(*properties));
  properties->memoryTypeCount = 1;
  properties->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                             VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                             VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  properties->memoryHeapCount = 1;
  properties->memoryHeaps[0].size = ~VkDeviceSize{0};
}

VkResult vkCreateBuffer(VkDevice device, const VkBufferCreateInfo* info, const VkAllocationCallbacks*,
                        VkBuffer* buffer) {
  *buffer = handle<VkBuffer>(&object<VirtualDevice>(device).new_buffer(info->size));
  return VK_SUCCESS;
}

void vkGetBufferMemoryRequirements(VkDevice, VkBuffer buffer, VkMemoryRequirements* requirements) {
  *requirements = {object<BufferObject>(buffer).size, 1, 1};
}

VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                          VkDeviceMemory* memory) {
  auto& memories = object<VirtualDevice>(device).memories;
  memories.push_back(std::make_shared<Memory>());
  memories.back()->size = info->allocationSize;
  *memory = handle<VkDeviceMemory>(&memories.back());
  return VK_SUCCESS;
}

VkResult vkBindBufferMemory(VkDevice, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize) {
  object<BufferObject>(buffer).memory = object<std::shared_ptr<Memory>>(memory);
  return VK_SUCCESS;
}

VkResult vkMapMemory(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize, VkMemoryMapFlags,
                     void** data) {
  *data = object<std::shared_ptr<Memory>>(memory)->contents().data() + offset;
  return VK_SUCCESS;
}

void vkUnmapMemory(VkDevice, VkDeviceMemory) {}

void vkDestroyBuffer(VkDevice, VkBuffer, const VkAllocationCallbacks*) {}

void vkFreeMemory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
  if (memory != VK_NULL_HANDLE) {
    object<std::shared_ptr<Memory>>(memory).reset();  // buffers still in use share ownership
  }
}

VkResult vkCreateDescriptorPool(VkDevice, const VkDescriptorPoolCreateInfo*, const VkAllocationCallbacks*,
                                VkDescriptorPool* pool) {
  *pool = VK_NULL_HANDLE;
  return VK_SUCCESS;
}

void vkDestroyDescriptorPool(VkDevice, VkDescriptorPool, const VkAllocationCallbacks*) {}

VkResult vkCreateDescriptorSetLayout(VkDevice device, const VkDescriptorSetLayoutCreateInfo* info,
                                     const VkAllocationCallbacks*, VkDescriptorSetLayout* layout) {
  VirtualDevice& owner = object<VirtualDevice>(device);
  for (uint32_t i = 0; i < info->bindingCount; ++i) {
    const VkDescriptorSetLayoutBinding& binding = info->pBindings[i];
    if (binding.binding != i || binding.descriptorCount != 1 ||
        binding.descriptorType != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) {
      owner.complaint = "a binding is not a single storage buffer";
    }
  }
  owner.set_layouts.push_back({info->bindingCount});
  *layout = handle<VkDescriptorSetLayout>(&owner.set_layouts.back());
  return VK_SUCCESS;
}

void vkDestroyDescriptorSetLayout(VkDevice, VkDescriptorSetLayout, const VkAllocationCallbacks*) {}

VkResult vkAllocateDescriptorSets(VkDevice device, const VkDescriptorSetAllocateInfo* info,
                                  VkDescriptorSet* sets) {
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
    auto& all = object<VirtualDevice>(device).sets;
    all.push_back({std::vector<BufferObject*>(object<SetLayout>(info->pSetLayouts[i]).bindings)});
    sets[i] = handle<VkDescriptorSet>(&all.back());
  }
  return VK_SUCCESS;
}

void vkUpdateDescriptorSets(VkDevice device, uint32_t count, const VkWriteDescriptorSet* writes, uint32_t,
                            const VkCopyDescriptorSet*) {
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<BufferObject*>& bound = object<Set>(writes[i].dstSet).buffers;
    if (writes[i].dstBinding >= bound.size() || writes[i].dstArrayElement != 0 ||
        writes[i].pBufferInfo->offset != 0) {
      object<VirtualDevice>(device).complaint = "only part of a buffer is bound";
    } else if (writes[i].pBufferInfo->buffer != VK_NULL_HANDLE) {
      bound[writes[i].dstBinding] = &object<BufferObject>(writes[i].pBufferInfo->buffer);
    }
  }
}

VkResult vkCreateShaderModule(VkDevice device, const VkShaderModuleCreateInfo* info,
                              const VkAllocationCallbacks*, VkShaderModule* module) {
  // See glslang_program_SPIRV_get_ptr: the "SPIR-V" is the source.
  const char* text = reinterpret_cast<const char*>(info->pCode);
  auto& modules = object<VirtualDevice>(device).modules;
  modules.emplace_back(text, strnlen(text, info->codeSize));
  *module = handle<VkShaderModule>(&modules.back());
  return VK_SUCCESS;
}

void vkDestroyShaderModule(VkDevice, VkShaderModule, const VkAllocationCallbacks*) {}

VkResult vkCreatePipelineLayout(VkDevice device, const VkPipelineLayoutCreateInfo* info,
                                const VkAllocationCallbacks*, VkPipelineLayout* layout) {
  Layout layout_object;
  layout_object.bindings = object<SetLayout>(info->pSetLayouts[0]).bindings;
  for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) {
    layout_object.push_constants = info->pPushConstantRanges[i].offset + info->pPushConstantRanges[i].size;
  }
  auto& layouts = object<VirtualDevice>(device).layouts;
  layouts.push_back(layout_object);
  *layout = handle<VkPipelineLayout>(&layouts.back());
  return VK_SUCCESS;
}

void vkDestroyPipelineLayout(VkDevice, VkPipelineLayout, const VkAllocationCallbacks*) {}

VkResult vkCreateComputePipelines(VkDevice device, VkPipelineCache, uint32_t count,
                                  const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks*,
                                  VkPipeline* handles) {
  for (uint32_t i = 0; i < count; ++i) {
    auto& pipelines = object<VirtualDevice>(device).pipelines;
    pipelines.push_back({object<std::string>(infos[i].stage.module), object<Layout>(infos[i].layout)});
    handles[i] = handle<VkPipeline>(&pipelines.back());
  }
  return VK_SUCCESS;
}

void vkDestroyPipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}

VkResult vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                  VkCommandBuffer* handles) {
  VirtualDevice& owner = object<VirtualDevice>(device);
  for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
    owner.commands.emplace_back();
    owner.commands.back().device = &owner;
    handles[i] = handle<VkCommandBuffer>(&owner.commands.back());
  }
  return VK_SUCCESS;
}

void vkFreeCommandBuffers(VkDevice, VkCommandPool, uint32_t count, const VkCommandBuffer* handles) {
  for (uint32_t i = 0; i < count; ++i) {
    object<Commands>(handles[i]).list.clear();
  }
}

VkResult vkBeginCommandBuffer(VkCommandBuffer, const VkCommandBufferBeginInfo*) {
  return VK_SUCCESS;
}

VkResult vkEndCommandBuffer(VkCommandBuffer) {
  return VK_SUCCESS;
}

void vkCmdBindPipeline(VkCommandBuffer handle, VkPipelineBindPoint, VkPipeline pipeline) {
  object<Commands>(handle).state.pipeline = &object<Pipeline>(pipeline);
}

void vkCmdBindDescriptorSets(VkCommandBuffer handle, VkPipelineBindPoint, VkPipelineLayout, uint32_t,
                             uint32_t, const VkDescriptorSet* sets, uint32_t, const uint32_t*) {
  object<Commands>(handle).set = &object<Set>(sets[0]);
}

void vkCmdPushConstants(VkCommandBuffer handle, VkPipelineLayout, VkShaderStageFlags, uint32_t offset,
                        uint32_t size, const void* values) {
  std::vector<std::byte>& bytes = object<Commands>(handle).state.push_constants;
  bytes.resize(offset + size);
  std::memcpy(bytes.data() + offset, values, size);
}

void vkCmdDispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z) {
  Commands& commands = object<Commands>(handle);
  Command command;
  command.dispatch = commands.state;
  Dispatch& dispatch = command.dispatch;
  dispatch.groups = {x, y, z};
  // Constants pushed earlier may be longer, or belong to a kernel that has none.
  dispatch.push_constants.resize(dispatch.pipeline->layout.push_constants);
  dispatch.buffers = commands.set->buffers;
  for (const BufferObject* buffer : dispatch.buffers) {
    if (buffer == nullptr) {
      commands.device->complaint = "a binding is empty";
      return;
    }
  }
  commands.list.push_back(std::move(command));
}

void vkCmdPipelineBarrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags,
                          uint32_t, const VkMemoryBarrier*, uint32_t, const VkBufferMemoryBarrier*, uint32_t,
                          const VkImageMemoryBarrier*) {
  // The recorder inserts barriers where the accesses of passes conflict.
}

void vkCmdCopyBuffer(VkCommandBuffer handle, VkBuffer from, VkBuffer to, uint32_t count,
                     const VkBufferCopy* regions) {
  for (uint32_t i = 0; i < count; ++i) {
    Command command;
    command.copy = {&object<BufferObject>(from), &object<BufferObject>(to), regions[i]};
    object<Commands>(handle).list.push_back(std::move(command));
  }
}

VkResult vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence) {
  VirtualDevice& device = object<VirtualDevice>(queue);
  // VkFFT is not told of failures: its clean-up after one frees some memory twice. It continues to plan, with
  // tables of zeros, and the error is thrown afterwards.
  try {
    for (uint32_t i = 0; i < count && !device.failure; ++i) {
      for (uint32_t j = 0; j < submits[i].commandBufferCount; ++j) {
        execute(device, object<Commands>(submits[i].pCommandBuffers[j]).list);
      }
    }
  } catch (...) {
    device.failure = std::current_exception();
  }
  return VK_SUCCESS;
}

VkResult vkWaitForFences(VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) {
  return VK_SUCCESS;
}

VkResult vkResetFences(VkDevice, uint32_t, const VkFence*) {
  return VK_SUCCESS;
}

// ---- glslang's C interface. Kernels are compiled later, with all others, so the "SPIR-V" is the source
// itself.

struct Program {
  std::vector<uint32_t> words;
};

int hook_initialize_process() {
  return 1;
}

void hook_finalize_process() {}

Program* hook_shader_create(const glslang_input_t* input) {
  auto* shader = new Program;
  const size_t length = std::strlen(input->code);
  shader->words.resize(length / sizeof(uint32_t) + 1);  // padded with zeros
  std::memcpy(shader->words.data(), input->code, length);
  return shader;
}

int hook_succeed(const Program*, const glslang_input_t*) {
  return 1;
}

const char* hook_no_log(const Program*) {
  return nullptr;
}

Program* hook_program_create() {
  return new Program;
}

void hook_program_add_shader(Program* program, Program* shader) {
  program->words = std::move(shader->words);
}

int hook_program_link(Program*, int) {
  return 1;
}

void hook_program_generate(Program*, glslang_stage_t) {}

size_t hook_program_size(Program* program) {
  return program->words.size();
}

uint32_t* hook_program_words(Program* program) {
  return program->words.data();
}

void hook_delete(Program* program) {
  delete program;
}

// ---- the heap. VkFFT leaks some memory with each plan that has strided axes, and frees some twice when it
// fails.

struct Heap {
  std::unordered_set<void*> blocks;

  ~Heap() {
    for (void* block : blocks) {
      std::free(block);
    }
  }
};

thread_local Heap* heap = nullptr;  // of the plan that this thread creates

void* track_block(void* block) {
  if (block != nullptr) {
    heap->blocks.insert(block);
  }
  return block;
}

void* hook_malloc(size_t size) {
  return track_block(std::malloc(size));
}

void* hook_calloc(size_t count, size_t size) {
  return track_block(std::calloc(count, size));
}

void hook_free(void* block) {
  if (heap->blocks.erase(block) > 0) {
    std::free(block);
  }
}

class OwnHeap {
 public:
  OwnHeap() { heap = &own_; }
  ~OwnHeap() { heap = before_; }
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;

 private:
  Heap* before_ = heap;  // one plan may be created while another one's tables are computed
  Heap own_;
};

}  // namespace

#define malloc hook_malloc
#define calloc hook_calloc
#define free hook_free
#define glslang_shader_t Program
#define glslang_program_t Program
#define glslang_initialize_process hook_initialize_process
#define glslang_finalize_process hook_finalize_process
#define glslang_shader_create hook_shader_create
#define glslang_shader_preprocess hook_succeed
#define glslang_shader_parse hook_succeed
#define glslang_shader_get_info_log hook_no_log
#define glslang_shader_delete hook_delete
#define glslang_program_create hook_program_create
#define glslang_program_add_shader hook_program_add_shader
#define glslang_program_link hook_program_link
#define glslang_program_get_info_log hook_no_log
#define glslang_program_SPIRV_generate hook_program_generate
#define glslang_program_SPIRV_get_messages hook_no_log
#define glslang_program_SPIRV_get_size hook_program_size
#define glslang_program_SPIRV_get_ptr hook_program_words
#define glslang_program_delete hook_delete

#define VKFFT_BACKEND 0
#define VKFFT_MAX_FFT_DIMENSIONS 4
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // inlined functions of VkFFT
#include <vkFFT.h>
#pragma GCC diagnostic pop
#undef malloc
#undef calloc
#undef free

namespace vkd {

static_assert(kFftAxes == VKFFT_MAX_FFT_DIMENSIONS);

namespace {

// VkFFT prints numbers into its kernels. This makes it use a decimal point on this thread, whatever the
// program's locale is.
class PlainNumbers {
 public:
  PlainNumbers() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)) {
    if (plain_ != nullptr) {
      before_ = uselocale(plain_);
    }
  }
  ~PlainNumbers() {
    if (plain_ != nullptr) {
      uselocale(before_);
      freelocale(plain_);
    }
  }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  locale_t plain_;
  locale_t before_ = nullptr;
};

class Application {
 public:
  explicit Application(VirtualDevice& device) : device_(device) {}
  ~Application() {
    if (made_) {
      deleteVkFFT(&application_);
    }
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  void initialize(const VkFFTConfiguration& configuration) {
    const VkFFTResult result = initializeVkFFT(&application_, configuration);
    made_ = result == VKFFT_SUCCESS;  // on failure VkFFT has already deleted the application
    check(result);
  }

  std::vector<Command> append(bool inverse, VkFFTLaunchParams parameters) {
    Commands commands;
    commands.device = &device_;
    auto handle_of_commands = handle<VkCommandBuffer>(&commands);
    parameters.commandBuffer = &handle_of_commands;
    check(VkFFTAppend(&application_, inverse ? 1 : -1, &parameters));
    return std::move(commands.list);
  }

 private:
  void check(VkFFTResult result) {
    if (device_.failure) {
      std::rethrow_exception(device_.failure);
    }
    if (result == VKFFT_ERROR_MALLOC_FAILED) {
      throw Error(ErrorKind::out_of_memory, "VkFFT: out of host memory");
    }
    if (!device_.complaint.empty()) {
      throw Error(ErrorKind::invalid_value, "VkFFT: " + device_.complaint);
    }
    if (result != VKFFT_SUCCESS) {
      throw Error(ErrorKind::invalid_value, getVkFFTErrorString(result));
    }
  }

  VirtualDevice& device_;
  VkFFTApplication application_{};
  bool made_ = false;
};

}  // namespace

FftProgram plan_fft(const FftRequest& request, const FftDevice& properties, const FftRun& run) {
  const PlainNumbers plain;
  const OwnHeap own_heap;
  VirtualDevice device;
  device.properties = properties;
  device.run = &run;

  auto physical = handle<VkPhysicalDevice>(&device);
  auto logical = handle<VkDevice>(&device);
  auto queue = handle<VkQueue>(&device);
  VkCommandPool pool = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  auto buffer = handle<VkBuffer>(&device.new_buffer(request.buffer_size));
  auto input = handle<VkBuffer>(&device.new_buffer(request.input_size));
  auto kernel = handle<VkBuffer>(&device.new_buffer(request.kernel_size));
  const size_t own_count = device.buffers.size();
  pfUINT buffer_size = request.buffer_size;
  pfUINT input_size = request.input_size;
  pfUINT kernel_size = request.kernel_size;

  VkFFTConfiguration configuration{};
  configuration.physicalDevice = &physical;
  configuration.device = &logical;
  configuration.queue = &queue;
  configuration.commandPool = &pool;
  configuration.fence = &fence;
  configuration.isCompilerInitialized = 1;
  configuration.disableSetLocale = 1;  // it would change the locale of all threads
  configuration.FFTdim = request.axes;
  for (size_t axis = 0; axis < kFftAxes; ++axis) {
    configuration.size[axis] = request.size[axis];
    configuration.omitDimension[axis] = request.omitted[axis];
    configuration.performZeropadding[axis] = request.padded[axis];
    configuration.fft_zeropad_left[axis] = request.pad_left[axis];
    configuration.fft_zeropad_right[axis] = request.pad_right[axis];
  }
  configuration.frequencyZeroPadding = request.pad_frequency;
  configuration.numberBatches = request.batches;
  configuration.halfPrecision = request.precision == 0;
  configuration.doublePrecision = request.precision == 2;
  // Devices compute sine and cosine to 1e-4 at worst; tables are accurate to the last bit.
  configuration.useLUT = 1;
  configuration.performR2C = request.real;
  configuration.normalize = request.normalize;
  // A convolution uses the inverse plan for its way back.
  configuration.makeForwardPlanOnly = !request.inverse && request.kernel_size == 0;
  configuration.makeInversePlanOnly = !request.forward;
  configuration.bufferSize = &buffer_size;
  if (request.input_size > 0) {
    configuration.isInputFormatted = 1;
    configuration.inputBufferSize = &input_size;
    for (size_t axis = 0; axis < kFftAxes; ++axis) {
      configuration.inputBufferStride[axis] = request.input_strides[axis];
    }
  }
  if (request.kernel_size > 0) {
    configuration.performConvolution = 1;
    configuration.kernelSize = &kernel_size;
    configuration.conjugateConvolution = request.conjugate;
    configuration.coordinateFeatures = request.features;
  }

  // Pass buffers only at launch: otherwise VkFFT binds them before it has the tables of Bluestein's
  // algorithm, and then never binds those.
  Application application(device);
  application.initialize(configuration);
  VkFFTLaunchParams parameters{};
  parameters.buffer = &buffer;
  if (request.input_size > 0) parameters.inputBuffer = &input;
  if (request.kernel_size > 0) parameters.kernel = &kernel;

  Translation translation(own_count);
  const auto translate = [&](bool inverse, std::vector<FftPass>& passes) {
    for (const Command& command : application.append(inverse, parameters)) {
      passes.push_back(translation.pass(command.dispatch));
    }
  };
  if (request.forward) translate(false, translation.program.forward);
  if (request.inverse) translate(true, translation.program.inverse);
  return std::move(translation.program);
}

int vkfft_version() noexcept {
  return VkFFTGetVersion();
}

}  // namespace vkd
