// Which batches of a queue failed, or skipped commands because data they need was not written.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "objects/poison.hpp"

namespace vkd {

class Failures {
 public:
  void add(uint64_t batch, const FailurePtr& failure);

  // Throws the first unresolved failure up to batch `last`. For calls that wait for all work until then.
  void check(uint64_t last) {
    if (any_.load(std::memory_order_acquire)) {
      raise(0, last, true);
    }
  }
  // Throws a failure of the batches after `before` up to `last`. For calls that wait for these batches.
  void check(uint64_t before, uint64_t last) {
    if (any_.load(std::memory_order_acquire)) {
      raise(before, last, false);
    }
  }

 private:
  struct Entry {
    uint64_t first, last;
    FailurePtr failure;
  };

  void raise(uint64_t before, uint64_t last, bool unresolved);
  void forget_oldest();

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<Entry> entries_;  // in order
};

}  // namespace vkd
