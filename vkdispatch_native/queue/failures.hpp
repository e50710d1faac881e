// Which batches of a queue did not run, or left out commands that needed what others had not written.
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

  // Throws the first failure up to a batch that is unresolved: for whoever waits for all work until there.
  void check(uint64_t last) {
    if (any_.load(std::memory_order_acquire)) {
      raise(0, last, true);
    }
  }
  // Throws a failure of the batches after `before` up to `last`: for whoever waits for what was in them.
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
