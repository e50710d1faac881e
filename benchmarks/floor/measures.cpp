// What raw Vulkan costs and moves. Each function is one round of one measure, and checks what was computed.
#include "measures.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "shaders.hpp"

namespace floor_program {

namespace {

constexpr uint32_t small_elements = 64;
constexpr double micro = 1e6, giga = 1e9;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Runs `body` and returns its seconds.
template <class Body>
double timed(Body body) {
  const double start = now();
  body();
  return now() - start;
}

// The shortest of a few runs.
template <class Body>
double best_of(int runs, Body body) {
  double best = timed(body);
  for (int i = 1; i < runs; ++i) best = std::min(best, timed(body));
  return best;
}

// A buffer of a few elements that are zero, the kernel that adds one to each, and a count of its dispatches.
struct Tiny {
  explicit Tiny(Gpu& on)
      : gpu(on),
        data(on, small_elements * sizeof(float), false),
        kernel(on, shaders::tiny, small_elements),
        set(on.bind(data, data)) {
    data.fill(0);
  }
  ~Tiny() {
    gpu.wait_idle();
    gpu.unbind(set);
  }
  void begin(VkCommandBuffer commands) { begin_kernel(commands, gpu, kernel, set); }
  void add(VkCommandBuffer commands) { dispatch(commands, gpu, {1, small_elements}, 1); }
  VkCommandBuffer once() {
    return gpu.record([&](VkCommandBuffer commands) {
      begin(commands);
      add(commands);
      dispatch_barrier(commands);
    });
  }
  bool holds(double count) {
    return data.element(0) == float(count) && data.element(small_elements - 1) == float(count);
  }

