#include "queue/command_list.hpp"

#include <algorithm>
#include <cstring>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr size_t kLeastQueries = 16;

void check_inside(const char* name, VkDeviceSize offset, VkDeviceSize size, VkDeviceSize most) {
  if (offset > most || size > most - offset) {
    throw Error(ErrorKind::invalid_value, std::string(name) + ": " + std::to_string(size) +
                                              " bytes at offset " + std::to_string(offset) +
                                              " exceed its size of " + std::to_string(most));
  }
}

// The other side of a list's copies is a buffer.
template <typename AnyCopy>
void set_other_side(AnyCopy& copy, size_t queue) {
  const Memory& memory = static_cast<const Buffer*>(copy.other)->memory(queue);
  copy.staging = memory.handle();
  copy.staging_offset += memory.start();
}

uint32_t argument_size(const Command& command) {
  const Dispatch* dispatch = std::get_if<Dispatch>(&command);
  return dispatch != nullptr ? dispatch->argument_size : 0;
}

}  // namespace

Command list_copy(Buffer& source, VkDeviceSize source_offset, Buffer& target, VkDeviceSize target_offset,
                  VkDeviceSize size) {
  if (size == 0) {
    throw Error(ErrorKind::invalid_value, "size: a copy takes at least one byte");
  }
  check_inside("source", source_offset, size, source.size());
  check_inside("target", target_offset, size, target.size());
  const bool apart = source_offset + size <= target_offset || target_offset + size <= source_offset;
  if (source.id() == target.id() && !apart) {
    throw Error(ErrorKind::invalid_value, "source, target: " + std::to_string(size) + " bytes at offsets " +
                                              std::to_string(source_offset) + " and " +
                                              std::to_string(target_offset) + " of one buffer overlap");
  }
  return Copy{&target, target_offset, VK_NULL_HANDLE, source_offset, size, true, &source, nullptr};
}

Command list_copy(Image& image, Buffer& other, VkDeviceSize offset, bool to_image) {
  const ImageRegion region = image.regions(0, ~VkDeviceSize{0}).front();
  check_inside("other", offset, region.size, other.size());
  if (offset % image.texel_size() != 0) {
    throw Error(ErrorKind::invalid_value, "offset: " + std::to_string(offset) + " is not a multiple of the " +
                                              std::to_string(image.texel_size()) + " bytes of a texel");
  }
  return ImageCopy{&image, region, VK_NULL_HANDLE, offset, to_image, &other, nullptr};
}

Command list_copy(Image& source, Image& target) {
  const ImageShape& a = source.shape();
  const ImageShape& b = target.shape();
  if (source.id() == target.id()) {
    throw Error(ErrorKind::invalid_value, "source, target: an image cannot be copied onto itself");
  }
  if (a.extent.width != b.extent.width || a.extent.height != b.extent.height ||
      a.extent.depth != b.extent.depth || a.layers != b.layers || a.view_type != b.view_type) {
    throw Error(ErrorKind::invalid_value, "source, target: images of different shapes");
  }
  if (source.texel_size() != target.texel_size()) {
    throw Error(ErrorKind::invalid_value, "source, target: texels of " + std::to_string(source.texel_size()) +
                                              " and of " + std::to_string(target.texel_size()) + " bytes");
  }
  return ImagePair{&source, &target};
}

void CommandList::add(const Command& command, const Binding* bindings) {
  entries_.push_back({command, bindings_.size(), instance_size_, argument_size(command)});
  if (const Dispatch* dispatch = std::get_if<Dispatch>(&command)) {
    bindings_.insert(bindings_.end(), bindings, bindings + dispatch->binding_count);
    note_renewals(entries_.back().first_binding);
  } else if (Timestamp* timestamp = std::get_if<Timestamp>(&entries_.back().command)) {
    timestamp->number = timestamp_count_++;
  }
  instance_size_ += entries_.back().argument_size;
  length_ = entries_.size();
  if (queues_.size() > 1) {
    note_shared(command, bindings);
  }
}

void CommandList::note_shared(const Command& command, const Binding* bindings) {
  auto note = [&](Data& data, bool, bool writes) {
    if (!data.shared()) {
      return;
    }
    const auto same = [&](const SharedUse& use) { return use.data->id() == data.id(); };
    const auto found = std::find_if(shared_uses_.begin(), shared_uses_.end(), same);
    if (found == shared_uses_.end()) {
      shared_uses_.push_back({&data, writes});
    } else {
      found->writes |= writes;
    }
  };
  if (const Dispatch* dispatch = std::get_if<Dispatch>(&command)) {
    Dispatch bound = *dispatch;
    bound.bindings = bindings;
    for_each_access(bound, note);
  } else {
    std::visit([&](const auto& each) { for_each_access(each, note); }, command);
  }
}

