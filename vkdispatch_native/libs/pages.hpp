// Memory for large arrays: in huge pages where the system has them, and reused.
//
// The first access to a page costs more than copying to it. Huge pages have 512 times fewer first accesses,
// and the memory of a destroyed array is reused for the next one of the same size.
#pragma once

#include <chrono>
#include <cstddef>

namespace vkd {

struct Pages {
  std::byte* data = nullptr;
  size_t size = 0;  // of the mapping: a multiple of the huge page size
};

Pages take_pages(size_t size);  // contents are undefined; throws std::bad_alloc
void give_back(const Pages& pages) noexcept;
size_t spare_pages() noexcept;                                // bytes kept for later arrays
void drop_spare_pages(std::chrono::seconds unused) noexcept;  // those unused for this long

// Pages that devices access directly. Forked children do not inherit them.
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
