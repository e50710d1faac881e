// One logical device: its function table, allocator, queues, and the properties the engine depends on.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context/checkpoints.hpp"
#include "context/matrices.hpp"
#include "libs/vulkan.hpp"

namespace vkd {

// The properties of a physical device, queried once. The bridge converts them to a DeviceInfo.
struct DeviceProperties {
  VkPhysicalDeviceProperties core{};
  VkPhysicalDeviceSubgroupProperties subgroup{};
  VkPhysicalDeviceIDProperties id{};
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  VkDeviceSize max_buffer = 0;  // bytes; 0: unknown
  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2{};
  CooperativeMatrixFeatures cooperative_matrix{};
  CooperativeMatrix2Features cooperative_matrix2{};
  Bfloat16Features bfloat16{};
  VkPhysicalDeviceFaultFeaturesEXT device_fault{};
  std::vector<MatrixProduct> matrix_products;
  std::vector<VkQueueFamilyProperties> queue_families;
  std::vector<std::string> extensions;
  std::vector<std::string> missing;  // requirements of the engine that the device does not meet

  bool has_extension(const char* name) const;
};

DeviceProperties query_properties(VkInstance instance, VkPhysicalDevice physical);

// Two engine queues may share a VkQueue if a family has too few; so may two engines on one device. The mutex,
// one per VkQueue of the process, serializes their submits.
struct QueueHandle {
  VkQueue handle = VK_NULL_HANDLE;
  uint32_t family = 0;
  uint32_t index = 0;  // within its family; kUnknownIndex: a foreign queue, given by its handle
  std::mutex* mutex = nullptr;
};

constexpr uint32_t kUnknownIndex = ~uint32_t{0};

// A device that the caller created, and the part of it that the engine may use.
struct ForeignDevice {
  struct Queue {
    uint32_t family;
    uint32_t index;  // used if `handle` is null
    VkQueue handle;
  };

  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice handle = VK_NULL_HANDLE;
  std::vector<Queue> queues;
  std::vector<std::string> extensions;  // the enabled ones
  std::vector<std::string> features;    // the enabled ones, by Vulkan name; required features are assumed
};

class Device {
 public:
  Device(VkInstance instance, VkPhysicalDevice physical, const std::vector<uint32_t>& queue_families,
         const std::vector<std::string>& extensions, bool force_staging);
  // Does not destroy the VkDevice.
  Device(VkInstance instance, const ForeignDevice& foreign, bool force_staging);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  VkDevice handle() const noexcept { return handle_; }
  VkPhysicalDevice physical() const noexcept { return physical_; }
  const VolkDeviceTable& fn() const noexcept { return fn_; }
  VmaAllocator allocator() const noexcept { return allocator_; }
  // Features and extensions are the enabled ones.
  const DeviceProperties& properties() const noexcept { return properties_; }
  bool borrowed() const noexcept { return borrowed_; }
  bool wait_idle() noexcept;                  // false: the state is unknown; a lost device counts as idle
  VkResult wait_for(VkFence fence) noexcept;  // without limit; returns the error of a lasting memory shortage
  const std::vector<QueueHandle>& queues() const noexcept { return queues_; }
  // For each queue its transfer queues: one for both directions, or one for uploads and one for downloads.
  // Empty if the device has no copy engines of its own.
  const std::vector<std::vector<QueueHandle>>& transfer_queues() const noexcept { return transfer_queues_; }
  // The families of all queues, without duplicates.
  const std::vector<uint32_t>& families() const noexcept { return families_; }
  // Whether the queues of a family support transfers only.
  bool only_copies(uint32_t family) const noexcept {
    return (properties_.queue_families[family].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) ==
           0;
  }

