"""Element-wise functions of booleans, integers and real numbers, compared with NumPy's."""

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import run_texts
from vkdispatch.base.context import get_context

KINDS = [np.dtype(code) for code in "?bhilBHILefdFD"]
ARITHMETIC = ("add", "subtract", "multiply", "floor_divide", "remainder", "fmod")
ORDER = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm")
ROUNDING = ("floor", "ceil", "trunc", "rint", "sign", "absolute", "negative", "positive", "square")
FUNCTIONS = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees"),
    *("radians", "reciprocal"),
)


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    get_context()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        yield


def _values(kind: Any) -> "np.ndarray[Any, Any]":
    """Return the numbers of a dtype at which something may go wrong."""
    kind = np.dtype(kind)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low = [-1, -2, -3, -7, -100, info.min, info.min + 1] if kind.kind == "i" else [info.max // 2 + 1]
        return np.array([0, 1, 2, 3, 5, 7, 8, 31, 33, 63, 64, 100, info.max, info.max - 1, *low], kind)
    limits = np.finfo(kind)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny, limits.eps]
    common = [1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 7.25, -7.25, 0.1, -100.3, 1e4, 3.5, -3.5]
    numbers = np.array(special + common, limits.dtype)
    return numbers + 1j * numbers[::-1] if kind.kind == "c" else numbers


def _assert_same(found: Any, wanted: Any, what: str, digits: float = 0) -> None:
    """Require equal dtypes, and equal elements but for `digits` units in the last place: zeros with signs."""
    result = found.numpy()
    wanted = np.asarray(wanted)
    assert result.dtype == wanted.dtype, what
    assert result.shape == wanted.shape, what
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(result, wanted, what)
        return
    for part in (np.real, np.imag) if wanted.dtype.kind == "c" else (np.asarray,):
        a, b = part(result), part(wanted)
        tiny = (a == 0) & (np.abs(b) < np.finfo(a.dtype).tiny)  # devices may take subnormal numbers for zeros
        b = np.where(tiny, np.copysign(a, b), b)
        np.testing.assert_allclose(a, b, rtol=digits * float(np.finfo(a.dtype).eps), atol=0, err_msg=what)
        zeros = (b == 0) & (a == 0)
        np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]), what)


