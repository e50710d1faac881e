// The Vulkan instance of the process, its physical devices, and the messages of the validation layer.
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
  static void create(bool debug);          // does nothing if one exists
  static void destroy() noexcept;          // once the last engine has released its share
  static std::shared_ptr<Instance> get();  // throws if there is none
  static bool exists() noexcept;
  // Wraps a foreign instance, which is never destroyed. Throws unless the physical device belongs to it. With
  // `debug`, messages of its validation layer are collected if it has VK_EXT_debug_utils.
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

// Prints a message to stderr and keeps it for take_messages. Messages outlive the instance: its destruction
// may produce some.
void add_message(int severity, std::string text);
std::vector<Message> take_messages();

}  // namespace vkd
