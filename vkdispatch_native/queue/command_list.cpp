#include "queue/command_list.hpp"

#include <algorithm>
#include <cstring>

#include "libs/error.hpp"

namespace vkd {

bool CommandList::try_record(const Dispatch& dispatch, size_t& offset) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  // Only the segment that grows is out of date.
  for (std::vector<CachedSegment>& segments : cache_) {
    if (entries_.size() % kSegmentLength != 0 && !segments.empty()) {
      if (segments.back().segment) {
        graveyard_.retire(std::move(segments.back().segment));
      }
      segments.pop_back();
    }
  }
  offset = instance_size_;
  entries_.push_back({dispatch, bindings_.size(), offset});
  bindings_.insert(bindings_.end(), dispatch.bindings, dispatch.bindings + dispatch.binding_count);
  instance_size_ += dispatch.argument_size;
  length_ = entries_.size();
  return true;
}

void CommandList::reset() {
  std::lock_guard lock(mutex_);
  drop_segments();
  entries_.clear();
  bindings_.clear();
  instance_size_ = 0;
  length_ = 0;
}

std::vector<std::pair<size_t, size_t>> CommandList::rearrange(const std::vector<size_t>& order) {
  std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  std::vector<Binding> bindings;
  std::vector<std::pair<size_t, size_t>> arguments;
  size_t instance_size = 0;
  for (const size_t index : order) {
    if (index >= entries_.size()) {
      throw Error(ErrorKind::invalid_value, "order: there is no dispatch " + std::to_string(index));
    }
    Entry entry = entries_[index];
    const auto first = bindings_.begin() + static_cast<std::ptrdiff_t>(entry.first_binding);
    arguments.emplace_back(entry.argument_offset, entry.dispatch.argument_size);
    entry.first_binding = bindings.size();
    entry.argument_offset = instance_size;
    bindings.insert(bindings.end(), first, first + entry.dispatch.binding_count);
    instance_size += entry.dispatch.argument_size;
    entries.push_back(entry);
  }
  drop_segments();
  entries_.swap(entries);
  bindings_.swap(bindings);
  instance_size_ = instance_size;
  length_ = entries_.size();
  return arguments;
}

void CommandList::drop_segments() {
  for (std::vector<CachedSegment>& segments : cache_) {
    for (CachedSegment& cached : segments) {
      if (cached.segment) {
        graveyard_.retire(std::move(cached.segment));
      }
    }
  }
  cache_.clear();
}

void CommandList::gather(size_t begin, size_t end, const std::byte* arguments) {
  gathered_.clear();
  for (size_t i = begin; i < end; ++i) {
    Dispatch dispatch = entries_[i].dispatch;
    dispatch.bindings = bindings_.data() + entries_[i].first_binding;
    dispatch.arguments = arguments + entries_[i].argument_offset;
    gathered_.push_back(dispatch);
  }
}

void CommandList::submit_segment(Queue& queue, CachedSegment& cached, size_t begin, size_t end,
                                 const std::byte* arguments) {
  if (queue.shared().timings.on()) {  // a replay would be timed as a whole
    gather(begin, end, arguments);
    queue.append(gathered_.data(), gathered_.size());
    return;
  }
  const std::byte* first = arguments + entries_[begin].argument_offset;
  const size_t size = entries_[end - 1].argument_offset + entries_[end - 1].dispatch.argument_size -
                      entries_[begin].argument_offset;
  const bool same = cached.seen && cached.arguments.size() == size &&
                    (size == 0 || std::memcmp(cached.arguments.data(), first, size) == 0);
  if (same && cached.segment) {
    queue.append(*cached.segment);
    return;
  }
  gather(begin, end, arguments);
  if (same) {
    cached.segment = std::make_unique<Segment>(queues_.size(), queue.index(), queue.device(), queue.family(),
                                               gathered_, queue.shared());
    queue.append(*cached.segment);
    return;
  }
  if (cached.segment) {
    graveyard_.retire(std::move(cached.segment));
  }
  cached.arguments.assign(first, first + size);
  cached.seen = true;
  queue.append(gathered_.data(), gathered_.size());
}

void CommandList::submit(size_t queue_index, const std::byte* arguments, size_t bytes,
                         size_t instance_count) {
  std::lock_guard lock(mutex_);
  const bool fits = instance_size_ == 0
                        ? bytes == 0
                        : bytes % instance_size_ == 0 && bytes / instance_size_ == instance_count;
  if (!fits) {
    throw Error(ErrorKind::invalid_value, "data: " + std::to_string(bytes) + " bytes given for " +
                                              std::to_string(instance_count) + " instances of " +
                                              std::to_string(instance_size_) + " bytes");
  }
  cache_.resize(queues_.size());
  std::vector<CachedSegment>& segments = cache_[queue_index];
  segments.resize((entries_.size() + kSegmentLength - 1) / kSegmentLength);
  Queue& queue = *queues_[queue_index];
  for (size_t instance = 0; instance < instance_count; ++instance) {
    for (size_t s = 0; s < segments.size(); ++s) {
      if (queue.crowded()) {
        queue.make_room();
      }
      const size_t begin = s * kSegmentLength;
      const size_t end = std::min(begin + kSegmentLength, entries_.size());
      submit_segment(queue, segments[s], begin, end, arguments + instance * instance_size_);
    }
  }
}

}  // namespace vkd
