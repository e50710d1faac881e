"""Arrays and buffers in the messages and files of distributed, without a cluster."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp

pytest.importorskip("distributed")

from distributed.protocol import deserialize_bytes, serialize_bytelist
from distributed.protocol.core import dumps, loads
from distributed.protocol.serialize import deserialize, serialize, to_serialize

import vkdispatch.distributed

RunPython = Callable[..., subprocess.CompletedProcess[str]]


def through_a_message(value: Any) -> Any:
    message = dumps({"x": to_serialize(value)}, context={"compression": "zlib"}, frame_split_size=1000)
    return loads([bytes(frame) for frame in message])["x"]


def through_a_file(value: Any) -> Any:
    return deserialize_bytes(b"".join(serialize_bytelist(value, compression="zlib", on_error="raise")))


def through_frames(value: Any) -> Any:
    header, frames = serialize(value, on_error="raise")
    return deserialize(header, frames)


def through_a_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def through_buffers(value: Any) -> Any:
    frames: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=frames.append)
    return pickle.loads(text, buffers=[bytes(frame.raw()) for frame in frames])


WAYS = [through_a_message, through_a_file, through_frames, through_a_pickle, through_buffers]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


def expect_equal(result: Any, expected: np.ndarray[Any, Any]) -> None:
    assert type(result) is vnp.Array
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


@ways
@pytest.mark.parametrize("dtype", list("?bBhHiIlLefdFD"))
def test_every_dtype(way: Callable[[Any], Any], dtype: str) -> None:
    for shape in ((), (0,), (3, 0), (1,), (5, 6, 7), (2000,)):
        data = np.asarray(np.random.default_rng(1).uniform(0, 50, shape)).astype(dtype)
        expect_equal(way(vnp.asarray(data)), data)


@ways
def test_views_and_expressions(way: Callable[[Any], Any]) -> None:
    data = np.random.default_rng(2).integers(0, 1000, (40, 50)).astype(np.int32)
    x = vnp.asarray(data)
    expect_equal(way(x.T), data.T)
    expect_equal(way(x[3:30:4, ::-1]), data[3:30:4, ::-1])
    expect_equal(way(x[7]), data[7])
    expect_equal(way(vnp.broadcast_to(x[0], (3, 50))), np.broadcast_to(data[0], (3, 50)))
    expect_equal(way((x * 3 - 1) % 7), (data * 3 - 1) % 7)
    expect_equal(way(x.sum()), data.sum())


@ways
def test_collections(way: Callable[[Any], Any]) -> None:
    data = np.arange(600, dtype=np.float32)
    first, rest = way([vnp.asarray(data), {"half": (vnp.asarray(data) / 2, "text"), "host": data}])
    expect_equal(first, data)
    expect_equal(rest["half"][0], data / 2)
    assert rest["half"][1] == "text"
    np.testing.assert_array_equal(rest["host"], data)


@dataclasses.dataclass
class Particle:
    place: vd.vec3
    mass: vd.float32


@ways
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (vd.float32, (3, 4)),
        (vd.int8, (5,)),
        (vd.bool_, (6,)),
        (vd.bfloat16, (9,)),
        (vd.complex32, (4,)),
        (vd.complex64, (400,)),
        (vd.vec3, (5, 2)),
        (vd.mat4, (2, 2)),
        (Particle, (3,)),
        (vd.float32, (0,)),
        (vd.float32, ()),
    ],
    ids=str,
)
def test_buffers(way: Callable[[Any], Any], kind: Any, shape: tuple[int, ...]) -> None:
    buffer: vd.Buffer[Any] = vd.Buffer(shape, kind)
    octets = np.random.default_rng(3).integers(0, 2, buffer.mem_size).astype(np.uint8)
    buffer.write(octets.tobytes())
    copy = way(buffer)
    assert type(copy) is vd.Buffer
    assert copy is not buffer
    assert (copy.shape, copy.var_type) == (buffer.shape, buffer.var_type)
    np.testing.assert_array_equal(copy.read(0), buffer.read(0))


@ways
def test_buffers_of_real_transforms(way: Callable[[Any], Any]) -> None:
    data = np.random.default_rng(4).uniform(size=(4, 10)).astype(np.float32)
    copy = way(vd.asrfftbuffer(data))
    assert type(copy) is vd.RFFTBuffer
    np.testing.assert_array_equal(copy.read_real(0), data)


def test_large_arrays_are_split_and_joined() -> None:
    x = vnp.arange(20_000_000).astype(np.int32)  # 80 MB: more than a frame of distributed has
    frames = dumps({"x": to_serialize(x)})
    assert max(memoryview(each).nbytes for each in frames) <= 64 << 20
    assert sum(memoryview(each).nbytes for each in frames) >= x.nbytes
    assert bool((loads(frames)["x"] == x).all())


def test_frames_show_the_memory_that_was_read() -> None:
    x = vnp.arange(1 << 20).astype(np.float32)
    header, (frame,) = serialize(x, on_error="raise")
    assert header["serializer"] == "dask"
    # messages that split it show parts of the same memory, without compression
    parts = dumps({"x": to_serialize(x)}, context={"compression": None})[2:]
    assert sum(memoryview(each).nbytes for each in parts) == frame.nbytes == x.nbytes
    assert len({id(memoryview(each).obj) for each in parts}) == 1


def test_pinned_memory_is_used_again() -> None:
    x = vnp.arange(100_000).astype(np.float32)
    addresses = set()
    for number in range(3):
        header, frames = serialize(x + number, on_error="raise", context={"pinned": True})
        data = np.frombuffer(frames[0], np.float32)
        np.testing.assert_array_equal(data, np.arange(100_000, dtype=np.float32) + number)
        addresses.add(data.__array_interface__["data"][0])
        del header, frames, data
        gc.collect()
    assert len(addresses) == 1
    # what a frame shows is never given to another one
    held = [serialize(x + number, on_error="raise", context={"pinned": True})[1][0] for number in range(3)]
    for number, frame in enumerate(held):
        np.testing.assert_array_equal(
            np.frombuffer(frame, np.float32), np.arange(100_000, dtype=np.float32) + number
        )


def test_out_of_band_pickles_need_no_copies() -> None:
    frames: list[pickle.PickleBuffer] = []
    x = vnp.arange(1000) * 2
    text = pickle.dumps(x, protocol=5, buffer_callback=frames.append)
    assert len(text) < 1000
    # distributed copies what must be writable and is not
    assert [frame.raw().readonly for frame in frames] == [True]


def test_errors_of_the_device_are_raised_by_the_sender() -> None:
    x = vnp.take(vnp.arange(10), vnp.asarray([3, 40]))
    with pytest.raises(TypeError) as raised:
        serialize(x, on_error="raise")
    assert isinstance(raised.value.__cause__, IndexError)
    assert "40 at [1] is out of bounds" in str(raised.value.__cause__)
    assert "test_cluster_serialization.py" in str(raised.value.__cause__)


REGISTERED = """
import sys
{first}
{second}
from distributed.protocol.serialize import serialize, deserialize
import vkdispatch.numpy as vnp
header, frames = serialize(vnp.arange(5), on_error="raise")
assert header["serializer"] == "dask", header["serializer"]
assert deserialize(header, frames).tolist() == [0, 1, 2, 3, 4]
"""


def has_entry_point() -> bool:
    from importlib.metadata import entry_points

    return any("vkdispatch" in each.value for each in entry_points(group="dask.sizeof"))


@pytest.mark.skipif(not has_entry_point(), reason="the installed package is older than its entry point")
@pytest.mark.parametrize("order", [0, 1, 2])
def test_nobody_has_to_register(run_python: RunPython, order: int) -> None:
    imports = [
        ("import vkdispatch.numpy", "import distributed"),
        ("import distributed", "import vkdispatch.numpy"),
        ("import dask.sizeof, vkdispatch.numpy", "import distributed"),
    ][order]
    done = run_python(REGISTERED.format(first=imports[0], second=imports[1]))
    assert done.returncode == 0, done.stderr


def test_importing_arrays_does_not_import_dask(run_python: RunPython) -> None:
    done = run_python(
        "import sys, vkdispatch, vkdispatch.numpy, vkdispatch.cli, vkdispatch.distributed\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')]"
    )
    assert done.returncode == 0, done.stderr


def test_without_dask_a_message_says_what_to_install(run_python: RunPython) -> None:
    done = run_python(
        "import sys; sys.modules['distributed'] = None\n"
        "import vkdispatch.distributed\n"
        "try:\n"
        "    vkdispatch.distributed.LocalVulkanCluster\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "from vkdispatch.cli import main\n"
        "main(['worker', 'tcp://127.0.0.1:1'])"
    )
    assert "LocalVulkanCluster: distributed is not installed; install it with" in done.stdout
    assert done.returncode == 1
    assert "vkdispatch-gpu[dask]" in done.stderr
    assert "Traceback" not in done.stderr
