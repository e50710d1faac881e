#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "libs/background.hpp"

namespace vkd {

// Where a source comes from, what it includes, and for which version of Vulkan it is compiled.
struct GlslOptions {
  // The file that has the directive (empty: the source itself), the name in it, whether that is in quotes.
  using Directive = std::tuple<std::string, std::string, bool>;

  // Of the file: what messages call it, and what files that it includes are found beside. Without it only
  // what `includes` has can be included.
  std::string path;
  int vulkan_minor = 2;  // Vulkan 1.0, 1.1 or 1.2: SPIR-V 1.0, 1.3 or 1.5
  std::string preamble;  // GLSL to be read behind #version
  // The name of what each directive stands for, and the texts by these names. What has no text is no name,
  // but says why there is none.
  std::map<Directive, std::string> includes;
  std::map<std::string, std::string> texts;
};

// A GLSL compute shader on its way to SPIR-V.
class Compilation final : public Background {
 public:
  // Throws Error(invalid_value) where the source is too long or the version unknown.
  static std::shared_ptr<Compilation> start(std::string source, GlslOptions options = {});

  Compilation(std::string source, GlslOptions options);

  // Once wait() returned. Throws Error(invalid_value) with glslang's log.
  const std::vector<uint32_t>& spirv() const;

 private:
  void run() override;

  std::string source_;
  GlslOptions options_;
  std::vector<uint32_t> spirv_;
};

// What SPIR-V follows from besides the source: glslang's version and how it is used.
std::string compiler_identity();

// How often this process has called upon glslang.
uint64_t compile_count() noexcept;

// Has glslang make its built-in tables, the bulk of the first compilation's time, on a thread of its own.
// Once in a process; later calls do nothing.
void prepare_compiler() noexcept;

// Waits for that thread, if it runs, and at most `patience_ns` for all others: before the process ends, and
// before it forks. Returns whether no call is left in the background.
bool finish_compiling(uint64_t patience_ns) noexcept;

}  // namespace vkd
