#include <algorithm>
#include <chrono>
#include <thread>

#include "engine_use.hpp"
#include "libs/error.hpp"
#include "libs/pages.hpp"
#include "libs/process_exit.hpp"

namespace vkd {

namespace {

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
                                                " is unknown: expected 1 storage buffer, 3 uniform buffer, "
                                                "4 storage image, 5 sampler");
  }
}

std::vector<std::shared_ptr<Device>> make_devices(const Instance& instance,
                                                  const std::vector<uint32_t>& indices,
                                                  const std::vector<std::vector<uint32_t>>& queue_families,
                                                  const std::vector<std::string>& extensions,
                                                  bool force_staging) {
  const std::vector<VkPhysicalDevice>& physical = instance.physical_devices();
  if (indices.empty() || indices.size() != queue_families.size()) {
    throw Error(ErrorKind::invalid_value, "expected at least one device, and the queue families of each");
  }
  std::vector<std::shared_ptr<Device>> devices;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= physical.size() || queue_families[i].empty()) {
      throw Error(ErrorKind::invalid_value,
                  "device " + std::to_string(indices[i]) + " does not exist or has no queues");
    }
    devices.push_back(std::make_shared<Device>(instance.handle(), physical[indices[i]], queue_families[i],
                                               extensions, force_staging));
  }
  return devices;
}

// Up to this size, new results do not wait for earlier ones that were dropped.
constexpr VkDeviceSize kTakeTurns = 1 << 16;

// Each queue has a copy of each buffer.
VkDeviceSize most_idle_bytes(const std::vector<Device*>& queue_devices) {
  VkDeviceSize most = ~VkDeviceSize{0};
  for (const Device* device : queue_devices) {
    const auto count = static_cast<size_t>(std::count(queue_devices.begin(), queue_devices.end(), device));
    most = std::min(most, device->most_idle_bytes() / count);
  }
  return most * queue_devices.size();
}

std::shared_ptr<Device> borrow_device(const Instance& instance, const ForeignDevice& foreign,
                                      bool force_staging) {
  if (foreign.queues.empty()) {
    throw Error(ErrorKind::invalid_value, "queues: expected at least one");
  }
  return std::make_shared<Device>(instance.handle(), foreign, force_staging);
}

}  // namespace

Engine::Engine(const std::vector<uint32_t>& device_indices,
               const std::vector<std::vector<uint32_t>>& queue_families,
               const std::vector<std::string>& extensions, bool debug, bool force_staging,
               uint64_t timeout_ns)
    : Engine(Instance::get(),
             make_devices(*Instance::get(), device_indices, queue_families, extensions, force_staging), debug,
             timeout_ns) {}

Engine::Engine(const std::shared_ptr<Instance>& instance, const ForeignDevice& device, bool debug,
               bool force_staging, uint64_t timeout_ns)
    : Engine(instance, {borrow_device(*instance, device, force_staging)}, debug, timeout_ns) {}

