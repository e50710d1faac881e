"""The Python array API standard 2025.12: the same questions to `vkdispatch.numpy` and to array_api_strict."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import numpy as np
import vkdispatch.numpy as vnp

strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")

VERSION = "2025.12"
BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
HAS_FLOAT64 = "float64" in vnp.__array_namespace_info__().dtypes()
REAL = ("float32", "float64") if HAS_FLOAT64 else ("float32",)
COMPLEX = ("complex64", "complex128") if HAS_FLOAT64 else ("complex64",)
INTEGERS = SIGNED + UNSIGNED
FLOATING = REAL + COMPLEX
NUMERIC = INTEGERS + FLOATING
ALL = BOOL + NUMERIC


def few(count: int) -> Any:
    """Return the settings of a test: the same examples each time, as kernels have to be compiled for them."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.fixture(autouse=True, scope="module")
def _version_of_the_standard() -> Iterator[None]:
    before = strict.get_array_api_strict_flags()["api_version"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strict.set_array_api_strict_flags(api_version=VERSION)
        yield
        strict.set_array_api_strict_flags(api_version=before)


@pytest.fixture(autouse=True)
def _no_warnings_of_slow_functions() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vnp.linalg.PerformanceWarning)
        yield


def numbers(shape: tuple[int, ...], dtype: str, seed: int, *, least: int = -9) -> np.ndarray[Any, Any]:
    """Return numbers of a dtype: small integers, halves and quarters, some of them equal."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    low = max(least, 0) if kind.kind == "u" else least
    drawn = rng.integers(low, 10, shape)
    if kind.kind == "f":
        return (drawn / 4).astype(kind)
    if kind.kind == "c":
        return (drawn / 4 + 1j * rng.integers(low, 10, shape) / 2).astype(kind)
    return drawn.astype(kind)


def both(data: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    return vnp.asarray(data), strict.asarray(data)


def assert_same(ours: Any, theirs: Any, what: object = "", *, digits: float = 1) -> None:
    """Compare results: dtype, shape and values, those of floats within some units of the last place."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)) and len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, what, digits=digits)
        return
    assert isinstance(ours, vnp.Array), what
    one, other = ours.numpy(), np.asarray(theirs)
    assert one.dtype == other.dtype, (what, one.dtype, other.dtype)
    assert one.shape == other.shape, (what, one.shape, other.shape)
    if one.dtype.kind in "fc":
        exactness = np.finfo(one.dtype).eps * 64 * digits
        np.testing.assert_allclose(one, other, rtol=exactness, atol=exactness, err_msg=str(what))
    else:
        np.testing.assert_array_equal(one, other, err_msg=str(what))


# ---- names and signatures ------------------------------------------------------------------------


def functions_of(module: Any) -> list[str]:
    outside = {"__array_api_version__", "set_array_api_strict_flags", "get_array_api_strict_flags"}
    outside |= {"reset_array_api_strict_flags", "ArrayAPIStrictFlags", "Device", "__array_namespace_info__"}
    return [name for name in module.__all__ if name not in outside and name != "__version__"]


@pytest.mark.parametrize("space", ["", "linalg", "fft"])
def test_every_name_of_the_standard_takes_its_arguments(space: str) -> None:
    theirs = getattr(strict, space) if space else strict
    ours = getattr(vnp, space) if space else vnp
    names = functions_of(theirs)
    assert len(names) > {"": 140, "linalg": 20, "fft": 10}[space]
    wrong = []
    for name in names:
        value = getattr(ours, name, None)
        if value is None and name != "newaxis":
            wrong.append(f"{name} is missing")
        elif inspect.isfunction(getattr(theirs, name)):
            wrong += [f"{name}: {text}" for text in lacks(value, getattr(theirs, name))]
    assert wrong == []


# NumPy has other parameters beside these, of which one counts: None leaves it to them.
NONE_IS_SAME = (("std", "correction"), ("var", "correction"), ("cross", "axis"))


