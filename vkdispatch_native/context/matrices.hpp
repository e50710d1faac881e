// Cooperative matrices: declarations that older Vulkan headers lack, and the shapes that a device multiplies.
#pragma once

#include <vector>

#include "libs/vulkan.hpp"

namespace vkd {

// Three Vulkan structures under our own names: not all supported headers declare them.
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

struct CooperativeMatrix2Features {
  VkStructureType sType = static_cast<VkStructureType>(1000593000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrixWorkgroupScope = VK_FALSE;
  VkBool32 cooperativeMatrixFlexibleDimensions = VK_FALSE;
  VkBool32 cooperativeMatrixReductions = VK_FALSE;
  VkBool32 cooperativeMatrixConversions = VK_FALSE;
  VkBool32 cooperativeMatrixPerElementOperations = VK_FALSE;
  VkBool32 cooperativeMatrixTensorAddressing = VK_FALSE;
  VkBool32 cooperativeMatrixBlockLoads = VK_FALSE;
};

struct Bfloat16Features {
  VkStructureType sType = static_cast<VkStructureType>(1000141000);
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE;
  VkBool32 shaderBFloat16DotProduct = VK_FALSE;
  VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

constexpr const char* kCooperativeMatrix = "VK_KHR_cooperative_matrix";
constexpr const char* kCooperativeMatrix2 = "VK_NV_cooperative_matrix2";
constexpr const char* kBfloat16 = "VK_KHR_shader_bfloat16";

// A matrix product that the device computes: result (m x n) = a (m x k) * b (k x n) + c. Types and scope are
// Vulkan's enumerators. A flexible product stands for all multiples of its sizes; if its scope is the
// workgroup, it requires `invocations` invocations (0: any number).
struct MatrixProduct {
  uint32_t m, n, k;
  uint32_t a, b, c, result;
  uint32_t saturating;
  uint32_t scope;
  uint32_t flexible;
  uint32_t invocations;
};

// For a device with the first extension; includes flexible products if it has the second. `instance` is
// needed because the loader resolves extension functions per instance.
std::vector<MatrixProduct> matrix_products(VkInstance instance, VkPhysicalDevice physical, bool flexible);

}  // namespace vkd
