// Buffers that were given up, for the next ones of their size: drivers take longer to allocate memory than
// kernels to work on it.
//
// They keep their uses, hazards and all, and queues may still be at work on them. Whoever takes one works
// behind that, as with a buffer that was theirs all the time.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "libs/ring.hpp"
#include "objects/buffer.hpp"

namespace vkd {

// Any thread may call; nothing here takes longer the more there is.
class Pool {
 public:
  explicit Pool(VkDeviceSize most) : most_(most) {}

  bool has_room_for(const Buffer& buffer) const noexcept {
    return buffer.allocated() > 0 && buffer.allocated() <= most_;
  }
  // Of one that there is room for; others may be too many then, see take_surplus(). False: it stays the
  // caller's, as there is no memory to note it.
  bool give(std::unique_ptr<Buffer>& buffer) noexcept;
  std::unique_ptr<Buffer> take_surplus() noexcept;  // the oldest; null: all are within bounds
  std::unique_ptr<Buffer> take_oldest() noexcept;   // of any size; null: there is none
  // One of this size: the latest that is `good`, as far as can be told at once, else null.
  template <typename Good>
  std::unique_ptr<Buffer> take(VkDeviceSize size, Good good) {
    std::lock_guard lock(mutex_);
    const auto found = by_size_.find(size);
    if (found == by_size_.end() || found->second.empty()) {
      return nullptr;
    }
    Ring<Place>& places = found->second;
    if (good(**places.back())) {
      return remove(places.pop_back());
    }
    return good(**places.front()) ? remove(pop_front(places)) : nullptr;
  }
  std::unique_ptr<Buffer> take(VkDeviceSize size) {
    return take(size, [](const Buffer&) { return true; });
  }
  // The oldest of this size, once there are enough for work that follows to be on others.
  std::unique_ptr<Buffer> take_in_turn(VkDeviceSize size) {
    std::lock_guard lock(mutex_);
    const auto found = by_size_.find(size);
    return found == by_size_.end() || found->second.size() < kTurns ? nullptr
                                                                    : remove(pop_front(found->second));
  }
  VkDeviceSize bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kTurns = 4;
  static constexpr size_t kMostBuffers = size_t{1} << 14;
  using Place = std::list<std::unique_ptr<Buffer>>::iterator;

  static Place pop_front(Ring<Place>& places) noexcept;
  std::unique_ptr<Buffer> remove(Place place) noexcept;
  std::unique_ptr<Buffer> remove_oldest() noexcept;

  std::mutex mutex_;
  std::list<std::unique_ptr<Buffer>> buffers_;             // the oldest first
  std::unordered_map<VkDeviceSize, Ring<Place>> by_size_;  // likewise
  std::atomic<VkDeviceSize> bytes_{0};
  const VkDeviceSize most_;
};

}  // namespace vkd
