// Describes the work of batches in words, for errors about a device that was lost or does not finish.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stages/command.hpp"

namespace vkd {

class Frame;

// A kernel launch, or a copy.
struct Launch {
  const Plan* plan;    // null: a copy
  VkDeviceSize bytes;  // size of a copy; 0: a whole image
};

// A launch before which the device writes a mark.
struct Mark {
  uint32_t number;
  const Plan* plan;
};

// A batch that the device may not have finished.
struct Pending {
  const Batch* batch;
  Frame* frame;  // that it was recorded in; null: none yet
};

std::vector<Launch> launches_of(const std::vector<Command>& commands);

// For example "3 launches of 'scale' (heat.py:12), a copy of 4096 bytes and 14 more commands". Equal items
// are counted together, in order of first appearance. "" if there are none.
std::string describe_launches(const std::vector<Launch>& launches);
std::string describe_launches(const Batch& batch);
std::string describe_launches(const std::vector<Pending>& pending);

// Describes what a device queue was doing when the device was lost or, if `lost` is false, is doing now: its
// progress, and the work not finished. The text starts in lower case, to end a message; "" if nothing is
// known. `handle` and `queue` are those passed to the Recorder. Everything that the batches refer to must
// stay alive during the call.
std::string describe_work(Device& device, VkQueue handle, size_t queue, bool lost,
                          const std::vector<Pending>& pending) noexcept;

// Returns the driver's fault description and, unless the device was idle, a hint on how to get more.
std::string describe_cause(const Device& device, bool idle) noexcept;

}  // namespace vkd
