// Cooperative matrices: what headers older than the extensions lack, and which shapes a device multiplies.
#pragma once

#include <vector>

#include "libs/vulkan.hpp"

namespace vkd {

// The three structures are Vulkan's, under names of our own: not all headers that we build with have them.
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

// A product of matrices that the device computes: result (m x n) = a (m x k) * b (k x n) + c. Types and scope
// are Vulkan's numbers. A flexible one stands for all multiples of its sizes, and where its scope is the
// workgroup, for workgroups of `invocations`; 0: any.
struct MatrixProduct {
  uint32_t m, n, k;
  uint32_t a, b, c, result;
  uint32_t saturating;
  uint32_t scope;
  uint32_t flexible;
  uint32_t invocations;
};

// Of a device that has the first extension; the flexible ones are asked for where it has the second. The
// loader tells instances apart: functions that it does not know itself are those of one instance's devices.
std::vector<MatrixProduct> matrix_products(VkInstance instance, VkPhysicalDevice physical, bool flexible);

}  // namespace vkd
