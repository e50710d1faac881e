// The exception that crosses the bridge, and the check around every Vulkan call.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include <vulkan/vulkan_core.h>

namespace vkd {

enum class ErrorKind { vulkan, device_lost, out_of_memory, invalid_value, device_timeout, closed };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// The program was interrupted while it waited. The bridge holds Python's exception.
class Interrupted final : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

const char* result_name(VkResult result);
bool is_shortage(VkResult result) noexcept;  // of memory; it may be temporary
[[noreturn]] void throw_result(VkResult result, const char* call);

inline void check(VkResult result, const char* call) {
  if (result < VK_SUCCESS) {
    throw_result(result, call);
  }
}

// Checks a call that creates an object. A failed call leaves the handle undefined. A loader may also pass on
// a driver's VK_INCOMPLETE as its own result, without creating anything.
template <typename Handle>
void check_created(VkResult result, Handle& handle, const char* call) {
  if (result < VK_SUCCESS) {
    handle = VK_NULL_HANDLE;
  }
  if (handle == VK_NULL_HANDLE) {
    throw_result(result, call);
  }
}

}  // namespace vkd
