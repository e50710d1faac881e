#include "libs/glslang.hpp"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "libs/error.hpp"

namespace vkd {

namespace {

// In characters: the stack of a background thread is sufficient for this length.
constexpr size_t kLongestSource = size_t{4} << 20;
constexpr size_t kMostIncluded = size_t{64} << 20;  // characters, in all files that one shader includes
constexpr size_t kDeepest = 64;                     // nesting depth of includes

// glslang's built-in tables are built once and live as long as the process.
void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] { glslang::InitializeProcess(); });
}

// Part of compiler_identity(): increment it with any change of how glslang is used below.
constexpr int kUse = 4;

std::atomic<uint64_t> compilations{0};

struct Preparation {
  std::mutex mutex;
  std::thread thread;
  bool begun = false;
};

Preparation& preparation() {
  static auto* const only = new Preparation;  // never destroyed: code that runs at exit may still use it
  return *only;
}

// Resolves includes relative to the including file.
class Files final : public glslang::TShader::Includer {
 public:
  IncludeResult* includeLocal(const char* name, const char* from, size_t depth) override {
    namespace fs = std::filesystem;
    std::error_code failure;
    const fs::path path = fs::path(from).parent_path() / name;
    if (depth > kDeepest || !fs::is_regular_file(path, failure)) {
      return nullptr;  // glslang reports which one
    }
    const auto size = fs::file_size(path, failure);
    if (failure || size > kMostIncluded - included_) {
      return nullptr;
    }
    included_ += size;
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
  size_t included_ = 0;
};

// Resolves includes from a given table.
class Texts final : public glslang::TShader::Includer {
 public:
  explicit Texts(const GlslOptions& options) : includes_(options.includes), texts_(options.texts) {}

  IncludeResult* includeLocal(const char* name, const char* from, size_t depth) override {
    return find(name, from, true, depth);
  }
  IncludeResult* includeSystem(const char* name, const char* from, size_t depth) override {
    return find(name, from, false, depth);
  }
  void releaseInclude(IncludeResult* result) override { delete result; }

 private:
  IncludeResult* find(const char* name, const char* from, bool quoted, size_t depth) {
    auto found = includes_.find({from, name, quoted});
    if (found == includes_.end()) {  // glslang searches for a quoted name a second time, as an unquoted one
      found = includes_.find({from, name, true});
    }
    if (found == includes_.end()) {
      return fail(kUnknown);
    }
    const auto text = texts_.find(found->second);
    if (text == texts_.end()) {
      return fail(found->second);
    }
    if (depth > kDeepest) {
      return fail(kTooDeep);
    }
    if (text->second.size() > kMostIncluded - included_) {
      return fail(kTooLong);
    }
    included_ += text->second.size();
    return new IncludeResult(text->first, text->second.data(), text->second.size(), nullptr);
  }

  // glslang treats the text of an include without a name as the reason for the failure.
  static IncludeResult* fail(const std::string& why) {
    return new IncludeResult(std::string(), why.data(), why.size(), nullptr);
  }

  static inline const std::string kUnknown = "file not found";
  static inline const std::string kTooDeep = "files that include each other, more than 64 deep";
  static inline const std::string kTooLong = "more than 64 MiB are included";

