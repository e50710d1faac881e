#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"

namespace floor_program {

using Values = std::vector<std::pair<std::string, double>>;
using Parameters = std::map<std::string, double>;

const std::vector<std::string>& measure_names();
// One round of one measure. `right` tells whether the device computed what it should.
Values measure(Gpu& gpu, const std::string& name, const Parameters& parameters, bool& right);

}  // namespace floor_program
