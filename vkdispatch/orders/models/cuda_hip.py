"""CUDA and HIP: the body is a kernel on arrays in GPU memory."""

import ctypes
import os
import weakref
from collections.abc import Hashable, Sequence

from vkdispatch.orders.arguments import Argument, Parameter
from vkdispatch.orders.compilers import Search
from vkdispatch.orders.errors import OrderRunError
from vkdispatch.orders.library import Library
from vkdispatch.orders.models import cpp
from vkdispatch.orders.models.native import HostPlacement, NativeModel, NativeProgram
from vkdispatch.orders.models.protocol import Placement, Task

FILE = "accelpy.cu"

_HEAD = """\
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
"""
_CUDA = """\
#include <cuda_runtime.h>
"""
_CUDA_COMPLEX = """\
#include <cuda/std/complex>
template <typename T> using accelpy_complex = cuda::std::complex<T>;
"""
_HIP = """\
#include <hip/hip_runtime.h>
"""
_HIP_COMPLEX = """\
#include <thrust/complex.h>
template <typename T> using accelpy_complex = thrust::complex<T>;
"""
_BOTH = """\
#define ACCELPY_BOTH __host__ __device__
#define ACCELPY_ROUTINE
"""
_REPORT = """\
static int32_t accelpy_report(GPUError_t status, const char *what, char *message, int64_t room) {
  if (status == GPUSuccess) return 0;
  if (room > 0)
    std::snprintf(message, static_cast<size_t>(room), "%s: %s", what, GPUGetErrorString(status));
  return 1;
}
extern "C" int32_t accelpy_devices(char *message, int64_t room) {
  int count = 0;
  return accelpy_report(GPUGetDeviceCount(&count), "GPUGetDeviceCount", message, room) ? 0 : count;
}
extern "C" int32_t accelpy_allocate(int32_t device, int64_t bytes, void **place, char *message,
                                    int64_t room) {
  if (accelpy_report(GPUSetDevice(device), "GPUSetDevice", message, room)) return 1;
  return accelpy_report(GPUMalloc(place, static_cast<size_t>(bytes)), "GPUMalloc", message, room);
}
extern "C" int32_t accelpy_copy(int32_t device, void *to, const void *from, int64_t bytes, int32_t upwards,
                                char *message, int64_t room) {
  if (accelpy_report(GPUSetDevice(device), "GPUSetDevice", message, room)) return 1;
  const GPUMemcpyKind kind = upwards ? GPUMemcpyHostToDevice : GPUMemcpyDeviceToHost;
  return accelpy_report(GPUMemcpy(to, from, static_cast<size_t>(bytes), kind), "GPUMemcpy", message, room);
}
extern "C" int32_t accelpy_free(int32_t device, void *place, char *message, int64_t room) {
  if (accelpy_report(GPUSetDevice(device), "GPUSetDevice", message, room)) return 1;
  return accelpy_report(GPUFree(place), "GPUFree", message, room);
}
static bool accelpy_too_many(const char *what, const int32_t *counts, const int (&limits)[3], char *message,
                             int64_t room) {
  if (counts[0] <= limits[0] && counts[1] <= limits[1] && counts[2] <= limits[2]) return false;
  if (room > 0)
    std::snprintf(message, static_cast<size_t>(room),
                  "%s: (%d, %d, %d) are more than the (%d, %d, %d) of the device", what, counts[0], counts[1],
                  counts[2], limits[0], limits[1], limits[2]);
  return true;
}
static bool accelpy_explained(const accelpy_counts &grid, int32_t device, char *message, int64_t room) {
  GPUDeviceProp_t properties;
  if (GPUGetDeviceProperties(&properties, device) != GPUSuccess) return false;
  if (accelpy_too_many("members", grid.worker, properties.maxThreadsDim, message, room) ||
      accelpy_too_many("teams", grid.team, properties.maxGridSize, message, room))
    return true;
  const int64_t all = int64_t(grid.worker[0]) * grid.worker[1] * grid.worker[2];
  if (all <= properties.maxThreadsPerBlock) return false;
  if (room > 0)
    std::snprintf(message, static_cast<size_t>(room),
                  "members: %lld in a team are more than the %d of the device; run(members, teams) has "
                  "several teams",
                  static_cast<long long>(all), properties.maxThreadsPerBlock);
  return true;
}
"""
_RUN = """\
extern "C" int32_t accelpy_run(void *const *accelpy_data, const int64_t *accelpy_extents,
                               const int32_t *accelpy_given, int64_t accelpy_run_id, int32_t accelpy_device,
                               char *accelpy_message, int64_t accelpy_room) {
  const accelpy_counts accelpy_grid = accelpy_make_counts(accelpy_given, accelpy_run_id);
  (void)accelpy_data, (void)accelpy_extents;
  if (accelpy_report(GPUSetDevice(accelpy_device), "GPUSetDevice", accelpy_message, accelpy_room)) return 1;
  const dim3 accelpy_members(accelpy_grid.worker[0], accelpy_grid.worker[1], accelpy_grid.worker[2]);
  const dim3 accelpy_teams(accelpy_grid.team[0], accelpy_grid.team[1], accelpy_grid.team[2]);
"""
_LAUNCHED = """\
  const GPUError_t accelpy_status = GPUGetLastError();
  if (accelpy_status != GPUSuccess &&
      accelpy_explained(accelpy_grid, accelpy_device, accelpy_message, accelpy_room))
    return 1;
  if (accelpy_report(accelpy_status, "the launch", accelpy_message, accelpy_room)) return 1;
  const GPUError_t accelpy_end = GPUStreamSynchronize(GPUStreamPerThread);
  return accelpy_report(accelpy_end, "the kernel", accelpy_message, accelpy_room);
}
"""


