"""Buffers where Python and NumPy expect arrays: answers, refusals, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.command_list import CommandList
from vkdispatch.codegen.abbreviations import Buff, f32

RunPython = Callable[..., CompletedProcess[str]]


def floats(*shape: int) -> Any:
    return vd.asbuffer(np.random.default_rng(1).random(shape).astype(np.float32))


# ---- truth, length, iteration, numbers


@pytest.mark.parametrize("value", [0, 1, -2.5, float("nan"), -0.0, 1e-40])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element_is_its_value(value: float, shape: tuple[int, ...]) -> None:
    host = np.full(shape, value, np.float32)
    buffer = vd.asbuffer(host)
    assert bool(buffer) is bool(host)
    assert type(buffer.item()) is float and type(float(buffer)) is float
    np.testing.assert_array_equal([buffer.item(), float(buffer), complex(buffer)], host.item())
    if value == value:
        assert int(buffer) == int(host.item())


def test_numbers_of_other_dtypes() -> None:
    assert int(vd.asbuffer(np.array([2**63 - 1], np.int64))) == 2**63 - 1
    assert complex(vd.asbuffer(np.array(1 - 2j, np.complex64))) == 1 - 2j
    assert vd.asbuffer(np.array([True])).item() is True
    for kind in (vd.bfloat16, vd.complex32):
        buffer: Any = vd.Buffer(1, kind)
        buffer.write(np.zeros_like(buffer.read(0)) + 2)
        assert buffer.item() == 2 and bool(buffer)
    for wrong in (float, int):
        with pytest.raises(TypeError, match="complex"):
            wrong(vd.asbuffer(np.array([1j], np.complex64)))


def test_truth_value_of_a_buffer() -> None:
    x = vd.asbuffer(np.array([0, 0, 3], np.float32))
    assert vd.any(x) and not vd.all(x)
    assert not vd.any(vd.asbuffer(np.zeros(3, np.float32)))


@pytest.mark.parametrize("shape", [(2,), (1, 3), (0,), (0, 3)])
def test_several_elements_have_no_truth_value(shape: tuple[int, ...]) -> None:
    buffer = floats(*shape)
    with pytest.raises(ValueError, match=r"truth value .*vd\.any\(buf\) or vd\.all\(buf\)"):
        bool(buffer)
    with pytest.raises(ValueError, match=r"item: .*read\(0\)"):
        buffer.item()
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match=rf"{convert.__name__}: .*read\(0\)"):
            convert(buffer)


def test_vector_element_is_not_a_number() -> None:
    buffer = vd.Buffer(1, vd.vec3)
    buffer.write(np.ones((1, 3), np.float32))
    for ask in (bool, float, lambda each: each.item()):
        with pytest.raises(ValueError, match=r"3 numbers; use buf\.read\(0\)"):
            ask(buffer)


def test_len_agrees_with_numpy() -> None:
    for shape in ((3,), (2, 5), (0, 4), (4, 0), (1, 1, 1)):
        assert len(vd.Buffer(shape, vd.vec2)) == len(np.zeros(shape))
    with pytest.raises(TypeError, match="len"):
        len(vd.Buffer((), vd.float32))


def test_iteration_and_membership_are_refused() -> None:
    buffer = floats(3)
    uses: tuple[Callable[[], Any], ...] = (
        lambda: list(buffer),
        lambda: [*buffer],
        lambda: sum(buffer),
        lambda: max(buffer),
        lambda: 1.0 in buffer,
        lambda: None in buffer,
    )
    for use in uses:
        with pytest.raises(TypeError, match=r"buffer.*buf\.read\(0\)"):
            use()


def test_buffer_equals_only_itself() -> None:
    one, other = vd.asbuffer(np.ones(1, np.float32)), vd.asbuffer(np.ones(1, np.float32))
    assert one == one and one != other and one != 1.0
    assert len({one, other, one}) == 2 and [one, other].index(other) == 1


def test_destroyed_buffers_have_no_value() -> None:
    buffer = vd.asbuffer(np.ones(1, np.float32))
    buffer.destroy()
    for use in (bool, float, lambda each: each.item(), copy.copy, copy.deepcopy, pickle.dumps, np.asarray):
        with pytest.raises(RuntimeError, match="destroyed"):
            use(buffer)


# ---- NumPy


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        *(
            (name, f"vd.{name}")
            for name in ("sum", "cumsum", "sort", "argmax", "concatenate", "where", "any")
        ),
        *((name, f"vd.{name}") for name in ("matmul", "histogram", "unique", "searchsorted", "copyto")),
        ("fft.fft", "vd.fft.fft"),
        ("fft.irfft", "vd.fft.irfft"),
        ("linalg.norm", "vd.norm"),
        ("shape", "buf.shape"),
        ("copy", "copy.copy"),
        *((name, "a kernel or map") for name in ("sin", "add", "log", "equal", "linalg.solve", "interp")),
    ],
)
def test_numpy_functions_name_the_vkdispatch_function(name: str, ours: str) -> None:
    buffer = floats(3, 3)
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    arguments: dict[str, tuple[Any, ...]] = {
        "concatenate": ([np.ones((3, 3)), buffer],),
        "where": (np.ones((3, 3), bool), buffer, 0.0),
        "interp": (0.5, buffer, buffer),
    }
    two = ("matmul", "searchsorted", "copyto", "add", "equal", "linalg.solve")
    given = arguments.get(name, (np.ones((3, 3)), buffer) if name in two else (buffer,))
    with pytest.raises(TypeError, match=rf"^np\.{name}: .*use {ours}[^,]*, or pass np\.asarray\(buf\)$"):
        function(*given)


def test_operators_with_arrays_do_not_run_on_the_host() -> None:
    buffer, array = floats(3), np.ones(3, np.float32)
    uses: tuple[Callable[[], Any], ...] = (
        lambda: np.float32(2) * buffer,
        lambda: buffer * np.float32(2),
        lambda: array + buffer,
        lambda: buffer - array,
        lambda: array == buffer,
        lambda: array @ buffer,
        lambda: array.__iadd__(buffer),
        lambda: np.add.reduce(buffer),
        lambda: np.add.at(array, [0], buffer),
        lambda: np.multiply(array, array, out=buffer),
        lambda: np.add(2, buffer, where=array > 0),
    )
    for use in uses:
        with pytest.raises(TypeError, match=r"^np\.\w+(\.\w+)?: .*np\.asarray\(buf\)$"):
            use()
    for plain in (lambda: buffer + 1, lambda: 2 * buffer, lambda: -buffer, lambda: buffer[0]):
        with pytest.raises(TypeError, match=r"Buffer|buffers have no operators|a buffer has no elements"):
            plain()


def test_np_asarray_reads_the_buffer() -> None:
    buffer = floats(2, 3)
    for array in (np.asarray(buffer), np.array(buffer), np.asanyarray(buffer), np.array([buffer])[0]):
        np.testing.assert_array_equal(array, buffer.read(0))
    assert np.asarray(buffer, np.float64).dtype == np.float64
    host = np.zeros((2, 3))
    host[:] = buffer
    np.testing.assert_array_equal(buffer, host)
    np.testing.assert_allclose(buffer, host)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(buffer, copy=False)


# ---- copies and pickles


@vd.shader("data.size")
def increment(data: Buff[f32]) -> None:
    data[vc.global_invocation_id().x] += 1


def through_pickle(buffer: Any) -> Any:
    for protocol in range(pickle.HIGHEST_PROTOCOL):
        pickle.dumps(buffer, protocol)
    return pickle.loads(pickle.dumps(buffer))


COPIES = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle])
KINDS = ["float32", "int8", "bool_", "uint64", "vec3", "mat3", "complex64", "complex32", "bfloat16", "hvec2"]


@COPIES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 7), (0, 3)])
def test_copies_are_independent(copied: Any, kind: str, shape: tuple[int, ...]) -> None:
    buffer: Any = vd.Buffer(shape, getattr(vd, kind))
    octets = bytes(number % (2 if kind == "bool_" else 50) for number in range(buffer.mem_size))
    buffer.write(octets)
    before = buffer.read(0)
    made = copied(buffer)
    buffer.write(bytes(buffer.mem_size))
    assert type(made) is vd.Buffer and made is not buffer and made.context is buffer.context
    assert (made.shape, made.var_type) == (shape, buffer.var_type)
    assert made.read(0).tobytes() == before.tobytes()
    buffer.destroy()
    assert made.read(0).tobytes() == before.tobytes()


@COPIES
def test_copies_of_pending_results(copied: Any) -> None:
    buffer = vd.asbuffer(np.zeros(1000, np.float32))
    for _ in range(5):
        increment(buffer)
    made = copied(buffer)
    increment(buffer)
    increment(made)
    increment(made)
    assert (buffer.read(0) == 6).all() and (made.read(0) == 7).all()


@COPIES
def test_copies_of_structures(copied: Any) -> None:
    inner = np.dtype([("a", "f4", 3), ("b", "i8")])
    array = np.zeros(5, [("x", "u2"), ("inner", inner)])
    array["inner"]["b"] = np.arange(5)
    buffer = vd.asbuffer(array)
    made = copied(buffer)
    assert made.var_type is buffer.var_type
    np.testing.assert_array_equal(made.read(0), buffer.read(0))
    assert pickle.loads(pickle.dumps(buffer.var_type)) is buffer.var_type


@COPIES
def test_copies_of_signals(copied: Any) -> None:
    real = np.random.default_rng(2).random((3, 7)).astype(np.float64)
    buffer = vd.asrfftbuffer(real)
    made = copied(buffer)
    assert type(made) is vd.RFFTBuffer and made.var_type is vd.complex128
    assert (made.real_shape, made.fourier_shape, made.real_type) == ((3, 7), (3, 4), vd.float64)
    np.testing.assert_array_equal(made.read_real(0), real)


def test_deep_copies_in_objects() -> None:
    one = floats(4)
    both = {"a": one, "again": one, "other": [floats(3)]}
    made = copy.deepcopy(both)
    assert made["a"] is made["again"] and made["a"] is not one
    loaded = pickle.loads(pickle.dumps(both))
    assert loaded["a"] is loaded["again"]
    np.testing.assert_array_equal(loaded["other"][0].read(0), both["other"][0].read(0))  # type: ignore[attr-defined]


_QUEUES = """
import copy, pickle, sys
import numpy as np
import vkdispatch as vd
vd.make_context(queue_counts=2)
buffer = vd.Buffer(3, vd.float32)
for queue in range(2):
    buffer.write(np.full(3, queue + 5, np.float32), queue)
