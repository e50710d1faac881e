// How a queue copies between host memory and its buffers and images.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libs/copy.hpp"
#include "libs/ring.hpp"
#include "queue/queue.hpp"

namespace vkd {

namespace {

constexpr size_t kCopiesUnderWay = 2;  // on host threads, so that they never pause between copies

}  // namespace

void Queue::prepare(StagingRing& ring, VkDeviceSize total) {
  if (!ring.suits(total)) {
    wait(ring.busy_until(), kForever);
    ring.resize_for(total);
  }
}

void Queue::free_idle(std::mutex& mutex, StagingRing& ring) noexcept {
  const std::unique_lock lock(mutex, std::try_to_lock);
  try {
    if (lock.owns_lock() && timeline_.passed(ring.busy_until())) {
      ring.free();
    }
  } catch (const Error&) {
    return;  // a lost device: the memory is freed when the engine is closed
  }
}

// Threads fill blocks while the device empties earlier ones.
template <typename Next, typename Append>
void Queue::stream_up(const std::byte* data, VkDeviceSize total, Next next, Append append) {
  struct Piece {
    StagingSlice slice;
    std::shared_ptr<CopyJob> job;
  };
  std::lock_guard lock(upload_mutex_);
  prepare(upload_ring_, total);
  FixedRing<Piece, kCopiesUnderWay> pieces;  // being filled
  auto give_oldest = [&] {
    finish_copy(pieces.front().job);
    const StagingSlice slice = pieces.pop_front().slice;
    const uint64_t value = append(slice);
    upload_ring_.in_use(slice, value);
    if (total > upload_ring_.block_size()) {
      submit_batches(value, Patience::caller);  // otherwise the queue's thread submits it
    }
  };
  try {
    for (VkDeviceSize size = next(upload_ring_.block_size()); size > 0;
         size = next(upload_ring_.block_size())) {
      if (pieces.full()) {
        give_oldest();
      }
      wait(upload_ring_.busy_until(size), kForever);
      const StagingSlice slice = upload_ring_.take(size);
      pieces.push_back({slice, start_copy(slice.mapped, data, size)});
      data += size;
    }
    while (!pieces.empty()) {
      give_oldest();
    }
  } catch (...) {
    while (!pieces.empty()) {
      finish_copy(pieces.pop_front().job);  // no thread may still be reading `data`
    }
    throw;
  }
}

// The device fills blocks while threads empty earlier ones.
template <typename Next, typename Append>
void Queue::stream_down(std::byte* data, VkDeviceSize total, Next next, Append append) {
  struct Piece {
    StagingSlice slice;
    uint64_t value;
    std::byte* target;
  };
  std::lock_guard lock(download_mutex_);
  prepare(download_ring_, total);
  if (std::exchange(download_abandoned_, false)) {  // interrupted copies may still fail
    wait(download_ring_.busy_until(), kForever);
  }
  download_ring_.poison().clear();
  FixedRing<Piece, StagingRing::kBlocks> pieces;                       // appended
  FixedRing<std::shared_ptr<CopyJob>, StagingRing::kBlocks + 1> jobs;  // being copied out
  auto finish_oldest = [&] { finish_copy(jobs.pop_front()); };
  auto copy_oldest = [&] {
    wait(pieces.front().value, kForever);
    download_ring_.poison().check();
    const Piece piece = pieces.pop_front();
    jobs.push_back(start_copy(piece.target, piece.slice.mapped, piece.slice.size));
    while (jobs.size() > kCopiesUnderWay) {
      finish_oldest();
    }
  };
  try {
    for (VkDeviceSize size = next(download_ring_.block_size()); size > 0;
         size = next(download_ring_.block_size())) {
      // The next block in the ring must have been copied out before the device overwrites it.
      while (pieces.size() + jobs.size() >= StagingRing::kBlocks - 1) {
        if (pieces.empty() || jobs.size() >= kCopiesUnderWay) {
          finish_oldest();
        } else {
          copy_oldest();
        }
      }
      wait(download_ring_.busy_until(size), kForever);
      const StagingSlice slice = download_ring_.take(size);
      const uint64_t value = append(slice);
      download_ring_.in_use(slice, value);
      submit_batches(value, Patience::caller);
      pieces.push_back({slice, value, data});
      data += size;
    }
    while (!pieces.empty()) {
      copy_oldest();
    }
    while (!jobs.empty()) {
      finish_oldest();
    }
  } catch (...) {
    while (!jobs.empty()) {
      finish_oldest();  // no thread may still be writing to `data`
    }
    download_abandoned_ = true;
    throw;
  }
}

uint64_t Queue::upload(Buffer& buffer, VkDeviceSize offset, const std::byte* data, VkDeviceSize size,
                       Pinned* pinned) {
  if (std::byte* mapped = buffer.memory(index_).mapped()) {
    copy_bytes(mapped + offset, data, size);
    if (offset == 0 && size == buffer.size()) {
      buffer.poison(slot_).clear();
    }
    return 0;
  }
  if (pinned != nullptr && &pinned->device() == &device_) {
    const auto start = static_cast<VkDeviceSize>(data - pinned->data());
    const Copy copy{&buffer, offset, pinned->memory().handle(), start, size, true, pinned, nullptr};
    return append_copy(copy);
  }
  if (offset == 0 && size == buffer.size()) {
    append(Renewal{&buffer, ~uint32_t{0}, ~uint32_t{0}});
  }
  // Pieces are filled slightly ahead of the commands that copy them.
  VkDeviceSize filled = 0, copied = 0;
  stream_up(
      data, size,
      [&](VkDeviceSize most) {
        const VkDeviceSize piece = std::min(most, size - filled);
        filled += piece;
        return piece;
      },
      [&](const StagingSlice& slice) {
        const VkDeviceSize start = offset + copied;
        copied += slice.size;
        return append_copy(
            Copy{&buffer, start, slice.buffer, slice.offset, slice.size, true, nullptr, nullptr});
      });
  return 0;
}

void Queue::download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size) {
  if (const std::byte* mapped = buffer.memory(index_).mapped()) {
    buffer.poison(slot_).check();
    copy_bytes(data, mapped + offset, size);
    return;
  }
  stream_down(
      data, size, [&](VkDeviceSize most) { return std::min(most, size); },
      [&](const StagingSlice& slice) {
        const Copy copy{&buffer,    offset, slice.buffer, slice.offset,
                        slice.size, false,  nullptr,      &download_ring_.poison()};
        offset += slice.size;
        size -= slice.size;
        return append_copy(copy);
      });
}

