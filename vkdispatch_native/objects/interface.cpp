#include "objects/interface.hpp"

#include <unordered_map>
#include <unordered_set>

#include "libs/error.hpp"

namespace vkd {

namespace {

// Constants of the SPIR-V specification.
enum Opcode : uint32_t {
  kEntryPoint = 15,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeImage = 25,
  kTypeSampledImage = 27,
  kTypePointer = 32,
  kVariable = 59,
  kDecorate = 71,
};
enum Decoration : uint32_t { kBufferBlock = 3, kBuiltIn = 11, kBinding = 33, kDescriptorSet = 34 };
enum StorageClass : uint32_t { kUniformConstant = 0, kInput = 1, kUniform = 2, kStorageBuffer = 12 };
constexpr uint32_t kCompute = 5;       // execution model
constexpr uint32_t kStorageImage = 2;  // a storage image, as an operand of OpTypeImage
constexpr size_t kHeaderWords = 5;

constexpr VkFormat kNoFormatOfOurs = VK_FORMAT_MAX_ENUM;
constexpr auto kNoTypeOfOurs = VK_DESCRIPTOR_TYPE_MAX_ENUM;
constexpr auto kNoViewOfOurs = VK_IMAGE_VIEW_TYPE_MAX_ENUM;

VkFormat format_of(uint32_t spirv_format) {
  switch (spirv_format) {
    case 0:
      return VK_FORMAT_UNDEFINED;
    case 1:
      return VK_FORMAT_R32G32B32A32_SFLOAT;
    case 2:
      return VK_FORMAT_R16G16B16A16_SFLOAT;
    case 3:
      return VK_FORMAT_R32_SFLOAT;
    case 6:
      return VK_FORMAT_R32G32_SFLOAT;
    case 7:
      return VK_FORMAT_R16G16_SFLOAT;
    case 9:
      return VK_FORMAT_R16_SFLOAT;
    case 21:
      return VK_FORMAT_R32G32B32A32_SINT;
    case 22:
      return VK_FORMAT_R16G16B16A16_SINT;
    case 23:
      return VK_FORMAT_R8G8B8A8_SINT;
    case 24:
      return VK_FORMAT_R32_SINT;
    case 25:
      return VK_FORMAT_R32G32_SINT;
    case 26:
      return VK_FORMAT_R16G16_SINT;
    case 27:
      return VK_FORMAT_R8G8_SINT;
    case 28:
      return VK_FORMAT_R16_SINT;
    case 29:
      return VK_FORMAT_R8_SINT;
    case 30:
      return VK_FORMAT_R32G32B32A32_UINT;
    case 31:
      return VK_FORMAT_R16G16B16A16_UINT;
    case 32:
      return VK_FORMAT_R8G8B8A8_UINT;
    case 33:
      return VK_FORMAT_R32_UINT;
    case 35:
      return VK_FORMAT_R32G32_UINT;
    case 36:
      return VK_FORMAT_R16G16_UINT;
    case 37:
      return VK_FORMAT_R8G8_UINT;
    case 38:
      return VK_FORMAT_R16_UINT;
    case 39:
      return VK_FORMAT_R8_UINT;
    default:
      return kNoFormatOfOurs;
  }
}

VkImageViewType view_type_of(uint32_t dimension, bool arrayed) {
  if (dimension > 2) {
    return kNoViewOfOurs;  // cubes, rectangles, texel buffers
  }
  constexpr VkImageViewType plain[] = {VK_IMAGE_VIEW_TYPE_1D, VK_IMAGE_VIEW_TYPE_2D, VK_IMAGE_VIEW_TYPE_3D};
  if (arrayed) {
    return dimension == 1 ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : kNoViewOfOurs;
  }
  return plain[dimension];
}

struct ImageType {
  DeclaredImage image;
  uint32_t use;
};
struct Pointer {
  uint32_t storage_class;
  uint32_t pointee;
};
struct Variable {
  uint32_t pointer;
  uint32_t id;
};
struct Place {
  uint32_t set = 0;
  uint32_t binding = 0;
  bool bound = false;
};

class Reader {
 public:
  explicit Reader(const std::vector<uint32_t>& spirv) {
    for (size_t at = kHeaderWords; at < spirv.size();) {
      const uint32_t words = spirv[at] >> 16;
      if (words == 0 || words > spirv.size() - at) {
        throw Error(ErrorKind::invalid_value, "spirv: the module is truncated or damaged");
      }
      instruction(spirv[at] & 0xFFFF, &spirv[at] + 1, words - 1);
      at += words;
    }
    check_inputs();
  }

