#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vkd {

// Compiles a GLSL compute shader to SPIR-V 1.5 for Vulkan 1.2. Throws Error(invalid_value) with glslang's
// log.
std::vector<uint32_t> compile_glsl(const std::string& source);

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
