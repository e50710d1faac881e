#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr uint64_t kForever = ~uint64_t{0};
constexpr VkDeviceSize kBounceBlock = VkDeviceSize{16} << 20;  // of copies between devices, through the host

VkDescriptorType descriptor_type(int binding_type) {
  switch (binding_type) {
    case 1:
      return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    case 3:
      return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    case 4:
      return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    case 5:
      return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    default:
      throw Error(ErrorKind::invalid_value, "binding type " + std::to_string(binding_type) +
                                                " is unknown: 1 storage buffer, 3 uniform buffer, "
                                                "4 storage image, 5 sampler");
  }
}

void check_level(const Image& image, uint32_t level, VkDeviceSize size) {
  if (level >= image.shape().levels) {
    throw Error(ErrorKind::invalid_value, "level: the image has " + std::to_string(image.shape().levels) +
                                              " mip levels, got " + std::to_string(level));
  }
  if (size != image.level_size(level)) {
    throw Error(ErrorKind::invalid_value, "data: mip level " + std::to_string(level) + " takes " +
                                              std::to_string(image.level_size(level)) + " bytes, got " +
                                              std::to_string(size));
  }
}

}  // namespace

Engine::Engine(const std::vector<uint32_t>& device_indices,
               const std::vector<std::vector<uint32_t>>& queue_families, bool debug, bool force_staging)
    : instance_(Instance::get()) {
  shared_.debug = debug;
  const std::vector<VkPhysicalDevice>& physical = instance_->physical_devices();
  if (device_indices.empty() || device_indices.size() != queue_families.size()) {
    throw Error(ErrorKind::invalid_value, "an engine needs devices, and the queue families of each");
  }
  for (size_t i = 0; i < device_indices.size(); ++i) {
    if (device_indices[i] >= physical.size() || queue_families[i].empty()) {
      throw Error(ErrorKind::invalid_value,
                  "device " + std::to_string(device_indices[i]) + " does not exist or was given no queue");
    }
    devices_.push_back(std::make_unique<Device>(instance_->handle(), physical[device_indices[i]],
                                                queue_families[i], force_staging));
    const VkPhysicalDeviceLimits& device = devices_.back()->properties().core.limits;
    limits_.storage_range = std::min<VkDeviceSize>(limits_.storage_range, device.maxStorageBufferRange);
    limits_.uniform_range = std::min<VkDeviceSize>(limits_.uniform_range, device.maxUniformBufferRange);
    limits_.storage_alignment = std::max(limits_.storage_alignment, device.minStorageBufferOffsetAlignment);
    limits_.uniform_alignment = std::max(limits_.uniform_alignment, device.minUniformBufferOffsetAlignment);
    for (size_t q = 0; q < queue_families[i].size(); ++q) {
      queue_devices_.push_back(devices_.back().get());
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
          std::make_unique<Queue>(index, *device, handle, *timelines_[index], *graveyard_, shared_));
    }
  }
}

Engine::~Engine() {
  close();
}

// Keeps close() from pulling the queues away under a call.
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
  if (abandoned_.load()) {
    throw Error(ErrorKind::vulkan,
                "this process was forked from the one that owns the context; start it with the spawn method");
  }
  if (closed()) {
    throw Error(ErrorKind::vulkan, "the context was destroyed");
  }
}

template <typename Make>
auto Engine::create(Make make) {
  decltype(make()) made;
  try {
    made = make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory || graveyard_->empty()) {
      throw;
    }
    for (const auto& queue : queues_) {  // freed memory may still be waiting for the device
      queue->wait(queue->last_value(), kForever);
    }
    made = make();
  }
  std::lock_guard lock(live_mutex_);
  live_.insert(made.get());
  return made.release();
}

Buffer* Engine::create_buffer(VkDeviceSize size) {
  const Use use(*this);
  return create([&] { return std::make_unique<Buffer>(queue_devices_, size); });
}

Image* Engine::create_image(const ImageShape& shape) {
  const Use use(*this);
  Image* image = create([&] { return std::make_unique<Image>(queue_devices_, shape); });
  for (const auto& queue : queues_) {
    queue->append(*image);
  }
  return image;
}

Sampler* Engine::create_sampler(const SamplerSettings& settings) {
  const Use use(*this);
  return create([&] { return std::make_unique<Sampler>(queue_devices_, settings); });
}

uint32_t Engine::image_features(int format) const {
  return format_features(queue_devices_, static_cast<VkFormat>(format));
}

Plan* Engine::create_plan(const std::vector<uint32_t>& spirv, const std::vector<int>& binding_types,
                          uint32_t push_constant_size, const std::string& name,
                          const std::string& entry_point, const Specialization& specialization,
                          const std::vector<std::string>& cached) {
  const Use use(*this);
  std::vector<VkDescriptorType> types(binding_types.size());
  std::transform(binding_types.begin(), binding_types.end(), types.begin(), descriptor_type);
  auto plan = std::make_unique<Plan>(queue_devices_, spirv, types, push_constant_size, name, entry_point,
                                     specialization, cached);
  std::lock_guard lock(live_mutex_);
  live_.insert(plan.get());
  return plan.release();
}

CommandList* Engine::create_command_list() {
  const Use use(*this);
  std::vector<Queue*> queues;
  for (const auto& queue : queues_) {
    queues.push_back(queue.get());
  }
  auto list = std::make_unique<CommandList>(std::move(queues), *graveyard_);
  std::lock_guard lock(live_mutex_);
  lists_.insert(list.get());
  return list.release();
}

bool Engine::append(const Dispatch& dispatch) {
  const Use use(*this);
  bool crowded = false;
  for (const auto& queue : queues_) {
    queue->append(dispatch);
    crowded |= queue->crowded();
  }
  return crowded;
}

