#include "libs/glslang.hpp"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <mutex>

#include "context/error.hpp"

namespace vkd {

namespace {

// glslang's built-in tables are made once and kept for the life of the process.
void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] { glslang::InitializeProcess(); });
}

}  // namespace

std::vector<uint32_t> compile_glsl(const std::string& source) {
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

}  // namespace vkd
