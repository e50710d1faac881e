"""The public functions, which module writes calls of each, and those that are no functions on arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import vkdispatch as vd

FAMILIES = (
    "reductions", "scans", "sorts", "selection", "rearranging", "products", "draws", "transforms", "memory",
    "kernels",
)  # fmt: skip

# Public functions without calls of their own, by why.
_LEFT_OUT: dict[str, str] = {
    "devices, contexts and settings": (
        "vd.get_context vd.get_context_handle vd.is_context_initialized vd.make_context vd.queue_wait_idle "
        "vd.make_context_from_handles vd.use_context vd.select_queue_families vd.set_dummy_context_params "
        "vd.get_backend vd.get_devices vd.initialize vd.is_cuda vd.is_dummy vd.is_initialized vd.is_opencl "
        "vd.is_vulkan vd.optional_device_features vd.required_device_features vd.log vd.log_error "
        "vd.log_info vd.log_verbose vd.log_warning vd.set_log_level vd.record_event vd.wait_event "
        "vd.measure_accuracy vd.explain vd.doctor"
    ),
    "memory of other libraries, in tests/sharing": "vd.from_dlpack vd.share vd.Buffer.from_handle",
    "memory of CUDA, which the Vulkan backend refuses": (
        "vd.cuda_graph_capture vd.get_cuda_capture vd.from_cuda_array"
    ),
    "graphs as such; calls are recorded in all families": (
        "vd.default_graph vd.global_graph vd.set_global_graph"
    ),
    "other ways to write kernels and maps": (
        "vd.map vd.mapped_index vd.make_shader_function vd.glsl_kernel vd.spirv_kernel vd.profile "
        "vd.fixed_array vd.reduce.mapped_io_index vd.reduce.make_reduction_stage"
    ),
    "shorter names of vd.Buffer(...)": " ".join(
        f"vd.{name}" for name in dir(vd) if name.startswith("buffer_")
    ),
    "generators as such; their draws are called": "vd.random.Generator.spawn vd.random.Generator.jumped",
    "buffers as such": (
        "vd.Buffer.clear_parents vd.Buffer.destroy vd.Buffer.register_parent vd.Buffer.require_alive "
        "vd.Buffer.of_memory"
    ),
    "kernels of transforms step by step, and their caches": (
        "vd.fft.cache_clear vd.fft.fft_context vd.fft.get_cache_info vd.fft.get_transposed_size "
        "vd.fft.global_reads_iterator vd.fft.global_trasposed_write_iterator vd.fft.global_writes_iterator "
        "vd.fft.make_convolution_shader vd.fft.make_fft_shader vd.fft.make_transpose_shader "
        "vd.fft.mapped_kernel_index vd.fft.memory_reads_iterator vd.fft.memory_writes_iterator "
        "vd.fft.pad_dim vd.fft.print_cache_info vd.fft.read_op vd.fft.write_op vd.fft.transpose"
    ),
    "the source of transforms": " ".join(f"vd.fft.{name}" for name in dir(vd.fft) if name.endswith("_src")),
}
LEFT_OUT: dict[str, tuple[str, ...]] = {why: tuple(names.split()) for why, names in _LEFT_OUT.items()}


def resolve(name: str) -> Any:
    """Return what a name such as "vd.fft.fft" stands for."""
    found: Any = vd
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def parameters(name: str) -> set[str]:
    """Return the names of a function's parameters."""
    return set(inspect.signature(resolve(name)).parameters) - {"self"}


@functools.cache
def writers(family: str) -> dict[str, Callable[[Any], Any]]:
    """Return the writers of a family's functions."""
    functions: dict[str, Callable[[Any], Any]] = import_module(f"{__package__}.{family}").FUNCTIONS
    return functions


def public_functions() -> set[str]:
    """Return the names of all public functions that arrays might be given to."""
    found = set()
    for name, home in (("vd", vd), ("vd.fft", vd.fft), ("vd.random", vd.random), ("vd.reduce", vd.reduce)):
        names = vd.__all__ if home is vd else home.__all__
        shadowing = ("all", "any", "max", "min", "sum") if home is vd else ()
        found |= {f"{name}.{each}" for each in (*names, *shadowing) if inspect.isroutine(getattr(home, each))}
    for name, home in (("vd.Buffer", vd.Buffer), ("vd.random.Generator", vd.random.Generator)):
        found |= {
            f"{name}.{each}"
            for each in dir(home)
            if not each.startswith("_") and callable(getattr(home, each))
        }
    found |= {
        f"vd.RFFTBuffer.{each}"
        for each in vars(vd.RFFTBuffer)
        if not each.startswith("_") and callable(getattr(vd.RFFTBuffer, each))
    }
    return found