// Buffers created by a function during recording are written before they are read, in every run of the list.
void CommandList::note_renewals(size_t first_binding) {
  for (size_t i = first_binding; i < bindings_.size(); ++i) {
    Binding& b = bindings_[i];
    if (b.buffer != nullptr && b.buffer->renewable() && b.buffer->creation_id() >= creation_id_) {
      b.renews = renewable_.insert(b.buffer->id()).second && b.writes && !b.reads;
    }
  }
}

void CommandList::check_sources(size_t first, size_t last) {
  std::lock_guard lock(mutex_);
  std::unordered_set<uint64_t> renewed;
  const auto check = [&](const auto& command) {
    for_each_access(command, [&](const Data& data, bool reads, bool) {
      for (size_t queue = first; reads && queue < last && renewed.count(data.id()) == 0; ++queue) {
        data.poison(queue).check();
      }
    });
    for_each_renewal(command, [&](const Renewal& renewal) {
      if (renewal.parts == renewal.all) {
        renewed.insert(renewal.data->id());
      }
    });
  };
  for (const Entry& entry : entries_) {
    if (const Dispatch* dispatch = std::get_if<Dispatch>(&entry.command)) {
      Dispatch bound = *dispatch;
      bound.bindings = bindings_.data() + entry.first_binding;
      check(bound);
    } else {
      std::visit(check, entry.command);
    }
  }
}

bool CommandList::uses_lent_memory() {
  std::lock_guard lock(mutex_);
  bool lent = false;
  const auto look = [&](const Data& data, bool, bool) { lent |= data.sharing().ordered(); };
  for (const Entry& entry : entries_) {
    if (const Dispatch* dispatch = std::get_if<Dispatch>(&entry.command)) {
      Dispatch bound = *dispatch;
      bound.bindings = bindings_.data() + entry.first_binding;
      for_each_access(bound, look);
    } else {
      std::visit([&](const auto& each) { for_each_access(each, look); }, entry.command);
    }
  }
  return lent;
}

std::vector<CommandList::SharedUse> CommandList::shared_uses() {
  std::lock_guard lock(mutex_);
  return shared_uses_;
}

bool CommandList::try_record(const Command& command, size_t& offset) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  // Only the segment that grows is out of date.
  for (Cache& cache : cache_) {
    if (entries_.size() % kSegmentLength != 0 && !cache.segments.empty()) {
      retire(cache.segments.back());
      cache.segments.pop_back();
    }
  }
  offset = instance_size_;
  const Dispatch* dispatch = std::get_if<Dispatch>(&command);
  add(command, dispatch != nullptr ? dispatch->bindings : nullptr);
  return true;
}

void CommandList::reset() {
  std::lock_guard lock(mutex_);
  drop_segments();
  for (Cache& cache : cache_) {
    if (cache.queries) {
      graveyard_.retire(std::move(cache.queries));
    }
  }
  cache_.clear();
  entries_.clear();
  bindings_.clear();
  creation_id_ = Data::next_id();
  instance_size_ = 0;
  length_ = 0;
  shared_uses_.clear();
  renewable_.clear();
  timestamp_count_ = 0;
}

std::vector<std::pair<size_t, size_t>> CommandList::rearrange(const std::vector<size_t>& order) {
  std::lock_guard lock(mutex_);
  for (const size_t index : order) {
    if (index >= entries_.size()) {
      throw Error(ErrorKind::invalid_value, "order: there is no command " + std::to_string(index));
    }
  }
  drop_segments();
  const std::vector<Entry> entries = std::exchange(entries_, {});
  const std::vector<Binding> bindings = std::exchange(bindings_, {});
  instance_size_ = 0;
  length_ = 0;
  shared_uses_.clear();
  renewable_.clear();
  timestamp_count_ = 0;
  std::vector<std::pair<size_t, size_t>> arguments;
  for (const size_t index : order) {
    const Entry& entry = entries[index];
    arguments.emplace_back(entry.argument_offset, entry.argument_size);
    add(entry.command, bindings.data() + entry.first_binding);
  }
  return arguments;
}

void CommandList::retire(CachedSegment& cached) {
  if (cached.segment) {
    graveyard_.retire(std::move(cached.segment));
  }
}

