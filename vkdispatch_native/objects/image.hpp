// A user's image: one copy per queue, always in the general layout, which allows sampling, loads, stores and
// copies both ways. Most drivers ignore layouts, so this costs nothing and needs no tracking.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "context/device.hpp"
#include "objects/data.hpp"

namespace vkd {

enum class Numeric : uint8_t { floating, signed_integer, unsigned_integer };

// The properties of a format. Throws unless it has one to four plain channels of 8, 16, 32 or 64 bits each.
struct FormatInfo {
  uint32_t texel_size;
  Numeric numeric;
};
FormatInfo format_info(VkFormat format);

// The features of a format that every device supports.
VkFormatFeatureFlags format_features(const std::vector<Device*>& devices, VkFormat format);

struct ImageShape {
  VkImageViewType view_type;  // 1D, 2D, 3D or an array of 2D layers
  VkFormat format;
  VkExtent3D extent;
  uint32_t layers;
  uint32_t levels;
  bool storage;  // kernels may write it
};

// An image of another library: its layout, and the usages it was created with.
struct BorrowedImage {
  VkImage handle;
  VkImageLayout layout;
  VkImageUsageFlags usage;
};

// Texels of one mip level that are contiguous in host memory.
struct ImageRegion {
  uint32_t level;
  uint32_t first_layer, layers;
  VkOffset3D offset;
  VkExtent3D extent;
  VkDeviceSize size;
};

class Image final : public Data {
 public:
  // `shared`: all queues use the same memory; they must belong to one device.
  Image(const std::vector<Device*>& queue_devices, const ImageShape& shape, bool shared);
  // An image of another library, which stays the library's: for each of a device's queues the same one.
  // `owner` is kept until the device has finished with it.
  Image(size_t queue_count, Device& device, const ImageShape& shape, const BorrowedImage& theirs,
        std::shared_ptr<void> owner);
  ~Image() override { release(); }
  void release() noexcept override;

  const char* noun() const noexcept override { return "an image"; }
  const ImageShape& shape() const noexcept { return shape_; }
  bool shared() const noexcept override { return shared_; }
  uint32_t texel_size() const noexcept { return format_.texel_size; }
  Numeric numeric() const noexcept { return format_.numeric; }
  VkImage handle(size_t queue) const noexcept { return copies_[queue].handle; }
  // Whether a queue's copy has no layout because the batch that should have initialized it failed.
  bool uninitialized(size_t queue) const noexcept { return uninitialized_[shared_ ? 0 : queue].load(); }
  void set_uninitialized(size_t queue, bool value) noexcept {
    uninitialized_[shared_ ? 0 : queue].store(value);
  }
  // Before it was the general one.
  VkImageLayout first_layout() const noexcept { return first_layout_; }
  uint32_t all_levels() const noexcept {
    return shape_.levels >= 32 ? ~uint32_t{0} : (uint32_t{1} << shape_.levels) - 1;
  }
  VkImageView sampled_view(size_t queue) const noexcept { return copies_[queue].sampled_view; }
  VkImageView storage_view(size_t queue) const noexcept { return copies_[queue].storage_view; }

  VkExtent3D level_extent(uint32_t level) const noexcept;
  VkDeviceSize level_size(uint32_t level) const noexcept;  // bytes, of all layers
  // Splits a whole level into pieces of at most `most` bytes, in the order of host memory.
  std::vector<ImageRegion> regions(uint32_t level, VkDeviceSize most) const;

 private:
  struct Copy {
    Device* device = nullptr;
    VkImage handle = VK_NULL_HANDLE;
    VmaAllocation allocation = VK_NULL_HANDLE;
    VkImageView sampled_view = VK_NULL_HANDLE;  // all levels and layers
    VkImageView storage_view = VK_NULL_HANDLE;  // level 0
  };
  void check_limits(const Device& device, VkImageUsageFlags usage) const;
  void create(Copy& copy, VkImageUsageFlags usage);
  void create_views(Copy& copy, VkImageUsageFlags usage);
  VkImageView create_view(const Copy& copy, uint32_t levels) const;
  VkImageType type() const noexcept;

  ImageShape shape_;
  FormatInfo format_;
  bool shared_;
  VkImageLayout first_layout_ = VK_IMAGE_LAYOUT_UNDEFINED;
  bool borrowed_ = false;
  std::shared_ptr<void> owner_;
  std::vector<Copy> copies_;
  std::unique_ptr<std::atomic<bool>[]> uninitialized_;
};

}  // namespace vkd
