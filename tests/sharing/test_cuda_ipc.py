"""Memory of an NVIDIA GPU that two processes share. Skipped elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.errors import SharingError
from vkdispatch.base.sharing.cuda_link import can_link, find_link
from vkdispatch.base.sharing.cuda_memory import MappedMemories, SharedDeviceMemory

SIZE = 3_000_000  # bytes

# Another process, which sums what it reads, on each GPU in turn.
_RECEIVER = """
import sys
import numpy as np
import vkdispatch as vd
from vkdispatch.base.sharing.cuda_link import find_link
from vkdispatch.base.sharing.cuda_memory import MappedMemories
process, handle, size = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
for device, info in enumerate(vd.get_devices()):
    if info.vendor_id != 0x10DE:
        continue
    context = vd.Context([device], [[0]])
    mapped = MappedMemories()
    for offset in (0, 256, 4096):
        buffer = vd.Buffer((size // 4,), vd.uint32, context=context)
        buffer.write(np.zeros(size // 4, np.uint32))
        mapped.read(find_link(context), process, handle, offset, buffer._native, size)
        print(device, offset, int(buffer.read(0).astype(np.uint64).sum()), flush=True)
print("end", flush=True)
"""


@pytest.fixture(autouse=True)
def _require_cuda() -> None:
    pytest.importorskip("cuda.bindings.driver")
    if not can_link(vd.get_context()):
        pytest.skip("no device that CUDA knows too")


def test_another_process_reads_memory() -> None:
    context = vd.get_context()
    shared = SharedDeviceMemory(find_link(context), SIZE + 4096)
    data = np.random.default_rng(0).integers(0, 2**32, (SIZE + 4096) // 4, dtype=np.uint32)
    buffer = vd.asbuffer(np.concatenate([data[:1024], data]))
    shared.fill(0, buffer._native, 4096, SIZE + 4096)
    found = subprocess.run(
        [sys.executable, "-c", _RECEIVER, str(os.getpid()), shared.handle.hex(), str(SIZE)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = found.stdout.splitlines()
    assert lines[-1:] == ["end"], found.stderr
    sums = {offset: data[offset // 4 :][: SIZE // 4].astype(np.uint64).sum() for offset in (0, 256, 4096)}
    assert len(lines) > 3
    for line in lines[:-1]:
        _, offset, total = map(int, line.split())
        assert total == sums[offset]


def test_failures_to_map_memory() -> None:
    link = find_link(vd.get_context())
    buffer = vd.asbuffer(np.ones(64, np.float32))
    with pytest.raises(SharingError):
        MappedMemories().read(link, os.getpid(), b"\0" * 64, 0, buffer._native, 256)
    with pytest.raises(SharingError):
        SharedDeviceMemory(link, 1 << 50)
    assert (buffer.read(0) == 1).all()
