"""New arrays against NumPy: dtypes, bits of ranges, copies, numbers that do not fit."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import compare, run_texts

_ARRAYS = (
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.arange(5.0),
)


def test_data() -> None:
    run_texts(
        """
        r = m.asarray([1, 2.5])
        r = m.asarray([True, 1])
        r = m.asarray(1j)
        r = m.asarray(2**63)
        r = m.asarray([2**63, 1])
        r = m.asarray([300], dtype='i1')
        r = m.asarray(-1, dtype='u8')
        r = m.asarray([2.7], dtype='i4')
        r = m.asarray([float('nan')], dtype='i4')
        r = m.asarray([1j], dtype='f4')
        r = m.asarray([2**70], dtype='f8')
        r = m.asarray([[1, 2], [3]])
        r = m.asarray([])
        r = m.asarray(range(5))
        r = m.asarray(np.float32(3))
        r = m.asarray([np.float32(1), np.float32(2)])
        r = m.asarray([np.float32(1), 2])
        r = m.asarray([z, z])
        r = m.asarray([[z[0], 1], [2, z[1]]])
        r = m.asarray(np.arange(3, dtype='>i4')).astype('i4')
        r = m.asarray(np.arange(6).reshape(2, 3)[:, ::-1])
        r = m.asarray(memoryview(b'abc'))
        r = m.asarray(z, dtype='i4', copy=False)
        r = m.asarray([1], copy=False)
        r = m.array(z, ndmin=3)
        r = m.array([1.5, 2], dtype=int)
        r = m.zeros((2, -1))
        r = m.zeros(2.5)
        r = m.zeros((2, 3), 'i4', order='F')
        r = m.ones(())
        r = m.full(3, 2**63)
        r = m.full(3, 300, 'u1')
        r = m.full(3, 1j)
        r = m.full((2, 3), [1, 2, 3])
        r = m.full((2, 3), z)
        r = m.full_like(y, 2.5)
        r = m.full_like(y, 70000)
        r = m.zeros_like(y, shape=2)
        r = m.eye(3, 4, 1)
        r = m.eye(3, k=2**40)
        r = m.tri(3, 4, -1)
        r = m.frombuffer(b'abcdefgh', 'i2', 2, 2)
        r = m.frombuffer(b'abc', 'i2')
        r = m.fromiter((i * i for i in range(5)), 'i4')
        r = m.fromfunction(lambda i, j: i + 2 * j, (3, 4), dtype=int)
        r = m.fromstring('1 2 3', sep=' ')
        """,
        *_ARRAYS,
    )


_ORDERED: list[Callable[[Any, Any, str], Any]] = [
    lambda m, x, order: m.asarray(x, order=order),
    lambda m, x, order: m.asarray([[1, 2], [3, 4]], "f4", order=order),
    lambda m, x, order: m.array(x, order=order, ndmin=4),
    lambda m, x, order: m.asarray_chkfinite(x, None, order),
    lambda m, x, order: m.zeros((2, 3, 4), order=order),
    lambda m, x, order: m.ones((2, 3), np.int16, order),
    lambda m, x, order: m.full((2, 3), 7, order=order),
    lambda m, x, order: m.full((3, 2, 3), x[0, :2, :1], order=order),
    lambda m, x, order: m.zeros_like(x, order=order),
    lambda m, x, order: m.ones_like(x, order=order),
    lambda m, x, order: m.full_like(x, 3, order=order),
    lambda m, x, order: m.copy(x, order),
    lambda m, x, order: x.copy(order),
    lambda m, x, order: x.astype(np.int32, order),
    lambda m, x, order: x.astype(x.dtype, order, copy=False),
    lambda m, x, order: m.empty((2, 3, 4), order=order) * 0,
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[:, :, ::2], lambda x: x + 1])
@pytest.mark.parametrize("make", _ORDERED)
def test_orders(make: Callable[[Any, Any, str], Any], view: Callable[[Any], Any], order: str) -> None:
    host = np.arange(48, dtype=np.float32).reshape(4, 3, 4)[:2].transpose(0, 2, 1)
    ours, theirs = make(vnp, view(vnp.asarray(host)), order), make(np, view(np.array(host)), order)
    compare(ours.numpy(), theirs)
    if make is not _ORDERED[-1]:  # results of operations are in C order
        assert (ours.flags.c_contiguous, ours.flags.f_contiguous) == (
            theirs.flags.c_contiguous,
            theirs.flags.f_contiguous,
        )


def test_orders_of_memory() -> None:
    x = vnp.arange(6).reshape(2, 3)
    assert vnp.empty((2, 3), np.int64, "F").strides == np.empty((2, 3), np.int64, "F").strides == (8, 16)
    assert vnp.asarray(x, order="C") is x
    assert all(vnp.shares_memory(vnp.asarray(x.T, order=order), x) for order in "FAK")
    for make in (vnp.asarray, vnp.zeros_like, vnp.copy):
        with pytest.raises(ValueError, match="order: expected 'C', 'F', 'A' or 'K', got 'X'"):
            make(x, order="X")
    with pytest.raises(ValueError, match="copy: False was passed, but the order 'F'"):
        vnp.asarray(x, order="F", copy=False)


def test_ranges() -> None:
    run_texts(
        """
        r = m.arange(0, 1, .1)
        r = m.arange(1, 0, -.1)
        r = m.arange(-3, 3, .7)
        r = m.arange(0, 1, .1, 'f4')
        r = m.arange(0, 3, .1, dtype='f2')
        r = m.arange(0, 2, .3, 'i4')
        r = m.arange(5, 2)
        r = m.arange(9, 2, -2)
        r = m.arange(2**62, 2**62 + 5)
        r = m.arange(-2**63, -2**63 + 3)
        r = m.arange(2**63, 2**63 + 3, dtype='u8')
        r = m.arange(300, dtype='u1')
        r = m.arange(5, dtype='c8')
        r = m.arange(2, dtype='?')
        r = m.arange(3, dtype='?')
        r = m.arange(float('inf'))
        r = m.arange(float('nan'))
        r = m.arange(start=1, stop=5, step=2)
        r = m.arange(0.0, 0, 1)
        r = m.linspace(0, 1, 5, False)
        r = m.linspace(0, 1, 1)
        r = m.linspace(0, 1, -1)
        r = m.linspace(-1.3, 2.7, 101)
        r = m.linspace(.1, .2, 1000)
        r = m.linspace(0, 5e-324, 4)
        r = m.linspace(0, 1e300, 7)
        r = m.linspace(0, 1, 7, dtype='f4')
        r = m.linspace(-10, 10, 7, dtype=int)
        r = m.linspace(np.float32(0), np.float32(1), 7)
        r = m.linspace(1j, 2, 5)
        r = m.linspace(0, 1, 5, retstep=True)
        r = m.linspace(z, z + 1, 3, axis=-1)
        r = m.logspace(0, 3, 4, base=2)
        r = m.geomspace(1, 256, 9)
        r = m.geomspace(1, 0, 4)
        """,
        *_ARRAYS,
    )
    compare(vnp.arange(2**63, 2**63 + 2).numpy(), np.array([2**63, 2**63 + 1]))


@pytest.mark.parametrize("value", [2**64, [-(2**63) - 1], [[2**70, 1.5j]]])
def test_integers_that_fit_no_dtype(value: Any) -> None:
    with pytest.raises(OverflowError):
        vnp.asarray(value)


@pytest.mark.parametrize("value", ["a", ["1", "2"], [None], None, {1, 2}, b"abc", np.datetime64("2020")])
def test_what_holds_no_numbers(value: Any) -> None:
    with pytest.raises(TypeError):
        vnp.asarray(value)


def test_buffers() -> None:
    buffer = vd.asbuffer(np.arange(6, dtype=np.float32).reshape(2, 3))
    shared, copied = vnp.asarray(buffer), vnp.asarray(buffer, copy=True)
    shared[0, 0] = 9
    copied[0, 1] = 8
    compare(buffer.read(0), np.array([[9, 1, 2], [3, 4, 5]], np.float32))
    buffer.write(np.ones((2, 3), np.float32))
    compare(shared.numpy(), np.ones((2, 3), np.float32))
    vectors = vd.Buffer((4,), vd.vec3)
    vectors.write(np.arange(12, dtype=np.float32).reshape(4, 3))
    compare(vnp.asarray(vectors)[:, 1].numpy(), np.array([1, 4, 7, 10], np.float32))


class _Exported:
    """An array that others see by DLPack alone."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self._data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._data.__dlpack_device__()


