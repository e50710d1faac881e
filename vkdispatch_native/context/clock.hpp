// Relates the device's clock to the host's.
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

// The host clock on which device times are reported.
inline int64_t host_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Mask of the valid bits of a timestamp; 0 if the queue family has no timestamps.
uint64_t timestamp_mask(const Device& device, uint32_t family) noexcept;

// Throws if the queue has no timestamps. Without VK_EXT_calibrated_timestamps this submits a small batch and
// waits for it.
Calibration calibrate(Device& device, const QueueHandle& queue);

}  // namespace vkd
