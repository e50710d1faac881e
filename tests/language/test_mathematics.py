"""Functions of mathematics over their whole range, against mpmath; their special values, against NumPy.

`python -m benchmarks.mathematics` does the same with any number of points.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from click.testing import CliRunner

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch_native as native
from benchmarks import mathematics
from benchmarks.mathematics import COLUMNS, FUNCTIONS, Column
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen import abbreviations
from vkdispatch.codegen.abbreviations import Buff, dv3, f16, f32, f64, i32, i64, v2
from vkdispatch.compiler.glsl import exponentials as roots
from vkdispatch.compiler.glsl import mathematics as special
from vkdispatch.compiler.glsl.spelling import PRECISE as PRAGMA

from .running import buffer_of, close, evaluate, filled, host, need, result_types, same

LOOSE, ORDINARY, PRECISE, DOUBLE = COLUMNS
# GLSL lacks these in float32 too, so `precise_math` does not change them.
LACKING = (*("cbrt", "cospi", "erf", "erfc", "expm1", "gamma", "hypot", "lgamma", "log10", "log1p"), "sinpi")
# Units in the last place; the others are held to 2.
ALLOWED = {"erf": 4.0, "erfc": 8.0, "gamma": 8.0, "lgamma": 8.0}

np_seterr = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def sinpi(x: float) -> float:
    """Return the sine of pi x, by mpmath, with C's signs of zeros."""
    if not math.isfinite(x):
        return math.nan
    return float(mpmath.sinpi(float(x))) or math.copysign(0.0, x)


def cospi(x: float) -> float:
    """Return the cosine of pi x, by mpmath."""
    return float(mpmath.cospi(float(x))) if math.isfinite(x) else math.nan


def twin(name: str) -> Any:
    """Return NumPy's or SciPy's function."""
    other = {"pow": np.float_power, "erf": scipy.special.erf, "erfc": scipy.special.erfc}
    other |= {"gamma": scipy.special.gamma, "lgamma": scipy.special.gammaln}
    other |= {"sinpi": np.vectorize(sinpi, [float]), "cospi": np.vectorize(cospi, [float])}
    return other.get(name) or getattr(np, name, None) or getattr(np, f"arc{name[1:]}")


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [PRECISE, DOUBLE], ids=lambda column: column.title)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_over_the_whole_range(name: str, column: Column) -> None:
    need(column.kind)
    found = mathematics.errors_of(name, column, 150)
    assert found.ulps.size > 400
    assert found.largest <= ALLOWED.get(name, 2.0), found.worst()


@pytest.mark.parametrize("name", LACKING)
def test_errors_of_functions_missing_in_glsl(name: str) -> None:
    found = mathematics.errors_of(name, LOOSE, 150, seed=1)
    assert found.largest <= ALLOWED.get(name, 2.0), found.worst()


