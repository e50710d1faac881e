#include "libs/environment.hpp"

#include <cstdlib>

#include "libs/error.hpp"

namespace vkd {

std::string read_choice(const char* name, std::initializer_list<const char*> choices) {
  const char* setting = std::getenv(name);
  const std::string value = setting != nullptr ? setting : "";
  if (value.empty()) {
    return value;
  }
  std::string expected;
  for (const char* choice : choices) {
    if (value == choice) {
      return value;
    }
    expected += (expected.empty() ? "" : ", ") + std::string(choice);
  }
  throw Error(ErrorKind::invalid_value,
              std::string(name) + ": expected one of " + expected + ", got '" + value + "'");
}

bool read_switch(const char* name) {
  return read_choice(name, {"0", "1"}) == "1";
}

}  // namespace vkd
