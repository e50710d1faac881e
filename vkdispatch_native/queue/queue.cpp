#include "queue/queue.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "context/instance.hpp"
#include "libs/error.hpp"
#include "libs/pages.hpp"

namespace vkd {

namespace {

// The thread naps between checks while a program keeps appending: waking it costs a system call.
constexpr std::chrono::microseconds kNap{50};
constexpr int kNapsBeforeSleep = 20;
constexpr std::chrono::seconds kLongSleep{10};
constexpr uint64_t kBatchesInFlight = 1;  // one runs while the next gathers commands

// A copy of this size closes its batch, so that waiting for it never includes later commands.
constexpr VkDeviceSize kLargeCopy = VkDeviceSize{1} << 20;

// The last command of a queue that a command which reads or writes the data must not overtake.
uint64_t before(const Data& data, bool writes, size_t slot) noexcept {
  return writes ? data.last_use(slot) : data.last_write(slot);
}

template <typename AnyCommand>
uint64_t before(const AnyCommand& command, size_t slot) noexcept {
  uint64_t value = 0;
  for_each_access(command, [&](const Data& data, bool, bool writes) {
    value = std::max(value, before(data, writes, slot));
  });
  return value;
}

// Records that a batch uses everything that a command needs, reads and writes.
template <typename AnyCommand>
void mark(const AnyCommand& command, size_t slot, uint64_t value) noexcept {
  for_each_need(command, [&](Resource& resource) { resource.mark_read(slot, value); });
  for_each_access(command, [&](Data& data, bool, bool writes) {
    if (writes) {
      data.mark_write(slot, value);
    } else {
      data.mark_read(slot, value);
    }
  });
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
  if (thread_.joinable()) {
    stop();
    thread_.join();
  }
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
  std::swap(batches_.back()->incoming, incoming_);  // a cleared batch has none
}

Batch& Queue::open_batch() {
  if (batches_.empty() || batches_.back()->size() >= kBatchSize || batches_.back()->value <= sealed_) {
    start_batch();
  }
  return *batches_.back();
}

// Always starts a new batch: others may already wait for the open one, so it could end up waiting for itself.
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

void Queue::wait_for_incoming(VkSemaphore semaphore, uint64_t value) {
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(incoming_.begin(), incoming_.end(),
                                  [&](const Batch::Incoming& each) { return each.semaphore == semaphore; });
  if (known != incoming_.end()) {
    known->value = value;
  } else {
    incoming_.push_back({semaphore, value});
  }
  sealed_ = std::max(sealed_, next_value_ - 1);
}

uint64_t Queue::submit_all() {
  const uint64_t value = last_value();
  flush(value);
  while (submitted_.load(std::memory_order_acquire) < value) {  // by the queue's thread
    shared_.ending.check();
    std::this_thread::yield();
  }
  return timeline_.last_submitted(value);
}

void Queue::pair_with(const std::vector<Queue*>& transfer_queues) {
  for (size_t i = 0; i < transfer_queues.size(); ++i) {
    peers_[i].queue = transfer_queues[i];
    transfer_queues[i]->peers_[0] = {this, 0, kForever};
    if (transfer_queues.size() > 1) {
      transfer_queues[i]->peers_[1] = {transfer_queues[1 - i], 0, kForever};
    }
  }
}

template <typename Before>
void Queue::follow_peers(Before before_slot, bool started) {
  for (Peer& peer : peers_) {
    if (peer.followed >= peer.last_value) {
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

template <typename AnyCommand>
uint64_t Queue::add(const AnyCommand& command) {
  follow_peers([&](size_t slot) { return before(command, slot); });
  Batch& batch = open_batch();
  batch.add(command);
  mark(command, slot_, batch.value);
  return count_command(batch);
}

uint64_t Queue::add(const Copy& copy, std::vector<Batch::Wait> waits, bool renews) {
  const bool started = !waits.empty();
  if (started) {
    start_batch();
    batches_.back()->waits = std::move(waits);
  }
  follow_peers([&](size_t slot) { return before(copy, slot); }, started);
  Batch& batch = open_batch();
  if (renews) {
    add_renewal(batch, copy.to_buffer ? *copy.buffer : *copy.other);
  }
  batch.add(copy);
  mark(copy, slot_, batch.value);
  return count_command(batch);
}

uint64_t Queue::append(const Dispatch& dispatch) {
  std::lock_guard lock(mutex_);
  wake();
  return add(dispatch);
}

uint64_t Queue::append(const std::vector<Command>& commands, bool waited_for) {
  std::lock_guard lock(mutex_);
  uint64_t value = 0;
  for (const Command& command : commands) {
    value = std::visit([&](const auto& each) { return add(each); }, command);
  }
  if (!waited_for) {
    wake();
  }
  return value;
}

uint64_t Queue::count_command(Batch& batch) {
  gathered_.fetch_add(1, std::memory_order_relaxed);
  commands_.fetch_add(1, std::memory_order_relaxed);
  return batch.value;
}

void Queue::add_renewal(Batch& batch, Data& data) {
  batch.add(Renewal{&data, ~uint32_t{0}, ~uint32_t{0}});
  gathered_.fetch_add(1, std::memory_order_relaxed);  // not a command, but subtracted when the batch ends
}

uint64_t Queue::append(Segment& segment, bool waited_for) {
  std::lock_guard lock(mutex_);
  follow_peers([&](size_t slot) { return segment.transfers_before(slot); });
  Batch& batch = open_batch();
  batch.add(segment);
  segment.mark(slot_, batch.value);
  if (!waited_for) {
    wake();
  }
  return count_command(batch);
}

uint64_t Queue::append(Image& image) {
  std::lock_guard lock(mutex_);
  Batch& batch = open_batch();
  batch.add(image);
  image.mark_write(slot_, batch.value);
  wake();
  return count_command(batch);
}

uint64_t Queue::append_copy(const Copy& copy) {
  std::lock_guard lock(mutex_);
  wake();
  return add(copy);
}

uint64_t Queue::append_copy(const ImageCopy& copy) {
  std::lock_guard lock(mutex_);
  wake();
  return add(copy);
}

uint64_t Queue::append(const Renewal& renewal) {
  std::lock_guard lock(mutex_);
  Batch& batch = open_batch();
  batch.add(renewal);
  renewal.data->mark_read(slot_, batch.value);
  return count_command(batch);
}

void Queue::renew_after_all(Data& data) {
  // Submitted or failed batches have poisoned it already.
  if (data.last_write(slot_) <= submitted_.load(std::memory_order_acquire)) {
    return;
  }
  std::lock_guard lock(mutex_);
  Batch& batch = open_batch();
  add_renewal(batch, data);
  data.mark_read(slot_, batch.value);
  wake();
}

Queue& Queue::transfer_queue(bool to_buffer) noexcept {
  Queue* transfer = peers_[!to_buffer && peers_[1].queue != nullptr ? 1 : 0].queue;
  return transfer != nullptr ? *transfer : *this;
}

Point Queue::transfer(const Copy& copy) {
  const Batch::Wait end = transfer(copy, {}, false);
  return {end.queue->slot_, end.value};
}

Batch::Wait Queue::transfer(const Copy& copy, std::vector<Batch::Wait> waits, bool renews) {
  Queue& transfer = transfer_queue(copy.to_buffer);
  // Hold the lock between reading this queue's uses of the buffer and recording the copy.
  std::lock_guard lock(mutex_);
  std::unique_lock<std::mutex> transfer_lock;
  if (&transfer != this) {
    // The transfer queue must not wait for later work of this queue.
    sealed_ = std::max(sealed_, before(copy, slot_));
    transfer_lock = std::unique_lock(transfer.mutex_);
  }
  const uint64_t value = transfer.add(copy, std::move(waits), renews);
  transfer.wake();
  if (copy.size >= kLargeCopy) {
    transfer.sealed_ = value;
  }
  for (Peer& peer : peers_) {
    if (peer.queue == &transfer) {
      peer.last_value = value;
    }
  }
  return {&transfer, value};
}

std::vector<Point> Queue::work_points() {
  const uint64_t last = last_point();
  std::lock_guard lock(mutex_);
  std::vector<Point> points = {{slot_, last}};
  for (const Peer& peer : peers_) {
    if (peer.queue != nullptr) {
      points.push_back({peer.queue->slot_, peer.last_value});
    }
  }
  return points;
}

void Queue::make_room() {
  while (gathered_.load(std::memory_order_relaxed) > kMaxGathered / 2 && submit_next(Patience::caller)) {
  }
}

uint64_t Queue::last_value() {
  std::lock_guard lock(mutex_);
  return next_value_ - 1;
}

uint64_t Queue::last_point() {
  std::lock_guard lock(mutex_);
  if (!incoming_.empty()) {
    start_batch();
    wake();
  }
  return next_value_ - 1;
}

uint64_t Queue::next_point() {
  std::lock_guard lock(mutex_);
  const bool open =
      !batches_.empty() && batches_.back()->size() < kBatchSize && batches_.back()->value > sealed_;
  return open ? batches_.back()->value : next_value_;
}

void Queue::submit_batches(uint64_t value, Patience patience) {
  while (submitted_.load(std::memory_order_acquire) < value && submit_next(patience)) {
  }
}

// Whether a batch appended on `device` now may wait for this batch.
bool Queue::is_ahead(uint64_t value, const Device& device) {
  return &device == &device_ ? submitted_.load(std::memory_order_acquire) >= value : timeline_.passed(value);
}

void Queue::flush(uint64_t value) {
  shared_.ending.check();
  submit_batches(value, Patience::caller);
  raise_failures(value);
}

uint64_t Queue::backlog() {
  const uint64_t last = last_value();
  return last - std::min(last, timeline_.completed());
}

bool Queue::wait(uint64_t value, uint64_t timeout_ns) {
  // With a timeout, batches that would have to wait before their submit are left to the queue's thread.
  submit_batches(value, timeout_ns == kForever ? Patience::caller : Patience::none);
  if (submitted_.load(std::memory_order_acquire) < value) {
    notify_worker();
  }
  const bool in_time = wait_until(value, timeout_ns, true);
  graveyard_.sweep();
  return in_time;
}

// Waits in slices: an unsubmitted batch may fail, another thread may find that the device is lost, and the
// caller may be interrupted.
bool Queue::wait_until(uint64_t value, uint64_t timeout_ns, bool interruptible) {
  constexpr uint64_t slice = kSlice.count();
  const int64_t begin = timeout_ns > slice && timeout_ns != kForever ? host_now() : 0;
  uint64_t left = timeout_ns;
  for (bool first = true;; first = false) {
    shared_.ending.check();
    try {
      if (timeline_.wait(value, std::min(left, slice), interruptible && first)) {
        return true;
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::device_lost) {
        std::lock_guard lock(submit_mutex_);
        lose(error);
        shared_.ending.check();
      }
      throw;
    }
    watch_time();
    if (left == 0) {
      return false;
    }
    if (interruptible) {
      check_signals();
    }
    if (timeout_ns <= slice) {
      return false;
    }
    if (timeout_ns != kForever) {
      const auto passed = static_cast<uint64_t>(host_now() - begin);
      left = timeout_ns - std::min(timeout_ns, passed);
    }
  }
}

void Queue::notify_worker() noexcept {
  std::lock_guard lock(mutex_);
  wake();
}

void Queue::request_sweep() noexcept {
  std::lock_guard lock(mutex_);
  sweep_requested_ = true;
  wake();
}

// A driver's first allocation of cached host memory takes milliseconds, so make it now instead of at a read.
void Queue::prepare_downloads() noexcept {
  try {
    std::lock_guard lock(download_mutex_);
    download_ring_.take(1);
  } catch (...) {  // the read that needs it reports the error
  }
}

void Queue::run() noexcept {
  if (slot_ == index_ && !device_.host_mapped()) {
    prepare_downloads();
  }
  std::unique_lock lock(mutex_);
  auto should_wake = [this] { return stop_ || sweep_requested_ || !batches_.empty(); };
  while (!shared_.ending.hung()) {
    for (int nap = 0; nap < kNapsBeforeSleep && !should_wake(); ++nap) {
      wake_.wait_for(lock, kNap);
    }
    asleep_ = true;
    const std::chrono::nanoseconds sleep = shared_.timeout_ns != 0 ? kSlice : kLongSleep;
    while (!wake_.wait_for(lock, sleep, should_wake) && !shared_.ending.hung()) {
      lock.unlock();
      drop_spare_pages(kLongSleep);
      watch_time();
      lock.lock();
    }
    asleep_ = false;
    if (batches_.empty() && stop_) {
      break;
    }
    do_work(lock);
  }
  has_ended_ = true;
  ended_.notify_all();
}

void Queue::do_work(std::unique_lock<std::mutex>& lock) {
  const bool work = !batches_.empty();
  if (!work) {
    sweep_requested_ = false;  // otherwise again, after the next batch
  }
  lock.unlock();
  try {
    // If there are batches, one may still run while the next gathers commands. Otherwise the thread waits in
    // order to sweep.
    const uint64_t submitted = submitted_.load();
    wait_until(work ? submitted - std::min(submitted, kBatchesInFlight) : submitted, kForever, false);
  } catch (const Error&) {
    // The device is lost: gathered batches fail.
  }
  try {
    submit_next(Patience::thread);
  } catch (const Error&) {
    // The device hangs: callers that need the work get the error.
  }
  graveyard_.sweep();
  lock.lock();
}

void Queue::stop() noexcept {
  std::lock_guard lock(mutex_);
  stop_ = true;
  wake_.notify_one();
}

void Queue::join(bool interruptible) {
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kSlice, [this] { return has_ended_; })) {
      lock.unlock();
      if (interruptible) {
        check_signals();
      }
      lock.lock();
    }
    lock.unlock();
    thread_.join();
  }
  if (!shared_.ending.reached()) {
    try {
      wait_until(submitted_.load(), kForever, interruptible);
    } catch (const Error&) {
      // The devices are checked before anything is destroyed.
    }
  }
}

void Queue::detach() noexcept {
  stop();
  if (thread_.joinable()) {
    thread_.detach();
  }
}

void Queue::free_idle_memory() noexcept {
  {
    std::lock_guard lock(submit_mutex_);
    spare_frames_.clear();
  }
  free_idle(upload_mutex_, upload_ring_);
  free_idle(download_mutex_, download_ring_);
}

}  // namespace vkd