void CommandList::drop_segments() {
  for (Cache& cache : cache_) {
    for (CachedSegment& cached : cache.segments) {
      retire(cached);
    }
    cache.segments.clear();
  }
}

// Segments name the queries that they were recorded with.
void CommandList::prepare_queries(Queue& queue, Cache& cache) {
  if (timestamp_count_ == 0 || (cache.queries && cache.queries->count() >= timestamp_count_)) {
    return;
  }
  const size_t count = std::max(kLeastQueries, size_t{2} * timestamp_count_);
  auto queries = std::make_unique<Queries>(queues_.size(), queue.device(), queue.family(), count);
  for (CachedSegment& cached : cache.segments) {
    retire(cached);
  }
  cache.segments.clear();
  if (cache.queries) {
    graveyard_.retire(std::move(cache.queries));
  }
  cache.queries = std::move(queries);
  cache.written_timestamps = 0;
}

void CommandList::gather(const Queue& queue, const Cache& cache, size_t begin, size_t end,
                         const std::byte* arguments) {
  gathered_.clear();
  for (size_t i = begin; i < end; ++i) {
    const Entry& entry = entries_[i];
    Command& command = gathered_.emplace_back(entry.command);
    if (Dispatch* dispatch = std::get_if<Dispatch>(&command)) {
      dispatch->bindings = bindings_.data() + entry.first_binding;
      dispatch->arguments = arguments + entry.argument_offset;
    } else if (Copy* copy = std::get_if<Copy>(&command)) {
      set_other_side(*copy, queue.index());
    } else if (ImageCopy* image_copy = std::get_if<ImageCopy>(&command)) {
      set_other_side(*image_copy, queue.index());
    } else if (Timestamp* timestamp = std::get_if<Timestamp>(&command)) {
      timestamp->queries = cache.queries.get();
    }
  }
}

uint64_t CommandList::submit_segment(Queue& queue, Cache& cache, size_t index, const std::byte* arguments,
                                     bool waited_for) {
  CachedSegment& cached = cache.segments[index];
  const size_t begin = index * kSegmentLength;
  const size_t end = std::min(begin + kSegmentLength, entries_.size());
  if (queue.shared().timings.on()) {  // a replay would be timed as one command
    gather(queue, cache, begin, end, arguments);
    return queue.append(gathered_, waited_for);
  }
  const std::byte* first = arguments + entries_[begin].argument_offset;
  const size_t size =
      entries_[end - 1].argument_offset + entries_[end - 1].argument_size - entries_[begin].argument_offset;
  const bool same = cached.seen && cached.arguments.size() == size &&
                    (size == 0 || std::memcmp(cached.arguments.data(), first, size) == 0);
  if (same && cached.segment) {
    return queue.append(*cached.segment, waited_for);
  }
  gather(queue, cache, begin, end, arguments);
  if (same) {
    const bool last = end == entries_.size();
    try {
      cached.segment = std::make_unique<Segment>(queues_.size(), queue.index(), queue.device(),
                                                 queue.family(), gathered_, last, queue.shared());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) {
        throw;
      }
      return queue.append(gathered_, waited_for);  // it needs no memory of its own
    }
    return queue.append(*cached.segment, waited_for);
  }
  retire(cached);
  cached.arguments.assign(first, first + size);
  cached.seen = true;
  return queue.append(gathered_, waited_for);
}

uint64_t CommandList::submit(size_t queue_index, const std::byte* arguments, size_t bytes,
                             size_t instance_count, bool waited_for) {
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
  Cache& cache = cache_[queue_index];
  Queue& queue = *queues_[queue_index];
  prepare_queries(queue, cache);
  cache.segments.resize((entries_.size() + kSegmentLength - 1) / kSegmentLength);
  uint64_t value = 0;
  for (size_t instance = 0; instance < instance_count; ++instance) {
    for (size_t s = 0; s < cache.segments.size(); ++s) {
      if (queue.crowded()) {
        queue.make_room();
      }
      value = submit_segment(queue, cache, s, arguments + instance * instance_size_, waited_for);
      cache.written_timestamps = timestamp_count_;
    }
  }
  return value;
}

std::vector<uint64_t> CommandList::timestamps(size_t queue_index) {
  std::lock_guard lock(mutex_);
  if (queue_index >= cache_.size() || !cache_[queue_index].queries) {
    return {};
  }
  const Cache& cache = cache_[queue_index];
  return cache.queries->read(cache.written_timestamps);
}

}  // namespace vkd
