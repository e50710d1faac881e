#include "libs/background.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "libs/error.hpp"
#include "libs/interrupts.hpp"

namespace vkd {

namespace {

// Compilers recurse as deep as their input nests. Address space; pages come as they are touched.
constexpr size_t kStackSize = size_t{1} << 30;

std::atomic<int> running{0};

}  // namespace

Background::~Background() {
  if (started_) {
    pthread_detach(thread_);
  }
}

void* Background::enter(void* argument) {
  {
    const std::unique_ptr<std::shared_ptr<Background>> kept(
        static_cast<std::shared_ptr<Background>*>(argument));
    Background& call = **kept;
    std::exception_ptr error;
    try {
      call.run();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(call.mutex_);
    call.error_ = error;
    call.done_ = true;
    call.ended_.notify_all();
  }
  running.fetch_sub(1);
  return nullptr;
}

void Background::start(const std::shared_ptr<Background>& call) {
  auto kept = std::make_unique<std::shared_ptr<Background>>(call);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  running.fetch_add(1);
  const int failure = pthread_create(&call->thread_, &attributes, enter, kept.get());
  pthread_attr_destroy(&attributes);
  if (failure != 0) {
    running.fetch_sub(1);
    throw Error(ErrorKind::out_of_memory, "no thread for a compiler could be started");
  }
  call->started_ = true;
  static_cast<void>(kept.release());
}

void Background::wait() {
  {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kSlice, [this] { return done_; })) {
      lock.unlock();  // the call may come to its end meanwhile
      check_signals();
      lock.lock();
    }
  }
  if (started_) {
    started_ = false;
    pthread_join(thread_, nullptr);
  }
}

void Background::check() const {
  if (error_) {
    std::rethrow_exception(error_);
  }
}

bool finish_background(uint64_t patience_ns) noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  while (running.load() > 0) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void forget_background() noexcept {
  running.store(0);
}

}  // namespace vkd
