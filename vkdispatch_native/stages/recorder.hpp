// Records commands into command buffers, with a barrier exactly where two of them conflict.
#pragma once

#include <atomic>

#include "context/ending.hpp"
#include "stages/command.hpp"
#include "stages/frame.hpp"
#include "stages/hazards.hpp"

namespace vkd {

// Tracks the hazard states of a stream of commands, and its current epoch.
class HazardTracker {
 public:
  virtual ~HazardTracker() = default;
  virtual HazardState& state(Data& data) = 0;
  uint64_t epoch = 1;
};

// Settings and counters shared by all queues of an engine.
struct SharedState {
  bool debug = false;
  std::atomic<bool> barriers_enabled{true};  // disabled only to test the checker
  std::atomic<uint64_t> barriers{0};
  Ending ending;
  std::atomic<const std::vector<Queue*>*> queues{nullptr};  // all of them, once created
  uint64_t timeout_ns = 0;                                  // limit for a batch; 0: none
  std::atomic<uint64_t> failures{0};                        // number of failed batches
  std::atomic<uint64_t> uninitialized_images{0};            // copies; see Image::uninitialized
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

  void time() { stopwatch_ = &frame_.stopwatch(); }  // times all following commands
  void begin(VkCommandBufferUsageFlags usage);
  bool recording() const noexcept { return commands_ != VK_NULL_HANDLE; }
  VkCommandBuffer end();

  void record(const Dispatch& dispatch);
  void record(const Copy& copy);
  void record(const ImageCopy& copy);
  void record(const ImagePair& pair);
  void record(const FullBarrier&) { barrier(); }
  void record(const Timestamp& timestamp);  // its query must have been reset
  void reset(const Queries& queries, uint32_t first,
             uint32_t count);      // required before the device writes them
  void start(const Image& image);  // transition to the general layout
  void barrier();
  void host_barrier();  // makes all earlier writes visible to the host

 private:
  template <typename AnyCommand>
  void order(const AnyCommand& command, const Plan* plan);
  template <typename AnyCommand>
  void start_timing(const AnyCommand& command);
  void end_timing();
  void mark(const Plan& plan);  // records a mark before a launch of this plan
  void unbind() noexcept;
  // These two skip state that the last dispatch has already bound.
  void bind_resources(const Dispatch& dispatch, const Plan::Pipeline& pipeline);
  void push_constants(const Dispatch& dispatch, const Plan::Pipeline& pipeline);
  // Returns the dispatch's arguments, with the addresses of this queue's buffer copies filled in.
  const std::byte* complete_arguments(const Dispatch& dispatch);

  size_t queue_;
  Frame& frame_;
  HazardTracker& hazards_;
  SharedState& shared_;
  HazardLog& log_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  const Plan* bound_plan_ = nullptr;
  Stopwatch* stopwatch_ = nullptr;  // null: not profiling
  Checkpoints* const checkpoints_;  // null: the device writes no marks
};

}  // namespace vkd