Engine::Engine(std::shared_ptr<Instance> instance, std::vector<std::shared_ptr<Device>> devices, bool debug,
               uint64_t timeout_ns)
    : instance_(std::move(instance)), devices_(std::move(devices)) {
  shared_.debug = debug;
  shared_.timeout_ns = timeout_ns;
  for (const auto& device : devices_) {
    const VkPhysicalDeviceLimits& limits = device->properties().core.limits;
    limits_.storage_range = std::min<VkDeviceSize>(limits_.storage_range, limits.maxStorageBufferRange);
    limits_.uniform_range = std::min<VkDeviceSize>(limits_.uniform_range, limits.maxUniformBufferRange);
    limits_.storage_alignment = std::max(limits_.storage_alignment, limits.minStorageBufferOffsetAlignment);
    limits_.uniform_alignment = std::max(limits_.uniform_alignment, limits.minUniformBufferOffsetAlignment);
    for (size_t q = 0; q < device->queues().size(); ++q) {
      queue_devices_.push_back(device.get());
      timelines_.push_back(std::make_unique<Timeline>(*device));
    }
  }
  const size_t count = queue_devices_.size();
  timelines_.resize(slot_count());
  slots_.assign(count, true);
  slots_.resize(slot_count(), false);
  size_t first = 0;  // index of the device's first queue
  for (const auto& device : devices_) {
    for (size_t q = 0; q < device->transfer_queues().size(); ++q) {
      for (size_t i = 0; i < device->transfer_queues()[q].size(); ++i) {
        timelines_[(1 + i) * count + first + q] = std::make_unique<Timeline>(*device);
      }
    }
    first += device->queues().size();
  }
  std::vector<Timeline*> timelines;
  for (const auto& timeline : timelines_) {
    timelines.push_back(timeline.get());
  }
  graveyard_ = std::make_unique<Graveyard>(timelines, holds_);
  pool_ = std::make_unique<Pool>(most_idle_bytes(queue_devices_));
  for (const auto& device : devices_) {
    device->set_reserve([this] { empty_pool(); });
  }
  auto make = [&](size_t index, size_t slot, Device& device, const QueueHandle& handle) {
    return std::make_unique<Queue>(index, slot, device, handle, *timelines_[slot], *graveyard_, shared_);
  };
  transfer_queues_.resize(slot_count() - count);
  for (const auto& device : devices_) {
    for (size_t q = 0; q < device->queues().size(); ++q) {
      const size_t index = queues_.size();
      queues_.push_back(make(index, index, *device, device->queues()[q]));
      std::vector<Queue*> transfer_queues;
      if (q < device->transfer_queues().size()) {
        for (const QueueHandle& handle : device->transfer_queues()[q]) {
          const size_t place = transfer_queues.size() * count + index;
          slots_[count + place] = true;
          transfer_queues_[place] = make(index, count + place, *device, handle);
          transfer_queues.push_back(transfer_queues_[place].get());
        }
      }
      queues_.back()->pair_with(transfer_queues);
    }
  }
  for_each_queue([this](Queue& queue) { all_queues_.push_back(&queue); });
  shared_.queues.store(&all_queues_);
}

Engine::~Engine() {
  if (!closed()) {
    close(false);
  }
}

void Engine::check_open() const {
  if (abandoned_.load()) {
    throw Error(ErrorKind::vulkan,
                "this process was forked from the one that owns the context; start it with the spawn method");
  }
  shared_.ending.check();
  if (closed()) {
    throw Error(ErrorKind::closed, "the context was closed; make a new one");
  }
}

Queue& Engine::queue_at(size_t slot) {
  if (!has_queue(slot)) {
    throw Error(ErrorKind::invalid_value, "queue " + std::to_string(slot) + " does not exist");
  }
  return slot < queues_.size() ? *queues_[slot] : *transfer_queues_[slot - queues_.size()];
}

bool Engine::has_queue(size_t slot) const noexcept {
  return slot < slots_.size() && slots_[slot];
}

// If there is no memory, tries once more after all idle and released memory is freed.
template <typename Make>
auto Engine::create(Make make) {
  decltype(make()) object;
  try {
    object = make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) {
      throw;
    }
    free_idle_memory();
    object = make();
  }
  std::lock_guard lock(live_mutex_);
  live_.insert(object.get());
  return object.release();
}

void Engine::free_idle_memory() {
  empty_pool();
  if (!graveyard_->empty()) {
    for_each_queue([](Queue& queue) { queue.wait(queue.last_value(), kForever); });
    graveyard_->sweep();
  }
  for_each_queue([](Queue& queue) { queue.free_idle_memory(); });
  std::lock_guard lock(crossings_mutex_);
  for (const auto& [devices, crossing] : crossings_) {
    crossing->free_idle_memory();
  }
}

// Destroys what the device has finished using immediately.
void Engine::empty_pool() noexcept {
  while (std::unique_ptr<Buffer> buffer = pool_->take_oldest()) {
    graveyard_->retire(std::move(buffer));
  }
  graveyard_->sweep();
}

