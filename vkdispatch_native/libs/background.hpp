// Calls on threads of their own: whoever waits for one can leave, and it then ends by itself.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace vkd {

class Background {
 public:
  Background() = default;
  virtual ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Returns when the call came to its end. For the one thread that waits for it. Throws Interrupted, which
  // leaves the call to itself.
  void wait();

  // Starts a call, which its thread keeps alive until it ends. Throws Error(out_of_memory) without a thread.
  static void start(const std::shared_ptr<Background>& call);

 protected:
  // To be called once wait() returned: throws what the call threw.
  void check() const;

 private:
  virtual void run() = 0;
  static void* enter(void* argument);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  bool started_ = false;  // and not joined
  pthread_t thread_{};
  std::exception_ptr error_;
};

// Waits until no such thread is left, at most this long. Returns whether none is.
bool finish_background(uint64_t patience_ns) noexcept;

// In a new child of a fork, which has none of its parent's threads.
void forget_background() noexcept;

}  // namespace vkd
