// Interruptible waits: long waits are split into slices, with a check for signals between them.
#pragma once

#include <chrono>
#include <cstdint>

namespace vkd {

// Ctrl-C must be noticed within 0.2 s.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
constexpr uint64_t kForever = ~uint64_t{0};

// Returns whether a signal handler has raised an exception, which is then set in the calling thread.
using SignalCheck = bool (*)();

void set_signal_check(SignalCheck check) noexcept;

// Throws Interrupted if the program was interrupted. Acquires Python's GIL: the caller must hold no lock that
// a thread with the GIL may wait for.
void check_signals();

}  // namespace vkd
