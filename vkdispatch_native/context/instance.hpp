// The Vulkan instance of the process, its physical devices, and what the validation layer says.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "libs/vulkan.hpp"

namespace vkd {

using Message = std::pair<int, std::string>;  // VkDebugUtilsMessageSeverityFlagBitsEXT, text

class Instance {
 public:
  static void create(bool debug);          // does nothing when there is one
  static void destroy() noexcept;          // at the latest when the last engine gives up its share
  static std::shared_ptr<Instance> get();  // throws when there is none
  static bool exists() noexcept;
  // Somebody else's, to be left as it is; throws unless the physical device is one of its own. With `debug`
  // what its validation layer says is noted, where it has VK_EXT_debug_utils.
  static std::shared_ptr<Instance> borrow(VkInstance handle, VkPhysicalDevice physical, bool debug);

  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  bool validation() const noexcept { return messenger_ != VK_NULL_HANDLE; }
  const std::vector<VkPhysicalDevice>& physical_devices() const noexcept { return physical_devices_; }
  VkInstance handle() const noexcept { return handle_; }

 private:
  Instance() = default;
  explicit Instance(bool debug);
  void listen();
  void enumerate();
  void require(VkPhysicalDevice physical) const;

  VkInstance handle_ = VK_NULL_HANDLE;
  bool borrowed_ = false;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> physical_devices_;
};

// Printed to stderr at once, and kept for take_messages. They outlive the instance: destroying it may produce
// some.
void add_message(int severity, std::string text);
std::vector<Message> take_messages();

}  // namespace vkd
