// One queue of a device: a thread that drains gathered commands into batches, one submit each.
//
// Any thread may append. The queue's own thread submits behind its back; a thread that is about to wait
// submits by itself, without that hop. Batches are numbered when they are opened, so a command's timeline
// value is known at once.
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

// A moment in the work of an engine: when a queue, given by its slot, has finished a batch.
struct Point {
  size_t slot;
  uint64_t value;
};

// A copy to the host that was given to a queue: it is there once the queue has passed `value`.
struct Reading {
  uint64_t value = 0;  // 0: none was given
  int part = Landing::kNone;
  VkDeviceSize size = 0;
};

class Queue {
 public:
  // `index`: which copy of each buffer is its own. `slot`: where resources note what it does with them.
  Queue(size_t index, size_t slot, Device& device, const QueueHandle& handle, Timeline& timeline,
        Graveyard& graveyard, SharedState& shared);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Appending never waits for the device. Each returns the timeline value that will follow the command.
  uint64_t append(const Dispatch& dispatch);
  // Of a list: at least one. With `waited_for` the caller goes on to wait() or notify_worker(), and the
  // queue's thread is not woken to do what the caller does sooner.
  uint64_t append(const std::vector<Command>& commands, bool waited_for);
  uint64_t append(Segment& segment, bool waited_for);
  uint64_t append(Image& image);  // a new one, before anything uses it
  // What follows writes these parts of the data, and nothing of them is read before.
  uint64_t append(const Renewal& renewal);

  // What was appended before and writes the data does not poison them any more, should it fail: they are
  // about to be somebody else's.
  void renew_after_all(Data& data);

  // What is appended from here on waits, on the device, until other queues have passed these values.
  uint64_t append_waits(std::vector<Batch::Wait> waits);
  // Fills the queue's copy of a buffer from that of another one of the same size.
  uint64_t append_copy_of(Buffer& buffer, Buffer& other) {
    return append_copy({&buffer, 0, other.memory(index_).handle(), 0, buffer.size(), true, &other, nullptr});
  }
  // Fills the queue's copy of a buffer from another copy of it on the same device.
  uint64_t append_copy_of(Buffer& buffer, size_t queue) {
    const VkBuffer other = buffer.memory(queue).handle();
    return append_copy({&buffer, 0, other, 0, buffer.size(), true, nullptr, &buffer.poison(queue)});
  }

  // Twins copy to and from pinned memory while this queue computes, in this queue's order as far as the
  // buffers concerned show it: the first one to the device, the second one, where there is one, to the host.
  // Set once, before anything is appended.
  void pair_with(const std::vector<Queue*>& transfer_queues);
  // Copies between the queue's copy of a buffer and pinned memory; by the mover.
  Point transfer(const Copy& copy);
  // The same once others, of other devices too, have passed these values. `renews`: what is written counts as
  // written whole from there on. Returns what stands for its end.
  Batch::Wait transfer(const Copy& copy, std::vector<Batch::Wait> waits, bool renews);
  Queue& transfer_queue(bool to_buffer) noexcept;  // the twin that moves data this way, if there is one
  // The last of the work of this queue and its twins that was given through this queue.
  std::vector<Point> work_points();

  // More is gathered than a program should run ahead; make_room() waits until that is no longer so.
  bool crowded() const noexcept { return gathered_.load(std::memory_order_relaxed) > kMaxGathered; }
  void make_room();

  // Submits what is needed, as far as that takes no longer; false: not in time. Says nothing of what failed.
  bool wait(uint64_t value, uint64_t timeout_ns);
  // Of the batches that were submitted or failed: see Failures.
  void raise_failures(uint64_t last) { failures_.check(last); }
  void raise_failures(uint64_t before, uint64_t last) { failures_.check(before, last); }
  uint64_t last_value();       // of everything appended so far
  uint64_t next_point();       // the first that what is appended next can follow
  void flush(uint64_t value);  // submits up to this value, and does not wait for it
  void submit_up_to(uint64_t value) {
    submit_batches(value, Patience::caller);
  }                    // says nothing of what failed
  uint64_t backlog();  // batches that the device has not finished
  // What it was given and has not finished, and more where the device is lost; "": nothing. See
  // stages/launches.hpp.
  std::string describe_work(bool lost);

