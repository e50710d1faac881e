#include "stages/hazards.hpp"

namespace vkd {

std::vector<std::string> HazardChecker::check(const HazardLog& log) {
  std::vector<std::string> problems;
  size_t begin = 0;
  while (begin < log.size()) {
    if (log[begin].data == 0) {
      since_barrier_.clear();
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < log.size() && log[end].data != 0 && log[end].command == log[begin].command) {
      ++end;
    }
    // Compare all accesses of a command with earlier ones first: a command never conflicts with itself.
    for (size_t i = begin; i < end; ++i) {
      const HazardEvent& now = log[i];
      const auto found = since_barrier_.find(now.data);
      if (found == since_barrier_.end()) {
        continue;
      }
      const Accesses& past = found->second;
      if (past.written && now.reads) {
        problems.push_back("hazard: " + now.name + " reads " + now.noun + " that " + past.writer +
                           " writes, with no barrier between them");
      } else if (past.written && now.writes) {
        problems.push_back("hazard: " + now.name + " writes " + now.noun + " that " + past.writer +
                           " writes, with no barrier between them");
      } else if (past.read && now.writes) {
        problems.push_back("hazard: " + now.name + " writes " + now.noun + " that " + past.reader +
                           " reads, with no barrier between them");
      }
    }
    for (size_t i = begin; i < end; ++i) {
      Accesses& past = since_barrier_[log[i].data];
      if (log[i].reads) {
        past.read = true;
        past.reader = log[i].name;
      }
      if (log[i].writes) {
        past.written = true;
        past.writer = log[i].name;
      }
    }
    begin = end;
  }
  return problems;
}

}  // namespace vkd