for made in (copy.copy(buffer), copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
    assert made.read().tolist() == [[5] * 3, [6] * 3]
same = vd.asbuffer(np.arange(3))
assert pickle.loads(pickle.dumps(same)).read().tolist() == [[0, 1, 2]] * 2
sys.stdout.write(pickle.dumps((same,)).hex() + " " + pickle.dumps(buffer).hex())
"""
_LESS = """
import pickle, sys
import vkdispatch as vd
same, buffer = (bytes.fromhex(text) for text in sys.argv[1:])
print(pickle.loads(same)[0].read().tolist())
try:
    pickle.loads(buffer)
except ValueError as error:
    print(error)
"""


def test_copies_of_several_queues(run_python: RunPython) -> None:
    """The contents of each go to each; where there are fewer they are refused unless they are one."""
    result = run_python(_QUEUES)
    assert result.returncode == 0, result.stderr
    again = run_python(_LESS, *result.stdout.splitlines()[-1].split())
    assert again.returncode == 0, again.stderr
    values, error = again.stdout.splitlines()[-2:]
    assert values == "[[0, 1, 2]]"
    assert "different contents on 2 queues, and the current context has 1" in error


def test_device_objects_are_not_copied() -> None:
    buffer, image = floats(4), vd.Image2D((2, 2))
    graph = vd.CommandGraph()
    future, event = buffer.read_async(), vd.record_event()
    things = {
        vd.get_context(): r"vd\.make_context",
        graph: "record",
        CommandList(): "record",
        image: r"image\.read\(\)",
        image.sample(): r"image\.sample",
        future: r"future\.result\(\)",
        event: r"vd\.record_event",
        buffer.signals[0]: "signals",
    }
    for thing, instead in things.items():
        name = type(thing).__name__
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=rf"^a {name} cannot be copied or pickled: .*{instead}"):
                use(thing)
    future.wait()
