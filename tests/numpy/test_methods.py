"""Methods and attributes of arrays beyond the array API standard, compared with NumPy's."""

from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import run_both, run_texts

DATA = np.random.default_rng(3).integers(-9, 9, (4, 6)).astype(np.float64)


def test_methods() -> None:
    run_texts(
        """
        x.partition(2); x.sort(); r = x
        x.partition(1, axis=0); x.sort(axis=0, stable=True); r = x
        r = x.argpartition(0)[:, 0]
        r = x.compress(m.asarray([True, False, True]), axis=1)
        r = x.compress(m.asarray([False, True]))
        r = y.choose([m.asarray([1, 2, 3]), m.asarray([4, 5, 6])])
        x.put(m.asarray([1, -1]), m.asarray([7., 8])); r = x
        x.put(m.asarray([99]), 1., mode="clip"); r = x
        r = x.sum(axis=0, initial=5., where=x > 0)
        r = x.prod(where=x > 0)
        r = x.max(axis=1, initial=3)
        r = x.min(initial=99., where=x > 0)
        r = x.mean(where=x > 0)
        r = x.all(where=x > 9), x.any(axis=0, where=x < 0)
        r = x.trace(1, dtype=m.float32)
        r = x.dot(x.T, m.zeros((4, 4)))
        r = x.argsort(stable=True)
        r = x.astype(m.int32, casting="safe")
        r = x.astype("f4", "C", "same_kind")
        r = x.astype(m.float64, copy=False)
        """,
        DATA,
        np.array([0, 1, 0]),
    )
    assert vnp.asarray(DATA).tobytes("F") == DATA.tobytes("F")
    assert abs(vnp.asarray(DATA).std(axis=0, correction=1).numpy() - DATA.std(axis=0, ddof=1)).max() < 1e-12


def test_views_as_other_dtypes() -> None:
    run_texts(
        """
        r = x.view(m.int64)
        r = x.view(m.uint8)
        r = x.view("c16")
        r = x[1:, 2:4].view("c16")
        r = x[1:, 2:4].view(m.float32)
        r = x[:, ::2].view(m.uint64)
        r = x[:, ::2].view(m.uint32)
        r = x.T.view(m.uint32)
        r = x[:, :3].view("c16")
        r = x[0, 0].view(m.int64)
        r = x[0, 0].view(m.int32)
        y = x.view(m.int64); y[0] = 0; r = x
        y = x.view(m.int64); x += 1; r = y
        z = x + 1; y = z.view(m.int64); z *= 2; r = y
        y = x.view(); y[1] = 5; r = x
        y = x[1].view(m.uint8); w = y + 1; x[1] = 3; r = w
        """,
        DATA,
    )
    with pytest.raises(TypeError, match="dtype"):
        vnp.asarray(DATA).view(bool)


def test_flat() -> None:
    run_texts(
        """
        x.flat[::4] = 1; x.flat[1] = 7; r = x.flat[3], x.flat[2:9:3], x.flat[[1, 1, -1]], x.flat[...]
        x.T.flat[[5, 7]] = -1; x.T.flat[::-5] = [1, 2]
        x[::2, ::-1].flat = [3, 4, 5]
        x.flat = 2; x[1:, 1:].flat[-1] = 4
        x.flat[m.asarray([0, 2])] = m.asarray([8, 9])
        x.flat[1:3] = np.array([8, 9]); r = list(x.T.flat), len(x.flat), np.asarray(x.flat), x.flat.copy()
        x.flat[99] = 1
        x.flat[1, 2] = 1
        x.flat[None] = 1
        x.flat[0] = [1, 2]
        y.flat[:2] = 300
        y.flat = [1, -300]
        x.T[0].flat[:] = 5
        m.broadcast_to(x, (2, 4, 6)).flat[0] = 1
        """,
        DATA,
        np.zeros(3, np.int8),
    )
    x = vnp.arange(3) * 2
    with pytest.raises(TypeError, match="complex"):
        x.flat[0] = 1j
    assert next(x.flat) == 0
    assert x.flat.base is x


def test_stored_numbers_must_fit() -> None:
    run_texts(
        """
        m.put(x, [0], 300)
        m.put(x, [0, 1], [1, 300])
        m.putmask(x, x == 0, 300)
        m.fill_diagonal(x.reshape(2, 2), [300, 1])
        r = m.insert(x, 0, 300)
        r = m.pad(x, 1, constant_values=(1, 300))
        r = m.pad(x, 1, constant_values=2.7)
        r = m.max(x, initial=300), m.min(x, initial=-129)
        r = m.min(x, initial=5)
        """,
        np.zeros(4, np.int8),
    )


