#include "libs/glslang.hpp"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr size_t kStackSize = size_t{1} << 30;      // address space; pages come as they are touched
constexpr size_t kLongestSource = size_t{4} << 20;  // characters: what that stack is sure to suffice for

// glslang's built-in tables are made once and kept for the life of the process.
void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] { glslang::InitializeProcess(); });
}

// Part of compiler_identity(): to be raised with any change of how glslang is used below.
constexpr int kUse = 2;

std::atomic<uint64_t> compilations{0};

struct Preparation {
  std::mutex mutex;
  std::thread thread;
  bool begun = false;
};

Preparation& preparation() {
  static auto* const only = new Preparation;  // never destroyed: what ends the process may still look at it
  return *only;
}

// Reads what a shader includes, from beside the file that includes it.
class Files final : public glslang::TShader::Includer {
 public:
  IncludeResult* includeLocal(const char* name, const char* from, size_t depth) override {
    namespace fs = std::filesystem;
    std::error_code failure;
    const fs::path path = fs::path(from).parent_path() / name;
    if (depth > kDeepest || !fs::is_regular_file(path, failure) ||
        fs::file_size(path, failure) > kLongestSource) {
      return nullptr;  // glslang says which
    }
    std::ifstream file(path, std::ios::binary);
    auto text =
        std::make_unique<std::string>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (!file) {
      return nullptr;
    }
    auto* result = new IncludeResult(path.string(), text->data(), text->size(), text.get());
    static_cast<void>(text.release());
    return result;
  }

  void releaseInclude(IncludeResult* result) override {
    if (result != nullptr) {
      delete static_cast<std::string*>(result->userData);
      delete result;
    }
  }

 private:
  static constexpr size_t kDeepest = 64;
};

glslang::EShTargetClientVersion client_version(int vulkan_minor) {
  return vulkan_minor == 0   ? glslang::EShTargetVulkan_1_0
         : vulkan_minor == 1 ? glslang::EShTargetVulkan_1_1
         : vulkan_minor == 2 ? glslang::EShTargetVulkan_1_2
                             : glslang::EShTargetVulkan_1_3;
}

glslang::EShTargetLanguageVersion spirv_version(int vulkan_minor) {
  return vulkan_minor == 0   ? glslang::EShTargetSpv_1_0
         : vulkan_minor == 1 ? glslang::EShTargetSpv_1_3
         : vulkan_minor == 2 ? glslang::EShTargetSpv_1_5
                             : glslang::EShTargetSpv_1_6;
}

std::vector<uint32_t> compile(const std::string& source, const GlslOptions& options = {}) {
  initialize_once();
  constexpr auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  constexpr int default_version = 450;

  // What this extension adds to SPIR-V is defined upon 1.6; devices that have it know that.
  const bool newer = source.find("GL_NV_cooperative_matrix2") != std::string::npos;
  const int vulkan_minor = newer ? std::max(options.vulkan_minor, 3) : options.vulkan_minor;
  const char* text = source.c_str();
  const char* path = options.path.c_str();
  glslang::TShader shader(EShLangCompute);
  if (options.path.empty()) {
    shader.setStrings(&text, 1);
  } else {
    shader.setStringsWithLengthsAndNames(&text, nullptr, &path, 1);
  }
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, default_version);
  shader.setEnvClient(glslang::EShClientVulkan, client_version(vulkan_minor));
  shader.setEnvTarget(glslang::EShTargetSpv, spirv_version(vulkan_minor));
  Files files;
  glslang::TShader::ForbidIncluder nothing;
  glslang::TShader::Includer& includer =
      options.path.empty() ? static_cast<glslang::TShader::Includer&>(nothing) : files;
  if (!shader.parse(GetDefaultResources(), default_version, ENoProfile, false, false, messages, includer)) {
    throw Error(ErrorKind::invalid_value, shader.getInfoLog());
  }

  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) {
    throw Error(ErrorKind::invalid_value, program.getInfoLog());
  }

  std::vector<uint32_t> spirv;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), spirv);
  return spirv;
}

struct Task {
  const std::string& source;
  const GlslOptions& options;
  std::vector<uint32_t> spirv;
  std::exception_ptr error;
};

void* run_task(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  try {
    task.spirv = compile(task.source, task.options);
  } catch (...) {
    task.error = std::current_exception();
  }
  return nullptr;
}

}  // namespace

// glslang recurses as deep as the source nests: a thread with a stack of its own keeps that from ending the
// process.
std::vector<uint32_t> compile_glsl(const std::string& source, const GlslOptions& options) {
  if (source.size() > kLongestSource) {
    throw Error(ErrorKind::invalid_value, "the source has " + std::to_string(source.size()) +
                                              " characters, at most " + std::to_string(kLongestSource) +
                                              " are compiled");
  }
  compilations.fetch_add(1, std::memory_order_relaxed);
  if (options.vulkan_minor < 0 || options.vulkan_minor > 3) {
    throw Error(ErrorKind::invalid_value,
                "Vulkan 1." + std::to_string(options.vulkan_minor) + " is unknown: 1.0 to 1.3");
  }
  Task task{source, options, {}, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  pthread_t thread;
  const int failure = pthread_create(&thread, &attributes, run_task, &task);
  pthread_attr_destroy(&attributes);
  if (failure != 0) {
    throw Error(ErrorKind::out_of_memory, "no thread for the GLSL compiler could be started");
  }
  pthread_join(thread, nullptr);
  if (task.error) {
    std::rethrow_exception(task.error);
  }
  return std::move(task.spirv);
}

std::string compiler_identity() {
  const glslang::Version version = glslang::GetVersion();
  return "glslang " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch) + version.flavor + " generator " +
         std::to_string(glslang::GetSpirvGeneratorVersion()) + " use " + std::to_string(kUse);
}

uint64_t compile_count() noexcept {
  return compilations.load(std::memory_order_relaxed);
}

void prepare_compiler() noexcept {
  Preparation& state = preparation();
  std::lock_guard lock(state.mutex);
  if (state.begun || compile_count() > 0) {
    return;
  }
  state.begun = true;
  try {
    // The tables belong to a version of GLSL: the one in which kernels are written.
    state.thread = std::thread([] {
      try {
        compile("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
      } catch (...) {
        // The next compilation says what is wrong.
      }
    });
  } catch (...) {
    // No thread: the first compilation makes the tables.
  }
}

void finish_preparing() noexcept {
  Preparation& state = preparation();
  std::lock_guard lock(state.mutex);
  if (state.thread.joinable()) {
    state.thread.join();
  }
}

}  // namespace vkd
