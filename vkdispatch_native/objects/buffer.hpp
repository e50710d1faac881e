// A user's buffer: one copy of the memory for each queue, or one memory for all of them.
#pragma once

#include <memory>
#include <vector>

#include "objects/pinned.hpp"

namespace vkd {

class Buffer final : public Data {
 public:
  // `shared`: all queues, which must be of one device, have the same memory.
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size, bool shared)
      : Data(queue_devices.size()), size_(size), shared_(shared) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.push_back(shared && !copies_.empty()
                            ? copies_.front()
                            : std::make_shared<Memory>(*device, size, MemoryUse::device));
    }
  }
  // The memory of a block, for every queue; it lives as long as either. All queues are of the block's device.
  explicit Buffer(const Pinned& block)
      : Data(Data::Alias{block}),
        size_(block.size()),
        shared_(true),
        copies_(block.queue_count(), {block.lasting(), &block.lasting()->memory}),
        pinned_(true) {}
  ~Buffer() override { release(); }

  void release() noexcept override {
    for (const std::shared_ptr<Memory>& copy : copies_) {
      if (!pinned_) {
        copy->release();
      }
    }
  }

  const char* noun() const noexcept override { return "a buffer"; }
  bool host_sees(size_t queue) const noexcept override { return copies_[queue]->mapped() != nullptr; }
  VkDeviceSize size() const noexcept override { return size_; }
  const Memory& memory(size_t queue) const noexcept { return *copies_[queue]; }
  bool shared() const noexcept override { return shared_; }
  bool pinned() const noexcept { return pinned_; }  // host memory, of a block
  // Made by a function that fills it before it reads it, each time a command list runs.
  bool renewable() const noexcept { return renewable_; }
  void set_renewable() noexcept { renewable_ = true; }

 private:
  VkDeviceSize size_;
  bool shared_;
  std::vector<std::shared_ptr<Memory>> copies_;
  bool pinned_ = false;
  bool renewable_ = false;
};

}  // namespace vkd