def test_orders() -> None:
    block = np.arange(24.0).reshape(2, 3, 4)
    views: tuple[Callable[[Any], Any], ...] = (
        lambda x: x,
        lambda x: x.T,
        lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose(1, 0, 2)[:, ::-1, ::2],
        lambda x: x[None, ..., 0],
        lambda x: x.T[::-1],
    )
    for view in views:
        own, theirs = view(block), view(vnp.asarray(block))
        for order in "CFAK":
            np.testing.assert_array_equal(theirs.ravel(order).numpy(), own.ravel(order))
            np.testing.assert_array_equal(theirs.flatten(order).numpy(), own.flatten(order))
            assert theirs.tobytes(order) == own.tobytes(order)
            if order != "K":
                shape = own.shape[::-1]
                np.testing.assert_array_equal(
                    theirs.reshape(shape, order=order).numpy(), own.reshape(shape, order=order)
                )
    wide = np.broadcast_to(np.arange(3), (2, 3))
    np.testing.assert_array_equal(vnp.broadcast_to(vnp.arange(3), (2, 3)).ravel("K").numpy(), wide.ravel("K"))
    for wrong in (lambda x: x.reshape(-1, order="K"), lambda x: x.ravel("X"), lambda x: x.flatten("X")):
        with pytest.raises(ValueError, match="order"):
            wrong(vnp.asarray(block))


@pytest.mark.parametrize(
    "other",
    [
        *([0, 1, 2], (0, 5, 2), range(3), [[0], [1]], [0.5, 1, 2], [0, 1], None, "a", b"a", object, {1}, ...),
        *(1j, 2**70, -1),
    ],
)
def test_equal_to_anything(other: object) -> None:
    def compare(m: Any, x: Any, y: Any) -> Any:
        return x == other, x != other, other == x, y == other

    run_both(compare, np.arange(3), np.array(1.0))


def test_equality_leaves_to_others_what_is_theirs() -> None:
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

    assert (vnp.arange(3) == Anything()) is True
    assert None not in vnp.arange(3)
    with pytest.raises(TypeError, match="NumPy array"):
        vnp.arange(3) == np.arange(3)  # noqa: B015


def test_arrays_of_a_shape() -> None:
    x = vnp.ndarray((2, 3), np.float32)
    assert (x.shape, x.dtype) == ((2, 3), np.float32)
    assert vnp.ndarray(shape=4).shape == (4,)
    with pytest.raises(TypeError, match="buffer"):
        vnp.ndarray(2, np.float64, np.zeros(2))  # type: ignore[arg-type]
    run_texts(
        """
        x.shape = 24; r = x.sum()
        x.shape = 3, -1; x[0, 0] = 50
        x.shape = 5
        y = x * 2; y.shape = (2, 12); r = y
        y = x[:, ::2]; y.shape = (2, 2, 3); y[0] = 9
        """,
        DATA,
    )
    with pytest.raises(AttributeError, match="reshape"):
        vnp.asarray(DATA).T.shape = 24


def test_requirements_of_memory() -> None:
    run_texts(
        """
        r = m.require(x.T, np.float32, ["C", "W"]), m.require(x, None, "F"), m.require([1, 2], float)
        r = m.require(m.broadcast_to(x, (2, 4, 6)), None, "W").flags["WRITEABLE"]
        r = m.require(x[1:], None, "O").flags.owndata
        r = m.require(x.T, None, ["FORTRAN", "OWNDATA"]).flags.f_contiguous
        r = m.require(x.T, None, "C").flags.c_contiguous
        m.require(x, None, ["C", "F"])
        r = np.isfortran(x.T), x.flags.fnc, x.T.flags.forc, x[::2].flags.carray, x.T.flags.farray
        r = m.asarray_chkfinite(x), m.asarray_chkfinite([1, 2], np.float32)
        m.asarray_chkfinite([1, np.nan])
        m.asarray_chkfinite(x / 0)
        r = x.base is None, x[1:].base is None, x.T.base is None, x[1:].base.size, (x + 1).base is None
        """,
        DATA,
    )
    with pytest.raises(ValueError, match=r"requirements: .*'Z'"):
        vnp.require([1], None, "Z")
    for name in ("data", "ctypes", "setflags", "resize", "byteswap", "getfield", "setfield"):
        with pytest.raises(AttributeError, match=f"{name}'; .*x"):
            getattr(vnp.ones(3), name)


