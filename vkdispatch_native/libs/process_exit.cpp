#include "libs/process_exit.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace vkd {

#ifdef __GLIBC__
namespace {

void exit_process(int status, void*) {
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void end_process_quickly() noexcept {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) {
    on_exit(exit_process, nullptr);  // the handler registered last runs first
  }
}
#else
void end_process_quickly() noexcept {}
#endif

}  // namespace vkd
