#include "objects/image.hpp"

#include <algorithm>
#include <string>

#include "libs/error.hpp"

namespace vkd {

namespace {

// Formats come in runs of UNORM, SNORM, USCALED, SSCALED, UINT, SINT and others. Only integers and floats are
// supported.
struct FormatRun {
  VkFormat unsigned_format;
  uint32_t channels;
  uint32_t bits;
};
constexpr FormatRun kRuns[] = {
    {VK_FORMAT_R8_UINT, 1, 8},         {VK_FORMAT_R8G8_UINT, 2, 8},
    {VK_FORMAT_R8G8B8_UINT, 3, 8},     {VK_FORMAT_R8G8B8A8_UINT, 4, 8},
    {VK_FORMAT_R16_UINT, 1, 16},       {VK_FORMAT_R16G16_UINT, 2, 16},
    {VK_FORMAT_R16G16B16_UINT, 3, 16}, {VK_FORMAT_R16G16B16A16_UINT, 4, 16},
    {VK_FORMAT_R32_UINT, 1, 32},       {VK_FORMAT_R32G32_UINT, 2, 32},
    {VK_FORMAT_R32G32B32_UINT, 3, 32}, {VK_FORMAT_R32G32B32A32_UINT, 4, 32},
    {VK_FORMAT_R64_UINT, 1, 64},       {VK_FORMAT_R64G64_UINT, 2, 64},
    {VK_FORMAT_R64G64B64_UINT, 3, 64}, {VK_FORMAT_R64G64B64A64_UINT, 4, 64},
};

std::string extent_text(const VkExtent3D& e) {
  return std::to_string(e.width) + " x " + std::to_string(e.height) + " x " + std::to_string(e.depth);
}

}  // namespace

FormatInfo format_info(VkFormat format) {
  for (const FormatRun& run : kRuns) {
    const int step = static_cast<int>(format) - static_cast<int>(run.unsigned_format);
    if (step >= 0 && step <= (run.bits == 8 ? 1 : 2)) {
      constexpr Numeric kinds[] = {Numeric::unsigned_integer, Numeric::signed_integer, Numeric::floating};
      return {run.channels * run.bits / 8, kinds[step]};
    }
  }
  throw Error(ErrorKind::invalid_value,
              "format " + std::to_string(static_cast<int>(format)) + " is not supported for images");
}

VkFormatFeatureFlags format_features(const std::vector<Device*>& devices, VkFormat format) {
  format_info(format);
  VkFormatFeatureFlags features = ~VkFormatFeatureFlags{0};
  for (const Device* device : devices) {
    VkFormatProperties properties{};
    vkGetPhysicalDeviceFormatProperties(device->physical(), format, &properties);
    features &= properties.optimalTilingFeatures;
  }
  return features;
}

Image::Image(const std::vector<Device*>& queue_devices, const ImageShape& shape, bool shared)
    : Data(queue_devices.size()), shape_(shape), format_(format_info(shape.format)), shared_(shared) {
  const VkFormatFeatureFlags features = format_features(queue_devices, shape.format);
  VkImageUsageFlags usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  if ((features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) != 0) {
    usage |= VK_IMAGE_USAGE_SAMPLED_BIT;
  }
  if (shape.storage) {
    usage |= VK_IMAGE_USAGE_STORAGE_BIT;
    if ((features & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT) == 0) {
      throw Error(ErrorKind::invalid_value, "the device does not support storage images of this format");
    }
  }
  copies_.resize(queue_devices.size());
  uninitialized_ = std::make_unique<std::atomic<bool>[]>(queue_devices.size());
  try {
    for (size_t queue = 0; queue < queue_devices.size(); ++queue) {
      if (shared && queue > 0) {
        copies_[queue] = copies_[0];
        continue;
      }
      copies_[queue].device = queue_devices[queue];
      check_limits(*queue_devices[queue], usage);
      create(copies_[queue], usage);
    }
  } catch (...) {
    release();
    throw;
  }
}

Image::Image(size_t queue_count, Device& device, const ImageShape& shape, const BorrowedImage& theirs,
             std::shared_ptr<void> owner)
    : Data(queue_count),
      shape_(shape),
      format_(format_info(shape.format)),
      shared_(queue_count > 1),
      first_layout_(theirs.layout),
      borrowed_(true),
      owner_(std::move(owner)),
      copies_(queue_count),
      uninitialized_(std::make_unique<std::atomic<bool>[]>(queue_count)) {
  check_limits(device, theirs.usage);
  copies_[0].device = &device;
  copies_[0].handle = theirs.handle;
  try {
    create_views(copies_[0], theirs.usage);
  } catch (...) {
    release();
    throw;
  }
  std::fill(copies_.begin() + 1, copies_.end(), copies_[0]);
}

VkImageType Image::type() const noexcept {
  return shape_.view_type == VK_IMAGE_VIEW_TYPE_1D   ? VK_IMAGE_TYPE_1D
         : shape_.view_type == VK_IMAGE_VIEW_TYPE_3D ? VK_IMAGE_TYPE_3D
                                                     : VK_IMAGE_TYPE_2D;
}

void Image::check_limits(const Device& device, VkImageUsageFlags usage) const {
  const VkExtent3D& e = shape_.extent;
  const bool flat =
      (type() == VK_IMAGE_TYPE_3D || e.depth == 1) && (type() != VK_IMAGE_TYPE_1D || e.height == 1);
  const bool layered = shape_.view_type == VK_IMAGE_VIEW_TYPE_2D_ARRAY || shape_.layers == 1;
  if (e.width == 0 || e.height == 0 || e.depth == 0 || shape_.layers == 0 || shape_.levels == 0 || !flat ||
      !layered) {
    throw Error(ErrorKind::invalid_value, "an image of this type cannot be " + extent_text(e) + " with " +
                                              std::to_string(shape_.layers) + " layers");
  }
  uint32_t most_levels = 1;
  for (uint32_t longest = std::max({e.width, e.height, e.depth}); longest > 1; longest /= 2) {
    ++most_levels;
  }
  VkImageFormatProperties limits{};
  const VkResult result = vkGetPhysicalDeviceImageFormatProperties(
      device.physical(), shape_.format, type(), VK_IMAGE_TILING_OPTIMAL, usage, 0, &limits);
  if (result == VK_ERROR_FORMAT_NOT_SUPPORTED) {
    throw Error(ErrorKind::invalid_value, "the device does not support images of this format");
  }
  check(result, "vkGetPhysicalDeviceImageFormatProperties");
  const VkExtent3D& m = limits.maxExtent;
  if (e.width > m.width || e.height > m.height || e.depth > m.depth ||
      shape_.layers > limits.maxArrayLayers) {
    throw Error(ErrorKind::invalid_value, extent_text(e) + " texels in " + std::to_string(shape_.layers) +
                                              " layers exceed the device's limit: " + extent_text(m) +
                                              " in " + std::to_string(limits.maxArrayLayers));
  }
  if (shape_.levels > std::min(most_levels, limits.maxMipLevels)) {
    throw Error(ErrorKind::invalid_value, std::to_string(shape_.levels) + " mip levels exceed the " +
                                              std::to_string(std::min(most_levels, limits.maxMipLevels)) +
                                              " that the image can have");
  }
  VkDeviceSize size = 0;
  for (uint32_t level = 0; level < shape_.levels; ++level) {
    size += level_size(level);
  }
  if (size > limits.maxResourceSize || size > device.max_allocation()) {
    throw Error(ErrorKind::out_of_memory,
                "an image of " + std::to_string(size) + " bytes exceeds the " +
                    std::to_string(std::min(limits.maxResourceSize, device.max_allocation())) +
                    " bytes that the device allocates at once");
  }
}

void Image::create(Copy& copy, VkImageUsageFlags usage) {
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = type();
  info.format = shape_.format;
  info.extent = shape_.extent;
  info.mipLevels = shape_.levels;
  info.arrayLayers = shape_.layers;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = usage;
  info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  const std::vector<uint32_t>& families = copy.device->families();
  if (shared_ && families.size() > 1) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  VmaAllocationCreateInfo allocation{};
  allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
  const auto create = [&] {
    return vmaCreateImage(copy.device->allocator(), &info, &allocation, &copy.handle, &copy.allocation,
                          nullptr);
  };
  VkResult code = create();
  if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    copy.device->free_idle_memory();
    code = create();
  }
  check_created(code, copy.handle, "vmaCreateImage");
  copy.device->count_allocation();
  create_views(copy, usage);
}

