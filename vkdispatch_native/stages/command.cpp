#include "stages/command.hpp"

namespace vkd {

void Batch::clear() noexcept {
  waits.clear();
  incoming.clear();
  entries_.clear();
  bindings_.clear();
  arguments_.clear();
}

void Batch::add(const Dispatch& dispatch) {
  Entry entry{};
  entry.kind = Kind::dispatch;
  entry.dispatch = {dispatch.plan,
                    dispatch.groups,
                    static_cast<uint32_t>(bindings_.size()),
                    dispatch.binding_count,
                    static_cast<uint32_t>(arguments_.size()),
                    dispatch.argument_size,
                    dispatch.uniform_binding};
  bindings_.insert(bindings_.end(), dispatch.bindings, dispatch.bindings + dispatch.binding_count);
  arguments_.insert(arguments_.end(), dispatch.arguments, dispatch.arguments + dispatch.argument_size);
  entries_.push_back(entry);
}

void Batch::add(const Copy& copy) {
  Entry entry{};
  entry.kind = Kind::copy;
  entry.copy = copy;
  entries_.push_back(entry);
}

void Batch::add(const ImageCopy& copy) {
  Entry entry{};
  entry.kind = Kind::image_copy;
  entry.image_copy = copy;
  entries_.push_back(entry);
}

void Batch::add(const ImagePair& pair) {
  Entry entry{};
  entry.kind = Kind::image_pair;
  entry.image_pair = pair;
  entries_.push_back(entry);
}

void Batch::add(const FullBarrier&) {
  Entry entry{};
  entry.kind = Kind::barrier;
  entries_.push_back(entry);
}

void Batch::add(const Timestamp& timestamp) {
  Entry entry{};
  entry.kind = Kind::timestamp;
  entry.timestamp = timestamp;
  entries_.push_back(entry);
}

void Batch::add(Image& image) {
  Entry entry{};
  entry.kind = Kind::image_start;
  entry.image = &image;
  entries_.push_back(entry);
}

void Batch::add(const Renewal& renewal) {
  Entry entry{};
  entry.kind = Kind::renewal;
  entry.renewal = renewal;
  entries_.push_back(entry);
}

void Batch::add(Segment& segment) {
  Entry entry{};
  entry.kind = Kind::replay;
  entry.segment = &segment;
  entries_.push_back(entry);
}

Dispatch Batch::dispatch(const Entry& entry) const noexcept {
  const auto& d = entry.dispatch;
  return {d.plan,
          d.groups,
          bindings_.data() + d.first_binding,
          d.binding_count,
          arguments_.data() + d.first_argument,
          d.argument_size,
          d.uniform_binding};
}

}  // namespace vkd
