"""Workers on devices of different drivers: the same bits where functions promise them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cloudpickle")

RunPython = Callable[..., subprocess.CompletedProcess[str]]

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vkdispatch-build" / "swiftshader"

MIXED = """
import numpy as np
from distributed import Client
import vkdispatch as vd
import vkdispatch.numpy as vnp
from vkdispatch.distributed import LocalVulkanCluster

def source(seed):
    return vnp.asarray(np.random.default_rng(seed).integers(-(2**31), 2**31, 20_000).astype(np.int32))

def compute(x):
    random = vnp.random.default_rng(5)
    return {
        "device": vd.get_context().device_infos[0].device_name,
        "arithmetic": x * 3 - (x >> 5) ^ 77,
        "copy": x.reshape(100, 200)[::-3, 5:].T.copy(),
        "sort": vnp.sort(x),
        "argsort": vnp.argsort(x),
        "cumsum": vnp.cumsum(x, dtype=np.int32),
        "sum": x.sum(dtype=np.int32),
        "maximum": x.max(),
        "random": random.integers(0, 2**30, 5000, dtype=np.int32),
        "permutation": random.permutation(x),
    }

def main():
    with (
        LocalVulkanCluster(devices=["llvmpipe", "SwiftShader"], dashboard_address=None) as cluster,
        Client(cluster, timeout=100) as client,
    ):
        made = [client.submit(source, 1, workers=[worker], pure=False) for worker in (0, 1)]
        # each computes with its own and with the other's
        found = [
            client.submit(compute, made[origin], workers=[worker], pure=False).result(timeout=100)
            for worker in (0, 1) for origin in (0, 1)
        ]
    devices = [each.pop("device") for each in found]
    assert [name.split()[0] for name in devices] == ["llvmpipe"] * 2 + ["SwiftShader"] * 2, devices
    for each in found[1:]:
        for name, value in each.items():
            expected = found[0][name]
            assert (value.shape, value.dtype) == (expected.shape, expected.dtype), name
            assert value.numpy().tobytes() == expected.numpy().tobytes(), name
    data = np.random.default_rng(1).integers(-(2**31), 2**31, 20_000).astype(np.int32)
    np.testing.assert_array_equal(found[0]["sort"].numpy(), np.sort(data))
    np.testing.assert_array_equal(found[0]["cumsum"].numpy(), np.cumsum(data, dtype=np.int32))

main()
"""


def find_manifests() -> list[str]:
    """Return the manifests of lavapipe and SwiftShader."""
    folders = Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d")
    lavapipe = [str(path) for folder in folders for path in sorted(folder.glob("lvp_icd*.json"))]
    swiftshader = [
        str(folder / "vk_swiftshader_icd.json")
        for folder in (Path("/usr/lib/chromium"), _CACHE)
        if (folder / "vk_swiftshader_icd.json").exists()
    ]
    if not (lavapipe and swiftshader):
        pytest.skip("lavapipe and SwiftShader are needed (deps/setup.sh swiftshader)")
    return [lavapipe[0], swiftshader[0]]


def test_workers_on_different_drivers_give_the_same_bits(run_python: RunPython) -> None:
    manifests = os.pathsep.join(find_manifests())
    done = run_python(
        MIXED,
        timeout=115,
        VK_ICD_FILENAMES=manifests,
        VK_DRIVER_FILES=manifests,
        VKDISPATCH_DEVICE="",
        VKDISPATCH_DEBUG="0",
    )
    assert done.returncode == 0, done.stderr[-3000:]