@pytest.fixture
def float32_by_default() -> Iterator[None]:
    vnp.set_default_dtype("float32")
    yield
    vnp.set_default_dtype(None)


def test_complex_numbers_of_the_default_dtype(float32_by_default: None) -> None:
    assert vnp.result_type(vnp.int32, 1j) == vnp.result_type(vnp.float32, 1j) == np.complex64
    assert vnp.result_type(vnp.float64, 1j) == np.complex128
    add = vnp.vectorize(lambda x, y: x + y)
    assert add(vnp.ones(2, np.float64), 1j).dtype == np.complex128


def test_default_dtype(float32_by_default: None) -> None:
    for found in (
        vnp.zeros(2),
        vnp.asarray([1.5]),
        vnp.arange(3.0),
        vnp.linspace(0, 1, 3),
        vnp.full(2, 1.5),
        vnp.eye(2),
        vnp.geomspace(1, 10, 3),
        vnp.asarray([1, 2]) / 2,
        vnp.arange(3) * 0.5,
    ):
        assert found.dtype == np.float32
    assert vnp.asarray(1j).dtype == np.complex64
    # data are never narrowed in silence
    data = (np.array([1.5]), [np.float64(1.5)], [np.array([1.5])], array("d", [1.5]))
    for given in (*data, _Exported(np.array([1.5]))):
        assert vnp.asarray(given).dtype == np.float64
    assert vnp.linspace(np.float64(0), 1, 3).dtype == np.float64