def lacks(ours: Any, theirs: Any) -> list[str]:
    """Return what a function does not take that another one takes."""
    own = inspect.signature(ours)
    wanted = inspect.signature(theirs).parameters.values()
    positional = [each for each in wanted if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    keywords = [each for each in wanted if each.kind is each.KEYWORD_ONLY]
    found = []
    try:
        own.bind(*(each.name for each in positional), **{each.name: each for each in keywords})
    except TypeError as error:
        return [str(error)]
    for each in keywords:
        if each.name in own.parameters:
            default = own.parameters[each.name].default
            left_open = type(each.default).__name__ == "Undef" or (theirs.__name__, each.name) in NONE_IS_SAME
            if not left_open and default is not each.default and default != each.default:
                found.append(f"{each.name} defaults to {default!r}, expected {each.default!r}")
    named = [each for each in positional if each.kind is each.POSITIONAL_OR_KEYWORD]
    if not any(each.kind is each.VAR_POSITIONAL for each in own.parameters.values()):
        found += [f"{each.name} cannot be named" for each in named if each.name not in own.parameters]
    return found


def test_arrays_have_every_attribute_of_the_standard() -> None:
    theirs = type(strict.asarray(1))
    ours = vars(object).keys() | {"__dict__", "__weakref__", "__module__", "__array_priority__"}
    # strict's own: its buffers, NumPy's conversions, advice about what was removed
    ours |= {"__buffer__", "__release_buffer__", "__array__", "__annotations__", "__iter__"}
    names = [name for name in vars(theirs) if name not in ours]
    names = [name for name in names if not name.startswith("_") or name.endswith("__")]
    assert len(names) > 55
    assert [name for name in names if not hasattr(vnp.Array, name)] == []


def test_constants_and_dtypes() -> None:
    for name in ("e", "inf", "pi"):
        assert getattr(vnp, name) == getattr(strict, name)
    assert math.isnan(vnp.nan) and vnp.newaxis is None
    for name in ALL:
        assert np.dtype(getattr(vnp, name)).name == name


# ---- dtypes --------------------------------------------------------------------------------------


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except TypeError:
        return None


def test_promotion_table() -> None:
    for first in ALL:
        for second in ALL:
            theirs = outcome(strict.result_type, getattr(strict, first), getattr(strict, second))
            if theirs is None:  # the standard leaves it open
                continue
            name = theirs._np_dtype.name
            assert np.dtype(vnp.result_type(getattr(vnp, first), getattr(vnp, second))).name == name
            if first in NUMERIC and second in NUMERIC:
                # lazy: nothing runs
                x, y = vnp.ones(2, dtype=first), vnp.ones((3, 1), dtype=second)
                assert (x + y).dtype.name == name and (y * x).dtype.name == name
                assert vnp.concat([x, y[0]]).dtype.name == name


def test_python_numbers_take_the_dtype_of_arrays() -> None:
    for name in NUMERIC:
        x, y = vnp.ones(2, dtype=name), strict.ones(2, dtype=getattr(strict, name))
        for number in (True, 3, 0.5, 1j):
            if fits(number, name):
                assert (x + number).dtype == np.asarray(y + number).dtype, (name, number)
                assert (number * x).dtype == np.asarray(number * y).dtype, (name, number)


def fits(number: complex, name: str) -> bool:
    kinds: dict[type, tuple[str, ...]] = {bool: (), int: NUMERIC, float: FLOATING, complex: COMPLEX}
    return name in kinds[type(number)]


KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating")


def kind_of(name: str) -> str:
    return next(kind for kind in KINDS if strict.isdtype(getattr(strict, name), kind))


def test_isdtype_and_can_cast() -> None:
    for first in ALL:
        ours, theirs = getattr(vnp, first), getattr(strict, first)
        for kind in (*KINDS, "numeric", ("bool", "integral")):
            assert vnp.isdtype(ours, kind) == strict.isdtype(theirs, kind), (first, kind)
        for second in ALL:
            other, others = getattr(vnp, second), getattr(strict, second)
            assert vnp.isdtype(ours, other) == strict.isdtype(theirs, others)
            if first in NUMERIC or first == second:  # the standard casts booleans to nothing, NumPy to all
                assert vnp.can_cast(ours, other) >= strict.can_cast(theirs, others), (first, second)
            if vnp.isdtype(ours, kind_of(second)):
                assert vnp.can_cast(ours, other) == strict.can_cast(theirs, others), (first, second)


def test_finfo_and_iinfo() -> None:
    for name in FLOATING:
        ours, theirs = vnp.finfo(getattr(vnp, name)), strict.finfo(getattr(strict, name))
        for each in ("bits", "eps", "max", "min", "smallest_normal"):
            assert float(getattr(ours, each)) == float(getattr(theirs, each)), (name, each)
    for name in INTEGERS:
        limits, others = vnp.iinfo(getattr(vnp, name)), strict.iinfo(getattr(strict, name))
        assert (limits.bits, limits.min, limits.max) == (others.bits, others.min, others.max)


def test_namespace_info() -> None:
    ours, theirs = vnp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.capabilities().keys() == theirs.capabilities().keys()
    assert ours.capabilities()["boolean indexing"] and ours.capabilities()["data-dependent shapes"]
    assert ours.default_dtypes().keys() == theirs.default_dtypes().keys()
    assert ours.default_device() in ours.devices() and isinstance(ours.devices(), tuple)
    assert vnp.__array_api_version__ == VERSION
    for kind in (*KINDS, "numeric", None, ("bool", "integral")):
        wanted = {name for name in theirs.dtypes(kind=kind) if name in ALL}
        assert ours.dtypes(kind=kind).keys() == wanted
    x = vnp.ones(3)
    assert x.__array_namespace__(api_version=VERSION) is vnp
    assert x.device == ours.default_device() and x.to_device(x.device).device == x.device


# ---- creation ------------------------------------------------------------------------------------


@given(st.data())
@few(40)
def test_creation(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(NUMERIC))
    kind = {"dtype": getattr(vnp, dtype)}, {"dtype": getattr(strict, dtype)}
    small = st.integers(0, 5)
    shape = tuple(data.draw(st.lists(small, max_size=3)))
    name = data.draw(
        st.sampled_from(["arange", "linspace", "eye", "full", "zeros", "ones", "likes", "tril", "asarray"])
    )
    if name == "arange":
        start, count, step = data.draw(small), data.draw(small), data.draw(st.sampled_from([1, 2, 3]))
        kind = kind if dtype not in COMPLEX else ({}, {})
        args: Any = (start, start + count * step, step)
    elif name == "linspace":
        dtype = data.draw(st.sampled_from(FLOATING))
        kind = {"dtype": getattr(vnp, dtype)}, {"dtype": getattr(strict, dtype)}
        args = (data.draw(small), data.draw(st.integers(-5, 9)), data.draw(small))
    elif name == "eye":
        args = (data.draw(small), data.draw(small))
        kind[0]["k"] = kind[1]["k"] = data.draw(st.integers(-2, 3))
    elif name in ("zeros", "ones", "full"):
        args = (shape, 3) if name == "full" else (shape,)
    elif name == "asarray":
        args = ([[1, 2, 3], [4, 5, 6]],)
    else:
        x, y = both(numbers((*shape, 3, 4), dtype, 1))
        if name == "tril":
            k = data.draw(st.integers(-4, 4))
            assert_same(vnp.tril(x, k=k), strict.tril(y, k=k), (name, k))
            assert_same(vnp.triu(x, k=k), strict.triu(y, k=k), (name, k))
        else:
            assert_same(vnp.zeros_like(x), strict.zeros_like(y))
            assert_same(vnp.ones_like(x), strict.ones_like(y))
            assert_same(vnp.full_like(x, 2), strict.full_like(y, 2))
        return
    ours, theirs = getattr(vnp, name)(*args, **kind[0]), getattr(strict, name)(*args, **kind[1])
    assert_same(ours, theirs, (name, args, dtype))


# ---- element-wise functions ----------------------------------------------------------------------

UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("abs", "negative", "positive", "sign", "square"), NUMERIC),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), INTEGERS + REAL),
    **dict.fromkeys(("acos", "asin", "atan", "atanh", "asinh", "cos", "cosh", "exp", "expm1"), FLOATING),
    **dict.fromkeys(("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh"), FLOATING),
    **dict.fromkeys(("reciprocal",), FLOATING),
    **dict.fromkeys(("conj", "imag", "real"), COMPLEX),
    "signbit": REAL,
    "bitwise_invert": BOOL + INTEGERS,
    "logical_not": BOOL,
}
BINARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "multiply", "subtract"), NUMERIC),
    **dict.fromkeys(("divide",), FLOATING),
    **dict.fromkeys(("pow",), FLOATING),
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), INTEGERS + REAL),
    **dict.fromkeys(("equal", "not_equal"), ALL),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), INTEGERS + REAL),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), REAL),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BOOL + INTEGERS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), BOOL),
}
OPERATORS = {
    "add": "__add__",
    "subtract": "__sub__",
    "multiply": "__mul__",
    "divide": "__truediv__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "pow": "__pow__",
    "equal": "__eq__",
    "less": "__lt__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "bitwise_xor": "__xor__",
}


