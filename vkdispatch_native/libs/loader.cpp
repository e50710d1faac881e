#include "libs/loader.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr const char* kEntryPoint = "vkGetInstanceProcAddr";

std::string path_of(void* library, const char* name) {
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0';
  return known ? map->l_name : name;
}

// The first name takes precedence: if that file is broken, its message is more useful than the second's.
void* open_library(std::string& path) {
  std::string reason;
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      path = path_of(library, name);
      return library;
    }
    const char* message = dlerror();
    if (reason.empty() && message != nullptr) {
      reason = message;
    }
  }
  throw Error(ErrorKind::vulkan, "no Vulkan loader could be loaded (" + reason + ")");
}

}  // namespace

void load_vulkan() {
  std::string path;
  void* library = open_library(path);  // stays open for the life of the process if it is usable
  const auto entry = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, kEntryPoint));
  if (entry != nullptr) {
    volkInitializeCustom(entry);
  }
  const char* missing = entry == nullptr                                ? kEntryPoint
                        : vkCreateInstance == nullptr                   ? "vkCreateInstance"
                        : vkEnumerateInstanceLayerProperties == nullptr ? "vkEnumerateInstanceLayerProperties"
                                                                        : nullptr;
  if (missing != nullptr) {
    dlclose(library);
    throw Error(ErrorKind::vulkan, path + " is not a Vulkan loader: it lacks " + missing);
  }
}

void load_instance_functions(VkInstance instance) {
  volkLoadInstanceOnly(instance);
  for (const char* name :
       {"vkDestroyInstance", "vkEnumeratePhysicalDevices", "vkEnumerateDeviceExtensionProperties",
        "vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceProperties2",
        "vkGetPhysicalDeviceMemoryProperties", "vkGetPhysicalDeviceQueueFamilyProperties",
        "vkGetDeviceProcAddr", "vkCreateDevice"}) {
    if (vkGetInstanceProcAddr(instance, name) == nullptr) {
      throw Error(ErrorKind::vulkan,
                  std::string("libvulkan is not a working Vulkan loader: it lacks ") + name);
    }
  }
}

}  // namespace vkd
