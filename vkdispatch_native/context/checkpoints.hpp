// Marks that a device leaves behind while it runs, and what it says of a fault: they trace a lost device to a
// kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "libs/vulkan.hpp"

namespace vkd {

class Device;

// How much of that a device is to do.
struct Diagnosis {
  enum class Marks : uint8_t {
    none,
    nvidia,
    amd
  };  // VK_NV_device_diagnostic_checkpoints, VK_AMD_buffer_marker

  Marks marks = Marks::none;
  Marks possible = Marks::none;  // what `marks` would be if somebody asked for them
  bool faults = false;           // VK_EXT_device_fault
};

// VKDISPATCH_CHECKPOINTS=1 asks for marks, as VKDISPATCH_DEBUG=1 does where nothing is set; 0 for no faults
// either. Of the extensions and features of `device`, which for a foreign one are those that are on.
struct DeviceProperties;
Diagnosis choose_diagnosis(const DeviceProperties& device);

class Checkpoints {
 public:
  // How far a queue has come. 0: not known, or no mark yet.
  struct Reached {
    uint32_t begun = 0;   // the last mark that it has come to
    uint32_t passed = 0;  // the last mark before which all work has ended
  };

  explicit Checkpoints(Device& device);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Records a mark that no other command of the device has, for the number of one of its queues. Returns it;
  // 0: none was recorded.
  uint32_t mark(VkCommandBuffer commands, size_t queue) noexcept;
  // `lost`: whether the device is known to be, before which NVIDIA's are not to be asked for.
  Reached read(VkQueue handle, size_t queue, bool lost) const;

 private:
  static constexpr size_t kQueues = 512;

  Device& device_;
  std::atomic<uint32_t> next_{1};
  // AMD's, which the device writes: for each queue a Reached.
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VmaAllocation allocation_ = VK_NULL_HANDLE;
  const volatile uint32_t* words_ = nullptr;
};

// What the driver says of the fault by which a device was lost; "" where it says nothing. Not to be called
// before the device is lost.
std::string describe_fault(const Device& device) noexcept;

}  // namespace vkd