@given(st.data())
@few(90)
def test_functions_of_one_array(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(UNARY)))
    dtype = data.draw(st.sampled_from(UNARY[name]))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
    values = numbers(shape, dtype, 1)
    if name in ("acos", "asin", "atanh"):
        values = values / values.dtype.type(16)
    elif name.startswith("log") and dtype in REAL:
        values = abs(values) + values.dtype.type(0.25)
    elif name in ("sqrt", "reciprocal"):
        values = abs(values) + values.dtype.type(1)
    x, y = both(values)
    digits = 1 if dtype in COMPLEX else 1 / 16  # some 4 units in the last place, as NumPy's may err as well
    assert_same(getattr(vnp, name)(x), getattr(strict, name)(y), (name, dtype, values), digits=digits)


@given(st.data())
@few(90)
def test_functions_of_two_arrays_broadcast(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(BINARY)))
    dtype = data.draw(st.sampled_from(BINARY[name]))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4))
    first, second = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes.input_shapes))
    if name in ("floor_divide", "remainder", "divide"):
        second = np.where(second == 0, second.dtype.type(3), second)
    elif name == "pow":
        first = abs(first) + first.dtype.type(1)
    elif name.endswith("_shift"):
        first, second = abs(first), abs(second) % second.dtype.type(7)
    (x, a), (y, b) = both(first), both(second)
    what = (name, dtype, first, second)
    theirs = getattr(strict, name)(a, b)
    assert theirs.shape == shapes.result_shape
    ours = getattr(x, OPERATORS[name])(y) if name in OPERATORS else getattr(vnp, name)(x, y)
    assert_same(ours, theirs, what, digits=1 if dtype in COMPLEX else 1 / 16)


