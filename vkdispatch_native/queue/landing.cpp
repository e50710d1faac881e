#include "queue/landing.hpp"

#include <algorithm>

namespace vkd {

int Landing::take() {
  std::lock_guard lock(mutex_);
  if (memory_.handle() == VK_NULL_HANDLE) {
    memory_ = Memory(device_, kParts * kPart, MemoryUse::download, true);
  }
  for (size_t i = 0; i < kParts; ++i) {
    Part& part = parts_[i];
    if (!part.taken && timeline_.passed(part.value)) {
      part.taken = true;
      part.poison.clear();
      return static_cast<int>(i);
    }
  }
  return kNone;
}

void Landing::give_back(int part, uint64_t value) noexcept {
  std::lock_guard lock(mutex_);
  Part& returned = parts_[static_cast<size_t>(part)];
  returned.taken = false;
  returned.value = value;
}

}  // namespace vkd
