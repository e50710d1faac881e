// Ends a process while a device may still use its memory.
#pragma once

namespace vkd {

// From here on the process exits without any clean-up: drivers would destroy objects that their own threads
// still use.
void end_process_quickly() noexcept;

}  // namespace vkd
