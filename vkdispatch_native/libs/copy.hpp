// memcpy by several threads: one thread moves about a quarter of what memory can.
#pragma once

#include <cstddef>
#include <memory>

namespace vkd {

class CopyJob;

// Has other threads begin to copy. Neither range may be touched before finish_copy. Null: it was so little
// that all is done.
std::shared_ptr<CopyJob> start_copy(std::byte* target, const std::byte* source, size_t size);
void finish_copy(const std::shared_ptr<CopyJob>& job);  // helps, and returns when all is copied

void copy_bytes(std::byte* target, const std::byte* source, size_t size);

}  // namespace vkd