Reading Queue::begin_download(Buffer& buffer, VkDeviceSize offset, std::byte* data, VkDeviceSize size,
                              Pinned* pinned) {
  if (buffer.memory(index_).mapped() != nullptr || size == 0) {
    return {};
  }
  if (pinned != nullptr && &pinned->device() == &device_) {
    const auto start = static_cast<VkDeviceSize>(data - pinned->data());
    const Copy copy{&buffer, offset, pinned->memory().handle(), start, size, false, pinned, nullptr};
    return {append_copy(copy), Landing::kNone, size};
  }
  const int part = size <= Landing::kPart ? landing_.take() : Landing::kNone;
  if (part == Landing::kNone) {
    return {};
  }
  try {
    const Copy copy{&buffer, offset, landing_.buffer(), Landing::offset(part),
                    size,    false,  nullptr,           &landing_.poison(part)};
    return {append_copy(copy), part, size};
  } catch (...) {
    landing_.give_back(part, 0);
    throw;
  }
}

void Queue::finish_download(const Reading& reading, std::byte* data) {
  if (reading.part == Landing::kNone) {
    if (data != nullptr) {
      raise_failures(reading.value - 1, reading.value);
    }
    return;
  }
  const FailurePtr failure = data != nullptr ? landing_.poison(reading.part).failure() : nullptr;
  if (data != nullptr && !failure) {
    std::memcpy(data, landing_.mapped(reading.part), reading.size);
  }
  landing_.give_back(reading.part, reading.value);
  if (failure) {
    failure->raise();
  }
}

void Queue::upload(Image& image, uint32_t level, const std::byte* data) {
  std::vector<ImageRegion> regions;
  size_t filled = 0, copied = 0;
  append(Renewal{&image, uint32_t{1} << level, image.all_levels()});
  stream_up(
      data, image.level_size(level),
      [&](VkDeviceSize most) {
        if (regions.empty()) {
          regions = image.regions(level, most);
        }
        return filled < regions.size() ? regions[filled++].size : 0;
      },
      [&](const StagingSlice& slice) {
        return append_copy(
            ImageCopy{&image, regions[copied++], slice.buffer, slice.offset, true, nullptr, nullptr});
      });
}

void Queue::download(Image& image, uint32_t level, std::byte* data) {
  std::vector<ImageRegion> regions;
  size_t i = 0;
  stream_down(
      data, image.level_size(level),
      [&](VkDeviceSize most) {
        if (regions.empty()) {
          regions = image.regions(level, most);
        }
        return i < regions.size() ? regions[i].size : 0;
      },
      [&](const StagingSlice& slice) {
        return append_copy(ImageCopy{&image, regions[i++], slice.buffer, slice.offset, false, nullptr,
                                     &download_ring_.poison()});
      });
}

}  // namespace vkd
