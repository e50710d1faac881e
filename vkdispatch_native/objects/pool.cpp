#include "objects/pool.hpp"

#include <new>

namespace vkd {

bool Pool::give(std::unique_ptr<Buffer>& buffer) noexcept {
  std::lock_guard lock(mutex_);
  try {
    Ring<Place>& places = by_size_[buffer->size()];
    places.reserve(places.size() + 1);
    buffers_.emplace_back();
    places.push_back(std::prev(buffers_.end()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  bytes_.fetch_add(buffer->allocated(), std::memory_order_relaxed);
  buffers_.back() = std::move(buffer);
  return true;
}

std::unique_ptr<Buffer> Pool::take_surplus() noexcept {
  std::lock_guard lock(mutex_);
  return bytes() > most_ || buffers_.size() > kMostBuffers ? remove_oldest() : nullptr;
}

std::unique_ptr<Buffer> Pool::take_oldest() noexcept {
  std::lock_guard lock(mutex_);
  return remove_oldest();
}

// The oldest of all is also the oldest of its size.
std::unique_ptr<Buffer> Pool::remove_oldest() noexcept {
  if (buffers_.empty()) {
    return nullptr;
  }
  const auto found = by_size_.find(buffers_.front()->size());
  const Place place = pop_front(found->second);
  if (found->second.empty()) {
    by_size_.erase(found);
  }
  return remove(place);
}

Pool::Place Pool::pop_front(Ring<Place>& places) noexcept {
  const Place place = places.front();
  places.pop_front();
  return place;
}

std::unique_ptr<Buffer> Pool::remove(Place place) noexcept {
  std::unique_ptr<Buffer> buffer = std::move(*place);
  buffers_.erase(place);
  bytes_.fetch_sub(buffer->allocated(), std::memory_order_relaxed);
  return buffer;
}

}  // namespace vkd
