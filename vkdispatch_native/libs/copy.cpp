#include "libs/copy.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace vkd {

namespace {

constexpr size_t kPiece = size_t{512} << 10;
constexpr size_t kWorthwhile = size_t{2} << 20;
constexpr unsigned kMostThreads = 8;

// One copy, cut into pieces that whoever is free takes. Shared by its threads: the last one out drops it.
struct Job {
  std::byte* target;
  const std::byte* source;
  size_t size;
  std::atomic<size_t> next{0};
  std::atomic<size_t> left;

  Job(std::byte* to, const std::byte* from, size_t bytes)
      : target(to), source(from), size(bytes), left((bytes + kPiece - 1) / kPiece) {}

  bool work() {  // true for the thread that finishes the last piece
    bool last = false;
    for (;;) {
      const size_t offset = next.fetch_add(1) * kPiece;
      if (offset >= size) {
        return last;
      }
      std::memcpy(target + offset, source + offset, std::min(kPiece, size - offset));
      last = left.fetch_sub(1) == 1;
    }
  }
};

class Helpers {
 public:
  explicit Helpers(unsigned count) {
    try {
      for (unsigned i = 0; i < count; ++i) {
        std::thread([this] { run(); }).detach();
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: fewer do it too.
    }
  }

  void copy(std::byte* target, const std::byte* source, size_t size) {
    auto job = std::make_shared<Job>(target, source, size);
    {
      std::lock_guard lock(mutex_);
      job_ = job;
      ++generation_;
    }
    given_.notify_all();
    job->work();
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return job->left.load() == 0; });
  }

 private:
  void run() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      given_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      std::shared_ptr<Job> job = job_;
      lock.unlock();
      const bool last = job->work();
      lock.lock();
      if (last) {
        finished_.notify_all();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable given_, finished_;
  std::shared_ptr<Job> job_;
  uint64_t generation_ = 0;
};

}  // namespace

void copy_bytes(std::byte* target, const std::byte* source, size_t size) {
  const unsigned cores = std::thread::hardware_concurrency();
  if (size < kWorthwhile || cores < 4) {
    std::memcpy(target, source, size);
    return;
  }
  // Never destroyed: its threads sleep until the process ends.
  static Helpers* helpers = new Helpers(std::min(cores / 2, kMostThreads) - 1);
  helpers->copy(target, source, size);
}

}  // namespace vkd
