// Recorded commands that can be submitted again and again, each time with their own arguments.
//
// The first submit streams its commands like eager calls. What is submitted again with the same arguments
// is recorded into command buffers, a segment at a time, and replayed: after a change only the segments it
// touches stream again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "queue/queue.hpp"

namespace vkd {

// What a list is given: a command that stands for any queue, whose copies' buffers and timestamps' queries
// are filled in when it is submitted to one. Each throws, naming the argument, for what Vulkan gives no
// meaning.
Command list_copy(Buffer& source, VkDeviceSize source_offset, Buffer& target, VkDeviceSize target_offset,
                  VkDeviceSize size);
// A whole mip level 0, in rows without gaps.
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

  // Copies the command except its arguments, and gives their offset inside an instance. False, with nothing
  // done, while another thread submits or resets the list, which may take until the device gets further:
  // wait_until_free() waits for that.
  bool try_record(const Command& command, size_t& offset);
  bool try_record(const Dispatch& dispatch, size_t& offset) { return try_record(Command(dispatch), offset); }
  void wait_until_free() { std::lock_guard lock(mutex_); }
  void reset();
  // Keeps these commands, in this order, and drops the others. Returns for each where its arguments were
  // and how many bytes they have: they lie one after another now.
  std::vector<std::pair<size_t, size_t>> rearrange(const std::vector<size_t>& order);
  size_t instance_size() const noexcept { return instance_size_; }
  size_t length() const noexcept { return length_; }
  // The memory that all queues have in common, and whether the list writes to it.
  struct SharedUse {
    Data* data;  // one of those with this memory
    bool writes;
  };
  std::vector<SharedUse> shared_uses();
  // Throws the failure of what the list needs, on the queues from `first` up to, without it, `last`.
  void check_sources(size_t first, size_t last);

  // Waits only while the queue is crowded. Throws unless there are instance_count * instance_size() bytes.
  // Returns the value of the last command's batch, 0 where there is none.
  // waited_for: see Queue::append().
  uint64_t submit(size_t queue, const std::byte* arguments, size_t bytes, size_t instance_count,
                  bool waited_for);
  // The ticks of the list's timestamps, as its last submit to this queue has written them; none where it was
  // never submitted there. Throws unless the device is done with it.
  std::vector<uint64_t> timestamps(size_t queue);

 private:
  static constexpr size_t kSegmentLength = 256;

  struct Entry {
    Command command;  // what depends on the submit is filled in by gather()
    size_t first_binding;
    size_t argument_offset;
    size_t argument_size;
  };
  struct CachedSegment {
    std::unique_ptr<Segment> segment;  // null until the arguments have been seen twice
    std::vector<std::byte> arguments;
    bool seen = false;
  };
  // What is kept for each queue.
  struct Cache {
    std::vector<CachedSegment> segments;
    std::unique_ptr<Queries> queries;
    size_t written_timestamps = 0;  // timestamps of the last submit
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
  std::atomic<size_t> instance_size_{0};  // these two are asked for while others record or reset
  std::atomic<size_t> length_{0};
  std::vector<SharedUse> shared_uses_;
  uint64_t creation_id_ = Data::next_id();  // data from this one on were made for this list
  std::unordered_set<uint64_t> renewable_;  // of them, those that dispatches have used
  uint32_t timestamp_count_ = 0;
  std::vector<Cache> cache_;       // by queue
  std::vector<Command> gathered_;  // scratch of submit_segment
};

}  // namespace vkd
