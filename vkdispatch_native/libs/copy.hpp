#pragma once

#include <cstddef>

namespace vkd {

// memcpy, by several threads where the size is worth it: one thread moves about a quarter of what memory can.
void copy_bytes(std::byte* target, const std::byte* source, size_t size);

}  // namespace vkd
