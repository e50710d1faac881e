#include "libs/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>

#include "libs/ring.hpp"

namespace vkd {

namespace {

constexpr size_t kHugePage = DevicePages::kAlignment;
constexpr size_t kMostSpare = 4;      // mappings
constexpr size_t kShareOfMemory = 8;  // all spare mappings together use at most this fraction of memory

size_t most_bytes() noexcept {
  static const size_t most = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                             static_cast<size_t>(sysconf(_SC_PAGESIZE)) / kShareOfMemory;
  return most;
}

struct Spare {
  Pages pages;
  std::chrono::steady_clock::time_point since;
};

struct Spares {
  std::mutex mutex;
  FixedRing<Spare, kMostSpare> pages;  // oldest first
  size_t bytes = 0;
};

// Never destroyed: arrays may outlive everything else.
Spares& spares() {
  static Spares* all = new Spares;
  return *all;
}

void drop_oldest(Spares& all) noexcept {
  const Pages pages = all.pages.pop_front().pages;
  all.bytes -= pages.size;
  munmap(pages.data, pages.size);
}

size_t rounded_up(size_t size) noexcept {
  return (size + kHugePage - 1) / kHugePage * kHugePage;
}

Pages map(size_t size) {
  const size_t around = size + kHugePage;
  void* start = mmap(nullptr, around, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    throw std::bad_alloc();
  }
  const auto address = reinterpret_cast<uintptr_t>(start);
  const size_t before = (kHugePage - address % kHugePage) % kHugePage;
  auto* data = static_cast<std::byte*>(start) + before;
  if (before > 0) {
    munmap(start, before);
  }
  munmap(data + size, kHugePage - before);
  madvise(data, size, MADV_HUGEPAGE);
  return {data, size};
}

}  // namespace

Pages take_pages(size_t size) {
  if (size > SIZE_MAX / 2) {
    throw std::bad_alloc();
  }
  const size_t rounded = rounded_up(size);
  Spares& all = spares();
  {
    // Never blocks: in a forked child the mutex may stay locked forever.
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    for (size_t turns = lock.owns_lock() ? all.pages.size() : 0; turns > 0; --turns) {
      const Spare spare = all.pages.pop_front();
      if (spare.pages.size == rounded) {
        all.bytes -= rounded;
        return spare.pages;
      }
      all.pages.push_back(spare);
    }
  }
  try {
    return map(rounded);
  } catch (const std::bad_alloc&) {
    drop_spare_pages(std::chrono::seconds(0));
    return map(rounded);
  }
}

void give_back(const Pages& pages) noexcept {
  Spares& all = spares();
  {
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (lock.owns_lock() && pages.size <= most_bytes()) {
      while (all.pages.full() || all.bytes + pages.size > most_bytes()) {
        drop_oldest(all);
      }
      all.pages.push_back({pages, std::chrono::steady_clock::now()});
      all.bytes += pages.size;
      return;
    }
  }
  munmap(pages.data, pages.size);
}

size_t spare_pages() noexcept {
  Spares& all = spares();
  const std::lock_guard lock(all.mutex);
  return all.bytes;
}

void drop_spare_pages(std::chrono::seconds unused) noexcept {
  Spares& all = spares();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  const auto limit = std::chrono::steady_clock::now() - unused;
  while (lock.owns_lock() && !all.pages.empty() && all.pages.front().since <= limit) {
    drop_oldest(all);
  }
}

DevicePages::DevicePages(size_t size) : pages_(map(rounded_up(size))) {
  madvise(pages_.data, pages_.size, MADV_DONTFORK);
}

DevicePages::~DevicePages() {
  munmap(pages_.data, pages_.size);
}

}  // namespace vkd