void Engine::check_one_device(const char* what) const {
  if (devices_.size() > 1) {
    throw Error(ErrorKind::invalid_value, std::string(what) +
                                              " has one memory for all queues, which those of " +
                                              std::to_string(devices_.size()) + " devices cannot share");
  }
}

Buffer* Engine::create_buffer(VkDeviceSize size, bool shared, bool for_device) {
  const Use use(*this);
  if (shared) {
    check_one_device("shared: the buffer");
  }
  Buffer* again = shared ? nullptr : reuse_buffer(size, for_device);
  if (again != nullptr) {
    return again;
  }
  return create([&] { return std::make_unique<Buffer>(queue_devices_, size, shared); });
}

Buffer* Engine::reuse_buffer(VkDeviceSize size, bool for_device) {
  const Use use(*this);
  std::unique_ptr<Buffer> buffer;
  if (!for_device) {  // a copy from the host starts sooner on idle memory
    buffer = pool_->take(size, [this](const Buffer& each) { return graveyard_->finished(each); });
  }
  if (!buffer && (for_device || !devices_.front()->host_mapped())) {
    buffer = for_device && size <= kTakeTurns ? pool_->take_in_turn(size) : pool_->take(size);
  }
  if (!buffer) {
    return nullptr;
  }
  buffer->reset_identity();
  std::lock_guard lock(live_mutex_);
  try {
    live_.insert(buffer.get());
  } catch (...) {
    graveyard_->defer(std::move(buffer));
    throw;
  }
  return buffer.release();
}

Buffer* Engine::create_buffer_over(Pinned& block) {
  const Use use(*this);
  check_one_device("block: a buffer over it");
  return create([&] { return std::make_unique<Buffer>(block); });
}

std::shared_ptr<Device> Engine::device_of(size_t queue) const noexcept {
  return *std::find_if(devices_.begin(), devices_.end(),
                       [&](const auto& each) { return each.get() == queue_devices_[queue]; });
}

Buffer* Engine::import_buffer(std::byte* data, VkDeviceSize size, bool ordered, std::shared_ptr<void> owner) {
  const Use use(*this);
  check_one_device("memory of the host");
  if (!devices_.front()->imports_pages()) {
    throw Error(ErrorKind::invalid_value, "the device does not import memory of the host");
  }
  return create([&] {
    return std::make_unique<Buffer>(queue_count(),
                                    std::make_shared<Memory>(*devices_.front(), data, size, owner), ordered);
  });
}

Buffer* Engine::borrow_buffer(VkBuffer handle, VkDeviceSize size, std::shared_ptr<void> owner) {
  const Use use(*this);
  check_one_device("a buffer of another library");
  return create([&] {
    return std::make_unique<Buffer>(queue_count(),
                                    std::make_shared<Memory>(*devices_.front(), handle, size, owner));
  });
}

Buffer* Engine::create_part(Buffer& whole, VkDeviceSize offset, VkDeviceSize size) {
  const Use use(*this);
  return create([&] { return std::make_unique<Buffer>(Buffer::Part{whole, offset, size}); });
}

std::shared_ptr<Loan> Engine::lend(size_t queue, Buffer& buffer, bool ordered) {
  const Use use(*this);
  if (buffer.memory(queue).mapped() == nullptr) {
    return nullptr;
  }
  // Counted first: commands that other threads append from here on are waited for by these threads.
  auto loan = std::make_shared<Loan>(
      Loan{instance_, device_of(queue), buffer.lend(queue), {buffer.sharing_pointer(), ordered}});
  wait_for_uses(queue, buffer, false);
  buffer.poison(queue).check();
  return loan;
}

std::shared_ptr<Loan> Engine::keep(Buffer& buffer) {
  const Use use(*this);
  buffer.poison(0).check();
  // Counted, so that expressions that read the memory do not wait; no call waits for it.
  return std::make_shared<Loan>(
      Loan{instance_, device_of(0), buffer.lend(0), {buffer.sharing_pointer(), false}});
}