@pytest.mark.parametrize(
    ("kind", "worst"),
    [(f64, 6381956970095103 * 2.0**797), (f64, 2.0**1000), (f64, 1e22), (f32, 16367173 * 2.0**72)],
)
def test_huge_angles_are_reduced_exactly(kind: DType, worst: float) -> None:
    need(kind)
    x = np.array([worst, -worst], host(kind))
    out = filled(6, kind)

    @vd.shader(exec_size=2, precise_math=True)
    def angles(out: Buff[kind], x: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        out[i], out[i + 2], out[i + 4] = vc.sin(x[i]), vc.cos(x[i]), vc.tan(x[i])

    angles(out, buffer_of(kind, x))
    with mpmath.workprec(1400):
        expected = [
            float(f(mpmath.mpf(float(value)))) for f in (mpmath.sin, mpmath.cos, mpmath.tan) for value in x
        ]
    close(out.read(0), expected, rtol=2.0**-51 if kind is f64 else 2.0**-22)


def test_ulps_of_known_errors() -> None:
    limits = np.finfo(np.float64)
    assert mathematics.ulps(1.0 + 2.0**-52, mpmath.mpf(1), limits) == 1
    assert mathematics.ulps(1.0 - 2.0**-53, mpmath.mpf(1), limits) == 0.5
    assert mathematics.ulps(0.0, mpmath.mpf(2) ** -1074, limits) == 1
    assert mathematics.ulps(math.inf, mpmath.mpf(float(limits.max)), limits) == 1
    assert mathematics.ulps(math.inf, mpmath.mpf(2) ** 1030, limits) == 0.5
    assert mathematics.ulps(math.nan, mpmath.mpf(1), limits) == math.inf
    assert mathematics.ulps(1.0, mpmath.mpf("nan"), limits) == math.inf
    assert mathematics.ulps(2.0**-60, mpmath.mpf(0), limits, 1.0) == 2.0**-8


def operations_to_contract(spirv: bytes) -> int:
    """Count additions, subtractions, products and quotients of floats that compilers may fuse or reorder."""
    words = np.frombuffer(spirv, np.uint32)
    decorated, made = set(), set()
    place = 5
    while place < words.size:
        operation, length = int(words[place]) & 0xFFFF, int(words[place]) >> 16
        if operation == 71 and words[place + 2] == 42:  # OpDecorate, NoContraction
            decorated.add(int(words[place + 1]))
        elif operation in (129, 131, 133, 136):  # OpFAdd, OpFSub, OpFMul, OpFDiv
            made.add(int(words[place + 2]))
        place += length
    return len(made - decorated)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_precise_math_leaves_nothing_to_contract(name: str) -> None:
    def rule(a: Any) -> Any:
        return getattr(vc, name)(a, a) if FUNCTIONS[name].pairs else getattr(vc, name)(a)

    for kind in (f32, f64):
        # maps are precise without the pragma, in kernels that are not
        texts = [glsl_of(each, kind, precise_math=True) for each in (rule, lambda a: a * a + a)]
        spirv = [native.compile_glsl(text.replace(PRAGMA, "")) for text in texts]
        assert [operations_to_contract(code) for code in spirv] == [0, 2]
        assert operations_to_contract(native.compile_glsl(texts[1])) == 0


def scaled_erfc(middle: float) -> Any:
    def rule(t: Any) -> Any:
        x = middle * (1 + t) / (1 - t)
        return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)

    return rule


def scaled_lgamma(z: Any) -> Any:
    return mpmath.loggamma(2 + z) / z if abs(z) > 1e-20 else 1 - mpmath.euler


@pytest.mark.parametrize(
    ("table", "rule", "low", "high"),
    [
        (special._ERFC_64, scaled_erfc(3.75), (0.5 - 3.75) / (0.5 + 3.75), (28 - 3.75) / (28 + 3.75)),
        (special._ERFC_32, scaled_erfc(2.5), (0.5 - 2.5) / (0.5 + 2.5), (11 - 2.5) / (11 + 2.5)),
        (special._LGAMMA_64, scaled_lgamma, -0.5, 0.5),
        (special._LGAMMA_32, scaled_lgamma, -0.5, 0.5),
        (roots._CBRT, mpmath.cbrt, 1, 2),
    ],
    ids=("erfc, double", "erfc, single", "lgamma, double", "lgamma, single", "cbrt"),
)
def test_coefficients_of_chebyshev_interpolation(table: Any, rule: Any, low: Any, high: Any) -> None:
    with mpmath.workprec(200):
        found = mpmath.chebyfit(rule, [mpmath.mpf(low), mpmath.mpf(high)], len(table), asc=True)
    # float32's are rounded to float32
    close(np.array(table), [float(value) for value in found], 1e-13 if len(table) > 10 else 1e-7)


# ---- special values ------------------------------------------------------------------------------


