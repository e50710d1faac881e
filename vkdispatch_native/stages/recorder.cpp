#include "stages/recorder.hpp"

#include <algorithm>
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
constexpr VkAccessFlags kCopyAccesses = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

// The stages and accesses that a barrier may name on a queue.
struct Scope {
  VkPipelineStageFlags stages;
  VkAccessFlags writes;
  VkAccessFlags accesses;
};

Scope scope_of(const Frame& frame) {
  if (frame.only_copies()) {
    return {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, kCopyAccesses};
  }
  return {kDeviceStages, kDeviceWrites, kDeviceAccesses};
}

// Whether two bindings use the same bytes or texels. Buffers accessed by address are not bound.
bool same_place(const Binding& a, const Binding& b) noexcept {
  return a.addressed == b.addressed && a.index == b.index && a.buffer == b.buffer && a.image == b.image &&
         a.sampler == b.sampler && a.offset == b.offset && a.range == b.range;
}

}  // namespace

void Recorder::begin(VkCommandBufferUsageFlags usage) {
  commands_ = frame_.begin(usage);
  unbind();
}

void Recorder::unbind() noexcept {
  bound_plan_ = nullptr;
  frame_.scratch().bound.clear();
  frame_.scratch().constants.clear();
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
  const Scope scope = scope_of(frame_);
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = scope.writes;
  memory.dstAccessMask = scope.accesses;
  frame_.device().fn().vkCmdPipelineBarrier(commands_, scope.stages, scope.stages, 0, 1, &memory, 0, nullptr,
                                            0, nullptr);
  shared_.barriers.fetch_add(1, std::memory_order_relaxed);
  if (shared_.debug) {
    log_.push_back({0, false, false, 0, {}, ""});
  }
}

void Recorder::host_barrier() {
  const Scope scope = scope_of(frame_);
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = scope.writes;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  frame_.device().fn().vkCmdPipelineBarrier(commands_, scope.stages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                            &memory, 0, nullptr, 0, nullptr);
}

template <typename AnyCommand>
void Recorder::order(const AnyCommand& command, const Plan* plan) {
  bool conflict = false;
  for_each_access(command, [&](Data& data, bool reads, bool writes) {
    conflict = conflict || conflicts(hazards_.state(data), hazards_.epoch, reads, writes);
  });
  if (conflict) {
    barrier();
  }
  // Record a command's own accesses after all comparisons: it does not conflict with itself.
  for_each_access(command, [&](Data& data, bool reads, bool writes) {
    if (!data.unordered()) {
      note_access(hazards_.state(data), hazards_.epoch, reads, writes);
    }
  });
  if (shared_.debug) {
    static std::atomic<uint32_t> next_command{0};
    const uint32_t number = next_command.fetch_add(1, std::memory_order_relaxed);
    const std::string name = plan != nullptr ? "kernel '" + plan->name() + "'" : "a copy";
    for_each_access(command, [&](const Data& data, bool reads, bool writes) {
      if (!data.unordered()) {
        log_.push_back({data.id(), reads, writes, number, name, data.noun()});
      }
    });
  }
}

const std::byte* Recorder::complete_arguments(const Dispatch& d) {
  const std::byte* arguments = d.arguments;
  std::vector<std::byte>& complete = frame_.scratch().arguments;
  for (size_t i = 0; i < d.binding_count; ++i) {
    const Binding& b = d.bindings[i];
    if (!b.addressed) {
      continue;
    }
    if (arguments == d.arguments) {
      complete.assign(arguments, arguments + d.argument_size);
      arguments = complete.data();
    }
    const VkDeviceAddress address = b.buffer->memory(queue_).address();
    std::memcpy(complete.data() + b.address_offset, &address, sizeof(address));
  }
  return arguments;
}

void Recorder::push_constants(const Dispatch& d, const Plan::Pipeline& pipeline) {
  const uint32_t size = d.plan->uniform_blocks().empty() ? d.argument_size : d.plan->push_constant_size();
  if (size == 0) {
    return;
  }
  const std::byte* arguments = complete_arguments(d);
  std::vector<std::byte>& constants = frame_.scratch().constants;
  if (constants.size() >= size && std::memcmp(constants.data(), arguments, size) == 0) {
    return;
  }
  frame_.device().fn().vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, size,
                                          arguments);
  constants.resize(std::max<size_t>(constants.size(), size));
  std::memcpy(constants.data(), arguments, size);
}

