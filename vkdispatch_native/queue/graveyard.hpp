// Resources that nobody refers to any more, kept until the device has finished with them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "objects/resource.hpp"
#include "queue/timeline.hpp"

namespace vkd {

class Graveyard {
 public:
  // timelines: one for each queue, in the order of Resource's queue indices; null where there is no queue.
  explicit Graveyard(std::vector<Timeline*> timelines) : timelines_(std::move(timelines)) {}

  void retire(std::unique_ptr<Resource> resource) noexcept;  // never blocks
  void sweep() noexcept;                                     // destroys what the device is done with
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }
  // While held nothing is destroyed: someone is about to append commands that may point at it.
  void hold() noexcept { holds_.fetch_add(1); }
  void let_go() noexcept { holds_.fetch_sub(1); }
  void clear() noexcept;  // destroys everything: the device must be idle or lost

 private:
  bool finished(const Resource& resource) noexcept;

  std::vector<Timeline*> timelines_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Resource>> waiting_;
  std::atomic<size_t> count_{0};
  std::atomic<int> holds_{0};
};

}  // namespace vkd
