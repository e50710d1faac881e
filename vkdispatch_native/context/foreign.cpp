#include "context/foreign.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#endif

#include "libs/error.hpp"

namespace vkd {

namespace {

// The first word of what a handle points at. Throws where there is no such memory, rather than crash.
const void* first_word(const char* what, const void* object) {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  bool sound = object != nullptr && address % alignof(void*) == 0;
  const void* word = nullptr;
#if defined(__linux__)
  if (sound) {
    iovec here{&word, sizeof(word)};
    iovec there{const_cast<void*>(object), sizeof(word)};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof(word))) {
      sound = errno != EFAULT;  // anything else: a container forbids it
      word = nullptr;
      if (sound) {
        std::memcpy(&word, object, sizeof(word));
      }
    }
  }
#else
  if (sound) {
    std::memcpy(&word, object, sizeof(word));
  }
#endif
  if (!sound || word == nullptr) {
    throw Error(ErrorKind::invalid_value,
                std::string(what) + ": " + std::to_string(address) + " is no handle that Vulkan gave");
  }
  return word;
}

}  // namespace

void check_instance(VkInstance instance) {
  first_word("instance", first_word("instance", instance));
}

void check_device(VkDevice device, VkPhysicalDevice physical) {
  const void* table = first_word("device", device);
  first_word("device", table);
  if (table == first_word("physical_device", physical)) {
    throw Error(ErrorKind::invalid_value, "device: expected a VkDevice, got an instance or physical device");
  }
}

void check_queue(VkQueue queue, VkDevice device) {
  if (first_word("queues", queue) != first_word("device", device)) {
    throw Error(ErrorKind::invalid_value, "queues: the VkQueue is none of this device's");
  }
}

}  // namespace vkd
