// Commands: plain data, gathered into batches. They point to resources without owning them; a resource is
// destroyed only after the timeline has passed its last use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "objects/buffer.hpp"
#include "objects/image.hpp"
#include "objects/plan.hpp"
#include "objects/queries.hpp"
#include "objects/sampler.hpp"

namespace vkd {

// A buffer, an image, or an image with its sampler; unused members are null. There are no default
// initializers: launchers keep hundreds of these on the stack and fill in a few.
struct Binding {
  Buffer* buffer;
  Image* image;
  Sampler* sampler;
  VkDeviceSize offset;
  VkDeviceSize range;
  uint32_t index;
  bool reads;
  bool writes;
  // Not bound but accessed by address, which is written into the arguments at `address_offset`.
  bool addressed;
  uint32_t address_offset;
  // The command starts to write all of it, without reading earlier contents.
  bool renews;

  Data& data() const noexcept { return buffer != nullptr ? static_cast<Data&>(*buffer) : *image; }
};

struct Groups {
  uint32_t x, y, z;
};

// One dispatch. The caller owns its bindings and arguments.
struct Dispatch {
  Plan* plan;
  Groups groups;
  const Binding* bindings;
  uint32_t binding_count;
  const std::byte* arguments;
  uint32_t argument_size;
  // The binding of the arguments; -1: push constants, followed by the plan's uniform blocks.
  int32_t uniform_binding;
};

// A copy between a user's buffer and host memory, another buffer, or another copy of the same buffer.
struct Copy {
  Buffer* buffer;
  VkDeviceSize buffer_offset;
  VkBuffer staging;
  VkDeviceSize staging_offset;
  VkDeviceSize size;
  bool to_buffer;
  Data* other;   // the owner of the staging buffer; null: no other user
  Poison* side;  // of the staging buffer if `other` is null; may be null
};

// A copy between a part of a user's image and a staging block or a buffer.
struct ImageCopy {
  Image* image;
  ImageRegion region;
  VkBuffer staging;
  VkDeviceSize staging_offset;
  bool to_image;
  Data* other;  // as in Copy
  Poison* side;
};

// A copy of mip level 0 between two images of the same shape.
struct ImagePair {
  Image* source;
  Image* target;
};

struct FullBarrier {};  // independent of hazards

// A timestamp, written after all earlier commands.
struct Timestamp {
  Queries* queries;
  uint32_t number;
};

// The commands of a command list.
using Command = std::variant<Dispatch, Copy, ImageCopy, ImagePair, FullBarrier, Timestamp>;

// Calls visit(data, reads, writes) for everything that a command reads or writes; data may repeat.
template <typename Visit>
void for_each_access(const Dispatch& dispatch, Visit visit) {
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
    const Binding& b = dispatch.bindings[i];
    visit(b.data(), b.reads, b.writes);
  }
}
template <typename Visit>
void for_each_access(const Copy& copy, Visit visit) {
  visit(*copy.buffer, !copy.to_buffer, copy.to_buffer);
  if (copy.other != nullptr) {
    visit(*copy.other, copy.to_buffer, !copy.to_buffer);
  }
}
template <typename Visit>
void for_each_access(const ImageCopy& copy, Visit visit) {
  visit(*copy.image, !copy.to_image, copy.to_image);
  if (copy.other != nullptr) {
    visit(*copy.other, copy.to_image, !copy.to_image);
  }
}
template <typename Visit>
void for_each_access(const ImagePair& pair, Visit visit) {
  visit(*pair.source, true, false);
  visit(*pair.target, false, true);
}
template <typename Visit>
void for_each_access(const FullBarrier&, Visit) {}
template <typename Visit>
void for_each_access(const Timestamp&, Visit) {}

