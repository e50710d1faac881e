"""Element-wise functions of complex numbers: C's Annex G, accuracy against mpmath, arithmetic as NumPy's."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest

import numpy as np
import vkdispatch.numpy as vnp

inf, nan, pi = math.inf, math.nan, math.pi
ONE = 1.25  # stands for positive finite numbers: sine and cosine of it are positive
TWO = 2.5  # the cosine is negative


class Either(float):
    """A number whose sign Annex G leaves open."""


E0, EINF = Either(0.0), Either(inf)

# f(x + iy) for y with a plus sign; conjugates give conjugates.
TABLES: dict[str, list[tuple[float, float, float, float]]] = {
    "exp": [
        (0.0, 0.0, 1, 0.0),
        (-0.0, 0.0, 1, 0.0),
        (ONE, inf, nan, nan),
        (ONE, nan, nan, nan),
        (inf, 0.0, inf, 0.0),
        (-inf, ONE, 0.0, 0.0),
        (-inf, TWO, -0.0, 0.0),
        (inf, ONE, inf, inf),
        (inf, TWO, -inf, inf),
        (-inf, inf, E0, E0),
        (inf, inf, EINF, nan),
        (-inf, nan, E0, E0),
        (inf, nan, EINF, nan),
        (nan, 0.0, nan, 0.0),
        (nan, ONE, nan, nan),
        (nan, nan, nan, nan),
    ],
    "expm1": [
        (-0.0, 0.0, 0.0, 0.0),
        (ONE, inf, nan, nan),
        (inf, 0.0, inf, 0.0),
        (-inf, TWO, -1, 0.0),
        (inf, TWO, -inf, inf),
        (-inf, inf, -1, E0),
        (inf, inf, EINF, nan),
        (-inf, nan, -1, E0),
        (inf, nan, EINF, nan),
        (nan, 0.0, nan, 0.0),
        (nan, ONE, nan, nan),
    ],
    "log": [
        (-0.0, 0.0, -inf, pi),
        (0.0, 0.0, -inf, 0.0),
        (ONE, inf, inf, pi / 2),
        (ONE, nan, nan, nan),
        (-inf, ONE, inf, pi),
        (inf, ONE, inf, 0.0),
        (-inf, inf, inf, 3 * pi / 4),
        (inf, inf, inf, pi / 4),
        (-inf, nan, inf, nan),
        (inf, nan, inf, nan),
        (nan, ONE, nan, nan),
        (nan, inf, inf, nan),
        (nan, nan, nan, nan),
    ],
    "sqrt": [
        (0.0, 0.0, 0.0, 0.0),
        (-0.0, 0.0, 0.0, 0.0),
        (ONE, inf, inf, inf),
        (nan, inf, inf, inf),
        (-inf, inf, inf, inf),
        (ONE, nan, nan, nan),
        (-inf, ONE, 0.0, inf),
        (inf, ONE, inf, 0.0),
        (-inf, nan, nan, EINF),
        (inf, nan, inf, nan),
        (nan, ONE, nan, nan),
        (-4.0, 0.0, 0.0, 2),
    ],
    "arccos": [
        (0.0, 0.0, pi / 2, -0.0),
        (-0.0, 0.0, pi / 2, -0.0),
        (0.0, nan, pi / 2, nan),
        (-0.0, nan, pi / 2, nan),
        (ONE, inf, pi / 2, -inf),
        (ONE, nan, nan, nan),
        (-inf, ONE, pi, -inf),
        (inf, ONE, 0.0, -inf),
        (-inf, inf, 3 * pi / 4, -inf),
        (inf, inf, pi / 4, -inf),
        (inf, nan, nan, EINF),
        (-inf, nan, nan, EINF),
        (nan, ONE, nan, nan),
        (nan, inf, nan, -inf),
        (1.0, 0.0, 0.0, -0.0),
        (-1.0, 0.0, pi, -0.0),
    ],
    "arccosh": [
        (0.0, 0.0, 0.0, pi / 2),
        (-0.0, 0.0, 0.0, pi / 2),
        (0.0, nan, nan, Either(pi / 2)),
        (ONE, inf, inf, pi / 2),
        (ONE, nan, nan, nan),
        (-inf, ONE, inf, pi),
        (inf, ONE, inf, 0.0),
        (-inf, inf, inf, 3 * pi / 4),
        (inf, inf, inf, pi / 4),
        (inf, nan, inf, nan),
        (-inf, nan, inf, nan),
        (nan, ONE, nan, nan),
        (nan, inf, inf, nan),
    ],
    "arcsinh": [
        (0.0, 0.0, 0.0, 0.0),
        (ONE, inf, inf, pi / 2),
        (ONE, nan, nan, nan),
        (inf, ONE, inf, 0.0),
        (inf, inf, inf, pi / 4),
        (inf, nan, inf, nan),
        (nan, 0.0, nan, 0.0),
        (nan, ONE, nan, nan),
        (nan, inf, EINF, nan),
        (nan, nan, nan, nan),
    ],
    "arctanh": [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, nan, 0.0, nan),
        (1.0, 0.0, inf, 0.0),
        (ONE, inf, 0.0, pi / 2),
        (ONE, nan, nan, nan),
        (inf, ONE, 0.0, pi / 2),
        (inf, inf, 0.0, pi / 2),
        (inf, nan, 0.0, nan),
        (nan, ONE, nan, nan),
        (nan, inf, E0, pi / 2),
        (nan, nan, nan, nan),
    ],
    "cosh": [
        (0.0, 0.0, 1, 0.0),
        (0.0, inf, nan, E0),
        (0.0, nan, nan, E0),
        (ONE, inf, nan, nan),
        (ONE, nan, nan, nan),
        (inf, 0.0, inf, 0.0),
        (inf, TWO, -inf, inf),
        (inf, inf, EINF, nan),
        (inf, nan, inf, nan),
        (nan, 0.0, nan, E0),
        (nan, ONE, nan, nan),
    ],
    "sinh": [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, inf, E0, nan),
        (0.0, nan, E0, nan),
        (ONE, inf, nan, nan),
        (ONE, nan, nan, nan),
        (inf, 0.0, inf, 0.0),
        (inf, TWO, -inf, inf),
        (inf, inf, EINF, nan),
        (inf, nan, EINF, nan),
        (nan, 0.0, nan, 0.0),
        (nan, ONE, nan, nan),
    ],
    "tanh": [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, inf, 0.0, nan),
        (0.0, nan, 0.0, nan),
        (ONE, inf, nan, nan),
        (30.0, nan, nan, nan),
        (inf, ONE, 1, 0.0),
        (inf, TWO, 1, -0.0),
        (inf, inf, 1, E0),
        (inf, nan, 1, E0),
        (nan, 0.0, nan, 0.0),
        (nan, ONE, nan, nan),
    ],
}
ODD = ("arcsinh", "arctanh", "sinh", "tanh")
# f(x + iy) = swap(g(swap(x + iy))), where swapping exchanges the parts
TURNED = {"arcsin": "arcsinh", "arctan": "arctanh", "sin": "sinh", "tan": "tanh"}


def _pair(kind: str, parts: list[tuple[float, float]]) -> "np.ndarray[Any, Any]":
    made = np.empty(len(parts), kind)
    made.real, made.imag = np.array(parts).T
    return made


def _same(found: float, wanted: float, digits: float) -> bool:
    if isinstance(wanted, Either):
        found, wanted = abs(found), abs(wanted)
    if math.isnan(wanted) or math.isnan(found):
        return math.isnan(wanted) and math.isnan(found)
    signed = math.copysign(1, found) == math.copysign(1, wanted)
    return signed and (found == wanted or abs(found - wanted) <= digits * abs(wanted))


def _flip(number: float) -> float:
    return Either(-number) if isinstance(number, Either) else -number


def _check_rows(name: str, kind: str, rows: list[tuple[float, float, float, float]]) -> None:
    values = _pair(kind, [row[:2] for row in rows])
    found = getattr(vnp, name)(vnp.asarray(values)).numpy()
    digits = 4 * float(np.finfo(kind).eps)
    for z, result, (_, _, real, imag) in zip(values, found, rows, strict=True):
        assert _same(float(result.real), real, digits), (name, z, result)
        assert _same(float(result.imag), imag, digits), (name, z, result)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_special_values_are_those_of_annex_g(kind: str) -> None:
    for name, table in TABLES.items():
        rows = table + [(x, _flip(y), real, _flip(imag)) for x, y, real, imag in table]
        if name in ODD:
            rows += [(_flip(x), _flip(y), _flip(real), _flip(imag)) for x, y, real, imag in rows]
        _check_rows(name, kind, rows)
        turned = next((other for other, own in TURNED.items() if own == name), None)
        if turned:
            _check_rows(turned, kind, [(y, x, imag, real) for x, y, real, imag in rows])


TRUTH: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "expm1": lambda z: mpmath.exp(z) - 1,
    "log": mpmath.log,
    "log1p": lambda z: mpmath.log(1 + z),
    "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10),
    "sqrt": mpmath.sqrt,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "sign": lambda z: z / abs(z),
    "absolute": abs,
}


def _points(kind: str) -> "np.ndarray[Any, Any]":
    """Numbers of all magnitudes, near branch points, on the unit circle, near zeros and poles."""
    rng = np.random.default_rng(5)
    limit = 37 if kind == "complex64" else 306
    n = 8

    def spread(low: float, high: float) -> "np.ndarray[Any, Any]":
        return rng.choice([-1, 1], n) * 10.0 ** rng.uniform(low, high, n)

    angle, turn = rng.uniform(-pi, pi, n), rng.integers(-5, 6, n) * pi / 2
    overflow = math.log(float(np.finfo(kind).max)) + rng.uniform(-2, 1, n)
    pairs = [
        (spread(-limit, limit), spread(-limit, limit)),
        (spread(-6, 3), spread(-6, 3)),
        (rng.normal(size=n) * 30, rng.normal(size=n) * 30),
        (np.cos(angle), np.sin(angle)),
        (spread(-20, 1), turn),
        (turn, spread(-20, 1)),
        (overflow, angle),
        (angle, overflow),
        (float(np.finfo(kind).max) * rng.uniform(0.3, 1, n), spread(limit, limit + 1)),
    ]
    for corner in (1, -1, 1j, -1j):
        near, far = spread(-16, 0), spread(-30, 0)
        pairs += [(corner.real + near, corner.imag + far), (corner.real + far, corner.imag + near)]
    return _pair(kind, [(a, b) for x, y in pairs for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_functions_are_within_a_few_units_of_the_true_value(kind: str) -> None:
    points = _points(kind)
    info = np.finfo(kind)
    for name, truth in TRUTH.items():
        found = getattr(vnp, name)(vnp.asarray(points)).numpy()
        checked = 0
        for z, result in zip(points, found, strict=True):
            parts = (float(z.real), float(z.imag))
            # a complex function of huge numbers needs all digits of the number; nobody has them on cuts
            if (
                name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1")
                and max(map(abs, parts)) > 800
            ):
                continue
            if 0.0 in parts:
                continue
            with mpmath.workprec(2200 if kind == "complex128" else 400):
                true = mpmath.mpc(truth(mpmath.mpc(*parts)))
            if max(abs(true.real), abs(true.imag)) > float(info.max):
                continue
            error = abs(mpmath.mpc(complex(result)) - true)
            tiny = float(info.smallest_normal)  # devices may take smaller numbers for zeros
            limit = tiny if abs(true) < 4 * tiny else 4 * float(info.eps) * abs(true)
            assert error <= limit, (name, z, result, complex(true))
            checked += 1
        assert checked > 40, name


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_zeros_and_infinities_of_arithmetic_are_numpys(kind: str) -> None:
    parts = (0.0, -0.0, 1.0, -2.5, inf, -inf, nan)
    z = _pair(kind, [(a, b) for a in parts for b in parts])
    real = np.array([0.0, -0.0, 1.0, -3.0, inf], kind.replace("complex64", "f4").replace("complex128", "f8"))
    whole, flags = np.array([0, 1, -2], np.int8), np.array([True, False])
    x = vnp.asarray(z)
    with np.errstate(all="ignore"):
        for other in (real, whole, flags, z):
            y = vnp.asarray(other)
            for name in ("add", "subtract", "multiply", "divide"):
                wanted = getattr(np, name)(z[:, None], other)
                found = getattr(vnp, name)(x[:, None], y).numpy()
                assert found.dtype == wanted.dtype
                digits = 8 * float(np.finfo(kind).eps) if name == "divide" else 0
                for part in (np.real, np.imag):
                    np.testing.assert_allclose(part(found), part(wanted), rtol=digits, atol=0, err_msg=name)
                    np.testing.assert_array_equal(
                        np.signbit(part(found))[~np.isnan(part(wanted))],
                        np.signbit(part(wanted))[~np.isnan(part(wanted))],
                    )
        for name in ("reciprocal", "sign"):
            found, wanted = getattr(vnp, name)(x).numpy(), getattr(np, name)(z)
            for part in (np.real, np.imag):
                np.testing.assert_allclose(part(found), part(wanted), rtol=8 * float(np.finfo(kind).eps))
        for name in ("conjugate", "isnan", "isinf", "isfinite", "logical_not"):
            np.testing.assert_array_equal(getattr(vnp, name)(x).numpy(), getattr(np, name)(z), name)
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            wanted = getattr(np, name)(z[:, None], z)
            np.testing.assert_array_equal(getattr(vnp, name)(x[:, None], x).numpy(), wanted, name)


def test_powers() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=50) + 1j * rng.normal(size=50)
    x = vnp.asarray(z)
    for exponent in (-7, -1, 0, 1, 2, 3, 5, 99):
        wanted = np.power(z, exponent)
        np.testing.assert_allclose(vnp.power(x, exponent).numpy(), wanted, rtol=1e-13)
    np.testing.assert_allclose((x ** (0.5 - 2j)).numpy(), z ** (0.5 - 2j), rtol=1e-14)
    np.testing.assert_array_equal((x**0.5).numpy(), vnp.sqrt(x).numpy())
    zeros = vnp.power(vnp.zeros(4, vnp.complex128), vnp.asarray([0, 2 + 1j, -1, 1j])).numpy()
    np.testing.assert_array_equal(zeros, [1, 0, complex(nan, nan), complex(nan, nan)])


def test_parts_are_rounded_apart() -> None:
    z = _pair("complex128", [(2.345, inf), (nan, -1.255), (-0.0, 149.0), (-inf, 2.5)])
    x = vnp.asarray(z)
    for places in (0, 1, -2):
        np.testing.assert_array_equal(vnp.round(x, places).numpy(), np.round(z, places))
    np.testing.assert_array_equal(vnp.nan_to_num(x, posinf=7).numpy(), np.nan_to_num(z, posinf=7))
