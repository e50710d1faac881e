// Reads lines `measure key=number ...`, answers each with a line of JSON, until the input ends.
// The first line that it writes says which device it uses and what it measures.
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>

#include "measures.hpp"

using namespace floor_program;

namespace {

// What may stand in our messages and in a device's name needs no more than this.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

void answer(Gpu& gpu, const std::string& line) {
  std::istringstream words(line);
  std::string name, word;
  words >> name;
  Parameters parameters;
  while (words >> word) {
    const size_t equals = word.find('=');
    parameters[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
  }
  bool right = false;
  const Values values = measure(gpu, name, parameters, right);
  std::printf("{\"values\": {");
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%s: %.9g", i ? ", " : "", quoted(values[i].first).c_str(), values[i].second);
  }
  std::printf("}, \"correct\": %s}\n", right ? "true" : "false");
}

}  // namespace

int main() {
  try {
    Gpu gpu;
    std::printf("{\"device\": %s, \"driver_version\": %u, \"measures\": [",
                quoted(gpu.properties.deviceName).c_str(), gpu.properties.driverVersion);
    const char* comma = "";
    for (const std::string& name : measure_names()) {
      std::printf("%s%s", comma, quoted(name).c_str());
      comma = ", ";
    }
    std::printf("]}\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      try {
        answer(gpu, line);
      } catch (const std::exception& error) {
        std::printf("{\"error\": %s}\n", quoted(error.what()).c_str());
      }
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::printf("{\"error\": %s}\n", quoted(error.what()).c_str());
    return 1;
  }
  return 0;
}
