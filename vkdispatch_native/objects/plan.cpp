#include "objects/plan.hpp"

#include <algorithm>
#include <cstring>

#include "libs/error.hpp"

namespace vkd {

std::atomic<uint64_t> Plan::next_id_{1};

namespace {

constexpr size_t kPushDescriptors = 32;  // guaranteed on every device with the extension

void check_count(const std::vector<VkDescriptorType>& types, VkDescriptorType type, uint32_t limit,
                 const char* what) {
  const auto count = std::count(types.begin(), types.end(), type);
  if (count > limit) {
    throw Error(ErrorKind::invalid_value, std::to_string(count) + " " + what +
                                              " are bound; the device's limit is " + std::to_string(limit));
  }
}

// Beyond these limits drivers crash instead of returning an error.
void check_limits(const VkPhysicalDeviceLimits& limits, const std::vector<VkDescriptorType>& types,
                  uint32_t push_constant_size) {
  if (push_constant_size % 4 != 0) {
    throw Error(ErrorKind::invalid_value, "push constants of " + std::to_string(push_constant_size) +
                                              " bytes: expected a multiple of 4");
  }
  if (push_constant_size > limits.maxPushConstantsSize) {
    throw Error(ErrorKind::invalid_value, "push constants of " + std::to_string(push_constant_size) +
                                              " bytes exceed the device's " +
                                              std::to_string(limits.maxPushConstantsSize));
  }
  check_count(types, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
              std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers),
              "storage buffers");
  check_count(types, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
              std::min(limits.maxPerStageDescriptorUniformBuffers, limits.maxDescriptorSetUniformBuffers),
              "uniform buffers");
  check_count(types, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
              std::min({limits.maxPerStageDescriptorSamplers, limits.maxDescriptorSetSamplers,
                        limits.maxPerStageDescriptorSampledImages, limits.maxDescriptorSetSampledImages}),
              "samplers");
  check_count(types, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
              std::min(limits.maxPerStageDescriptorStorageImages, limits.maxDescriptorSetStorageImages),
              "storage images");
  if (types.size() > limits.maxPerStageResources) {
    throw Error(ErrorKind::invalid_value, std::to_string(types.size()) +
                                              " buffers and images are bound; the device's limit is " +
                                              std::to_string(limits.maxPerStageResources));
  }
}

const char* type_name(VkDescriptorType type) {
  switch (type) {
    case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
      return "a storage buffer";
    case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
      return "a uniform buffer";
    case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
      return "a storage image";
    case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
      return "a sampler";
    default:
      return "an unsupported resource";
  }
}

void check_declared(const std::vector<DeclaredBinding>& declared,
                    const std::vector<VkDescriptorType>& types) {
  for (const DeclaredBinding& each : declared) {
    const std::string where = "set " + std::to_string(each.set) + ", binding " + std::to_string(each.binding);
    if (each.set != 0 || each.binding >= types.size()) {
      throw Error(ErrorKind::invalid_value, "the shader declares " + where +
                                                "; expected set 0 and a binding below " +
                                                std::to_string(types.size()));
    }
    if (each.type != types[each.binding]) {
      throw Error(ErrorKind::invalid_value, "the shader declares " + std::string(type_name(each.type)) +
                                                " at " + where + "; the list of bindings has " +
                                                type_name(types[each.binding]) + " there");
    }
  }
}

// Whether pipeline cache data may be passed to a driver: its header must name this driver and device.
// device.
bool belongs(const std::string& data, const VkPhysicalDeviceProperties& device) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() <= sizeof(header)) {
    return false;
  }
  std::memcpy(&header, data.data(), sizeof(header));
  return header.headerSize >= sizeof(header) && header.headerSize <= data.size() &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == device.vendorID &&
         header.deviceID == device.deviceID &&
         std::memcmp(header.pipelineCacheUUID, device.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

// The driver's cache of one pipeline. Caching is optional: if the driver has no cache, nothing is cached.
class PipelineCache {
 public:
  PipelineCache(Device& device, const std::string& data) : device_(device) {
    VkPipelineCacheCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    if (belongs(data, device.properties().core)) {
      info.initialDataSize = given_ = data.size();
      info.pInitialData = data.data();
    }
    if (device_.fn().vkCreatePipelineCache(device_.handle(), &info, nullptr, &handle_) != VK_SUCCESS) {
      handle_ = VK_NULL_HANDLE;
    }
  }
  ~PipelineCache() { device_.fn().vkDestroyPipelineCache(device_.handle(), handle_, nullptr); }
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const noexcept { return handle_; }

  // The current data; empty if unchanged, or no more than a header.
  std::string new_data() const {
    size_t size = 0;
    if (handle_ == VK_NULL_HANDLE || !succeeds(&size, nullptr) || size == given_ ||
        size <= sizeof(VkPipelineCacheHeaderVersionOne)) {
      return {};
    }
    std::string data(size, '\0');
    if (!succeeds(&size, data.data())) {
      return {};
    }
    data.resize(size);
    return data;
  }

 private:
  bool succeeds(size_t* size, void* data) const {
    return device_.fn().vkGetPipelineCacheData(device_.handle(), handle_, size, data) == VK_SUCCESS;
  }

  Device& device_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  size_t given_ = 0;
};

}  // namespace

