"""Arrays in pinned memory: ordinary arrays, copied from and to where they are, for as long as they live."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from tests.native.gates import ENVIRONMENT

Run = Callable[..., subprocess.CompletedProcess[str]]


def block_of(array: np.ndarray[Any, Any]) -> object:
    """Return what an array's memory belongs to in the end."""
    owner: Any = array
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner


@pytest.mark.parametrize("shape", [(), 1, 7, (3, 5), (2, 3, 4, 5), [2, 2], np.int64(3)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, "c16", ">i4"])
def test_pinned_memory_is_an_array(shape: Any, dtype: Any) -> None:
    array = vd.empty_pinned(shape, dtype)
    like = np.empty(shape, dtype)
    assert (array.shape, array.dtype, array.strides) == (like.shape, like.dtype, like.strides)
    assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
    values = np.arange(array.size).reshape(array.shape).astype(dtype)
    array[...] = values
    assert (array == values).all()
    assert isinstance(block_of(array), native.HostBlock)
    assert isinstance(block_of(array.reshape(-1)[:1]), native.HostBlock)


@pytest.mark.parametrize("shape", [0, (0,), (3, 0, 2)])
def test_no_elements(shape: Any) -> None:
    assert vd.empty_pinned(shape).shape == np.empty(shape).shape
    assert vd.empty_pinned(2).dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((-1,), ValueError, "shape.*negative"),
        (((2, -3),), ValueError, "shape.*negative"),
        ((1.5,), TypeError, "shape"),
        ((None,), TypeError, "shape"),
        (((1, "2"),), TypeError, "shape"),
        ((3, object), TypeError, "dtype.*objects"),
        ((3, "no dtype"), TypeError, "dtype.*'no dtype'"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        vd.empty_pinned(*arguments)
    assert isinstance(raised.value, vd.VkDispatchError)


def test_allocation_larger_than_memory() -> None:
    with pytest.raises(MemoryError):
        vd.empty_pinned(1 << 60, np.uint8)


@pytest.mark.parametrize("size", [1, 63, 4099, 300_007])
def test_written_and_read_like_other_arrays(size: int) -> None:
    source = vd.empty_pinned(size)
    source[:] = np.arange(size)
    buffer = vd.Buffer((size,), vd.float32)
    buffer.write(source)
    source[:] = -1  # `data` may be reused on return
    out = vd.empty_pinned(size)
    assert buffer.read(0, out=out) is out
    assert (out == np.arange(size)).all()
    assert (buffer.read(0) == np.arange(size)).all()


def test_parts_of_a_block() -> None:
    block = vd.empty_pinned((4, 1001), np.int32)
    block[...] = np.arange(block.size).reshape(block.shape)
    expected = block.copy()
    buffer = vd.Buffer((1001,), vd.int32)
    for row in range(4):
        buffer.write(block[row])
        buffer.read(0, out=block[3 - row])
        expected[3 - row] = expected[row]
        assert (block == expected).all()
    buffer.write(block[1:2, :][::-1].reshape(-1))
    assert (buffer.read(0) == block[1]).all()
    # with gaps: copied together first, as from any array
    columns = vd.Buffer((4,), vd.int32)
    columns.write(block[:, 5])
    assert (columns.read(0) == block[:, 5]).all()


def test_partial_writes_and_reads() -> None:
    """A range that only begins in a block is not the block's."""
    block = vd.empty_pinned(64, np.uint8)
    buffer = vd.Buffer((64,), vd.uint8)
    buffer.write(block[:64])
    buffer.write(bytes(range(64)))
    buffer.read(0, out=block)
    assert (block == np.arange(64)).all()


def test_images_take_pinned_arrays_too() -> None:
    texels = vd.empty_pinned((8, 4, 4), np.float32)
    texels[...] = np.arange(128).reshape(8, 4, 4)
    image = vd.Image2D((8, 4), vd.float32, 4)
    image.write(texels)
    assert (image.read().reshape(8, 4, 4) == texels).all()


def test_memory_is_freed() -> None:
    vd.queue_wait_idle()
    engine = vd.get_context()._native
    gc.collect()
    before = engine.statistics()
    array = vd.empty_pinned(1 << 20, np.uint8)
    part = array[5:9]
    del array
    assert engine.statistics()["live_objects"] == before["live_objects"] + 1
    part[:] = 1
    del part
    gc.collect()
    vd.queue_wait_idle()
    assert engine.statistics()["live_objects"] == before["live_objects"]


@pytest.mark.parametrize("staging", ["0", "1"])
def test_arrays_outlive_their_context(run_python: Run, staging: str) -> None:
    done = run_python(
        """
import gc, numpy as np, vkdispatch as vd, vkdispatch_native as native
from vkdispatch.base.context import destroy_context
a = vd.empty_pinned(1000, np.int32); a[:] = 1
b = vd.asbuffer(np.arange(1000, dtype=np.int32))
future = b.read_async()
destroy_context()
a[:] = a + 1
assert (a == 2).all() and (future.result() == np.arange(1000)).all()
# it is memory like any other to a new context
c = vd.asbuffer(a); c.read(0, out=a); event = c.write_async(a); event.wait()
try: c.read_async(out=a)
except ValueError as error: print("empty_pinned" in str(error))
else: print("taken")
view = a[3:]
del a, future; gc.collect()
view[:] = 7
destroy_context()
view[:] = 8
kept = view  # alive at exit
print(native.take_messages())
""",
        VKDISPATCH_FORCE_STAGING=staging,
    )
    assert (done.returncode, done.stdout) == (0, "True\n[]\n"), done.stderr


def test_a_write_that_waits_can_be_interrupted(run_python: Run) -> None:
    done = run_python(
        """
import os, signal, threading, numpy as np, vkdispatch as vd
from tests.native.gates import Gate
data, pinned = vd.asbuffer(np.zeros(1, np.uint32)), vd.empty_pinned(1, np.uint32)
pinned[:] = 7
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
with Gate(vd.get_context()._native) as gate:
    gate.hold(data)
    try:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        while True: data.write(pinned)
    except KeyboardInterrupt: print("interrupted")
    print(gate.is_holding())
vd.queue_wait_idle()
""",
        VKDISPATCH_FORCE_STAGING="1",
        **ENVIRONMENT,
    )
    assert done.stdout.split() == ["interrupted", "True"], done
