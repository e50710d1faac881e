// A compute pipeline with its layout, created on every device of the engine.
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

// Values of specialization constants: each entry names a constant and its bytes in `data`.
struct Specialization {
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<std::byte> data;
};

// A uniform block whose values are part of each launch's arguments, at `offset`.
struct UniformBlock {
  uint32_t binding;
  uint32_t offset;
  uint32_t size;
};

class Plan final : public Resource {
 public:
  struct Pipeline {
    Device* device = nullptr;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // null if there are no bindings
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkPipeline handle = VK_NULL_HANDLE;
    bool push_descriptors = false;
  };

  // queue_devices: the device of each queue. Bindings are numbered 0, 1, ... in the order of `types`. cached:
  // for each device what new_cache_data() returned for this plan before, or nothing; if it has no entries,
  // nothing is cached.
  Plan(const std::vector<Device*>& queue_devices, const std::vector<uint32_t>& spirv,
       const std::vector<VkDescriptorType>& types, uint32_t push_constant_size, std::string name,
       const std::string& entry_point, const Specialization& specialization,
       const std::vector<std::string>& cached);
  ~Plan() override { release(); }
  void release() noexcept override;

  const Pipeline& pipeline(size_t queue) const noexcept { return pipelines_[pipeline_of_queue_[queue]]; }
  VkDescriptorType type(uint32_t binding) const noexcept { return types_[binding]; }
  // Whether the shader declares an image at this binding that differs from the given one.
  bool refuses(uint32_t binding, const Image& image) const noexcept;
  size_t binding_count() const noexcept { return types_.size(); }
  uint32_t push_constant_size() const noexcept { return push_constant_size_; }
  const std::string& name() const noexcept { return name_; }
  // Where the kernel is defined, such as "heat.py:12". Set before the plan is used, or never.
  void set_place(std::string place) { place_ = std::move(place); }
  // Blocks that follow the push constants in each launch's arguments. Set before the plan is used, or never.
  // Throws Error(invalid_value) if one is not at a uniform buffer or exceeds the device's limit.
  void set_uniform_blocks(std::vector<UniformBlock> blocks);
  const std::vector<UniformBlock>& uniform_blocks() const noexcept { return uniform_blocks_; }
  uint32_t argument_size() const noexcept;      // bytes of arguments with such blocks, else 0
  std::string title() const;                    // "'scale' (heat.py:12)"
  uint64_t id() const noexcept { return id_; }  // never reused
  // For each device the driver's cache data of the pipeline; empty if unchanged.
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