def test_strided_views() -> None:
    run_texts(
        """
        r = m.lib.stride_tricks.as_strided(x, (3, 3), (8, 16))
        r = m.lib.stride_tricks.as_strided(x[2:], (3,), (8,))
        r = m.lib.stride_tricks.as_strided(x[::-1], (3,), (-8,)), m.lib.stride_tricks.as_strided(y)
        r = m.lib.stride_tricks.as_strided(y, (4,), (56,)), m.lib.stride_tricks.as_strided(x, (0, 3), (8, 8))
        r = m.lib.stride_tricks.as_strided(x * 2, (2, 2), (0, 8))
        r = m.lib.stride_tricks.sliding_window_view(x, 3)
        m.lib.stride_tricks.as_strided(x, (5,), (16,))[...] = 0; r = x
        m.lib.stride_tricks.as_strided(x, (5,), (16,), writeable=False)[...] = 0; r = x
        """,
        np.arange(10.0),
        DATA,
    )
    outside = [((2, 2), (80, 0)), ((11,), (8,)), ((3,), (-8,)), ((2,), (1 << 40,))]
    for shape, strides in outside:
        with pytest.raises(ValueError, match=r"strides: .*of 10 in memory"):
            vnp.lib.stride_tricks.as_strided(vnp.arange(10), shape, strides)
    for wrong in ((8, 8), (4,)):
        with pytest.raises(ValueError, match="strides"):
            vnp.lib.stride_tricks.as_strided(vnp.arange(10), (2,), wrong)


def test_numbers_that_a_dtype_cannot_hold() -> None:
    run_texts(
        """
        m.put(x, [0], -1)
        m.putmask(x, x > 2, -1)
        m.place(x, x > 2, [-1])
        m.fill_diagonal(x, 70000)
        m.fill_diagonal(y, np.inf)
        m.put_along_axis(x, m.asarray([[0]]), -1, 0)
        m.insert(x, 1, -1)
        x[0] = [1, 2, -1]
        m.asarray([-1], dtype=np.uint16)
        m.max(x, initial=70000)
        m.min(x, initial=-1)
        m.sum(x, dtype=np.uint8, initial=300)
        m.prod(x, initial=-1)
        m.nan_to_num(z, nan=1j)
        m.interp(z, [0, 1], [0, 1], left=1j)
        z @= m.ones((3, 3)) * 1j
        z @= m.ones(3)
        r = m.choose(y > 0, [x, 1]), m.choose(y > 0, [z, 1])
        r = m.insert(x, 1, [7, 8, 9], axis=0), m.max(x, initial=7), m.sum(y, initial=-3)
        m.put(y, [0, 1], [1.5, 2.5]); r = y
        """,
        np.arange(9, dtype=np.uint16).reshape(3, 3),
        np.arange(-4, 5, dtype=np.int32).reshape(3, 3),
        np.eye(3),
    )
    x = vnp.arange(3, dtype=np.uint8)
    calls = {
        "v": lambda: vnp.put(x, [0], 300),
        "values": lambda: vnp.put_along_axis(x, [0], -1, 0),
        "vals": lambda: vnp.place(x, x > 0, [-1]),
        "value": lambda: x.__setitem__(slice(1), [300]),
        "obj": lambda: vnp.asarray([300], dtype=np.uint8),
    }
    for name, call in calls.items():
        with pytest.raises(vd.VkDispatchError, match=f"^{name}: .*out of bounds for uint8"):
            call()


