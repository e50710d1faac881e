#include "context/instance.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "context/foreign.hpp"
#include "libs/error.hpp"
#include "libs/loader.hpp"

namespace vkd {

namespace {

std::mutex messages_mutex;
std::vector<Message> messages;
std::mutex current_mutex;
std::shared_ptr<Instance> current;

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT type,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  const char* text = data->pMessage ? data->pMessage : "";
  // Images stay in the general layout on purpose (objects/image.hpp), so this warning is not useful.
  const bool performance = (type & VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT) != 0;
  if (performance && std::strstr(text, "instead of GENERAL") != nullptr) {
    return VK_FALSE;
  }
  add_message(static_cast<int>(severity), text);
  return VK_FALSE;
}

bool has_layer(const char* name) {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(),
                     [&](const VkLayerProperties& layer) { return std::strcmp(layer.layerName, name) == 0; });
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info() {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = on_message;
  return info;
}

}  // namespace

void add_message(int severity, std::string text) {
  std::lock_guard lock(messages_mutex);
  std::fprintf(stderr, "vkdispatch: %s\n", text.c_str());
  messages.emplace_back(severity, std::move(text));
}

std::vector<Message> take_messages() {
  std::lock_guard lock(messages_mutex);
  return std::exchange(messages, {});
}

void Instance::create(bool debug) {
  std::lock_guard lock(current_mutex);
  if (!current) {
    current.reset(new Instance(debug));
  }
}

void Instance::destroy() noexcept {
  std::lock_guard lock(current_mutex);
  current.reset();
}

bool Instance::exists() noexcept {
  std::lock_guard lock(current_mutex);
  return current != nullptr;
}

std::shared_ptr<Instance> Instance::get() {
  std::lock_guard lock(current_mutex);
  if (!current) {
    throw Error(ErrorKind::vulkan, "Vulkan is not initialized");
  }
  return current;
}

// Delegating constructor, so that the destructor cleans up if a later step throws.
Instance::Instance(bool debug) : Instance() {
  load_vulkan();
  if (vkEnumerateInstanceVersion == nullptr) {
    throw Error(ErrorKind::vulkan, "the Vulkan loader is older than Vulkan 1.1");
  }

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "vkdispatch";
  application.pEngineName = "vkdispatch";
  application.apiVersion = VK_API_VERSION_1_3;  // 1.2 suffices, but SPIR-V 1.6 requires 1.3

  std::vector<const char*> layers;
  std::vector<const char*> extensions;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;

  const VkValidationFeatureEnableEXT synchronization =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info();
  const bool validate = debug && has_layer(kValidationLayer);
  if (validate) {
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &synchronization;
    features.pNext = &messenger;  // covers vkCreateInstance and vkDestroyInstance themselves
    info.pNext = &features;
  }

  // Nearly every loader has this extension. Querying it first would load all drivers once more.
  extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
  info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkResult result = vkCreateInstance(&info, nullptr, &handle_);
  if (result == VK_ERROR_EXTENSION_NOT_PRESENT) {
    info.flags = 0;
    --info.enabledExtensionCount;
    result = vkCreateInstance(&info, nullptr, &handle_);
  }
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    throw Error(ErrorKind::vulkan, "the Vulkan loader finds no driver on this machine");
  }
  check(result, "vkCreateInstance");
  if (handle_ == VK_NULL_HANDLE) {
    throw Error(ErrorKind::vulkan,
                "vkCreateInstance returned no instance: libvulkan is not a working Vulkan loader");
  }
  load_instance_functions(handle_);

  if (validate) {
    listen();
  }
  enumerate();
}

std::shared_ptr<Instance> Instance::borrow(VkInstance handle, VkPhysicalDevice physical, bool debug) {
  std::lock_guard lock(current_mutex);
  if (!current) {
    throw Error(ErrorKind::vulkan, "Vulkan is not initialized");  // its functions serve every instance
  }
  check_instance(handle, physical, current->handle_);
  if (current->handle_ == handle) {
    current->require(physical);
    return current;
  }
  std::shared_ptr<Instance> borrowed(new Instance());
  borrowed->handle_ = handle;
  borrowed->borrowed_ = true;
  borrowed->enumerate();
  borrowed->require(physical);
  if (debug) {
    borrowed->listen();
  }
  return borrowed;
}

void Instance::require(VkPhysicalDevice physical) const {
  if (std::find(physical_devices_.begin(), physical_devices_.end(), physical) == physical_devices_.end()) {
    throw Error(ErrorKind::invalid_value, "physical_device: it does not belong to this instance");
  }
}

// Loads the functions for this instance: others may not have the extension.
void Instance::listen() {
  const auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(handle_, "vkCreateDebugUtilsMessengerEXT"));
  destroy_messenger_ = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(handle_, "vkDestroyDebugUtilsMessengerEXT"));
  if (make == nullptr || destroy_messenger_ == nullptr) {
    return;
  }
  const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info();
  check(make(handle_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

// One query instead of two (count, then handles): the loader and its layers probe the drivers for each.
void Instance::enumerate() {
  physical_devices_.resize(16);
  while (true) {
    auto count = static_cast<uint32_t>(physical_devices_.size());
    const VkResult result = vkEnumeratePhysicalDevices(handle_, &count, physical_devices_.data());
    if (result != VK_INCOMPLETE) {
      check(result, "vkEnumeratePhysicalDevices");
      physical_devices_.resize(count);
      return;
    }
    physical_devices_.resize(2 * physical_devices_.size());
  }
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    destroy_messenger_(handle_, messenger_, nullptr);
  }
  if (handle_ != VK_NULL_HANDLE && !borrowed_ && vkDestroyInstance != nullptr) {
    vkDestroyInstance(handle_, nullptr);
  }
}

}  // namespace vkd
