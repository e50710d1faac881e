// What commands read and write: a buffer or an image, with one copy per queue.
#pragma once

#include <atomic>
#include <memory>

#include <vulkan/vulkan_core.h>

#include "objects/poison.hpp"
#include "objects/resource.hpp"

namespace vkd {

// The barrier epochs in which a queue's copy was last read and written (see stages/hazards.hpp).
struct HazardState {
  uint64_t read_epoch = 0;
  uint64_t write_epoch = 0;
};

// The state of one queue's copy. Copies that share one memory store their poison in the first state.
struct CopyState {
  HazardState hazards;
  Poison poison;
};

// How many programs on the host use a memory at the same time as the device; see Loan.
class Sharing {
 public:
  // `ordered`: calls that append commands on the memory return after the device has run them.
  void begin(bool ordered) noexcept {
    loans_.fetch_add(1);
    if (ordered) {
      ordered_.fetch_add(1);
      anywhere_.fetch_add(1);
    }
  }
  void end(bool ordered) noexcept {
    loans_.fetch_sub(1);
    if (ordered) {
      ordered_.fetch_sub(1);
      anywhere_.fetch_sub(1);
    }
  }
  bool any() const noexcept { return loans_.load(std::memory_order_relaxed) > 0; }
  bool ordered() const noexcept { return ordered_.load(std::memory_order_relaxed) > 0; }
  // Whether any memory has ordered loans: the only check that programs without them pay for.
  static bool anywhere() noexcept { return anywhere_.load(std::memory_order_relaxed) > 0; }

 private:
  static inline std::atomic<int> anywhere_{0};
  std::atomic<int> loans_{0};
  std::atomic<int> ordered_{0};
};

class Data : public Resource {
 public:
  explicit Data(size_t queue_count)
      : Resource(queue_count), id_(take_id()), states_(new States(kSlotsPerQueue * queue_count)) {}
  // Another object on the same memory: hazards are tracked as if the two were one.
  struct Alias {
    const Data& of;
  };
  explicit Data(Alias alias)
      : Resource(Resource::Alias{alias.of}), id_(alias.of.id_), states_(alias.of.states_) {}

  uint64_t id() const noexcept { return id_; }  // of the memory; never reused, unlike an address
  HazardState& hazards(size_t queue) noexcept { return states_->copies[queue].hazards; }
  // Of the memory: objects on the same memory have the same.
  Sharing& sharing() const noexcept { return states_->sharing; }
  std::shared_ptr<Sharing> sharing_pointer() const noexcept { return {states_, &states_->sharing}; }
  Poison& poison(size_t slot) const noexcept {
    return states_->copies[shares_memory() ? 0 : slot % queue_count()].poison;
  }
  bool poisoned() const noexcept {  // any copy
    for (size_t queue = 0; queue < queue_count(); ++queue) {
      if (poison(queue).failure()) {
        return true;
      }
    }
    return false;
  }
  virtual VkDeviceSize size() const noexcept { return 0; }  // bytes, if they are contiguous
  virtual const char* noun() const noexcept = 0;            // for messages
  // Whether all queues share one memory instead of having a copy each.
  virtual bool shared() const noexcept { return false; }
  virtual bool shares_memory() const noexcept { return shared(); }
  virtual bool steady() const noexcept { return false; }
  // Whether commands that write it need no order, and so no barriers, among each other.
  virtual bool unordered() const noexcept { return false; }
  // Data created later have this id or a larger one.
  static uint64_t next_id() noexcept { return next_id_.load(); }
  // Whether the host reads a queue's copy without any command.
  virtual bool is_host_visible(size_t) const noexcept { return false; }

 protected:
  static uint64_t take_id() noexcept { return next_id_.fetch_add(1); }

 private:
  struct States {
    explicit States(size_t count) : copies(new CopyState[count]) {}
    std::unique_ptr<CopyState[]> copies;
    Sharing sharing;
  };

  static inline std::atomic<uint64_t> next_id_{1};
  const uint64_t id_;
  std::shared_ptr<States> states_;
};

}  // namespace vkd
