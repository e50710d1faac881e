// How a process ends of which a device may still use memory.
#pragma once

namespace vkd {

// At its end nothing is cleaned up from here on: drivers would destroy what their own threads are at work on.
void end_process_quickly() noexcept;

}  // namespace vkd
