// Long waits end when the program is interrupted: they go in slices, between which signals are looked at.
#pragma once

#include <chrono>
#include <cstdint>

namespace vkd {

// Ctrl-C has to be noticed within 0.2 s.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
constexpr uint64_t kForever = ~uint64_t{0};

// Whether a signal's handler has raised an exception, which is then the calling thread's.
using SignalCheck = bool (*)();

void set_signal_check(SignalCheck check) noexcept;

// Throws Interrupted where the program was interrupted. Takes the lock of the interpreter: the caller must
// hold nothing that somebody who has that lock may wait for.
void check_signals();

}  // namespace vkd
