// A sequence of commands that is recorded once and replayed unchanged.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "stages/recorder.hpp"

namespace vkd {

class Segment final : public Resource {
 public:
  // Records for one queue. The command buffer starts with a barrier, so it may follow anything, including
  // itself. `last`: the host may read what this and earlier segments have written.
  Segment(size_t queue_count, size_t queue, Device& device, uint32_t queue_family,
          const std::vector<Command>& commands, bool last, SharedState& shared);
  ~Segment() override { release(); }
  void release() noexcept override { frame_.reset(); }

  VkCommandBuffer commands() const noexcept { return commands_; }
  const HazardLog& log() const noexcept { return log_; }
  const std::vector<Launch>& launches() const noexcept { return launches_; }
  const std::vector<Mark>& marks() const noexcept { return marks_; }
  bool host_reads() const noexcept { return host_reads_; }  // the host reads its writes without a copy
  bool shows_host() const noexcept { return last_; }        // makes all earlier writes visible to the host
  // The last command of a transfer queue that a replay must not overtake.
  uint64_t transfers_before(size_t transfer_slot) const noexcept;

  // Like for_each_source, for_each_target and for_each_renewal for a command, but for the whole segment.
  template <typename Visit>
  void visit_sources(size_t slot, Visit visit) const {
    for (const auto& [id, use] : data_) {
      if (use.needed) {
        visit(use.data->poison(slot));
      }
    }
  }
  template <typename Visit>
  void visit_targets(size_t slot, Visit visit) const {
    for (const auto& [id, use] : data_) {
      if (use.writes && !use.data->steady()) {
        visit(use.data->poison(slot));
      }
    }
  }
  template <typename Visit>
  void visit_renewals(Visit visit) const {
    std::for_each(renewals_.begin(), renewals_.end(), visit);
  }
  template <typename Visit>
  void visit_images(Visit visit) const {
    for (const auto& [id, use] : data_) {
      if (Image* image = dynamic_cast<Image*>(use.data)) {
        visit(*image);
      }
    }
  }

  // Applies the effects of a replay on every resource to the queue's own tracker.
  void apply(HazardTracker& hazards);

  // Marks this segment and everything it refers to as used by timeline value `value`.
  void mark(size_t queue, uint64_t value) noexcept;

 private:
  struct Use {
    Data* data = nullptr;  // one of those on this memory
    HazardState state;
    bool writes = false;
    bool needed = false;   // reads contents from before the segment
    bool renewed = false;  // completely overwritten before it is read
  };
  class LocalHazards;

  std::unique_ptr<Frame> frame_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  HazardLog log_;
  std::vector<Launch> launches_;
  std::vector<Mark> marks_;
  std::unordered_map<uint64_t, Use> data_;  // by Data::id()
  std::vector<Resource*> others_;           // other resources that it uses
  std::vector<Renewal> renewals_;
  uint64_t epochs_ = 0;  // number of barriers inside
  bool host_reads_ = false;
  bool last_;
};

// The same functions as for commands.
template <typename Visit>
void for_each_source(const Segment& segment, size_t slot, Visit visit) {
  segment.visit_sources(slot, visit);
}
template <typename Visit>
void for_each_target(const Segment& segment, size_t slot, Visit visit) {
  segment.visit_targets(slot, visit);
}
template <typename Visit>
void for_each_renewal(const Segment& segment, Visit visit) {
  segment.visit_renewals(visit);
}

}  // namespace vkd