// Calls visit(resource) for everything else that a command uses.
template <typename Visit>
void for_each_need(const Dispatch& dispatch, Visit visit) {
  visit(*dispatch.plan);
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
    if (dispatch.bindings[i].sampler != nullptr) {
      visit(*dispatch.bindings[i].sampler);
    }
  }
}
template <typename Visit>
void for_each_need(const Timestamp& timestamp, Visit visit) {
  visit(*timestamp.queries);
}
template <typename Other, typename Visit>
void for_each_need(const Other&, Visit) {}

// Whether the host reads what a command writes without a copy.
template <typename AnyCommand>
bool host_reads(const AnyCommand& command, size_t queue) noexcept {
  bool found = false;
  for_each_access(command, [&](const Data& data, bool, bool writes) {
    found = found || (writes && data.is_host_visible(queue));
  });
  return found;
}

template <typename AnyCommand, typename Visit>
void visit_sources(const AnyCommand& command, size_t slot, Visit visit) {
  for_each_access(command, [&](const Data& data, bool reads, bool) {
    if (reads) {
      visit(data.poison(slot));
    }
  });
}
template <typename AnyCommand, typename Visit>
void visit_targets(const AnyCommand& command, size_t slot, Visit visit) {
  for_each_access(command, [&](const Data& data, bool, bool writes) {
    if (writes) {
      visit(data.poison(slot));
    }
  });
}

// Calls visit(poison) for everything that a command reads.
template <typename AnyCommand, typename Visit>
void for_each_source(const AnyCommand& command, size_t slot, Visit visit) {
  visit_sources(command, slot, visit);
}
template <typename Visit>
void for_each_source(const Copy& copy, size_t slot, Visit visit) {
  visit_sources(copy, slot, visit);
  if (copy.side != nullptr && copy.to_buffer) {
    visit(*copy.side);
  }
}

// Calls visit(poison) for everything that stays unwritten if a command does not run.
template <typename AnyCommand, typename Visit>
void for_each_target(const AnyCommand& command, size_t slot, Visit visit) {
  visit_targets(command, slot, visit);
}
template <typename Visit>
void for_each_target(const Dispatch& dispatch, size_t slot, Visit visit) {
  for_each_access(dispatch, [&](const Data& data, bool, bool writes) {
    if (writes && !data.steady()) {
      visit(data.poison(slot));
    }
  });
}
template <typename Visit>
void for_each_target(const Copy& copy, size_t slot, Visit visit) {
  visit_targets(copy, slot, visit);
  if (copy.side != nullptr && !copy.to_buffer) {
    visit(*copy.side);
  }
}
template <typename Visit>
void for_each_target(const ImageCopy& copy, size_t slot, Visit visit) {
  visit_targets(copy, slot, visit);
  if (copy.side != nullptr && !copy.to_image) {
    visit(*copy.side);
  }
}

// Data, or parts of them, that commands overwrite without reading earlier contents.
struct Renewal {
  Data* data;
  uint32_t parts;  // as in Poison::clear
  uint32_t all;
};
// Calls visit(renewal) for everything that a command overwrites completely, alone or as the first of several.
template <typename Visit>
void for_each_renewal(const Dispatch& dispatch, Visit visit) {
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
    if (dispatch.bindings[i].renews) {
      visit(Renewal{&dispatch.bindings[i].data(), ~uint32_t{0}, ~uint32_t{0}});
    }
  }
}
template <typename Visit>
void for_each_renewal(const Copy& copy, Visit visit) {
  Data* target = copy.to_buffer ? copy.buffer : copy.other;
  const VkDeviceSize offset = copy.to_buffer ? copy.buffer_offset : copy.staging_offset;
  if (target != nullptr && offset == 0 && copy.size == target->size()) {
    visit(Renewal{target, ~uint32_t{0}, ~uint32_t{0}});
  }
}
template <typename Visit>
void for_each_renewal(const ImageCopy& copy, Visit visit) {
  const uint32_t level = copy.region.level;
  if (copy.to_image && copy.region.size == copy.image->level_size(level)) {
    visit(Renewal{copy.image, uint32_t{1} << level, copy.image->all_levels()});
  } else if (!copy.to_image && copy.other != nullptr && copy.staging_offset == 0 &&
             copy.region.size == copy.other->size()) {
    visit(Renewal{copy.other, ~uint32_t{0}, ~uint32_t{0}});
  }
}
template <typename Visit>
void for_each_renewal(const ImagePair& pair, Visit visit) {
  visit(Renewal{pair.target, 1, pair.target->all_levels()});
}
template <typename Visit>
void for_each_renewal(const FullBarrier&, Visit) {}
template <typename Visit>
void for_each_renewal(const Timestamp&, Visit) {}

