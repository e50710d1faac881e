// One queue of a device, with a thread that turns the gathered commands into batches of one submit each.
//
// Any thread may append. The queue's own thread submits in the background; a thread that is about to wait
// submits by itself, which is faster. Batches are numbered when they are opened, so a command's timeline
// value is known immediately.
#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "libs/interrupts.hpp"
#include "libs/ring.hpp"
#include "objects/pinned.hpp"
#include "queue/failures.hpp"
#include "queue/graveyard.hpp"
#include "queue/landing.hpp"
#include "queue/staging.hpp"
#include "stages/segment.hpp"

namespace vkd {

// A point in the work of an engine: the queue with this slot has finished this batch.
struct Point {
  size_t slot;
  uint64_t value;
};

// A copy to host memory that was appended to a queue. It is done once the queue has passed `value`.
struct Reading {
  uint64_t value = 0;  // 0: none
  int part = Landing::kNone;
  VkDeviceSize size = 0;
};

class Queue {
 public:
  // `index`: the queue's copy of each buffer. `slot`: where resources record its uses.
  Queue(size_t index, size_t slot, Device& device, const QueueHandle& handle, Timeline& timeline,
        Graveyard& graveyard, SharedState& shared);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Appending never waits for the device. Each function returns the timeline value that follows the command.
  uint64_t append(const Dispatch& dispatch);
  // Appends a list's commands, at least one. With `waited_for` the caller will call wait() or
  // notify_worker(), so the queue's thread is not woken: the caller submits sooner.
  uint64_t append(const std::vector<Command>& commands, bool waited_for);
  uint64_t append(Segment& segment, bool waited_for);
  uint64_t append(Image& image);  // a new one, before its first use
  // Following commands overwrite these parts of the data without reading them.
  uint64_t append(const Renewal& renewal);

  // If earlier commands that write the data fail, they no longer poison it: it is about to be reused.
  void renew_after_all(Data& data);

  // Everything appended later waits, on the device, until other queues have passed these values.
  uint64_t append_waits(std::vector<Batch::Wait> waits);
  // Everything appended later waits, on the device, for a value of a timeline of Device::incoming().
  void wait_for_incoming(VkSemaphore semaphore, uint64_t value);
  // Submits everything. Returns the value that the device signals when it is done, and what to wait on.
  uint64_t submit_all();
  VkSemaphore semaphore() const noexcept { return timeline_.handle(); }
  // Copies another buffer of the same size into the queue's copy of a buffer.
  uint64_t append_copy_of(Buffer& buffer, Buffer& other) {
    const Memory& memory = other.memory(index_);
    return append_copy({&buffer, 0, memory.handle(), memory.start(), buffer.size(), true, &other, nullptr});
  }
  // Copies another queue's copy of a buffer, on the same device, into this queue's copy.
  uint64_t append_copy_of(Buffer& buffer, size_t queue) {
    const Memory& other = buffer.memory(queue);
    return append_copy(
        {&buffer, 0, other.handle(), other.start(), buffer.size(), true, nullptr, &buffer.poison(queue)});
  }

  // Sets the transfer queues, which copy to and from pinned memory while this queue computes: the first one
  // to the device, and the second one, if there is one, to the host. Their copies keep this queue's order
  // with respect to the buffers they use. Called once, before anything is appended.
  void pair_with(const std::vector<Queue*>& transfer_queues);
  // Copies between the queue's copy of a buffer and pinned memory, on the transfer queue if there is one.
  Point transfer(const Copy& copy);
  // The same, after other queues, on any device, have passed these values. `renews`: the copy starts to
  // overwrite all of its target. Returns when it ends.
  Batch::Wait transfer(const Copy& copy, std::vector<Batch::Wait> waits, bool renews);
  Queue& transfer_queue(bool to_buffer) noexcept;  // for this direction, or this queue
  // The last points of this queue and of the transfers that were appended through it.
  std::vector<Point> work_points();

  // Whether more commands are gathered than a program should run ahead; make_room() waits until there are
  // fewer.
  bool crowded() const noexcept { return gathered_.load(std::memory_order_relaxed) > kMaxGathered; }
  void make_room();
  // Work up to this value uses memory that is lent to the host. The caller of append() calls finish_lent().
  void finish_in_make_room(uint64_t value) noexcept {
    uint64_t last = lent_.load();
    while (last < value && !lent_.compare_exchange_weak(last, value)) {
    }
  }
  void finish_lent() {
    if (const uint64_t value = lent_.load(std::memory_order_relaxed)) {
      wait_for_lent(value);
    }
  }
  void wait_for_lent(uint64_t value);  // wait(), which profiles show