@np_seterr
@pytest.mark.parametrize("kind", [f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, kind: DType) -> None:
    need(kind)
    values = np.array([0.0, -0.0, 1, -1, 2, -2, -3, 0.5, np.inf, -np.inf, np.nan], host(kind))
    function = FUNCTIONS[name]
    arguments = (values,)
    if function.pairs is not None:
        one, other = np.meshgrid(values, values)
        arguments = (one.ravel(), other.ravel())
    (column,) = (column for column in (PRECISE, DOUBLE) if column.kind is kind)
    found = mathematics.results_of(name, arguments, column)
    expected = twin(name)(*arguments)
    if name == "gamma":
        # SciPy's version decides about poles; C says NaN
        expected = np.where((arguments[0] < 0) & (arguments[0] == np.floor(arguments[0])), np.nan, expected)
    if name == "lgamma":
        expected = np.where(arguments[0] == -np.inf, np.inf, expected)
    close(found, expected, rtol=4e-7 if kind is f32 else 1e-15)
    zero = (found == 0) & (name != "lgamma")
    same(np.signbit(found[zero]), np.signbit(np.asarray(expected)[zero]), "signs of zeros")


# ---- types ---------------------------------------------------------------------------------------


def test_float64_in_every_form() -> None:
    need(f64, i64)
    x = np.linspace(0.1, 5, 33)
    n = np.arange(1, 34)
    small = x.astype(np.float32)

    def forms(a: Any, b: Any, k: Any) -> list[Any]:
        power = a.to_register()
        power **= b
        return [
            a**b, a**0.5, 2.5**a, b**a, power, vc.pow(b, a), vc.atan2(a, b), vc.atan2(2, a),
            vc.hypot(b, a), vc.log(k), vc.exp(-a), vc.radians(a), vc.degrees(a), vc.radians(k),
        ]  # fmt: skip

    assert set(result_types(forms, [f64, f32, i64])) == {f64}
    y = small.astype(float)
    expected = [
        x**y, x**0.5, 2.5**x, y**x, x**y, y**x, np.arctan2(x, y), np.arctan2(2, x),
        np.hypot(y, x), np.log(n), np.exp(-x), np.radians(x), np.degrees(x), np.radians(n),
    ]  # fmt: skip
    found = evaluate(forms, (f64, x), (f32, small), (i64, n))
    for place, (actual, values) in enumerate(zip(found, expected, strict=True)):
        close(actual, values, rtol=1e-15, what=f"result {place}")


def test_vectors() -> None:
    need(f64)
    x = np.linspace(0.1, 5, 99).reshape(-1, 3)

    def forms(a: Any) -> list[Any]:
        return [vc.sin(a), vc.pow(a, 1.5), vc.pow(2.5, a), vc.hypot(a, a.zyx), vc.gamma(a), vc.sin(a.x)]

    assert result_types(forms, [dv3]) == [dv3] * 5 + [f64]
    expected = [np.sin(x), x**1.5, 2.5**x, np.hypot(x, x[:, ::-1]), scipy.special.gamma(x), np.sin(x[:, 0])]
    for actual, values in zip(evaluate(forms, (dv3, x)), expected, strict=True):
        close(actual, values, rtol=1e-14)


@np_seterr
@pytest.mark.parametrize("name", LACKING)
@pytest.mark.parametrize("kind", [f16, v2, i32], ids=lambda kind: kind.name)
def test_functions_missing_in_glsl_for_other_types(name: str, kind: DType) -> None:
    need(kind)
    x = np.arange(1, 9).astype(host(kind)) / (1 if kind is i32 else 2)
    x = x.astype(host(kind)).reshape(-1, 2) if kind is v2 else x.astype(host(kind))
    function = getattr(vc, name)
    pair = name == "hypot"
    (found,) = evaluate((lambda a: function(a, a)) if pair else function, (kind, x))
    wide = x.astype(float)
    expected = twin(name)(wide, wide) if pair else twin(name)(wide)
    close(found, expected, 2e-3 if kind is f16 else 5e-7, 1e-7)
    assert result_types((lambda a: function(a, a)) if pair else function, [kind]) == [
        dt.make_floating_dtype(kind)
    ]


@pytest.mark.parametrize("name", LACKING)
def test_python_numbers_give_a_python_number(name: str) -> None:
    arguments = (3.5, 2) if name == "hypot" else (3.5,)
    found = getattr(vc, name)(*arguments)
    assert type(found) is float
    assert found == pytest.approx(float(twin(name)(*arguments)), rel=1e-14)


@pytest.mark.parametrize("kind", [f16, f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("interpreted", [False, True], ids=["device", "interpreter"])
def test_multiples_of_pi_are_exact_at_halves(kind: DType, interpreted: bool) -> None:
    need(kind)
    limits = np.finfo(host(kind))
    whole = np.array([0, 1, 2, 3, 4, 5, 101, 102, 2.0**limits.nmant - 1, limits.max], host(kind))
    x = np.concatenate([whole, whole[:8] + host(kind).type(0.5)])
    x = np.concatenate([x, -x])
    count = x.size
    out, zeros = filled(2 * count, kind), np.zeros(2 * count, host(kind))

    @vd.shader(exec_size=count)
    def kernel(out: Buff[kind], x: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = vc.global_invocation_id().x
        out[i], out[i + count] = vc.sinpi(x[i]), vc.cospi(x[i])

    if interpreted:
        kernel.interpret(zeros, x)
    else:
        kernel(out, buffer_of(kind, x))
    found = zeros if interpreted else out.read(0)
    remainder = np.abs(x.astype(float)) % 2
    sines = np.select([remainder == 0.5, remainder == 1.5], [1.0, -1.0], 0.0) * np.copysign(1, x)
    sines = np.where(sines == 0, np.copysign(0.0, x), sines)
    cosines = np.select([remainder == 0, remainder == 1], [1.0, -1.0], 0.0)
    expected = np.concatenate([sines, cosines])
    same(found, expected.astype(host(kind)))
    same(np.signbit(found), np.signbit(expected), "signs of zeros")
    assert [vc.sinpi(float(value)) for value in x] == sines.tolist()
    assert [vc.cospi(float(value)) for value in x] == cosines.tolist()


def test_poles_of_numbers() -> None:
    assert vc.gamma(0) == math.inf and vc.gamma(-0.0) == -math.inf and vc.gamma(1e3) == math.inf
    assert math.isnan(vc.gamma(-1)) and math.isnan(vc.gamma(-math.inf)) and vc.gamma(math.inf) == math.inf
    assert vc.lgamma(0) == vc.lgamma(-7) == vc.lgamma(-math.inf) == vc.lgamma(1e306) == math.inf
    assert vc.erfc(0) == 1 and vc.erfc(-math.inf) == 2


# ---- precise_math --------------------------------------------------------------------------------


def glsl_of(rule: Any, kind: Any, **options: Any) -> str:
    @vd.shader(exec_size=1, **options)
    def kernel(out: Buff[kind]) -> None:
        out[0] = rule(out[0])

    return kernel.shader_description.make_source(64, 1, 1)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(LACKING)))
def test_single_precision_uses_device_functions_by_default(name: str) -> None:
    def rule(a: Any) -> Any:
        return getattr(vc, name)(a, a) if FUNCTIONS[name].pairs else getattr(vc, name)(a)

    assert "f32_" not in glsl_of(rule, f32)
    assert f" = f32_{name}(" in glsl_of(rule, f32, precise_math=True)
    assert f" = f32_{name}(" in glsl_of(rule, f32, flags=vc.ShaderFlags.PRECISE_MATH)
    assert "f32_" not in glsl_of(rule, f64)
    assert f" = f64_{name}(" in glsl_of(rule, f64)


def test_precise_operators_and_complex_numbers() -> None:
    assert "f32_pow(" in glsl_of(lambda a: a**a, f32, precise_math=True)
    assert "f32_pow(" in glsl_of(lambda a: 2**a, f32, precise_math=True)
    assert "pow" not in glsl_of(lambda a: a**3, f32, precise_math=True)
    euler = glsl_of(lambda a: vc.complex_from_euler_angle(a.real), abbreviations.c64, precise_math=True)
    assert "f32_cos(" in euler and "f32_sin(" in euler


def computed(rule: Any, *arrays: Any, **options: Any) -> Any:
    """Compute a rule of numbers for each element, on the device and by the interpreter."""
    kinds = [{"float16": f16, "float32": f32, "float64": f64}[array.dtype.name] for array in arrays]
    need(*kinds)

    def kernel(out: Any, *inputs: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = rule(*(each[i] for each in inputs))

    names = [f"x{i}" for i in range(len(arrays))]
    made = vd.shader(
        "out.size",
        arg_names=["out", *names],
        arg_type_annotations=[Buff[kind] for kind in (kinds[0], *kinds)],  # type: ignore[valid-type]
        **options,
    )(kernel)
    out, twin = filled(len(arrays[0]), kinds[0]), np.zeros_like(arrays[0])
    made(out, *(vd.asbuffer(array) for array in arrays))
    made.interpret(twin, *arrays)
    same(out.read(0), twin)
    return twin


def two_sum(a: Any, b: Any) -> Any:
    s = a + b
    part = s - a
    return (a - (s - part)) + (b - part)


def two_product(a: Any, b: Any) -> Any:
    def split(x: Any) -> Any:
        far = x * 4097.0
        high = far - (far - x)
        return high, x - high

    (a0, a1), (b0, b1) = split(a), split(b)
    return ((a0 * b0 - a * b) + a0 * b1 + a1 * b0) + a1 * b1


def test_precise_kernels_round_at_each_step() -> None:
    rng = np.random.default_rng(5)
    a = (rng.normal(size=257) * 10.0 ** rng.integers(-6, 6, 257)).astype(np.float32)
    b = (rng.normal(size=257) * 10.0 ** rng.integers(-6, 6, 257)).astype(np.float32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    rest = computed(two_sum, a, b, precise_math=True)
    pairs = zip(a, b, strict=True)
    exact = [Fraction(float(x)) + Fraction(float(y)) - Fraction(float(x + y)) for x, y in pairs]
    assert rest.tolist() == [float(each) for each in exact] and rest.any()
    rest = computed(two_product, a, b, precise_math=True)
    assert rest.tolist() == (wide_a * wide_b - (a * b).astype(np.float64)).tolist() and rest.any()
    nearest = computed(lambda x: (x + 12582912.0) - 12582912.0, a, precise_math=True)
    same(nearest[np.abs(a) < 4e6], np.rint(a[np.abs(a) < 4e6]))
    tenth = computed(lambda x: (x * 0.1) * 10.0 - x, a, precise_math=True)
    same(tenth, (a * np.float32(0.1)) * np.float32(10) - a)
    large = computed(lambda x: x * 1e25 * 1e25 * 1e-25 * 1e-25, a, precise_math=True)
    assert np.isinf(large).all()
    gone = computed(lambda x: x * 1e-30 * 1e-30 * 1e30 * 1e30, a, precise_math=True)
    assert not gone.any()
    steps = computed(lambda x: vc.select((x + 1e8) - 1e8 == x, 1.0, 0.0), a, precise_math=True)
    same(steps, ((a + np.float32(1e8)) - np.float32(1e8) == a).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precise_sums_with_compensation(dtype: Any) -> None:
    count, kind = 3001, {2: f16, 4: f32, 8: f64}[np.dtype(dtype).itemsize]
    need(kind)
    x = np.full(count, 0.1, dtype)
    x[0] = 2.0 ** {2: 9, 4: 24, 8: 53}[x.itemsize]

    @vd.shader(1, precise_math=True)
    def kahan(out: Buff[kind], x: Buff[kind]) -> None:  # type: ignore[valid-type]
        s, c = x[0] - x[0], x[0] - x[0]
        for j in range(x.size):
            y = x[j] - c
            t = s + y
            c = (t - s) - y
            s = t
        out[0] = s

    out, twin = filled(1, kind), np.zeros(1, dtype)
    kahan(out, vd.asbuffer(x))
    kahan.interpret(twin, x)
    exact = sum(Fraction(float(each)) for each in x)
    same(out.read(0), twin)
    assert abs(Fraction(float(twin[0])) - exact) <= Fraction(float(np.spacing(twin[0])))


def test_precise_maps_round_in_any_kernel() -> None:
    a = np.array([0.4, 2.5, -7.3, 1e6], np.float32)

    @vd.map(precise_math=True)
    def nearest(x: f32) -> f32:
        there = x + 12582912.0
        return there - 12582912.0

    same(computed(nearest, a), np.rint(a))
    same(nearest(vd.asbuffer(a)).read(0), np.rint(a))


def test_precise_halves() -> None:
    need(f16)
    x = np.linspace(-9, 9, 99).astype(np.float16)
    out = filled(99, f16)

    @vd.shader(exec_size=99, precise_math=True)
    def kernel(out: Buff[f16], x: Buff[f16]) -> None:
        i = vc.global_invocation_id().x
        out[i] = vc.sin(x[i])

    kernel(out, buffer_of(f16, x))
    same(out.read(0), np.sin(x.astype(float)).astype(np.float16))


def test_unused_functions_are_not_written() -> None:
    source = glsl_of(lambda a: vc.log(a), f64)
    assert "f64_log(" in source
    assert "f64_reduce" not in source and "f64_angle" not in source


def test_names_of_variables_do_not_hide_functions() -> None:
    need(f64)
    out = filled(1, f64)

    @vd.shader(exec_size=1)
    def kernel(out: Buff[f64]) -> None:
        f64_sum = vc.new_float64_register(0.5, var_name="f64_sum")
        f64_sum += 0.25
        out[0] = vc.sin(f64_sum)

    kernel(out)
    close(out.read(0), [math.sin(0.75)], rtol=4e-16)


# ---- the interpreter -----------------------------------------------------------------------------


@np_seterr
@pytest.mark.parametrize("column", [PRECISE, DOUBLE], ids=lambda column: column.title)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_interpreter_is_as_accurate(name: str, column: Column) -> None:
    arguments = FUNCTIONS[name].arguments(column.host, 40, 2)
    if name == "lgamma":
        # near its zeros Python's own is worth less
        (x,) = arguments
        arguments = (x[(np.abs(x - 1.5) > 0.6) & ~(x < 0)],)
    out = np.zeros(len(arguments[0]), column.host)

    def kernel(out: Any, *sources: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = getattr(vc, name)(*(source[i].to_register() for source in sources))

    annotations: list[Any] = [Buff[column.kind]] * (1 + len(arguments))
    run = vd.shader(exec_size=out.size, arg_type_annotations=annotations, precise_math=True)(kernel)
    run.interpret(out, *arguments)
    found = mathematics.compare(name, arguments, out)
    # NumPy's and Python's functions are what they are: its cosine of 1e255 has an error of 8
    assert found.largest <= 20, found.worst()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordinary_arguments_lie_in_their_range(name: str) -> None:
    low, high = FUNCTIONS[name].ordinary
    for values in FUNCTIONS[name].ordinary_arguments(ORDINARY.host, 50, 0):
        assert values.size == 200 and low <= values.min() < values.max() <= high
    found = mathematics.errors_of(name, ORDINARY, 50)
    assert found.largest < 2.0**13


def test_accuracy_command_prints_the_largest_errors() -> None:
    result = CliRunner().invoke(mathematics.main, ["--functions", "log1p,cbrt", "--points", "20", "--where"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    rows = {
        line.split()[0]: [float(error) for error in line.split()[1:]] for line in lines[2:] if line[0] != " "
    }
    assert all(0 < error <= 2 for name in ("log1p", "cbrt") for error in rows[name])
    assert sum("ulp: (" in line for line in lines) == len(rows["cbrt"]) * 2
