// Unreferenced resources, kept until the device has finished using them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "objects/resource.hpp"
#include "queue/timeline.hpp"

namespace vkd {

// Counts the threads that are about to append commands with pointers to resources. A resource retired
// meanwhile is kept until those threads are done. Threads that begin later are counted separately, so they
// cannot delay its destruction.
class Holds {
 public:
  unsigned begin() noexcept {  // pass the result to end()
    const unsigned side = side_.load() & 1;
    counts_[side].fetch_add(1);
    return side;
  }
  void end(unsigned side) noexcept { counts_[side].fetch_sub(1); }
  bool none() const noexcept { return counts_[0].load() == 0 && counts_[1].load() == 0; }

  // Once both sides have been empty, all threads counted at first have ended. Only one thread may call turn()
  // at a time: when the side that is waited for is empty, it switches to the other one.
  void turn() noexcept {
    const uint64_t side = side_.load();
    if (counts_[(side + 1) & 1].load() == 0) {
      side_.store(side + 1);
    }
  }
  uint64_t turns() const noexcept { return side_.load(); }

 private:
  std::atomic<uint64_t> side_{0};
  std::array<std::atomic<int>, 2> counts_{};
};

class Graveyard {
 public:
  // timelines: one per queue, in the order of Resource's queue indices; null if there is no queue.
  Graveyard(std::vector<Timeline*> timelines, Holds& holds)
      : timelines_(std::move(timelines)), completed_(timelines_.size()), holds_(holds) {}

  void retire(std::unique_ptr<Resource> resource) noexcept;  // never blocks
  void defer(std::unique_ptr<Resource> resource) noexcept;   // the same, but sweep() destroys it
  bool finished(const Resource& resource) noexcept;  // whether the device is known to have finished using it
  void sweep() noexcept;                             // destroys what the device has finished using
  class Pause;
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }
  // Everything that is left. The device must be idle or lost.
  std::vector<std::unique_ptr<Resource>> take() noexcept;

 private:
  struct Waiting {
    std::unique_ptr<Resource> resource;
    uint64_t turns;  // of holds_, when the resource was retired
  };

  std::vector<Timeline*> timelines_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  std::vector<uint64_t> completed_;  // scratch of sweep, by queue
  std::atomic<size_t> count_{0};
  Holds& holds_;
};

// Prevents any destruction during its lifetime.
class Graveyard::Pause {
 public:
  explicit Pause(Graveyard& graveyard)
      : holds_(graveyard.holds_), number_(holds_.begin()), lock_(graveyard.mutex_) {}
  ~Pause() { holds_.end(number_); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  Holds& holds_;
  const unsigned number_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace vkd