  // Submits what is needed and waits for it. Returns false on timeout. Never throws the failures of batches.
  bool wait(uint64_t value, uint64_t timeout_ns);
  // For batches that were submitted or have failed: see Failures.
  void raise_failures(uint64_t last) { failures_.check(last); }
  void raise_failures(uint64_t before, uint64_t last) { failures_.check(before, last); }
  uint64_t last_value();  // of everything appended so far
  // The same, and of what wait_for_incoming() said: it opens a batch if no command has come since.
  uint64_t last_point();
  uint64_t next_point();       // of the batch for the next command, at the earliest
  void flush(uint64_t value);  // submits up to this value, without waiting for it
  // Does not throw failures.
  void submit_up_to(uint64_t value) { submit_batches(value, Patience::caller); }
  uint64_t backlog();  // unfinished batches
  // Describes the unfinished work, and the cause if the device is lost; "" if there is none. See
  // stages/launches.hpp.
  std::string describe_work(bool lost);

  // Copies between host memory and the queue's copy of a buffer, after all work appended earlier. `pinned`:
  // the block that contains the host memory, or null. The host memory may change once the queue has passed
  // the value that upload() returns; 0: immediately.
  uint64_t upload(Buffer& buffer, VkDeviceSize offset, const std::byte* data, VkDeviceSize size,
                  Pinned* pinned);
  void download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  // The two halves of download(); the caller waits for the value between them. Nothing is started if the copy
  // is too large for that or the memory is mapped. Every started download must be finished; with null, its
  // data are dropped.
  Reading begin_download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size,
                         Pinned* pinned);
  void finish_download(const Reading& reading, std::byte* data);
  // The same for one whole mip level.
  void upload(Image& image, uint32_t level, const std::byte* data);
  void download(Image& image, uint32_t level, std::byte* data);

  bool has_timestamps() const noexcept { return timestamp_mask(device_, handle_.family) != 0; }
  // Times are measured relative to these ticks from here on.
  void set_clock(uint64_t ticks);
  void collect_timings();  // of all that the device has finished

  void notify_worker() noexcept;     // wakes the thread
  void request_sweep() noexcept;     // sweeps the graveyard on further progress
  void stop() noexcept;              // ends the thread after all work
  void join(bool interruptible);     // waits for the thread and the device
  void detach() noexcept;            // lets the thread end by itself; nothing is destroyed
  void free_idle_memory() noexcept;  // that is not in use

