// Resources that nobody refers to any more, kept until the device has finished with them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "objects/resource.hpp"
#include "queue/timeline.hpp"

namespace vkd {

// Threads that are about to append commands which point at resources. What is retired while one of them is
// there stays until it has left; how many come after it does not matter: newcomers are counted apart from
// those who are waited for.
class Holds {
 public:
  unsigned begin() noexcept {  // give the number to end()
    const unsigned side = side_.load() & 1;
    counts_[side].fetch_add(1);
    return side;
  }
  void end(unsigned side) noexcept { counts_[side].fetch_sub(1); }
  bool none() const noexcept { return counts_[0].load() == 0 && counts_[1].load() == 0; }

  // Once both sides have been seen empty, all who were there at first have left. One thread at a time calls
  // turn(): when those who are waited for have left, the others' turn has come.
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
  // timelines: one for each queue, in the order of Resource's queue indices; null where there is no
  // queue.
  Graveyard(std::vector<Timeline*> timelines, Holds& holds)
      : timelines_(std::move(timelines)), completed_(timelines_.size()), holds_(holds) {}

  void retire(std::unique_ptr<Resource> resource) noexcept;  // never blocks
  void defer(std::unique_ptr<Resource> resource) noexcept;   // the same, and leaves destroying it to sweep()
  bool finished(const Resource& resource) noexcept;  // the device is done with it, for all that is known
  void sweep() noexcept;                             // destroys what the device is done with
  class Pause;
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }
  // Everything that is left: the device must be idle or lost.
  std::vector<std::unique_ptr<Resource>> take() noexcept;

 private:
  struct Waiting {
    std::unique_ptr<Resource> resource;
    uint64_t turns;  // of holds_, when it was retired
  };

  std::vector<Timeline*> timelines_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  std::vector<uint64_t> completed_;  // scratch of sweep, by queue
  std::atomic<size_t> count_{0};
  Holds& holds_;
};

// Nothing is destroyed while there is one.
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
