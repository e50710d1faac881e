// Host memory that receives small reads.
//
// A part is in use from the command that fills it until its contents are in the user's array. No lock is held
// meanwhile, since a thread that waits for the device may be interrupted.
#pragma once

#include <array>
#include <mutex>

#include "objects/memory.hpp"
#include "objects/poison.hpp"
#include "queue/timeline.hpp"

namespace vkd {

class Landing {
 public:
  static constexpr VkDeviceSize kPart = VkDeviceSize{256} << 10;
  static constexpr int kNone = -1;

  Landing(Device& device, Timeline& timeline) : device_(device), timeline_(timeline) {}

  int take();  // returns a free part, or kNone
  // Frees the part once the device has passed `value`, its last use.
  void give_back(int part, uint64_t value) noexcept;
  Poison& poison(int part) noexcept { return parts_[static_cast<size_t>(part)].poison; }

  VkBuffer buffer() const noexcept { return memory_.handle(); }
  static VkDeviceSize offset(int part) noexcept { return static_cast<VkDeviceSize>(part) * kPart; }
  const std::byte* mapped(int part) const noexcept { return memory_.mapped() + offset(part); }

 private:
  static constexpr size_t kParts = 8;
  struct Part {
    bool taken = false;
    uint64_t value = 0;
    Poison poison{false};
  };

  Device& device_;
  Timeline& timeline_;
  std::mutex mutex_;
  Memory memory_;  // allocated by the first read
  std::array<Part, kParts> parts_{};
};

}  // namespace vkd
