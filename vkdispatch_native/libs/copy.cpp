#include "libs/copy.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace vkd {

namespace {

// Pieces end at huge page boundaries of the target: threads that touch a page for the first time at once
// would each clear it.
constexpr size_t kPiece = size_t{2} << 20;
constexpr size_t kWorthwhile = size_t{1} << 20;
constexpr unsigned kMostThreads = 8;
// Waking a thread takes about as long as copying a piece, so idle threads spin for a while first.
constexpr std::chrono::microseconds kSpin{200};

}  // namespace

// A copy, cut into pieces that any free thread takes. The threads share it; the last one releases it.
class CopyJob {
 public:
  CopyJob(std::byte* target, const std::byte* source, size_t size)
      : target_(target), source_(source), size_(size) {
    const size_t beyond = reinterpret_cast<uintptr_t>(target) % kPiece;
    first_ = std::min(size, kPiece - beyond);
    pieces_ = size > 0 ? 1 + (size - first_ + kPiece - 1) / kPiece : 0;
    left_.store(pieces_);
  }

  bool open() const noexcept { return next_.load(std::memory_order_relaxed) < pieces_; }
  bool finished() const noexcept { return left_.load(std::memory_order_acquire) == 0; }

  void work() noexcept {
    for (;;) {
      const size_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) {
        return;
      }
      const size_t offset = piece == 0 ? 0 : first_ + (piece - 1) * kPiece;
      const size_t end = std::min(size_, first_ + piece * kPiece);
      std::memcpy(target_ + offset, source_ + offset, end - offset);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

 private:
  std::byte* target_;
  const std::byte* source_;
  size_t size_;
  size_t first_ = 0;  // bytes of the first piece
  size_t pieces_ = 0;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> left_{0};
};

namespace {

class Helpers {
 public:
  explicit Helpers(unsigned count) {
    try {
      for (unsigned i = 0; i < count; ++i) {
        std::thread([this] { run(); }).detach();
      }
    } catch (const std::system_error&) {
      // The system has no more threads: continue with fewer.
    }
  }

  void submit(const std::shared_ptr<CopyJob>& job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    submitted_.fetch_add(1, std::memory_order_release);
    if (sleeping_ > 0) {
      wake_.notify_all();
    }
  }

 private:
  // Requires mutex_. Returns the oldest job with pieces left; null if there is none.
  std::shared_ptr<CopyJob> next() {
    while (!jobs_.empty() && !jobs_.front()->open()) {
      jobs_.pop_front();
    }
    return jobs_.empty() ? nullptr : jobs_.front();
  }

  void spin(uint64_t seen) const {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    while (submitted_.load(std::memory_order_acquire) == seen && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      std::shared_ptr<CopyJob> job = next();
      if (job == nullptr) {
        const uint64_t seen = submitted_.load(std::memory_order_relaxed);
        lock.unlock();
        spin(seen);
        lock.lock();
        job = next();
      }
      if (job == nullptr) {
        ++sleeping_;
        wake_.wait(lock, [&] { return (job = next()) != nullptr; });
        --sleeping_;
      }
      lock.unlock();
      job->work();
      job.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<CopyJob>> jobs_;
  std::atomic<uint64_t> submitted_{0};
  int sleeping_ = 0;
};

}  // namespace

std::shared_ptr<CopyJob> start_copy(std::byte* target, const std::byte* source, size_t size) {
  if (size <= kWorthwhile) {
    std::memcpy(target, source, size);
    return nullptr;
  }
  auto job = std::make_shared<CopyJob>(target, source, size);
  const unsigned threads = std::min(std::thread::hardware_concurrency(), kMostThreads);
  if (threads > 1) {
    // Never destroyed: its threads sleep until the process exits.
    static Helpers* helpers = new Helpers(threads - 1);
    helpers->submit(job);
  }
  return job;
}

void finish_copy(const std::shared_ptr<CopyJob>& job) {
  if (job == nullptr) {
    return;
  }
  job->work();
  while (!job->finished()) {
    std::this_thread::yield();
  }
}

void copy_bytes(std::byte* target, const std::byte* source, size_t size) {
  finish_copy(start_copy(target, source, size));
}

}  // namespace vkd
