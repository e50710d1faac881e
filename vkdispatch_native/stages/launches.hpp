// What batches have the device do, in words: for errors of a device that was lost or does not finish.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stages/command.hpp"

namespace vkd {

class Frame;

// A kernel's launch, or a copy.
struct Launch {
  const Plan* plan;    // null: a copy
  VkDeviceSize bytes;  // that a copy moves; 0: a whole image
};

// A launch before which the device was told to leave a mark.
struct Mark {
  uint32_t number;
  const Plan* plan;
};

// A batch that the device may not have finished.
struct Pending {
  const Batch* batch;
  Frame* frame;  // that it was recorded in; null: it was not yet
};

std::vector<Launch> launches_of(const std::vector<Command>& commands);

// "3 launches of 'scale' (heat.py:12), a copy of 4096 bytes and 14 more commands": everything once, in the
// order in which it comes up first. "" where there is nothing.
std::string describe_launches(const std::vector<Launch>& launches);
std::string describe_launches(const Batch& batch);
std::string describe_launches(const std::vector<Pending>& pending);

// What one of the device's queues did when it was lost, or, with `lost` false, does now: how far it has come,
// and what it was given and has not finished. Both begin with a small letter, for the end of a message; "":
// nothing is known. `handle`, `queue`: as the Recorder had them. What the batches refer to must stay alive
// meanwhile.
std::string describe_work(Device& device, VkQueue handle, size_t queue, bool lost,
                          const std::vector<Pending>& pending) noexcept;

// What the driver of a lost device says, and what would say more, unless the device was idle.
std::string describe_cause(const Device& device, bool idle) noexcept;

}  // namespace vkd
