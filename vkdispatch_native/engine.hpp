// The devices and queues of a context, and all objects created on them.
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

// The strictest limits of all devices.
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
  // Of the heaps that are the devices' own: their bytes, how many the process may use, and how many it uses.
  uint64_t heap_memory = 0;
  uint64_t memory_budget = 0;
  uint64_t memory_usage = 0;
};

struct Timings {
  std::vector<TimedCommand> commands;
  std::vector<TimedSubmit> submits;
  std::vector<TimedSubmit> waits;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // queue_families has one entry per device: the families of its queues. `extensions` are enabled on every
  // device, in addition to those that the engine uses.
  Engine(const std::vector<uint32_t>& device_indices,
         const std::vector<std::vector<uint32_t>>& queue_families, const std::vector<std::string>& extensions,
         bool debug, bool force_staging, uint64_t timeout_ns);
  // Creates an engine on a foreign device, which must outlive close().
  Engine(const std::shared_ptr<Instance>& instance, const ForeignDevice& device, bool debug,
         bool force_staging, uint64_t timeout_ns);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  size_t queue_count() const noexcept { return queue_devices_.size(); }
  const Instance& instance() const noexcept { return *instance_; }  // requires an open engine
  // Requires an open engine.
  const std::vector<std::shared_ptr<Device>>& devices() const noexcept { return devices_; }
  const Limits& limits() const noexcept { return limits_; }
  uint32_t image_features(int format) const;                       // supported by every device
  bool lost() const noexcept { return shared_.ending.reached(); }  // or given up
  bool hung() const noexcept { return shared_.ending.hung(); }
  uint64_t failures() const noexcept { return shared_.failures.load(); }
  bool closed() const noexcept { return closed_.load(); }
  void check_open() const;