  std::vector<DeclaredBinding> bindings() const {
    std::vector<DeclaredBinding> found;
    for (const Variable& variable : variables_) {
      const auto place = places_.find(variable.id);
      const auto pointer = pointers_.find(variable.pointer);
      if (place != places_.end() && place->second.bound && pointer != pointers_.end()) {
        DeclaredBinding declared{place->second.set, place->second.binding, kNoTypeOfOurs, {}};
        resolve(pointer->second, declared);
        found.push_back(declared);
      }
    }
    return found;
  }

 private:
  // Drivers crash if an input of a compute shader is not a built-in.
  void check_inputs() const {
    for (const uint32_t id : inputs_) {
      if (only_compute_ && built_in_.count(id) == 0) {
        throw Error(ErrorKind::invalid_value,
                    "spirv: variable " + std::to_string(id) + " is an input without a BuiltIn decoration");
      }
    }
  }

  void instruction(uint32_t opcode, const uint32_t* operands, uint32_t count) {
    if (opcode == kTypeInt && count >= 3) {
      scalars_[operands[0]] = operands[2] != 0 ? Numeric::signed_integer : Numeric::unsigned_integer;
    } else if (opcode == kTypeFloat && count >= 2) {
      scalars_[operands[0]] = Numeric::floating;
    } else if (opcode == kTypeImage && count >= 8) {
      const auto scalar = scalars_.find(operands[1]);
      const bool multisampled = operands[5] != 0;
      images_[operands[0]] = {
          {multisampled ? kNoViewOfOurs : view_type_of(operands[2], operands[4] != 0),
           scalar != scalars_.end() ? scalar->second : Numeric::floating, format_of(operands[7])},
          operands[6]};
    } else if (opcode == kTypeSampledImage && count >= 2) {
      sampled_images_[operands[0]] = operands[1];
    } else if (opcode == kTypePointer && count >= 3) {
      pointers_[operands[0]] = {operands[1], operands[2]};
    } else if (opcode == kVariable && count >= 3) {
      variables_.push_back({operands[0], operands[1]});
      if (operands[2] == kInput) {
        inputs_.push_back(operands[1]);
      }
    } else if (opcode == kEntryPoint && count >= 1) {
      only_compute_ = only_compute_ && operands[0] == kCompute;
    } else if (opcode == kDecorate && count >= 2) {
      decorate(operands, count);
    }
  }

  void decorate(const uint32_t* operands, uint32_t count) {
    if (operands[1] == kBufferBlock) {
      buffer_blocks_.insert(operands[0]);
    } else if (operands[1] == kBuiltIn) {
      built_in_.insert(operands[0]);
    } else if (operands[1] == kBinding && count >= 3) {
      places_[operands[0]].binding = operands[2];
      places_[operands[0]].bound = true;
    } else if (operands[1] == kDescriptorSet && count >= 3) {
      places_[operands[0]].set = operands[2];
    }
  }

  void resolve(const Pointer& pointer, DeclaredBinding& declared) const {
    if (pointer.storage_class == kStorageBuffer) {
      declared.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    } else if (pointer.storage_class == kUniform) {
      declared.type = buffer_blocks_.count(pointer.pointee) != 0 ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                                 : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    } else if (pointer.storage_class == kUniformConstant) {
      const auto sampled = sampled_images_.find(pointer.pointee);
      const bool combined = sampled != sampled_images_.end();
      const auto image = images_.find(combined ? sampled->second : pointer.pointee);
      if (image != images_.end()) {
        declared.image = image->second.image;
        if (combined) {
          declared.type = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
        } else if (image->second.use == kStorageImage) {
          declared.type = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
        }
      }
    }
  }

  std::unordered_map<uint32_t, Numeric> scalars_;
  std::unordered_map<uint32_t, ImageType> images_;
  std::unordered_map<uint32_t, uint32_t> sampled_images_;
  std::unordered_map<uint32_t, Pointer> pointers_;
  std::unordered_set<uint32_t> buffer_blocks_;
  std::unordered_map<uint32_t, Place> places_;
  std::vector<Variable> variables_;
  std::vector<uint32_t> inputs_;
  std::unordered_set<uint32_t> built_in_;
  bool only_compute_ = true;
};

}  // namespace

std::vector<DeclaredBinding> read_bindings(const std::vector<uint32_t>& spirv) {
  return Reader(spirv).bindings();
}

bool matches(const DeclaredImage& declared, const Image& image) {
  return declared.view_type == image.shape().view_type && declared.numeric == image.numeric() &&
         (declared.format == VK_FORMAT_UNDEFINED || declared.format == image.shape().format);
}

}  // namespace vkd
