// What a SPIR-V module says of the resources it binds. Drivers trust that what is bound is what the code
// wants, and crash where it is not: hand-written kernels are compared with their bindings before a driver
// sees either.
#pragma once

#include <vector>

#include "objects/image.hpp"

namespace vkd {

// An image as the code declares it.
struct DeclaredImage {
  VkImageViewType view_type;
  Numeric numeric;
  VkFormat format;  // of a storage image; VK_FORMAT_UNDEFINED: any
};

struct DeclaredBinding {
  uint32_t set;
  uint32_t binding;
  VkDescriptorType type;  // VK_DESCRIPTOR_TYPE_MAX_ENUM: none that we bind
  DeclaredImage image;    // of a sampled or storage image
};

// Throws when the words are no sequence of instructions.
std::vector<DeclaredBinding> read_bindings(const std::vector<uint32_t>& spirv);

bool matches(const DeclaredImage& declared, const Image& image);

}  // namespace vkd
