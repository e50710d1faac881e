#include "queue/queue.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "context/instance.hpp"
#include "libs/error.hpp"
#include "libs/pages.hpp"

namespace vkd {

namespace {

constexpr uint64_t kForever = ~uint64_t{0};
// The thread naps between looks while a program keeps appending: waking it costs the appender a system call.
constexpr std::chrono::microseconds kNap{50};
constexpr int kNapsBeforeSleep = 20;
constexpr std::chrono::seconds kLongSleep{10};
constexpr uint64_t kBatchesInFlight = 1;  // while one runs the next one gathers

constexpr VkDeviceSize kLargeCopy = VkDeviceSize{1} << 20;  // who waits for it shall not wait for others, too

// The last command of a queue that one which reads or writes the data must not overtake.
uint64_t before(const Data& data, bool writes, size_t slot) noexcept {
  return writes ? data.last_use(slot) : data.last_write(slot);
}

uint64_t before(const Dispatch& dispatch, size_t slot) noexcept {
  uint64_t value = 0;
  for (uint32_t b = 0; b < dispatch.binding_count; ++b) {
    value = std::max(value, before(dispatch.bindings[b].data(), dispatch.bindings[b].writes, slot));
  }
  return value;
}

uint64_t before(const Copy& copy, size_t slot) noexcept {
  const uint64_t value = before(*copy.buffer, copy.to_buffer, slot);
  return copy.other != nullptr ? std::max(value, before(*copy.other, !copy.to_buffer, slot)) : value;
}

}  // namespace

Queue::Queue(size_t index, size_t slot, Device& device, const QueueHandle& handle, Timeline& timeline,
             Graveyard& graveyard, SharedState& shared)
    : index_(index),
      slot_(slot),
      device_(device),
      handle_(handle),
      timeline_(timeline),
      graveyard_(graveyard),
      shared_(shared),
      hazards_(slot),
      upload_ring_(device, MemoryUse::upload),
      download_ring_(device, MemoryUse::download),
      landing_(device, timeline),
      thread_([this] { run(); }) {}

Queue::~Queue() {
  close();
}

// ---- appending

void Queue::start_batch() {
  if (spare_batches_.empty()) {
    batches_.push_back(std::make_unique<Batch>(kBatchSize));
  } else {
    batches_.push_back(std::move(spare_batches_.back()));
    spare_batches_.pop_back();
  }
  batches_.back()->value = next_value_++;
}

Batch& Queue::open_batch() {
  if (batches_.empty() || batches_.back()->size() >= kBatchSize || batches_.back()->value <= sealed_) {
    start_batch();
  }
  return *batches_.back();
}

// Always a new batch: others may wait for the open one already, and so in the end for themselves.
uint64_t Queue::append_waits(std::vector<Batch::Wait> waits) {
  std::lock_guard lock(mutex_);
  if (waits.empty()) {
    return next_value_ - 1;
  }
  start_batch();
  Batch& batch = *batches_.back();
  batch.waits = std::move(waits);
  wake();
  return batch.value;
}

void Queue::pair_with(const std::vector<Queue*>& twins) {
  for (size_t i = 0; i < twins.size(); ++i) {
    peers_[i].queue = twins[i];
    twins[i]->peers_[0] = {this, 0, kForever};
    if (twins.size() > 1) {
      twins[i]->peers_[1] = {twins[1 - i], 0, kForever};
    }
  }
}

template <typename Before>
void Queue::follow_peers(Before before_slot) {
  bool started = false;
  for (Peer& peer : peers_) {
    if (peer.followed >= peer.given) {
      continue;
    }
    const uint64_t value = before_slot(peer.queue->slot_);
    if (value > peer.followed) {
      if (!started) {
        start_batch();
        started = true;
      }
      batches_.back()->waits.push_back({peer.queue, value});
      peer.followed = value;
    }
  }
}

void Queue::wake() noexcept {
  if (asleep_) {
    wake_.notify_one();
  }
}

uint64_t Queue::append(const Dispatch& dispatch) {
  return append(&dispatch, 1);
}

uint64_t Queue::append(const Dispatch* dispatches, size_t count) {
  std::lock_guard lock(mutex_);
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const Dispatch& dispatch = dispatches[i];
    follow_peers([&](size_t slot) { return before(dispatch, slot); });
    Batch& batch = open_batch();
    value = batch.value;
    batch.add(dispatch);
    dispatch.plan->mark_read(slot_, value);
    for (uint32_t b = 0; b < dispatch.binding_count; ++b) {
      const Binding& binding = dispatch.bindings[b];
      if (binding.writes) {
        binding.data().mark_write(slot_, value);
      } else {
        binding.data().mark_read(slot_, value);
      }
      if (binding.sampler != nullptr) {
        binding.sampler->mark_read(slot_, value);
      }
    }
  }
  gathered_.fetch_add(count, std::memory_order_relaxed);
  commands_.fetch_add(count, std::memory_order_relaxed);
  wake();
  return value;
}