def _outcome(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or the class of the error it raises."""
    try:
        return function()
    except (TypeError, ValueError, OverflowError) as error:
        return next(kind for kind in (TypeError, OverflowError, ValueError) if isinstance(error, kind))


def _compare(what: str, ours: Callable[[], Any], theirs: Callable[[], Any], digits: float = 0) -> None:
    """Require the same values or the same class of error."""
    wanted, found = _outcome(theirs), _outcome(ours)
    if isinstance(wanted, type) or isinstance(found, type):
        assert wanted is found, f"{what}: {found!r} instead of {wanted!r}"
        return
    _assert_same(found, wanted, what, digits)


# ---- functions and dtypes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first, second", [("?", "?"), ("b", "B"), ("l", "i"), ("L", "L"), ("e", "b"), ("f", "f"), ("d", "l")]
)
def test_pairs_of_dtypes(first: str, second: str) -> None:
    a, b = _values(first)[:, None], _values(second)
    x, y = vnp.asarray(a), vnp.asarray(b)
    for name in (*ARITHMETIC, "divide", *ORDER, *LOGIC, *BITS, "hypot", "arctan2", "copysign"):
        # quotients of float32 are to 2.5 units on some devices
        digits = 4 if name in ("hypot", "arctan2", "divide") else 0
        ours, theirs = getattr(vnp, name), getattr(np, name)
        _compare(f"{name} {first}{second}", partial(ours, x, y), partial(theirs, a, b), digits)


@pytest.mark.parametrize("kind", ["?", "b", "L", "l", "e", "f", "d"])
def test_functions_of_one_operand(kind: str) -> None:
    a = _values(kind)
    x = vnp.asarray(a)
    for name in (*ROUNDING, *FUNCTIONS, "isnan", "isinf", "isfinite", "signbit", "logical_not", "invert"):
        if name == "reciprocal" and a.dtype.kind in "iu":
            continue  # of 0 NumPy gives what the processor does
        digits = 4 if name in FUNCTIONS else 0
        ours, theirs = getattr(vnp, name), getattr(np, name)
        _compare(f"{name} {kind}", partial(ours, x), partial(theirs, a), digits)
    if a.dtype.kind != "f":
        _compare("bitwise_count", partial(vnp.bitwise_count, x), partial(np.bitwise_count, a))


def test_larger_and_smaller_with_nan_and_zeros() -> None:
    a = _values("f")
    a = a[a != 0]
    x = vnp.asarray(a)
    for name in ("maximum", "minimum", "fmax", "fmin"):
        _assert_same(getattr(vnp, name)(x[:, None], x), getattr(np, name)(a[:, None], a), name)
    zeros = vnp.asarray([0.0, -0.0])
    assert not np.signbit(vnp.maximum(zeros[:, None], zeros).numpy()).any(axis=1)[0]
    assert np.signbit(vnp.minimum(zeros[:, None], zeros).numpy()).all(axis=1)[1]


def test_next_numbers() -> None:
    for kind in "efd":
        a = _values(kind)
        x = vnp.asarray(a)
        wanted = np.nextafter(a[:, None], a)
        same = (a[:, None] == 0) & (a == 0)
        found = vnp.nextafter(x[:, None], x)
        _assert_same(vnp.where(vnp.asarray(same), 1, found), np.where(same, 1, wanted), kind)


def _rounded_values(kind: Any) -> "np.ndarray[Any, Any]":
    """Numbers near powers of two, with bits where floats of fewer digits round, once or twice."""
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "fc":
        steps = [2.0**-a + 2.0**-b for a in (10, 11, 24) for b in (12, 24, 25, 50)]
        scales = (0.01, 1, 99.5, -0.3, -7)
        return np.array([(1 + step) * scale for step in steps for scale in scales]).astype(kind)
    limits = np.iinfo(kind)
    parts = [(k, k - cut) for k in range(6, 64) for cut in (11, 12, 24, 53) if k > cut]
    found = [sign * (2**k + 2**low + d) for k, low in parts for d in (-1, 0, 1) for sign in (-1, 1)]
    return np.array([x for x in [0, 1, 77, *found] if limits.min <= x <= limits.max], kind)


def _is_defined(values: "np.ndarray[Any, Any]", kind: Any) -> "np.ndarray[Any, Any]":
    """Whether the numbers go into a dtype: C leaves open what integers become of others."""
    if kind.kind not in "iu" or values.dtype.kind not in "fc":
        return np.full(values.shape, True)
    limits, wide = np.iinfo(kind), values.real.astype(np.float64)
    return (wide > max(limits.min, -(2**31))) & (wide < limits.max * (1 - 2.0**-11))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.char)
def test_fused_conversions_round(kind: Any) -> None:
    random = np.random.default_rng(kind.num)
    host = _rounded_values(kind)
    array = vnp.asarray(host)
    for middle in KINDS:
        is_back = (array.astype(middle).astype(kind) == array).numpy()
        kept = _is_defined(host.astype(middle), kind) & _is_defined(host, middle)
        same = host.astype(middle).astype(kind) == host
        np.testing.assert_array_equal(is_back[kept], same[kept], f"{kind} {middle}")
        chain = [middle, *(KINDS[i] for i in random.integers(0, len(KINDS), 2))]
        wanted, found, defined = host, array, np.full(host.shape, True)
        for target in chain:
            defined &= _is_defined(wanted, target)
            wanted, found = wanted.astype(target), found.astype(target)
        np.testing.assert_array_equal(found.numpy()[defined], wanted[defined], f"{kind} {chain}")


@pytest.mark.parametrize("source", KINDS, ids=str)
def test_casts(source: Any) -> None:
    for target in KINDS:
        a = _values(source)
        if source.kind in "fc" and target.kind in "iu":
            a = np.array([0, 1, -0.9, 2.5, 100.9] + [-1, -100.7] * (target.kind == "i"), source)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found, wanted = vnp.asarray(a).astype(target), a.astype(target)
        _assert_same(found, wanted, f"{source} to {target}")
        # both warn where imaginary parts are lost, of the line above
        lost = source.kind == "c" and target.kind not in "bc"
        assert [(each.category, each.filename) for each in caught] == [
            (np.exceptions.ComplexWarning, __file__)
        ] * (2 * lost)


# ---- numbers -------------------------------------------------------------------------------------

NUMBERS = (1, -1, 127, 300, -129, 2**31, 2**63, -(2**63) - 1, 2**64, 10**30, True, 2.5, -0.0, np.inf, 1j)


@pytest.mark.parametrize("kind", ["b", "L", "l", "e", "f", "D"])
def test_python_numbers(kind: str) -> None:
    a = _values(kind)
    x = vnp.asarray(a)
    operations = (
        operator.add,
        operator.mul,
        operator.lt,
        operator.eq,
        operator.ne,
        operator.ge,
        operator.and_,
    )
    for number, operation in itertools.product(NUMBERS, operations):
        what = f"{operation.__name__} {kind} {number!r}"
        _compare(what, partial(operation, x, number), partial(operation, a, number))
        _compare("r" + what, partial(operation, number, x), partial(operation, number, a))
    for name in ORDER:
        ours, theirs = getattr(vnp, name), getattr(np, name)
        _compare(name, partial(ours, -(2**70), x), partial(theirs, -(2**70), a))


def test_scalars_of_numpy() -> None:
    a = _values("f")
    x = vnp.asarray(a)
    for number in (
        np.float64(0.1),
        np.float16(0.1),
        np.int8(3),
        np.uint64(2**63),
        np.complex64(1),
        np.bool_(True),
    ):
        _assert_same(x + number, a + number, repr(number))
    with pytest.raises(TypeError, match="float128"):
        x + np.longdouble(1)


def test_powers() -> None:
    for kind in "befd":
        a = _values(kind)
        x = vnp.asarray(a)
        for number in (2, 0, 3, 1):
            _assert_same(x**number, a**number, f"{kind} {number}", 4)
        _assert_same(x**2, a**2, kind)
    for kind in "efd":
        a = _values(kind)
        x = vnp.asarray(a)
        for number in (0.5, -1):
            _assert_same(x**number, a**number, f"{kind} {number}", 4)
            name = "sqrt" if number == 0.5 else "reciprocal"
            _assert_same(x**number, getattr(vnp, name)(x).numpy(), name)
        _assert_same(vnp.power(x[:, None], x), np.power(a[:, None], a), kind, 4)
        x **= 0.5
        _assert_same(x, a**0.5, kind, 4)
    whole = vnp.asarray([3, -1, 1, 0])
    for call in (
        partial(operator.pow, whole, -1),
        partial(vnp.power, whole, -2),
        partial(operator.pow, vnp.asarray([True]), -1),
    ):
        with pytest.raises(ValueError, match="negative integer powers"):
            call()
    _assert_same(vnp.float_power(whole[:3], -2), np.float_power([3, -1, 1], -2), "float_power")
    with pytest.raises(OverflowError):
        vnp.asarray([1], vnp.int8) ** 300


# ---- where results go ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["?", "B", "i", "f", "F"])
def test_in_place(kind: str) -> None:
    a = _values(kind)
    operations = (operator.iadd, operator.imul, operator.itruediv, operator.ifloordiv, operator.ior)
    for operand in (2, 2.5, 1j, True, 300, np.float64(0.1), _values("b")[: len(a)], _values("d")[: len(a)]):
        other = np.resize(operand, a.shape) if isinstance(operand, np.ndarray) else operand
        for operation in operations:
            x, y = vnp.asarray(a).copy(), a.copy()
            right = vnp.asarray(other) if isinstance(other, np.ndarray) else other
            what = f"{operation.__name__} {kind} {operand!r}"
            # NumPy multiplies complex numbers with one rounding where the processor does
            _compare(what, partial(operation, x, right), partial(operation, y, other), 2)


def test_out_where_and_dtype() -> None:
    a = np.arange(8, dtype=np.int16)
    x = vnp.asarray(a)
    for target in KINDS:
        out, expected = vnp.ones(8, target), np.ones(8, target)
        _compare(str(target), partial(vnp.add, x, x, out=out), partial(np.add, a, a, out=expected))
        mask = a % 2 == 0
        masked, wanted = vnp.ones(8, target), np.ones(8, target)
        _compare(
            f"where {target}",
            partial(vnp.add, x, x, masked, where=vnp.asarray(mask)),
            partial(np.add, a, a, wanted, where=mask),
        )
        _compare(f"dtype {target}", partial(vnp.sqrt, x, dtype=target), partial(np.sqrt, a, dtype=target), 4)
        _compare(f"dtype {target}", partial(vnp.add, x, 1, dtype=target), partial(np.add, a, 1, dtype=target))
    with pytest.raises(ValueError, match="where"):
        vnp.add(x, x, where=x > 3)
    with pytest.raises(ValueError, match="shape"):
        vnp.add(x, x, out=vnp.zeros(4, vnp.int16))
    with pytest.raises(ValueError, match="broadcast"):
        vnp.add(x, vnp.zeros(3))
    with pytest.raises(TypeError, match="NumPy array"):
        vnp.add(x, a)
    whole = vnp.zeros(8, vnp.int16)
    vnp.multiply(x, 1.5, out=whole, casting="unsafe")
    _assert_same(whole, (a * 1.5).astype(np.int16), "unsafe")


@pytest.mark.parametrize("kind", ["B", "h", "e", "f", "d", "F"])
def test_rounding_to_decimals(kind: str) -> None:
    a = _values(kind) if kind in "efdF" else np.array([0, 4, 5, 15, 25, 35, 99, 149, 150, 151, 250], kind)
    if kind in "efdF":  # a quotient one unit below NumPy's does not overflow when it is multiplied again
        a = a[~np.isfinite(a) | (np.abs(a) < np.finfo(kind).max / 2)]
    for places in (0, 2, -1, -2, -9):
        if kind == "e" and places == -9:
            continue  # 1e9 is no float16
        _assert_same(vnp.round(vnp.asarray(a), places), np.round(a, places), f"{kind} {places}", 4)


def test_booleans_have_no_decimals() -> None:
    run_texts(
        """
        r = x.round(1)
        r = m.round(x, -1)
        r = m.around(x, decimals=2)
        r = x.round(), m.round(x, 0)
        r = m.round(x, 1, out=y)
        """,
        np.array([True, False]),
        np.zeros(2),
    )


def test_limits_of_intervals() -> None:
    for kind in "bBlefd":
        a = _values(kind)
        x = vnp.asarray(a)
        for low, high in ((0.5, 2.5), (1, 5), (-3, None), (None, 4), (-300, 2**70), (5, 1), (np.nan, 2.0)):
            _compare(f"{kind} {low} {high}", partial(vnp.clip, x, low, high), partial(np.clip, a, low, high))
        other = np.resize(_values("f"), a.shape)
        _assert_same(vnp.clip(x, vnp.asarray(other), None), np.clip(a, other, None), kind)


_ZEROS: dict[str, Callable[..., Any]] = {
    "i - i": lambda m, x, i: i - i,
    "x > x": lambda m, x, i: x.real > x.real,
    "isnan(i)": lambda m, x, i: m.isnan(i),
    "(i - i) of int8": lambda m, x, i: (i - i).astype(np.int8),
    "i ^ i as a float": lambda m, x, i: (i ^ i).astype(x.real.dtype),
    "imag": lambda m, x, i: x.real.imag,
}


@pytest.mark.parametrize("kind", "efdFD")
@pytest.mark.parametrize("name", _ZEROS)
def test_zeros_that_compilers_can_compute(name: str, kind: str) -> None:
    x = np.array([1, np.nan, np.inf, -np.inf, 0, -0.0, -2], kind)
    i = np.arange(x.size, dtype=np.int16)
    ours, theirs = (
        (vnp.asarray(x), _ZEROS[name](vnp, vnp.asarray(x), vnp.asarray(i))),
        (x, _ZEROS[name](np, x, i)),
    )
    # infinite quotients of complex numbers differ
    functions = ["multiply", "add", "subtract", *([] if kind in "FD" else ["divide", "floor_divide"])]
    for function, order in itertools.product(functions, (slice(None), slice(None, None, -1))):
        found, wanted = getattr(vnp, function)(*ours[order]), getattr(np, function)(*theirs[order])
        _assert_same(found, wanted, f"{function} {order}")
    if kind not in "FD":
        _assert_same((ours[0] * ours[1]).sum(), (theirs[0] * theirs[1]).sum(), "sum")


def test_closeness() -> None:
    for first, second in (("d", "d"), ("b", "B"), ("l", "l"), ("f", "i"), ("?", "f")):
        a, b = _values(first)[:, None], _values(second)
        for equal in (False, True):
            found = vnp.isclose(vnp.asarray(a), vnp.asarray(b), equal_nan=equal)
            _assert_same(found, np.isclose(a, b, equal_nan=equal), f"{first} {second}")
    infinities = np.array([np.inf, -np.inf, np.nan, 1.0])
    _assert_same(vnp.isposinf(vnp.asarray(infinities)), np.isposinf(infinities), "isposinf")
    _assert_same(vnp.isneginf(vnp.asarray(infinities)), np.isneginf(infinities), "isneginf")
    x = vnp.asarray([1.0, 2.0])
    _assert_same(vnp.isclose(x, [1.05, 2.05], rtol=0, atol=vnp.asarray([0.1, 0.01])), [True, False], "atol")


def test_numbers_for_nan_and_infinities() -> None:
    for kind in "iefd":
        a = _values(kind)
        _assert_same(vnp.nan_to_num(vnp.asarray(a)), np.nan_to_num(a), kind)
        _assert_same(vnp.nan_to_num(vnp.asarray(a), nan=7, posinf=3), np.nan_to_num(a, nan=7, posinf=3), kind)
    x = vnp.asarray([np.nan, 1.0])
    assert vnp.nan_to_num(x, copy=False) is x
    _assert_same(x, [0.0, 1.0], "in place")


def test_limits_of_dtypes() -> None:
    for kind in (np.float16, np.float32, np.complex64, np.float64, np.complex128):
        found, wanted = vnp.finfo(vnp.zeros(1, kind)), np.finfo(kind)
        assert type(found.eps) is float
        assert (found.bits, found.eps, found.max, found.dtype) == (
            wanted.bits,
            wanted.eps,
            wanted.max,
            wanted.dtype,
        )
        assert found.nmant == wanted.nmant
    assert vnp.iinfo(vnp.int8).max == 127
    with pytest.raises(ValueError, match=r"inexact|finfo"):
        vnp.finfo(np.int8)


# ---- bits do not depend on what runs together ----------------------------------------------------


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "complex64", "complex128"])
def test_bits_do_not_depend_on_fusion(kind: str) -> None:
    rng = np.random.default_rng(1)
    arrays = rng.normal(size=(3, 3001)) * 10 ** rng.uniform(-2, 1, (3, 3001))
    if kind.startswith("c"):
        arrays = arrays + 1j * rng.normal(size=arrays.shape)
    a, b, c = arrays.astype(kind)
    x, y, z = (vnp.asarray(each) for each in (a, b, c))

    def apart(value: Any) -> Any:
        value.numpy()  # computes it
        return value

    if not kind.startswith("c"):
        np.testing.assert_array_equal((x * y + z).numpy(), a * b + c)
        np.testing.assert_array_equal((x * y - z * x).numpy(), a * b - c * a)
    product = apart(apart(x * y) + z)
    for name in ("exp", "sin", "sqrt", "tanh", "arctan", "log1p", "absolute", "square", "reciprocal"):
        function = getattr(vnp, name)
        fused = (function(x * y + z) * y + x).numpy()
        np.testing.assert_array_equal(fused, (apart(apart(function(product)) * y) + x).numpy(), name)
    for name in ("divide", "power", "maximum", "multiply"):
        function = getattr(vnp, name)
        fused = (function(x * y + z, z) * y - x).numpy()
        np.testing.assert_array_equal(fused, (apart(apart(function(product, z)) * y) - x).numpy(), name)
    np.testing.assert_array_equal(vnp.sum(x * y + z).numpy(), vnp.sum(product).numpy())


def test_where_of_numbers_of_two_kinds() -> None:
    mask = np.array([True, False, True])
    for x, y in ((1.5, 2j), (2j, 3), (True, 1j), (1, 2.5), (True, 3)):
        wanted = np.where(mask, x, y)
        found = vnp.where(vnp.asarray(mask), x, y)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted)
    vnp.set_default_dtype(vnp.float32)
    try:
        assert vnp.where(vnp.asarray(mask), 1.5, 2j).dtype == np.complex64
        assert vnp.where(vnp.asarray(mask), vnp.arange(3), 2j).dtype == np.complex64
    finally:
        vnp.set_default_dtype(None)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8"])
def test_integers_to_negative_powers(kind: str) -> None:
    x, y = vnp.asarray(np.array([2, 3, 1], kind)), vnp.asarray(np.array([2, -1, 0], kind))
    for call in (lambda: x**y, lambda: vnp.power(x, y), lambda: np.power(x, y + 0), lambda: 2 ** y[::-1]):
        with pytest.raises(ValueError, match=r"negative integer powers.*got -1 at"):
            call().numpy()
    assert (x ** abs(y)).tolist() == [4, 3, 1]
    assert vnp.power(x, y, where=y >= 0, out=x * 0).tolist() == [4, 0, 1]
    assert (x[:0] ** y[:0]).shape == (0,)
    assert (x.astype(np.float64) ** y).tolist() == [4, 1 / 3, 1]


def test_a_power_that_cannot_be_stored_is_a_type_error() -> None:
    run_texts(
        """
        x **= -1
        x **= m.asarray([2, -1])
        y **= np.int8(-1)
        y **= -1
        y **= m.asarray([2, -1], dtype=np.int8)
        y **= 1.5
        y **= 2; r = y
        y **= True; r = y
        """,
        np.array([True, False]),
        np.array([3, 15], np.uint8),
    )
    assert vnp.zeros(2).tolist() == [0, 0]  # no exponent is complained of later


def test_rounding_beyond_the_range_of_numbers() -> None:
    x = np.array([1.5, 5e-324])
    for digits in (308, 400, -400):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(vnp.round(vnp.asarray(x), digits).numpy(), np.round(x, digits))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_spacing_of_all_sizes(kind: type) -> None:
    limits = np.finfo(kind)
    powers = np.ldexp(kind(1), np.arange(limits.minexp - limits.nmant, limits.maxexp)).astype(kind)
    edges = [0.0, -0.0, limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan]
    x = np.concatenate([powers, np.nextafter(powers, kind(0)), np.array(edges, kind)])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(vnp.spacing(vnp.asarray(x))), np.spacing(x))


def test_power_where_the_exponent_is_not_negative() -> None:
    x = vnp.asarray(np.array([-3, 2], np.int32))
    for where in (False, vnp.asarray([False, False])):
        assert vnp.power(x, x, out=x * 0 + 5, where=where).tolist() == [5, 5]
