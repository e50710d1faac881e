"""The largest error of every function of mathematics, by mpmath: ``python -m benchmarks.mathematics``.

Errors are in units in the last place (ulp) of the true result, and below the smallest normal number in that
number's. A result that is NaN, infinite or finite where it should not be has an infinite error. Arguments
are drawn from the whole range of a function: evenly among all numbers of the type (so that every magnitude
down to the smallest occurs), evenly on ordinary intervals, and next to places that are hard.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import mpmath
import numpy as np
import numpy.typing as npt

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, to_numpy_dtype
from vkdispatch.base.record import record

Array = npt.NDArray[Any]
Truth = Callable[..., Any]

mpf = mpmath.mpf
# bits of mpmath's numbers, and more for those functions in which it cancels
BITS, MANY_BITS = 160, 420


@record
class Column:
    """A type, whether a kernel has `precise_math`, and whether only ordinary arguments are tried."""

    title: str
    kind: DType
    precise: bool = False
    ordinary: bool = False

    @property
    def host(self) -> np.dtype[Any]:
        """The type of NumPy."""
        return np.dtype(self.kind.name)


COLUMNS = (
    Column("float32", vd.float32),
    Column("float32, ordinary", vd.float32, ordinary=True),
    Column("float32, precise", vd.float32, precise=True),
    Column("float64", vd.float64),
)


# ---- arguments -----------------------------------------------------------------------------------


class Sampler:
    """Arguments of one type, in arrays of about `count`."""

    def __init__(self, host: np.dtype[Any], count: int, seed: int) -> None:
        self.host, self.count = host, count
        self.limits = np.finfo(host)
        self.double = host == np.float64
        self._generator = np.random.default_rng(seed)
        self._word = np.dtype(np.int64 if self.double else np.int32)

    def anywhere(self) -> Array:
        """Return numbers of all magnitudes and both signs."""
        largest = int(np.array(self.limits.max, self.host).view(self._word))
        drawn = self._generator.integers(0, largest, self.count, self._word, endpoint=True).view(self.host)
        signs = self._generator.choice([-1, 1], self.count)
        signed: Array = drawn * signs.astype(self.host)
        return signed

    def between(self, low: float, high: float) -> Array:
        """Return numbers of an interval."""
        return self._generator.uniform(low, high, self.count).astype(self.host)

    def whole(self, low: int, high: int) -> Array:
        """Return whole numbers of an interval."""
        return self._generator.integers(low, high, self.count, endpoint=True).astype(self.host)

    def near(self, *places: float) -> Array:
        """Return numbers next to places, a few units in the last place away."""
        around = np.repeat(np.array(places, self.host), max(5, self.count // 50))
        steps = self._generator.integers(-9, 9, around.size, self._word, endpoint=True)
        found: Array = (np.abs(around).view(self._word) + steps).view(self.host) * np.sign(around)
        return found

    def special(self) -> Array:
        """Return zeros, ones, limits, infinities and NaN."""
        limits = self.limits
        some = (0, 1, 2, 3, 0.5, limits.max, limits.tiny, limits.smallest_subnormal, np.inf)
        return np.array([*some, *(-value for value in some), np.nan], self.host)

    def usual(self) -> list[Array]:
        """Return what every function of one argument is tried on."""
        return [self.anywhere(), self.between(-3, 3), self.between(-40, 40), self.special()]


def _angles(draw: Sampler) -> list[Array]:
    # multiples of pi / 2 of all sizes; the last are the worst (Muller, Elementary Functions, chapter 11)
    turns = np.concatenate([np.arange(1, 40), 2.0 ** np.arange(5, 100, 3) + 1])
    worst = (6381956970095103 * 2.0**797, 2.0**1000) if draw.double else (16367173 * 2.0**72, 2.0**100)
    edges = 1.6e6 if draw.double else 400.0
    return [draw.near(*(turns * (math.pi / 2))), np.array(worst, draw.host), draw.near(edges)]


def _halves(draw: Sampler) -> list[Array]:
    # multiples of 1/4 of all sizes: zeros, extremes, and where one series follows the other
    quarters = np.concatenate([np.arange(1, 40), 2.0 ** np.arange(5, draw.limits.nmant + 4, 3) + 1])
    return [draw.near(*(quarters / 4)), quarters / 4, -quarters / 4]


def _pairs(draw: Sampler) -> tuple[Array, Array]:
    """Return pairs of numbers of alike magnitudes, of ordinary and of special ones."""
    first = draw.anywhere()
    second = np.ldexp(first * draw.between(0.5, 2), draw.whole(-50, 50).astype(np.int32))
    one, other = (side.ravel() for side in np.meshgrid(draw.special(), draw.special()))
    pairs = ((first, second), (draw.between(-3, 3), draw.between(-3, 3)), (one, other))
    return _joined(pairs, draw)


def _powers(draw: Sampler) -> tuple[Array, Array]:
    """Return pairs whose powers are between zero and infinity, of ordinary and of special numbers."""
    base, one = np.abs(draw.anywhere()), draw.near(1.0)
    limit = 780 if draw.double else 108
    logs = np.log(np.concatenate([base, one]).astype(float))
    exponents = np.resize(draw.between(-limit, limit), logs.size) / np.where(logs == 0, 1, logs)
    left, right = (side.ravel() for side in np.meshgrid(draw.special(), draw.special()))
    pairs = (
        (np.concatenate([base, one]), exponents),
        (draw.between(0, 9), draw.between(-30, 30)),
        (draw.between(-9, 0), draw.whole(-20, 20)),
        (left, right),
    )
    return _joined(pairs, draw)


def _joined(pairs: Sequence[tuple[Array, Array]], draw: Sampler) -> tuple[Array, Array]:
    first, second = (np.concatenate(side).astype(draw.host) for side in zip(*pairs, strict=True))
    return first, second


# ---- truth ---------------------------------------------------------------------------------------


def _with_bits(bits: int, rule: Truth) -> Truth:
    def apply(*args: Any) -> Any:
        with mpmath.workprec(bits):
            return rule(*args)

    return apply


def _within(low: float, high: float, rule: Truth) -> Truth:
    """Make a function NaN outside of an interval, and mind its ends."""
    return lambda x: rule(x) if low <= x <= high else math.nan


def _slope_one(rule: Truth) -> Truth:
    """Make a function x itself next to zero, where mpmath cancels."""
    many = _with_bits(MANY_BITS, rule)
    return lambda x: x if abs(x) < mpf(2) ** -200 else many(x)


def _limited(limit: float, below: float, above: float, rule: Truth) -> Truth:
    """Make a function constant beyond limits, where mpmath takes long."""
    return lambda x: rule(x) if abs(x) <= limit else mpf(above) if x > 0 else mpf(below)


def _angle(rule: Truth) -> Truth:
    """Give a function of angles as many bits as its argument has in front of the point."""

    def apply(x: Any) -> Any:
        if mpmath.isinf(x):
            return math.nan
        with mpmath.workprec(BITS + 100 + max(0, mpmath.frexp(x)[1])):
            return rule(x)

    return apply


def _turn(rule: Truth) -> Truth:
    """Make a function of multiples of pi NaN where its argument is infinite."""
    return lambda x: math.nan if mpmath.isinf(x) else rule(x)


def _logarithm(rule: Truth, zero: int = 0) -> Truth:
    """Make a logarithm that is minus infinity at `zero`, and NaN before."""

    def apply(x: Any) -> Any:
        if not zero < x < math.inf:
            return -math.inf if x == zero else math.inf if x > 0 else math.nan
        return rule(x)

    return apply


def _gamma(x: Any) -> Any:
    if mpmath.isinf(x) or x == 0 or (x < 0 and mpmath.floor(x) == x):
        return math.inf if x >= 0 else math.nan
    if abs(x) > 3000:
        return math.inf if x > 0 else mpf(0)
    return mpmath.gamma(x)


def _lgamma(x: Any) -> Any:
    if mpmath.isinf(x) or (x <= 0 and mpmath.floor(x) == x):
        return math.inf
    if x > 0:
        return mpmath.loggamma(x)
    return mpmath.log(mpmath.pi / abs(x * mpmath.sinpi(x))) - mpmath.loggamma(-x)


def _erfc(x: Any) -> Any:
    return _limited(60, 2, 0, mpmath.erfc)(x)


def _power(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        about = float(np.float_power(float(x), float(y)))
    if math.isnan(about) or 0 in (x, y) or mpmath.isinf(x) or mpmath.isinf(y) or abs(x) == 1:
        return mpf(about)
    if abs(mpmath.log(abs(x)) * y) > 2000:
        return mpf(about)
    size = mpmath.exp(mpmath.log(abs(x)) * y)
    return size if x > 0 or mpmath.floor(y / 2) * 2 == y else -size


def _hypot(x: Any, y: Any) -> Any:
    return math.inf if mpmath.isinf(x) or mpmath.isinf(y) else mpmath.sqrt(x * x + y * y)


def _arc(y: Any, x: Any) -> Any:
    if 0 in (x, y) or mpmath.isinf(x) or mpmath.isinf(y):
        # a multiple of pi / 4
        with mpmath.workprec(BITS):
            return mpmath.pi / 4 * round(math.atan2(y, x) / (math.pi / 4))
    return mpmath.atan2(y, x)


@record
class Function:
    """A function: how mpmath computes it, and what it is tried on beyond what all are.

    Near zeros `floor` is what a unit in the last place is one of at least, for negative arguments. `ordinary`
    is an interval that no device has a reason to be bad on.
    """

    truth: Truth
    more: Callable[[Sampler], Sequence[Array]] = lambda _: ()
    pairs: Callable[[Sampler], tuple[Array, Array]] | None = None
    floor: float = 0.0
    ordinary: tuple[float, float] = (0.001, 10.0)

    def arguments(self, host: np.dtype[Any], count: int, seed: int) -> tuple[Array, ...]:
        """Return arguments of a type, some times `count` of them."""
        with np.errstate(all="ignore"):
            draw = Sampler(host, count, seed)
            if self.pairs is not None:
                return self.pairs(draw)
            return (np.concatenate([*draw.usual(), *self.more(draw)]).astype(host),)

    def ordinary_arguments(self, host: np.dtype[Any], count: int, seed: int) -> tuple[Array, ...]:
        """Return arguments of a type from the ordinary interval, four times `count` of them."""
        draw = Sampler(host, 4 * count, seed)
        return tuple(draw.between(*self.ordinary) for _ in range(1 if self.pairs is None else 2))


def _third(x: Any) -> Any:
    return mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x)


def _sines(draw: Sampler) -> list[Array]:
    return [draw.between(-1, 1), draw.near(-1, 0.5, 1)]


FUNCTIONS: dict[str, Function] = {
    "sin": Function(_angle(mpmath.sin), _angles, ordinary=(-3.1, 3.1)),
    "cos": Function(_angle(mpmath.cos), _angles, ordinary=(-1.5, 1.5)),
    "tan": Function(_angle(mpmath.tan), _angles, ordinary=(-1.5, 1.5)),
    "sinpi": Function(_turn(mpmath.sinpi), _halves),
    "cospi": Function(_turn(mpmath.cospi), _halves),
    "asin": Function(_within(-1, 1, mpmath.asin), _sines, ordinary=(-0.99, 0.99)),
    "acos": Function(_within(-1, 1, mpmath.acos), _sines, ordinary=(-0.99, 0.99)),
    "atan": Function(mpmath.atan, lambda d: [d.near(*(np.arange(1, 16) / 16))]),
    "atan2": Function(_arc, pairs=_pairs),
    "sinh": Function(
        _slope_one(_limited(1000, -math.inf, math.inf, mpmath.sinh)),
        lambda d: [d.between(-720, 720), d.near(39, 18, 710.4758600739439, 89.415985)],
    ),
    "cosh": Function(
        _limited(1000, math.inf, math.inf, mpmath.cosh),
        lambda d: [d.between(-720, 720), d.near(39, 18, 710.4758600739439, 89.415985)],
    ),
    "tanh": Function(_slope_one(_limited(200, -1, 1, mpmath.tanh)), lambda d: [d.near(19.5, 9)]),
    "asinh": Function(_slope_one(mpmath.asinh), lambda d: [d.near(2**28, 2**13)]),
    "acosh": Function(
        _within(1, math.inf, _with_bits(MANY_BITS, mpmath.acosh)),
        lambda d: [d.between(1, 4), np.abs(d.anywhere()), d.near(1, 2**28, 2**13)],
        ordinary=(1.1, 10),
    ),
    "atanh": Function(
        _within(-1, 1, lambda x: math.copysign(math.inf, x) if abs(x) == 1 else _slope_one(mpmath.atanh)(x)),
        lambda d: [d.between(-1, 1), d.near(-1, 1)],
        ordinary=(0.001, 0.99),
    ),
    "exp": Function(
        _limited(2000, 0, math.inf, mpmath.exp), lambda d: [d.between(-750, 715), d.between(-105, 90)]
    ),
    "exp2": Function(
        _limited(3000, 0, math.inf, lambda x: mpf(2) ** x),
        lambda d: [d.between(-1080, 1030), d.between(-155, 130), d.whole(-1080, 1030)],
    ),
    "expm1": Function(
        _slope_one(_limited(2000, -1, math.inf, mpmath.expm1)),
        lambda d: [d.between(-0.7, 0.7), d.between(-750, 715), d.near(39, 18, math.log(2) / 2)],
    ),
    "log": Function(_logarithm(mpmath.log), lambda d: [d.near(1, 2**0.5, 0.5**0.5, 0.5, 2)]),
    "log2": Function(
        _logarithm(lambda x: mpmath.log(x) / mpmath.ln2), lambda d: [d.near(1, 2**0.5, 0.5**0.5, 0.5, 2)]
    ),
    "log10": Function(
        _logarithm(lambda x: mpmath.log(x) / mpmath.ln10),
        lambda d: [d.near(1, 2**0.5, 0.5**0.5, 0.5, 2), 10.0 ** np.arange(20)],
    ),
    "log1p": Function(
        _logarithm(_slope_one(mpmath.log1p), -1),
        lambda d: [d.between(-1, 1), d.near(-1, -0.5, 1, 2**0.5 - 1, 0.5**0.5 - 1)],
    ),
    "pow": Function(_power, pairs=_powers),
    "cbrt": Function(_third, lambda d: [np.arange(99.0) ** 3, d.near(1, 2, 4, 8)]),
    "hypot": Function(_hypot, pairs=_pairs),
    "erf": Function(
        lambda x: x * 2 / mpmath.sqrt(mpmath.pi) if abs(x) < 1e-30 else mpmath.erf(x),
        lambda d: [d.between(-6, 6), d.near(0.5)],
    ),
    "erfc": Function(_erfc, lambda d: [d.between(0, 28), d.between(-6, 10), d.near(0.5, 26.5, 10)]),
    "gamma": Function(
        _gamma,
        lambda d: [
            d.between(-185, 172),
            d.between(-4, 13),
            np.arange(30.0),
            d.near(0.5, 1, 1.5, 2, 2.5, 7, 12, -0.5, -1, -2, -3, -1.5, 171.624376956, 35.040096),
        ],
    ),
    "lgamma": Function(
        _lgamma,
        lambda d: [
            d.between(-185, 172),
            d.between(-4, 13),
            np.arange(30.0),
            d.near(0.5, 1, 1.5, 2, 2.5, 7, 12, -0.5, -1, -2, -3, -1.5, -2.4570247382208, -2.747682646727413),
        ],
        floor=1.0,
    ),
}


# ---- errors --------------------------------------------------------------------------------------


def ulps(got: float, want: Any, limits: Any, floor: float = 0.0) -> float:
    """Return the error of a result, in units in the last place of what it should be, or of `floor`."""
    if mpmath.isnan(want) or math.isnan(got):
        return 0.0 if mpmath.isnan(want) and math.isnan(got) else math.inf
    if mpmath.isinf(want):
        return 0.0 if got == want else math.inf
    bits = limits.nmant + 1
    if math.isinf(got):
        # the next number that there would be
        got_number = mpmath.sign(got) * mpf(2) ** int(limits.maxexp)
        return (
            0.5
            if abs(want) > float(limits.max)
            else float(abs(got_number - want) / _unit(want, bits, limits))
        )
    size = max(abs(want), mpf(floor))
    return float(abs(mpf(got) - want) / _unit(size, bits, limits))


def _unit(value: Any, bits: int, limits: Any) -> Any:
    exponent = max(mpmath.frexp(value)[1], int(limits.minexp) + 1) if value else int(limits.minexp) + 1
    return mpf(2) ** (exponent - bits)


@record
class Errors:
    """Errors of a function on some arguments."""

    arguments: tuple[Array, ...]
    results: Array
    ulps: Array

    @property
    def largest(self) -> float:
        """The largest error."""
        return float(self.ulps.max())

    def worst(self) -> str:
        """Say where the largest error is."""
        i = int(np.argmax(self.ulps))
        arguments = ", ".join(repr(float(values[i])) for values in self.arguments)
        return f"{self.ulps[i]:.3g} ulp: ({arguments}) gives {float(self.results[i])!r}"


def results_of(name: str, arguments: tuple[Array, ...], column: Column) -> Array:
    """Compute a function on the device."""
    sources = [vd.asbuffer(values) for values in arguments]
    target = vd.Buffer((len(arguments[0]),), column.kind)

    def kernel(out: Any, *buffers: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = getattr(vc, name)(*(buffer[i].to_register() for buffer in buffers))

    annotations = [vc.Buffer[column.kind]] * (1 + len(sources))  # type: ignore[name-defined]
    run = vd.shader(
        exec_size=len(arguments[0]), arg_type_annotations=annotations, precise_math=column.precise
    )
    run(kernel)(target, *sources)
    return target.read(0)


def errors_of(name: str, column: Column, count: int, seed: int = 0) -> Errors:
    """Compare a function on the device with mpmath."""
    function = FUNCTIONS[name]
    draw = function.ordinary_arguments if column.ordinary else function.arguments
    arguments = draw(column.host, count, seed)
    results = results_of(name, arguments, column)
    return compare(name, arguments, results, flushes=flushes_subnormals(column.kind))


def flushes_subnormals(kind: DType) -> bool:
    """Whether the device takes subnormal numbers of a type for zero, as Vulkan allows."""
    number = np.finfo(to_numpy_dtype(kind)).smallest_subnormal
    out, source = vd.Buffer((1,), kind), vd.asbuffer(np.array([number * 64]))

    def kernel(out: Any, source: Any) -> None:
        out[0] = source[0] * 1.5

    vd.shader(1, arg_type_annotations=[vc.Buffer[kind]] * 2)(kernel)(out, source)  # type: ignore[valid-type]
    return not out.read(0)[0]


def compare(name: str, arguments: tuple[Array, ...], results: Array, *, flushes: bool = False) -> Errors:
    """Compare results of a function with mpmath; of subnormal numbers only if the device has them."""
    function, limits = FUNCTIONS[name], np.finfo(results.dtype)
    with mpmath.workprec(BITS):
        found = [
            _error(function, [float(value) for value in row], float(got), limits, flushes)
            for *row, got in zip(*arguments, results, strict=True)
        ]
    return Errors(arguments, results, np.array(found))


def _error(function: Function, row: list[float], got: float, limits: Any, flushes: bool) -> float:
    if flushes and any(0 < abs(value) < limits.tiny for value in row):
        return 0.0
    if any(map(math.isnan, row)):
        # NumPy knows pow(nan, 0) = pow(1, nan) = 1 and hypot(inf, nan) = inf
        if function.truth is _power and (row[1] == 0 or row[0] == 1):
            return 0.0 if got == 1 else math.inf
        if function.truth is _hypot and any(map(math.isinf, row)):
            return 0.0 if got == math.inf else math.inf
        return 0.0 if math.isnan(got) else math.inf
    negative = row[0] < 0
    want = function.truth(*map(mpf, row)) if 0 not in row else _at_zero(function, row)
    if flushes and 0 < abs(want) < limits.tiny:
        return 0.0
    return ulps(got, want, limits, function.floor if negative else 0.0)


def _at_zero(function: Function, row: list[float]) -> Any:
    """Compute a function where an argument is zero, whose sign mpmath does not know."""
    if function.truth is _power:
        with np.errstate(all="ignore"):
            return mpf(float(np.float_power(row[0], row[1])))
    if function.truth is _arc:
        with mpmath.workprec(BITS):
            return mpmath.pi / 4 * round(math.atan2(*row) / (math.pi / 4))
    if function.truth is _gamma:
        return mpf(math.copysign(math.inf, row[0]))
    return function.truth(*map(mpf, row))


# ---- the command ---------------------------------------------------------------------------------


def columns() -> Iterator[Column]:
    """Yield what the device has."""
    double = vd.get_context().device_infos[0].float_64_support
    return (column for column in COLUMNS if double or column.kind is not vd.float64)


@click.command()
@click.option("--functions", default=",".join(FUNCTIONS), help="Names, separated by commas.")
@click.option("--points", default=2000, help="Points of each kind; a function takes some times as many.")
@click.option("--seed", default=0, help="Draws other points.")
@click.option("--where/--no-where", default=False, help="Also print where the largest errors are.")
def main(functions: str, points: int, seed: int, where: bool) -> None:
    """Print the largest error of each function, in units in the last place."""
    shown = list(columns())
    click.echo(vd.get_context().device_infos[0].device_name)
    click.echo(f"{'':8}" + "".join(f"{column.title:>18}" for column in shown))
    for name in functions.split(","):
        found = [errors_of(name, column, points, seed) for column in shown]
        click.echo(f"{name:8}" + "".join(f"{errors.largest:18.4g}" for errors in found))
        for column, errors in zip(shown, found, strict=True) if where else ():
            click.echo(f"{'':10}{column.title}: {errors.worst()}")


if __name__ == "__main__":
    main()