def test_shapes_that_do_not_broadcast() -> None:
    for shapes in (((2,), (3,)), ((2, 3), (2,)), ((0,), (2,))):
        with pytest.raises(ValueError):
            strict.add(*(strict.ones(each) for each in shapes))
        with pytest.raises(ValueError, match="broadcast"):
            vnp.add(*(vnp.ones(each) for each in shapes))


SPECIAL = (0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize(
    "name", ["add", "multiply", "divide", "less", "equal", "maximum", "copysign", "atan2"]
)
def test_special_values_of_two_arrays(name: str) -> None:
    first = np.repeat(np.array(SPECIAL, "float32"), len(SPECIAL))
    second = np.tile(np.array(SPECIAL, "float32"), len(SPECIAL))
    (x, a), (y, b) = both(first), both(second)
    with np.errstate(all="ignore"):
        theirs = getattr(strict, name)(a, b)
    ours = getattr(vnp, name)(x, y)
    assert_same(ours, theirs, name)
    if name not in ("less", "equal", "maximum"):
        numeric = ~np.isnan(np.asarray(theirs))
        np.testing.assert_array_equal(
            np.signbit(ours.numpy())[numeric], np.signbit(np.asarray(theirs))[numeric], err_msg=name
        )


def test_where_and_clip_and_astype() -> None:
    for dtype in ("int32", "float32", "complex64"):
        (x, a), (y, b) = both(numbers((3, 4), dtype, 0)), both(numbers((4,), dtype, 1))
        mask, masks = both(numbers((3, 1), "bool", 2))
        assert_same(vnp.where(mask, x, y), strict.where(masks, a, b), dtype)
        for target in ("bool", "int16", "float32", "complex64"):
            if dtype != "complex64" or target == "complex64":
                assert_same(
                    vnp.astype(x, getattr(vnp, target)), strict.astype(a, getattr(strict, target)), target
                )
        if dtype != "complex64":
            assert_same(vnp.clip(x, -1, 2), strict.clip(a, -1, 2), dtype)
            assert_same(vnp.clip(x, y), strict.clip(a, b), dtype)


# ---- indexing ------------------------------------------------------------------------------------


@given(st.data())
@few(90)
def test_basic_indices_read_and_write(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    index = index if isinstance(index, tuple) else (index,)
    if not any(each is Ellipsis for each in index):
        index += (Ellipsis,)
    x, y = both(numbers(shape, "int32", 3))
    try:
        theirs = y[index]
    except IndexError:  # the standard leaves slices open that begin beyond the end
        return
    assert_same(x[index], theirs, index)
    if None in index:
        return
    value = data.draw(st.sampled_from(["number", "array", "row"]))
    if value == "number":
        x[index] = 77
        y[index] = 77
    else:
        wanted = theirs.shape if value == "array" else theirs.shape[-1:]
        ours, others = both(numbers(wanted, "int32", 4))
        x[index], y[index] = ours, others
    assert_same(x, y, (index, value))


@given(st.data())
@few(20)
def test_masks_and_arrays_of_integers(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x, y = both(numbers(shape, "float32", 5))
    count = data.draw(st.integers(1, len(shape)))
    mask, masks = both(numbers(shape[:count] if count < len(shape) else shape, "bool", count))
    assert_same(x[mask], y[masks], shape)
    rng = np.random.default_rng(count)
    wide = data.draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=4))
    pairs = [both(rng.integers(-n, n, wide)) for n in shape]
    assert_same(x[tuple(own for own, _ in pairs)], y[tuple(other for _, other in pairs)], (shape, wide))
    x[mask] = -1.0
    y[masks] = -1.0
    assert_same(x, y, shape)


# ---- reductions ----------------------------------------------------------------------------------

REDUCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("sum", "prod"), NUMERIC),
    **dict.fromkeys(("mean", "std", "var"), REAL),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), INTEGERS + REAL),
    **dict.fromkeys(("all", "any", "count_nonzero"), ALL),
}


@given(st.data())
@few(40)
def test_reductions(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(REDUCTIONS)))
    dtype = data.draw(st.sampled_from(REDUCTIONS[name]))
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    options: dict[str, Any] = {"keepdims": data.draw(st.booleans())}
    axes = st.integers(-len(shape), len(shape) - 1)
    if name.startswith("arg"):
        options["axis"] = data.draw(st.none() | axes)
    else:
        several = st.lists(axes, unique_by=lambda axis: axis % len(shape), max_size=3).map(tuple)
        options["axis"] = data.draw(st.none() | axes | several)
    if name in ("std", "var"):
        options["correction"] = data.draw(st.sampled_from([0, 0.5]))
    x, y = both(numbers(shape, dtype, 6, least=-2))
    what = (name, dtype, shape, options)
    assert_same(getattr(vnp, name)(x, **options), getattr(strict, name)(y, **options), what, digits=16)


