// Creates a plan in the background: the driver may take minutes, and the caller may stop waiting.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "libs/background.hpp"

namespace vkd {

class PlanCreation final : public Background {
 public:
  // The arguments of Engine::create_plan.
  struct Request {
    std::vector<uint32_t> spirv;
    std::vector<int> binding_types;
    uint32_t push_constant_size = 0;
    std::string name;
    std::string entry_point;
    Specialization specialization;
    std::vector<std::string> cached;
  };

  static std::shared_ptr<PlanCreation> start(std::shared_ptr<Engine> engine, Request request) {
    auto creation = std::make_shared<PlanCreation>(std::move(engine), std::move(request));
    Background::start(creation);
    return creation;
  }

  PlanCreation(std::shared_ptr<Engine> engine, Request request)
      : engine_(std::move(engine)), request_(std::move(request)) {}

  ~PlanCreation() override {
    if (plan_ != nullptr) {  // the caller stopped waiting
      engine_->retire(plan_);
    }
  }

  // Call it after wait(). The caller then owns the plan. Throws what create_plan throws.
  Plan* take() {
    check();
    return std::exchange(plan_, nullptr);
  }

  // The number of creations in progress.
  static int running() noexcept { return running_.load(); }

 private:
  void run() override {
    running_.fetch_add(1);
    try {
      plan_ =
          engine_->create_plan(request_.spirv, request_.binding_types, request_.push_constant_size,
                               request_.name, request_.entry_point, request_.specialization, request_.cached);
    } catch (...) {
      running_.fetch_sub(1);
      throw;
    }
    running_.fetch_sub(1);
  }

  static inline std::atomic<int> running_{0};

  std::shared_ptr<Engine> engine_;
  Request request_;
  Plan* plan_ = nullptr;
};

}  // namespace vkd