void Engine::make_room() {
  const Use use(*this);
  for (const auto& queue : queues_) {
    if (queue->crowded()) {
      queue->make_room();
    }
  }
}

uint64_t Engine::last_value(size_t queue) {
  const Use use(*this);
  return queues_.at(queue)->last_value();
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

void Engine::upload(size_t queue, Image& image, uint32_t level, const std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  check_level(image, level, size);
  queues_.at(queue)->upload(image, level, data);
}

void Engine::download(size_t queue, Image& image, uint32_t level, std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  check_level(image, level, size);
  queues_.at(queue)->download(image, level, data);
}

void Engine::flush(size_t queue, uint64_t value) {
  const Use use(*this);
  queues_.at(queue)->flush(value);
}

size_t Engine::least_busy() {
  const Use use(*this);
  const size_t first = next_queue_.fetch_add(1) % queues_.size();
  size_t best = first;
  uint64_t least = queues_[first]->backlog();
  for (size_t step = 1; step < queues_.size() && least > 0; ++step) {
    const size_t queue = (first + step) % queues_.size();
    const uint64_t backlog = queues_[queue]->backlog();
    if (backlog < least) {
      best = queue;
      least = backlog;
    }
  }
  return best;
}

void Engine::copy_between(Buffer& buffer, size_t from, size_t to) {
  const Use use(*this);
  Queue& source = *queues_.at(from);
  Queue& target = *queues_.at(to);
  if (from == to) {
    return;
  }
  if (queue_devices_[from] == queue_devices_[to]) {
    // Each side is submitted before the other waits for it: both may share one queue of the device, where a
    // wait for something submitted later would never end.
    const uint64_t written = source.last_value();
    source.flush(written);
    target.append_wait(*timelines_[from], written);
    const uint64_t copied = target.append_copy_of(buffer, buffer.memory(from).handle());
    target.flush(copied);
    buffer.mark_read(from, source.append_wait(*timelines_[to], copied));
    return;
  }
  std::vector<std::byte> block(std::min<VkDeviceSize>(buffer.size(), kBounceBlock));
  for (VkDeviceSize offset = 0; offset < buffer.size(); offset += block.size()) {
    const VkDeviceSize size = std::min<VkDeviceSize>(block.size(), buffer.size() - offset);
    source.download(buffer, offset, block.data(), size);
    target.upload(buffer, offset, block.data(), size);
  }
}

void Engine::submit(CommandList& list, size_t first, size_t last, const std::byte* arguments, size_t bytes,
                    size_t instance_count) {
  const Use use(*this);
  // What the list points at may be given up by another thread before the list has appended it.
  struct Hold {
    explicit Hold(Graveyard& held) : graveyard(held) { graveyard.hold(); }
    ~Hold() { graveyard.let_go(); }
    Graveyard& graveyard;
  };
  {
    const Hold hold(*graveyard_);
    for (size_t queue = first; queue < last; ++queue) {
      list.submit(queue, arguments, bytes, instance_count);
    }
  }
  tidy();
}

void Engine::reset(CommandList& list) {
  const Use use(*this);
  list.reset();
  tidy();
}

std::vector<std::pair<size_t, size_t>> Engine::rearrange(CommandList& list,
                                                         const std::vector<size_t>& order) {
  const Use use(*this);
  auto arguments = list.rearrange(order);
  tidy();
  return arguments;
}

void Engine::tidy() noexcept {
  if (!graveyard_->empty()) {
    for (const auto& queue : queues_) {
      queue->tidy();
    }
  }
}

void Engine::retire(Resource* resource) noexcept {
  if (abandoned_.load()) {
    return;  // leaked: the memory belongs to the parent's device
  }
  std::unique_ptr<Resource> owned(resource);
  std::lock_guard lock(live_mutex_);
  live_.erase(resource);
  if (finished_.load()) {
    return;  // close() has released it
  }
  if (closed()) {
    orphans_.push_back(std::move(owned));  // the queues may still be working with it
    return;
  }
  graveyard_->retire(std::move(owned));
  tidy();
}

void Engine::destroy(CommandList* list) noexcept {
  if (abandoned_.load()) {
    return;
  }
  std::lock_guard lock(live_mutex_);
  lists_.erase(list);
  delete list;
}

void Engine::close() noexcept {
  bool first = false;
  {
    std::lock_guard lock(live_mutex_);
    first = !closed_.exchange(true);
  }
  auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  while (!first && !finished_.load()) {
    pause();
  }
  if (!first) {
    return;
  }
  while (users_.load() > 0) {
    pause();
  }
  for (const auto& queue : queues_) {
    queue->close();
  }
  std::lock_guard lock(live_mutex_);
  for (CommandList* list : lists_) {
    list->reset();
  }
  for (Resource* resource : live_) {
    resource->release();
  }
  orphans_.clear();
  if (graveyard_) {
    graveyard_->clear();
  }
  queues_.clear();
  graveyard_.reset();
  timelines_.clear();
  devices_.clear();
  instance_.reset();
  finished_.store(true);
}

void Engine::abandon() noexcept {
  abandoned_.store(true);
  closed_.store(true);
  finished_.store(true);
}

Statistics Engine::statistics() {
  const Use use(*this);
  Statistics s;
  for (const auto& queue : queues_) {
    s.commands += queue->command_count();
    s.submits += queue->submit_count();
  }
  s.barriers = shared_.barriers.load();
  {
    std::lock_guard lock(live_mutex_);
    s.live_objects = live_.size();
  }
  s.waiting_frees = graveyard_->size();
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