  // Whether the device's preferred memory is also cached host memory, so that a transfer is a memcpy.
  bool host_mapped() const noexcept { return host_mapped_; }
  bool push_descriptors() const noexcept { return push_descriptors_; }
  bool imports_pages() const noexcept { return imports_pages_; }                // imports host memory
  VkDeviceSize import_alignment() const noexcept { return import_alignment_; }  // of imported host memory
  // Whether other APIs of the process can use its memory and wait for its work (opaque file descriptors).
  bool exports() const noexcept { return exports_; }
  VmaPool export_pool() const noexcept { return export_pool_; }  // of exported memory; null: none
  // The number of a block of memory, which no later block gets.
  uint64_t block_number(VkDeviceMemory memory);
  std::vector<uint64_t> take_freed_blocks();    // numbers of blocks freed since the last call
  int export_memory(VkDeviceMemory memory);     // a file descriptor, which the caller owns
  int export_semaphore(VkSemaphore semaphore);  // likewise
  VkSemaphore create_timeline(bool exported);
  VkSemaphore incoming(size_t number);  // a timeline that another API signals; made by the first call
  // Whether VK_EXT_calibrated_timestamps is enabled, with the clock that host_now() reads.
  bool calibrated() const noexcept { return calibrated_; }
  const Diagnosis& diagnosis() const noexcept { return diagnosis_; }
  Checkpoints* checkpoints() const noexcept { return checkpoints_.get(); }  // null: it writes no marks
  bool is_cpu() const noexcept { return properties_.core.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  VkDeviceSize max_allocation() const noexcept { return properties_.maintenance3.maxMemoryAllocationSize; }
  // Returns a queue that supports sparse binding; null if there is none.
  const QueueHandle* sparse_queue() const noexcept;
  // Waits until the binding is done.
  void bind_sparse(VkBuffer buffer, const std::vector<VkSparseMemoryBind>& binds);

  // Frees unused memory. Called when an allocation fails, before the second attempt.
  void set_reserve(std::function<void()> free) { free_reserve_ = std::move(free); }
  void free_idle_memory() const noexcept {
    if (free_reserve_) {
      free_reserve_();
    }
  }
  // Bytes of the largest heap that may be kept for reuse.
  VkDeviceSize most_idle_bytes() const noexcept { return most_idle_bytes_; }
  // Number of buffers and images allocated so far.
  void count_allocation() noexcept { allocations_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t allocations() const noexcept { return allocations_.load(std::memory_order_relaxed); }

 private:
  Device() = default;
  VkResult wait_once() noexcept;
  void inspect(VkInstance instance, VkPhysicalDevice physical, bool force_staging);
  void create(const std::vector<uint32_t>& queue_families, std::vector<std::string> extensions);
  void take_queues(const std::vector<ForeignDevice::Queue>& queues);
  void check_family(uint32_t family) const;
  std::mutex* mutex_of(VkQueue queue);
  std::vector<std::vector<uint32_t>> transfer_families(const std::vector<uint32_t>& queue_families) const;
  void choose_extensions();
  void create_allocator(VkInstance instance);
  void create_export_pool();

  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  DeviceProperties properties_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VolkDeviceTable fn_{};
  VmaAllocator allocator_ = VK_NULL_HANDLE;
  std::vector<QueueHandle> queues_;
  std::vector<std::vector<QueueHandle>> transfer_queues_;
  std::vector<uint32_t> families_;
  std::vector<std::shared_ptr<std::mutex>> queue_mutexes_;  // without duplicates
  std::function<void()> free_reserve_;
  VkDeviceSize most_idle_bytes_ = 0;
  std::atomic<uint64_t> allocations_{0};
  bool borrowed_ = false;
  bool host_mapped_ = false;
  bool push_descriptors_ = false;
  bool imports_pages_ = false;
  VkDeviceSize import_alignment_ = 0;
  bool calibrated_ = false;
  bool exports_ = false;
  VkExportMemoryAllocateInfo export_info_{};  // must outlive the pool
  VmaPool export_pool_ = VK_NULL_HANDLE;
  std::mutex blocks_mutex_;
  std::map<VkDeviceMemory, uint64_t> blocks_;  // those that were asked for
  std::vector<uint64_t> freed_blocks_;
  uint64_t last_block_ = 0;
  std::mutex incoming_mutex_;
  std::map<size_t, VkSemaphore> incoming_;
  Diagnosis diagnosis_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

}  // namespace vkd
