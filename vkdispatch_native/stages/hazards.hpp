// Which commands need a barrier between them.
//
// A barrier here orders everything before it against everything after it, and costs the same as a narrow one.
// So one counter is enough: each barrier opens a new epoch, a resource remembers the epochs of its last read
// and write, and two accesses conflict only inside one epoch.
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

// What was really recorded, for the checker: barriers (data 0) and accesses, one `command` number per
// command.
struct HazardEvent {
  uint64_t data;  // Data::id, or 0: a barrier
  bool reads;
  bool writes;
  uint32_t command;
  std::string name;
  const char* noun;  // what the data is
};
using HazardLog = std::vector<HazardEvent>;

// Debug mode's second opinion: replays the accesses against the barriers that were emitted, with plain sets
// instead of epochs, and reports every conflict that no barrier separates. The validation layer sees neither
// read-modify-write pairs nor accesses by device address.
class HazardChecker {
 public:
  // Returns what is wrong with appending `log` to everything checked before.
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
