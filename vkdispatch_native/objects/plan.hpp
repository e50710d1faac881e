// A compute pipeline with its layout, made on every device of the engine.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "context/device.hpp"
#include "objects/interface.hpp"
#include "objects/resource.hpp"

namespace vkd {

// Values for a module's specialization constants: each entry names a constant and its bytes in `data`.
struct Specialization {
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<std::byte> data;
};

// A uniform block whose values come with each launch, among its arguments from `offset` on.
struct UniformBlock {
  uint32_t binding;
  uint32_t offset;
  uint32_t size;
};

class Plan final : public Resource {
 public:
  struct Pipeline {
    Device* device = nullptr;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // null when nothing is bound
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline handle = VK_NULL_HANDLE;
    bool push_descriptors = false;
  };

  // queue_devices: the device of each queue; bindings number 0, 1, ... in order of `types`. cached: for each
  // device what new_cache_data() gave when this plan was made before, or nothing; without entries nothing is
  // cached.
  Plan(const std::vector<Device*>& queue_devices, const std::vector<uint32_t>& spirv,
       const std::vector<VkDescriptorType>& types, uint32_t push_constant_size, std::string name,
       const std::string& entry_point, const Specialization& specialization,
       const std::vector<std::string>& cached);
  ~Plan() override { release(); }
  void release() noexcept override;

  const Pipeline& pipeline(size_t queue) const noexcept { return pipelines_[pipeline_of_queue_[queue]]; }
  VkDescriptorType type(uint32_t binding) const noexcept { return types_[binding]; }
  // Whether the code declares an image at a binding, and then another one than this.
  bool refuses(uint32_t binding, const Image& image) const noexcept;
  size_t binding_count() const noexcept { return types_.size(); }
  uint32_t push_constant_size() const noexcept { return push_constant_size_; }
  const std::string& name() const noexcept { return name_; }
  // Where the kernel is defined, such as "heat.py:12"; set before the plan is used, or never.
  void set_place(std::string place) { place_ = std::move(place); }
  // Blocks that follow the push constants in the arguments of each launch; set before the plan is used, or
  // never. Throws Error(invalid_value) where one is at no uniform buffer, or is larger than a device takes.
  void set_uniform_blocks(std::vector<UniformBlock> blocks);
  const std::vector<UniformBlock>& uniform_blocks() const noexcept { return uniform_blocks_; }
  uint32_t argument_size() const noexcept;      // bytes of the arguments where there are such blocks, else 0
  std::string title() const;                    // "'scale' (heat.py:12)"
  uint64_t id() const noexcept { return id_; }  // never given twice
  // For each device the driver's form of the pipeline, empty where it is what was given.
  const std::vector<std::string>& new_cache_data() const noexcept { return new_cache_data_; }

 private:
  void create(Pipeline& pipeline, const std::vector<uint32_t>& spirv, const std::string& entry_point,
              const Specialization& specialization, VkPipelineCache cache);

  static std::atomic<uint64_t> next_id_;
  const uint64_t id_ = next_id_.fetch_add(1, std::memory_order_relaxed);
  std::vector<VkDescriptorType> types_;
  std::vector<DeclaredBinding> declared_;
  uint32_t push_constant_size_;
  std::vector<UniformBlock> uniform_blocks_;
  std::string name_;
  std::string place_;
  std::vector<Pipeline> pipelines_;
  std::vector<size_t> pipeline_of_queue_;
  std::vector<std::string> new_cache_data_;
};

}  // namespace vkd
