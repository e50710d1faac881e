// The devices and queues of a context, and every object made on them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "context/instance.hpp"
#include "objects/journal.hpp"
#include "objects/pool.hpp"
#include "queue/command_list.hpp"
#include "queue/crossing.hpp"
#include "queue/queue.hpp"

namespace vkd {

// The tightest over all devices.
struct Limits {
  VkDeviceSize storage_range = ~VkDeviceSize{0};
  VkDeviceSize uniform_range = ~VkDeviceSize{0};
  VkDeviceSize storage_alignment = 1;
  VkDeviceSize uniform_alignment = 1;
};

struct Statistics {
  uint64_t commands = 0;
  uint64_t submits = 0;
  uint64_t barriers = 0;
  uint64_t live_objects = 0;
  uint64_t waiting_frees = 0;
  uint64_t device_memory = 0;
  uint64_t pinned_blocks = 0;
  uint64_t allocations = 0;
  uint64_t idle_memory = 0;
};

struct Timings {
  std::vector<TimedCommand> commands;
  std::vector<TimedSubmit> submits;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // One entry of queue_families for each device: the family of each of its queues. `extensions` are switched
  // on for every device, beside those that the engine uses.
  Engine(const std::vector<uint32_t>& device_indices,
         const std::vector<std::vector<uint32_t>>& queue_families, const std::vector<std::string>& extensions,
         bool debug, bool force_staging, uint64_t timeout_ns);
  // On somebody else's device, which has to last until close() is over.
  Engine(const std::shared_ptr<Instance>& instance, const ForeignDevice& device, bool debug,
         bool force_staging, uint64_t timeout_ns);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  size_t queue_count() const noexcept { return queue_devices_.size(); }
  const Instance& instance() const noexcept { return *instance_; }  // of an open engine
  const std::vector<std::shared_ptr<Device>>& devices() const noexcept { return devices_; }  // likewise
  const Limits& limits() const noexcept { return limits_; }
  uint32_t image_features(int format) const;  // VkFormatFeatureFlags that every device has
  bool lost() const noexcept { return shared_.ending.reached(); }  // or given up
  bool hung() const noexcept { return shared_.ending.hung(); }
  uint64_t failures() const noexcept { return shared_.failures.load(); }
  bool closed() const noexcept { return closed_.load(); }
  void check_open() const;

  // From here on every call throws when the engine is closed, and close() waits for those under way.
  // Shared: one memory for all queues, which must be of one device. What different queues are given that uses
  // it runs in the order in which it was given.
  // It may be one that was given up, and that queues still work on: what uses it comes after that. Where
  // the host writes it first it would wait: without `for_device` it is none of these where memory is mapped.
  Buffer* create_buffer(VkDeviceSize size, bool shared, bool for_device = false);
  // One that was given up and is not shared, in no time; null: there is none.
  Buffer* reuse_buffer(VkDeviceSize size, bool for_device);
  Buffer* create_buffer_over(Pinned& block);  // its memory, for every queue
  Buffer* create_journal();                   // where kernels note errors; once
  Image* create_image(const ImageShape& shape, bool shared);
  Sampler* create_sampler(const SamplerSettings& settings);
  Pinned* create_pinned(size_t queue, VkDeviceSize size, MemoryUse use);  // for this queue's device
  Plan* create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                    uint32_t push_constant_size, const std::string& name, const std::string& entry_point,
                    const Specialization& specialization, const std::vector<std::string>& cached);
  CommandList* create_command_list();

