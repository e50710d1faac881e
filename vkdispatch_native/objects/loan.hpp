// Memory of a buffer that a program on the host uses at the same time as the device.
#pragma once

#include <memory>
#include <utility>

#include "context/instance.hpp"
#include "objects/data.hpp"
#include "objects/memory.hpp"

namespace vkd {

// Counts as one user of a memory on the host; see Sharing.
class SharingCount {
 public:
  SharingCount() = default;
  SharingCount(std::shared_ptr<Sharing> sharing, bool ordered)
      : sharing_(std::move(sharing)), ordered_(ordered) {
    sharing_->begin(ordered_);
  }
  ~SharingCount() {
    if (sharing_) {
      sharing_->end(ordered_);
    }
  }
  SharingCount(SharingCount&& other) noexcept
      : sharing_(std::move(other.sharing_)), ordered_(other.ordered_) {}
  SharingCount& operator=(SharingCount&& other) noexcept {
    std::swap(sharing_, other.sharing_);
    std::swap(ordered_, other.ordered_);
    return *this;
  }
  bool counts() const noexcept { return sharing_ != nullptr; }

 private:
  std::shared_ptr<Sharing> sharing_;
  bool ordered_ = false;
};

// Keeps the memory of one queue's copy, which may be used after the buffer is destroyed and the engine
// closed.
struct Loan {
  std::shared_ptr<Instance> instance;  // destroyed last
  std::shared_ptr<Device> device;
  std::shared_ptr<Memory> memory;
  SharingCount count;
};

}  // namespace vkd
