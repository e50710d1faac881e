// Uses VkFFT as a planner. VkFFT runs on a virtual device, and the commands it records come back as plain
// data. It needs no queue, fence or command buffer, and its kernels are launched like any others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vkd {

// The device limits that VkFFT uses.
struct FftDevice {
  uint32_t vendor = 0;
  uint32_t most_invocations = 0;
  uint32_t shared_memory = 0;  // bytes per workgroup
  std::array<uint32_t, 3> group_counts{};
  std::array<uint32_t, 3> group_sizes{};
};

enum : uint32_t { kFftAxes = 4 };  // the maximum that VkFFT is built for

// The transform. Axes are in VkFFT's order: the first one is contiguous.
struct FftRequest {
  uint32_t axes = 1;
  std::array<uint64_t, kFftAxes> size{1, 1, 1, 1};
  std::array<bool, kFftAxes> omitted{};
  std::array<bool, kFftAxes> padded{};  // elements pad_left to pad_right (exclusive) are zeros
  std::array<uint64_t, kFftAxes> pad_left{};
  std::array<uint64_t, kFftAxes> pad_right{};
  bool pad_frequency = false;
  uint64_t batches = 1;
  int precision = 1;  // 0: float16 in memory and in registers, 1: float32, 2: float64
  bool real = false;  // C2R and R2C along the first axis, rows padded
  bool normalize = false;
  bool forward = true;  // which plans to create
  bool inverse = true;
  uint64_t buffer_size = 0;                        // bytes, as are the next two
  uint64_t input_size = 0;                         // 0: in place
  uint64_t kernel_size = 0;                        // 0: no convolution
  std::array<uint64_t, kFftAxes> input_strides{};  // in elements; 0: as in the buffer
  uint64_t features = 0;                           // for a convolution: images, each with its own kernel
  bool conjugate = false;                          // for a convolution: conjugates the images' spectra
};

struct FftKernel {
  std::string source;  // GLSL
  uint32_t binding_count = 0;
  uint32_t push_constant_size = 0;
};

// One dispatch. Buffers by binding: 0, 1 and 2 are the caller's buffer, input and kernel; numbers from 3 on
// are indices into FftProgram::buffers.
struct FftPass {
  size_t kernel = 0;
  std::vector<size_t> buffers;
  std::vector<std::byte> push_constants;
  std::array<uint32_t, 3> groups{};
};

struct FftBuffer {
  uint64_t size = 0;
  std::vector<std::byte> contents;  // empty: undefined
};

struct FftProgram {
  std::vector<FftKernel> kernels;
  std::vector<FftBuffer> buffers;
  std::vector<FftPass> forward;
  std::vector<FftPass> inverse;
};

// Runs the passes of `forward` in order and stores the resulting contents of every buffer.
using FftRun = std::function<void(FftProgram&)>;

// Plans a transform. VkFFT computes some of its tables by transforms, for which this calls `run`. Throws
// Error with VkFFT's error name, and whatever `run` throws.
FftProgram plan_fft(const FftRequest& request, const FftDevice& device, const FftRun& run);

// VkFFT's version: 10304 means 1.3.4.
int vkfft_version() noexcept;

}  // namespace vkd
