#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "context/error.hpp"
#include "context/instance.hpp"

namespace vkd {

namespace {

constexpr uint64_t kForever = ~uint64_t{0};

VkDescriptorType descriptor_type(int binding_type) {
  switch (binding_type) {
    case 1:
      return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    case 3:
      return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    case 5:
      return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    default:
      throw Error(ErrorKind::invalid_value, "binding type " + std::to_string(binding_type) +
                                                " is unknown: 1 storage buffer, 3 uniform buffer, 5 sampler");
  }
}

}  // namespace

Engine::Engine(const std::vector<uint32_t>& device_indices,
               const std::vector<std::vector<uint32_t>>& queue_families, bool debug, bool force_staging) {
  options_.debug = debug;
  const std::vector<VkPhysicalDevice>& physical = Instance::get().physical_devices();
  if (device_indices.empty() || device_indices.size() != queue_families.size()) {
    throw Error(ErrorKind::invalid_value, "an engine needs devices, and the queue families of each");
  }
  for (size_t i = 0; i < device_indices.size(); ++i) {
    if (device_indices[i] >= physical.size() || queue_families[i].empty()) {
      throw Error(ErrorKind::invalid_value,
                  "device " + std::to_string(device_indices[i]) + " does not exist or was given no queue");
    }
    devices_.push_back(
        std::make_unique<Device>(physical[device_indices[i]], queue_families[i], force_staging));
    max_storage_range_ = std::min<VkDeviceSize>(
        max_storage_range_, devices_.back()->properties().core.limits.maxStorageBufferRange);
    for (size_t q = 0; q < queue_families[i].size(); ++q) {
      queue_devices_.push_back(devices_.back().get());
      device_of_queue_.push_back(i);
      timelines_.push_back(std::make_unique<Timeline>(*devices_.back()));
    }
  }
  std::vector<Timeline*> timelines;
  for (const auto& timeline : timelines_) {
    timelines.push_back(timeline.get());
  }
  graveyard_ = std::make_unique<Graveyard>(timelines);
  for (const auto& device : devices_) {
    for (const QueueHandle& handle : device->queues()) {
      const size_t index = queues_.size();
      queues_.push_back(
          std::make_unique<Queue>(index, *device, handle, *timelines_[index], *graveyard_, options_));
    }
  }
}

Engine::~Engine() {
  close();
}

bool Engine::lost() const noexcept {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue->lost(); });
}

Buffer* Engine::create_buffer(VkDeviceSize size) {
  std::unique_ptr<Buffer> buffer;
  try {
    buffer = std::make_unique<Buffer>(queue_devices_, size);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory || graveyard_->empty()) {
      throw;
    }
    for (const auto& queue : queues_) {  // freed buffers may still be waiting for the device
      queue->wait(queue->last_value(), kForever);
    }
    buffer = std::make_unique<Buffer>(queue_devices_, size);
  }
  std::lock_guard lock(live_mutex_);
  live_.insert(buffer.get());
  return buffer.release();
}

Plan* Engine::create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                          uint32_t push_constant_size, const std::string& name) {
  std::vector<VkDescriptorType> types(binding_types.size());
  std::transform(binding_types.begin(), binding_types.end(), types.begin(), descriptor_type);
  auto plan = std::make_unique<Plan>(queue_devices_, spirv, types, push_constant_size, name);
  std::lock_guard lock(live_mutex_);
  live_.insert(plan.get());
  return plan.release();
}

CommandList* Engine::create_command_list() {
  std::vector<Queue*> queues;
  for (const auto& queue : queues_) {
    queues.push_back(queue.get());
  }
  auto list = std::make_unique<CommandList>(std::move(queues), *graveyard_);
  std::lock_guard lock(live_mutex_);
  lists_.insert(list.get());
  return list.release();
}

void Engine::destroy(CommandList* list) noexcept {
  {
    std::lock_guard lock(live_mutex_);
    lists_.erase(list);
  }
  delete list;
}

void Engine::retire_resource(Resource* resource) noexcept {
  std::unique_ptr<Resource> owned(resource);
  {
    std::lock_guard lock(live_mutex_);
    live_.erase(resource);
  }
  if (closed()) {
    return;  // close() has released it already
  }
  graveyard_->retire(std::move(owned));
  if (!graveyard_->empty()) {
    for (const auto& queue : queues_) {
      queue->tidy();
    }
  }
}

// Keeps close() from pulling the queues away under a thread that waits.
class Engine::Use {
 public:
  explicit Use(Engine& engine) : engine_(engine) {
    engine.users_.fetch_add(1);
    if (engine.closed()) {
      engine.users_.fetch_sub(1);
      engine.check_open();
    }
  }
  ~Use() { engine_.users_.fetch_sub(1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Engine& engine_;
};

void Engine::check_open() const {
  if (closed()) {
    throw Error(ErrorKind::vulkan, "the context was destroyed");
  }
}

bool Engine::wait(size_t queue, uint64_t value, uint64_t timeout_ns) {
  const Use use(*this);
  return queues_.at(queue)->wait(value, timeout_ns);
}

void Engine::upload(size_t queue, Buffer& buffer, VkDeviceSize offset, const std::byte* data,
                    VkDeviceSize size) {
  const Use use(*this);
  queues_.at(queue)->upload(buffer, offset, data, size);
}

void Engine::download(size_t queue, Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  queues_.at(queue)->download(buffer, offset, data, size);
}

void Engine::submit(CommandList& list, size_t queue, const std::byte* arguments, size_t instance_count) {
  const Use use(*this);
  list.submit(queue, arguments, instance_count);
}

void Engine::make_room(size_t queue) {
  const Use use(*this);
  queues_.at(queue)->make_room();
}

void Engine::close() noexcept {
  if (closed_.exchange(true)) {
    return;
  }
  while (users_.load() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& queue : queues_) {
    queue->close();
  }
  {
    std::lock_guard lock(live_mutex_);
    for (CommandList* list : lists_) {
      list->reset();
    }
    for (Resource* resource : live_) {
      resource->release();
    }
  }
  if (graveyard_) {
    graveyard_->clear();
  }
  queues_.clear();
  graveyard_.reset();
  timelines_.clear();
  devices_.clear();
}

Statistics Engine::statistics() {
  Statistics s;
  for (const auto& queue : queues_) {
    s.commands += queue->command_count();
    s.submits += queue->submit_count();
  }
  s.barriers = options_.barriers.load();
  {
    std::lock_guard lock(live_mutex_);
    s.live_objects = live_.size();
  }
  s.waiting_frees = graveyard_ ? graveyard_->size() : 0;
  for (const auto& device : devices_) {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
    vmaGetHeapBudgets(device->allocator(), budgets);
    for (const VmaBudget& budget : budgets) {
      s.device_memory += budget.statistics.allocationBytes;
    }
  }
  return s;
}

}  // namespace vkd
