// Whether and why the devices of an engine have stopped working.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "libs/error.hpp"

namespace vkd {

class Ending {
 public:
  // The first call wins. `hung`: the device may still be running; what it may use is never destroyed.
  void set(const Error& error, bool hung) {
    std::lock_guard lock(mutex_);
    if (!error_) {
      error_ = std::make_unique<Error>(error);
    }
    if (hung) {
      hung_.store(true);
    }
    reached_.store(true, std::memory_order_release);
  }
  bool reached() const noexcept { return reached_.load(std::memory_order_acquire); }
  bool hung() const noexcept { return hung_.load(); }
  void check() const {
    if (reached()) {
      std::lock_guard lock(mutex_);
      throw Error(*error_);
    }
  }

 private:
  std::atomic<bool> reached_{false};
  std::atomic<bool> hung_{false};
  mutable std::mutex mutex_;
  std::unique_ptr<Error> error_;
};

}  // namespace vkd
