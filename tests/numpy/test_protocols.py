"""NumPy's functions called with Arrays, and what libraries written for the protocols do with them."""

from __future__ import annotations

import copy
import inspect
import json
import math
import operator
import pickle
import statistics
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.numpy.both import run_texts

H = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
N = np.array([[3, -7, 12], [0, 5, -1]], np.int32)


def compare(call: Callable[[Any], Any], *hosts: np.ndarray[Any, Any], rtol: float = 1e-5) -> Any:
    """Compare a call of NumPy's on arrays with the one on NumPy's arrays; return the first."""
    found, wanted = call(*map(vnp.asarray, hosts)), call(*hosts)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, (tuple, list)) else [(found, wanted)]
    for one, other in pairs:
        assert isinstance(one, vnp.Array)
        assert (one.dtype, one.shape) == (np.asarray(other).dtype, np.shape(other))
        np.testing.assert_allclose(one.numpy(), other, rtol=rtol, atol=1e-6)
    return found


# ---- ufuncs --------------------------------------------------------------------------------------


CALLS: dict[str, Callable[[Any], Any]] = {
    "unary": lambda x: np.exp(x),
    "number": lambda x: np.add(x, 1),
    "number first": lambda x: np.subtract(1, x),
    "scalar of NumPy": lambda x: np.float32(2) * x - np.float64(0.5),
    "wide scalar of NumPy": lambda x: np.float64(2) ** x,
    "dtype": lambda x: np.multiply(x, x, dtype=np.float64),
    "two results": lambda x: np.divmod(x, 5),
    "parts": lambda x: np.modf(x / 3),
    "matmul": lambda x: np.matmul(x, x.T),
    "outer": lambda x: np.multiply.outer(x[0], x),
    "outer with a number": lambda x: np.add.outer(x, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_ufuncs_compute_on_the_device(name: str) -> None:
    compare(CALLS[name], H)


def _flush(x: Any) -> Any:
    """Return subnormal float32 as zeros, which devices may take them for."""
    if x.dtype != np.float32:
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, x * np.float32(0), x)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_parts_of_numbers(kind: Any) -> None:
    # devices may take subnormal numbers of float32 for zeros
    data = [0, -0.0, 1, -1.5, np.pi, 1e-30, 3e-37, 1e30, np.inf, -np.inf, np.nan, 65504, -1e-7]
    x, powers = np.array(data, kind), np.array([0, 1, -1, 3, -5, 100, -3, 10**5, 2, -2, 1, -40, 5])
    calls: list[Callable[[Any], Any]] = [np.modf, np.frexp, lambda x: (np.spacing(x), np.ldexp(x, -100))]
    with np.errstate(all="ignore"):
        for call in calls:
            pairs = list(zip(call(vnp.asarray(x)), call(x), strict=True))
            pairs.append((vnp.ldexp(vnp.asarray(x), vnp.asarray(powers)), np.ldexp(x, powers)))
            for found, wanted in pairs:
                np.testing.assert_array_equal(_flush(found.numpy()), _flush(wanted), strict=True)
                numbers = ~np.isnan(wanted)
                assert (np.signbit(found.numpy()) == np.signbit(wanted))[numbers].all()
    with pytest.raises(TypeError, match="ldexp: expected integers"):
        np.ldexp(vnp.asarray(x), 1.5)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_powers_of_two_of_any_size(kind: Any) -> None:
    limits = np.finfo(kind)
    x = np.array([0, -0.0, 1, -3, 1 / 3, limits.max, limits.tiny, np.inf, -np.inf, np.nan], kind)[:, None]
    powers = np.array([*range(-290, 290, 9), *range(-2200, 2200, 61), -(2**31), 2**31 - 1], np.int32)
    found = vnp.ldexp(vnp.asarray(x), vnp.asarray(powers)).numpy()
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, powers)
    # what is rounded up to the smallest normal number may be flushed before
    wanted = np.where((found == 0) & (np.abs(wanted) == limits.tiny), found, wanted)
    np.testing.assert_array_equal(_flush(found), _flush(wanted), strict=True)
    assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all()


