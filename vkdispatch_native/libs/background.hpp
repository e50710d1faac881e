// Calls on threads of their own: whoever waits for one can leave, and it then ends by itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace vkd {

class Background {
 public:
  Background() = default;
  virtual ~Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Starts a call, which its thread keeps alive until it ends. Throws Error(out_of_memory) without a thread.
  static void start(const std::shared_ptr<Background>& call);

  // Ends the thread that waits for another call, if there is one.
  static void dismiss();

  // In a new child of a fork, which has none of its parent's threads.
  static void forget();

  // Returns when the call came to its end. Throws Interrupted, which leaves the call to itself.
  void wait();

 protected:
  // To be called once wait() returned: throws what the call threw.
  void check() const;

 private:
  class Worker;

  virtual void run() = 0;
  void perform() noexcept;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr error_;
};

// Waits until no such call is under way, at most this long. Returns whether none is.
bool finish_background(uint64_t patience_ns) noexcept;

// In a new child of a fork, which has none of its parent's threads.
void forget_background() noexcept;

}  // namespace vkd
