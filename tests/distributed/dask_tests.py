"""Dask's own tests of CuPy as chunks, run with `vkdispatch.numpy` in CuPy's place.

    python tests/distributed/dask_tests.py [options of pytest]

They come with the package `dask`; nothing of them is here.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# What Dask tests of CuPy alone: its sparse matrices.
_LEFT_OUT = ("test_cupy_sparse.py",)
# Tests of what CuPy refuses and these arrays do: they fail, and why.
_MORE_THAN_CUPY = {
    "test_asanyarray[like0-arr1]": "np.asarray(x) of an Array reads its values",
    "test_asanyarray[like0-arr3]": "np.asarray(x) of an Array reads its values",
    "test_cupy_unsupported": "da.random draws permutations and choices",
    **{
        f"test_unique_kwargs[{inverse}-{index}-{counts}]": "da.unique finds indices and counts"
        for inverse, index, counts in product((False, True), repeat=3)
        if inverse or index or counts
    },
}


def make_stand_in() -> ModuleType:
    """Return a module with the names of CuPy that the tests use: `vkdispatch.numpy`'s, and a few more."""
    import vkdispatch.numpy as vnp
    from vkdispatch.distributed.routines import RandomState

    class StandIn(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(vnp, name)

    class Random(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(vnp.random, name)

    cupy, random = StandIn("cupy"), Random("cupy.random")
    cupy.__version__ = "14.0.0"  # type: ignore[attr-defined]
    cupy.random = random  # type: ignore[attr-defined]
    cupy.asnumpy = lambda x: x.numpy()  # type: ignore[attr-defined]
    random.RandomState = RandomState  # type: ignore[attr-defined]
    return cupy


class Substitution:
    """A plugin of pytest: what the tests ask of CuPy's arrays by name holds for ours."""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "gpu: needs a GPU")
        config.addinivalue_line("markers", "flaky: may be run again")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.path.name not in _LEFT_OUT]
        for item in items:
            if item.name in _MORE_THAN_CUPY:
                item.add_marker(pytest.mark.xfail(strict=True, reason=_MORE_THAN_CUPY[item.name]))


def install() -> None:
    """Put the stand-in into CuPy's place."""
    from dask import utils
    from dask.array import backends, creation, dispatch, routines
    from dask.array import utils as array_utils

    import vkdispatch.numpy as vnp
    from vkdispatch.distributed.arrays import VulkanBackend, to_vkdispatch_dispatch

    sys.modules["cupy"] = cupy = make_stand_in()
    sys.modules["cupy.random"] = cupy.random
    vnp.ndarray.get = vnp.ndarray.numpy
    # the tests compare with NumPy's arrays by this
    for module in (utils, array_utils, creation, routines):
        module.is_cupy_type = lambda x: isinstance(x, vnp.ndarray)
    backends.register_cupy = lambda: None
    dispatch.to_cupy_dispatch = to_vkdispatch_dispatch
    backends.array_creation_dispatch.register_backend("cupy", VulkanBackend())


def main(options: list[str]) -> int:
    """Run the tests; return the exit status of pytest."""
    install()
    import dask.array

    tests = sorted((Path(dask.array.__file__).parent / "tests").glob("test_cupy_*.py"))
    files = [str(test) for test in tests if test.name not in _LEFT_OUT]
    given = [each for each in options if each.endswith(".py") or ".py::" in each]
    return int(
        pytest.main(
            [
                "-p",
                "no:cacheprovider",
                "--import-mode=importlib",
                "-c",
                "/dev/null",
                *options,
                *([] if given else files),
            ],
            plugins=[Substitution()],
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
