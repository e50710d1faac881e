// Which commands need a barrier between them.
//
// A barrier here orders everything before it against everything after it, at the cost of a narrower one. So
// one counter suffices: each barrier starts a new epoch, a resource stores the epochs of its last read and
// write, and two accesses conflict only within one epoch.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "objects/data.hpp"

namespace vkd {

inline bool conflicts(const HazardState& state, uint64_t epoch, bool reads, bool writes) noexcept {
  const bool written = state.write_epoch == epoch;
  const bool read = state.read_epoch == epoch;
  return (written && (reads || writes)) || (read && writes);
}

inline void note_access(HazardState& state, uint64_t epoch, bool reads, bool writes) noexcept {
  if (reads) {
    state.read_epoch = epoch;
  }
  if (writes) {
    state.write_epoch = epoch;
  }
}

// What was actually recorded, for the checker: barriers (data 0) and accesses, with one `command` number per
// command.
struct HazardEvent {
  uint64_t data;  // Data::id, or 0 for a barrier
  bool reads;
  bool writes;
  uint32_t command;
  std::string name;
  const char* noun;  // describes the data
};
using HazardLog = std::vector<HazardEvent>;

// An independent check for debug mode. It replays the accesses against the recorded barriers, using plain
// sets instead of epochs, and reports every conflict without a barrier. The validation layer misses
// read-modify-write pairs and accesses by device address.
class HazardChecker {
 public:
  // Checks `log` after everything checked before, and returns the problems found.
  std::vector<std::string> check(const HazardLog& log);

 private:
  struct Accesses {
    std::string reader;
    std::string writer;
    bool read = false;
    bool written = false;
  };
  std::unordered_map<uint64_t, Accesses> since_barrier_;
};

}  // namespace vkd
