#include "stages/segment.hpp"

#include <unordered_set>

namespace vkd {

class Segment::LocalHazards final : public HazardTracker {
 public:
  explicit LocalHazards(std::unordered_map<Buffer*, Use>& buffers) : buffers_(buffers) { epoch = 0; }
  HazardState& state(Buffer& buffer) override { return buffers_[&buffer].state; }

 private:
  std::unordered_map<Buffer*, Use>& buffers_;
};

Segment::Segment(size_t queue_count, size_t queue, Device& device, uint32_t queue_family,
                 const std::vector<Dispatch>& dispatches, SharedState& shared)
    : Resource(queue_count), frame_(std::make_unique<Frame>(device, queue_family)) {
  std::unordered_set<Plan*> plans;
  for (const Dispatch& dispatch : dispatches) {
    plans.insert(dispatch.plan);
    for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
      buffers_[dispatch.bindings[i].buffer].writes |= dispatch.bindings[i].writes;
      writes_ |= dispatch.bindings[i].writes;
    }
  }
  plans_.assign(plans.begin(), plans.end());

  // The opening barrier makes this epoch 1; state 0 means "not touched in this segment".
  LocalHazards hazards(buffers_);
  Recorder recorder(queue, *frame_, hazards, shared, log_);
  recorder.begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  recorder.barrier();
  for (const Dispatch& dispatch : dispatches) {
    recorder.dispatch(dispatch);
  }
  commands_ = recorder.end();
  epochs_ = hazards.epoch;
}

void Segment::apply(HazardTracker& hazards) {
  const uint64_t base = hazards.epoch;
  for (const auto& [buffer, use] : buffers_) {
    HazardState& state = hazards.state(*buffer);
    if (use.state.read_epoch > 0) {
      state.read_epoch = base + use.state.read_epoch;
    }
    if (use.state.write_epoch > 0) {
      state.write_epoch = base + use.state.write_epoch;
    }
  }
  hazards.epoch = base + epochs_;
}

void Segment::mark(size_t queue, uint64_t value) noexcept {
  mark_read(queue, value);
  for (Plan* plan : plans_) {
    plan->mark_read(queue, value);
  }
  for (auto& [buffer, use] : buffers_) {
    if (use.writes) {
      buffer->mark_write(queue, value);
    } else {
      buffer->mark_read(queue, value);
    }
  }
}

}  // namespace vkd
