// Host memory that small reads land in.
//
// A part is held from the command that fills it until the user's array has the contents, a time in which
// nobody holds a lock: whoever waits for the device may be interrupted.
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

  int take();  // the number of a part that nobody uses, or kNone
  // The part is free once the device has passed `value`, its last user.
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
  Memory memory_;  // made by the first read
  std::array<Part, kParts> parts_{};
};

}  // namespace vkd