def test_what_random_calls_found() -> None:
    run_texts(
        """
        r = m.sum(x[0, 0:1].reshape(()), axis=0), m.max(x[0, 0:1].reshape(()), axis=-1)
        r = m.cumsum(x[0, 0:1].reshape(()), axis=0), m.argmin(x[0, 0:1].reshape(()), axis=-1)
        m.mean(x[0, 0:1].reshape(()), axis=0)
        r = m.fft.fftfreq(17), m.fft.rfftfreq(17, 0.3), m.fft.fftfreq(1000, 1.7)
        r = m.polymul([0.0, 0, 0], [1.0, 2]), m.polymul([0, 1, 2], [0, 0, 3])
        y = x + 1; r = m.may_share_memory(y, y)
        r = m.ascontiguousarray(x[0, 0:1].reshape(())), m.asfortranarray(x[0, 0:1].reshape(())), m.tri(3, -2)
        r = m.roll(x, m.asarray([1, 2]), axis=(0, 1))
        r = m.roll(x, np.array([1, 2]), axis=0)
        r = m.roll(x, (1,), axis=(0, 1))
        a, b = m.zeros((4, 6)), m.zeros((4, 6)); m.divmod(x, 3, out=(a, b)); r = a, b
        a = m.zeros((4, 6)); p = m.divmod(x, 3, out=(x, a)); r = p[0], p[1], a, x
        a = m.zeros((4, 6)); m.modf(x / 3, out=(a, None)); r = a
        a = m.zeros((4, 6), dtype=np.int32); m.frexp(x, out=(None, a)); r = a
        m.divmod(x, 3, out=x)
        m.divmod(x, 3, out=(m.zeros(5), None))
        m.divmod(x, 3, out=(m.zeros((4, 6), dtype=np.int8), None))
        r = m.matmul(x, x, axes=[(1, 0), (0, 1), (0, 1)]), m.matmul(x, x, axes=[(0, 1), (1, 0), (1, 0)])
        r = m.matmul(x, x[0], axes=[(-2, -1), (0,), (-1,)]), m.matmul(x[0], x[0], axes=[(0,), (0,), ()])
        r = m.matmul(x.reshape(2, 2, 6), x.reshape(6, 2, 2), axes=[(0, 1), (1, 2), (0, 1)])
        r = m.matmul(x, x.T, dtype=np.int32, casting="unsafe")
        r = m.matmul(x, x.T, out=m.zeros((4, 4), dtype=np.int32), casting="unsafe")
        m.matmul(x, x.T, dtype=np.float32, casting="safe")
        m.matmul(x, x.T, axes=[(0, 1), (0, 1)])
        m.matmul(x, x.T, axes=3)
        s = x[0, 0:1].reshape(()); r = m.take(s, 0, axis=-1), m.take(s, m.asarray([0, -1]), axis=0)
        s = x[0, 0:1].reshape(()); r = m.squeeze(s, 0), s.squeeze(-1), m.compress([True], s, axis=0)
        s = x[0, 0:1].reshape(()) > 3; r = m.packbits(s, axis=0), m.unpackbits(m.packbits(s)[0], axis=-1)
        m.squeeze(x[0, 0:1].reshape(()), 1)
        m.take(x[0, 0:1].reshape(()), 0, axis=1)
        r = m.max(x > 3, initial=-2), m.min(x > 3, initial=-2), (x > 3)[:0].max(initial=-1)
        x.argmax(0, out=m.zeros(6, dtype=np.float32))
        m.nanargmin(x, 0, out=m.zeros(6))
        r = x.argmax(0, out=m.zeros(6, dtype=np.int32))
        m.nanstd(x, out=m.zeros(2))
        r = m.nanstd(x, out=m.zeros(()))
        round((x > 3)[0, 0])
        r = m.require(x[0, 0:1].reshape(()), None, "C"), m.require(x[0, 0:1].reshape(()), None, "F")
        r = m.diag(x, 1); x[...] = 1
        m.diag(x)[:] = 1
        r = m.random.default_rng(1).integers(1, 1, size=(2, 0)), m.random.randint(1, 1, size=0)
        m.random.default_rng(1).integers(1, 1, size=2)
        """,
        DATA,
    )


def test_odd_reflections() -> None:
    run_texts(
        """
        r = m.pad(x, (3, 2), mode="reflect", reflect_type="odd")
        r = m.pad(x, (30, 22), mode="reflect", reflect_type="odd")
        r = m.pad(x, (30, 22), mode="symmetric", reflect_type="odd")
        r = m.pad(x[:2], 4, mode="reflect", reflect_type="odd")
        r = m.pad(y, ((2, 9), (0, 17)), mode="symmetric", reflect_type="odd")
        r = m.pad(y, 3, mode="reflect", reflect_type="odd")
        r = m.pad(x[:1], 4, mode="reflect", reflect_type="odd")
        r = m.pad(x[:1], 4, mode="symmetric", reflect_type="odd")
        r = m.pad(z, 13, mode="reflect", reflect_type="odd"), m.pad(x, 0, mode="reflect", reflect_type="odd")
        m.pad(x[:0], 3, mode="reflect", reflect_type="odd")
        r = m.pad(m.log(x), (2, 13), mode="reflect", reflect_type="odd")
        r = m.pad(-m.log(x[::-1]), (13, 2), mode="symmetric", reflect_type="odd")
        """,
        np.arange(10.0),
        DATA,
        np.arange(10, dtype=np.uint8),
    )