void Image::create_views(Copy& copy, VkImageUsageFlags usage) {
  if ((usage & VK_IMAGE_USAGE_SAMPLED_BIT) != 0) {
    copy.sampled_view = create_view(copy, shape_.levels);
  }
  if (shape_.storage) {
    copy.storage_view = create_view(copy, 1);
  }
}

VkImageView Image::create_view(const Copy& copy, uint32_t levels) const {
  VkImageViewCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  info.image = copy.handle;
  info.viewType = shape_.view_type;
  info.format = shape_.format;
  info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, levels, 0, shape_.layers};
  VkImageView view = VK_NULL_HANDLE;
  check(copy.device->fn().vkCreateImageView(copy.device->handle(), &info, nullptr, &view),
        "vkCreateImageView");
  return view;
}

void Image::release() noexcept {
  for (Copy& copy : copies_) {
    if (copy.handle == VK_NULL_HANDLE) {
      continue;
    }
    if (shared_ && &copy != &copies_.front()) {
      copy.handle = VK_NULL_HANDLE;
      continue;
    }
    copy.device->fn().vkDestroyImageView(copy.device->handle(), copy.sampled_view, nullptr);
    copy.device->fn().vkDestroyImageView(copy.device->handle(), copy.storage_view, nullptr);
    if (!borrowed_) {
      vmaDestroyImage(copy.device->allocator(), copy.handle, copy.allocation);
    }
    copy.handle = VK_NULL_HANDLE;
  }
  owner_.reset();
}

