#include "libs/glslang.hpp"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <pthread.h>

#include <exception>
#include <mutex>
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

std::vector<uint32_t> compile(const std::string& source) {
  initialize_once();
  constexpr auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  constexpr int default_version = 450;

  const char* text = source.c_str();
  glslang::TShader shader(EShLangCompute);
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, default_version);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  if (!shader.parse(GetDefaultResources(), default_version, false, messages)) {
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
  std::vector<uint32_t> spirv;
  std::exception_ptr error;
};

void* run_task(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  try {
    task.spirv = compile(task.source);
  } catch (...) {
    task.error = std::current_exception();
  }
  return nullptr;
}

}  // namespace

// glslang recurses as deep as the source nests: a thread with a stack of its own keeps that from ending the
// process.
std::vector<uint32_t> compile_glsl(const std::string& source) {
  if (source.size() > kLongestSource) {
    throw Error(ErrorKind::invalid_value, "the source has " + std::to_string(source.size()) +
                                              " characters, at most " + std::to_string(kLongestSource) +
                                              " are compiled");
  }
  Task task{source, {}, nullptr};
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

}  // namespace vkd
