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

// Reads a word from a possibly invalid address. Returns false, instead of crashing, if there is no memory.
bool read_word(const void* address, const void*& word) {
  if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % alignof(void*) != 0) {
    return false;
  }
#if defined(__linux__)
  iovec here{&word, sizeof(word)};
  iovec there{const_cast<void*>(address), sizeof(word)};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof(word))) {
    return true;
  }
  if (errno == EFAULT) {
    return false;
  }
  // Any other result: a container forbids the call.
#endif
  std::memcpy(&word, address, sizeof(word));
  return true;
}

// Returns the dispatch table that an object of the loader points to.
const void* table_of(const char* what, const void* object) {
  const void* table = nullptr;
  const void* word = nullptr;
  if (!read_word(object, table) || !read_word(table, word)) {
    throw Error(ErrorKind::invalid_value, std::string(what) + ": " +
                                              std::to_string(reinterpret_cast<std::uintptr_t>(object)) +
                                              " is not a Vulkan handle");
  }
  return table;
}

// Whether the second word points to an object with the same table: the loader's physical devices point to
// their instance.
bool refers_to_its_like(const void* object) {
  const void* table = nullptr;
  const void* other = nullptr;
  const void* table_of_other = nullptr;
  return read_word(object, table) && read_word(static_cast<const void* const*>(object) + 1, other) &&
         read_word(other, table_of_other) && table == table_of_other;
}

}  // namespace

void check_instance(VkInstance instance, VkPhysicalDevice physical, VkInstance known) {
  if (table_of("instance", instance) != table_of("physical_device", physical)) {
    throw Error(ErrorKind::invalid_value, "physical_device: it does not belong to this instance");
  }
  // The loader would abort the process. Layers that wrap all instances are excluded.
  if (refers_to_its_like(instance) && !refers_to_its_like(known)) {
    throw Error(ErrorKind::invalid_value, "instance: expected a VkInstance, got a physical device");
  }
}

void check_device(VkDevice device, VkPhysicalDevice physical) {
  if (table_of("device", device) == table_of("physical_device", physical)) {
    throw Error(ErrorKind::invalid_value, "device: expected a VkDevice, got an instance or physical device");
  }
}

void check_queue(VkQueue queue, VkDevice device) {
  if (table_of("queues", queue) != table_of("device", device)) {
    throw Error(ErrorKind::invalid_value, "queues: the VkQueue does not belong to this device");
  }
}

}  // namespace vkd