_X = np.ones(3, np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: vnp.zeros(2**63),
        lambda: vnp.zeros((0, 2**63)),
        lambda: vnp.empty((2**32, 2**32)),
        lambda: vnp.empty_like(_X, shape=2**63),
        lambda: vnp.ones(2**64),
        lambda: vnp.full((2**31, 2**31, 2**31), 1),
        lambda: vnp.eye(2**32),
        lambda: vnp.eye(3, 2**63),
        lambda: vnp.identity(2**64),
        lambda: vnp.tri(2**40),
        lambda: vnp.tri(2**64),
        lambda: vnp.arange(2**62),
        lambda: vnp.arange(2**70),
        lambda: vnp.linspace(0, 1, 2**63),
        lambda: vnp.logspace(0, 1, 2**63),
        lambda: vnp.geomspace(1, 2, 2**63),
        lambda: vnp.diag(vnp.asarray(_X), 2**62),
        lambda: vnp.diagflat(vnp.asarray(_X), 2**62),
        lambda: vnp.indices((2**32, 2**32)),
        lambda: vnp.repeat(vnp.asarray(_X), 2**63),
        lambda: vnp.tile(vnp.asarray(_X), (2**40, 2**40)),
        lambda: vnp.broadcast_to(vnp.asarray(_X)[0], (2**40, 2**40)),
        lambda: (
            vnp.broadcast_to(vnp.asarray(_X)[0], 2**40)[:, None] + vnp.broadcast_to(vnp.asarray(_X)[0], 2**40)
        ),
        lambda: vnp.pad(vnp.asarray(_X), 2**62),
        lambda: vnp.resize(vnp.asarray(_X), 2**63),
        lambda: vnp.fft.fft(vnp.asarray(_X), 2**63),
        lambda: vnp.random.default_rng(0).random((2**40, 2**40)),
        lambda: vd.Buffer(2**63, vd.float32),
        lambda: vd.Buffer((2**32, 2**32), vd.float32),
        lambda: vd.random.Generator(1).random(2**63),
    ],
)
def test_shapes_of_more_elements_than_any_memory(call: Callable[[], Any]) -> None:
    """NumPy raises ValueError or MemoryError, and so does this, in classes of its own."""
    with pytest.raises((ValueError, MemoryError)) as caught:
        call()
    assert isinstance(caught.value, vd.VkDispatchError)


def test_integers_that_no_dtype_holds_are_overflow_errors_of_ours() -> None:
    for call in (
        lambda: vnp.full(3, 10**400),
        lambda: vnp.asarray(_X) + 10**400,
        lambda: vnp.ones(2, np.int8) + 300,
    ):
        with pytest.raises(OverflowError) as caught:
            call()
        assert isinstance(caught.value, vd.VkDispatchError)
    with pytest.raises(ValueError, match="fill_value: cannot convert NaN") as nan:
        vnp.full_like(vnp.arange(3), np.nan)
    assert isinstance(nan.value, vd.VkDispatchError)
