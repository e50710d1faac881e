// Recorded dispatches that can be submitted again and again, each time with its own arguments.
//
// The first submit streams its dispatches like eager calls. What is submitted again with the same arguments
// is recorded into command buffers, a segment at a time, and replayed: after a change only the segments it
// touches stream again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "queue/queue.hpp"

namespace vkd {

class CommandList {
 public:
  CommandList(std::vector<Queue*> queues, Graveyard& graveyard)
      : queues_(std::move(queues)), graveyard_(graveyard) {}
  ~CommandList() { reset(); }

  // Copies the dispatch except its arguments, and gives their offset inside an instance. False, with nothing
  // done, while another thread submits or resets the list, which may take until the device gets further:
  // wait_until_free() waits for that.
  bool try_record(const Dispatch& dispatch, size_t& offset);
  void wait_until_free() { std::lock_guard lock(mutex_); }
  void reset();
  // Keeps these dispatches, in this order, and drops the others. Returns for each where its arguments were
  // and how many bytes they have: they lie one after another now.
  std::vector<std::pair<size_t, size_t>> rearrange(const std::vector<size_t>& order);
  size_t instance_size() const noexcept { return instance_size_; }
  size_t length() const noexcept { return length_; }

  // Waits only while the queue is crowded. Throws unless there are instance_count * instance_size() bytes.
  void submit(size_t queue, const std::byte* arguments, size_t bytes, size_t instance_count);

 private:
  static constexpr size_t kSegmentLength = 256;

  struct Entry {
    Dispatch dispatch;  // its bindings and arguments are filled in by the offsets below
    size_t first_binding;
    size_t argument_offset;
  };
  struct CachedSegment {
    std::unique_ptr<Segment> segment;  // null until the arguments have been seen twice
    std::vector<std::byte> arguments;
    bool seen = false;
  };

  void gather(size_t begin, size_t end, const std::byte* arguments);
  void submit_segment(Queue& queue, CachedSegment& cached, size_t begin, size_t end,
                      const std::byte* arguments);
  void drop_segments();

  std::vector<Queue*> queues_;
  Graveyard& graveyard_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Binding> bindings_;
  std::atomic<size_t> instance_size_{0};  // these two are asked for while others record or reset
  std::atomic<size_t> length_{0};
  std::vector<std::vector<CachedSegment>> cache_;  // by queue, then by segment
  std::vector<Dispatch> gathered_;                 // scratch of submit_segment
};

}  // namespace vkd
