"""vkdispatch 0.1.0 from PyPI, in a Python of its own: the import name is ours."""

from importlib.metadata import version
from typing import Any

import vkdispatch as vd
from benchmarks import fresh
from benchmarks.libraries import vulkan, vulkan_transforms
from benchmarks.timing import Sizes, SkipCase, Trial

# Its recording takes time that grows with the square of the count.
LONGEST_GRAPH = 1000
# It transforms no other lengths; beyond the longest the process may go down.
LARGEST_FACTOR = 13
LONGEST_ON_GPU, LONGEST_ON_CPU = 8192, 16384


def describe() -> dict[str, Any]:
    return vulkan.describe(version("vkdispatch"))


def graph_dependent(sizes: Sizes) -> Trial:
    refuse_long(sizes)
    return vulkan.graph_dependent(sizes)


def graph_independent(sizes: Sizes) -> Trial:
    refuse_long(sizes)
    return vulkan.graph_independent(sizes)


def refuse_long(sizes: Sizes) -> None:
    if sizes["length"] > LONGEST_GRAPH:
        raise SkipCase("recording takes time that grows with the square of the length: minutes here")


def refuse_length(n: int) -> None:
    longest = LONGEST_ON_CPU if vd.get_context().device_infos[0].device_type == 4 else LONGEST_ON_GPU
    if n > longest:
        raise SkipCase(f"refuses lengths beyond {longest}, or takes the process down")
    for factor in range(2, LARGEST_FACTOR + 1):
        while n % factor == 0:
            n //= factor
    if n != 1:
        raise SkipCase(f"refuses factors above {LARGEST_FACTOR}")


def fft(sizes: Sizes) -> Trial:
    refuse_length(int(sizes["n"]))
    return vulkan_transforms.fft(sizes)


def transform(array: Any) -> Any:
    """See the same function of vkdispatch."""
    refuse_length(array.shape[-1])
    return vulkan_transforms.transform(array)


def startup(sizes: Sizes) -> Trial:
    return fresh.trial("vkdispatch")


CASES = {
    **{name: case for name, case in vulkan.CASES.items() if name != "many-launches"},
    **vulkan_transforms.CASES,
    "fft": fft,
    "startup": startup,
    "graph-dependent": graph_dependent,
    "graph-independent": graph_independent,
}
SKIPS = {
    "many-launches": "a million launches take minutes",
    "copy": "has no copy between buffers; see copy-kernel",
    "upload-pinned": "has no pinned arrays",
    "download-pinned": "has no pinned arrays",
    "download-into": "cannot read into an array",
    "fusion-tiny": "has no graph.optimize()",
    "fusion-saxpy": "has no graph.optimize()",
    "overlap": "has no asynchronous transfers",
}