@given(st.data())
@few(12)
def test_running_sums_and_differences(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    name = data.draw(st.sampled_from(["cumulative_sum", "cumulative_prod", "diff"]))
    dtype = data.draw(st.sampled_from(["int8", "uint32", "int64", *FLOATING]))
    options = {"axis": axis} | ({} if name == "diff" else {"include_initial": data.draw(st.booleans())})
    x, y = both(numbers(shape, dtype, 7, least=-2))
    what = (name, dtype, shape, options)
    assert_same(getattr(vnp, name)(x, **options), getattr(strict, name)(y, **options), what, digits=16)


# ---- manipulation --------------------------------------------------------------------------------


MANIPULATIONS = (
    *("concat", "stack", "expand_dims", "flip", "permute_dims", "reshape", "roll", "squeeze", "tile"),
    *("repeat", "moveaxis", "unstack", "broadcast_to", "matrix_transpose", "meshgrid"),
)


@given(st.data())
@few(90)
def test_manipulation(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    x, y = both(numbers(shape, data.draw(st.sampled_from(["int16", "float32"])), 8))
    ndim = len(shape)
    axis = data.draw(st.integers(-ndim, ndim - 1))
    name = data.draw(st.sampled_from(MANIPULATIONS))
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = {"axis": axis}
    if name in ("concat", "stack"):
        options = {"axis": data.draw(st.none() | st.just(axis))} if name == "concat" else options
        assert_same(getattr(vnp, name)([x, x], **options), getattr(strict, name)([y, y], **options), name)
        return
    if name == "meshgrid":
        options = {"indexing": data.draw(st.sampled_from(["xy", "ij"]))}
        (x, a), (z, b) = both(numbers((3,), "int32", 0)), both(numbers((2,), "int32", 1))
        ours, theirs = vnp.meshgrid(x, z, **options), strict.meshgrid(a, b, **options)
        assert type(ours) is type(theirs) is tuple
        assert_same(ours, theirs, options)
        return
    if name == "permute_dims":
        args, options = (data.draw(st.permutations(range(ndim)).map(tuple)),), {}
    elif name == "reshape":
        args, options = (data.draw(st.sampled_from([(-1,), (1, *shape), shape[::-1], (-1, 1)])),), {}
    elif name == "roll":
        args = (data.draw(st.integers(-5, 5)),)
    elif name == "squeeze":
        x, y = vnp.expand_dims(x, axis=axis), strict.expand_dims(y, axis=axis)
    elif name == "tile":
        args, options = (data.draw(st.sampled_from([(2,), (1, 2), (2, 1, 3)])),), {}
    elif name == "repeat":
        args = (data.draw(st.integers(0, 3)),)
    elif name == "moveaxis":
        args, options = (axis, 0), {}
    elif name == "broadcast_to":
        args, options = ((2, *shape),), {}
    elif name == "matrix_transpose":
        x, y, options = vnp.expand_dims(x, axis=0), strict.expand_dims(y, axis=0), {}
    what = (name, shape, args, options)
    assert_same(getattr(vnp, name)(x, *args, **options), getattr(strict, name)(y, *args, **options), what)


# ---- sorting, searching, sets --------------------------------------------------------------------


@given(st.data())
@few(12)
def test_sorting(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    options = {
        "axis": data.draw(st.integers(-len(shape), len(shape) - 1)),
        "descending": data.draw(st.booleans()),
    }
    dtype = data.draw(st.sampled_from(["int8", "uint32", "int64", "float32"]))
    x, y = both(numbers(shape, dtype, 9))
    assert_same(vnp.sort(x, **options), strict.sort(y, **options), (shape, dtype, options))
    assert_same(vnp.argsort(x, **options), strict.argsort(y, **options), (shape, dtype, options))


def test_searching() -> None:
    x, y = both(np.sort(numbers((9,), "float32", 1)))
    v, w = both(numbers((2, 5), "float32", 2))
    for side in ("left", "right"):
        assert_same(vnp.searchsorted(x, v, side=side), strict.searchsorted(y, w, side=side), side)
    assert_same(vnp.nonzero(v), strict.nonzero(w))
    i, j = both(np.array([1, 0, 1]))
    assert_same(vnp.take(v, i, axis=0), strict.take(w, j, axis=0))
    p, q = vnp.argsort(v, axis=1), strict.argsort(w, axis=1)
    assert_same(vnp.take_along_axis(v, p, axis=1), strict.take_along_axis(w, q, axis=1))


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_sets(dtype: str) -> None:
    x, y = both(numbers((3, 5), dtype, 3))
    assert_same(vnp.unique_values(x), strict.unique_values(y))
    ours, theirs = vnp.unique_all(x), strict.unique_all(y)
    assert ours._fields == theirs._fields
    assert_same(ours, theirs)
    assert vnp.unique_counts(x)._fields == ("values", "counts")
    assert_same(vnp.unique_counts(x), strict.unique_counts(y))
    assert vnp.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert_same(vnp.unique_inverse(x), strict.unique_inverse(y))


# ---- linear algebra ------------------------------------------------------------------------------


@given(st.data())
@few(15)
def test_products(data: st.DataObject) -> None:
    side = st.integers(1, 4)
    m, k, n = data.draw(side), data.draw(side), data.draw(side)
    batches = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3)).input_shapes
    dtype = data.draw(st.sampled_from(["int32", "float32", "complex64"]))
    x, y = both(numbers((*batches[0], m, k), dtype, 0))
    v, w = both(numbers((*batches[1], k, n), dtype, 1))
    assert_same(vnp.matmul(x, v), strict.matmul(y, w), dtype, digits=4)
    assert_same(x @ v[..., 0] if not batches[1] else x @ v, y @ w[..., 0] if not batches[1] else y @ w, dtype)
    flat, rest = both(numbers((k, 3), dtype, 2))
    assert_same(vnp.tensordot(x, flat, axes=1), strict.tensordot(y, rest, axes=1), dtype, digits=4)
    one, two = both(numbers((*batches[0], m, k), dtype, 3))
    assert_same(vnp.vecdot(x, one), strict.vecdot(y, two), dtype, digits=4)


def test_other_products_and_parts() -> None:
    (x, y), (v, w) = both(numbers((2, 3, 3), "float32", 0)), both(numbers((3,), "float32", 1))
    ours, theirs = vnp.linalg, strict.linalg
    assert_same(ours.outer(v, v), theirs.outer(w, w))
    assert_same(ours.cross(x, x[::-1, ...]), theirs.cross(y, y[::-1, ...]), digits=4)
    for offset in (-1, 0, 2):
        assert_same(ours.diagonal(x, offset=offset), theirs.diagonal(y, offset=offset), offset)
        assert_same(ours.trace(x, offset=offset), theirs.trace(y, offset=offset), offset)
    assert_same(ours.matrix_power(x, 3), theirs.matrix_power(y, 3), digits=16)
    for order in (1, 2, math.inf, -math.inf, 0, 3):
        options = {"ord": order, "axis": 1, "keepdims": True}
        assert_same(ours.vector_norm(x, **options), theirs.vector_norm(y, **options), order, digits=4)
    for norm in ("fro", "nuc", 1, -1, 2, math.inf):
        assert_same(ours.matrix_norm(x, ord=norm), theirs.matrix_norm(y, ord=norm), norm, digits=16)


@pytest.mark.parametrize("dtype", FLOATING)
def test_factors_and_solutions(dtype: str) -> None:
    data = numbers((2, 4, 4), dtype, 5)
    positive = data @ np.conj(np.swapaxes(data, -1, -2)) + 3 * np.eye(4, dtype=dtype)
    (x, y), (p, q) = both(data + 9 * np.eye(4, dtype=dtype)), both(positive.astype(dtype))
    ours, theirs = vnp.linalg, strict.linalg
    assert_same(ours.cholesky(p), theirs.cholesky(q), digits=64)
    assert_same(ours.cholesky(p, upper=True), theirs.cholesky(q, upper=True), digits=64)
    assert_same(ours.inv(x), theirs.inv(y), digits=64)
    assert_same(ours.det(x), theirs.det(y), digits=64)
    assert_same(ours.slogdet(x), theirs.slogdet(y), digits=64)
    assert_same(ours.solve(x, p), theirs.solve(y, q), digits=64)
    assert_same(ours.solve(x, p[0, :, 0]), theirs.solve(y, q[0, :, 0]), digits=64)
    assert_same(ours.eigvalsh(p), theirs.eigvalsh(q), digits=256)
    assert_same(ours.svdvals(x), theirs.svdvals(y), digits=256)
    assert_same(ours.pinv(x), theirs.pinv(y), digits=64)
    assert_same(ours.matrix_rank(x), theirs.matrix_rank(y))
    # factors are unique up to signs only: they have to give the matrix again
    first = ours.qr(x)
    assert first._fields == ("Q", "R")
    assert_same(first.Q @ first.R, y, digits=64)
    values, vectors = ours.eigh(p)
    assert_same(vectors * values[:, None, :] @ vnp.conj(vectors.mT), q, digits=256)
    whole = ours.svd(x, full_matrices=False)
    assert whole._fields == ("U", "S", "Vh")
    assert_same(whole.U * whole.S[:, None, :] @ whole.Vh, y, digits=256)


# ---- Fourier transforms --------------------------------------------------------------------------


@given(st.data())
@few(15)
def test_fourier_transforms(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=7))
    names = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"]
    name = data.draw(st.sampled_from(names))
    axes = st.integers(-len(shape), len(shape) - 1)
    options: dict[str, Any] = {"norm": data.draw(st.sampled_from(["backward", "ortho", "forward"]))}
    if name.endswith("n"):
        several = st.lists(axes, unique_by=lambda axis: axis % len(shape), min_size=1).map(tuple)
        options["axes"] = data.draw(st.none() | several)
    else:
        options["axis"] = data.draw(axes)
        options["n"] = data.draw(st.none() | st.integers(2, 9))
    dtype = "float32" if name in ("rfft", "ihfft", "rfftn") else "complex64"
    x, y = both(numbers(shape, dtype, 1))
    what = (name, shape, options)
    ours, theirs = getattr(vnp.fft, name)(x, **options), getattr(strict.fft, name)(y, **options)
    assert_same(ours, theirs, what, digits=16)


