// When commands ran, on the host clock.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine_use.hpp"
#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr int64_t kLongTiming = 200'000'000;  // ns after which the two clocks may have drifted apart
constexpr double kMostDrift = 1e-3;

// Nanoseconds of the host clock per tick of the device clock: as reported by the device or, over a long time,
// as measured.
double tick_length(const Device& device, uint32_t family, const Calibration& first, const Calibration& now) {
  const double nominal = device.properties().core.limits.timestampPeriod;
  TickClock clock;
  clock.set(first.ticks, timestamp_mask(device, family));
  const int64_t ticks = clock.since_set(now.ticks);
  const int64_t host = now.host_ns - first.host_ns;
  if (host < kLongTiming || ticks <= 0) {
    return nominal;
  }
  const double measured = static_cast<double>(host) / static_cast<double>(ticks);
  // A larger difference is not drift: the clock wrapped around, or the two were not read at the same instant.
  return std::abs(measured / nominal - 1) < kMostDrift ? measured : nominal;
}

}  // namespace

// No command runs before the host begins to submit it. If a clock that was calibrated by a submit says so,
// all commands of that device ran later by the difference.
void Engine::delay_to_submits(Timings& found) {
  std::map<std::pair<size_t, uint64_t>, int64_t> submitted;
  for (const TimedSubmit& submit : found.submits) {
    submitted[{submit.slot, submit.batch}] = submit.begin;
  }
  std::map<const Device*, int64_t> delays;
  for (const TimedCommand& command : found.commands) {
    const auto submit = submitted.find({command.slot, command.batch});
    if (submit != submitted.end()) {
      int64_t& delay = delays[&queue_at(command.slot).device()];
      delay = std::max(delay, submit->second - command.begin);
    }
  }
  for (TimedCommand& command : found.commands) {
    const int64_t delay = delays[&queue_at(command.slot).device()];
    command.begin += delay;
    command.end += delay;
  }
}

std::vector<Calibration> Engine::calibrations() {
  std::vector<Calibration> found(slot_count());
  // Queues of one device share its clock, so they share the calibration too and stay comparable.
  std::map<const Device*, Calibration> clocks;
  for_each_queue([&](Queue& queue) {
    const auto known = clocks.find(&queue.device());
    if (known != clocks.end() && queue.has_timestamps()) {
      found[queue.slot()] = known->second;
    } else if (queue.slot() < queues_.size()) {  // a transfer queue may have no timestamps
      found[queue.slot()] = clocks[&queue.device()] = calibrate(queue.device(), queue.handle());
    }
  });
  return found;
}

bool Engine::clocks_are_read_by_submits() {
  bool found = false;
  for_each_queue([&](Queue& queue) { found = found || !queue.device().calibrated(); });
  return found;
}

std::vector<uint64_t> Engine::start_timing() {
  const Use use(*this);
  std::lock_guard lock(timing_mutex_);
  // Earlier commands must not be timed, and submitting them closes their batch.
  std::vector<uint64_t> before(slot_count());
  for_each_queue([&](Queue& queue) {
    before[queue.slot()] = queue.last_value();
    queue.flush(before[queue.slot()]);
  });
  TimingLog& log = shared_.timings;
  if (!log.on()) {
    clocks_ = calibrations();
    for_each_queue([&](Queue& queue) { queue.set_clock(clocks_[queue.slot()].ticks); });
    std::lock_guard log_lock(log.mutex);
    log.commands.clear();
    log.submits.clear();
    log.waits.clear();
    log.failure.reset();
  }
  log.users.fetch_add(1);
  return before;
}

Timings Engine::timings(const std::vector<uint64_t>& since) {
  const Use use(*this);
  if (since.size() != slot_count()) {
    throw Error(ErrorKind::invalid_value, "since: expected the " + std::to_string(slot_count()) +
                                              " values of start_timing, got " + std::to_string(since.size()));
  }
  std::lock_guard lock(timing_mutex_);
  for_each_queue([](Queue& queue) { queue.collect_timings(); });
  const std::vector<Calibration> now = calibrations();
  Timings found;
  TimingLog& log = shared_.timings;
  std::lock_guard log_lock(log.mutex);
  if (const std::unique_ptr<Error> failure = std::exchange(log.failure, nullptr)) {
    throw Error(*failure);
  }
  for (const TimedCommand& command : log.commands) {
    if (command.batch > since[command.slot]) {
      found.commands.push_back(command);
    }
  }
  for (const TimedSubmit& submit : log.submits) {
    if (submit.batch > since[submit.slot]) {
      found.submits.push_back(submit);
    }
  }
  for (const TimedSubmit& wait : log.waits) {
    if (wait.batch > since[wait.slot]) {
      found.waits.push_back(wait);
    }
  }
  for (TimedCommand& command : found.commands) {
    Queue& queue = queue_at(command.slot);
    const Calibration& clock = clocks_.at(command.slot);
    const double length = tick_length(queue.device(), queue.family(), clock, now[command.slot]);
    command.begin = clock.host_ns + std::llround(static_cast<double>(command.begin) * length);
    command.end = clock.host_ns + std::llround(static_cast<double>(command.end) * length);
  }
  delay_to_submits(found);
  return found;
}

void Engine::stop_timing() noexcept {
  if (abandoned_.load()) {
    return;
  }
  std::lock_guard timing_lock(timing_mutex_);  // otherwise another thread may begin before the log is cleared
  TimingLog& log = shared_.timings;
  if (log.users.fetch_sub(1) == 1) {
    std::lock_guard lock(log.mutex);
    log.commands = {};
    log.submits = {};
    log.waits = {};
  }
}

}  // namespace vkd