  size_t index() const noexcept { return index_; }
  size_t slot() const noexcept { return slot_; }
  Device& device() noexcept { return device_; }
  const QueueHandle& handle() const noexcept { return handle_; }
  uint32_t family() const noexcept { return handle_.family; }
  SharedState& shared() noexcept { return shared_; }
  uint64_t command_count() const noexcept { return commands_.load(std::memory_order_relaxed); }
  uint64_t submit_count() const noexcept { return submitted_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMaxGathered = 1 << 16;  // commands that are not submitted
  static constexpr size_t kBatchSize = 1 << 10;    // commands per submit
  static constexpr size_t kMaxFrames = 8;          // submits in flight

  class Hazards final : public HazardTracker {
   public:
    explicit Hazards(size_t queue) : queue_(queue) {}
    HazardState& state(Data& data) override { return data.hazards(queue_); }

   private:
    size_t queue_;
  };

  struct InFlight {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<Batch> batch;
  };

  // Who waits: nobody, the queue's thread, or a caller that signals can interrupt.
  enum class Patience { none, thread, caller };

  uint64_t append_copy(const Copy& copy);
  uint64_t append_copy(const ImageCopy& copy);
  template <typename AnyCommand>
  uint64_t add(const AnyCommand& command);                                      // requires mutex_
  uint64_t add(const Copy& copy, std::vector<Batch::Wait> waits, bool renews);  // requires mutex_
  // Requires mutex_. Makes following commands wait, on the device, for the peers' work that they must not
  // overtake: `before(slot)` is the last of it. `started`: a new batch was already started for other waits.
  template <typename Before>
  void follow_peers(Before before, bool started = false);
  bool has_arrived(const Batch::Incoming& incoming);
  void submit_batches(uint64_t value, Patience patience);  // flush() without failures
  bool is_ahead(uint64_t value, const Device& device);
  uint64_t count_command(Batch& batch);        // requires mutex_
  void add_renewal(Batch& batch, Data& data);  // requires mutex_
  // Copy host memory through a ring. `next(most)` returns the size of the next piece, 0 at the end; `append`
  // appends the command that copies the next piece.
  template <typename Next, typename Append>
  void stream_up(const std::byte* data, VkDeviceSize total, Next next, Append append);
  template <typename Next, typename Append>
  void stream_down(std::byte* data, VkDeviceSize total, Next next, Append append);
  void prepare(StagingRing& ring, VkDeviceSize total);
  void free_idle(std::mutex& mutex, StagingRing& ring) noexcept;
  void start_batch();    // requires mutex_
  Batch& open_batch();   // requires mutex_
  void wake() noexcept;  // requires mutex_
  void run() noexcept;   // body of the thread
  void do_work(std::unique_lock<std::mutex>& lock);
  void prepare_downloads() noexcept;
  // Submits the oldest gathered batch. Returns false if there is none, or if it would have to wait for a
  // device and must not.
  bool submit_next(Patience patience);
  void submit_or_fail(std::unique_ptr<Batch> batch);  // requires submit_mutex_
  void submit(std::unique_ptr<Batch>& batch);
  bool wait_until(uint64_t value, uint64_t timeout_ns, bool interruptible);  // submitted batches
  void watch_time() noexcept;
  void end_if_late();
  void record(Batch& batch, Frame& frame, bool timed);
  template <typename AnyCommand>
  bool skip(const AnyCommand& command, uint64_t batch);
  void renew(const Renewal& renewal) noexcept;
  template <typename AnyCommand>
  void start_images(const AnyCommand& command, Recorder& recorder);
  void start_image(Image& image, Recorder& recorder);
  void collect(InFlight& done);
  void recycle(std::unique_ptr<Batch> batch);
  uint64_t frame_needed() noexcept;
  std::unique_ptr<Frame> take_frame();
  void fail(const Batch& batch, const Error& error);
  void lose(const Error& error);
  std::string describe_own_work(bool lost);
  std::string describe_loss() noexcept;

  const size_t index_;
  const size_t slot_;
  Device& device_;
  const QueueHandle handle_;
  Timeline& timeline_;
  Graveyard& graveyard_;
  SharedState& shared_;

  std::mutex mutex_;  // guards the gathered batches
  std::condition_variable wake_;
  Ring<std::unique_ptr<Batch>> batches_;
  std::vector<std::unique_ptr<Batch>> spare_batches_;
  uint64_t next_value_ = 1;
  // Queues with the same copy of each buffer: a queue's transfer queues, or a transfer queue's owner and then
  // its sibling.
  struct Peer {
    Queue* queue = nullptr;
    uint64_t followed = 0;    // following commands wait for this value
    uint64_t last_value = 0;  // the peer's last value that can matter
  };
  std::array<Peer, 2> peers_;
  std::vector<Batch::Incoming> incoming_;  // what the next batch waits for
  uint64_t sealed_ = 0;                    // batches up to this one are closed
  bool asleep_ = false;
  bool sweep_requested_ = false;
  bool stop_ = false;
  std::atomic<size_t> gathered_{0};
  std::atomic<uint64_t> commands_{0};

  std::mutex submit_mutex_;  // guards recording and submitting; locked before mutex_
  Hazards hazards_;
  bool distrust_hazards_ = false;  // a batch failed, and its barriers with it
  HazardChecker checker_;
  HazardLog log_;
  std::vector<VkCommandBuffer> command_buffers_;
  Ring<InFlight> in_flight_;
  TickClock clock_;
  uint64_t timed_epoch_ = 0;  // of the last timed command
  int64_t timed_end_ = 0;     // when all timed commands so far had ended
  int64_t timed_floor_ = 0;   // when those of earlier epochs had ended
  std::vector<std::unique_ptr<Frame>> spare_frames_;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> lent_{0};       // the last value that finish_lent() waits for
  std::vector<Image*> started_images_;  // by the current recording
  uint64_t watched_ = 0;                // the last batch that was finished
  int64_t watched_since_ = 0;           // when the next one began
  Failures failures_;

  std::mutex upload_mutex_;
  StagingRing upload_ring_;
  std::mutex download_mutex_;
  StagingRing download_ring_;
  bool download_abandoned_ = false;  // the last download was interrupted
  Landing landing_;

  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace vkd
