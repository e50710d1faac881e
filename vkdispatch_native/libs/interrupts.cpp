#include "libs/interrupts.hpp"

#include <atomic>

#include "libs/error.hpp"

namespace vkd {

namespace {

std::atomic<SignalCheck> signal_check{nullptr};

}  // namespace

void set_signal_check(SignalCheck check) noexcept {
  signal_check.store(check);
}

void check_signals() {
  const SignalCheck check = signal_check.load();
  if (check != nullptr && check()) {
    throw Interrupted();
  }
}

}  // namespace vkd