Buffer* Engine::create_journal() {
  const Use use(*this);
  if (journal() != nullptr) {
    throw Error(ErrorKind::vulkan, "the engine already has a journal");
  }
  const VkDeviceSize size = Journal::kWords * sizeof(uint32_t);
  Buffer* buffer = create([&] { return std::make_unique<Buffer>(queue_devices_, size, Buffer::Notes{}); });
  own_journal_ = std::make_unique<Journal>(*buffer, slot_count());
  journal_.store(own_journal_.get(), std::memory_order_release);
  return buffer;
}

// close() waits for readers; afterwards the remaining notes may be read.
bool Engine::has_unseen_notes(const Journal& notes) noexcept {
  users_.fetch_add(1);
  const bool found = (!closed() || finished_.load()) && !hung() && notes.has_unseen();
  users_.fetch_sub(1);
  return found;
}

uint32_t Engine::take_ticket() {
  const Use use(*this);
  Journal* notes = journal();
  return notes == nullptr ? 0 : notes->take([this](size_t slot) {
    return has_queue(slot) ? queue_at(slot).next_point() : kForever;
  });
}

int Engine::stale_tickets() {
  const Use use(*this);
  Journal& notes = *journal();
  const int half = notes.stale();
  for (size_t queue = 0; half >= 0 && queue < queues_.size(); ++queue) {
    queues_[queue]->wait(notes.mark(half, queue), kForever);
  }
  return half;
}

uint64_t Engine::completed(size_t slot) {
  if (finished_.load()) {
    return kForever;
  }
  const Use use(*this);
  queue_at(slot);
  return timelines_[slot]->completed();
}

bool Engine::is_journal_complete(size_t queue) {
  return finished_.load() || completed(queue) >= journal()->buffer().last_write(queue);
}

Image* Engine::create_image(const ImageShape& shape, bool shared) {
  const Use use(*this);
  if (shared) {
    check_one_device("shared: the image");
  }
  Image* image = create([&] { return std::make_unique<Image>(queue_devices_, shape, shared); });
  start(*image);
  return image;
}

Image* Engine::borrow_image(const ImageShape& shape, const BorrowedImage& theirs,
                            std::shared_ptr<void> owner) {
  const Use use(*this);
  check_one_device("an image of another library");
  Image* image =
      create([&] { return std::make_unique<Image>(queue_count(), *devices_.front(), shape, theirs, owner); });
  start(*image);
  return image;
}

void Engine::start(Image& image) {
  const bool shared = image.shared();
  for (const auto& queue : queues_) {
    if (!shared || queue == queues_.front()) {
      queue->append(image);
    } else {
      queue->append_waits({{queues_.front().get(), image.last_write(0)}});
    }
  }
}

Pinned* Engine::create_pinned(size_t queue, VkDeviceSize size, MemoryUse use) {
  const Use using_engine(*this);
  if (size > queue_at(queue).device().max_allocation()) {
    throw Error(ErrorKind::out_of_memory, std::to_string(size) + " bytes of pinned memory exceed the " +
                                              std::to_string(queue_at(queue).device().max_allocation()) +
                                              " bytes that the device allocates at once");
  }
  Pinned* pinned = create([&] {
    return std::make_unique<Pinned>(queue_devices_.size(), instance_, device_of(queue), size, use);
  });
  std::lock_guard lock(pinned_mutex_);
  pinned_[pinned->data()] = pinned;
  return pinned;
}

Pinned* Engine::find_pinned(const std::byte* data, VkDeviceSize size) {
  std::lock_guard lock(pinned_mutex_);
  auto found = pinned_.upper_bound(data);
  if (found == pinned_.begin()) {
    return nullptr;
  }
  Pinned* pinned = std::prev(found)->second;
  const auto offset = static_cast<VkDeviceSize>(data - pinned->data());
  return offset <= pinned->size() && size <= pinned->size() - offset ? pinned : nullptr;
}