Plan::Plan(const std::vector<Device*>& queue_devices, const std::vector<uint32_t>& spirv,
           const std::vector<VkDescriptorType>& types, uint32_t push_constant_size, std::string name,
           const std::string& entry_point, const Specialization& specialization,
           const std::vector<std::string>& cached)
    : Resource(queue_devices.size()),
      types_(types),
      declared_(read_bindings(spirv)),
      push_constant_size_(push_constant_size),
      name_(std::move(name)) {
  check_declared(declared_, types_);
  try {
    for (Device* device : queue_devices) {
      check_limits(device->properties().core.limits, types_, push_constant_size);
      auto same = std::find_if(pipelines_.begin(), pipelines_.end(),
                               [&](const Pipeline& pipeline) { return pipeline.device == device; });
      if (same == pipelines_.end()) {
        pipelines_.push_back({});
        pipelines_.back().device = device;
        if (cached.empty()) {
          create(pipelines_.back(), spirv, entry_point, specialization, VK_NULL_HANDLE);
        } else {
          const size_t number = pipelines_.size() - 1;
          const PipelineCache cache(*device, number < cached.size() ? cached[number] : std::string());
          create(pipelines_.back(), spirv, entry_point, specialization, cache.handle());
          new_cache_data_.push_back(cache.new_data());
        }
        same = pipelines_.end() - 1;
      }
      pipeline_of_queue_.push_back(static_cast<size_t>(same - pipelines_.begin()));
    }
  } catch (...) {
    release();
    throw;
  }
}

void Plan::create(Pipeline& pipeline, const std::vector<uint32_t>& spirv, const std::string& entry_point,
                  const Specialization& specialization, VkPipelineCache cache) {
  Device& device = *pipeline.device;
  const VolkDeviceTable& fn = device.fn();

  pipeline.push_descriptors = device.push_descriptors() && types_.size() <= kPushDescriptors;
  if (!types_.empty()) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(types_.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) {
      bindings[i].binding = i;
      bindings[i].descriptorType = types_[i];
      bindings[i].descriptorCount = 1;
      bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    if (pipeline.push_descriptors) {
      info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    }
    info.bindingCount = static_cast<uint32_t>(bindings.size());
    info.pBindings = bindings.data();
    check_created(fn.vkCreateDescriptorSetLayout(device.handle(), &info, nullptr, &pipeline.set_layout),
                  pipeline.set_layout, "vkCreateDescriptorSetLayout");
  }

  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_constant_size_};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = types_.empty() ? 0 : 1;
  layout.pSetLayouts = &pipeline.set_layout;
  layout.pushConstantRangeCount = push_constant_size_ > 0 ? 1 : 0;
  layout.pPushConstantRanges = &range;
  check_created(fn.vkCreatePipelineLayout(device.handle(), &layout, nullptr, &pipeline.layout),
                pipeline.layout, "vkCreatePipelineLayout");

  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = spirv.size() * sizeof(uint32_t);
  module_info.pCode = spirv.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  check(fn.vkCreateShaderModule(device.handle(), &module_info, nullptr, &shader), "vkCreateShaderModule");

  VkSpecializationInfo constants{};
  constants.mapEntryCount = static_cast<uint32_t>(specialization.entries.size());
  constants.pMapEntries = specialization.entries.data();
  constants.dataSize = specialization.data.size();
  constants.pData = specialization.data.data();

  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = entry_point.c_str();
  info.stage.pSpecializationInfo = specialization.entries.empty() ? nullptr : &constants;
  info.layout = pipeline.layout;
  const VkResult result =
      fn.vkCreateComputePipelines(device.handle(), cache, 1, &info, nullptr, &pipeline.handle);
  fn.vkDestroyShaderModule(device.handle(), shader, nullptr);
  check(result, "vkCreateComputePipelines");
}

bool Plan::refuses(uint32_t binding, const Image& image) const noexcept {
  return std::any_of(declared_.begin(), declared_.end(), [&](const DeclaredBinding& each) {
    return each.binding == binding && !matches(each.image, image);
  });
}

void Plan::set_uniform_blocks(std::vector<UniformBlock> blocks) {
  std::vector<bool> taken(types_.size());
  for (const UniformBlock& block : blocks) {
    const std::string what = "uniform_blocks: binding " + std::to_string(block.binding);
    if (block.binding >= types_.size() || types_[block.binding] != VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER) {
      throw Error(ErrorKind::invalid_value, what + " of the plan is not a uniform buffer");
    }
    if (taken[block.binding]) {
      throw Error(ErrorKind::invalid_value, what + " is given twice");
    }
    if (block.size == 0 || block.offset < push_constant_size_) {
      throw Error(ErrorKind::invalid_value, what + " has no bytes after the push constants");
    }
    for (const Pipeline& pipeline : pipelines_) {
      const uint32_t most = pipeline.device->properties().core.limits.maxUniformBufferRange;
      if (block.size > most) {
        throw Error(ErrorKind::invalid_value, what + " has " + std::to_string(block.size) +
                                                  " bytes; the device's limit is " + std::to_string(most));
      }
    }
    taken[block.binding] = true;
  }
  uniform_blocks_ = std::move(blocks);
}

uint32_t Plan::argument_size() const noexcept {
  uint32_t end = 0;
  for (const UniformBlock& block : uniform_blocks_) {
    end = std::max(end, block.offset + block.size);
  }
  return end;
}

std::string Plan::title() const {
  const std::string name = "'" + name_ + "'";
  return place_.empty() ? name : name + " (" + place_ + ")";
}

void Plan::release() noexcept {
  for (Pipeline& pipeline : pipelines_) {
    const VolkDeviceTable& fn = pipeline.device->fn();
    const VkDevice device = pipeline.device->handle();
    fn.vkDestroyPipeline(device, pipeline.handle, nullptr);
    fn.vkDestroyPipelineLayout(device, pipeline.layout, nullptr);
    fn.vkDestroyDescriptorSetLayout(device, pipeline.set_layout, nullptr);
  }
  pipelines_.clear();
}

}  // namespace vkd