# ---- what the tests above do not draw ----------------------------------------------------------------


# Arrays: x of three axes, y broadcasts to it, i and j are integers, p is positive, m square, t a mask.
CALLS = """
# numbers in place of arrays
xp.add(x, 2); xp.subtract(2, x); xp.multiply(x, 0.5); xp.divide(1.0, p); xp.pow(p, 2.0)
xp.maximum(x, 0.0); xp.minimum(0.25, x); xp.atan2(x, 1.0); xp.copysign(2.0, x); xp.hypot(3.0, x)
xp.logaddexp(x, 0.0); xp.nextafter(x, 9.0); xp.remainder(x, 1.5); xp.floor_divide(x, 0.75)
xp.less(x, 1.0); xp.greater_equal(0.0, x); xp.equal(x, 0.25); xp.not_equal(1.0, x)
xp.bitwise_and(i, 6); xp.bitwise_or(1, i); xp.bitwise_xor(i, -1); xp.bitwise_left_shift(j, 3)
xp.bitwise_right_shift(i, 1); xp.logical_and(t, True); xp.logical_or(False, t)
xp.logical_xor(t, True); xp.where(t, x, 0.5); xp.where(t, 1, i); xp.clip(x, 0.5, None)
xp.clip(i, None, 2); xp.clip(i, j - 9, 9); 2 - x; 1.0 / p; 2.0 ** x; 7 // j; 7 % j; 5 & i; 5 | i
5 ^ i; 1 << j; 64 >> j; 0.25 < x
# operators that write
in_place(x, '+=', y); in_place(x, '-=', 1); in_place(x, '*=', x); in_place(x, '/=', p)
in_place(x, '//=', p); in_place(p, '%=', 0.75); in_place(p, '**=', 2.0); in_place(i, '&=', 5)
in_place(i, '|=', j); in_place(i, '^=', 3); in_place(i, '<<=', 2); in_place(i, '>>=', j)
in_place(m, '@=', m + 1)
# element-wise functions near their edges
xp.acosh(p + 1); xp.log1p(p); xp.expm1(x / 64); xp.sinh(x); xp.round(x * 2); xp.signbit(-x)
xp.conj(c); xp.real(c * c); xp.imag(c / (c + 9)); xp.abs(c); xp.sign(c); xp.sqrt(c); xp.exp(c)
xp.isfinite(x / 0.0); xp.isnan(x / 0.0); xp.isinf(x / 0.0); xp.reciprocal(c + 9); xp.square(c)
# shapes
xp.broadcast_arrays(x, y); xp.broadcast_arrays(y, t)[0] * 2; xp.expand_dims(x, axis=(0, -1))
xp.expand_dims(x, axis=(2, 0)); xp.permute_dims(x, (-1, 0, -2)); xp.squeeze(x[:, :1, :1], axis=(1, 2))
xp.roll(x, (1, -2), axis=(0, 2)); xp.roll(x, 3, axis=(0, 1)); xp.flip(x, axis=(0, -1)); xp.flip(x)
xp.moveaxis(x, (0, 1), (-1, 0)); xp.repeat(x, r, axis=2); xp.repeat(i, 2); xp.unstack(x, axis=-1)
xp.concat([x, y * x[:1, ...]], axis=0); xp.stack([t, ~t], axis=-1); xp.reshape(x, (4, -1), copy=True)
xp.tile(y, (2, 1, 3)); xp.tril(x, k=1); xp.triu(i, k=-1); xp.broadcast_to(y, (2, 2, 3, 4))
xp.empty_like(x, dtype=xp.int16) * 0; xp.empty((2, 0)) + 1; xp.asarray(x, copy=True); m.T
xp.broadcast_shapes((2, 1), (3,), ()); xp.broadcast_shapes(); xp.linspace(0, 1, 5, endpoint=False)
xp.arange(5, 0, -2); xp.arange(0.0, 1.0, 0.25); xp.eye(2, 3, k=-1); xp.full(3, True)
xp.full_like(i, 2)
# reductions, running results, differences
xp.sum(j, axis=1); xp.sum(i, dtype=xp.int16); xp.prod(j, axis=(0, 2)); xp.mean(c, axis=-1)
xp.count_nonzero(x, axis=(0, 1), keepdims=True); xp.var(x, axis=1, correction=1); xp.all(t, axis=())
xp.argmin(x, axis=-1, keepdims=True); xp.max(e, axis=1); xp.sum(e, axis=(0, 1)); xp.any(e, axis=0)
xp.diff(x, n=2); xp.diff(x, axis=0, prepend=y1[None, ...] * x[:1, ...]); xp.diff(i, append=i[..., :2])
xp.cumulative_sum(i, axis=1, dtype=xp.int16); xp.cumulative_prod(p, axis=0, include_initial=True)
# searches and sets
xp.isin(i, 3); xp.isin(i, j); xp.isin(2, j); xp.isin(i, e); xp.searchsorted(s, 1)
xp.searchsorted(s, 0.25, side='right')
xp.searchsorted(s[::-1], x, sorter=xp.asarray([4, 3, 2, 1, 0])); xp.take(x, r, axis=1)
xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0); xp.unique_counts(t); xp.sort(p, axis=0)
xp.argsort(i, axis=1, descending=True); xp.nonzero(i); xp.argmax(j, axis=1)
# indices
x[t]; x[1, r, r]; x[xp.asarray([1, -2]), 1, xp.asarray([0, 3])]; x[0, ..., None]; x[xp.asarray(True)]
x[1:0:-1, ::2, -1]; x[t & (x > 0)]; written(x, t, 5.0); written(x, (slice(1), ...), y1)
written(i, (0, 1, ...), j[0, 1, ...])
# linear algebra
xp.linalg.eigvals(m + 0 * c[0, :, :3]) * 0; xp.linalg.eigvals(m) * 0; xp.vecdot(x, p); x @ y1
y1 @ x.mT; xp.tensordot(x, x, axes=((0, 2), (0, 2))); xp.linalg.vecdot(c, c, axis=-3)
xp.matrix_transpose(x); xp.linalg.matrix_power(p[0, :, :3], 3); xp.linalg.cross(x[..., :3], y1[:3])
xp.linalg.matmul(i, r4); xp.linalg.trace(i, offset=-1, dtype=xp.int16)
xp.linalg.outer(y1, c[0, 0, :]); xp.linalg.matrix_rank(m)
"""