def write_cuda(task: Task) -> str:
    """Write the source of a `cuda` section: the body is a kernel."""
    half = "#include <cuda_fp16.h>\ntypedef __half accelpy_float16;\n"
    return _write_file(task, (_CUDA, _CUDA_COMPLEX, half), "cuda").replace(
        "cudaDeviceProp_t", "cudaDeviceProp"
    )


def write_hip(task: Task) -> str:
    """Write the source of a `hip` section: the body is a kernel."""
    half = "#include <hip/hip_fp16.h>\ntypedef __half accelpy_float16;\n"
    return _write_file(task, (_HIP, _HIP_COMPLEX, half), "hip")


def _write_file(task: Task, heads: tuple[str, str, str], runtime: str) -> str:
    cpp.check_names(task.parameters)
    includes, body = cpp.split_body(task)
    after = f"{includes}{cpp.RESUME}\n" if includes else ""
    report, run, launched = (text.replace("GPU", runtime) for text in (_REPORT, _RUN, _LAUNCHED))
    head, complex_, half = heads
    types = head + (complex_ if cpp.needs_complex(task) else "")
    types += (half if cpp.needs_float16(task.parameters) else "") + _BOTH
    kernel, launch = _write_kernel(task.parameters, body), _write_launch(task.parameters)
    shared = (_HEAD, after, types, cpp.ARRAY, cpp.GRID, cpp.MACROS)
    return cpp.resume_lines("".join((*shared, report, kernel, run, launch, launched)), FILE)


def _write_kernel(parameters: Sequence[Parameter], body: str) -> str:
    """Write the kernel. A scalar output is passed by address."""
    taken = opening = ""
    for p in parameters:
        if p.is_output and not p.ndim:
            taken += f"{cpp.find_type(p)} *accelpy_{p.name}, "
            opening += f"{cpp.find_type(p)} &{p.name} = *accelpy_{p.name};\n"
        else:
            taken += f"{cpp.declare_parameter(p)}, "
    return (
        f"__global__ void accelpy_task({taken}const accelpy_counts accelpy_grid) {{\n"
        f"(void)accelpy_grid;\n{opening}{{\n{body}{cpp.RESUME}\n}}\n}}\n"
    )


def _write_launch(parameters: Sequence[Parameter]) -> str:
    words, offset = [], 0
    for i, p in enumerate(parameters):
        kind = cpp.find_type(p)
        if p.ndim:
            const = "" if p.is_output else "const "
            words.append(
                f"accelpy_array<{const}{kind}, {p.ndim}>(accelpy_data[{i}], accelpy_extents + {offset})"
            )
        elif p.is_output:
            words.append(f"static_cast<{kind} *>(accelpy_data[{i}])")
        else:
            # passed by value with the launch
            words.append(f"*static_cast<const {kind} *>(accelpy_data[{i}])")
        offset += 2 * p.ndim
    arguments = "".join(f"{word},\n      " for word in words)
    return f"  accelpy_task<<<accelpy_teams, accelpy_members>>>(\n      {arguments}accelpy_grid);\n"


