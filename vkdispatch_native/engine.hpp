// The devices and queues of a context, and every object made on them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "context/instance.hpp"
#include "queue/command_list.hpp"
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
};

class Engine {
 public:
  // One entry of queue_families for each device: the family of each of its queues.
  Engine(const std::vector<uint32_t>& device_indices,
         const std::vector<std::vector<uint32_t>>& queue_families, bool debug, bool force_staging);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  size_t queue_count() const noexcept { return queue_devices_.size(); }
  const Limits& limits() const noexcept { return limits_; }
  uint32_t image_features(int format) const;  // VkFormatFeatureFlags that every device has
  bool lost() const noexcept { return shared_.lost.load(); }
  bool closed() const noexcept { return closed_.load(); }
  void check_open() const;

  // From here on every call throws when the engine is closed, and close() waits for those under way.
  Buffer* create_buffer(VkDeviceSize size);
  Image* create_image(const ImageShape& shape);
  Sampler* create_sampler(const SamplerSettings& settings);
  Plan* create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                    uint32_t push_constant_size, const std::string& name, const std::string& entry_point,
                    const Specialization& specialization, const std::vector<std::string>& cached);
  CommandList* create_command_list();

  bool append(const Dispatch& dispatch);  // to every queue; true: one is crowded, make_room() is due
  void make_room();
  uint64_t last_value(size_t queue);
  bool wait(size_t queue, uint64_t value, uint64_t timeout_ns);
  void flush(size_t queue, uint64_t value);
  size_t least_busy();  // the queue with the fewest batches before it; in turn where several have
  // Copies one queue's copy of a buffer to another's: after the work given to `from`, before what `to` gets
  // next and before `from` changes it. On one device without a look from the host.
  void copy_between(Buffer& buffer, size_t from, size_t to);
  void upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data, VkDeviceSize size);
  void download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  // One mip level of an image; throws unless `size` is what it takes.
  void upload(size_t queue, Image& image, uint32_t level, const std::byte* data, VkDeviceSize size);
  void download(size_t queue, Image& image, uint32_t level, std::byte* data, VkDeviceSize size);
  // To the queues from `first` up to, without it, `last`.
  void submit(CommandList& list, size_t first, size_t last, const std::byte* arguments, size_t bytes,
              size_t instance_count);
  void reset(CommandList& list);
  std::vector<std::pair<size_t, size_t>> rearrange(CommandList& list, const std::vector<size_t>& order);
  Statistics statistics();
  void set_barriers_enabled(bool enabled) noexcept { shared_.barriers_enabled.store(enabled); }

  // These never block on the device and never throw.
  void retire(Resource* resource) noexcept;
  void destroy(CommandList* list) noexcept;

  void close() noexcept;
  void abandon() noexcept;  // in a forked child: the threads and the device belong to the parent

 private:
  class Use;

  // Makes an object, once more after all freed memory has come back where the first try finds none; owns it.
  template <typename Make>
  auto create(Make make);
  void tidy() noexcept;

  std::shared_ptr<Instance> instance_;  // first in, last out
  SharedState shared_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> queue_devices_;  // the device of each queue
  Limits limits_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  std::unique_ptr<Graveyard> graveyard_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::mutex live_mutex_;
  std::unordered_set<Resource*> live_;  // owned by the bridge's objects
  std::unordered_set<CommandList*> lists_;
  std::vector<std::unique_ptr<Resource>> orphans_;  // given up while close() was under way
  std::atomic<bool> closed_{false};                 // no new work
  std::atomic<bool> finished_{false};               // nothing of Vulkan is left
  std::atomic<bool> abandoned_{false};
  std::atomic<int> users_{0};  // calls under way
  std::atomic<size_t> next_queue_{0};
};

}  // namespace vkd