  // Commands that use memory which all queues have in common wait for what other queues were given that uses
  // it; those that write to it go to one queue alone, the first.
  // To the queues from `first` up to, without it, `last`. True: one is crowded, make_room() is due.
  bool append(const Dispatch& dispatch, size_t first, size_t last);
  void make_room();
  // Queues are given by slot from here to flush(): those of the context, then the twins of each.
  uint64_t last_value(size_t slot);
  // Throws what failed up to there. `alone`: in this very batch.
  bool wait(size_t slot, uint64_t value, uint64_t timeout_ns, bool alone);
  // Waits, and says nothing of what failed.
  void wait_until(size_t slot, uint64_t value);
  // The same for what the batches after `before` up to `last` did.
  bool wait_for_batches(size_t slot, uint64_t before, uint64_t last, uint64_t timeout_ns);
  void flush(size_t slot, uint64_t value);
  bool has_queue(size_t slot) const noexcept;
  // All the work given to the queues from `first` up to, without it, `last`.
  std::vector<Point> work_points(size_t first, size_t last);
  // Work that is given to these queues later waits, on the device, for all the points.
  void follow(size_t first, size_t last, const std::vector<Point>& points);
  // What a queue, given by slot, was given and has not finished, in words; "": nothing.
  std::string describe_work(size_t slot);
  size_t least_busy();  // the queue with the fewest batches before it; in turn where several have
  // Copies one queue's copy of a buffer to another's: after the work given to `from`, before what `to` gets
  // next and before `from` changes it. On one device without a look from the host; else see Crossing.
  void copy_between(Buffer& buffer, size_t from, size_t to);
  // The value that it returns is to be waited for before `data` may change; 0: it may at once.
  uint64_t upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                  VkDeviceSize size);
  void download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  // See Queue::begin_download; what is begun must be finished or dropped.
  Reading begin_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data,
                         VkDeviceSize size);
  void finish_download(size_t queue, const Reading& reading, std::byte* data);
  void drop_download(size_t queue, const Reading& reading) noexcept;
  // The same without a wait: done when the point is reached. The host memory must be pinned for the queue's
  // device (else: throws) and be left alone until then.
  Point start_upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                     VkDeviceSize size);
  Point start_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  bool is_pinned(size_t queue, const std::byte* data, VkDeviceSize size);  // for this queue's device
  // Copies a buffer to another one of its size, on the queues from `first` up to, without it, `last`. True:
  // see append().
  bool copy(Buffer& target, Buffer& source, size_t first, size_t last);
  // One mip level of an image; throws unless `size` is what it takes.
  void upload(size_t queue, Image& image, uint32_t level, const std::byte* data, VkDeviceSize size);
  void download(size_t queue, Image& image, uint32_t level, std::byte* data, VkDeviceSize size);
  // To the queues from `first` up to, without it, `last`.
  // Returns the value of the last of them, 0 where nothing was given.
  uint64_t submit(CommandList& list, size_t first, size_t last, const std::byte* arguments, size_t bytes,
                  size_t instance_count);
  // Submits one instance and waits for it; false: not in time, and what is to be waited for are the batches
  // after `before` up to `value`.
  bool evaluate(CommandList& list, size_t queue, const std::byte* arguments, size_t bytes,
                uint64_t timeout_ns, uint64_t& before, uint64_t& value);
  bool has_timestamps() const noexcept;  // any queue
  std::vector<uint64_t> timestamps(CommandList& list, size_t queue);
  void reset(CommandList& list);
  std::vector<std::pair<size_t, size_t>> rearrange(CommandList& list, const std::vector<size_t>& order);
  Statistics statistics();
  // Whether the two below wait for what was given before, which blurs the clock as well.
  bool clocks_are_read_by_submits();
  // Times every command from here on, until stop_timing() was called as often. Returns the last value that
  // each queue was given before, by slot. Throws where a queue of the context has no timestamps.
  std::vector<uint64_t> start_timing();
  // What was timed after these values and is done, on the host's clock.
  Timings timings(const std::vector<uint64_t>& since);
  void stop_timing() noexcept;
  void set_barriers_enabled(bool enabled) noexcept { shared_.barriers_enabled.store(enabled); }

  // Null where there is none. It lasts as long as the engine, closed or not.
  Journal* journal() const noexcept { return journal_.load(std::memory_order_acquire); }
  // Whether kernels have noted errors that nobody has looked at.
  bool found() noexcept {
    const Journal* notes = journal();
    return notes != nullptr && has_new_notes(*notes);
  }
  uint32_t take_ticket();           // see Journal::take
  int stale_tickets();              // waits until what uses them is done; see Journal::stale
  uint64_t completed(size_t slot);  // the last batch that is done
  bool checked(size_t queue);       // whether nothing that a queue was given notes any more

  // Throws the failure of a queue's copy.
  void check_poison(const Data& data, size_t queue) const { data.poison(queue).check(); }

  // What is given up between begin_hold() and end_hold() of the number it returns is not destroyed meanwhile:
  // for who finds an object alive and then appends what points at it.
  unsigned begin_hold() noexcept { return holds_.begin(); }
  void end_hold(unsigned number) noexcept { holds_.end(number); }

  // Keeps a buffer for the next one of its size, in no time; false: it does not, and retire() is due.
  bool recycle(Resource* resource) noexcept;
  // These never block on the device and never throw.
  void retire(Resource* resource) noexcept;
  void retire(Pinned* pinned) noexcept;
  void destroy(CommandList* list) noexcept;

  // Waits for the devices, then destroys all. What they may still use is left where it is: when the caller is
  // interrupted, which throws, or they hang.
  void close(bool interruptible);
  void abandon() noexcept;  // in a forked child: the threads and the device belong to the parent

 private:
  class Use;

  Engine(std::shared_ptr<Instance> instance, std::vector<std::shared_ptr<Device>> devices, bool debug,
         uint64_t timeout_ns);

  std::vector<Calibration> calibrations();  // by slot
  void delay_to_submits(Timings& found);
  // Makes an object, once more after all freed memory has come back where the first try finds none; owns it.
  template <typename Make>
  auto create(Make make);
  Queue& queue_at(size_t slot);
  size_t slot_count() const noexcept { return kSlotsPerQueue * queue_devices_.size(); }
  void check_one_device(const char* what) const;  // throws unless all queues are of one
  // What a queue and its twins are given next waits for what others did with the memory that they share.
  void follow_others(size_t queue, Data& data, bool writes) {
    if (data.shared()) {
      follow_others(queue, {{&data, writes}});
    }
  }
  void follow_others(size_t queue, const std::vector<CommandList::SharedUse>& uses);
  void wait_for_uses(size_t queue, const Buffer& buffer, bool writes);
  // The same for commands for the queues from `first` up to, without it, `last`, which is brought down to the
  // first of them where they write to what is shared. The lock is held until they are appended.
  std::unique_lock<std::mutex> share(const std::vector<CommandList::SharedUse>& uses, size_t first,
                                     size_t& last);
  template <typename Function>
  void for_each_queue(Function function);  // twins too
  Crossing& crossing(Device& source, Device& target);
  Pinned* find_pinned(const std::byte* data, VkDeviceSize size);
  void request_sweep() noexcept;
  bool end_life(Buffer& buffer) noexcept;
  void empty_pool() noexcept;
  bool has_new_notes(const Journal& notes) noexcept;
  void free_idle_memory();
  void check_sources(const Dispatch& dispatch, size_t first, size_t last);
  void finish(bool interruptible);
  void destroy_all() noexcept;
  void give_up(const Error& error) noexcept;

  std::shared_ptr<Instance> instance_;  // first in, last out
  SharedState shared_;
  std::vector<std::shared_ptr<Device>> devices_;  // pinned memory may outlive the engine
  std::vector<Device*> queue_devices_;            // the device of each queue
  std::vector<bool> slots_;                       // which of them have queues; never changes
  std::vector<Queue*> all_queues_;                // twins too
  Limits limits_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  Holds holds_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Graveyard> graveyard_;
  std::vector<std::unique_ptr<Queue>> queues_;
  // Of each queue the one that moves data beside it, or only to the device, then of each the one that moves
  // data to the host; null where there is none.
  std::vector<std::unique_ptr<Queue>> transfer_queues_;
  std::mutex crossings_mutex_;
  std::map<std::pair<Device*, Device*>, std::unique_ptr<Crossing>> crossings_;
  std::mutex pinned_mutex_;
  std::map<const std::byte*, Pinned*> pinned_;  // by its first byte
  std::mutex live_mutex_;
  std::unordered_set<Resource*> live_;  // owned by the bridge's objects
  std::unordered_set<CommandList*> lists_;
  std::vector<std::unique_ptr<Resource>> orphans_;  // given up while close() was under way
  std::atomic<bool> closed_{false};                 // no new work
  std::atomic<bool> finished_{false};               // nothing of Vulkan is left
  std::atomic<bool> abandoned_{false};
  std::atomic<int> users_{0};  // calls under way
  std::atomic<size_t> next_queue_{0};
  std::mutex sharing_mutex_;  // held from looking at what shares memory to appending what follows it
  std::unique_ptr<Journal> own_journal_;
  std::atomic<Journal*> journal_{nullptr};
  std::mutex timing_mutex_;
  std::vector<Calibration> clocks_;  // by slot, from the start of timing
};

}  // namespace vkd
