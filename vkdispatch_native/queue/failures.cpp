#include "queue/failures.hpp"

#include <algorithm>

namespace vkd {

namespace {

constexpr size_t kMostEntries = 4096;

}  // namespace

void Failures::add(uint64_t batch, const FailurePtr& failure) {
  std::lock_guard lock(mutex_);
  if (!entries_.empty() && entries_.back().failure == failure && entries_.back().last + 1 >= batch) {
    entries_.back().last = std::max(entries_.back().last, batch);
    return;
  }
  if (entries_.size() >= kMostEntries) {
    forget_oldest();
  }
  entries_.push_back({batch, batch, failure});
  any_.store(true, std::memory_order_release);
}

// Prefers a resolved failure: the others' data are still invalid.
void Failures::forget_oldest() {
  const auto resolved = std::find_if(entries_.begin(), entries_.end(),
                                     [](const Entry& entry) { return !entry.failure->unresolved(); });
  entries_.erase(resolved != entries_.end() ? resolved : entries_.begin());
}

void Failures::raise(uint64_t before, uint64_t last, bool unresolved) {
  FailurePtr found;
  {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.first <= last && entry.last > before && (!unresolved || entry.failure->unresolved())) {
        found = found ? found : entry.failure;
        entry.failure->reported.store(true);  // with the first: one wait reports all of them
      }
    }
  }
  if (found) {
    found->raise();
  }
}

}  // namespace vkd
