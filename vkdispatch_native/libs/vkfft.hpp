// VkFFT as a planner: it is run on a device that only exists in memory, and what it would have had a real one
// do comes back as plain data. So it needs no queue, no fence and no command buffer of ours, and its kernels
// are launched like any others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vkd {

// What VkFFT asks of a device.
struct FftDevice {
  uint32_t vendor = 0;
  uint32_t most_invocations = 0;
  uint32_t shared_memory = 0;  // bytes of a workgroup
  std::array<uint32_t, 3> group_counts{};
  std::array<uint32_t, 3> group_sizes{};
};

enum : uint32_t { kFftAxes = 4 };  // the most that VkFFT is built for

// The transform. Axes are in VkFFT's order: the first one is contiguous.
struct FftRequest {
  uint32_t axes = 1;
  std::array<uint64_t, kFftAxes> size{1, 1, 1, 1};
  std::array<bool, kFftAxes> omitted{};
  std::array<bool, kFftAxes> padded{};  // elements from pad_left up to, without it, pad_right are zeros
  std::array<uint64_t, kFftAxes> pad_left{};
  std::array<uint64_t, kFftAxes> pad_right{};
  bool pad_frequency = false;
  uint64_t batches = 1;
  int precision = 1;  // 0: float16 in memory and in registers, 1: float32, 2: float64
  bool real = false;  // C2R and R2C along the first axis, rows padded
  bool normalize = false;
  bool forward = true;  // which plans are wanted
  bool inverse = true;
  uint64_t buffer_size = 0;                        // bytes, of this and the next two
  uint64_t input_size = 0;                         // 0: in place
  uint64_t kernel_size = 0;                        // 0: no convolution
  std::array<uint64_t, kFftAxes> input_strides{};  // in elements; 0: as the buffer's
  uint64_t features = 0;                           // of a convolution: images, each with a kernel
  bool conjugate = false;                          // of a convolution: the images' spectra
};

struct FftKernel {
  std::string source;  // GLSL
  uint32_t binding_count = 0;
  uint32_t push_constant_size = 0;
};

// One dispatch. Buffers by binding; 0, 1 and 2 are the caller's buffer, input and kernel, the rest is in
// FftProgram::buffers, from 3 on.
struct FftPass {
  size_t kernel = 0;
  std::vector<size_t> buffers;
  std::vector<std::byte> push_constants;
  std::array<uint32_t, 3> groups{};
};

struct FftBuffer {
  uint64_t size = 0;
  std::vector<std::byte> contents;  // empty: it may start as anything
};

struct FftProgram {
  std::vector<FftKernel> kernels;
  std::vector<FftBuffer> buffers;
  std::vector<FftPass> forward;
  std::vector<FftPass> inverse;
};

// Runs the passes of `forward` in order and gives every buffer the contents that it then has.
using FftRun = std::function<void(FftProgram&)>;

// Plans a transform. Some tables of VkFFT are made by transforms, for which it calls `run`. Throws Error with
// VkFFT's name of what is wrong, and what `run` throws.
FftProgram plan_fft(const FftRequest& request, const FftDevice& device, const FftRun& run);

// VkFFT's version, as 10304 for 1.3.4.
int vkfft_version() noexcept;

}  // namespace vkd