void Recorder::bind_resources(const Dispatch& d, const Plan::Pipeline& pipeline) {
  const std::vector<UniformBlock>& blocks = d.plan->uniform_blocks();
  const bool uniform = d.uniform_binding >= 0 || !blocks.empty();
  if (d.binding_count == 0 && !uniform) {
    return;
  }
  std::vector<Binding>& bound = frame_.scratch().bound;
  if (!uniform &&
      std::equal(bound.begin(), bound.end(), d.bindings, d.bindings + d.binding_count, same_place)) {
    return;
  }
  bound.assign(d.bindings, d.bindings + d.binding_count);
  std::vector<VkDescriptorBufferInfo>& buffers = frame_.scratch().buffers;
  std::vector<VkDescriptorImageInfo>& images = frame_.scratch().images;
  std::vector<VkWriteDescriptorSet>& writes = frame_.scratch().writes;
  // Reserve room for the uniform blocks too: they are written last.
  const size_t most = d.binding_count + std::max<size_t>(blocks.size(), 1);
  buffers.resize(most);
  images.resize(most);
  writes.resize(most);
  size_t count = 0;
  for (size_t each = 0; each < d.binding_count; ++each) {
    const Binding& b = d.bindings[each];
    if (b.addressed) {
      continue;
    }
    const size_t i = count++;
    writes[i].dstBinding = b.index;
    if (b.buffer != nullptr) {
      const Memory& memory = b.buffer->memory(queue_);
      buffers[i] = {memory.handle(), memory.start() + b.offset, b.range};
    } else if (b.sampler != nullptr) {
      images[i] = {b.sampler->handle(queue_), b.image->sampled_view(queue_), VK_IMAGE_LAYOUT_GENERAL};
    } else {
      images[i] = {VK_NULL_HANDLE, b.image->storage_view(queue_), VK_IMAGE_LAYOUT_GENERAL};
    }
  }
  const auto bind_values = [&](const UniformBlock& block, const std::byte* arguments) {
    const UniformSlice slice = frame_.allocate_uniform(block.size);
    std::memcpy(slice.mapped, arguments + block.offset, block.size);
    buffers[count] = {slice.buffer, slice.offset, block.size};
    writes[count].dstBinding = block.binding;
    ++count;
  };
  if (d.uniform_binding >= 0) {
    bind_values({static_cast<uint32_t>(d.uniform_binding), 0, d.argument_size}, complete_arguments(d));
  } else if (uniform) {
    const std::byte* arguments = complete_arguments(d);
    for (const UniformBlock& block : blocks) {
      bind_values(block, arguments);
    }
  }
  if (count == 0) {
    return;
  }
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (!pipeline.push_descriptors) {
    set = frame_.allocate_set(pipeline.set_layout);
  }
  for (size_t i = 0; i < count; ++i) {
    VkWriteDescriptorSet& write = writes[i];
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.descriptorCount = 1;
    write.descriptorType = d.plan->type(write.dstBinding);
    write.pBufferInfo = &buffers[i];  // Vulkan uses the one that matches the type
    write.pImageInfo = &images[i];
  }
  const VolkDeviceTable& fn = frame_.device().fn();
  if (pipeline.push_descriptors) {
    fn.vkCmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0,
                                 static_cast<uint32_t>(count), writes.data());
  } else {
    fn.vkUpdateDescriptorSets(frame_.device().handle(), static_cast<uint32_t>(count), writes.data(), 0,
                              nullptr);
    fn.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0,
                               nullptr);
  }
}

// Records what belongs between the barrier before a command and the command itself.
template <typename AnyCommand>
void Recorder::start_timing(const AnyCommand& command) {
  if (stopwatch_ != nullptr) {
    TimedCommand timed_command = make_timed_command(command);
    timed_command.epoch = hazards_.epoch;
    stopwatch_->begin(commands_, std::move(timed_command));
  }
}