def test_out_and_where() -> None:
    host, array = H, vnp.asarray(H)
    wanted, found = np.zeros_like(host), vnp.zeros_like(array)
    np.add(host, 1, out=wanted, where=host > 4)
    assert np.add(array, 1, out=found, where=array > 4) is found
    np.testing.assert_array_equal(found.numpy(), wanted)
    first, second = vnp.zeros_like(array), vnp.zeros_like(array)
    np.divmod(array, 5, out=(first, second))
    np.testing.assert_array_equal(second.numpy(), host % 5)
    with pytest.raises(ValueError, match="pass out= as well"):
        np.add(array, 1, where=array > 4)
    with pytest.raises(TypeError, match="cannot cast"):
        np.divide(vnp.asarray(N), 2, out=vnp.asarray(N))


REDUCTIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray[Any, Any]]] = {
    "add": (lambda x: np.add.reduce(x), H),
    "add of integers": (lambda x: np.add.reduce(x, axis=1, keepdims=True), N.astype(np.int8)),
    "multiply": (lambda x: np.multiply.reduce(x, axis=(0, 1)), H),
    "maximum": (lambda x: np.maximum.reduce(x, axis=None), N),
    "minimum with a start": (lambda x: np.minimum.reduce(x, axis=1, initial=2), N),
    "logical_and": (lambda x: np.logical_and.reduce(x), N),
    "logical_xor": (lambda x: np.logical_xor.reduce(x, axis=1), N),
    "bitwise_or": (lambda x: np.bitwise_or.reduce(x, axis=1, keepdims=True), N),
    "bitwise_and of nothing": (lambda x: np.bitwise_and.reduce(x[:0]), N),
    "gcd": (lambda x: np.gcd.reduce(x, axis=None), N),
    "fmax": (lambda x: np.fmax.reduce(x, axis=0), np.array([[np.nan, 1], [2, np.nan], [np.nan, -3]])),
    "hypot": (lambda x: np.hypot.reduce(x, axis=1), H),
    "hypot of one": (lambda x: np.hypot.reduce(-x[:1]), H),
    "logaddexp": (lambda x: np.logaddexp.reduce(x, axis=(1, 0)), H[:, :3]),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduce(name: str) -> None:
    compare(*REDUCTIONS[name])


def test_accumulate() -> None:
    data = np.array([[3, 1, np.nan, 2], [-1, 5, 2, 9]], np.float32)
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        compare(lambda x, ufunc=ufunc: ufunc.accumulate(x, axis=1), data)
    compare(np.maximum.accumulate, N)


@pytest.mark.parametrize(
    ("ufunc", "index", "values"),
    [
        (np.add, [0, 0, 1, 2, 2, 2], 1.0),
        (np.subtract, (np.array([0, 0, 1]), np.array([1, 1, -1])), 2.0),
        (np.multiply, [1, 1, 1, 1, 1], np.arange(1, 21, dtype=np.float32).reshape(5, 4)),
        (np.maximum, (slice(None), slice(0, 2)), 5.0),
        (np.minimum, np.array([2, 0, 2]), 3.0),
        (np.divide, [-1, -1, -1], 2.0),
        (np.add, [], 2.0),
    ],
)
def test_at_counts_indices_as_often_as_they_occur(ufunc: np.ufunc, index: Any, values: Any) -> None:
    wanted, found = H.copy(), vnp.asarray(H)
    ufunc.at(wanted, index, values)
    ufunc.at(found, index, vnp.asarray(values) if isinstance(values, np.ndarray) else values)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    whole = vnp.asarray(np.repeat(H, 2, axis=1))
    part = whole[:, ::2]
    ufunc.at(part, index, vnp.asarray(values) if isinstance(values, np.ndarray) else values)
    np.testing.assert_allclose(whole.numpy()[:, ::2], wanted, rtol=1e-6)
    np.testing.assert_array_equal(whole.numpy()[:, 1::2], H)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.maximum])
