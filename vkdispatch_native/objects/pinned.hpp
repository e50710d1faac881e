// Host memory that the device copies from and to by itself, at the speed of the wires.
#pragma once

#include <memory>
#include <utility>

#include "context/instance.hpp"
#include "objects/data.hpp"
#include "objects/memory.hpp"

namespace vkd {

// Memory with all that it lives on: arrays may look at it for longer than the engine lasts.
struct LastingMemory {
  LastingMemory(std::shared_ptr<Instance> of, std::shared_ptr<Device> on, VkDeviceSize size, MemoryUse use)
      : instance(std::move(of)), device(std::move(on)), memory(*device, size, use) {}

  std::shared_ptr<Instance> instance;  // first in, last out
  std::shared_ptr<Device> device;
  Memory memory;
};

class Pinned final : public Data {
 public:
  Pinned(size_t queue_count, std::shared_ptr<Instance> instance, std::shared_ptr<Device> device,
         VkDeviceSize size, MemoryUse use)
      : Data(queue_count),
        memory_(std::make_shared<LastingMemory>(std::move(instance), std::move(device), size, use)) {}

  void release() noexcept override {}  // the memory goes with the last that looks at it
  const char* noun() const noexcept override { return "pinned memory"; }
  bool is_host_visible(size_t) const noexcept override { return true; }

  const std::shared_ptr<LastingMemory>& lasting() const noexcept { return memory_; }
  const Memory& memory() const noexcept { return memory_->memory; }
  const Device& device() const noexcept { return *memory_->device; }
  std::byte* data() const noexcept { return memory().mapped(); }
  VkDeviceSize size() const noexcept override { return memory().size(); }
  bool shares_memory() const noexcept override { return true; }

 private:
  std::shared_ptr<LastingMemory> memory_;
};

}  // namespace vkd
