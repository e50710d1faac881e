#include "queue/graveyard.hpp"

#include <algorithm>

#include "libs/error.hpp"

namespace vkd {

bool Graveyard::finished(const Resource& resource) noexcept {
  if (holds_.load() > 0) {
    return false;
  }
  try {
    for (size_t queue = 0; queue < timelines_.size(); ++queue) {
      if (timelines_[queue] != nullptr && !timelines_[queue]->passed(resource.last_use(queue))) {
        return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;  // a lost device: Engine::close clears up
  }
}

void Graveyard::retire(std::unique_ptr<Resource> resource) noexcept {
  if (finished(*resource)) {
    return;
  }
  std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(resource));
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Graveyard::sweep() noexcept {
  if (empty()) {
    return;
  }
  std::vector<std::unique_ptr<Resource>> dead;  // destroyed after the lock is given up
  std::lock_guard lock(mutex_);
  auto first = std::partition(waiting_.begin(), waiting_.end(),
                              [this](const std::unique_ptr<Resource>& r) { return !finished(*r); });
  std::move(first, waiting_.end(), std::back_inserter(dead));
  waiting_.erase(first, waiting_.end());
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Graveyard::clear() noexcept {
  std::lock_guard lock(mutex_);
  waiting_.clear();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace vkd
