// Marks data that failed batches should have written. Reading such data raises the error of the first failed
// batch, until all of it has been written again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "libs/error.hpp"

namespace vkd {

// Why a batch did not run.
struct Failure {
  explicit Failure(const Error& cause) : error(cause) {}

  [[noreturn]] void raise() {
    reported.store(true);
    throw Error(error);
  }
  // Whether data remain unwritten because of it, or it was never reported.
  bool unresolved() const noexcept { return poisoned.load() > 0 || !reported.load(); }

  const Error error;
  std::atomic<int> poisoned{0};  // number of poisoned copies of data
  std::atomic<bool> reported{false};
};

using FailurePtr = std::shared_ptr<Failure>;

// The state of one copy of data. Thread-safe.
class Poison {
 public:
  // Memory that is internal to the engine does not keep a failure unresolved.
  explicit Poison(bool of_user = true) : of_user_(of_user) {}
  void disown() noexcept { of_user_ = false; }  // call before anything is poisoned
  ~Poison() {
    if (failure_) {
      clear();
    }
  }
  Poison(const Poison&) = delete;
  Poison& operator=(const Poison&) = delete;

  // Whether anything at all is poisoned: the only check that programs without failures pay for.
  static bool anywhere() noexcept { return count_.load(std::memory_order_relaxed) > 0; }

  // The first failure is kept.
  void set(const FailurePtr& failure) noexcept {
    std::lock_guard lock(mutex_);
    parts_ = ~uint32_t{0};
    if (!failure_) {
      failure_ = failure;
      failure->poisoned.fetch_add(of_user_ ? 1 : 0);
      count_.fetch_add(1);
    }
  }
  // Marks these parts, of at most 32, as written: mip levels of an image, or all of a buffer.
  void clear(uint32_t parts = ~uint32_t{0}, uint32_t all = ~uint32_t{0}) noexcept {
    std::lock_guard lock(mutex_);
    parts_ &= ~parts;
    if (failure_ && (parts_ & all) == 0) {
      failure_->poisoned.fetch_sub(of_user_ ? 1 : 0);
      count_.fetch_sub(1);
      failure_.reset();
    }
  }
  FailurePtr failure() const noexcept {
    if (!anywhere()) {
      return nullptr;
    }
    std::lock_guard lock(mutex_);
    return failure_;
  }
  void check() const {
    if (const FailurePtr found = failure()) {
      found->raise();
    }
  }

 private:
  static inline std::atomic<int> count_{0};
  static inline std::mutex mutex_;  // one for all: locked only after a failure

  bool of_user_;
  FailurePtr failure_;
  uint32_t parts_ = 0;
};

}  // namespace vkd
