// Where kernels record errors such as indices out of range: host memory, which the host checks whenever it
// has waited for the device.
//
// Word 0 counts notes. Words 1 to kTickets - 1 are tickets, one per call: kNone, or the first location that
// failed. After them comes a ring of notes: ticket, location, and numbers found there. The last words are
// tickets that belong to a kernel instead of a call; the host clears them one by one.
#pragma once

#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "objects/buffer.hpp"

namespace vkd {

class Journal {
 public:
  static constexpr uint32_t kTickets = 1024;
  static constexpr uint32_t kHalf = kTickets / 2;
  static constexpr uint32_t kNotes = 128;
  static constexpr uint32_t kNoteWords = 8;
  static constexpr uint32_t kStanding = kTickets + kNotes * kNoteWords;  // the first standing ticket
  static constexpr uint32_t kWords = kStanding + 2048;
  static constexpr uint32_t kNone = ~uint32_t{0};

  Journal(Buffer& buffer, size_t slot_count)
      : buffer_(buffer),
        seen_(buffer.queue_count()),
        slot_count_(slot_count),
        points_(slot_count * kTickets) {
    for (size_t queue = 0; queue < buffer.queue_count(); ++queue) {
      words_.push_back(reinterpret_cast<uint32_t*>(buffer.memory(queue).mapped()));
      std::memset(words_.back(), 0, kWords * sizeof(uint32_t));
      clear(queue, 0);
      clear(queue, 1);
      std::memset(words_.back() + kStanding, 0xFF, (kWords - kStanding) * sizeof(uint32_t));
    }
    for (std::vector<uint64_t>& marks : marks_) {
      marks.resize(buffer.queue_count());
    }
  }

  const Buffer& buffer() const noexcept { return buffer_; }
  const Resource* resource() const noexcept { return &buffer_; }
  size_t queue_count() const noexcept { return words_.size(); }

  // Whether there is something for the host to read.
  bool has_unseen() const noexcept {
    if (waiting_.load(std::memory_order_relaxed)) {
      return true;
    }
    for (size_t queue = 0; queue < words_.size(); ++queue) {
      if (*static_cast<const volatile uint32_t*>(words_[queue]) != seen_[queue].load()) {
        return true;
      }
    }
    return false;
  }
  // Whether errors that were found have yet to be raised.
  void set_waiting(bool waiting) noexcept { waiting_.store(waiting); }
  // The host has read this many notes of a queue. Only work appended later adds to them.
  void mark_seen(size_t queue, uint32_t notes) noexcept { seen_[queue].store(notes); }
  const uint32_t* words(size_t queue) const noexcept { return words_[queue]; }
  // Lets a standing ticket be noted again.
  void clear_standing(size_t queue, uint32_t ticket) noexcept {
    *static_cast<volatile uint32_t*>(words_[queue] + ticket) = kNone;
  }

  // Returns the next ticket, for a call whose first kernel goes into batch `point(slot)` or a later one, as
  // do copies of its results. Returns 0 if that half of the tickets must be renewed first.
  template <typename Point>
  uint32_t take(Point point) {
    std::lock_guard lock(mutex_);
    const size_t half = next_ / kHalf;
    if (!fresh_[half]) {
      return 0;
    }
    const uint32_t ticket = next_;
    for (size_t slot = 0; slot < slot_count_; ++slot) {
      points_[ticket * slot_count_ + slot] = point(slot);
    }
    next_ = (next_ + 1) % kTickets;
    if (next_ % kHalf == 0) {
      fresh_[half] = false;
      for (size_t queue = 0; queue < words_.size(); ++queue) {
        marks_[half][queue] = buffer_.last_write(queue);
      }
    }
    next_ += next_ == 0 ? 1 : 0;
    return ticket;
  }
  uint64_t point(uint32_t ticket, size_t slot) {
    std::lock_guard lock(mutex_);
    return points_[ticket * slot_count_ + slot];
  }
  // Returns the half that must be renewed, once all queues have passed its marks; -1 if none must.
  int stale() {
    std::lock_guard lock(mutex_);
    const size_t half = next_ / kHalf;
    return fresh_[half] ? -1 : static_cast<int>(half);
  }
  uint64_t mark(int half, size_t queue) {
    std::lock_guard lock(mutex_);
    return marks_[static_cast<size_t>(half)][queue];
  }
  void renew(int half) {
    std::lock_guard lock(mutex_);
    for (size_t queue = 0; queue < words_.size(); ++queue) {
      clear(queue, half);
    }
    fresh_[static_cast<size_t>(half)] = true;
  }

  // Copies the words out before the memory is freed. Nothing may write it any more.
  void detach_memory() {
    if (!final_words_.empty()) {
      return;
    }
    final_words_.reserve(words_.size());
    for (uint32_t*& words : words_) {
      final_words_.emplace_back(words, words + kWords);
      words = final_words_.back().data();
    }
  }

 private:
  void clear(size_t queue, int half) noexcept {
    const uint32_t first = half == 0 ? 1 : kHalf;
    std::memset(words_[queue] + first, 0xFF, ((half == 0 ? kHalf : kTickets) - first) * sizeof(uint32_t));
  }

  Buffer& buffer_;
  std::vector<uint32_t*> words_;  // by queue
  std::vector<std::vector<uint32_t>> final_words_;
  std::vector<std::atomic<uint32_t>> seen_;
  std::atomic<bool> waiting_{false};
  std::mutex mutex_;
  uint32_t next_ = 1;
  std::array<bool, 2> fresh_{true, true};
  std::array<std::vector<uint64_t>, 2> marks_;  // the last work that uses a half
  size_t slot_count_;
  std::vector<uint64_t> points_;  // indexed by ticket, then slot
};

}  // namespace vkd