bool Engine::is_pinned(size_t queue, const std::byte* data, VkDeviceSize size) {
  const Use use(*this);
  const Pinned* pinned = find_pinned(data, size);
  return pinned != nullptr && &pinned->device() == &queue_at(queue).device();
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
  return create([&] {
    return std::make_unique<Plan>(queue_devices_, spirv, types, push_constant_size, name, entry_point,
                                  specialization, cached);
  });
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

std::unique_lock<std::mutex> Engine::share(const std::vector<CommandList::SharedUse>& uses, size_t first,
                                           size_t& last) {
  const auto shared = [](const auto& use) { return use.data->shared(); };
  if (queues_.size() == 1 || std::none_of(uses.begin(), uses.end(), shared)) {
    return {};
  }
  std::unique_lock sharing(sharing_mutex_);
  if (std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return use.writes && shared(use); })) {
    last = first + 1;
  }
  for (size_t queue = first; queue < last; ++queue) {
    follow_others(queue, uses);
  }
  return sharing;
}

void Engine::check_sources(const Dispatch& dispatch, size_t first, size_t last) {
  for (size_t queue = first; queue < last; ++queue) {
    if (const FailurePtr failure = source_failure(dispatch, queue)) {
      failure->raise();
    }
  }
}

bool Engine::append(const Dispatch& dispatch, size_t first, size_t last) {
  const Use use(*this);
  bool crowded = false;
  if (Poison::anywhere()) {
    check_sources(dispatch, first, last);
  }
  std::vector<CommandList::SharedUse> uses;
  if (queues_.size() > 1) {
    for_each_access(dispatch, [&](Data& data, bool, bool writes) { uses.push_back({&data, writes}); });
  }
  bool lent = false;
  if (Sharing::anywhere()) {
    for_each_access(dispatch, [&](Data& data, bool, bool) { lent |= data.sharing().ordered(); });
  }
  const std::unique_lock sharing = share(uses, first, last);
  for (size_t queue = first; queue < last; ++queue) {
    const uint64_t value = queues_[queue]->append(dispatch);
    crowded |= queues_[queue]->crowded();
    if (lent) {
      queues_[queue]->finish_in_make_room(value);
    }
  }
  return crowded || lent;
}

void Engine::make_room() {
  const Use use(*this);
  for (const auto& queue : queues_) {
    queue->finish_lent();
    if (queue->crowded()) {
      queue->make_room();
    }
  }
}

uint64_t Engine::last_value(size_t slot) {
  const Use use(*this);
  return queue_at(slot).last_value();
}

uint64_t Engine::last_point(size_t slot) {
  const Use use(*this);
  return queue_at(slot).last_point();
}

bool Engine::wait(size_t slot, uint64_t value, uint64_t timeout_ns, bool alone) {
  if (alone) {
    return wait_for_batches(slot, value - std::min<uint64_t>(value, 1), value, timeout_ns);
  }
  const Use use(*this);
  Queue& queue = queue_at(slot);
  if (!queue.wait(value, timeout_ns)) {
    return false;
  }
  queue.raise_failures(value);
  return true;
}

void Engine::wait_until(size_t slot, uint64_t value) {
  const Use use(*this);
  queue_at(slot).wait(value, kForever);
}

bool Engine::wait_for_batches(size_t slot, uint64_t before, uint64_t last, uint64_t timeout_ns) {
  const Use use(*this);
  Queue& queue = queue_at(slot);
  if (!queue.wait(last, timeout_ns)) {
    return false;
  }
  queue.raise_failures(before, last);
  return true;
}

std::vector<Point> Engine::work_points(size_t first, size_t last) {
  const Use use(*this);
  std::vector<Point> points;
  for (size_t q = first; q < last; ++q) {
    const std::vector<Point> queue_points = queue_at(q).work_points();
    points.insert(points.end(), queue_points.begin(), queue_points.end());
  }
  return points;
}

