// Released buffers, kept for new ones of the same size: drivers take longer to allocate memory than kernels
// take to use it.
//
// They keep their recorded uses and hazards, and queues may still be using them. Work on a reused buffer is
// ordered after that, as for any other buffer.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "libs/ring.hpp"
#include "objects/buffer.hpp"

namespace vkd {

// Thread-safe. Every operation takes constant time.
class Pool {
 public:
  explicit Pool(VkDeviceSize most) : most_(most) {}

  bool has_room_for(const Buffer& buffer) const noexcept {
    return buffer.allocated() > 0 && buffer.allocated() <= most_;
  }
  // Adds a buffer that there is room for. The pool may then exceed its limit: see take_surplus(). Returns
  // false, leaving the buffer to the caller, if there is no memory to record it.
  bool give(std::unique_ptr<Buffer>& buffer) noexcept;
  std::unique_ptr<Buffer> take_surplus() noexcept;  // the oldest; null if within the limit
  std::unique_ptr<Buffer> take_oldest() noexcept;   // of any size; null if empty
  // Takes a buffer of this size: the newest or the oldest that is `good`; null if neither is.
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
  // Takes the oldest of this size, if there are enough that following work uses other buffers.
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
  std::list<std::unique_ptr<Buffer>> buffers_;             // oldest first
  std::unordered_map<VkDeviceSize, Ring<Place>> by_size_;  // oldest first
  std::atomic<VkDeviceSize> bytes_{0};
  const VkDeviceSize most_;
};

}  // namespace vkd
