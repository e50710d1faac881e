#include "libs/environment.hpp"

#include <algorithm>
#include <cctype>
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

Setting read_setting(const char* name) {
  const char* text = std::getenv(name);
  std::string value = text != nullptr ? text : "";
  constexpr const char* kBlanks = " \t\r\n";
  value.erase(value.find_last_not_of(kBlanks) + 1);
  value.erase(0, value.find_first_not_of(kBlanks));
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (value.empty()) {
    return Setting::unset;
  }
  if (value == "1" || value == "true" || value == "yes" || value == "on") {
    return Setting::on;
  }
  if (value == "0" || value == "false" || value == "no" || value == "off") {
    return Setting::off;
  }
  throw Error(ErrorKind::invalid_value, std::string(name) + ": expected 1 or 0, got '" + text + "'");
}

bool read_switch(const char* name) {
  return read_choice(name, {"0", "1"}) == "1";
}

}  // namespace vkd
