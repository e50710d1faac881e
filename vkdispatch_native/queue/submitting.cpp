// How a queue records its batches and gives them to the device.
#include <algorithm>
#include <iterator>
#include <utility>

#include "context/instance.hpp"
#include "libs/error.hpp"
#include "queue/queue.hpp"

namespace vkd {

namespace {

constexpr uint64_t kForever = ~uint64_t{0};

}  // namespace

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
    recycle(std::move(in_flight_.front().batch));
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
  auto record = [&](const auto& command) {
    begin();
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
        recorder.start(*entry.image);
        break;
      case Batch::Kind::replay:
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

void Queue::submit(std::unique_ptr<Batch>& given) {
  Batch& batch = *given;
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
  in_flight_.push_back({std::move(frame), std::move(given), batch.value});
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
  const uint64_t value = batch->value;
  const size_t size = batch->size();
  try {
    submit(batch);
  } catch (...) {
    keep_failure();
    distrust_hazards_ = true;
    abandon(value);
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

std::string Queue::describe_work(bool lost) {
  std::vector<Pending> pending;
  std::lock_guard submit_lock(submit_mutex_);
  std::lock_guard lock(mutex_);
  const uint64_t completed = lost ? timeline_.known() : timeline_.completed();
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    if (in_flight_[i].value > completed) {
      pending.push_back({in_flight_[i].batch.get(), in_flight_[i].frame.get()});
    }
  }
  for (size_t i = 0; i < batches_.size(); ++i) {
    pending.push_back({batches_[i].get(), nullptr});
  }
  return vkd::describe_work(device_, handle_.handle, index_, lost, pending);
}

void Queue::await(uint64_t value) noexcept {
  try {
    timeline_.wait(value, kForever, false);
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
    timeline_.wait(before, kForever, false);
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

}  // namespace vkd
