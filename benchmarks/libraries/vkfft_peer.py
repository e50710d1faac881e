"""The library VkFFT on Vulkan, through `vd.vkfft` of the version under test."""

import functools
from typing import Any

import vkdispatch as vd
from benchmarks.libraries import vulkan, vulkan_transforms
from benchmarks.timing import SkipCase

if getattr(vd, "vkfft", None) is None:
    raise SkipCase("vd.vkfft does not exist yet")

API = "vkfft"


def describe() -> dict[str, Any]:
    return vulkan.describe(f"VkFFT by vkdispatch {vd.__version__}")


transform = functools.partial(vulkan_transforms.transform, api=API)
CASES = {
    "fft": functools.partial(vulkan_transforms.fft, api=API),
    "rfft": functools.partial(vulkan_transforms.rfft, api=API),
    "fft2": functools.partial(vulkan_transforms.fft2, api=API),
}
SKIPS = {"convolution2": "its kernels are in a layout of its own", "scaled": "has no maps"}