void Engine::follow(size_t first, size_t last, const std::vector<Point>& points) {
  const Use use(*this);
  for (size_t q = first; q < last; ++q) {
    for (size_t slot = q; slot < slot_count(); slot += queues_.size()) {
      if (!has_queue(slot)) {
        continue;
      }
      std::vector<Batch::Wait> waits;
      for (const Point& point : points) {
        if (point.slot != slot && point.value > 0) {
          Queue& other = queue_at(point.slot);
          waits.push_back({&other, std::min(point.value, other.last_value())});
        }
      }
      queue_at(slot).append_waits(std::move(waits));
    }
  }
}

Memory::Block Engine::block_of(Buffer& buffer, uint64_t* number) {
  const Use use(*this);
  const Memory::Block block = buffer.memory(0).block();
  *number = block.memory == VK_NULL_HANDLE ? 0 : devices_.front()->block_number(block.memory);
  return block;
}

int Engine::export_block(Buffer& buffer) {
  const Use use(*this);
  const Memory::Block block = buffer.memory(0).block();
  return block.memory == VK_NULL_HANDLE ? -1 : devices_.front()->export_memory(block.memory);
}

std::vector<uint64_t> Engine::take_freed_blocks() {
  const Use use(*this);
  return devices_.front()->take_freed_blocks();
}

int Engine::export_timeline(size_t slot) {
  const Use use(*this);
  return devices_.front()->exports() ? devices_.front()->export_semaphore(queue_at(slot).semaphore()) : -1;
}

int Engine::export_incoming(size_t number) {
  const Use use(*this);
  Device& device = *devices_.front();
  return device.exports() ? device.export_semaphore(device.incoming(number)) : -1;
}

uint64_t Engine::submit_all(size_t slot) {
  const Use use(*this);
  return queue_at(slot).submit_all();
}

void Engine::wait_for_incoming(size_t queue, size_t number, uint64_t value) {
  const Use use(*this);
  const VkSemaphore semaphore = devices_.front()->incoming(number);
  for (size_t slot = queue; slot < slot_count(); slot += queues_.size()) {
    if (has_queue(slot)) {
      queue_at(slot).wait_for_incoming(semaphore, value);
    }
  }
}

void Engine::flush(size_t slot, uint64_t value) {
  const Use use(*this);
  queue_at(slot).flush(value);
}

std::string Engine::describe_work(size_t slot) {
  const Use use(*this, true);
  return queue_at(slot).describe_work(lost() && !hung());  // a hanging device is not lost
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

uint64_t Engine::submit(CommandList& list, size_t first, size_t last, const std::byte* arguments,
                        size_t bytes, size_t instance_count) {
  const Use use(*this);
  uint64_t value = 0;
  if (Poison::anywhere()) {
    list.check_sources(first, last);
  }
  std::unique_lock sharing = share(list.shared_uses(), first, last);
  for (size_t queue = first; queue < last; ++queue) {
    value = list.submit(queue, arguments, bytes, instance_count, false);
  }
  request_sweep();
  if (Sharing::anywhere() && list.uses_lent_memory()) {
    if (sharing) {
      sharing.unlock();
    }
    for (size_t queue = first; queue < last; ++queue) {
      queues_[queue]->wait_for_lent(queues_[queue]->last_value());
    }
  }
  return value;
}

bool Engine::evaluate(CommandList& list, size_t queue, const std::byte* arguments, size_t bytes,
                      uint64_t timeout_ns, uint64_t& before, uint64_t& value) {
  const Use use(*this);
  Queue& on = *queues_.at(queue);
  before = on.last_value();
  if (Poison::anywhere()) {
    list.check_sources(queue, queue + 1);
  }
  try {
    size_t last = queue + 1;
    const std::unique_lock sharing = share(list.shared_uses(), queue, last);
    value = list.submit(queue, arguments, bytes, 1, true);
  } catch (...) {
    on.notify_worker();  // some of it may have been appended
    throw;
  }
  if (!on.wait(value, timeout_ns)) {
    return false;
  }
  on.raise_failures(before, value);
  return true;
}

bool Engine::has_timestamps() const noexcept {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return queue->has_timestamps(); });
}