uint64_t Queue::added(Batch& batch) {
  gathered_.fetch_add(1, std::memory_order_relaxed);
  commands_.fetch_add(1, std::memory_order_relaxed);
  wake();
  return batch.value;
}

uint64_t Queue::append(Segment& segment) {
  std::lock_guard lock(mutex_);
  follow_peers([&](size_t slot) { return segment.transfers_before(slot); });
  Batch& batch = open_batch();
  batch.add(segment);
  segment.mark(slot_, batch.value);
  return added(batch);
}

uint64_t Queue::append(Image& image) {
  std::lock_guard lock(mutex_);
  Batch& batch = open_batch();
  batch.add(image);
  image.mark_write(slot_, batch.value);
  return added(batch);
}

uint64_t Queue::append_copy(const Copy& copy) {
  std::lock_guard lock(mutex_);
  follow_peers([&](size_t slot) { return before(copy, slot); });
  return add_copy(copy);
}

uint64_t Queue::add_copy(const Copy& copy) {
  Batch& batch = open_batch();
  batch.add(copy);
  if (copy.to_buffer) {
    copy.buffer->mark_write(slot_, batch.value);
  } else {
    copy.buffer->mark_read(slot_, batch.value);
  }
  if (copy.other != nullptr && copy.to_buffer) {
    copy.other->mark_read(slot_, batch.value);
  } else if (copy.other != nullptr) {
    copy.other->mark_write(slot_, batch.value);
  }
  return added(batch);
}

Point Queue::transfer(const Copy& copy) {
  if (peers_[0].queue == nullptr) {
    return {slot_, append_copy(copy)};
  }
  Peer& peer = peers_[!copy.to_buffer && peers_[1].queue != nullptr ? 1 : 0];
  Queue& twin = *peer.queue;
  // Nothing may come between looking at what this queue does with the buffer and noting what the twin will
  // do.
  std::lock_guard lock(mutex_);
  // The twin shall not wait for what this queue is given later.
  sealed_ = std::max(sealed_, before(copy, slot_));
  std::lock_guard twin_lock(twin.mutex_);
  twin.follow_peers([&](size_t slot) { return before(copy, slot); });
  peer.given = twin.add_copy(copy);
  if (copy.size >= kLargeCopy) {
    twin.sealed_ = peer.given;
  }
  return {twin.slot_, peer.given};
}

std::vector<Point> Queue::work_given() {
  std::lock_guard lock(mutex_);
  std::vector<Point> points = {{slot_, next_value_ - 1}};
  for (const Peer& peer : peers_) {
    if (peer.queue != nullptr) {
      points.push_back({peer.queue->slot_, peer.given});
    }
  }
  return points;
}

uint64_t Queue::append_copy(const ImageCopy& copy) {
  std::lock_guard lock(mutex_);
  Batch& batch = open_batch();
  batch.add(copy);
  if (copy.to_image) {
    copy.image->mark_write(slot_, batch.value);
  } else {
    copy.image->mark_read(slot_, batch.value);
  }
  return added(batch);
}

// ---- submitting

