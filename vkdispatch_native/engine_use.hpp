// Helpers of the engine's source files.
#pragma once

#include "engine.hpp"

namespace vkd {

// Prevents close() from destroying the queues during a call. `lost_too`: also allowed on a lost engine.
class Engine::Use {
 public:
  explicit Use(Engine& engine, bool lost_too = false) : engine_(engine) {
    engine.users_.fetch_add(1);
    if (engine.closed() || (engine.lost() && !lost_too)) {
      engine.users_.fetch_sub(1);
      engine.check_open();
    }
  }
  ~Use() { engine_.users_.fetch_sub(1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Engine& engine_;
};

template <typename Function>
void Engine::for_each_queue(Function function) {
  for (size_t slot = 0; slot < slot_count(); ++slot) {
    if (has_queue(slot)) {
      function(queue_at(slot));
    }
  }
}

}  // namespace vkd
