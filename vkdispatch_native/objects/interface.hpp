// The resources that a SPIR-V module declares. Drivers trust that bindings match the code and crash if they
// do not, so hand-written kernels are checked against their bindings first.
#pragma once

#include <vector>

#include "objects/image.hpp"

namespace vkd {

// An image as the shader declares it.
struct DeclaredImage {
  VkImageViewType view_type;
  Numeric numeric;
  VkFormat format;  // of a storage image; VK_FORMAT_UNDEFINED: any
};

struct DeclaredBinding {
  uint32_t set;
  uint32_t binding;
  VkDescriptorType type;  // VK_DESCRIPTOR_TYPE_MAX_ENUM: an unsupported one
  DeclaredImage image;    // for a sampled or storage image
};

// Throws if the words are not a sequence of instructions.
std::vector<DeclaredBinding> read_bindings(const std::vector<uint32_t>& spirv);

bool matches(const DeclaredImage& declared, const Image& image);

}  // namespace vkd
