// Host memory that the device copies from and to by itself, at the speed of the wires.
#pragma once

#include <memory>
#include <utility>

#include "context/instance.hpp"
#include "objects/data.hpp"
#include "objects/memory.hpp"

namespace vkd {

// Arrays may look at it for longer than the engine lasts, so it holds all that its memory lives on.
class Pinned final : public Data {
 public:
  Pinned(size_t queue_count, std::shared_ptr<Instance> instance, std::shared_ptr<Device> device,
         VkDeviceSize size, MemoryUse use)
      : Data(queue_count),
        instance_(std::move(instance)),
        device_(std::move(device)),
        memory_(*device_, size, use) {}

  void release() noexcept override {}  // the memory goes with the object
  const char* noun() const noexcept override { return "pinned memory"; }

  const Memory& memory() const noexcept { return memory_; }
  const Device& device() const noexcept { return *device_; }
  std::byte* data() const noexcept { return memory_.mapped(); }
  VkDeviceSize size() const noexcept { return memory_.size(); }

 private:
  std::shared_ptr<Instance> instance_;  // first in, last out
  std::shared_ptr<Device> device_;
  Memory memory_;
};

}  // namespace vkd