def in_place(x: Any, operator: str, value: Any) -> Any:
    names = {"x": x + 0, "value": value}
    exec(f"x {operator} value", names)
    return names["x"]


def written(x: Any, index: Any, value: Any) -> Any:
    x = x + 0
    x[index] = value
    return x


def test_calls_that_the_other_tests_do_not_draw() -> None:
    shape = (2, 3, 4)
    p = abs(numbers(shape, "float32", 5)) + np.float32(0.25)
    data = {"x": numbers(shape, "float32", 0), "y": numbers((3, 1), "float32", 1), "p": p}
    data |= {
        "t": numbers(shape, "bool", 2),
        "i": numbers(shape, "int32", 3),
        "c": numbers(shape, "complex64", 6),
    }
    data |= {
        "j": numbers(shape, "int32", 4, least=1),
        "r": np.array([1, 0, 2, 1]),
        "r4": numbers((4, 2), "int32", 9),
    }
    data |= {
        "m": numbers((3, 3), "float32", 7),
        "y1": numbers((4,), "float32", 8),
        "e": np.zeros((0, 2), np.int32),
    }
    data |= {"s": np.array([-2, 0, 0.25, 1, 3], np.float32)}
    lines = [line for line in CALLS.splitlines() if not line.startswith("#")]
    calls = [call for line in lines for call in line.split("; ") if call]
    assert len(calls) > 140
    wrong = []
    with np.errstate(all="ignore"):
        for call in calls:
            found = []
            for namespace, convert in ((vnp, vnp.asarray), (strict, strict.asarray)):
                names = {name: convert(each) for name, each in data.items()}
                found.append(eval(call, {"xp": namespace, "in_place": in_place, "written": written, **names}))
            try:
                if call.startswith("xp.broadcast_shapes"):
                    assert found[0] == found[1]
                else:
                    assert_same(*found, call, digits=4)
            except AssertionError as error:
                wrong.append(f"{call}: {error}")
    assert wrong == []


# ---- exchange ------------------------------------------------------------------------------------


def test_dlpack_both_ways() -> None:
    data = numbers((2, 3), "float32", 0)
    x, y = both(data)
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), data)
    assert_same(vnp.from_dlpack(y), y)


def test_numbers_of_arrays_without_axes() -> None:
    for convert, value in ((bool, True), (int, 7), (float, 0.5), (complex, 1 + 2j)):
        x, y = both(np.asarray(value, "complex64" if convert is complex else None))
        assert convert(x) == convert(y) == value
        if not HAS_FLOAT64:
            break
    assert [10, 11, 12][vnp.asarray(2)] == 12
    with pytest.raises(TypeError):
        [10][vnp.asarray(0.0)]  # type: ignore[call-overload]
