// Calls on threads of their own. A caller may stop waiting; the call then runs to its end by itself.
#pragma once

#include <chrono>
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

  // Starts a call. Its thread keeps it alive until it ends. Throws Error(out_of_memory) if no thread can be
  // started.
  static void start(const std::shared_ptr<Background>& call);

  // Ends the idle thread that waits for another call, if there is one.
  static void dismiss();

  // Resets the state in a forked child, which has none of its parent's threads.
  static void forget();

  // Waits until the call has ended, at most for `patience`. Returns whether it has. Throws Interrupted. A
  // call that has not ended goes on by itself.
  bool wait(std::chrono::seconds patience = std::chrono::hours(24 * 365));

 protected:
  // Rethrows what the call threw. Call it after wait().
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

// Waits at most `patience_ns` for all calls in progress. Returns whether none is left.
bool finish_background(uint64_t patience_ns) noexcept;

// Resets the state in a forked child, which has none of its parent's threads.
void forget_background() noexcept;

}  // namespace vkd
