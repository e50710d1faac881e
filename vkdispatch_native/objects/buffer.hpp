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
  // A journal: memory of the host, a copy for each queue, that the device notes errors in. Notes have no
  // order.
  struct Notes {};
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size, Notes)
      : Data(queue_devices.size()), size_(size), shared_(false), steady_(true), unordered_(true) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.push_back(std::make_shared<Memory>(*device, size, MemoryUse::host));
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

  // From here on it is another buffer on the same memory. What was noted of uses and hazards stays: the
  // device may be at work on it.
  void begin_life() noexcept {
    creation_id_ = take_id();
    announced_.store(false, std::memory_order_relaxed);
    renewable_ = false;
    steady_.store(false, std::memory_order_relaxed);
  }
  uint64_t creation_id() const noexcept { return creation_id_; }  // as an id: later ones are of younger data
  bool recyclable() const noexcept override { return !shared_; }

  const char* noun() const noexcept override { return "a buffer"; }
  bool is_host_visible(size_t queue) const noexcept override { return copies_[queue]->mapped() != nullptr; }
  VkDeviceSize size() const noexcept override { return size_; }
  // Bytes of all copies.
  VkDeviceSize allocated() const noexcept { return copies_.size() * copies_.front()->allocated(); }
  const Memory& memory(size_t queue) const noexcept { return *copies_[queue]; }
  bool shared() const noexcept override { return shared_; }
  bool pinned() const noexcept { return pinned_; }  // host memory, of a block
  // Made by a function, which writes what it needs of it before it reads it, each time a command list runs.
  bool renewable() const noexcept { return renewable_; }
  void set_renewable() noexcept { renewable_ = true; }
  // Every dispatch that writes it leaves it as it was: one that did not run does so as well.
  bool steady() const noexcept override { return steady_.load(std::memory_order_relaxed); }
  void set_steady() noexcept { steady_.store(true, std::memory_order_relaxed); }
  bool unordered() const noexcept override { return unordered_; }
  // The next dispatch that writes it, and does not read it, is the first of those that write all of it.
  void announce() noexcept { announced_.store(true); }
  bool take_announcement() noexcept {
    return announced_.load(std::memory_order_relaxed) && announced_.exchange(false);
  }

 private:
  VkDeviceSize size_;
  bool shared_;
  uint64_t creation_id_ = id();
  std::vector<std::shared_ptr<Memory>> copies_;
  bool pinned_ = false;
  bool renewable_ = false;
  std::atomic<bool> steady_{false};  // of a former life it is still asked when a batch fails
  bool unordered_ = false;
  std::atomic<bool> announced_{false};
};

}  // namespace vkd
