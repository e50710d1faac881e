// Records commands into command buffers, with a barrier exactly where two of them conflict.
#pragma once

#include <atomic>

#include "context/ending.hpp"
#include "stages/command.hpp"
#include "stages/frame.hpp"
#include "stages/hazards.hpp"

namespace vkd {

// Where the hazard states of a stream of commands live, and the epoch that it has reached.
class HazardTracker {
 public:
  virtual ~HazardTracker() = default;
  virtual HazardState& state(Data& data) = 0;
  uint64_t epoch = 1;
};

// Switches and counters that all queues of an engine share.
struct SharedState {
  bool debug = false;
  std::atomic<bool> barriers_enabled{true};  // off only to show that the checker notices
  std::atomic<uint64_t> barriers{0};
  Ending ending;
  std::atomic<const std::vector<Queue*>*> queues{nullptr};  // all, once they are there
  uint64_t timeout_ns = 0;                                  // that a batch may take; 0: any
  std::atomic<uint64_t> failures{0};                        // batches that did not run
  std::atomic<uint64_t> uninitialized_images{0};            // copies, see Image::uninitialized
  TimingLog timings;
};

class Recorder {
 public:
  Recorder(size_t queue, Frame& frame, HazardTracker& hazards, SharedState& shared, HazardLog& log)
      : queue_(queue),
        frame_(frame),
        hazards_(hazards),
        shared_(shared),
        log_(log),
        checkpoints_(frame.device().checkpoints()) {}

  void time() { stopwatch_ = &frame_.stopwatch(); }  // what is recorded from here on
  void begin(VkCommandBufferUsageFlags usage);
  bool recording() const noexcept { return commands_ != VK_NULL_HANDLE; }
  VkCommandBuffer end();

  void record(const Dispatch& dispatch);
  void record(const Copy& copy);
  void record(const ImageCopy& copy);
  void record(const ImagePair& pair);
  void record(const FullBarrier&) { barrier(); }
  void record(const Timestamp& timestamp);                             // of a query that was reset
  void reset(const Queries& queries, uint32_t first, uint32_t count);  // before the device writes them
  void start(const Image& image);  // its first command: from no layout to the general one
  void barrier();
  void host_barrier();  // makes everything written so far visible to the host

 private:
  template <typename AnyCommand>
  void order(const AnyCommand& command, const Plan* plan);
  template <typename AnyCommand>
  void start_timing(const AnyCommand& command);
  void end_timing();
  void mark(const Plan& plan);  // what comes next is a launch of it
  void unbind() noexcept;
  // These two leave out what the last dispatch has left as it is to be.
  void bind_resources(const Dispatch& dispatch, const Plan::Pipeline& pipeline);
  void push_constants(const Dispatch& dispatch, const Plan::Pipeline& pipeline);
  // The dispatch's arguments, with the addresses of this queue's copies of buffers filled in.
  const std::byte* complete_arguments(const Dispatch& dispatch);

  size_t queue_;
  Frame& frame_;
  HazardTracker& hazards_;
  SharedState& shared_;
  HazardLog& log_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  const Plan* bound_plan_ = nullptr;
  Stopwatch* stopwatch_ = nullptr;  // null: nobody profiles
  Checkpoints* const checkpoints_;  // null: the device leaves no marks
};

}  // namespace vkd
