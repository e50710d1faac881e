#include "queue/graveyard.hpp"

#include <algorithm>

#include "libs/error.hpp"

namespace vkd {

bool Graveyard::finished(const Resource& resource) noexcept {
  try {
    for (size_t queue = 0; queue < timelines_.size(); ++queue) {
      if (timelines_[queue] != nullptr && !timelines_[queue]->passed(resource.last_use(queue))) {
        return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;  // a lost device: Engine::close destroys everything
  }
}

void Graveyard::retire(std::unique_ptr<Resource> resource) noexcept {
  if (!holds_.none() || !finished(*resource)) {
    defer(std::move(resource));
  }
}

void Graveyard::defer(std::unique_ptr<Resource> resource) noexcept {
  std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(resource), holds_.turns()});
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

void Graveyard::sweep() noexcept {
  if (empty()) {
    return;
  }
  std::vector<Waiting> dead;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  // Read this before the last uses: a thread that has ended its hold has recorded its uses.
  const bool no_holds = holds_.none();
  holds_.turn();
  const uint64_t turns = holds_.turns();
  try {
    for (size_t queue = 0; queue < timelines_.size(); ++queue) {
      completed_[queue] = timelines_[queue] != nullptr ? timelines_[queue]->completed() : ~uint64_t{0};
    }
  } catch (const Error&) {
    return;  // a lost device: Engine::close destroys everything
  }
  auto first = std::partition(waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
    if (!no_holds && turns < each.turns + 2) {
      return true;
    }
    for (size_t queue = 0; queue < completed_.size(); ++queue) {
      if (each.resource->last_use(queue) > completed_[queue]) {
        return true;
      }
    }
    return false;
  });
  std::move(first, waiting_.end(), std::back_inserter(dead));
  waiting_.erase(first, waiting_.end());
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

std::vector<std::unique_ptr<Resource>> Graveyard::take() noexcept {
  std::vector<std::unique_ptr<Resource>> all;
  std::lock_guard lock(mutex_);
  for (Waiting& each : waiting_) {
    all.push_back(std::move(each.resource));
  }
  waiting_.clear();
  count_.store(0, std::memory_order_relaxed);
  return all;
}

}  // namespace vkd
