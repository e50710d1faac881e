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

// Compilers recurse as deep as their input nests. Address space; pages come as they are touched.
constexpr size_t kStackSize = size_t{1} << 30;
// A thread is used again after a short call: making one, with fresh pages for its stack and its heap, takes
// as long as a driver does for a small kernel. One that was used for longer may have touched much memory.
constexpr auto kShort = std::chrono::milliseconds(50);
constexpr auto kIdle = std::chrono::seconds(1);

std::atomic<int> running{0};

}  // namespace

// The threads. At most one of them waits for its next call.
class Background::Worker {
 public:
  static void give(const std::shared_ptr<Background>& call) {
    Place& place = *place_.load();
    {
      const std::lock_guard lock(place.mutex);
      if (place.occupied && !place.next && !place.leave) {
        place.next = call;
        place.wake.notify_one();
        return;
      }
    }
    auto kept = std::make_unique<std::shared_ptr<Background>>(call);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackSize);
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, work, kept.get());
    pthread_attr_destroy(&attributes);
    if (failure != 0) {
      throw Error(ErrorKind::out_of_memory, "no thread for a compiler could be started");
    }
    static_cast<void>(kept.release());
  }

  // Ends the thread that waits for a call, if there is one.
  static void dismiss() {
    Place& place = *place_.load();
    pthread_t thread;
    {
      const std::lock_guard lock(place.mutex);
      if (!place.occupied || place.next || place.leave) {
        return;
      }
      place.leave = true;
      thread = place.thread;
      place.wake.notify_one();
    }
    pthread_join(thread, nullptr);
  }

  // The old one may be locked, and its thread is not there.
  static void forget() { place_.store(new Place); }

 private:
  struct Place {
    std::mutex mutex;
    std::condition_variable wake;
    std::shared_ptr<Background> next;
    pthread_t thread{};
    bool occupied = false;
    bool leave = false;  // and be joined
  };

  static void* work(void* argument) {
    std::shared_ptr<Background> call;
    {
      const std::unique_ptr<std::shared_ptr<Background>> kept(
          static_cast<std::shared_ptr<Background>*>(argument));
      call = std::move(*kept);
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
        call = await();
      }
    }
    return nullptr;
  }

  // Returns the next call, or nothing: the thread is to end, and is detached unless somebody joins it.
  static std::shared_ptr<Background> await() {
    name("vkd idle");
    Place& place = *place_.load();
    std::unique_lock lock(place.mutex);
    if (place.occupied) {
      pthread_detach(pthread_self());
      return nullptr;
    }
    place.occupied = true;
    place.thread = pthread_self();
    place.wake.wait_for(lock, kIdle, [&place] { return place.next || place.leave; });
    place.occupied = false;
    if (!place.next && !std::exchange(place.leave, false)) {
      pthread_detach(pthread_self());
    }
    return std::exchange(place.next, nullptr);
  }

  static void name(const char* text) {
#ifdef __linux__
    pthread_setname_np(pthread_self(), text);
#else
    static_cast<void>(text);
#endif
  }

  static std::atomic<Place*> place_;
};

// Never destroyed: threads may outlive the statics.
std::atomic<Background::Worker::Place*> Background::Worker::place_{new Place};

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
    Worker::give(call);
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

void Background::wait() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kSlice, [this] { return done_; })) {
    lock.unlock();  // the call may come to its end meanwhile
    check_signals();
    lock.lock();
  }
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
