#include "stages/recorder.hpp"

#include <cstring>
#include <utility>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr VkPipelineStageFlags kDeviceStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kDeviceWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kDeviceAccesses =
    kDeviceWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT;

}  // namespace

void Recorder::begin(VkCommandBufferUsageFlags usage) {
  commands_ = frame_.begin(usage);
  bound_plan_ = nullptr;
}

VkCommandBuffer Recorder::end() {
  VkCommandBuffer finished = std::exchange(commands_, VK_NULL_HANDLE);
  frame_.end(finished);
  return finished;
}

void Recorder::barrier() {
  ++hazards_.epoch;
  if (!shared_.barriers_enabled.load(std::memory_order_relaxed)) {
    return;
  }
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kDeviceWrites;
  memory.dstAccessMask = kDeviceAccesses;
  frame_.device().fn().vkCmdPipelineBarrier(commands_, kDeviceStages, kDeviceStages, 0, 1, &memory, 0,
                                            nullptr, 0, nullptr);
  shared_.barriers.fetch_add(1, std::memory_order_relaxed);
  if (shared_.debug) {
    log_.push_back({0, false, false, 0, {}});
  }
}

void Recorder::host_barrier() {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kDeviceWrites;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  frame_.device().fn().vkCmdPipelineBarrier(commands_, kDeviceStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                            &memory, 0, nullptr, 0, nullptr);
}

void Recorder::order(const Binding* bindings, size_t count, const Plan* plan) {
  for (size_t i = 0; i < count; ++i) {
    const Binding& b = bindings[i];
    if (conflicts(hazards_.state(*b.buffer), hazards_.epoch, b.reads, b.writes)) {
      barrier();
      break;
    }
  }
  // A command's own accesses are noted only after all were compared: it does not conflict with itself.
  for (size_t i = 0; i < count; ++i) {
    const Binding& b = bindings[i];
    note_access(hazards_.state(*b.buffer), hazards_.epoch, b.reads, b.writes);
  }
  if (shared_.debug) {
    static std::atomic<uint32_t> next_command{0};
    const uint32_t command = next_command.fetch_add(1, std::memory_order_relaxed);
    const std::string name = plan != nullptr ? "kernel '" + plan->name() + "'" : "a copy";
    for (size_t i = 0; i < count; ++i) {
      log_.push_back({bindings[i].buffer->id(), bindings[i].reads, bindings[i].writes, command, name});
    }
  }
}

void Recorder::bind_resources(const Dispatch& d, const Plan::Pipeline& pipeline) {
  const bool uniform = d.uniform_binding >= 0;
  const size_t count = d.binding_count + (uniform ? 1u : 0u);
  if (count == 0) {
    return;
  }
  buffer_infos_.resize(count);
  writes_.resize(count);
  for (size_t i = 0; i < d.binding_count; ++i) {
    const Binding& b = d.bindings[i];
    buffer_infos_[i] = {b.buffer->memory(queue_).handle(), b.offset, b.range};
    writes_[i].dstBinding = b.index;
  }
  if (uniform) {
    const UniformSlice slice = frame_.allocate_uniform(d.argument_size);
    std::memcpy(slice.mapped, d.arguments, d.argument_size);
    buffer_infos_[count - 1] = {slice.buffer, slice.offset, d.argument_size};
    writes_[count - 1].dstBinding = static_cast<uint32_t>(d.uniform_binding);
  }
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (!pipeline.push_descriptors) {
    set = frame_.allocate_set(pipeline.set_layout);
  }
  for (size_t i = 0; i < count; ++i) {
    VkWriteDescriptorSet& write = writes_[i];
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.descriptorCount = 1;
    write.descriptorType = d.plan->type(write.dstBinding);
    write.pBufferInfo = &buffer_infos_[i];
  }
  const VolkDeviceTable& fn = frame_.device().fn();
  if (pipeline.push_descriptors) {
    fn.vkCmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0,
                                 static_cast<uint32_t>(count), writes_.data());
  } else {
    fn.vkUpdateDescriptorSets(frame_.device().handle(), static_cast<uint32_t>(count), writes_.data(), 0,
                              nullptr);
    fn.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0,
                               nullptr);
  }
}

void Recorder::dispatch(const Dispatch& d) {
  order(d.bindings, d.binding_count, d.plan);
  const VolkDeviceTable& fn = frame_.device().fn();
  const Plan::Pipeline& pipeline = d.plan->pipeline(queue_);
  if (bound_plan_ != d.plan) {
    fn.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    bound_plan_ = d.plan;
  }
  bind_resources(d, pipeline);
  if (d.uniform_binding < 0 && d.argument_size > 0) {
    fn.vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.argument_size,
                          d.arguments);
  }
  fn.vkCmdDispatch(commands_, d.groups.x, d.groups.y, d.groups.z);
}

void Recorder::copy(const Copy& c) {
  const Binding access{c.buffer, c.buffer_offset, c.size, 0, !c.to_buffer, c.to_buffer};
  order(&access, 1, nullptr);
  const VkBuffer buffer = c.buffer->memory(queue_).handle();
  VkBufferCopy region{};
  region.srcOffset = c.to_buffer ? c.staging_offset : c.buffer_offset;
  region.dstOffset = c.to_buffer ? c.buffer_offset : c.staging_offset;
  region.size = c.size;
  frame_.device().fn().vkCmdCopyBuffer(commands_, c.to_buffer ? c.staging : buffer,
                                       c.to_buffer ? buffer : c.staging, 1, &region);
}

}  // namespace vkd