@pytest.mark.parametrize(
    "kinds",
    [
        "int64,int8",
        "int64,int64",
        "uint8,uint8",
        "float64,float16",
        "float32,float32",
        "float64,int32",
        "complex64,complex64",
        "int32,scalar",
        "float32,scalar",
    ],
)
@pytest.mark.parametrize(("size", "count"), [(7, 300), (1000, 3)])
def test_at_computes_in_the_common_dtype(ufunc: Any, kinds: str, size: int, count: int) -> None:
    kind, values = kinds.split(",")
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, size).astype(kind)
    index = rng.integers(-size, size, count)
    value: Any = 3 if values == "scalar" else (rng.integers(1, 125, count) * 1.0).astype(values)
    if ufunc is np.multiply and values != "scalar":
        value = (value > 60).astype(values)
    expected, actual = x.copy(), vnp.asarray(x)
    with np.errstate(all="ignore"):
        ufunc.at(expected, index, value)
    ufunc.at(actual, vnp.asarray(index), vnp.asarray(value) if values != "scalar" else value)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)


def test_sums_at_of_numbers_that_are_not_finite() -> None:
    values = np.array([1, np.inf, -np.inf, np.inf, np.nan, 2, 3], np.float32)
    index = np.array([0, 1, 2, 3, 4, 5, 5])
    for scale in (1, -1):
        expected, actual = np.arange(6, dtype=np.float32), vnp.arange(6, dtype=np.float32)
        np.add.at(expected, index, values * scale)
        vnp.add.at(actual, vnp.asarray(index), vnp.asarray(values * scale))
        np.testing.assert_array_equal(actual.numpy(), expected)
        with np.errstate(all="ignore"):
            np.add.at(expected, index, np.inf)
        vnp.add.at(actual, vnp.asarray(index), np.inf)
        np.testing.assert_array_equal(actual.numpy(), expected)