std::vector<uint64_t> Engine::timestamps(CommandList& list, size_t queue) {
  const Use use(*this);
  return list.timestamps(queue);
}

void Engine::reset(CommandList& list) {
  const Use use(*this);
  list.reset();
  request_sweep();
}

std::vector<std::pair<size_t, size_t>> Engine::rearrange(CommandList& list,
                                                         const std::vector<size_t>& order) {
  const Use use(*this);
  auto arguments = list.rearrange(order);
  request_sweep();
  return arguments;
}

void Engine::request_sweep() noexcept {
  if (!graveyard_->empty()) {
    for_each_queue([](Queue& queue) { queue.request_sweep(); });
  }
}

void Engine::retire(Pinned* pinned) noexcept {
  if (!abandoned_.load() && !hung()) {
    std::lock_guard lock(pinned_mutex_);
    pinned_.erase(pinned->data());
  }
  retire(static_cast<Resource*>(pinned));
}

// A thread that is about to append commands with a pointer to a buffer must not find it reused.
bool Engine::recycle(Resource* resource) noexcept {
  if (!resource->recyclable() || abandoned_.load() || lost() || !holds_.none()) {
    return false;
  }
  std::lock_guard lock(live_mutex_);
  if (closed()) {
    return false;
  }
  std::unique_ptr<Buffer> buffer(static_cast<Buffer*>(resource));
  if (!pool_->has_room_for(*buffer) || !prepare_reuse(*buffer) || !pool_->give(buffer)) {
    buffer.release();
    return false;
  }
  live_.erase(resource);
  while (std::unique_ptr<Buffer> surplus = pool_->take_surplus()) {
    graveyard_->defer(std::move(surplus));
  }
  request_sweep();
  return true;
}

// Earlier failures must not affect the next owner. Returns false if there is no memory to record that.
bool Engine::prepare_reuse(Buffer& buffer) noexcept {
  try {
    for_each_queue([&](Queue& queue) { queue.renew_after_all(buffer); });
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (size_t queue = 0; Poison::anywhere() && queue < buffer.queue_count(); ++queue) {
    buffer.poison(queue).clear();
  }
  return true;
}

void Engine::retire(Resource* resource) noexcept {
  if (recycle(resource)) {
    return;
  }
  if (abandoned_.load() || hung()) {
    return;  // leaked: the memory belongs to the parent's device, or is in use forever
  }
  std::unique_ptr<Resource> owned(resource);
  std::lock_guard lock(live_mutex_);
  live_.erase(resource);
  if (own_journal_ && resource == own_journal_->resource() && !finished_.load()) {
    journal_.store(nullptr);  // no reader is left
  }
  if (finished_.load() && holds_.none()) {
    return;  // close() has released it
  }
  if (closed()) {
    orphans_.push_back(std::move(owned));  // the queues, or a thread about to launch, may still use it
    return;
  }
  graveyard_->retire(std::move(owned));
  request_sweep();
}

void Engine::destroy(CommandList* list) noexcept {
  if (abandoned_.load() || hung()) {
    return;
  }
  std::lock_guard lock(live_mutex_);
  lists_.erase(list);
  delete list;
}

void Engine::close(bool interruptible) {
  bool first = false;
  {
    std::lock_guard lock(live_mutex_);
    first = !closed_.exchange(true);
  }
  const auto pause = [interruptible] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (interruptible) {
      check_signals();
    }
  };
  while (!first && !finished_.load()) {
    pause();
  }
  if (!first) {
    return;
  }
  try {
    while (users_.load() > 0 && !hung()) {
      pause();
    }
    finish(interruptible);
  } catch (const Interrupted&) {
    give_up(Error(ErrorKind::device_lost,
                  "the context was given up: closing it was interrupted while the device was busy"));
    throw;
  }
}

