// How a queue records and submits its batches.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "context/instance.hpp"
#include "libs/error.hpp"
#include "queue/queue.hpp"

namespace vkd {

// Requires submit_mutex_. Returns the value that the device must pass before a frame is free; 0: none.
uint64_t Queue::frame_needed() noexcept {
  try {
    const bool full = in_flight_.size() >= kMaxFrames && !timeline_.passed(in_flight_.front().batch->value);
    return full && !shared_.ending.reached() ? in_flight_.front().batch->value : 0;
  } catch (...) {
    return 0;  // a lost device: the submit reports it
  }
}

// If a frame cannot be reused, or its times cannot be read, the next batch is not affected.
std::unique_ptr<Frame> Queue::take_frame() {
  while (!in_flight_.empty() && timeline_.passed(in_flight_.front().batch->value)) {
    InFlight done = std::move(in_flight_.front());
    in_flight_.pop_front();
    collect(done);
    try {
      done.frame->reset();
      spare_frames_.push_back(std::move(done.frame));
    } catch (const Error&) {
      done.frame.reset();
    }
    recycle(std::move(done.batch));
  }
  if (spare_frames_.empty()) {
    return std::make_unique<Frame>(device_, handle_.family);
  }
  std::unique_ptr<Frame> frame = std::move(spare_frames_.back());
  spare_frames_.pop_back();
  return frame;
}

// Requires submit_mutex_. The device must have finished the frame.
void Queue::collect(InFlight& done) {
  if (!done.frame->is_timed()) {
    return;
  }
  std::vector<TimedCommand> commands;
  try {
    commands = done.frame->stopwatch().collect(slot_, done.batch->value, clock_);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device_lost) {
      lose(error);
    }
    shared_.timings.note_failure(error);  // raised by the next query for times
  }
  for (TimedCommand& command : commands) {
    // A barrier delays the command, but not the timestamp before it.
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

void Queue::wait_for_lent(uint64_t value) {
  TimingLog& log = shared_.timings;
  const bool timed = log.on() && timeline_.completed() < value;
  const int64_t begin = timed ? host_now() : 0;
  wait(value, kForever);
  if (timed) {
    std::lock_guard lock(log.mutex);
    log.waits.push_back({slot_, value, 0, begin, host_now()});
  }
}

void Queue::collect_timings() {
  std::lock_guard lock(submit_mutex_);
  for (size_t i = 0; i < in_flight_.size() && timeline_.passed(in_flight_[i].batch->value); ++i) {
    collect(in_flight_[i]);
  }
}

void Queue::record(Batch& batch, Frame& frame, bool timed) {
  command_buffers_.clear();
  log_.clear();
  started_images_.clear();
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
  bool host_reads = false;  // whether the host reads the batch's writes without a copy
  auto record = [&](const auto& command) {
    if (Poison::anywhere() && skip(command, batch.value)) {
      return;
    }
    begin();
    start_images(command, recorder);
    recorder.record(command);
    host_reads = host_reads || vkd::host_reads(command, index_);
  };
  for (const Batch::Entry& entry : batch.entries()) {
    switch (entry.kind) {
      case Batch::Kind::dispatch:
        record(batch.dispatch(entry));
        break;
      case Batch::Kind::copy:
        record(entry.copy);
        host_reads |= !entry.copy.to_buffer;
        break;
      case Batch::Kind::image_copy:
        record(entry.image_copy);
        host_reads |= !entry.image_copy.to_image && entry.image_copy.other == nullptr;
        break;
      case Batch::Kind::image_pair:
        record(entry.image_pair);
        break;
      case Batch::Kind::barrier:
        record(FullBarrier{});
        break;
      case Batch::Kind::timestamp:
        begin();
        recorder.reset(*entry.timestamp.queries, entry.timestamp.number, 1);
        record(entry.timestamp);
        break;
      case Batch::Kind::image_start:
        begin();
        start_image(*entry.image, recorder);
        break;
      case Batch::Kind::renewal:
        renew(entry.renewal);
        break;
      case Batch::Kind::replay:
        if (Poison::anywhere() && skip(*entry.segment, batch.value)) {
          break;
        }
        if (shared_.uninitialized_images.load(std::memory_order_relaxed) > 0) {
          begin();
          entry.segment->visit_images([&](Image& image) {
            if (image.uninitialized(index_)) {
              start_image(image, recorder);
            }
          });
        }
        end();
        entry.segment->apply(hazards_);
        command_buffers_.push_back(entry.segment->commands());
        log_.insert(log_.end(), entry.segment->log().begin(), entry.segment->log().end());
        host_reads = (host_reads || entry.segment->host_reads()) && !entry.segment->shows_host();
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

// Whether a command is skipped because data it needs was not written. Then its own output is not written
// either.
template <typename AnyCommand>
bool Queue::skip(const AnyCommand& command, uint64_t batch) {
  if (const FailurePtr failure = source_failure(command, slot_)) {
    for_each_target(command, slot_, [&](Poison& poison) { poison.set(failure); });
    failures_.add(batch, failure);
    return true;
  }
  for_each_renewal(command, [&](const Renewal& renewal) { renew(renewal); });
  return false;
}

void Queue::renew(const Renewal& renewal) noexcept {
  if (Poison::anywhere()) {
    renewal.data->poison(slot_).clear(renewal.parts, renewal.all);
  }
}

template <typename AnyCommand>
void Queue::start_images(const AnyCommand& command, Recorder& recorder) {
  if (shared_.uninitialized_images.load(std::memory_order_relaxed) > 0) {
    for_each_access(command, [&](Data& data, bool, bool) {
      Image* image = dynamic_cast<Image*>(&data);
      if (image != nullptr && image->uninitialized(index_)) {
        start_image(*image, recorder);
      }
    });
  }
}

void Queue::start_image(Image& image, Recorder& recorder) {
  if (std::find(started_images_.begin(), started_images_.end(), &image) == started_images_.end()) {
    recorder.start(image);
    started_images_.push_back(&image);
  }
}

void Queue::submit(std::unique_ptr<Batch>& batch) {
  const bool timed = shared_.timings.on() && has_timestamps();
  const int64_t begin = timed ? host_now() : 0;
  std::unique_ptr<Frame> frame = take_frame();
  record(*batch, *frame, timed);

  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &batch->value;
  const VkSemaphore semaphore = timeline_.handle();
  std::vector<VkSemaphore> waited_for;
  std::vector<uint64_t> waited_values;
  for (const Batch::Wait& wait : batch->waits) {
    if (&wait.queue->device_ == &device_) {
      waited_for.push_back(wait.queue->timeline_.handle());
      waited_values.push_back(wait.queue->timeline_.last_submitted(wait.value));
    }
  }
  for (const Batch::Incoming& each : batch->incoming) {
    waited_for.push_back(each.semaphore);
    waited_values.push_back(each.value);
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
  if (shared_.timeout_ns != 0 && timeline_.completed() >= batch->value - 1) {
    watched_since_ = host_now();  // it begins immediately
  }
  started_images_.erase(std::remove_if(started_images_.begin(), started_images_.end(),
                                       [this](const Image* image) { return !image->uninitialized(index_); }),
                        started_images_.end());
  // After the submit, the device may finish it and other threads may destroy the images.
  std::optional<Graveyard::Pause> pause;
  if (!started_images_.empty()) {
    pause.emplace(graveyard_);
  }
  VkResult result = VK_SUCCESS;
  {
    std::lock_guard lock(*handle_.mutex);
    result = device_.fn().vkQueueSubmit(handle_.handle, 1, &info, VK_NULL_HANDLE);
  }
  const uint64_t value = batch->value;
  const size_t size = batch->size();
  if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST) {  // a lost device may have begun it
    in_flight_.push_back({std::move(frame), std::move(batch)});
  }
  check(result, "vkQueueSubmit");
  for (Image* image : started_images_) {
    image->set_uninitialized(index_, false);
    shared_.uninitialized_images.fetch_sub(1);
  }
  pause.reset();
  if (timed) {
    std::lock_guard lock(shared_.timings.mutex);
    shared_.timings.submits.push_back({slot_, value, size, begin, host_now()});
  }
}

// Everything that the oldest batch waits for is submitted first: queues may share a VkQueue, where waiting
// for a later submit would be a deadlock. Devices cannot wait for each other, so the host waits for them. No
// thread waits for a device while it holds submit_mutex_: other threads need it and must not wait.
bool Queue::submit_next(Patience patience) {
  const bool may_wait = patience != Patience::none;
  const bool interruptible = patience == Patience::caller;
  uint64_t cleared = 0;  // the batch whose waits are done
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
      const bool ready = oldest.waits.empty() || oldest.value == cleared || shared_.ending.reached();
      if (needed == 0 && ready) {
        std::unique_ptr<Batch> batch = std::move(batches_.front());
        batches_.pop_front();
        lock.unlock();
        submit_or_fail(std::move(batch));
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
      wait_until(needed, kForever, interruptible);
    }
    for (const Batch::Wait& wait : waits) {
      wait.queue->submit_batches(wait.value, patience);
      if (!may_wait && !wait.queue->is_ahead(wait.value, device_)) {
        return false;
      }
      if (&wait.queue->device_ != &device_) {
        wait.queue->wait_until(wait.value, kForever, interruptible);
      }
    }
  }
}

// A memory shortage may pass after idle memory is freed: a batch fails only at the second attempt.
void Queue::submit_or_fail(std::unique_ptr<Batch> batch) {
  const Batch& settled = *batch;  // stays valid: submit() moves only the pointer
  const uint64_t value = batch->value;
  const size_t size = batch->size();
  for (bool tried = false;; tried = true) {
    try {
      shared_.ending.check();
      submit(batch);
      break;
    } catch (const Error& error) {
      distrust_hazards_ = true;
      if (error.kind() == ErrorKind::device_lost) {
        lose(error);
      }
      if (error.kind() != ErrorKind::out_of_memory || tried) {
        fail(settled, error);
        break;
      }
    } catch (const std::bad_alloc&) {
      distrust_hazards_ = true;
      if (tried) {
        fail(settled, Error(ErrorKind::out_of_memory, "out of host memory"));
        break;
      }
    }
    spare_frames_.clear();
    device_.free_idle_memory();
  }
  submitted_.store(value, std::memory_order_release);
  gathered_.fetch_sub(size, std::memory_order_relaxed);
  if (batch) {
    recycle(std::move(batch));
  }
}

void Queue::recycle(std::unique_ptr<Batch> batch) {
  batch->clear();
  std::lock_guard lock(mutex_);
  spare_batches_.push_back(std::move(batch));
}

// Requires submit_mutex_. Everything that waits for the batch or needs its output gets the error.
void Queue::fail(const Batch& batch, const Error& error) {
  const std::string where = "queue " + std::to_string(index_) + ": ";
  const std::string work = describe_launches(batch);
  const auto failure = std::make_shared<Failure>(
      Error(error.kind(), where + error.what() + (work.empty() ? "" : "; not run: " + work)));
  const auto poison_targets = [&](const auto& command) {
    for_each_target(command, slot_, [&](Poison& poison) { poison.set(failure); });
  };
  // Commands after a renewal write all of the data, or poison it themselves.
  batch.for_each_command(poison_targets, [&](const Renewal& renewal) { renew(renewal); });
  for (const Batch::Entry& entry : batch.entries()) {
    if (entry.kind == Batch::Kind::image_start && !entry.image->uninitialized(index_)) {
      entry.image->set_uninitialized(index_, true);
      shared_.uninitialized_images.fetch_add(1);
    }
  }
  shared_.failures.fetch_add(1);
  failures_.add(batch.value, failure);
  timeline_.skip(batch.value);
}

// Requires submit_mutex_.
void Queue::lose(const Error& error) {
  if (!shared_.ending.reached()) {
    const std::string text = std::string("the device was lost: ") + error.what();
    shared_.ending.set(Error(ErrorKind::device_lost, text + describe_loss()), false);
  }
}

// Requires submit_mutex_. Text for the end of a message. The queue that detects the loss need not be the one
// that caused it.
std::string Queue::describe_loss() noexcept {
  constexpr int kTries = 20;
  try {
    std::string text;
    const std::vector<Queue*>* queues = shared_.queues.load();
    for (Queue* queue : queues != nullptr ? *queues : std::vector<Queue*>{this}) {
      std::unique_lock lock(queue->submit_mutex_, std::defer_lock);
      // Two queues that lose the device at once would deadlock: one omits the other's work.
      for (int tries = 0; queue != this && !lock.try_lock() && tries < kTries; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const std::string work = queue == this || lock.owns_lock() ? queue->describe_own_work(true) : "";
      text += work.empty() ? "" : "; queue " + std::to_string(queue->index_) + ": " + work;
    }
    const std::string cause = describe_cause(device_, text.empty());
    return cause.empty() ? text : text + "; " + cause;
  } catch (...) {  // out of memory for the text
    return {};
  }
}

std::string Queue::describe_work(bool lost) {
  std::lock_guard lock(submit_mutex_);
  return describe_own_work(lost);
}

// Requires submit_mutex_.
std::string Queue::describe_own_work(bool lost) {
  std::vector<Pending> pending;
  std::lock_guard lock(mutex_);
  const Graveyard::Pause pause(graveyard_);
  const uint64_t completed = lost ? timeline_.known() : timeline_.completed();
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    if (in_flight_[i].batch->value > completed) {
      pending.push_back({in_flight_[i].batch.get(), in_flight_[i].frame.get()});
    }
  }
  for (size_t i = 0; i < batches_.size(); ++i) {
    pending.push_back({batches_[i].get(), nullptr});
  }
  return vkd::describe_work(device_, handle_.handle, index_, lost, pending);
}

// A batch has exceeded the context's timeout: nothing can stop it.
void Queue::watch_time() noexcept {
  if (shared_.timeout_ns == 0) {
    return;
  }
  const std::unique_lock lock(submit_mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    try {
      end_if_late();
    } catch (const std::exception&) {
      return;  // a lost device: callers that wait for it get the error
    }
  }
}

// Whether another API has signalled a value.
bool Queue::has_arrived(const Batch::Incoming& incoming) {
  uint64_t signalled = 0;
  const VkResult result =
      device_.fn().vkGetSemaphoreCounterValue(device_.handle(), incoming.semaphore, &signalled);
  return result == VK_SUCCESS && signalled >= incoming.value;
}

// Requires submit_mutex_.
void Queue::end_if_late() {
  const uint64_t done = timeline_.completed();
  const int64_t now = host_now();
  const Batch* next = nullptr;
  for (size_t i = 0; i < in_flight_.size() && next == nullptr; ++i) {
    next = in_flight_[i].batch->value > done ? in_flight_[i].batch.get() : nullptr;
  }
  const bool runs =
      next != nullptr &&
      std::all_of(next->waits.begin(), next->waits.end(),
                  [](const Batch::Wait& wait) { return wait.queue->timeline_.passed(wait.value); }) &&
      std::all_of(next->incoming.begin(), next->incoming.end(),
                  [this](const Batch::Incoming& each) { return has_arrived(each); });
  if (!runs || done != std::exchange(watched_, done)) {
    watched_since_ = now;
    return;
  }
  if (static_cast<uint64_t>(now - watched_since_) > shared_.timeout_ns) {
    std::ostringstream text;
    text << "queue " << index_ << ": a batch has run for longer than the context's timeout of "
         << static_cast<double>(shared_.timeout_ns) * 1e-9 << " s; " << describe_own_work(false);
    shared_.ending.set(Error(ErrorKind::device_timeout, text.str()), true);
  }
}

}  // namespace vkd
