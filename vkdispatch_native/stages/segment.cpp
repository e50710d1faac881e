#include "stages/segment.hpp"

#include <algorithm>
#include <unordered_set>

namespace vkd {

class Segment::LocalHazards final : public HazardTracker {
 public:
  explicit LocalHazards(std::unordered_map<uint64_t, Use>& data) : data_(data) { epoch = 0; }
  HazardState& state(Data& data) override { return data_[data.id()].state; }

 private:
  std::unordered_map<uint64_t, Use>& data_;
};

Segment::Segment(size_t queue_count, size_t queue, Device& device, uint32_t queue_family,
                 const std::vector<Dispatch>& dispatches, SharedState& shared)
    : Resource(queue_count), frame_(std::make_unique<Frame>(device, queue_family)) {
  std::unordered_set<Resource*> others;
  for (const Dispatch& dispatch : dispatches) {
    others.insert(dispatch.plan);
    host_reads_ = host_reads_ || vkd::host_reads(dispatch, queue);
    for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
      const Binding& binding = dispatch.bindings[i];
      Use& use = data_[binding.data().id()];
      use.data = &binding.data();
      use.writes |= binding.writes;
      if (binding.sampler != nullptr) {
        others.insert(binding.sampler);
      }
    }
  }
  others_.assign(others.begin(), others.end());

  // The opening barrier makes this epoch 1; state 0 means "not touched in this segment".
  LocalHazards hazards(data_);
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
  for (const auto& [id, use] : data_) {
    HazardState& state = hazards.state(*use.data);
    if (use.state.read_epoch > 0) {
      state.read_epoch = base + use.state.read_epoch;
    }
    if (use.state.write_epoch > 0) {
      state.write_epoch = base + use.state.write_epoch;
    }
  }
  hazards.epoch = base + epochs_;
}

uint64_t Segment::transfers_before(size_t transfer_slot) const noexcept {
  uint64_t value = 0;
  for (const auto& [id, use] : data_) {
    value =
        std::max(value, use.writes ? use.data->last_use(transfer_slot) : use.data->last_write(transfer_slot));
  }
  return value;
}

void Segment::mark(size_t queue, uint64_t value) noexcept {
  mark_read(queue, value);
  for (Resource* other : others_) {
    other->mark_read(queue, value);
  }
  for (const auto& [id, use] : data_) {
    if (use.writes) {
      use.data->mark_write(queue, value);
    } else {
      use.data->mark_read(queue, value);
    }
  }
}

}  // namespace vkd