VkExtent3D Image::level_extent(uint32_t level) const noexcept {
  auto size = [level](uint32_t full) { return std::max(full >> level, 1u); };
  return {size(shape_.extent.width), size(shape_.extent.height), size(shape_.extent.depth)};
}

VkDeviceSize Image::level_size(uint32_t level) const noexcept {
  const VkExtent3D e = level_extent(level);
  return VkDeviceSize{e.width} * e.height * e.depth * shape_.layers * format_.texel_size;
}

std::vector<ImageRegion> Image::regions(uint32_t level, VkDeviceSize most) const {
  const VkExtent3D e = level_extent(level);
  const VkDeviceSize row = VkDeviceSize{e.width} * format_.texel_size;
  const VkDeviceSize plane = row * e.height;
  // A plane is a layer of an array or a slice of a volume: an image never has both.
  const uint32_t planes = e.depth * shape_.layers;
  const bool volume = e.depth > 1;
  std::vector<ImageRegion> found;
  auto add = [&](uint32_t first_plane, uint32_t plane_count, uint32_t first_row, uint32_t rows) {
    ImageRegion region{};
    region.level = level;
    region.first_layer = volume ? 0 : first_plane;
    region.layers = volume ? 1 : plane_count;
    region.offset = {0, static_cast<int32_t>(first_row), volume ? static_cast<int32_t>(first_plane) : 0};
    region.extent = {e.width, rows, volume ? plane_count : 1};
    region.size = row * rows * plane_count;
    found.push_back(region);
  };
  if (plane <= most) {
    const auto together = static_cast<uint32_t>(std::min<VkDeviceSize>(most / plane, planes));
    for (uint32_t p = 0; p < planes; p += together) {
      add(p, std::min(together, planes - p), 0, e.height);
    }
    return found;
  }
  if (row > most) {
    throw Error(ErrorKind::invalid_value, "a row of " + std::to_string(row) + " bytes is too long to copy");
  }
  const auto together = static_cast<uint32_t>(most / row);
  for (uint32_t p = 0; p < planes; ++p) {
    for (uint32_t y = 0; y < e.height; y += together) {
      add(p, 1, y, std::min(together, e.height - y));
    }
  }
  return found;
}

}  // namespace vkd