// Returns the failure of the data that a command reads; null if there is none.
template <typename AnyCommand>
FailurePtr source_failure(const AnyCommand& command, size_t slot) {
  FailurePtr failure;
  for_each_source(command, slot, [&](const Poison& poison) {
    if (!failure) {
      failure = poison.failure();
    }
  });
  return failure;
}

class Queue;
class Segment;

// Commands for one submit, and the timeline value that it signals.
class Batch {
 public:
  enum class Kind : uint8_t {
    dispatch,
    copy,
    image_copy,
    image_pair,
    barrier,
    timestamp,
    image_start,
    renewal,
    replay
  };

  struct Entry {
    Kind kind;
    union {
      struct {
        Plan* plan;
        Groups groups;
        uint32_t first_binding, binding_count;
        uint32_t first_argument, argument_size;
        int32_t uniform_binding;
      } dispatch;
      Copy copy;
      ImageCopy image_copy;
      ImagePair image_pair;
      Timestamp timestamp;
      Image* image;  // new: its contents are undefined
      Renewal renewal;
      Segment* segment;
    };
  };

  struct Wait {
    Queue* queue;  // not the batch's own queue
    uint64_t value;
  };

  // A value that another API signals.
  struct Incoming {
    VkSemaphore semaphore;
    uint64_t value;
  };

  explicit Batch(size_t room) { entries_.reserve(room); }

  uint64_t value = 0;
  std::vector<Wait> waits;  // performed before the first command
  std::vector<Incoming> incoming;

  bool empty() const noexcept { return entries_.empty(); }
  size_t size() const noexcept { return entries_.size(); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  void clear() noexcept;

  void add(const Dispatch& dispatch);
  void add(const Copy& copy);
  void add(const ImageCopy& copy);
  void add(const ImagePair& pair);
  void add(const FullBarrier& barrier);
  void add(const Timestamp& timestamp);
  void add(Image& image);
  void add(const Renewal& renewal);
  void add(Segment& segment);
  Dispatch dispatch(const Entry& entry) const noexcept;
  // Calls visit(command) for recorded commands, visit(segment) for replayed segments, and
  // visit_renewal(renewal), in order.
  template <typename Visit, typename VisitRenewal>
  void for_each_command(Visit visit, VisitRenewal visit_renewal) const {
    for (const Entry& entry : entries_) {
      switch (entry.kind) {
        case Kind::dispatch:
          visit(dispatch(entry));
          break;
        case Kind::copy:
          visit(entry.copy);
          break;
        case Kind::image_copy:
          visit(entry.image_copy);
          break;
        case Kind::image_pair:
          visit(entry.image_pair);
          break;
        case Kind::barrier:
          visit(FullBarrier{});
          break;
        case Kind::timestamp:
          visit(entry.timestamp);
          break;
        case Kind::replay:
          visit(*entry.segment);
          break;
        case Kind::renewal:
          visit_renewal(entry.renewal);
          break;
        case Kind::image_start:
          break;
      }
    }
  }
  template <typename Visit>
  void for_each_command(Visit visit) const {
    for_each_command(visit, [](const Renewal&) {});
  }

 private:
  std::vector<Entry> entries_;
  std::vector<Binding> bindings_;
  std::vector<std::byte> arguments_;
};

}  // namespace vkd