  Gpu& gpu;
  Buffer data;
  Pipeline kernel;
  VkDescriptorSet set;
};

Values call(Gpu& gpu, const Parameters&, bool& right) {
  constexpr int calls = 500;
  Tiny tiny(gpu);
  std::vector<VkCommandBuffer> commands;
  const double host = timed([&] {
    for (int i = 0; i < calls; ++i) {
      commands.push_back(tiny.once());
      gpu.submit(commands.back());
    }
  });
  gpu.wait_idle();
  for (VkCommandBuffer one : commands) gpu.forget(one);
  VkCommandBuffer one = tiny.once();
  const double submits = timed([&] {
    for (int i = 0; i < calls; ++i) gpu.submit(one);
  });
  gpu.wait_idle();
  gpu.forget(one);
  right = tiny.holds(2 * calls);
  return {{"host_us", micro * host / calls}, {"submit_us", micro * submits / calls}};
}

// The median of the seconds that many runs take, one by one.
template <class Body>
double median_of(int runs, Body body) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(timed(body));
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[size_t(runs) / 2];
}

Values launch_wait(Gpu& gpu, const Parameters&, bool& right) {
  constexpr int calls = 300;
  Tiny tiny(gpu);
  VkCommandBuffer one = tiny.once();
  const double spinning = median_of(calls, [&] { gpu.wait_spinning(gpu.submit_signalling(one)); });
  const double sleeping = median_of(calls, [&] { gpu.wait_sleeping(gpu.submit_signalling(one)); });
  const double fenced = median_of(calls, [&] {
    gpu.submit_fenced(one);
    gpu.wait_fence();
  });
  gpu.forget(one);
  right = tiny.holds(3 * calls);
  return {{"wall_us", micro * spinning}, {"sleeping_us", micro * sleeping}, {"fence_us", micro * fenced}};
}

Values graph(Gpu& gpu, const Parameters& parameters, bool dependent, bool& right) {
  const int length = int(parameters.at("length"));
  const int replays = int(parameters.at("replays"));
  Tiny tiny(gpu);
  VkCommandBuffer all;
  const double recording = timed([&] {
    all = gpu.record([&](VkCommandBuffer commands) {
      tiny.begin(commands);
      for (int i = 0; i < length; ++i) {
        tiny.add(commands);
        if (dependent) dispatch_barrier(commands);
      }
    });
  });
  gpu.run(all);
  const double running = timed([&] {
    uint64_t last = 0;
    for (int i = 0; i < replays; ++i) last = gpu.submit_signalling(all);
    gpu.wait_spinning(last);
  });
  gpu.forget(all);
  // without barriers the additions race, on purpose: only that they ran can be seen
  right = dependent ? tiny.holds((replays + 1.0) * length) : tiny.data.element(0) >= 1;
  return {{"record_us", micro * recording / length},
          {"dispatch_us", micro * running / (double(length) * replays)}};
}

struct Shape {
  const std::vector<uint32_t>& code;
  uint32_t group, per_invocation;
};

// The seconds that one dispatch over all elements takes, many of them dependent on each other.
double kernel_seconds(Gpu& gpu, const Shape& shape, VkDescriptorSet set, uint32_t elements, int dispatches) {
  const Pipeline kernel(gpu, shape.code, shape.group);
  const uint64_t invocations = (uint64_t(elements) + shape.per_invocation - 1) / shape.per_invocation;
  const auto groups = uint32_t((invocations + shape.group - 1) / shape.group);
  VkCommandBuffer commands = gpu.record([&](VkCommandBuffer target) {
    begin_kernel(target, gpu, kernel, set);
    for (int i = 0; i < dispatches; ++i) {
      dispatch(target, gpu, {0.5F, elements}, groups);
      dispatch_barrier(target);
    }
  });
  gpu.run(commands);
  const double seconds = timed([&] { gpu.run(commands); }) / dispatches;
  gpu.forget(commands);
  return seconds;
}

Values saxpy(Gpu& gpu, const Parameters& parameters, bool& right) {
  const auto elements = uint32_t(parameters.at("elements"));
  const VkDeviceSize bytes = VkDeviceSize(elements) * sizeof(float);
  const int dispatches = elements > (1U << 26) ? 20 : 4;
  Buffer y(gpu, bytes, false), x(gpu, bytes, false);
  y.fill(0);
  x.fill(1);
  VkDescriptorSet set = gpu.bind(y, x);
  const std::pair<const char*, Shape> shapes[] = {
      {"naive_32_gbps", {shaders::saxpy, 32, 1}},         {"naive_256_gbps", {shaders::saxpy, 256, 1}},
      {"naive_1024_gbps", {shaders::saxpy, 1024, 1}},     {"vec4_256_gbps", {shaders::saxpy_vec4, 256, 4}},
      {"block_256_gbps", {shaders::saxpy_block, 256, 4}},
  };
  Values values;
  double best = 0;
  int ran = 0;
  for (const auto& [name, shape] : shapes) {
    const double rate = 3.0 * double(bytes) / giga / kernel_seconds(gpu, shape, set, elements, dispatches);
    values.emplace_back(name, rate);
    best = std::max(best, rate);
    ran += 2 * dispatches;
  }
  values.emplace_back("gbps", best);
  const float sum = 0.5F * float(ran);
  right = y.element(0) == sum && y.element(elements / 2 + 1) == sum && y.element(elements - 1) == sum;
  gpu.unbind(set);
  return values;
}

Values copy(Gpu& gpu, const Parameters& parameters, bool& right) {
  const auto elements = uint32_t(parameters.at("elements"));
  const VkDeviceSize bytes = VkDeviceSize(elements) * sizeof(float);
  const int copies = elements > (1U << 26) ? 10 : 4;
  Buffer to(gpu, bytes, false), from(gpu, bytes, false);
  to.fill(0);
  from.fill(3);
  const VkBufferCopy region{0, 0, bytes};
  VkCommandBuffer commands = gpu.record([&](VkCommandBuffer target) {
    for (int i = 0; i < copies; ++i) {
      vkCmdCopyBuffer(target, from.handle, to.handle, 1, &region);
      barrier(target);
    }
  });
  gpu.run(commands);
  const double command = 2.0 * double(bytes) / giga / (timed([&] { gpu.run(commands); }) / copies);
  gpu.forget(commands);
  right = to.element(elements - 1) == 3;
  to.fill(0);
  VkDescriptorSet set = gpu.bind(to, from);
  const double seconds = kernel_seconds(gpu, {shaders::copy_vec4, 256, 4}, set, elements, copies);
  const double kernel = 2.0 * double(bytes) / giga / seconds;
  gpu.unbind(set);
  right = right && to.element(0) == 3 && to.element(elements - 1) == 3;
  return {{"command_gbps", command}, {"kernel_gbps", kernel}, {"gbps", std::max(command, kernel)}};
}

Values transfer(Gpu& gpu, const Parameters& parameters, bool up, bool& right) {
  const auto bytes = VkDeviceSize(parameters.at("bytes"));
  Buffer device(gpu, bytes, false), host(gpu, bytes, true);
  std::vector<char> pageable(bytes, 1);
  std::memset(host.data, 1, bytes);
  const VkBufferCopy region{0, 0, bytes};
  VkCommandBuffer commands = gpu.record([&](VkCommandBuffer target) {
    vkCmdCopyBuffer(target, up ? host.handle : device.handle, up ? device.handle : host.handle, 1, &region);
  });
  gpu.run(commands);
  const double moved = best_of(3, [&] { gpu.run(commands); });
  gpu.forget(commands);
  const double copied = best_of(3, [&] {
    if (up) {
      std::memcpy(host.data, pageable.data(), bytes);
    } else {
      std::memcpy(pageable.data(), host.data, bytes);
    }
  });
  float ones;
  std::memset(&ones, 1, sizeof ones);
  right = !up || device.element(bytes / sizeof(float) - 1) == ones;
  return {{"gbps", double(bytes) / giga / moved}, {"memcpy_gbps", double(bytes) / giga / copied}};
}

}  // namespace

const std::vector<std::string>& measure_names() {
  static const std::vector<std::string> names = {
      "call", "launch-wait", "graph-dependent", "graph-independent", "saxpy", "copy", "upload", "download"};
  return names;
}

Values measure(Gpu& gpu, const std::string& name, const Parameters& parameters, bool& right) {
  if (name == "call") return call(gpu, parameters, right);
  if (name == "launch-wait") return launch_wait(gpu, parameters, right);
  if (name == "graph-dependent") return graph(gpu, parameters, true, right);
  if (name == "graph-independent") return graph(gpu, parameters, false, right);
  if (name == "saxpy") return saxpy(gpu, parameters, right);
  if (name == "copy") return copy(gpu, parameters, right);
  if (name == "upload") return transfer(gpu, parameters, true, right);
  if (name == "download") return transfer(gpu, parameters, false, right);
  throw std::runtime_error("there is no measure " + name);
}

}  // namespace floor_program
