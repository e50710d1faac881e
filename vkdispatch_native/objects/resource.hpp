// The base of every object that commands use. It stores the timeline values of its last read and last write.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace vkd {

// Queue `q` of `queue_count` may have transfer queues (see Engine): one for both directions, or one for
// uploads, whose uses have index q + queue_count, and one for downloads, with index q + 2 * queue_count.
inline constexpr size_t kSlotsPerQueue = 3;

class Resource {
 public:
  explicit Resource(size_t queue_count)
      : queue_count_(queue_count), uses_(new Use[kSlotsPerQueue * queue_count]) {}
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  // Shares the memory of another resource: uses of one count as uses of both.
  struct Alias {
    const Resource& of;
  };

  // Whether it is a buffer with memory of its own: see Pool.
  virtual bool recyclable() const noexcept { return false; }
  // Destroys the Vulkan objects. Idempotent; the device must have finished using them.
  virtual void release() noexcept = 0;

  size_t queue_count() const noexcept { return queue_count_; }

  void mark_read(size_t queue, uint64_t value) noexcept {
    uses_[queue].any.store(value, std::memory_order_relaxed);
  }
  void mark_write(size_t queue, uint64_t value) noexcept {
    uses_[queue].any.store(value, std::memory_order_relaxed);
    uses_[queue].write.store(value, std::memory_order_relaxed);
  }
  uint64_t last_use(size_t queue) const noexcept { return uses_[queue].any.load(std::memory_order_relaxed); }
  uint64_t last_write(size_t queue) const noexcept {
    return uses_[queue].write.load(std::memory_order_relaxed);
  }

 protected:
  explicit Resource(Alias alias) : queue_count_(alias.of.queue_count_), uses_(alias.of.uses_) {}

 private:
  struct Use {
    std::atomic<uint64_t> any{0};
    std::atomic<uint64_t> write{0};
  };
  size_t queue_count_;
  std::shared_ptr<Use[]> uses_;
};

}  // namespace vkd
