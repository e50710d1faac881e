// The devices and queues of a context, and every object made on them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "queue/command_list.hpp"
#include "queue/queue.hpp"

namespace vkd {

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

  size_t queue_count() const noexcept { return queues_.size(); }
  Queue& queue(size_t index) { return *queues_.at(index); }
  size_t device_of(size_t queue) const { return device_of_queue_.at(queue); }
  VkDeviceSize max_storage_range() const noexcept { return max_storage_range_; }  // of all its devices
  bool lost() const noexcept;

  Buffer* create_buffer(VkDeviceSize size);
  Plan* create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                    uint32_t push_constant_size, const std::string& name);
  CommandList* create_command_list();
  void destroy(CommandList* list) noexcept;
  void retire(Buffer* buffer) noexcept { retire_resource(buffer); }
  void retire(Plan* plan) noexcept { retire_resource(plan); }

  // May wait for the device. Each throws when the engine is closed, and close() waits for those under way.
  bool wait(size_t queue, uint64_t value, uint64_t timeout_ns);
  void upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data, VkDeviceSize size);
  void download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size);
  void submit(CommandList& list, size_t queue, const std::byte* arguments, size_t instance_count);
  void make_room(size_t queue);

  void check_open() const;
  bool closed() const noexcept { return closed_.load(); }
  void close() noexcept;
  Statistics statistics();
  void set_barriers_enabled(bool enabled) noexcept { options_.barriers_enabled.store(enabled); }

 private:
  class Use;

  void retire_resource(Resource* resource) noexcept;

  RecordingOptions options_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> queue_devices_;  // the device of each queue
  std::vector<size_t> device_of_queue_;
  VkDeviceSize max_storage_range_ = ~VkDeviceSize{0};
  std::vector<std::unique_ptr<Timeline>> timelines_;
  std::unique_ptr<Graveyard> graveyard_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::mutex live_mutex_;
  std::unordered_set<Resource*> live_;  // owned by the bridge's objects
  std::unordered_set<CommandList*> lists_;
  std::atomic<bool> closed_{false};
  std::atomic<int> users_{0};  // calls that may be waiting for the device
};

}  // namespace vkd
