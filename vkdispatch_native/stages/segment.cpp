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

namespace {

// Resets all timestamps of a segment at once: their numbers are consecutive.
void reset_timestamps(const std::vector<Command>& commands, Recorder& recorder) {
  const Timestamp* first = nullptr;
  uint32_t count = 0;
  for (const Command& command : commands) {
    if (const Timestamp* timestamp = std::get_if<Timestamp>(&command)) {
      first = first != nullptr ? first : timestamp;
      ++count;
    }
  }
  if (first != nullptr) {
    recorder.reset(*first->queries, first->number, count);
  }
}

}  // namespace

Segment::Segment(size_t queue_count, size_t queue, Device& device, uint32_t queue_family,
                 const std::vector<Command>& commands, bool last, SharedState& shared)
    : Resource(queue_count),
      frame_(std::make_unique<Frame>(device, queue_family)),
      launches_(launches_of(commands)),
      last_(last) {
  std::unordered_set<Resource*> others;
  auto note = [&](const auto& command) {
    for_each_need(command, [&](Resource& resource) { others.insert(&resource); });
    for_each_access(command, [&](Data& data, bool reads, bool writes) {
      Use& use = data_[data.id()];
      use.data = &data;
      use.writes |= writes;
      use.needed |= reads && !use.renewed;
      host_reads_ |= writes && data.is_host_visible(queue);
    });
    for_each_renewal(command, [&](const Renewal& renewal) {
      renewals_.push_back(renewal);
      data_[renewal.data->id()].renewed |= renewal.parts == renewal.all;
    });
  };
  for (const Command& command : commands) {
    std::visit(note, command);
  }
  others_.assign(others.begin(), others.end());
  last_ = last_ && host_reads_;

  // The initial barrier makes this epoch 1; state 0 means "not accessed in this segment".
  LocalHazards hazards(data_);
  Recorder recorder(queue, *frame_, hazards, shared, log_);
  recorder.begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  reset_timestamps(commands, recorder);
  recorder.barrier();
  for (const Command& command : commands) {
    std::visit([&](const auto& each) { recorder.record(each); }, command);
  }
  if (last_) {
    recorder.host_barrier();
  }
  commands_ = recorder.end();
  marks_ = std::move(frame_->marks());
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
