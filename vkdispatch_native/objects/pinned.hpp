// Host memory that the device accesses directly, at full transfer speed.
#pragma once

#include <memory>
#include <utility>

#include "context/instance.hpp"
#include "objects/data.hpp"
#include "objects/memory.hpp"

namespace vkd {

// Memory with everything it depends on: arrays may use it after the engine is closed.
struct MemoryOwner {
  MemoryOwner(std::shared_ptr<Instance> of, std::shared_ptr<Device> on, VkDeviceSize size, MemoryUse use)
      : instance(std::move(of)), device(std::move(on)), memory(*device, size, use) {}

  std::shared_ptr<Instance> instance;  // destroyed last
  std::shared_ptr<Device> device;
  Memory memory;
};

class Pinned final : public Data {
 public:
  Pinned(size_t queue_count, std::shared_ptr<Instance> instance, std::shared_ptr<Device> device,
         VkDeviceSize size, MemoryUse use)
      : Data(queue_count),
        memory_(std::make_shared<MemoryOwner>(std::move(instance), std::move(device), size, use)) {}

  void release() noexcept override {}  // the last owner frees the memory
  const char* noun() const noexcept override { return "pinned memory"; }
  bool is_host_visible(size_t) const noexcept override { return true; }

  const std::shared_ptr<MemoryOwner>& memory_owner() const noexcept { return memory_; }
  const Memory& memory() const noexcept { return memory_->memory; }
  const Device& device() const noexcept { return *memory_->device; }
  std::byte* data() const noexcept { return memory().mapped(); }
  VkDeviceSize size() const noexcept override { return memory().size(); }
  bool shares_memory() const noexcept override { return true; }

 private:
  std::shared_ptr<MemoryOwner> memory_;
};

}  // namespace vkd