// Under submit_mutex_: what the device has to pass before there is a frame for one submit more; 0: nothing.
uint64_t Queue::frame_needed() noexcept {
  try {
    const bool full = in_flight_.size() >= kMaxFrames && !timeline_.passed(in_flight_.front().value);
    return full && !shared_.lost.load() ? in_flight_.front().value : 0;
  } catch (...) {
    return 0;  // a lost device: the submit will say so
  }
}

std::unique_ptr<Frame> Queue::take_frame() {
  while (!in_flight_.empty() && timeline_.passed(in_flight_.front().value)) {
    collect(in_flight_.front());
    in_flight_.front().frame->reset();
    spare_frames_.push_back(std::move(in_flight_.front().frame));
    in_flight_.pop_front();
  }
  if (spare_frames_.empty()) {
    return std::make_unique<Frame>(device_, handle_.family);
  }
  std::unique_ptr<Frame> frame = std::move(spare_frames_.back());
  spare_frames_.pop_back();
  return frame;
}

// Under submit_mutex_. The device is done with the frame.
void Queue::collect(InFlight& done) {
  if (!done.frame->timed()) {
    return;
  }
  std::vector<TimedCommand> commands = done.frame->stopwatch().collect(slot_, done.value, clock_);
  for (TimedCommand& command : commands) {
    // A barrier holds back the command but not the timestamp before it.
    if (command.epoch != std::exchange(timed_epoch_, command.epoch)) {
      timed_floor_ = timed_end_;
    }
    command.begin = std::min(std::max(command.begin, timed_floor_), command.end);
    timed_end_ = std::max(timed_end_, command.end);
  }
  TimingLog& log = shared_.timings;
  if (log.on()) {
    std::lock_guard lock(log.mutex);
    std::move(commands.begin(), commands.end(), std::back_inserter(log.commands));
  }
}

void Queue::set_clock(uint64_t ticks) {
  std::lock_guard lock(submit_mutex_);
  clock_.set(ticks, timestamp_mask(device_, handle_.family));
  timed_end_ = timed_floor_ = 0;
}

void Queue::collect_timings() {
  std::lock_guard lock(submit_mutex_);
  for (size_t i = 0; i < in_flight_.size() && timeline_.passed(in_flight_[i].value); ++i) {
    collect(in_flight_[i]);
  }
}

void Queue::record(Batch& batch, Frame& frame, bool timed) {
  command_buffers_.clear();
  log_.clear();
  Recorder recorder(index_, frame, hazards_, shared_, log_);
  if (timed) {
    recorder.time();
  }
  auto begin = [&] {
    if (!recorder.recording()) {
      recorder.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
      if (std::exchange(distrust_hazards_, false)) {
        recorder.barrier();
      }
    }
  };
  auto end = [&] {
    if (recorder.recording()) {
      command_buffers_.push_back(recorder.end());
    }
  };
  bool host_reads = false;  // without a copy, of what the batch writes
  for (const Batch::Entry& entry : batch.entries()) {
    switch (entry.kind) {
      case Batch::Kind::dispatch:
        begin();
        recorder.dispatch(batch.dispatch(entry));
        host_reads = host_reads || vkd::host_reads(batch.dispatch(entry), index_);
        break;
      case Batch::Kind::copy:
        begin();
        recorder.copy(entry.copy);
        host_reads = host_reads || !entry.copy.to_buffer || vkd::host_reads(entry.copy.buffer, index_);
        break;
      case Batch::Kind::image_copy:
        begin();
        recorder.copy(entry.image_copy);
        host_reads |= !entry.image_copy.to_image;
        break;
      case Batch::Kind::image_start:
        begin();
        recorder.start(*entry.image);
        break;
      case Batch::Kind::replay:
        end();
        entry.segment->apply(hazards_);
        command_buffers_.push_back(entry.segment->commands());
        log_.insert(log_.end(), entry.segment->log().begin(), entry.segment->log().end());
        host_reads |= entry.segment->host_reads();
        break;
    }
  }
  if (host_reads) {
    begin();
    recorder.host_barrier();
  }
  end();
  if (shared_.debug) {
    for (std::string& problem : checker_.check(log_)) {
      add_message(VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT, std::move(problem));
    }
  }
}

