// A user's buffer: one copy of the memory per queue, or one memory shared by all queues.
#pragma once

#include <memory>
#include <vector>

#include "objects/loan.hpp"
#include "objects/pinned.hpp"

namespace vkd {

class Buffer final : public Data {
 public:
  // `shared`: all queues use the same memory; they must belong to one device.
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size, bool shared)
      : Data(queue_devices.size()), size_(size), shared_(shared) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.push_back(shared && !copies_.empty()
                            ? copies_.front()
                            : std::make_shared<Memory>(*device, size, MemoryUse::device));
    }
  }
  // A journal: host memory, one copy per queue, in which kernels record errors. Records have no order.
  struct Notes {};
  Buffer(const std::vector<Device*>& queue_devices, VkDeviceSize size, Notes)
      : Data(queue_devices.size()), size_(size), shared_(false), steady_(true), unordered_(true) {
    copies_.reserve(queue_devices.size());
    for (Device* device : queue_devices) {
      copies_.push_back(std::make_shared<Memory>(*device, size, MemoryUse::host));
    }
  }
  // A view of a block's memory, for every queue. It shares ownership of the memory. All queues belong to the
  // block's device.
  explicit Buffer(const Pinned& block)
      : Data(Data::Alias{block}),
        size_(block.size()),
        shared_(true),
        copies_(block.queue_count(), {block.memory_owner(), &block.memory_owner()->memory}),
        pinned_(true) {}
  // Memory of another library, for every queue.
  Buffer(size_t queue_count, const std::shared_ptr<Memory>& foreign)
      : Data(queue_count), size_(foreign->size()), shared_(true), copies_(queue_count, foreign) {}
  // The same, of the host; see Sharing for `ordered`.
  Buffer(size_t queue_count, const std::shared_ptr<Memory>& imported, bool ordered)
      : Buffer(queue_count, imported) {
    import_ = SharingCount(sharing_pointer(), ordered);
  }
  // A part of another buffer, whose memory lives as long as the part.
  struct Part {
    Buffer& of;
    VkDeviceSize offset, size;
  };
  explicit Buffer(const Part& part) : Data(Data::Alias{part.of}), size_(part.size), shared_(part.of.shared_) {
    for (size_t queue = 0; queue < queue_count(); ++queue) {
      copies_.push_back(std::make_shared<Memory>(part.of.lend(queue), part.offset, part.size));
    }
    import_ = SharingCount(sharing_pointer(), false);
  }
  ~Buffer() override { release(); }

  // The memory of a loan is freed when the last loan ends.
  void release() noexcept override {
    for (std::shared_ptr<Memory>& copy : copies_) {
      if (empty_) {
        copy = empty_;
      } else if (!pinned_) {
        copy->release();
      }
    }
    import_ = {};
  }
  // Returns the memory of a queue's copy, which from now on its last owner frees.
  std::shared_ptr<Memory> lend(size_t queue) {
    if (!empty_) {
      empty_ = std::make_shared<Memory>();
    }
    return copies_[queue];
  }
  bool imported() const noexcept { return import_.counts(); }

  // Turns this into another buffer on the same memory. Recorded uses and hazards stay, since the device may
  // still be using the memory.
  void reset_identity() noexcept {
    creation_id_ = take_id();
    announced_.store(false, std::memory_order_relaxed);
    renewable_ = false;
    steady_.store(false, std::memory_order_relaxed);
  }
  // The id of this buffer; later buffers have larger ones.
  uint64_t creation_id() const noexcept { return creation_id_; }
  bool recyclable() const noexcept override { return !shared_ && !sharing().any(); }

  const char* noun() const noexcept override { return "a buffer"; }
  bool is_host_visible(size_t queue) const noexcept override { return copies_[queue]->mapped() != nullptr; }
  VkDeviceSize size() const noexcept override { return size_; }
  // Bytes of all copies.
  VkDeviceSize allocated() const noexcept { return copies_.size() * copies_.front()->allocated(); }
  const Memory& memory(size_t queue) const noexcept { return *copies_[queue]; }
  bool shared() const noexcept override { return shared_; }
  bool pinned() const noexcept { return pinned_; }  // host memory of a block
  // Created by a function that writes the parts it needs before it reads them, each time a command list runs.
  bool renewable() const noexcept { return renewable_; }
  void set_renewable() noexcept { renewable_ = true; }
  // Every dispatch that writes it restores its contents, so a dispatch that did not run leaves it valid.
  bool steady() const noexcept override { return steady_.load(std::memory_order_relaxed); }
  void set_steady() noexcept { steady_.store(true, std::memory_order_relaxed); }
  bool unordered() const noexcept override { return unordered_; }
  // The next dispatch that writes but does not read it is the first of those that together write all of it.
  void announce() noexcept { announced_.store(true); }
  bool take_announcement() noexcept {
    return announced_.load(std::memory_order_relaxed) && announced_.exchange(false);
  }

 private:
  VkDeviceSize size_;
  bool shared_;
  uint64_t creation_id_ = id();
  std::vector<std::shared_ptr<Memory>> copies_;
  std::shared_ptr<Memory> empty_;  // takes the place of lent memory
  SharingCount import_;
  bool pinned_ = false;
  bool renewable_ = false;
  std::atomic<bool> steady_{false};  // a failing batch may still query a previous use
  bool unordered_ = false;
  std::atomic<bool> announced_{false};
};

}  // namespace vkd