  // Copy between host memory and the queue's copy of a buffer, after the work already given to the queue.
  // `pinned`: the block that the host memory is part of, if it is. The value that upload() returns is to be
  // waited for before the host memory may change, 0 if it may at once.
  uint64_t upload(Buffer& buffer, VkDeviceSize offset, const std::byte* data, VkDeviceSize size,
                  Pinned* pinned);
  void download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  // download() in two halves, between which the caller waits for the value. None is begun where the copy is
  // too large for that, or the memory mapped. What is begun must be finished; null: nobody wants it any more.
  Reading begin_download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size,
                         Pinned* pinned);
  void finish_download(const Reading& reading, std::byte* data);
  // The same for one whole mip level.
  void upload(Image& image, uint32_t level, const std::byte* data);
  void download(Image& image, uint32_t level, std::byte* data);

  bool has_timestamps() const noexcept { return timestamp_mask(device_, handle_.family) != 0; }
  // From here on the ticks of what is timed count from these.
  void set_clock(uint64_t ticks);
  void collect_timings();  // of all that the device has done

  void notify_worker() noexcept;     // has the thread look for work
  void request_sweep() noexcept;     // has the thread look after the graveyard once the device gets further
  void stop() noexcept;              // has the thread end when it has finished what was given
  void join(bool interruptible);     // waits for that, and for the device
  void detach() noexcept;            // leaves the thread alone: it ends by itself, and nothing is destroyed
  void free_idle_memory() noexcept;  // that nobody may be using

  size_t index() const noexcept { return index_; }
  size_t slot() const noexcept { return slot_; }
  Device& device() noexcept { return device_; }
  const QueueHandle& handle() const noexcept { return handle_; }
  uint32_t family() const noexcept { return handle_.family; }
  SharedState& shared() noexcept { return shared_; }
  uint64_t command_count() const noexcept { return commands_.load(std::memory_order_relaxed); }
  uint64_t submit_count() const noexcept { return submitted_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMaxGathered = 1 << 16;  // commands waiting for their submit
  static constexpr size_t kBatchSize = 1 << 10;    // commands in one submit
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

  // Who waits: nobody, the queue's thread, or a caller whom signals interrupt.
  enum class Patience { none, thread, caller };

  uint64_t append_copy(const Copy& copy);
  uint64_t append_copy(const ImageCopy& copy);
  template <typename AnyCommand>
  uint64_t add(const AnyCommand& command);                                      // under mutex_
  uint64_t add(const Copy& copy, std::vector<Batch::Wait> waits, bool renews);  // likewise
  // Has what follows wait, on the device, for what of its peers' work it must not overtake, `before(slot)`
  // being the last of it. Under mutex_. `started`: a batch of its own was, for other waits.
  template <typename Before>
  void follow_peers(Before before, bool started = false);
  void submit_batches(uint64_t value, Patience patience);  // flush() that leaves failures for later
  bool is_ahead(uint64_t value, const Device& device);
  uint64_t count_command(Batch& batch);        // under mutex_: one command more
  void add_renewal(Batch& batch, Data& data);  // under mutex_
  // Move host memory through a ring. `next(most)` gives the bytes of the next piece, 0 when done; `append`
  // the command that copies the oldest piece it was not asked for yet.
  template <typename Next, typename Append>
  void stream_up(const std::byte* data, VkDeviceSize total, Next next, Append append);
  template <typename Next, typename Append>
  void stream_down(std::byte* data, VkDeviceSize total, Next next, Append append);
  void prepare(StagingRing& ring, VkDeviceSize total);
  void free_idle(std::mutex& mutex, StagingRing& ring) noexcept;
  void start_batch();    // under mutex_
  Batch& open_batch();   // under mutex_
  void wake() noexcept;  // under mutex_
  void run() noexcept;   // the thread
  void do_work(std::unique_lock<std::mutex>& lock);
  void prepare_downloads() noexcept;
  // The oldest gathered batch; false when there is none, or it had to wait for a device and must not.
  bool submit_next(Patience patience);
  void submit_or_fail(std::unique_ptr<Batch> batch);  // submits it, or has it fail; under submit_mutex_
  void submit(std::unique_ptr<Batch>& batch);
  bool wait_until(uint64_t value, uint64_t timeout_ns, bool interruptible);  // what was submitted
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

  std::mutex mutex_;  // guards what is gathered
  std::condition_variable wake_;
  Ring<std::unique_ptr<Batch>> batches_;
  std::vector<std::unique_ptr<Batch>> spare_batches_;
  uint64_t next_value_ = 1;
  // Those that use the same copy of each buffer: a queue's twins; a twin's home, and then its sibling.
  struct Peer {
    Queue* queue = nullptr;
    uint64_t followed = 0;  // what is appended comes after this value
    uint64_t given = 0;     // nothing later of the peer's can matter; a queue gives its twins all they do
  };
  std::array<Peer, 2> peers_;
  uint64_t sealed_ = 0;  // batches up to this one get no more commands
  bool asleep_ = false;
  bool sweep_requested_ = false;
  bool stop_ = false;
  std::atomic<size_t> gathered_{0};
  std::atomic<uint64_t> commands_{0};

  std::mutex submit_mutex_;  // guards recording and submitting; taken before mutex_
  Hazards hazards_;
  bool distrust_hazards_ = false;  // a batch was dropped, and its barriers with it
  HazardChecker checker_;
  HazardLog log_;
  std::vector<VkCommandBuffer> command_buffers_;
  Ring<InFlight> in_flight_;
  TickClock clock_;
  uint64_t timed_epoch_ = 0;  // of the last command that was timed
  int64_t timed_end_ = 0;     // when all timed so far had ended
  int64_t timed_floor_ = 0;   // when all timed before the epoch had
  std::vector<std::unique_ptr<Frame>> spare_frames_;
  std::atomic<uint64_t> submitted_{0};
  std::vector<Image*> started_images_;  // by what is being recorded
  uint64_t watched_ = 0;                // the last batch that was done
  int64_t watched_since_ = 0;           // and since when the next one has run
  Failures failures_;

  std::mutex upload_mutex_;
  StagingRing upload_ring_;
  std::mutex download_mutex_;
  StagingRing download_ring_;
  bool download_left_ = false;  // the last download was given up
  Landing landing_;

  std::condition_variable left_;
  bool has_left_ = false;
  std::thread thread_;
};

}  // namespace vkd
