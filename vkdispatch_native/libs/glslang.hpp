#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "libs/background.hpp"

namespace vkd {

// The path of a source, the files it includes, and the Vulkan version it is compiled for.
struct GlslOptions {
  // The including file (empty: the source itself), the name in the directive, and whether the name is quoted.
  using Directive = std::tuple<std::string, std::string, bool>;

  // Path of the source file. Messages name it, and included files are searched for beside it. If it is empty,
  // only `includes` are available.
  std::string path;
  int vulkan_minor = 2;  // Vulkan 1.0, 1.1 or 1.2: SPIR-V 1.0, 1.3 or 1.5
  std::string preamble;  // GLSL inserted after #version
  bool debug = false;    // whether the SPIR-V has names and the lines of the source
  // `includes` maps each directive to a key of `texts`, which holds the included text. A value that is no key
  // is the reason why the file cannot be included.
  std::map<Directive, std::string> includes;
  std::map<std::string, std::string> texts;
};

// Compiles a GLSL compute shader to SPIR-V.
class Compilation final : public Background {
 public:
  // Throws Error(invalid_value) if the source is too long or the Vulkan version is unknown.
  static std::shared_ptr<Compilation> start(std::string source, GlslOptions options = {});

  Compilation(std::string source, GlslOptions options);

  // Call it after wait(). Throws Error(invalid_value) with glslang's log.
  const std::vector<uint32_t>& spirv() const;

 private:
  void run() override;

  std::string source_;
  GlslOptions options_;
  std::vector<uint32_t> spirv_;
};

// Identifies everything besides the source that determines the SPIR-V: glslang's version and how it is used.
std::string compiler_identity();

// Number of glslang compilations in this process.
uint64_t compile_count() noexcept;

// Builds glslang's built-in tables on a separate thread; they take most of the first compilation's time. Runs
// once per process; later calls do nothing.
void prepare_compiler() noexcept;

// Waits for that thread, and at most `patience_ns` for all other calls, before the process exits or forks.
// Returns whether no background call is left.
bool finish_compiling(uint64_t patience_ns) noexcept;

}  // namespace vkd
