#include "queue/crossing.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "libs/copy.hpp"
#include "libs/error.hpp"
#include "libs/pages.hpp"

namespace vkd {

namespace {

constexpr VkDeviceSize kLargestPart = VkDeviceSize{8} << 20;
constexpr VkDeviceSize kLargestMovedPart = VkDeviceSize{16} << 20;  // the copying threads must be woken first
constexpr VkDeviceSize kSmallestPart = VkDeviceSize{1} << 20;
constexpr VkDeviceSize kFewParts = 8;  // with fewer, one device mostly waits for the other
constexpr VkDeviceSize kSmallBlock = DevicePages::kAlignment;

VkDeviceSize part_size(VkDeviceSize size, VkDeviceSize largest) {
  const VkDeviceSize share = (size / kFewParts + kSmallestPart - 1) / kSmallestPart * kSmallestPart;
  return std::clamp(share, kSmallestPart, largest);
}

}  // namespace

// Memory that both devices import, or two memories between which the host copies.
class Crossing::Block final : public Data {
 public:
  struct Common {};
  Block(size_t queue_count, Device& source, Device& target, VkDeviceSize size, Common)
      : Data(queue_count), pages_(std::in_place, size), source_(source, *pages_), target_(target, *pages_) {
    poison(0).disown();
  }
  Block(size_t queue_count, Device& source, Device& target, VkDeviceSize size)
      : Data(queue_count),
        source_(source, size, MemoryUse::download, true),
        target_(target, size, MemoryUse::upload, true) {
    poison(0).disown();
  }
  ~Block() override { release(); }

  void release() noexcept override {
    source_.release();
    target_.release();
    pages_.reset();
  }
  const char* noun() const noexcept override { return "memory between devices"; }
  bool shares_memory() const noexcept override { return true; }  // a failure of one side affects the other
  VkDeviceSize size() const noexcept override { return source_.size(); }

  bool is_shared_by_devices() const noexcept { return pages_.has_value(); }
  VkBuffer source() const noexcept { return source_.handle(); }
  VkBuffer target() const noexcept { return target_.handle(); }
  void move(VkDeviceSize size) const { copy_bytes(target_.mapped(), source_.mapped(), size); }

  Batch::Wait emptied{nullptr, 0};  // null: never used

 private:
  std::optional<DevicePages> pages_;
  Memory source_, target_;
};

Crossing::Crossing(size_t queue_count, Device& source, Device& target, Graveyard& graveyard)
    : queue_count_(queue_count),
      source_(source),
      target_(target),
      graveyard_(graveyard),
      imports_(source.imports_pages() && target.imports_pages()) {}

Crossing::~Crossing() = default;

// Requires mutex_.
VkDeviceSize Crossing::largest_part() const noexcept {
  return imports_ ? kLargestPart : kLargestMovedPart;
}

// Requires mutex_.
Crossing::Block& Crossing::take_block(VkDeviceSize size) {
  std::unique_ptr<Block>& block = blocks_[std::exchange(next_, (next_ + 1) % kBlocks)];
  if (block && block->size() >= size) {
    return *block;
  }
  if (block) {
    graveyard_.retire(std::move(block));
  }
  const VkDeviceSize room = size <= kSmallBlock ? kSmallBlock : largest_part();
  if (imports_) {
    try {
      block = std::make_unique<Block>(queue_count_, source_, target_, room, Block::Common{});
    } catch (const Error&) {
      imports_ = false;  // some drivers cannot import the same pages twice
    }
  }
  if (!block) {
    block = std::make_unique<Block>(queue_count_, source_, target_, room);
  }
  return *block;
}

// Requires mutex_.
Crossing::Part Crossing::fill(Buffer& buffer, VkDeviceSize offset, VkDeviceSize size, Queue& from) {
  Block& block = take_block(size);
  std::vector<Batch::Wait> emptied;
  if (block.emptied.queue != nullptr) {
    emptied.push_back(block.emptied);
  }
  const Copy copy{&buffer, offset, block.source(), 0, size, false, &block, nullptr};
  return {&block, offset, size, from.transfer(copy, std::move(emptied), true)};
}

// Requires mutex_.
void Crossing::pass_on(const Part& part, Buffer& buffer, Queue& to) {
  Block& block = *part.block;
  if (!block.is_shared_by_devices()) {
    part.filled.queue->wait(part.filled.value, kForever);
    block.move(part.size);
  }
  const Copy copy{&buffer, part.offset, block.target(), 0, part.size, true, &block, nullptr};
  block.emptied = to.transfer(copy, {part.filled}, part.offset == 0);
  if (pending_.full()) {
    pending_.pop_front();  // already submitted: a later part was waited for
  }
  pending_.push_back(block.emptied);
}

void Crossing::copy(Buffer& buffer, Queue& from, Queue& to) {
  FixedRing<Part, kBlocks> filled;
  std::unique_lock lock(mutex_);
  const VkDeviceSize most = part_size(buffer.size(), largest_part());
  for (VkDeviceSize offset = 0; offset < buffer.size(); offset += most) {
    while (filled.empty() && pending_.size() >= kMostPending) {
      const Batch::Wait oldest = pending_.pop_front();
      lock.unlock();
      oldest.queue->submit_up_to(oldest.value);
      lock.lock();
    }
    filled.push_back(fill(buffer, offset, std::min(most, buffer.size() - offset), from));
    while (!filled.empty() &&
           (filled.front().block->is_shared_by_devices() || filled.size() > kFilledAhead)) {
      pass_on(filled.pop_front(), buffer, to);
    }
  }
  while (!filled.empty()) {
    pass_on(filled.pop_front(), buffer, to);
  }
}

void Crossing::free_idle_memory() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  for (size_t i = 0; lock.owns_lock() && i < kBlocks; ++i) {
    if (blocks_[i]) {
      graveyard_.retire(std::move(blocks_[i]));
    }
  }
}

}  // namespace vkd
