// The engine's copies between buffers, images and host memory.
#include <algorithm>
#include <map>

#include "engine_use.hpp"
#include "libs/error.hpp"

namespace vkd {

namespace {

Copy pinned_copy(const Device& device, Buffer& buffer, VkDeviceSize offset, Pinned* pinned,
                 const std::byte* data, VkDeviceSize size, bool to_buffer) {
  if (pinned == nullptr || &pinned->device() != &device) {
    throw Error(ErrorKind::invalid_value, "the host memory is not pinned for the queue's device");
  }
  const auto start = static_cast<VkDeviceSize>(data - pinned->data());
  return {&buffer, offset, pinned->memory().handle(), start, size, to_buffer, pinned, nullptr};
}

void check_level(const Image& image, uint32_t level, VkDeviceSize size) {
  if (level >= image.shape().levels) {
    throw Error(ErrorKind::invalid_value, "level: the image has " + std::to_string(image.shape().levels) +
                                              " mip levels, got " + std::to_string(level));
  }
  if (size != image.level_size(level)) {
    throw Error(ErrorKind::invalid_value, "data: mip level " + std::to_string(level) + " takes " +
                                              std::to_string(image.level_size(level)) + " bytes, got " +
                                              std::to_string(size));
  }
}

}  // namespace

void Engine::follow_others(size_t queue, const std::vector<CommandList::SharedUse>& uses) {
  std::map<size_t, uint64_t> last;  // by slot
  for (const auto& [data, writes] : uses) {
    for (size_t slot = 0; data->shared() && slot < slot_count(); ++slot) {
      const uint64_t value = writes ? data->last_use(slot) : data->last_write(slot);
      if (slot % queues_.size() != queue && has_queue(slot) && !timelines_[slot]->passed(value)) {
        last[slot] = std::max(last[slot], value);
      }
    }
  }
  std::vector<Batch::Wait> waits;
  for (const auto& [slot, value] : last) {
    waits.push_back({&queue_at(slot), value});
  }
  for (size_t slot = queue; slot < slot_count() && !waits.empty(); slot += queues_.size()) {
    if (has_queue(slot)) {
      queue_at(slot).append_waits(waits);
    }
  }
}

// Before the host accesses the memory directly: waits for all work that uses it, or that writes it.
void Engine::wait_for_uses(size_t queue, const Buffer& buffer, bool writes) {
  for (size_t slot = 0; slot < slot_count(); ++slot) {
    if (has_queue(slot) && (slot % queues_.size() == queue || buffer.shares_memory())) {
      queue_at(slot).wait(writes ? buffer.last_write(slot) : buffer.last_use(slot), kForever);
    }
  }
}

uint64_t Engine::upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                        VkDeviceSize size) {
  const Use use(*this);
  if (buffer.memory(queue).mapped() != nullptr) {
    wait_for_uses(queue, buffer, false);
  } else {
    follow_others(queue, buffer, true);
  }
  return queues_.at(queue)->upload(buffer, offset, data, size, find_pinned(data, size));
}

void Engine::download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  if (buffer.memory(queue).mapped() != nullptr) {
    wait_for_uses(queue, buffer, true);
  } else {
    follow_others(queue, buffer, false);
  }
  queues_.at(queue)->download(buffer, offset, data, size);
}

Reading Engine::begin_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data,
                               VkDeviceSize size) {
  const Use use(*this);
  if (buffer.memory(queue).mapped() != nullptr) {
    return {};
  }
  follow_others(queue, buffer, false);
  return queues_.at(queue)->begin_download(buffer, offset, data, size, find_pinned(data, size));
}

void Engine::finish_download(size_t queue, const Reading& reading, std::byte* data) {
  const Use use(*this);
  queues_.at(queue)->finish_download(reading, data);
}

void Engine::drop_download(size_t queue, const Reading& reading) noexcept {
  try {
    finish_download(queue, reading, nullptr);
  } catch (const Error&) {
    return;  // the engine was closed and its memory freed
  }
}

Point Engine::start_upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                           VkDeviceSize size) {
  const Use use(*this);
  follow_others(queue, buffer, true);
  return queues_.at(queue)->transfer(
      pinned_copy(queue_at(queue).device(), buffer, offset, find_pinned(data, size), data, size, true));
}

Point Engine::start_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data,
                             VkDeviceSize size) {
  const Use use(*this);
  follow_others(queue, buffer, false);
  return queues_.at(queue)->transfer(
      pinned_copy(queue_at(queue).device(), buffer, offset, find_pinned(data, size), data, size, false));
}

void Engine::upload(size_t queue, Image& image, uint32_t level, const std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  check_level(image, level, size);
  follow_others(queue, image, true);
  queues_.at(queue)->upload(image, level, data);
}

void Engine::download(size_t queue, Image& image, uint32_t level, std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  check_level(image, level, size);
  follow_others(queue, image, false);
  queues_.at(queue)->download(image, level, data);
}

void Engine::copy_between(Buffer& buffer, size_t from, size_t to) {
  const Use use(*this);
  Queue& source = *queues_.at(from);
  Queue& target = *queues_.at(to);
  if (from == to) {
    return;
  }
  if (buffer.shared()) {
    follow(to, to + 1, work_points(from, from + 1));
    return;
  }
  if (queue_devices_[from] == queue_devices_[to]) {
    std::vector<Batch::Wait> waits = {{&source, source.last_value()}};
    for (size_t slot = from + queues_.size(); slot < slot_count(); slot += queues_.size()) {
      if (has_queue(slot)) {
        waits.push_back({&queue_at(slot), buffer.last_write(slot)});
      }
    }
    target.append_waits(std::move(waits));
    const uint64_t copied = target.append_copy_of(buffer, from);
    buffer.mark_read(from, source.append_waits({{&target, copied}}));
    return;
  }
  buffer.poison(from).check();
  crossing(*queue_devices_[from], *queue_devices_[to]).copy(buffer, source, target);
}

Crossing& Engine::crossing(Device& source, Device& target) {
  std::lock_guard lock(crossings_mutex_);
  std::unique_ptr<Crossing>& found = crossings_[{&source, &target}];
  if (!found) {
    found = std::make_unique<Crossing>(queue_devices_.size(), source, target, *graveyard_);
  }
  return *found;
}

bool Engine::copy(Buffer& target, Buffer& source, size_t first, size_t last) {
  const Use use(*this);
  bool crowded = false;
  if (target.id() == source.id()) {
    return false;
  }
  const std::unique_lock sharing = share({{&target, true}, {&source, false}}, first, last);
  const bool lent = Sharing::anywhere() && (target.sharing().ordered() || source.sharing().ordered());
  for (size_t queue = first; queue < last; ++queue) {
    const uint64_t value = queues_[queue]->append_copy_of(target, source);
    crowded |= queues_[queue]->crowded();
    if (lent) {
      queues_[queue]->finish_in_make_room(value);
    }
  }
  return crowded || lent;
}

}  // namespace vkd
