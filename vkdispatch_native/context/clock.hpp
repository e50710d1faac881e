// The device's clock beside the host's.
#pragma once

#include <chrono>
#include <cstdint>

#include "context/device.hpp"

namespace vkd {

// One instant on both clocks.
struct Calibration {
  int64_t host_ns;
  uint64_t ticks;
};

// The host's clock that device times are given on.
inline int64_t host_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Which bits of a timestamp count; 0: the family has none.
uint64_t timestamp_mask(const Device& device, uint32_t family) noexcept;

// Throws where the queue has no timestamps. Without VK_EXT_calibrated_timestamps the instant is that of a
// small submit, which is waited for.
Calibration calibrate(Device& device, const QueueHandle& queue);

}  // namespace vkd
