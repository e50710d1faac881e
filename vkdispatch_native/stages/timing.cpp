#include "stages/timing.hpp"

#include <algorithm>
#include <utility>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr uint32_t kQueries = 2048;  // per pool: even, since a command takes two

}  // namespace

TimedCommand make_timed_command(const Dispatch& dispatch) {
  TimedCommand command;
  command.plan = dispatch.plan->id();
  command.name = dispatch.plan->name();
  command.groups = dispatch.groups;
  command.arguments.assign(dispatch.arguments, dispatch.arguments + dispatch.argument_size);
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
    const Binding& b = dispatch.bindings[i];
    if (b.buffer != nullptr) {
      const int64_t address = b.addressed ? static_cast<int64_t>(b.address_offset) : -1;
      const int64_t binding = b.addressed ? -1 : static_cast<int64_t>(b.index);
      command.resources.push_back({binding, address, 0, b.range});
    } else {
      const uint32_t texel = format_info(b.image->shape().format).texel_size;
      command.resources.push_back({b.index, -1, texel, b.image->level_size(0)});
    }
  }
  return command;
}

TimedCommand make_timed_command(const Copy& copy) {
  TimedCommand command;
  command.kind = copy.to_buffer ? TimedCommand::Kind::write_buffer : TimedCommand::Kind::read_buffer;
  // Both sides of a list's copies are buffers; those on pinned memory belong to the host.
  if (const auto* other = dynamic_cast<const Buffer*>(copy.other)) {
    const Buffer& source = copy.to_buffer ? *other : *copy.buffer;
    const Buffer& target = copy.to_buffer ? *copy.buffer : *other;
    command.kind = source.pinned() == target.pinned() ? TimedCommand::Kind::copy_buffer
                   : source.pinned()                  ? TimedCommand::Kind::write_buffer
                                                      : TimedCommand::Kind::read_buffer;
  }
  command.bytes = copy.size;
  return command;
}

TimedCommand make_timed_command(const ImageCopy& copy) {
  TimedCommand command;
  command.kind = copy.to_image ? TimedCommand::Kind::write_image : TimedCommand::Kind::read_image;
  const auto* other = dynamic_cast<const Buffer*>(copy.other);
  if (other != nullptr && !other->pinned()) {
    command.kind = TimedCommand::Kind::copy_image;
  }
  command.bytes = copy.region.size;
  return command;
}

TimedCommand make_timed_command(const ImagePair& pair) {
  TimedCommand command;
  command.kind = TimedCommand::Kind::copy_image;
  command.bytes = pair.source->level_size(0);
  return command;
}

void TickClock::set(uint64_t ticks, uint64_t mask) noexcept {
  mask_ = mask;
  last_ = ticks & mask;
  total_ = 0;
}

int64_t TickClock::since_set(uint64_t ticks) noexcept {
  const uint64_t ahead = (ticks - last_) & mask_;
  const uint64_t behind = (last_ - ticks) & mask_;
  total_ += ahead <= behind ? static_cast<int64_t>(ahead) : -static_cast<int64_t>(behind);
  last_ = ticks & mask_;
  return total_;
}

Stopwatch::~Stopwatch() {
  for (VkQueryPool pool : pools_) {
    device_.fn().vkDestroyQueryPool(device_.handle(), pool, nullptr);
  }
}

void Stopwatch::write(VkCommandBuffer commands, VkPipelineStageFlagBits stage, size_t query) {
  if (query / kQueries == pools_.size()) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kQueries;
    VkQueryPool pool = VK_NULL_HANDLE;
    check(device_.fn().vkCreateQueryPool(device_.handle(), &info, nullptr, &pool), "vkCreateQueryPool");
    pools_.push_back(pool);
    device_.fn().vkResetQueryPool(device_.handle(), pool, 0, kQueries);
  }
  device_.fn().vkCmdWriteTimestamp(commands, stage, pools_[query / kQueries],
                                   static_cast<uint32_t>(query % kQueries));
}

void Stopwatch::begin(VkCommandBuffer commands, TimedCommand&& command) {
  commands_.push_back(std::move(command));
  write(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 2 * commands_.size() - 2);
}

void Stopwatch::end(VkCommandBuffer commands) {
  write(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 2 * commands_.size() - 1);
}

std::vector<TimedCommand> Stopwatch::collect(size_t slot, uint64_t batch, TickClock& clock) {
  std::vector<TimedCommand> commands = std::exchange(commands_, {});
  std::vector<uint64_t> ticks(2 * commands.size());
  for (size_t first = 0; first < ticks.size(); first += kQueries) {
    const VkQueryPool pool = pools_[first / kQueries];
    const auto count = static_cast<uint32_t>(std::min<size_t>(kQueries, ticks.size() - first));
    const VkResult result =
        device_.fn().vkGetQueryPoolResults(device_.handle(), pool, 0, count, count * sizeof(uint64_t),
                                           &ticks[first], sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
    device_.fn().vkResetQueryPool(device_.handle(), pool, 0, count);
    if (result == VK_NOT_READY) {
      return {};  // the batch was never submitted
    }
    check(result, "vkGetQueryPoolResults");
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    commands[i].slot = slot;
    commands[i].batch = batch;
    commands[i].begin = clock.since_set(ticks[2 * i]);
    commands[i].end = clock.since_set(ticks[2 * i + 1]);
  }
  return commands;
}

}  // namespace vkd