void Queue::submit(Batch& batch) {
  const bool timed = shared_.timings.on() && has_timestamps();
  const int64_t begin = timed ? host_now() : 0;
  std::unique_ptr<Frame> frame = take_frame();
  record(batch, *frame, timed);

  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &batch.value;
  const VkSemaphore semaphore = timeline_.handle();
  std::vector<VkSemaphore> waited_for;
  std::vector<uint64_t> waited_values;
  for (const Batch::Wait& wait : batch.waits) {
    if (&wait.queue->device_ == &device_) {
      waited_for.push_back(wait.queue->timeline_.handle());
      waited_values.push_back(wait.value);
    }
  }
  const std::vector<VkPipelineStageFlags> stages(waited_for.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  values.waitSemaphoreValueCount = static_cast<uint32_t>(waited_values.size());
  values.pWaitSemaphoreValues = waited_values.data();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.waitSemaphoreCount = static_cast<uint32_t>(waited_for.size());
  info.pWaitSemaphores = waited_for.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = static_cast<uint32_t>(command_buffers_.size());
  info.pCommandBuffers = command_buffers_.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  {
    std::lock_guard lock(*handle_.mutex);
    check(device_.fn().vkQueueSubmit(handle_.handle, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  }
  in_flight_.push_back({std::move(frame), batch.value});
  if (timed) {
    std::lock_guard lock(shared_.timings.mutex);
    shared_.timings.submits.push_back({slot_, batch.value, batch.size(), begin, host_now()});
  }
}

// What the oldest batch waits for is submitted before it is: queues may share one of the device's, where a
// wait for something submitted later would never end. Devices do not wait for each other: the host does it
// for them. Nobody waits for a device with submit_mutex_ held: others, who must not wait, want it too.
bool Queue::submit_next(bool may_wait) {
  uint64_t cleared = 0;  // the batch whose waits were seen to
  for (;;) {
    std::vector<Batch::Wait> waits;
    uint64_t needed = 0;
    {
      std::lock_guard submit_lock(submit_mutex_);
      std::unique_lock lock(mutex_);
      if (batches_.empty()) {
        return false;
      }
      needed = frame_needed();
      Batch& oldest = *batches_.front();
      if (needed == 0 && (oldest.waits.empty() || oldest.value == cleared)) {
        std::unique_ptr<Batch> batch = std::move(batches_.front());
        batches_.pop_front();
        lock.unlock();
        submit_or_abandon(std::move(batch));
        return true;
      }
      if (needed == 0) {
        waits = oldest.waits;
        cleared = oldest.value;
      }
    }
    if (needed > 0) {
      if (!may_wait) {
        return false;
      }
      await(needed);
    }
    for (const Batch::Wait& wait : waits) {
      wait.queue->push_out(wait.value, may_wait);
      if (!may_wait && !wait.queue->is_ahead(wait.value, device_)) {
        return false;
      }
      if (&wait.queue->device_ != &device_) {
        wait.queue->await(wait.value);
      }
    }
  }
}

void Queue::submit_or_abandon(std::unique_ptr<Batch> batch) {
  try {
    submit(*batch);
  } catch (...) {
    keep_failure();
    distrust_hazards_ = true;
    abandon(batch->value);
  }
  submitted_.store(batch->value, std::memory_order_release);

  const size_t size = batch->size();
  batch->clear();
  std::lock_guard lock(mutex_);
  gathered_.fetch_sub(size, std::memory_order_relaxed);
  spare_batches_.push_back(std::move(batch));
}

void Queue::await(uint64_t value) noexcept {
  try {
    timeline_.wait(value, kForever);
  } catch (...) {
    shared_.lost.store(true);
  }
}

// Called inside a catch block.
void Queue::keep_failure() {
  std::exception_ptr failure = std::current_exception();
  try {
    throw;
  } catch (const Error& error) {
    const std::string where = "queue " + std::to_string(index_) + ": ";
    failure = std::make_exception_ptr(Error(error.kind(), where + error.what()));
  } catch (...) {  // as it is
  }
  std::lock_guard lock(failure_mutex_);
  if (!failure_) {
    failure_ = failure;
  }
  failed_.store(true);
}

// A batch that could not be submitted still has to pass on the timeline, or its waiters would wait for ever.
void Queue::abandon(uint64_t value) noexcept {
  try {
    const uint64_t before = submitted_.load();
    timeline_.wait(before, kForever);
    timeline_.signal(value);
  } catch (...) {
    shared_.lost.store(true);
  }
}

void Queue::throw_failure() {
  if (!failed_.load()) {
    return;
  }
  std::lock_guard lock(failure_mutex_);
  failed_.store(shared_.lost.load());  // a lost device stays lost: every later call says so
  std::exception_ptr failure = shared_.lost.load() ? failure_ : std::exchange(failure_, nullptr);
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void Queue::make_room() {
  while (gathered_.load(std::memory_order_relaxed) > kMaxGathered / 2 && submit_next()) {
  }
  throw_failure();
}

uint64_t Queue::last_value() {
  std::lock_guard lock(mutex_);
  return next_value_ - 1;
}

void Queue::push_out(uint64_t value, bool may_wait) {
  while (submitted_.load(std::memory_order_acquire) < value && submit_next(may_wait)) {
  }
}

// Whether a batch of this queue's can be waited for by one that `device` is given now.
bool Queue::is_ahead(uint64_t value, const Device& device) {
  return &device == &device_ ? submitted_.load(std::memory_order_acquire) >= value : timeline_.passed(value);
}

void Queue::flush(uint64_t value) {
  push_out(value);
  throw_failure();
}

uint64_t Queue::backlog() {
  const uint64_t given = last_value();
  return given - std::min(given, timeline_.completed());
}

bool Queue::wait(uint64_t value, uint64_t timeout_ns) {
  // Where there is a limit, what would have to wait before it can be submitted is left to the queue's thread.
  push_out(value, timeout_ns == kForever);
  throw_failure();
  try {
    const bool in_time = timeline_.wait(value, timeout_ns);
    graveyard_.sweep();
    return in_time;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device_lost) {
      shared_.lost.store(true);
    }
    throw;
  }
}

void Queue::tidy() noexcept {
  std::lock_guard lock(mutex_);
  tidy_ = true;
  wake();
}

// A driver's first allocation of memory that the host caches takes it milliseconds: better now than at a
// read.
void Queue::prepare_downloads() noexcept {
  try {
    std::lock_guard lock(download_mutex_);
    download_ring_.take(1);
  } catch (...) {  // the read that needs it will say so
  }
}

void Queue::run() noexcept {
  if (slot_ == index_ && !device_.host_mapped()) {
    prepare_downloads();
  }
  std::unique_lock lock(mutex_);
  auto awake = [this] { return stop_ || tidy_ || !batches_.empty(); };
  for (;;) {
    for (int nap = 0; nap < kNapsBeforeSleep && !awake(); ++nap) {
      wake_.wait_for(lock, kNap);
    }
    asleep_ = true;
    while (!wake_.wait_for(lock, kLongSleep, awake)) {
      lock.unlock();
      drop_spare_pages(kLongSleep);
      lock.lock();
    }
    asleep_ = false;
    const bool work = !batches_.empty();
    if (!work && stop_) {
      return;
    }
    if (!work) {
      tidy_ = false;  // else once more, after the batch that is about to go
    }
    lock.unlock();
    // With work at hand one batch may still run while the next gathers; without, the thread is here to clear
    // up.
    const uint64_t submitted = submitted_.load();
    const uint64_t enough = work ? submitted - std::min(submitted, kBatchesInFlight) : submitted;
    await(enough);
    submit_next();
    graveyard_.sweep();
    lock.lock();
  }
}

void Queue::close() noexcept {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) {
    thread_.join();  // it drains what is gathered first
  }
  await(submitted_.load());
  in_flight_.clear();
  spare_frames_.clear();
}

}  // namespace vkd
