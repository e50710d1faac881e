#include "libs/background.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "libs/error.hpp"
#include "libs/interrupts.hpp"

namespace vkd {

namespace {

using Clock = std::chrono::steady_clock;

// Compilers recurse as deeply as their input is nested. This is address space; pages are committed when
// touched.
constexpr size_t kStackSize = size_t{1} << 30;
// A thread is reused after a short call: creating one, with new pages for its stack and heap, takes as long
// as compiling a small kernel. After a long call a thread may hold much memory, so it ends.
constexpr auto kShort = std::chrono::milliseconds(50);
constexpr auto kIdle = std::chrono::seconds(1);

std::atomic<int> running{0};

}  // namespace

// The threads. At most one is idle and waits for the next call.
class Background::Worker {
 public:
  static void assign(const std::shared_ptr<Background>& call) {
    Slot& slot = *slot_.load();
    {
      const std::lock_guard lock(slot.mutex);
      if (slot.occupied && !slot.next && !slot.stop) {
        slot.next = call;
        slot.wake.notify_one();
        return;
      }
    }
    auto holder = std::make_unique<std::shared_ptr<Background>>(call);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackSize);
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, work, holder.get());
    pthread_attr_destroy(&attributes);
    if (failure != 0) {
      throw Error(
          ErrorKind::out_of_memory,
          "no thread for a compiler could be started, which needs 1 GiB of address space: a limit of threads "
          "(ulimit -u, or that of a container) or of memory (ulimit -v) is too low");
    }
    static_cast<void>(holder.release());
  }

  // Ends the idle thread, if there is one.
  static void dismiss() {
    Slot& slot = *slot_.load();
    pthread_t thread;
    {
      const std::lock_guard lock(slot.mutex);
      if (!slot.occupied || slot.next || slot.stop) {
        return;
      }
      slot.stop = true;
      thread = slot.thread;
      slot.wake.notify_one();
    }
    pthread_join(thread, nullptr);
  }

  // The old slot may be locked, and its thread does not exist in this process.
  static void forget() { slot_.store(new Slot); }

 private:
  struct Slot {
    std::mutex mutex;
    std::condition_variable wake;
    std::shared_ptr<Background> next;
    pthread_t thread{};
    bool occupied = false;
    bool stop = false;  // the thread is to end and be joined
  };

  static void* work(void* argument) {
    std::shared_ptr<Background> call;
    {
      const std::unique_ptr<std::shared_ptr<Background>> holder(
          static_cast<std::shared_ptr<Background>*>(argument));
      call = std::move(*holder);
    }
    while (call) {
      const auto begin = Clock::now();
      name("vkd compiler");
      call->perform();
      call.reset();
      running.fetch_sub(1);
      if (Clock::now() - begin >= kShort) {
        pthread_detach(pthread_self());
      } else {
        call = wait_for_call();
      }
    }
    return nullptr;
  }

  // Returns the next call, or null if the thread is to end; it is detached then, unless it is being joined.
  static std::shared_ptr<Background> wait_for_call() {
    name("vkd idle");
    Slot& slot = *slot_.load();
    std::unique_lock lock(slot.mutex);
    if (slot.occupied) {
      pthread_detach(pthread_self());
      return nullptr;
    }
    slot.occupied = true;
    slot.thread = pthread_self();
    slot.wake.wait_for(lock, kIdle, [&slot] { return slot.next || slot.stop; });
    slot.occupied = false;
    if (!slot.next && !std::exchange(slot.stop, false)) {
      pthread_detach(pthread_self());
    }
    return std::exchange(slot.next, nullptr);
  }

  static void name(const char* text) {
#ifdef __linux__
    pthread_setname_np(pthread_self(), text);
#else
    static_cast<void>(text);
#endif
  }

  static std::atomic<Slot*> slot_;
};

// Never destroyed: threads may outlive static objects.
std::atomic<Background::Worker::Slot*> Background::Worker::slot_{new Slot};

void Background::perform() noexcept {
  try {
    run();
  } catch (...) {
    error_ = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

void Background::start(const std::shared_ptr<Background>& call) {
  running.fetch_add(1);
  try {
    Worker::assign(call);
  } catch (...) {
    running.fetch_sub(1);
    throw;
  }
}

void Background::dismiss() {
  Worker::dismiss();
}

void Background::forget() {
  Worker::forget();
}

bool Background::wait(std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kSlice, [this] { return done_; })) {
    if (Clock::now() >= end) {
      return false;
    }
    lock.unlock();  // the call may end meanwhile
    check_signals();
    lock.lock();
  }
  return true;
}

void Background::check() const {
  if (error_) {
    std::rethrow_exception(error_);
  }
}

bool finish_background(uint64_t patience_ns) noexcept {
  const auto end = Clock::now() + std::chrono::nanoseconds(patience_ns);
  while (running.load() > 0) {
    if (Clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Background::dismiss();
  return true;
}

void forget_background() noexcept {
  running.store(0);
  Background::forget();
}

}  // namespace vkd
