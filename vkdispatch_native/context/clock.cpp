#include "context/clock.hpp"

#include <limits>
#include <string>

#include "libs/error.hpp"

namespace vkd {

namespace {

constexpr int kTries = 8;

// The objects needed to submit a single timestamp, destroyed on every path.
struct Sample {
  explicit Sample(Device& owner) : device(owner) {}
  ~Sample() {
    device.fn().vkDestroyFence(device.handle(), fence, nullptr);
    device.fn().vkDestroyQueryPool(device.handle(), queries, nullptr);
    device.fn().vkDestroyCommandPool(device.handle(), commands, nullptr);
  }
  // The device may still be using them.
  void leak() noexcept {
    commands = VK_NULL_HANDLE;
    queries = VK_NULL_HANDLE;
    fence = VK_NULL_HANDLE;
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  Device& device;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
};

Calibration calibrate_by_driver(Device& device) {
  VkCalibratedTimestampInfoEXT infos[2]{};
  infos[0].sType = infos[1].sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  Calibration best{};
  uint64_t least = ~uint64_t{0};
  // The two clocks are read one after the other: use the attempt with the smallest difference.
  for (int i = 0; i < kTries; ++i) {
    uint64_t values[2] = {};
    uint64_t deviation = 0;
    check(device.fn().vkGetCalibratedTimestampsEXT(device.handle(), 2, infos, values, &deviation),
          "vkGetCalibratedTimestampsEXT");
    if (deviation < least) {
      least = deviation;
      best = {static_cast<int64_t>(values[1]), values[0]};
    }
  }
  return best;
}

Calibration calibrate_by_submit(Device& device, const QueueHandle& queue) {
  const VolkDeviceTable& fn = device.fn();
  Sample sample(device);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = queue.family;
  check_created(fn.vkCreateCommandPool(device.handle(), &pool, nullptr, &sample.commands), sample.commands,
                "vkCreateCommandPool");
  VkQueryPoolCreateInfo queries{};
  queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 1;
  check_created(fn.vkCreateQueryPool(device.handle(), &queries, nullptr, &sample.queries), sample.queries,
                "vkCreateQueryPool");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check_created(fn.vkCreateFence(device.handle(), &fence, nullptr, &sample.fence), sample.fence,
                "vkCreateFence");

  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = sample.commands;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(fn.vkAllocateCommandBuffers(device.handle(), &allocate, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(fn.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  fn.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, sample.queries, 0);
  check(fn.vkEndCommandBuffer(commands), "vkEndCommandBuffer");

  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  Calibration best{};
  int64_t least = std::numeric_limits<int64_t>::max();
  // The device took its timestamp at some point during the attempt: use the shortest one.
  for (int i = 0; i < kTries; ++i) {
    fn.vkResetQueryPool(device.handle(), sample.queries, 0, 1);
    check(fn.vkResetFences(device.handle(), 1, &sample.fence), "vkResetFences");
    const int64_t before = host_now();
    {
      std::lock_guard lock(*queue.mutex);
      check(fn.vkQueueSubmit(queue.handle, 1, &submit, sample.fence), "vkQueueSubmit");
    }
    const VkResult waited = device.wait_for(sample.fence);
    if (is_shortage(waited) && !device.wait_idle()) {
      sample.leak();
    }
    check(waited, "vkWaitForFences");
    const int64_t after = host_now();
    uint64_t ticks = 0;
    check(fn.vkGetQueryPoolResults(device.handle(), sample.queries, 0, 1, sizeof(ticks), &ticks,
                                   sizeof(ticks), VK_QUERY_RESULT_64_BIT),
          "vkGetQueryPoolResults");
    if (after - before < least) {
      least = after - before;
      best = {before + (after - before) / 2, ticks};
    }
  }
  return best;
}

}  // namespace

uint64_t timestamp_mask(const Device& device, uint32_t family) noexcept {
  const uint32_t bits = device.properties().queue_families[family].timestampValidBits;
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

Calibration calibrate(Device& device, const QueueHandle& queue) {
  const std::string name = device.properties().core.deviceName;
  if (timestamp_mask(device, queue.family) == 0) {
    throw Error(ErrorKind::invalid_value,
                "queue family " + std::to_string(queue.family) + " of " + name + " has no timestamps");
  }
  if (!device.properties().features12.hostQueryReset) {
    throw Error(ErrorKind::invalid_value, name + " lacks hostQueryReset");
  }
  return device.calibrated() ? calibrate_by_driver(device) : calibrate_by_submit(device, queue);
}

}  // namespace vkd
