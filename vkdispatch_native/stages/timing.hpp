// When commands ran on the device: two timestamps around each command, written while profiling.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context/clock.hpp"
#include "libs/error.hpp"
#include "stages/command.hpp"

namespace vkd {

// A resource that a timed dispatch used.
struct TimedResource {
  int64_t binding;  // -1: not bound
  int64_t address;  // offset of its address in the arguments; -1: none
  uint32_t texel;   // bytes per texel; 0: a buffer
  uint64_t bytes;
};

// A command and when it ran.
struct TimedCommand {
  enum class Kind : int {
    dispatch,
    write_buffer,
    read_buffer,
    write_image,
    read_image,
    copy_buffer,
    copy_image
  };

  Kind kind = Kind::dispatch;
  size_t slot = 0;  // of the queue
  uint64_t batch = 0;
  uint64_t plan = 0;  // Plan::id()
  std::string name;   // of the plan
  Groups groups{};
  uint64_t bytes = 0;  // size of a copy
  std::vector<std::byte> arguments;
  std::vector<TimedResource> resources;
  uint64_t epoch = 0;  // of the queue's hazards: a barrier separates two epochs
  int64_t begin = 0;   // ticks since the queue's clock was set; finally nanoseconds of the host clock
  int64_t end = 0;
};

TimedCommand make_timed_command(const Dispatch& dispatch);
TimedCommand make_timed_command(const Copy& copy);
TimedCommand make_timed_command(const ImageCopy& copy);
TimedCommand make_timed_command(const ImagePair& pair);

// When the host recorded and submitted a batch.
struct TimedSubmit {
  size_t slot;
  uint64_t batch;
  size_t commands;
  int64_t begin;  // nanoseconds of the host clock
  int64_t end;
};

// Everything that the queues of an engine have timed since profiling began.
struct TimingLog {
  std::atomic<int> users{0};
  std::mutex mutex;  // guards the rest
  std::vector<TimedCommand> commands;
  std::vector<TimedSubmit> submits;
  std::vector<TimedSubmit> waits;  // of the host, for batches that use memory that it shares

  // The error of times that could not be read, raised by the next query for times.
  void note_failure(const Error& error) {
    std::lock_guard lock(mutex);
    failure = std::make_unique<Error>(error);
  }

  std::unique_ptr<Error> failure;

  bool on() const noexcept { return users.load(std::memory_order_relaxed) > 0; }
};

// Extends the device's tick counter, which wraps around after 36 to 64 bits.
class TickClock {
 public:
  void set(uint64_t ticks, uint64_t mask) noexcept;
  int64_t since_set(uint64_t ticks) noexcept;  // less than half a period from the last call's ticks

 private:
  uint64_t mask_ = ~uint64_t{0};
  uint64_t last_ = 0;
  int64_t total_ = 0;
};

// The timestamps of one frame.
class Stopwatch {
 public:
  explicit Stopwatch(Device& device) : device_(device) {}
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void begin(VkCommandBuffer commands, TimedCommand&& command);
  void end(VkCommandBuffer commands);
  // The timed commands, in order; the device must have finished them.
  std::vector<TimedCommand> collect(size_t slot, uint64_t batch, TickClock& clock);

 private:
  void write(VkCommandBuffer commands, VkPipelineStageFlagBits stage, size_t query);

  Device& device_;
  std::vector<VkQueryPool> pools_;
  std::vector<TimedCommand> commands_;
};

}  // namespace vkd
