#include "libs/spirv_tools.hpp"

#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr size_t kMostWords = size_t{4} << 20;  // the validator needs about 100 times as much memory
constexpr size_t kLongestComplaint = 2000;      // in bytes: messages quote names of the module
constexpr std::chrono::seconds kPatience{60};

template <auto destroy>
struct Destroy {
  template <typename Object>
  void operator()(Object* object) const {
    destroy(object);
  }
};

using Context = std::unique_ptr<spv_context_t, Destroy<spvContextDestroy>>;
using Options = std::unique_ptr<spv_validator_options_t, Destroy<spvValidatorOptionsDestroy>>;
using Diagnostic = std::unique_ptr<spv_diagnostic_t, Destroy<spvDiagnosticDestroy>>;

// Returns the module with float16 in place of bfloat16: SPIRV-Tools does not know SPV_KHR_bfloat16 yet.
std::vector<uint32_t> without_bfloat16(const std::vector<uint32_t>& words) {
  constexpr size_t kHeader = 5;
  constexpr uint32_t kCapability = 17, kTypeFloat = 22, kFloat16 = 9;
  constexpr uint32_t kFirstBfloat16 = 5116, kLastBfloat16 = 5118;
  std::vector<uint32_t> result(words.begin(), words.begin() + std::min(words.size(), kHeader));
  for (size_t at = kHeader; at < words.size();) {
    const uint32_t* word = &words[at];
    const uint32_t size = word[0] >> 16;
    const uint32_t opcode = word[0] & 0xFFFF;
    if (size == 0 || size > words.size() - at) {
      return words;  // the validator refuses it
    }
    if (opcode == kCapability && size == 2 && word[1] >= kFirstBfloat16 && word[1] <= kLastBfloat16) {
      result.insert(result.end(), {word[0], kFloat16});
    } else if (opcode == kTypeFloat && size == 4 && word[2] == 16 && word[3] == 0) {
      result.insert(result.end(), {3 << 16 | kTypeFloat, word[1], word[2]});
    } else {
      result.insert(result.end(), word, word + size);
    }
    at += size;
  }
  return result;
}

}  // namespace

std::shared_ptr<Validation> Validation::start(std::vector<uint32_t> words) {
  if (words.size() > kMostWords) {
    throw Error(ErrorKind::invalid_value, "the module has " + std::to_string(words.size()) +
                                              " words; the maximum is " + std::to_string(kMostWords));
  }
  auto validation = std::make_shared<Validation>(std::move(words));
  Background::start(validation);
  return validation;
}

void Validation::run() {
  // Vulkan 1.3 allows what older versions allow.
  const Context context(spvContextCreate(SPV_ENV_VULKAN_1_3));
  const Options options(spvValidatorOptionsCreate());
  // Rules of optional features are relaxed: whether the device has the feature is not known here.
  spvValidatorOptionsSetScalarBlockLayout(options.get(), true);
  spvValidatorOptionsSetWorkgroupScalarBlockLayout(options.get(), true);
  spvValidatorOptionsSetAllowLocalSizeId(options.get(), true);
  const std::vector<uint32_t> words = without_bfloat16(words_);
  spv_const_binary_t binary{words.data(), words.size()};
  spv_diagnostic said = nullptr;
  const spv_result_t result = spvValidateWithOptions(context.get(), options.get(), &binary, &said);
  const Diagnostic diagnostic(said);
  if (result == SPV_ERROR_OUT_OF_MEMORY) {
    throw Error(ErrorKind::out_of_memory, "there is not enough memory to validate the module");
  }
  if (result != SPV_SUCCESS) {
    complaint_ = diagnostic && diagnostic->error != nullptr ? diagnostic->error : "the module is malformed";
    complaint_.resize(std::min(complaint_.size(), kLongestComplaint));
  }
}

void Validation::wait() {
  if (!Background::wait(kPatience)) {
    throw Error(ErrorKind::invalid_value,
                "the validator took more than " + std::to_string(kPatience.count()) + " s");
  }
}

const std::string& Validation::complaint() const {
  check();
  return complaint_;
}

std::string disassemble(const std::vector<uint32_t>& module) {
  constexpr uint32_t kOptions = SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES |
                                SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_INDENT;
  const Context context(spvContextCreate(SPV_ENV_UNIVERSAL_1_6));
  const std::vector<uint32_t> words = without_bfloat16(module);
  spv_text written = nullptr;
  spv_diagnostic said = nullptr;
  const spv_result_t result =
      spvBinaryToText(context.get(), words.data(), words.size(), kOptions, &written, &said);
  const std::unique_ptr<spv_text_t, Destroy<spvTextDestroy>> text(written);
  const Diagnostic diagnostic(said);
  if (result != SPV_SUCCESS || !text) {
    throw Error(ErrorKind::invalid_value,
                diagnostic && diagnostic->error != nullptr ? diagnostic->error : "the module is malformed");
  }
  return {text->str, text->length};
}

}  // namespace vkd
