// Checkpoints that a device writes while it runs, and the driver's fault reports: they trace a lost device to
// a kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "libs/vulkan.hpp"

namespace vkd {

class Device;

// What a device is asked to record.
struct Diagnosis {
  enum class Marks : uint8_t {
    none,
    nvidia,
    amd
  };  // VK_NV_device_diagnostic_checkpoints, VK_AMD_buffer_marker

  Marks marks = Marks::none;
  Marks possible = Marks::none;  // what `marks` would be if checkpoints were enabled
  bool faults = false;           // VK_EXT_device_fault
};

// VKDISPATCH_CHECKPOINTS=1 enables marks, as VKDISPATCH_DEBUG=1 does if the variable is unset; 0 disables
// fault reports too. The result depends on the extensions and features of `device`; for a foreign device, on
// those that are enabled.
struct DeviceProperties;
Diagnosis choose_diagnosis(const DeviceProperties& device);

class Checkpoints {
 public:
  // The progress of a queue. 0: unknown, or no mark yet.
  struct Reached {
    uint32_t begun = 0;   // the last mark that the device has reached
    uint32_t passed = 0;  // the last mark before which all work has finished
  };

  explicit Checkpoints(Device& device);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Records a mark with a number that is unique on the device, for the queue at this index. Returns the
  // number; 0 if none was recorded.
  uint32_t mark(VkCommandBuffer commands, size_t queue) noexcept;
  // `lost`: whether the device is known to be lost. NVIDIA's marks must not be queried before that.
  Reached read(VkQueue handle, size_t queue, bool lost) const;

 private:
  static constexpr size_t kQueues = 512;

  Device& device_;
  std::atomic<uint32_t> next_{1};
  // For AMD, written by the device: one Reached per queue.
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VmaAllocation allocation_ = VK_NULL_HANDLE;
  const volatile uint32_t* words_ = nullptr;
};

// Returns the driver's description of the fault that caused the loss of a device, "" if there is none. Call
// it only after the device is lost.
std::string describe_fault(const Device& device) noexcept;

}  // namespace vkd
