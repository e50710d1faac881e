// Validation and disassembly of SPIR-V modules by SPIRV-Tools.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libs/background.hpp"

namespace vkd {

// Checks a module against all rules of SPIR-V and of Vulkan 1.3.
class Validation final : public Background {
 public:
  // Throws Error(invalid_value) if the module is too long.
  static std::shared_ptr<Validation> start(std::vector<uint32_t> words);

  explicit Validation(std::vector<uint32_t> words) : words_(std::move(words)) {}

  // Waits until the module is validated, which is to take no longer than a minute. Throws Interrupted, and
  // Error(invalid_value) after that minute.
  void wait();

  // The rule that the module breaks, or an empty text. Throws Error(out_of_memory). Call it after wait().
  const std::string& complaint() const;

 private:
  void run() override;

  std::vector<uint32_t> words_;
  std::string complaint_;
};

// Returns a module as text, with names where it has them. Throws Error(invalid_value) if it is malformed.
std::string disassemble(const std::vector<uint32_t>& words);

}  // namespace vkd