// Nothing may be destroyed before the devices are known to be idle, whatever else fails.
void Engine::finish(bool interruptible) {
  if (!hung()) {
    for_each_queue([](Queue& queue) { queue.stop(); });
    for_each_queue([&](Queue& queue) { queue.join(interruptible); });
  }
  // All work is finished, but Mesa's own threads may still access a semaphore that a submit waited for.
  const bool idle = !hung() && std::all_of(devices_.begin(), devices_.end(),
                                           [](const auto& device) { return device->wait_idle(); });
  if (!idle) {
    give_up(Error(ErrorKind::device_lost, "the context was given up: the device cannot be confirmed idle"));
    return;
  }
  destroy_all();
}

void Engine::destroy_all() noexcept {
  std::lock_guard lock(live_mutex_);
  if (own_journal_) {
    own_journal_->detach_memory();
  }
  for (CommandList* list : lists_) {
    list->reset();
  }
  for (Resource* resource : live_) {
    resource->release();
  }
  while (std::unique_ptr<Buffer> buffer = pool_ ? pool_->take_oldest() : nullptr) {
    orphans_.push_back(std::move(buffer));
  }
  if (graveyard_) {
    for (std::unique_ptr<Resource>& resource : graveyard_->take()) {
      orphans_.push_back(std::move(resource));
    }
  }
  for (const std::unique_ptr<Resource>& resource : orphans_) {
    resource->release();
  }
  if (holds_.none()) {
    orphans_.clear();
  }
  transfer_queues_.clear();
  queues_.clear();
  crossings_.clear();
  for (const auto& device : devices_) {
    device->set_reserve(nullptr);
  }
  pool_.reset();
  graveyard_.reset();
  timelines_.clear();
  devices_.clear();
  instance_.reset();
  drop_spare_pages(std::chrono::seconds(0));
  finished_.store(true);
}

// Intentionally leaks what the device may still use, including this object.
void Engine::give_up(const Error& error) noexcept {
  static std::mutex mutex;
  static auto& left = *new std::vector<std::shared_ptr<Engine>>;
  shared_.ending.set(error, true);
  for_each_queue([](Queue& queue) { queue.detach(); });
  end_process_quickly();
  if (std::shared_ptr<Engine> self = weak_from_this().lock()) {
    std::lock_guard lock(mutex);
    left.push_back(std::move(self));
  }
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
  for_each_queue([&](Queue& queue) {
    s.commands += queue.command_count();
    s.submits += queue.submit_count();
  });
  s.barriers = shared_.barriers.load();
  {
    std::lock_guard lock(live_mutex_);
    s.live_objects = live_.size();
  }
  {
    std::lock_guard lock(pinned_mutex_);
    s.pinned_blocks = pinned_.size();
  }
  s.waiting_frees = graveyard_->size();
  for (const auto& device : devices_) {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
    vmaSetCurrentFrameIndex(device->allocator(),
                            budget_reads_.fetch_add(1));  // else the budget is an old one
    vmaGetHeapBudgets(device->allocator(), budgets);
    const VkPhysicalDeviceMemoryProperties* memory = nullptr;
    vmaGetMemoryProperties(device->allocator(), &memory);
    for (uint32_t heap = 0; heap < memory->memoryHeapCount; ++heap) {
      s.device_memory += budgets[heap].statistics.allocationBytes;
      if ((memory->memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
        s.heap_memory += memory->memoryHeaps[heap].size;
        s.memory_budget += budgets[heap].budget;
        s.memory_usage += budgets[heap].usage;
      }
    }
    s.allocations += device->allocations();
  }
  s.idle_memory = pool_->bytes();
  s.device_memory -= std::min(s.device_memory, s.idle_memory);
  return s;
}

}  // namespace vkd
