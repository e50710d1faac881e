"""A replacement for nvcc and hipcc: a script that builds their sources with g++ for two emulated GPUs.

What the models for GPUs write and do is then run for real, on any machine: kernels one thread after another,
memory of a device apart from that of the other one and of the host.
"""

from __future__ import annotations

import stat
from pathlib import Path

_RUNTIME = """
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#define __host__
#define __device__
#define __global__ static
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
enum GPUError_t { GPUSuccess, GPUErrorMemory, GPUErrorDevice, GPUErrorValue, GPUErrorConfiguration };
enum GPUMemcpyKind { GPUMemcpyHostToDevice, GPUMemcpyDeviceToHost };
struct GPUDeviceProp_t { int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3]; };
typedef int GPUStream_t;
static const GPUStream_t GPUStreamPerThread = 0;
// Blocks of memory, each of one device; C++'s own containers take long to compile.
struct Block { void *place; int device; size_t bytes; };
static Block blocks[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct Guard { Guard() { pthread_mutex_lock(&lock); } ~Guard() { pthread_mutex_unlock(&lock); } };
static Block *find(const void *place) {
  for (Block &block : blocks)
    if (block.place == place) return &block;
  return nullptr;
}
static thread_local int current = 0;
static thread_local GPUError_t last = GPUSuccess;
inline const char *GPUGetErrorString(GPUError_t status) {
  const char *const names[] = {"fine", "out of memory", "no device", "no value", "no configuration"};
  return names[status];
}
inline GPUError_t GPUGetDeviceCount(int *count) { *count = 2; return GPUSuccess; }
inline GPUError_t GPUSetDevice(int device) {
  current = device;
  return device < 2 ? GPUSuccess : GPUErrorDevice;
}
inline GPUError_t GPUGetDeviceProperties(GPUDeviceProp_t *properties, int) {
  *properties = GPUDeviceProp_t{64, {64, 64, 8}, {1000, 100, 100}};
  return GPUSuccess;
}
inline GPUError_t GPUMalloc(void **place, size_t bytes) {
  if (bytes > (size_t(1) << 24)) return GPUErrorMemory;
  *place = std::malloc(bytes);
  std::memset(*place, 0xab, bytes);
  Guard guard;
  *find(nullptr) = Block{*place, current, bytes};
  return GPUSuccess;
}
inline GPUError_t GPUFree(void *place) {
  Guard guard;
  Block *const block = place ? find(place) : nullptr;
  if (!block || block->device != current) return GPUErrorValue;
  block->place = nullptr;
  std::free(place);
  return GPUSuccess;
}
inline GPUError_t GPUMemcpy(void *to, const void *from, size_t bytes, GPUMemcpyKind kind) {
  Guard guard;
  const void *const there = kind == GPUMemcpyHostToDevice ? to : from;
  const Block *const block = there ? find(there) : nullptr;
  if (!block || block->device != current || block->bytes < bytes) return GPUErrorValue;
  std::memcpy(to, from, bytes);
  return GPUSuccess;
}
inline GPUError_t GPUGetLastError() { const GPUError_t status = last; last = GPUSuccess; return status; }
inline GPUError_t GPUStreamSynchronize(GPUStream_t) { return GPUSuccess; }
extern "C" int64_t emulated_allocations() {
  int64_t count = 0;
  for (const Block &block : blocks) count += block.place != nullptr;
  return count;
}
template <typename Body> void emulate(dim3 teams, dim3 members, Body body) {
  if (members.x * members.y * members.z > 64 || members.z > 8 || teams.x > 1000 || teams.y > 100) {
    last = GPUErrorConfiguration;
    return;
  }
  gridDim = teams, blockDim = members;
  for (blockIdx.z = 0; blockIdx.z < teams.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < teams.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < teams.x; blockIdx.x++)
        for (threadIdx.z = 0; threadIdx.z < members.z; threadIdx.z++)
          for (threadIdx.y = 0; threadIdx.y < members.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < members.x; threadIdx.x++) body();
}
#define EMULATE(teams, members, ...) emulate(teams, members, [&] { accelpy_task(__VA_ARGS__); })
"""
_COMPLEX = "#pragma once\n#include <complex>\n"
_HALF = "#pragma once\ntypedef _Float16 __half;\n"
_SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo "VERSION"; exit 0; fi
sed -i 's/accelpy_task<<<\\(.*\\), \\(.*\\)>>>(/EMULATE(\\1, \\2,/' accelpy.cu accelpy.hip 2>/dev/null
[ -f accelpy.cu ] || mv accelpy.hip accelpy.cu
exec g++ -O1 -std=c++17 -fPIC -shared -w -x c++ -I"FOLDER" accelpy.cu -o accelpy.so
"""


def make_compiler(folder: Path, runtime: str) -> str:
    """Write the replacement for "cuda" or "hip" to a folder, and return its path."""
    text = _RUNTIME.replace("GPU", runtime)
    if runtime == "cuda":
        text = text.replace("cudaDeviceProp_t", "cudaDeviceProp")
        files = {
            "cuda_runtime.h": text,
            "cuda/std/complex": _COMPLEX + "namespace cuda { namespace std { using ::std::complex; } }\n",
            "cuda_fp16.h": _HALF,
        }
    else:
        files = {
            "hip/hip_runtime.h": text,
            "thrust/complex.h": _COMPLEX + "namespace thrust { using ::std::complex; }\n",
            "hip/hip_fp16.h": _HALF,
        }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    version = {"cuda": "Cuda compilation tools, emulated", "hip": "HIP version: emulated"}[runtime]
    compiler = folder / {"cuda": "nvcc", "hip": "hipcc"}[runtime]
    compiler.write_text(_SCRIPT.replace("VERSION", version).replace("FOLDER", str(folder)))
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return str(compiler)