def test_at_of_many() -> None:
    random = np.random.default_rng(3)
    index, values = random.integers(-5, 5, 3000), random.integers(0, 99, 3000)
    wanted, found = np.zeros(5, np.int64), vnp.zeros(5, vnp.int64)
    np.add.at(wanted, index, values)
    vnp.add.at(found, vnp.asarray(index), vnp.asarray(values))
    np.testing.assert_array_equal(found.numpy(), wanted)
    x = vnp.asarray(H)
    np.testing.assert_allclose(vnp.multiply.reduce(x, axis=1).numpy(), H.prod(1), rtol=1e-6)
    np.testing.assert_array_equal(vnp.maximum.accumulate(x).numpy(), np.maximum.accumulate(H))
    np.testing.assert_array_equal(vnp.subtract.outer(x[0], x[1]).numpy(), np.subtract.outer(H[0], H[1]))


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a NumPy array": (lambda x: np.add(x, H), r"np\.add: got a NumPy array of shape \(3, 4\)"),
    "a NumPy array first": (lambda x: H + x, r"np\.add: got a NumPy array"),
    "a NumPy array behind": (lambda x: x - H, "subtract: .*got a NumPy array"),
    "a product with a NumPy array": (lambda x: x @ H.T, "matmul: .*got a NumPy array"),
    "a NumPy array that is written": (lambda x: np.add(x, 1, out=H.copy()), "got a NumPy array"),
    "a NumPy array in place": (lambda x: operator.iadd(H.copy(), x), "got a NumPy array"),
    "a NumPy array as a mask": (lambda x: np.add(x, 1, out=x, where=H > 1), "got a NumPy array"),
    "a buffer": (lambda x: np.add(x, vd.asbuffer(H)), r"np\.add: got a vd\.Buffer"),
    "a list": (lambda x: np.add(x, [1, 2, 3, 4]), r"got \[1, 2, 3, 4\]"),
    "reduceat": (lambda x: np.subtract.reduceat(x, [0, 1]), r"np\.subtract\.reduceat: .*x\.numpy\(\)"),
    "what has an order": (lambda x: np.subtract.reduce(x), r"np\.subtract\.reduce: .*x\.numpy\(\)"),
    "no running result": (lambda x: np.hypot.accumulate(x), r"np\.hypot\.accumulate"),
    "at without order": (lambda x: np.power.at(x, [0, 0], 2), r"np\.power\.at"),
    "a ufunc that is missing": (lambda x: np.isnat(x), r"np\.isnat: .*x\.numpy\(\)"),
    "a ufunc of others": (lambda x: np.frompyfunc(abs, 1, 1)(x), r"not one of NumPy's.*x\.numpy\(\)"),
    "casting": (lambda x: np.add(x, 1, casting="unsafe"), "casting='unsafe'"),
    "a function that is missing": (lambda x: np.is_busday(x), r"np\.is_busday: .*x\.numpy\(\)"),
    "a NumPy array in a sequence": (lambda x: np.concatenate([x, H]), r"arrays\[1\]: .*got a NumPy array"),
    "an argument that is missing": (lambda x: np.sort(x, order="a"), r"np\.sort: order="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_is_named(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(TypeError, match=message):
        call(vnp.asarray(H))


class Foreign:
    """An array of another library, which takes over."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> str:
        return f"{ufunc.__name__} of {len(inputs)}"

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> str:
        return str(func.__name__)

    def __radd__(self, other: Any) -> str:
        return "added"


def test_other_libraries_take_over() -> None:
    x = vnp.asarray(H)
    assert np.add(x, Foreign()) == "add of 2"
    assert np.concatenate([x, Foreign()]) == "concatenate"
    assert x + Foreign() == "added"
    assert x.__array_ufunc__(np.add, "__call__", x, Foreign()) is NotImplemented
    assert x.__array_function__(np.sum, (vnp.Array, Foreign), (x,), {}) is NotImplemented
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"


# ---- functions -----------------------------------------------------------------------------------


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, 0),
    "sum by name": lambda x: np.sum(a=x, axis=1, keepdims=True),
    "no value": lambda x: np.max(x, 1, None, np._NoValue),
    "std": lambda x: np.std(x, 1, ddof=1),
    "concatenate": lambda x: np.concatenate([x, x], 1),
    "stack": lambda x: np.stack((x, x), 1),
    "vstack": lambda x: np.vstack([x, x]),
    "roll": lambda x: np.roll(x, 1, 1),
    "flip": lambda x: np.flip(x, 0),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "take": lambda x: np.take(x, [0, 2], 1),
    "repeat": lambda x: np.repeat(x, 2, 1),
    "diff": lambda x: np.diff(x, 2, 1),
    "diff by name": lambda x: np.diff(x, axis=0),
    "sort": lambda x: np.sort(-x, 0),
    "sort with a kind": lambda x: np.sort(-x, axis=1, kind="stable"),
    "sort of all": lambda x: np.sort(-x, axis=None),
    "clip": lambda x: np.clip(x, 2, 5),
    "clip by older names": lambda x: np.clip(x, a_min=None, a_max=5),
    "where": lambda x: np.where(x > 3, x, 0),
    "tensordot": lambda x: np.tensordot(x, x, axes=([1], [1])),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "linalg.norm": lambda x: np.linalg.norm(x, axis=1),
    "fft.fft": lambda x: np.fft.fft(x, 8, 1),
    "fft.rfft": lambda x: np.fft.rfft(x, axis=0),
    "fft.fftshift": lambda x: np.fft.fftshift(x, 1),
    "split": lambda x: np.split(x, 3),
    "nonzero": lambda x: np.nonzero(x > 5),
    "unique": lambda x: np.unique(np.where(x > 9, np.nan, x % 4), equal_nan=False, return_counts=True),
    "full_like": lambda x: np.full_like(x, 3, dtype=np.int8),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_compute_on_the_device(name: str) -> None:
    compare(FUNCTIONS[name], H)


def test_functions_about_arrays() -> None:
    x = vnp.asarray(H)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((3, 4), 2, 12, 4)
    assert np.result_type(x, np.float64) == np.float64
    assert np.min_scalar_type(x) == np.float32
    assert np.common_type(x, vnp.asarray(N)) is np.float64
    assert not np.iscomplexobj(x)
    # questions about dtypes and memory take NumPy's arrays beside
    assert np.result_type(x, np.zeros(2)) == np.float64
    assert not np.may_share_memory(H, x)
    assert not np.shares_memory(x, H)
    assert np.may_share_memory(x, x[::2])
    assert np.shares_memory(x[:, ::2], x[1:])
    assert np.may_share_memory(x[:, ::2], x[:, 1::2])
    assert not np.shares_memory(x[:, ::2], x[:, 1::2])
    assert not np.may_share_memory(x, x.copy())
    np.testing.assert_allclose(x, H)


def test_like_makes_arrays() -> None:
    x = vnp.asarray(H)
    made = [
        np.asarray([1, 2], like=x),
        np.zeros(3, np.float32, like=x),
        np.arange(2, 9, 3, like=x),
        np.full((2, 1), 7, like=x),
        np.eye(3, dtype=np.int8, like=x),
    ]
    wanted = [np.asarray([1, 2]), np.zeros(3, np.float32), np.arange(2, 9, 3), np.full((2, 1), 7), np.eye(3)]
    for one, other in zip(made, wanted, strict=True):
        assert isinstance(one, vnp.Array)
        np.testing.assert_array_equal(one.numpy(), other)


def test_like_uploads_data_of_the_host() -> None:
    x = vnp.asarray(H)
    for make in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray):
        made = make(H[:, ::2], like=x)
        assert isinstance(made, vnp.Array)
        np.testing.assert_array_equal(made.numpy(), H[:, ::2])
    assert make(H, like=x).strides == np.asfortranarray(H).strides
    filled = np.full((2, 4), H[0], like=x)
    assert isinstance(filled, vnp.Array) and filled.tolist() == [H[0].tolist()] * 2


HELPERS: dict[str, Callable[[Any], Any]] = {
    "digitize": lambda x: np.digitize(x, np.array([2.5, 7])),
    "histogram": lambda x: np.histogram(x, np.array([0.0, 3, 12]))[0],
    "isin": lambda x: np.isin(x, np.array([3, 4], np.float32)),
    "nanquantile": lambda x: np.nanquantile(x, np.array([0.2, 0.5]), axis=0),
    "percentile": lambda x: np.percentile(x, np.array([20.0, 50]), axis=1),
    "take": lambda x: np.take(x, np.array([2, 0]), axis=1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[2], [0], [1]]), axis=1),
}


@pytest.mark.parametrize("name", HELPERS)
def test_numpys_arrays_may_say_what_to_compute(name: str) -> None:
    compare(HELPERS[name], H)


@pytest.mark.parametrize(("own", "theirs"), [(vnp, np), (vnp.linalg, np.linalg), (vnp.fft, np.fft)])
def test_parameters_have_numpys_places(own: Any, theirs: Any) -> None:
    # an argument by position is never taken for another one
    for name in own.__all__:
        function, model = getattr(own, name), getattr(theirs, name, None)
        if not (inspect.isfunction(function) and hasattr(model, "_implementation")):
            continue
        places = [
            [p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.KEYWORD_ONLY]
            for f in (function, model)
        ]
        for place, parameter in enumerate(places[1]):
            if parameter in places[0]:
                assert places[0].index(parameter) == place, (name, parameter)


# ---- Python's protocols --------------------------------------------------------------------------


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": lambda a: int(a(3)),
    "int of a real": lambda a: int(a(-2.5)),
    "int of one axis": lambda a: int(a([1])),
    "int of NaN": lambda a: int(a(np.nan)),
    "float": lambda a: float(a(3)),
    "float of several": lambda a: float(a([1.0, 2.0])),
    "float of a complex number": lambda a: float(a(1j)),
    "complex": lambda a: complex(a(1.5)),
    "bool": lambda a: bool(a([[0]])),
    "bool of several": lambda a: bool(a([1, 2])),
    "bool of none": lambda a: bool(a(np.zeros(0))),
    "index": lambda a: [1, 2, 3][a(1)],
    "index of a real": lambda a: operator.index(a(1.0)),
    "index of a truth value": lambda a: operator.index(a(True)),
    "index of one axis": lambda a: operator.index(a([1])),
    "len": lambda a: len(a([[1, 2]])),
    "len of a number": lambda a: len(a(1)),
    "iter of a number": lambda a: iter(a(1)),
    "rows": lambda a: [row.tolist() for row in a([[1, 2], [3, 4]])],
    "backwards": lambda a: [int(each) for each in reversed(a([1, 2, 3]))],
    "in": lambda a: (3 in a([1, 2, 3]), 4 in a([1, 2, 3])),
    "hash of several": lambda a: hash(a([1])),
    "format": lambda a: f"{a(1.25):.1f} {a([1, 2])}",
    "format of several": lambda a: f"{a([1.5]):.3f}",
    "percent": lambda a: "%d" % a(3),  # noqa: UP031
    "item": lambda a: a([[1, 2]]).item(0, 1),
    "item of several": lambda a: a([1, 2]).item(),
    "order": lambda a: (a([1, 2]) < a([2, 1])).tolist(),
    "order with text": lambda a: a([1, 2]) < "text",
    "bytes": lambda a: (a([1, 2]).nbytes, a([[1.0, 2.0]]).strides),
    "divmod": lambda a: [part.tolist() for part in divmod(a([-5]), 3)],
    "copy": lambda a: copy.copy(a([1, 2])).tolist(),
    "deepcopy": lambda a: copy.deepcopy({"a": a(3)})["a"].item(),
    "pickle": lambda a: pickle.loads(pickle.dumps(a([[1, 2], [3, 4]])[::-1])).tolist(),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_arrays_are_python_values_as_numpys(name: str) -> None:
    call = CONVERSIONS[name]
    try:
        wanted = call(lambda data: np.array(data))
    except (TypeError, ValueError) as error:
        with pytest.raises(TypeError if isinstance(error, TypeError) else ValueError):
            call(lambda data: vnp.asarray(np.array(data)))
    else:
        assert call(lambda data: vnp.asarray(np.array(data))) == wanted


def test_copies_have_memory_of_their_own() -> None:
    x = vnp.asarray(H)
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (made.dtype, made.shape) == (x.dtype, x.shape)
        made[...] = 0
    np.testing.assert_array_equal(x.numpy(), H)


def test_values_reach_numpy_by_asarray_alone() -> None:
    x = vnp.asarray(H)[:, ::2]
    np.testing.assert_array_equal(np.asarray(x), H[:, ::2])
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, copy=False)
    host = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(host, H[:, ::2])
    np.testing.assert_array_equal(vnp.from_dlpack(host).numpy(), host)
    with pytest.raises(BufferError, match=r"dl_device|in place"):
        x.__dlpack__(dl_device=(4, 0))
    with pytest.raises(TypeError):
        memoryview(x)  # type: ignore[arg-type]


def test_devices() -> None:
    x = vnp.asarray(H)
    assert x.to_device(x.device) is x
    assert vnp.zeros(3, device=x.device).device == x.device
    assert "device" in repr(x.device)
    with pytest.raises(ValueError, match="stream"):
        x.to_device(x.device, stream=1)
    with pytest.raises(TypeError, match="device"):
        x.to_device("cpu")


def test_the_namespace_of_an_array() -> None:
    x = vnp.asarray(H)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is vnp
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="2019.12")


# ---- SciPy ---------------------------------------------------------------------------------------


def test_special_functions_of_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.array([-30, -3, -1.5, 0, 0.3, 0.5, 1, 2.5, 30, np.nan, np.inf])
    y = np.array([0, 0.3, -0.2, 2, 0, 0.5, 0.1, 7, 1, 1, 1])
    for name in vnp.special.__all__:
        function = getattr(special, name, None)
        if not isinstance(function, np.ufunc):  # names that this version of SciPy lacks
            continue
        for data in (np.float32, np.float64):
            args = [each.astype(data) for each in (x, y)[: function.nin]]
            with np.errstate(all="ignore"):
                wanted = function(*args)
            if name == "i0":  # of infinity SciPy's is NaN
                wanted[-1] = np.inf
            found = function(*map(vnp.asarray, args))
            assert (type(found), found.dtype) == (vnp.Array, wanted.dtype), name
            rtol = 2e-6 if data is np.float32 else 1e-13
            np.testing.assert_allclose(found.numpy(), wanted, rtol=rtol, err_msg=name)
    out = vnp.zeros(2)
    special.erf(vnp.asarray([0.5, 1]), out=out)
    np.testing.assert_allclose(out.numpy(), special.erf([0.5, 1]))
    assert vnp.special.erf(vnp.asarray([1, 2])).dtype == vnp.zeros(0).dtype
    with pytest.raises(TypeError, match="jv: arrays do not have this ufunc"):
        special.jv(1, vnp.asarray(x))
    with pytest.raises(TypeError, match="erf: expected real numbers"):
        special.erf(vnp.asarray([1j]))


def test_numbers_of_one_element_are_formatted_and_rounded() -> None:
    buffer = vd.asbuffer(np.array([2.71828], np.float32))
    array = vnp.asarray(2.71828)
    assert f"{buffer:.2f} {array:.2f}" == "2.72 2.72"
    assert round(buffer, 2) == pytest.approx(2.72) and round(buffer) == 3
    assert round(array, 2) == 2.72 and round(array) == 3
    assert f"{buffer}" == str(buffer)
    with pytest.raises(TypeError, match="format: expected a buffer of one element"):
        f"{vd.asbuffer(np.zeros(3, np.float32)):.2f}"
    with pytest.raises(TypeError, match="one element"):
        round(vnp.zeros(3))


def test_buffers_of_arrays_take_a_dtype() -> None:
    for array in (vnp.arange(5), vnp.asarray(np.arange(5)), vnp.arange(10)[::2] / 2):
        buffer = vd.asbuffer(array, vd.float32)
        assert buffer.var_type is vd.float32 and buffer.read(0).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="same_kind"):
        vd.asbuffer(vnp.ones(3), vd.int32)


@pytest.mark.parametrize("name", ["read", "get", "__array_interface__"])
def test_names_of_other_arrays_tell_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; x\.numpy\(\) is a NumPy array"):
        getattr(vnp.ones(3), name)
    with pytest.raises(AttributeError, match=r"no attribute 'shap'$"):
        _ = vnp.ones(3).shap  # type: ignore[attr-defined]


def test_reduceat() -> None:
    rng = np.random.default_rng(4)
    run_texts(
        """
        r = np.add.reduceat(x, [0, 4, 1, 5]), np.add.reduceat(x, [0, 257, 300, 299]), np.add.reduceat(x, [])
        r = np.add.reduceat(y, [0, 3, 1], axis=1)
        r = np.add.reduceat(y, [0, 3, 1])
        r = np.add.reduceat(y.T, [2], axis=-1)
        r = np.maximum.reduceat(y, m.asarray([0, 2]), axis=-1), np.minimum.reduceat(y[::-1], [1, 4])
        r = np.multiply.reduceat(z, [0, 4]), np.add.reduceat(z, [3]), np.bitwise_xor.reduceat(z, [1, 3, 0])
        r = np.logical_or.reduceat(x, [0, 5, 7])
        r = np.logical_and.reduceat(x, [0, 5, 7])
        r = np.gcd.reduceat(z, [0, 5])
        r = np.add.reduceat(x, [0, 4], dtype=np.float32)
        r = m.add.reduceat(x, [0, 2, 9])
        r = np.add.reduceat(x > 3, [0, 9])
        o = m.zeros(2); np.add.reduceat(x, [0, 4], out=o); r = o
        np.add.reduceat(x, [1001])
        np.add.reduceat(x, [-1])
        np.add.reduceat(x, [[0]])
        np.add.reduceat(x, [0], axis=1)
        """,
        rng.integers(-9, 9, 1001).astype(np.float64),
        rng.integers(-9, 9, (5, 7)),
        np.arange(10, dtype=np.uint8),
    )


def test_at_of_one_operand() -> None:
    run_texts(
        """
        np.negative.at(x, [0, 0, 3]); r = x
        np.sqrt.at(x, [4, 9, 4]); r = x
        np.negative.at(y, ([0, 1, 0], [2, 2, 2])); r = y
        np.square.at(y, (slice(None), 1)); r = y
        np.negative.at(y.T, [0, 0, 0, 2]); r = y
        m.negative.at(x, m.asarray([1, 1, 2])); r = x
        np.negative.at(x, x > 4); r = x
        np.negative.at(x, []); r = x
        np.negative.at(x, [99]); r = x
        """,
        np.arange(10.0),
        np.random.default_rng(4).integers(-9, 9, (5, 7)),
    )
    with pytest.raises(TypeError, match=r"np\.sqrt\.at: cannot cast"):
        np.sqrt.at(vnp.arange(3), [0])


def test_numbers_of_results_take_the_place_of_scalars() -> None:
    x = vnp.asarray([1.0, 2.5, 1.0])
    assert {1.0: "one"}[x[0]] == "one"  # type: ignore[index]
    assert len({x[0], x[1], x[2]}) == 2
    assert hash(x[1]) == hash(np.float64(2.5)) == hash(2.5)
    assert hash(x.astype(np.int8)[0]) == hash(1)
    assert math.trunc(x[1]) == 2
    assert x[1].as_integer_ratio() == (5, 2)
    assert (x[0].is_integer(), x[1].is_integer()) == (True, False)
    with pytest.raises(TypeError, match=r"unhashable.*tuple\(x\.tolist\(\)\)"):
        hash(x)
    with pytest.raises(TypeError, match=r"vnp\.mean"):
        statistics.mean(x)
    assert statistics.fmean(x) == 1.5
    assert json.dumps({"x": x.tolist(), "mean": x.mean().item()}) == '{"x": [1.0, 2.5, 1.0], "mean": 1.5}'


@pytest.mark.parametrize(
    "call",
    [
        lambda x, host: host * x,
        lambda x, host: host @ x,
        lambda x, host: np.concatenate([host, x]),
        lambda x, host: np.stack([x, host]),
        lambda x, host: np.broadcast_arrays(x, host),
        lambda x, host: np.where(x > 0, host, x),
    ],
)
def test_mixed_calls_tell_both_conversions(call: Callable[..., Any]) -> None:
    with pytest.raises(
        TypeError, match=r"^np\.\w+: .*NumPy array.*vnp\.asarray, or read the Arrays? with x\.numpy\(\)"
    ):
        call(vnp.arange(3.0), np.ones(3))
