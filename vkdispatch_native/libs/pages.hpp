// Memory of large arrays: in huge pages where the system has them, and used again.
//
// The first touch of memory costs more than to copy to it. Huge pages are touched 512 times less often, and
// memory of an array that went serves the next one of its size as it is.
#pragma once

#include <chrono>
#include <cstddef>

namespace vkd {

struct Pages {
  std::byte* data = nullptr;
  size_t size = 0;  // that were mapped: whole huge pages
};

Pages take_pages(size_t size);  // of any contents; throws std::bad_alloc
void give_back(const Pages& pages) noexcept;
size_t spare_pages() noexcept;                                // bytes kept for arrays to come
void drop_spare_pages(std::chrono::seconds unused) noexcept;  // what was kept for so long

// Pages that devices copy to by themselves; no forked child has them.
class DevicePages {
 public:
  explicit DevicePages(size_t size);
  ~DevicePages();
  DevicePages(const DevicePages&) = delete;
  DevicePages& operator=(const DevicePages&) = delete;

  static constexpr size_t kAlignment = size_t{2} << 20;
  std::byte* data() const noexcept { return pages_.data; }
  size_t size() const noexcept { return pages_.size; }

 private:
  Pages pages_;
};

}  // namespace vkd
