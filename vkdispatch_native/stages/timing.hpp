// When commands ran on the device: two timestamps around each, written while somebody profiles.
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

// What a timed dispatch bound.
struct TimedResource {
  int64_t binding;  // -1: it was not bound
  int64_t address;  // where its address lies in the arguments; -1: nowhere
  uint32_t texel;   // bytes; 0: a buffer
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
  uint64_t bytes = 0;  // that were copied
  std::vector<std::byte> arguments;
  std::vector<TimedResource> resources;
  uint64_t epoch = 0;  // of the queue's hazards: a barrier stands between two epochs
  int64_t begin =
      0;  // first ticks since the queue's clock was set, in the end nanoseconds of the host's clock
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
  int64_t begin;  // nanoseconds of the host's clock
  int64_t end;
};

// What all queues of an engine have timed since the first of those who profile began.
struct TimingLog {
  std::atomic<int> users{0};
  std::mutex mutex;  // guards the rest
  std::vector<TimedCommand> commands;
  std::vector<TimedSubmit> submits;

  // Of times that could not be read: whoever asks for them next is told.
  void note_failure(const Error& error) {
    std::lock_guard lock(mutex);
    failure = std::make_unique<Error>(error);
  }

  std::unique_ptr<Error> failure;

  bool on() const noexcept { return users.load(std::memory_order_relaxed) > 0; }
};

// Counts on where the device's ticks come round to zero: they have 36 to 64 bits.
class TickClock {
 public:
  void set(uint64_t ticks, uint64_t mask) noexcept;
  int64_t since_set(uint64_t ticks) noexcept;  // less than half a round from the last ones asked for

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
  // What was timed, in order; the device must be done with it.
  std::vector<TimedCommand> collect(size_t slot, uint64_t batch, TickClock& clock);

 private:
  void write(VkCommandBuffer commands, VkPipelineStageFlagBits stage, size_t query);

  Device& device_;
  std::vector<VkQueryPool> pools_;
  std::vector<TimedCommand> commands_;
};

}  // namespace vkd