class GpuPlacement:
    """The arguments in the memory of a GPU.

    Parameters
    ----------
    arguments
        The arguments to copy.
    native
        The library with the functions that copy.
    model
        "cuda" or "hip".
    device
        The number of the GPU.
    """

    def __init__(self, arguments: Sequence[Argument], native: Library, model: str, device: int) -> None:
        self.model = model
        self.device = device
        self._native = native
        self._host = HostPlacement(arguments, "C")
        self._places: list[int] = []
        # Frees the memory of a task that was not stopped. When Python exits, the driver frees it.
        self._free = weakref.finalize(self, _free, native, device, self._places)
        self._free.atexit = False
        self.extents = self._host.extents
        self.pointers = (ctypes.c_void_p * max(1, len(arguments)))(*self._host.pointers)
        placed: dict[Hashable, int] = {}
        try:
            for i, argument in enumerate(arguments):
                if not argument.parameter.is_memory:
                    continue
                if argument.memory not in placed:
                    self.pointers[i] = placed[argument.memory] = self._allocate(i)
                    self._copy(i, to_device=True)
                self.pointers[i] = placed[argument.memory]
        except BaseException:
            self.close()
            raise

    def fetch(self) -> None:
        """Copy the outputs back."""
        for i, argument in enumerate(self._host.arguments):
            if argument.parameter.is_output:
                self._copy(i, to_device=False)
        self._host.fetch()

    def close(self) -> None:
        """Free the memory."""
        self._free()

    def _allocate(self, i: int) -> int:
        place = ctypes.c_void_p()
        count = ctypes.c_int64(max(1, self._host.arrays[i].nbytes))
        self._call("accelpy_allocate", ctypes.c_int32(self.device), count, ctypes.byref(place))
        assert place.value is not None
        self._places.append(place.value)
        return place.value

    def _copy(self, i: int, *, to_device: bool) -> None:
        array = self._host.arrays[i]
        there, here = ctypes.c_void_p(self.pointers[i]), ctypes.c_void_p(array.ctypes.data)
        to, origin = (there, here) if to_device else (here, there)
        if array.nbytes:
            device, count = ctypes.c_int32(self.device), ctypes.c_int64(array.nbytes)
            self._call("accelpy_copy", device, to, origin, count, ctypes.c_int32(to_device))

    def _call(self, name: str, *args: object) -> None:
        failure = self._native.call(name, *args)
        if failure:
            raise OrderRunError(f"{self.model}, device {self.device}: {failure}")


def _free(native: Library, device: int, places: Sequence[int]) -> None:
    for place in places:
        native.call("accelpy_free", ctypes.c_int32(device), ctypes.c_void_p(place))


class GpuProgram(NativeProgram):
    """A library with a GPU kernel, which runs in the calling thread's own stream."""

    def place(self, arguments: Sequence[Argument], device: int) -> GpuPlacement:
        """Copy the arguments to the GPU."""
        self.check_device(device)
        return GpuPlacement(arguments, self.native, self.model, device)

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arguments are in the memory of that GPU."""
        place = (self.model, device)
        return isinstance(placement, GpuPlacement) and (placement.model, placement.device) == place


def find_cuda_capability() -> tuple[int, int] | None:
    """Return the lowest compute capability of the CUDA devices, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return None
        capabilities = []
        for i in range(count.value):
            device, numbers = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
            if driver.cuDeviceGet(ctypes.byref(device), i):
                return None
            # ..._COMPUTE_CAPABILITY_MAJOR, _MINOR
            for number, attribute in zip(numbers, (75, 76), strict=True):
                driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
            capabilities.append((numbers[0].value, numbers[1].value))
    except (OSError, AttributeError):
        return None
    return min(capabilities, default=None)


def _find_cuda_obstacle() -> str | None:
    return None if find_cuda_capability() else "there is no CUDA device"


def _find_hip_obstacle() -> str | None:
    has_device = os.path.exists("/dev/kfd") or find_cuda_capability()
    return None if has_device else "there is no HIP device (/dev/kfd)"


def _find_cuda_target() -> tuple[str, ...]:
    capability = find_cuda_capability()
    # Machine code for these devices. Without this option nvcc adds code that any driver can compile.
    return (f"-arch=sm_{capability[0]}{capability[1]}",) if capability else ()


_COPY = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < x.size) y(i) = x(i);"
_NVCC = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-w", "--default-stream", "per-thread")
_CLANG_HIP = ("-x", "hip", "-O3", "-std=c++17", "-fPIC", "-shared", "-w", "-fgpu-default-stream=per-thread")

_CUDA_FOLDERS = ("$CUDA_HOME/bin", "$CUDA_PATH/bin", "/usr/local/cuda/bin")
_HIP_FOLDERS = ("$ROCM_PATH/bin", "$HIP_PATH/bin", "/opt/rocm/bin")

MODELS = (
    NativeModel(
        name="cuda",
        search=Search("CUDACXX", ("nvcc",), _CUDA_FOLDERS, "NVIDIA's CUDA toolkit", "cuda"),
        flags={"nvcc": _NVCC},
        write=write_cuda,
        suffix=".cu",
        copy=_COPY,
        program=GpuProgram,
        find_obstacle=_find_cuda_obstacle,
        find_device_flags=_find_cuda_target,
    ),
    NativeModel(
        name="hip",
        search=Search("HIPCXX", ("hipcc",), _HIP_FOLDERS, "AMD's ROCm", "hip"),
        flags={"hip": _CLANG_HIP},
        write=write_hip,
        suffix=".hip",
        copy=_COPY,
        program=GpuProgram,
        find_obstacle=_find_hip_obstacle,
    ),
)
