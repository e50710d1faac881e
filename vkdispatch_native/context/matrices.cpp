#include "context/matrices.hpp"

#include "libs/error.hpp"

namespace vkd {

namespace {

// As Vulkan defines them; see the header.
struct KhrProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a = 0, b = 0, c = 0, result = 0;
  VkBool32 saturating = VK_FALSE;
  uint32_t scope = 0;
};

struct FlexibleProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000593001);
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a = 0, b = 0, c = 0, result = 0;
  VkBool32 saturating = VK_FALSE;
  uint32_t scope = 0;
  uint32_t invocations = 0;
};

template <typename Properties>
std::vector<Properties> enumerate_properties(VkInstance instance, VkPhysicalDevice physical,
                                             const char* name) {
  using Query = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, Properties*);
  const auto query = reinterpret_cast<Query>(vkGetInstanceProcAddr(instance, name));  // NOLINT
  uint32_t count = 0;
  if (query == nullptr || query(physical, &count, nullptr) != VK_SUCCESS || count == 0) {
    return {};
  }
  std::vector<Properties> found(count);
  check(query(physical, &count, found.data()), name);
  found.resize(count);
  return found;
}

}  // namespace

std::vector<MatrixProduct> matrix_products(VkInstance instance, VkPhysicalDevice physical, bool flexible) {
  std::vector<MatrixProduct> products;
  for (const auto& p : enumerate_properties<KhrProperties>(
           instance, physical, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")) {
    products.push_back({p.m, p.n, p.k, p.a, p.b, p.c, p.result, p.saturating, p.scope, 0, 0});
  }
  if (flexible) {
    for (const auto& p : enumerate_properties<FlexibleProperties>(
             instance, physical, "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV")) {
      products.push_back({p.m, p.n, p.k, p.a, p.b, p.c, p.result, p.saturating, p.scope, 1, p.invocations});
    }
  }
  return products;
}

}  // namespace vkd
