// Recorded commands that can be submitted repeatedly, each time with new arguments.
//
// The first submit streams the commands like eager calls. When they are submitted again with the same
// arguments, they are recorded into command buffers, one segment at a time, and replayed. After a change,
// only the affected segments are streamed again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "queue/queue.hpp"

namespace vkd {

// The commands of a list are independent of queues: a submit fills in the buffers of copies and the queries
// of timestamps. Each function throws an error that names the argument for commands that Vulkan does not
// define.
Command list_copy(Buffer& source, VkDeviceSize source_offset, Buffer& target, VkDeviceSize target_offset,
                  VkDeviceSize size);
// Copies a whole mip level 0, in rows without gaps.
Command list_copy(Image& image, Buffer& other, VkDeviceSize offset, bool to_image);
Command list_copy(Image& source, Image& target);
inline Command list_barrier() {
  return FullBarrier{};
}
inline Command list_timestamp() {
  return Timestamp{};
}

class CommandList {
 public:
  CommandList(std::vector<Queue*> queues, Graveyard& graveyard)
      : queues_(std::move(queues)), graveyard_(graveyard) {}
  ~CommandList() { reset(); }

  // Copies the command except its arguments, and returns the offset of its arguments in an instance. Returns
  // false, without any effect, while another thread submits or resets the list, which may take until the
  // device makes progress; wait_until_free() waits for that.
  bool try_record(const Command& command, size_t& offset);
  bool try_record(const Dispatch& dispatch, size_t& offset) { return try_record(Command(dispatch), offset); }
  void wait_until_free() { std::lock_guard lock(mutex_); }
  void reset();
  // Keeps these commands, in this order, and drops the others. Returns the previous offset and the size of
  // each command's arguments; the arguments are contiguous afterwards.
  std::vector<std::pair<size_t, size_t>> rearrange(const std::vector<size_t>& order);
  size_t instance_size() const noexcept { return instance_size_; }
  size_t length() const noexcept { return length_; }
  // The memory that all queues share, and whether the list writes to it.
  struct SharedUse {
    Data* data;  // one of those on this memory
    bool writes;
  };
  std::vector<SharedUse> shared_uses();
  bool uses_lent_memory();  // in order: see Sharing
  // Throws the failure of data that the list needs, on queues `first` to `last` (exclusive).
  void check_sources(size_t first, size_t last);

  // Waits only while the queue is crowded. Throws unless there are instance_count * instance_size() bytes.
  // Returns the value of the last command's batch, 0 if there are no commands. waited_for: see
  // Queue::append().
  uint64_t submit(size_t queue, const std::byte* arguments, size_t bytes, size_t instance_count,
                  bool waited_for);
  // The ticks of the list's timestamps, as written by its last submit to this queue; empty if there was none.
  // Throws unless the device has written them.
  std::vector<uint64_t> timestamps(size_t queue);

 private:
  static constexpr size_t kSegmentLength = 256;

  struct Entry {
    Command command;  // gather() fills in what depends on the submit
    size_t first_binding;
    size_t argument_offset;
    size_t argument_size;
  };
  struct CachedSegment {
    std::unique_ptr<Segment> segment;  // null until the same arguments were submitted twice
    std::vector<std::byte> arguments;
    bool seen = false;
  };
  // The state of the list on one queue.
  struct Cache {
    std::vector<CachedSegment> segments;
    std::unique_ptr<Queries> queries;
    size_t written_timestamps = 0;  // timestamps in the last submit
  };

  void add(const Command& command, const Binding* bindings);
  void note_shared(const Command& command, const Binding* bindings);
  void note_renewals(size_t first_binding);
  void prepare_queries(Queue& queue, Cache& cache);
  void gather(const Queue& queue, const Cache& cache, size_t begin, size_t end, const std::byte* arguments);
  uint64_t submit_segment(Queue& queue, Cache& cache, size_t index, const std::byte* arguments,
                          bool waited_for);
  void retire(CachedSegment& cached);
  void drop_segments();

  std::vector<Queue*> queues_;
  Graveyard& graveyard_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Binding> bindings_;
  std::atomic<size_t> instance_size_{0};  // these two are read while other threads record or reset
  std::atomic<size_t> length_{0};
  std::vector<SharedUse> shared_uses_;
  uint64_t creation_id_ = Data::next_id();  // data with this id or a larger one were created for this list
  std::unordered_set<uint64_t> renewable_;  // those of them that dispatches have used
  uint32_t timestamp_count_ = 0;
  std::vector<Cache> cache_;       // by queue
  std::vector<Command> gathered_;  // scratch of submit_segment
};

}  // namespace vkd