  const std::map<GlslOptions::Directive, std::string>& includes_;
  const std::map<std::string, std::string>& texts_;
  size_t included_ = 0;
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

// Declares the capabilities for 8- and 16-bit results of extended instructions. glslang declares them for all
// other instructions: a shader whose only arithmetic is max(int16_t, int16_t) would lack Int16.
void declare_small_results(std::vector<uint32_t>& spirv) {
  constexpr size_t kHeader = 5;
  std::map<uint32_t, spv::Capability> small;  // by type
  std::set<uint32_t> declared;
  std::set<uint32_t> needed;
  size_t end_of_capabilities = kHeader;
  for (size_t at = kHeader; at < spirv.size();) {
    const uint32_t* word = &spirv[at];
    const uint32_t size = word[0] >> spv::WordCountShift;
    const auto opcode = static_cast<spv::Op>(word[0] & spv::OpCodeMask);
    at += size;
    if (opcode == spv::OpCapability) {
      declared.insert(word[1]);
      end_of_capabilities = at;
    } else if (opcode == spv::OpTypeInt && word[2] == 8) {
      small.emplace(word[1], spv::CapabilityInt8);
    } else if (opcode == spv::OpTypeInt && word[2] == 16) {
      small.emplace(word[1], spv::CapabilityInt16);
    } else if (opcode == spv::OpTypeFloat && word[2] == 16 && size == 3) {
      small.emplace(word[1], spv::CapabilityFloat16);
    } else if (opcode == spv::OpTypeVector && small.count(word[2]) != 0) {
      small.emplace(word[1], small.at(word[2]));
    } else if (opcode == spv::OpExtInst && small.count(word[1]) != 0) {
      needed.insert(static_cast<uint32_t>(small.at(word[1])));
    }
  }
  std::vector<uint32_t> added;
  for (const uint32_t capability : needed) {
    if (declared.count(capability) == 0) {
      added.push_back(2 << spv::WordCountShift | static_cast<uint32_t>(spv::OpCapability));
      added.push_back(capability);
    }
  }
  if (added.empty()) {
    return;
  }
  spirv.insert(spirv.begin() + static_cast<ptrdiff_t>(end_of_capabilities), added.begin(), added.end());
}

// Whether compilers may not combine or reorder the operation: a conversion, or if `arithmetic`, any of
// floats.
bool rounds(spv::Op opcode, bool arithmetic) {
  switch (opcode) {
    case spv::OpConvertFToU:
    case spv::OpConvertFToS:
    case spv::OpConvertSToF:
    case spv::OpConvertUToF:
    case spv::OpFConvert:
      return true;
    case spv::OpFNegate:
    case spv::OpFAdd:
    case spv::OpFSub:
    case spv::OpFMul:
    case spv::OpFDiv:
    case spv::OpFRem:
    case spv::OpFMod:
    case spv::OpVectorTimesScalar:
    case spv::OpMatrixTimesScalar:
    case spv::OpVectorTimesMatrix:
    case spv::OpMatrixTimesVector:
    case spv::OpMatrixTimesMatrix:
    case spv::OpOuterProduct:
    case spv::OpDot:
      return arithmetic;
    default:
      return false;
  }
}

// Decorates operations with NoContraction, by which Mesa knows that each of them rounds: else it takes
// int(float(i)) for i. glslang decorates what `precise` variables hold, and no conversions.
void decorate_rounding(std::vector<uint32_t>& spirv, bool arithmetic) {
  constexpr size_t kHeader = 5;
  std::set<uint32_t> decorated;
  std::vector<uint32_t> added;
  size_t place = 0;  // of the first decoration or type
  for (size_t at = kHeader; at < spirv.size();) {
    const uint32_t* word = &spirv[at];
    const auto opcode = static_cast<spv::Op>(word[0] & spv::OpCodeMask);
    if (place == 0 &&
        (opcode == spv::OpDecorate || opcode == spv::OpMemberDecorate || opcode == spv::OpTypeVoid)) {
      place = at;
    }
    if (opcode == spv::OpDecorate && word[2] == spv::DecorationNoContraction) {
      decorated.insert(word[1]);
    } else if (rounds(opcode, arithmetic) && decorated.insert(word[2]).second) {
      added.insert(added.end(), {3 << spv::WordCountShift | static_cast<uint32_t>(spv::OpDecorate), word[2],
                                 static_cast<uint32_t>(spv::DecorationNoContraction)});
    }
    at += word[0] >> spv::WordCountShift;
  }
  spirv.insert(spirv.begin() + static_cast<ptrdiff_t>(place), added.begin(), added.end());
}

std::vector<uint32_t> compile(const std::string& source, const GlslOptions& options = {}) {
  initialize_once();
  constexpr auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  constexpr int default_version = 450;

  // This extension requires SPIR-V 1.6; devices that support it do too.
  const auto asks = [](const std::string& text) {
    return text.find("GL_NV_cooperative_matrix2") != std::string::npos;
  };
  const bool newer = asks(source) || std::any_of(options.texts.begin(), options.texts.end(),
                                                 [&](const auto& text) { return asks(text.second); });
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
  if (!options.preamble.empty()) {
    shader.setPreamble(options.preamble.c_str());
  }
  Files files;
  Texts texts(options);
  glslang::TShader::ForbidIncluder nothing;
  glslang::TShader::Includer* includer = &nothing;
  if (!options.includes.empty()) {
    includer = &texts;
  } else if (!options.path.empty()) {
    includer = &files;
  }
  if (!shader.parse(GetDefaultResources(), default_version, ENoProfile, false, false, messages, *includer)) {
    throw Error(ErrorKind::invalid_value, shader.getInfoLog());
  }

  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) {
    throw Error(ErrorKind::invalid_value, program.getInfoLog());
  }

  std::vector<uint32_t> spirv;
  glslang::SpvOptions written;
  written.generateDebugInfo = options.debug;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), spirv, &written);
  declare_small_results(spirv);
  decorate_rounding(spirv, source.find("#pragma vkdispatch precise") != std::string::npos);
  return spirv;
}

}  // namespace

Compilation::Compilation(std::string source, GlslOptions options)
    : source_(std::move(source)), options_(std::move(options)) {}

std::shared_ptr<Compilation> Compilation::start(std::string source, GlslOptions options) {
  if (source.size() > kLongestSource) {
    throw Error(ErrorKind::invalid_value, "the source has " + std::to_string(source.size()) +
                                              " characters; the maximum is " +
                                              std::to_string(kLongestSource) + "");
  }
  compilations.fetch_add(1, std::memory_order_relaxed);
  if (options.vulkan_minor < 0 || options.vulkan_minor > 3) {
    throw Error(ErrorKind::invalid_value,
                "Vulkan 1." + std::to_string(options.vulkan_minor) + " is unknown: 1.0 to 1.3");
  }
  auto compilation = std::make_shared<Compilation>(std::move(source), std::move(options));
  Background::start(compilation);
  return compilation;
}

void Compilation::run() {
  spirv_ = compile(source_, options_);
}

const std::vector<uint32_t>& Compilation::spirv() const {
  check();
  return spirv_;
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
    // The tables belong to a GLSL version: use that of the kernels.
    state.thread = std::thread([] {
      try {
        compile("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
      } catch (...) {
        // The next compilation reports the error.
      }
    });
  } catch (...) {
    // Without a thread the first compilation builds the tables.
  }
}

bool finish_compiling(uint64_t patience_ns) noexcept {
  Preparation& state = preparation();
  {
    const std::lock_guard lock(state.mutex);
    if (state.thread.joinable()) {
      state.thread.join();
    }
  }
  return finish_background(patience_ns);
}

}  // namespace vkd
