#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkd {

// Where a source comes from, and for which version of Vulkan it is compiled.
struct GlslOptions {
  // Of the file: what messages call it, and what files that it includes are found beside. Without it nothing
  // can be included.
  std::string path;
  int vulkan_minor = 2;  // Vulkan 1.0, 1.1 or 1.2: SPIR-V 1.0, 1.3 or 1.5
};

// Compiles a GLSL compute shader to SPIR-V. Throws Error(invalid_value) with glslang's log.
std::vector<uint32_t> compile_glsl(const std::string& source, const GlslOptions& options = {});

// What SPIR-V follows from besides the source: glslang's version and how it is used.
std::string compiler_identity();

// How often this process has called upon glslang.
uint64_t compile_count() noexcept;

// Has glslang make its built-in tables, the bulk of the first compilation's time, on a thread of its own.
// Once in a process; later calls do nothing.
void prepare_compiler() noexcept;

// Waits for that thread, if it runs: before the process ends, and before it forks.
void finish_preparing() noexcept;

}  // namespace vkd
