// A queue that keeps its storage: std::deque frees blocks and allocates them again.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace vkd {

template <typename T>
class Ring {
 public:
  bool empty() const noexcept { return size_ == 0; }
  size_t size() const noexcept { return size_; }
  T& front() noexcept { return slots_[first_]; }
  T& back() noexcept { return (*this)[size_ - 1]; }
  T& operator[](size_t i) noexcept { return slots_[(first_ + i) & (slots_.size() - 1)]; }  // 0: the front

  void push_back(T value) {
    reserve(size_ + 1);
    ++size_;
    back() = std::move(value);
  }

  void pop_front() noexcept {
    front() = T{};  // destroys the element now, not when its slot is reused
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }

  T pop_back() noexcept {
    T value = std::exchange(back(), T{});
    --size_;
    return value;
  }

  void clear() noexcept {
    while (!empty()) {
      pop_front();
    }
  }

  void reserve(size_t count) {
    if (count <= slots_.size()) {
      return;
    }
    size_t room = slots_.empty() ? 8 : slots_.size();  // a power of two
    while (room < count) {
      room *= 2;
    }
    std::vector<T> slots(room);
    for (size_t i = 0; i < size_; ++i) {
      slots[i] = std::move((*this)[i]);
    }
    slots_ = std::move(slots);
    first_ = 0;
  }

 private:
  std::vector<T> slots_;
  size_t first_ = 0;
  size_t size_ = 0;
};

// The same for at most `kRoom` elements, without any allocation.
template <typename T, size_t kRoom>
class FixedRing {
 public:
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kRoom; }
  size_t size() const noexcept { return size_; }
  T& front() noexcept { return slots_[first_]; }

  void push_back(T value) noexcept {
    slots_[(first_ + size_) % kRoom] = std::move(value);
    ++size_;
  }

  T pop_front() noexcept {
    T value = std::exchange(slots_[first_], T{});
    first_ = (first_ + 1) % kRoom;
    --size_;
    return value;
  }

 private:
  std::array<T, kRoom> slots_{};
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace vkd
