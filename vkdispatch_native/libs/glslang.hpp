#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkd {

// Compiles a GLSL compute shader to SPIR-V 1.5 for Vulkan 1.2. Throws Error(invalid_value) with glslang's
// log.
std::vector<uint32_t> compile_glsl(const std::string& source);

}  // namespace vkd