  // All following functions throw once the engine is closed; close() waits for calls in progress. shared: all
  // queues, which must belong to one device, use one memory, and work on it runs in the order in which it was
  // appended. The buffer may reuse released memory that queues still use; work on the new buffer is ordered
  // after that. A first write by the host would have to wait, so without `for_device` such memory is not
  // reused if it is mapped.
  Buffer* create_buffer(VkDeviceSize size, bool shared, bool for_device = false);
  // A released buffer that is not shared, in constant time; null if there is none.
  Buffer* reuse_buffer(VkDeviceSize size, bool for_device);
  Buffer* create_buffer_over(Pinned& block);  // a view of its memory, for every queue
  // Host memory of another library, for every queue. `owner` is released when no queue uses it any more.
  Buffer* import_buffer(std::byte* data, VkDeviceSize size, bool ordered, std::shared_ptr<void> owner);
  // A VkBuffer of another library on the same device, for every queue.
  Buffer* borrow_buffer(VkBuffer handle, VkDeviceSize size, std::shared_ptr<void> owner);
  // A part of a buffer, which begins at a multiple of the alignment of bindings.
  Buffer* create_part(Buffer& whole, VkDeviceSize offset, VkDeviceSize size);
  // Lends the host the memory of a queue's copy, after all work that uses it. Null if it is not mapped.
  std::shared_ptr<Loan> lend(size_t queue, Buffer& buffer, bool ordered);
  // Keeps the memory of the first queue's copy, like a loan, for other APIs of the device. Waits for nothing.
  std::shared_ptr<Loan> keep(Buffer& buffer);
  Buffer* create_journal();  // where kernels record errors; called once
  Image* create_image(const ImageShape& shape, bool shared);
  Image* borrow_image(const ImageShape& shape, const BorrowedImage& theirs, std::shared_ptr<void> owner);
  Sampler* create_sampler(const SamplerSettings& settings);
  Pinned* create_pinned(size_t queue, VkDeviceSize size, MemoryUse use);  // for this queue's device
  Plan* create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                    uint32_t push_constant_size, const std::string& name, const std::string& entry_point,
                    const Specialization& specialization, const std::vector<std::string>& cached);
  CommandList* create_command_list();

  // Commands that use memory shared by all queues wait for earlier work on it in other queues; those that
  // write to it run on the first queue only. Appends to queues `first` to `last` (exclusive). Returns true if
  // one of them is crowded, or if the command uses memory that is lent to the host, which it has to finish
  // with: call make_room() then.
  bool append(const Dispatch& dispatch, size_t first, size_t last);
  void make_room();
  // From here to flush(), queues are given by slot: those of the context, then the transfer queues.
  uint64_t last_value(size_t slot);
  uint64_t last_point(size_t slot);  // see Queue
  // Throws failures up to this value; with `alone`, only those of this batch.
  bool wait(size_t slot, uint64_t value, uint64_t timeout_ns, bool alone);
  // Waits without throwing failures.
  void wait_until(size_t slot, uint64_t value);
  // Like wait(), for the batches after `before` up to `last`.
  bool wait_for_batches(size_t slot, uint64_t before, uint64_t last, uint64_t timeout_ns);
  void flush(size_t slot, uint64_t value);
  bool has_queue(size_t slot) const noexcept;
  // The last points of all work appended to queues `first` to `last` (exclusive).
  std::vector<Point> work_points(size_t first, size_t last);
  // Sharing with other APIs: null and -1 where the device does not export.
  Memory::Block block_of(Buffer& buffer, uint64_t* number);
  int export_block(Buffer& buffer);
  std::vector<uint64_t> take_freed_blocks();
  int export_timeline(size_t slot);
  int export_incoming(size_t number);
  uint64_t submit_all(size_t slot);
  void wait_for_incoming(size_t queue, size_t number, uint64_t value);
  // Work appended to these queues later waits, on the device, for all points.
  void follow(size_t first, size_t last, const std::vector<Point>& points);
  // Describes the unfinished work of a queue, given by slot; "" if there is none.
  std::string describe_work(size_t slot);
  size_t least_busy();  // the queue with the fewest unfinished batches; equal ones in turn
  // Copies one queue's copy of a buffer to another's: after earlier work of `from`, before later work of
  // `to`, and before `from` changes it. On one device the host is not involved; otherwise see Crossing.
  void copy_between(Buffer& buffer, size_t from, size_t to);
  // `data` may change once the returned value is reached; 0: immediately.
  uint64_t upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                  VkDeviceSize size);
  void download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  // See Queue::begin_download. Every download must be finished or dropped.
  Reading begin_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data,
                         VkDeviceSize size);
  void finish_download(size_t queue, const Reading& reading, std::byte* data);
  void drop_download(size_t queue, const Reading& reading) noexcept;
  // Start a copy without waiting: it is done at the returned point. The host memory must be pinned for the
  // queue's device (otherwise this throws) and must not be accessed until then.
  Point start_upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                     VkDeviceSize size);
  Point start_download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  bool is_pinned(size_t queue, const std::byte* data, VkDeviceSize size);  // for this queue's device
  // Copies a buffer to another one of the same size, on queues `first` to `last` (exclusive). Returns as
  // append().
  bool copy(Buffer& target, Buffer& source, size_t first, size_t last);
  // Copy one mip level of an image; throw if `size` is wrong.
  void upload(size_t queue, Image& image, uint32_t level, const std::byte* data, VkDeviceSize size);
  void download(size_t queue, Image& image, uint32_t level, std::byte* data, VkDeviceSize size);
  // Submits to queues `first` to `last` (exclusive). Returns the value of the last one, 0 if there was
  // nothing to submit.
  uint64_t submit(CommandList& list, size_t first, size_t last, const std::byte* arguments, size_t bytes,
                  size_t instance_count);
  // Submits one instance and waits for it. Returns false on timeout; the batches after `before` up to `value`
  // are then unfinished.
  bool evaluate(CommandList& list, size_t queue, const std::byte* arguments, size_t bytes,
                uint64_t timeout_ns, uint64_t& before, uint64_t& value);
  bool has_timestamps() const noexcept;  // whether any queue has them
  std::vector<uint64_t> timestamps(CommandList& list, size_t queue);
  void reset(CommandList& list);
  std::vector<std::pair<size_t, size_t>> rearrange(CommandList& list, const std::vector<size_t>& order);
  Statistics statistics();
  // Whether the two functions below wait for earlier work, which also makes the clock less precise.
  bool clocks_are_read_by_submits();
  // Times every command from here on, until stop_timing() has been called as often. Returns the last value of
  // each queue before that, by slot. Throws if a queue of the context has no timestamps.
  std::vector<uint64_t> start_timing();
  // The finished commands that were timed after these values, on the host clock.
  Timings timings(const std::vector<uint64_t>& since);
  void stop_timing() noexcept;
  void set_barriers_enabled(bool enabled) noexcept { shared_.barriers_enabled.store(enabled); }

  // Null if there is none. It lives as long as the engine, closed or not.
  Journal* journal() const noexcept { return journal_.load(std::memory_order_acquire); }
  // Whether kernels have recorded errors that the host has not read.
  bool has_unseen_notes() noexcept {
    const Journal* notes = journal();
    return notes != nullptr && has_unseen_notes(*notes);
  }
  uint32_t take_ticket();                  // see Journal::take
  int stale_tickets();                     // waits for the work that uses them; see Journal::stale
  uint64_t completed(size_t slot);         // the last finished batch
  bool is_journal_complete(size_t queue);  // whether no appended work can add notes

  // Throws the failure of a queue's copy.
  void check_poison(const Data& data, size_t queue) const { data.poison(queue).check(); }

  // Between begin_hold() and end_hold(), to which its result is passed, released resources are not destroyed.
  // Used to check that an object is alive and then to append commands that point to it.
  unsigned begin_hold() noexcept { return holds_.begin(); }
  void end_hold(unsigned number) noexcept { holds_.end(number); }

  // Keeps a buffer for reuse, in constant time. Returns false if it does not: call retire() then.
  bool recycle(Resource* resource) noexcept;
  // These never wait for the device and never throw.
  void retire(Resource* resource) noexcept;
  void retire(Pinned* pinned) noexcept;
  void destroy(CommandList* list) noexcept;

  // Waits for the devices, then destroys everything. If the caller is interrupted, which throws, or a device
  // hangs, what the devices may still use is leaked.
  void close(bool interruptible);
  void abandon() noexcept;  // in a forked child: threads and devices belong to the parent

 private:
  class Use;

  Engine(std::shared_ptr<Instance> instance, std::vector<std::shared_ptr<Device>> devices, bool debug,
         uint64_t timeout_ns);

  std::vector<Calibration> calibrations();  // by slot
  void delay_to_submits(Timings& found);
  // Creates an object and owns it. Tries again, after all released memory is freed, if the first attempt
  // fails.
  template <typename Make>
  auto create(Make make);
  Queue& queue_at(size_t slot);
  size_t slot_count() const noexcept { return kSlotsPerQueue * queue_devices_.size(); }
  void start(Image& image);                       // brings it to its layout
  void check_one_device(const char* what) const;  // throws unless all queues belong to one device
  // Following work of a queue and its transfer queues waits for other queues' work on memory they share.
  void follow_others(size_t queue, Data& data, bool writes) {
    if (data.shared()) {
      follow_others(queue, {{&data, writes}});
    }
  }
  void follow_others(size_t queue, const std::vector<CommandList::SharedUse>& uses);
  void wait_for_uses(size_t queue, const Buffer& buffer, bool writes);
  std::shared_ptr<Device> device_of(size_t queue) const noexcept;
  // The same for commands for queues `first` to `last` (exclusive). If they write shared memory, `last` is
  // reduced so that only the first queue remains. The lock is held until the commands are appended.
  std::unique_lock<std::mutex> share(const std::vector<CommandList::SharedUse>& uses, size_t first,
                                     size_t& last);
  template <typename Function>
  void for_each_queue(Function function);  // including transfer queues
  Crossing& crossing(Device& source, Device& target);
  Pinned* find_pinned(const std::byte* data, VkDeviceSize size);
  void request_sweep() noexcept;
  bool prepare_reuse(Buffer& buffer) noexcept;
  void empty_pool() noexcept;
  bool has_unseen_notes(const Journal& notes) noexcept;
  void free_idle_memory();
  void check_sources(const Dispatch& dispatch, size_t first, size_t last);
  void finish(bool interruptible);
  void destroy_all() noexcept;
  void give_up(const Error& error) noexcept;

  std::shared_ptr<Instance> instance_;  // destroyed last
  SharedState shared_;
  std::vector<std::shared_ptr<Device>> devices_;  // pinned memory may outlive the engine
  std::vector<Device*> queue_devices_;            // the device of each queue
  std::vector<bool> slots_;                       // whether a slot has a queue; never changes
  std::vector<Queue*> all_queues_;                // including transfer queues
  Limits limits_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  Holds holds_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Graveyard> graveyard_;
  std::vector<std::unique_ptr<Queue>> queues_;
  // The transfer queue of each queue, for both directions or for uploads only, then those for downloads; null
  // if there is none.
  std::vector<std::unique_ptr<Queue>> transfer_queues_;
  std::mutex crossings_mutex_;
  std::map<std::pair<Device*, Device*>, std::unique_ptr<Crossing>> crossings_;
  std::mutex pinned_mutex_;
  std::map<const std::byte*, Pinned*> pinned_;  // by address of the first byte
  std::mutex live_mutex_;
  std::unordered_set<Resource*> live_;  // owned by objects of the bridge
  std::unordered_set<CommandList*> lists_;
  std::vector<std::unique_ptr<Resource>> orphans_;  // released during close()
  std::atomic<bool> closed_{false};                 // no new work
  std::atomic<bool> finished_{false};               // all Vulkan objects are destroyed
  std::atomic<bool> abandoned_{false};
  std::atomic<uint32_t> budget_reads_{1};
  std::atomic<int> users_{0};  // calls in progress
  std::atomic<size_t> next_queue_{0};
  std::mutex sharing_mutex_;  // held from checking shared uses until the command is appended
  std::unique_ptr<Journal> own_journal_;
  std::atomic<Journal*> journal_{nullptr};
  std::mutex timing_mutex_;
  std::vector<Calibration> clocks_;  // by slot, since timing began
};

}  // namespace vkd
