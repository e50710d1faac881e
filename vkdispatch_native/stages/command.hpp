// What a queue is given: plain data, gathered into batches. Commands point at resources without owning them:
// a resource is only destroyed once the timeline has passed its last use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "objects/buffer.hpp"
#include "objects/image.hpp"
#include "objects/plan.hpp"
#include "objects/sampler.hpp"

namespace vkd {

// A buffer, an image, or an image with the sampler that it is seen through; what is not used is null.
// No member has a default: launchers keep room for hundreds on the stack and fill in a few.
struct Binding {
  Buffer* buffer;
  Image* image;
  Sampler* sampler;
  VkDeviceSize offset;
  VkDeviceSize range;
  uint32_t index;
  bool reads;
  bool writes;
  // Not bound, but reached by its address, which goes into the arguments at this offset.
  bool addressed;
  uint32_t address_offset;

  Data& data() const noexcept { return buffer != nullptr ? static_cast<Data&>(*buffer) : *image; }
};

// Whether a command that writes this buffer writes what the host looks at without a copy.
inline bool host_reads(const Buffer* written, size_t queue) noexcept {
  return written != nullptr && written->memory(queue).mapped() != nullptr;
}

struct Groups {
  uint32_t x, y, z;
};

// One dispatch, its bindings and arguments lying wherever the caller keeps them.
struct Dispatch {
  Plan* plan;
  Groups groups;
  const Binding* bindings;
  uint32_t binding_count;
  const std::byte* arguments;
  uint32_t argument_size;
  int32_t uniform_binding;  // where the arguments are bound; -1: they are push constants
};

inline bool host_reads(const Dispatch& dispatch, size_t queue) noexcept {
  return std::any_of(dispatch.bindings, dispatch.bindings + dispatch.binding_count,
                     [&](const Binding& b) { return b.writes && host_reads(b.buffer, queue); });
}

// A copy between a user's buffer and memory of the host, or from another buffer, or another copy of the same.
struct Copy {
  Buffer* buffer;
  VkDeviceSize buffer_offset;
  VkBuffer staging;
  VkDeviceSize staging_offset;
  VkDeviceSize size;
  bool to_buffer;
  Data* other;  // what the staging buffer belongs to; null: nobody else can be using it
};

// A copy between a part of a user's image and a staging block.
struct ImageCopy {
  Image* image;
  ImageRegion region;
  VkBuffer staging;
  VkDeviceSize staging_offset;
  bool to_image;
};

class Queue;
class Segment;

// Commands that will go to the device in one submit, and the timeline value which that submit will signal.
class Batch {
 public:
  enum class Kind : uint8_t { dispatch, copy, image_copy, image_start, replay };

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
      Image* image;  // new: its contents start as anything
      Segment* segment;
    };
  };

  struct Wait {
    Queue* queue;  // another one
    uint64_t value;
  };

  explicit Batch(size_t room) { entries_.reserve(room); }

  uint64_t value = 0;
  std::vector<Wait> waits;  // before the first command

  bool empty() const noexcept { return entries_.empty(); }
  size_t size() const noexcept { return entries_.size(); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  void clear() noexcept;

  void add(const Dispatch& dispatch);
  void add(const Copy& copy);
  void add(const ImageCopy& copy);
  void add(Image& image);
  void add(Segment& segment);
  Dispatch dispatch(const Entry& entry) const noexcept;

 private:
  std::vector<Entry> entries_;
  std::vector<Binding> bindings_;
  std::vector<std::byte> arguments_;
};

}  // namespace vkd