void Recorder::end_timing() {
  if (stopwatch_ != nullptr) {
    stopwatch_->end(commands_);
  }
}

void Recorder::mark(const Plan& plan) {
  if (const uint32_t number = checkpoints_->mark(commands_, queue_)) {
    frame_.marks().push_back({number, &plan});
  }
}

void Recorder::record(const Dispatch& d) {
  order(d, d.plan);
  const VolkDeviceTable& fn = frame_.device().fn();
  const Plan::Pipeline& pipeline = d.plan->pipeline(queue_);
  if (bound_plan_ != d.plan) {
    unbind();  // the pipeline layouts differ
    fn.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    bound_plan_ = d.plan;
  }
  bind_resources(d, pipeline);
  if (d.uniform_binding < 0 && d.argument_size > 0) {
    push_constants(d, pipeline);
  }
  if (checkpoints_ != nullptr) {
    mark(*d.plan);
  }
  start_timing(d);
  fn.vkCmdDispatch(commands_, d.groups.x, d.groups.y, d.groups.z);
  end_timing();
}

void Recorder::record(const Copy& c) {
  order(c, nullptr);
  const VkBuffer buffer = c.buffer->memory(queue_).handle();
  const VkDeviceSize offset = c.buffer->memory(queue_).start() + c.buffer_offset;
  VkBufferCopy region{};
  region.srcOffset = c.to_buffer ? c.staging_offset : offset;
  region.dstOffset = c.to_buffer ? offset : c.staging_offset;
  region.size = c.size;
  start_timing(c);
  frame_.device().fn().vkCmdCopyBuffer(commands_, c.to_buffer ? c.staging : buffer,
                                       c.to_buffer ? buffer : c.staging, 1, &region);
  end_timing();
}

void Recorder::record(const ImageCopy& c) {
  order(c, nullptr);
  const ImageRegion& r = c.region;
  VkBufferImageCopy region{};
  region.bufferOffset = c.staging_offset;
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, r.level, r.first_layer, r.layers};
  region.imageOffset = r.offset;
  region.imageExtent = r.extent;
  const VkImage image = c.image->handle(queue_);
  const VolkDeviceTable& fn = frame_.device().fn();
  start_timing(c);
  if (c.to_image) {
    fn.vkCmdCopyBufferToImage(commands_, c.staging, image, VK_IMAGE_LAYOUT_GENERAL, 1, &region);
  } else {
    fn.vkCmdCopyImageToBuffer(commands_, image, VK_IMAGE_LAYOUT_GENERAL, c.staging, 1, &region);
  }
  end_timing();
}

void Recorder::record(const ImagePair& p) {
  order(p, nullptr);
  VkImageCopy region{};
  region.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, p.source->shape().layers};
  region.dstSubresource = region.srcSubresource;
  region.extent = p.source->shape().extent;
  start_timing(p);
  frame_.device().fn().vkCmdCopyImage(commands_, p.source->handle(queue_), VK_IMAGE_LAYOUT_GENERAL,
                                      p.target->handle(queue_), VK_IMAGE_LAYOUT_GENERAL, 1, &region);
  end_timing();
}

void Recorder::record(const Timestamp& t) {
  frame_.device().fn().vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                           t.queries->handle(), t.number);
}

void Recorder::reset(const Queries& queries, uint32_t first, uint32_t count) {
  frame_.device().fn().vkCmdResetQueryPool(commands_, queries.handle(), first, count);
}

void Recorder::start(const Image& image) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.dstAccessMask = kDeviceAccesses & ~VK_ACCESS_UNIFORM_READ_BIT;
  barrier.srcAccessMask = image.first_layout() == VK_IMAGE_LAYOUT_UNDEFINED ? 0 : VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.oldLayout = image.first_layout();
  barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image.handle(queue_);
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, VK_REMAINING_MIP_LEVELS, 0,
                              VK_REMAINING_ARRAY_LAYERS};
  frame_.device().fn().vkCmdPipelineBarrier(commands_, kDeviceStages, kDeviceStages, 0, 0, nullptr, 0,
                                            nullptr, 1, &barrier);
}

}  // namespace vkd
