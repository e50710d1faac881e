#include "context/features.hpp"

#include <utility>

namespace vkd {

namespace {

// A structure without its type would be invalid.
template <typename Structure>
void clear(Structure& structure) {
  const VkStructureType type = structure.sType;
  structure = Structure{};
  structure.sType = type;
}

}  // namespace

std::vector<Feature> features_of(DeviceProperties& p) {
  constexpr const char* kFloat = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME;
  constexpr const char* kFloat2 = VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME;
#define REQUIRED(part, name) Feature{#name, &p.part.name, nullptr, true}
#define OPTIONAL(part, name) Feature{#name, &p.part.name, nullptr, false}
#define BELONGS(part, name, extension)    \
  Feature {                               \
    #name, &p.part.name, extension, false \
  }
  return {
      OPTIONAL(features, shaderFloat64),
      OPTIONAL(features, shaderInt64),
      OPTIONAL(features, shaderInt16),
      OPTIONAL(features, shaderStorageImageExtendedFormats),
      OPTIONAL(features, sparseBinding),
      OPTIONAL(features11, storageBuffer16BitAccess),
      OPTIONAL(features11, uniformAndStorageBuffer16BitAccess),
      OPTIONAL(features11, storagePushConstant16),
      OPTIONAL(features11, variablePointers),
      OPTIONAL(features11, variablePointersStorageBuffer),
      REQUIRED(features12, timelineSemaphore),
      REQUIRED(features12, scalarBlockLayout),
      OPTIONAL(features12, shaderFloat16),
      OPTIONAL(features12, samplerMirrorClampToEdge),
      OPTIONAL(features12, shaderInt8),
      OPTIONAL(features12, storageBuffer8BitAccess),
      OPTIONAL(features12, uniformAndStorageBuffer8BitAccess),
      OPTIONAL(features12, storagePushConstant8),
      OPTIONAL(features12, shaderBufferInt64Atomics),
      OPTIONAL(features12, shaderSharedInt64Atomics),
      OPTIONAL(features12, shaderSubgroupExtendedTypes),
      OPTIONAL(features12, bufferDeviceAddress),
      OPTIONAL(features12, hostQueryReset),
      OPTIONAL(features12, vulkanMemoryModel),
      OPTIONAL(features12, vulkanMemoryModelDeviceScope),
      BELONGS(atomic_float, shaderBufferFloat32Atomics, kFloat),
      BELONGS(atomic_float, shaderBufferFloat32AtomicAdd, kFloat),
      BELONGS(atomic_float, shaderBufferFloat64Atomics, kFloat),
      BELONGS(atomic_float, shaderBufferFloat64AtomicAdd, kFloat),
      BELONGS(atomic_float, shaderSharedFloat32Atomics, kFloat),
      BELONGS(atomic_float, shaderSharedFloat32AtomicAdd, kFloat),
      BELONGS(atomic_float, shaderSharedFloat64Atomics, kFloat),
      BELONGS(atomic_float, shaderSharedFloat64AtomicAdd, kFloat),
      BELONGS(atomic_float2, shaderBufferFloat16Atomics, kFloat2),
      BELONGS(atomic_float2, shaderBufferFloat16AtomicAdd, kFloat2),
      BELONGS(atomic_float2, shaderBufferFloat16AtomicMinMax, kFloat2),
      BELONGS(atomic_float2, shaderBufferFloat32AtomicMinMax, kFloat2),
      BELONGS(atomic_float2, shaderBufferFloat64AtomicMinMax, kFloat2),
      BELONGS(atomic_float2, shaderSharedFloat16Atomics, kFloat2),
      BELONGS(atomic_float2, shaderSharedFloat16AtomicAdd, kFloat2),
      BELONGS(atomic_float2, shaderSharedFloat16AtomicMinMax, kFloat2),
      BELONGS(atomic_float2, shaderSharedFloat32AtomicMinMax, kFloat2),
      BELONGS(atomic_float2, shaderSharedFloat64AtomicMinMax, kFloat2),
      BELONGS(cooperative_matrix, cooperativeMatrix, kCooperativeMatrix),
      BELONGS(cooperative_matrix2, cooperativeMatrixWorkgroupScope, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixFlexibleDimensions, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixReductions, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixConversions, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixPerElementOperations, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixTensorAddressing, kCooperativeMatrix2),
      BELONGS(cooperative_matrix2, cooperativeMatrixBlockLoads, kCooperativeMatrix2),
      BELONGS(bfloat16, shaderBFloat16Type, kBfloat16),
      BELONGS(bfloat16, shaderBFloat16DotProduct, kBfloat16),
      BELONGS(bfloat16, shaderBFloat16CooperativeMatrix, kBfloat16),
      BELONGS(device_fault, deviceFault, VK_EXT_DEVICE_FAULT_EXTENSION_NAME),
  };
#undef REQUIRED
#undef OPTIONAL
#undef BELONGS
}

void keep_features(DeviceProperties& p, const std::function<bool(const Feature&)>& keep) {
  std::vector<std::pair<VkBool32*, VkBool32>> values;
  for (const Feature& feature : features_of(p)) {
    values.emplace_back(feature.value, keep(feature) ? *feature.value : VK_FALSE);
  }
  p.features = {};
  clear(p.features11);
  clear(p.features12);
  clear(p.atomic_float);
  clear(p.atomic_float2);
  clear(p.cooperative_matrix);
  clear(p.cooperative_matrix2);
  clear(p.bfloat16);
  clear(p.device_fault);
  for (const auto& [place, value] : values) {
    *place = value;
  }
}

}  // namespace vkd
