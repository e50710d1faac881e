"""Cosine and sine transforms as complex ones: maps that read and write, and calls."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, complex128, component_type, float16, float32, float64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import (
    check_same_or_apart,
    is_same_memory,
    parse_axes,
    parse_int,
    require_buffer,
)
from vkdispatch.fft import arguments
from vkdispatch.fft.arguments import factor
from vkdispatch.fft.calls import transform_axis
from vkdispatch.fft.plan.stages import add, multiply
from vkdispatch.fft.trace.ops import MemoryOp, read_op, write_op
from vkdispatch.fft.trace.transform import root_power
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.map import MappingFunction, map

# ---- Cosine and sine transforms as complex ones: the maps that read and write ----------------------------
#
# Each is a single complex transform along the axis. Its input map gathers and rotates the reals, and its
# output map rotates and scatters the spectrum. For a line of N reals x, SciPy defines
#
#     DCT-II   y[k] = 2 sum x[n] cos(pi k (2n + 1) / 2N)
#     DCT-III  y[k] = x[0] + 2 sum x[n] cos(pi n (2k + 1) / 2N), n > 0
#     DCT-IV   y[k] = 2 sum x[n] cos(pi (2n + 1) (2k + 1) / 4N)
#     DCT-I    y[k] = x[0] + (-1)^k x[N-1] + 2 sum x[n] cos(pi k n / (N - 1)), 0 < n < N - 1
#
# A sine transform is the cosine transform of the same type with signs and order changed before or after (Z.
# Wang, "Fast algorithms for the discrete W transform and for the discrete Fourier transform", 1984):
#
#     DST-II   of x is DCT-II of (-1)^n x[n], reversed
#     DST-III  of x is (-1)^k times DCT-III of x reversed
#     DST-IV   of x is (-1)^k times DCT-IV of x reversed
#
# and DST-I has a form of its own.


Family = Literal["dct", "dst"]


@record
class Recipe:
    """A cosine or sine transform along an axis.

    Attributes
    ----------
    family, type
        "dct" or "dst", 1 to 4.
    length, stride
        Values of a line and their distance in memory.
    kind
        dtype of the reals.
    orthogonal
        Whether the values at the ends are weighted so that the matrix of the transform is orthogonal.
    scale
        Factor of the result.
    """

    family: Family
    type: int
    length: int
    stride: int
    kind: DType
    orthogonal: bool
    scale: float

    @property
    def complex_length(self) -> int:
        """Length of the complex transform."""
        if self.type == 1:
            return 2 * (self.length - 1 if self.family == "dct" else self.length + 1)
        return self.length // 2 if self.type == 4 and self.length % 2 == 0 else self.length

    @property
    def inverse(self) -> bool:
        """Direction of the complex transform."""
        return self.type == 3

    @property
    def compute_type(self) -> DType:
        """Complex type of the computation."""
        return arguments.choose_compute_type(complex128 if self.kind is float64 else None)

    @property
    def real_type(self) -> DType:
        """Real type of the computation."""
        return component_type(self.compute_type)


@functools.lru_cache(maxsize=1024)
def make_maps(recipe: Recipe) -> tuple[MappingFunction, MappingFunction]:
    """Return the input map and the output map of a transform."""
    read_line, write_line = _FORMS[_find_form(recipe)]

    def read(source: Any) -> None:
        op = read_op()
        real, imaginary = read_line(_Source(recipe, source, op), recipe, op.fft_index)
        op.register[:] = vc.to_dtype(recipe.compute_type, real, imaginary)

    def write(target: Any) -> None:
        op = write_op()
        write_line(_Target(recipe, target, op), recipe, op.fft_index, op.register)

    buffers = [vc.Buffer[recipe.kind]]  # type: ignore[name-defined]
    return map(read, input_types=buffers), map(write, input_types=buffers)


def _find_form(recipe: Recipe) -> str:
    if recipe.type == 1:
        return recipe.family + "1"
    return f"4{'odd' if recipe.length % 2 else 'even'}" if recipe.type == 4 else str(recipe.type)


def _origin(recipe: Recipe, op: MemoryOp) -> Any:
    """Return the flat index of the line of a value of the complex transform."""
    number = op.spot.line.number
    if recipe.stride == 1:
        return multiply(number, recipe.length)
    return add(multiply(number // recipe.stride, recipe.length * recipe.stride), number % recipe.stride)


class _Source:
    """The input line, as that of a cosine transform."""

    def __init__(self, recipe: Recipe, buffer: Any, op: MemoryOp) -> None:
        self.recipe, self.buffer = recipe, buffer
        self.origin = _origin(recipe, op)

    def __call__(self, index: Any) -> Any:
        recipe = self.recipe
        sine = recipe.family == "dst"
        place = (recipe.length - 1) - index if sine and recipe.type in (3, 4) else index
        value = self.buffer[add(self.origin, multiply(place, recipe.stride))].to_dtype(recipe.real_type)
        return _alternate_sign(value, index) if sine and recipe.type == 2 else value


class _Target:
    """The output line, as that of a cosine transform."""

    def __init__(self, recipe: Recipe, buffer: Any, op: MemoryOp) -> None:
        self.recipe, self.buffer = recipe, buffer
        self.origin = _origin(recipe, op)

    def write(self, index: Any, value: Any, factor: float = 1.0) -> None:
        recipe = self.recipe
        sine = recipe.family == "dst"
        if factor * recipe.scale != 1:
            value = value * (factor * recipe.scale)
        place = (recipe.length - 1) - index if sine and recipe.type == 2 else index
        if sine and recipe.type in (3, 4):
            value = _alternate_sign(value, index)
        self.buffer[add(self.origin, multiply(place, recipe.stride))] = value.to_dtype(recipe.kind)


def _alternate_sign(value: Any, index: Any) -> Any:
    value = value.to_register()
    return vc.select(index % 2 == 0, value, -value)


def _weigh(value: Any, here: Any, weight: float) -> Any:
    """Return a value, multiplied by a weight under a condition."""
    return value * vc.select(here, vc.to_dtype(value.var_type, weight), vc.to_dtype(value.var_type, 1))


# ---- types II and III ------------------------------------------------------------------------------


def _find_even_or_odd(index: Any, length: int) -> Any:
    """Return the source of value `index` of v: first the even positions, then the odd ones reversed."""
    double = 2 * index
    return vc.select(double < length, double, (2 * length - 1) - double)


def _read_2(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Reorder x into v, whose N-point spectrum V gives y[k] = 2 Re(exp(-i pi k / 2N) V[k]).

    J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Transactions on Acoustics, Speech
    and Signal Processing 28 (1980).
    """
    return source(_find_even_or_odd(index, recipe.length)), 0


def _write_2(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    root = root_power(index, 4 * recipe.length, recipe.compute_type, False)
    outcome = 2 * (root.real * value.real - root.imag * value.imag)
    if recipe.orthogonal:
        outcome = _weigh(outcome, index == 0, math.sqrt(0.5))
    target.write(index, outcome)


def _read_3(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Compute V[k] = exp(i pi k / 2N) (x[k] - i x[N - k]) with x[N] = 0: the inverse of type II."""
    first = index == 0
    here = source(index).to_register()
    there = source(vc.select(first, index, recipe.length - index)).to_register()
    there = vc.select(first, vc.to_dtype(recipe.real_type, 0), there).to_register()
    if recipe.orthogonal:
        here = _weigh(here, first, math.sqrt(2)).to_register()
    root = root_power(index, 4 * recipe.length, recipe.compute_type, True)
    return root.real * here + root.imag * there, root.imag * here - root.real * there


def _write_3(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    target.write(_find_even_or_odd(index, recipe.length).to_register(), value.real)


# ---- type IV ---------------------------------------------------------------------------------------


def _read_4_even(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Compute t[n] = w^(4n + 1) (x[2n] + i x[N - 1 - 2n]) with w = exp(-i pi / 4N), of half the length.

    With T its spectrum and c[k] = w^(4k) T[k], y[2k] = 2 Re c[k] and y[N - 1 - 2k] = -2 Im c[k]: the phases
    are (4n + 1) (4k + 1) / 4N of pi, those of the definition. It is the scheme of P. Duhamel, Y. Mahieux and
    J. P. Petit, "A fast algorithm for the implementation of filter banks based on time domain aliasing
    cancellation", ICASSP 1991.
    """
    double = (2 * index).to_register()
    here = source(double).to_register()
    there = source((recipe.length - 1) - double).to_register()
    root = root_power(2 * double + 1, 8 * recipe.length, recipe.compute_type, False)
    return root.real * here - root.imag * there, root.real * there + root.imag * here


def _write_4_even(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    double = (2 * index).to_register()
    root = root_power(2 * double, 8 * recipe.length, recipe.compute_type, False)
    target.write(double, root.real * value.real - root.imag * value.imag, 2)
    last = ((recipe.length - 1) - double).to_register()
    target.write(last, root.real * value.imag + root.imag * value.real, -2)


def _fold(index: Any, length: int) -> tuple[Any, Any]:
    """Return the position in a line that an odd multiple m stands for, and whether the value is negated.

    cos(pi m q / 4N) with q odd, as a function of m (odd, below 9N), changes sign from m to m + 4N and from m
    to 4N - m, and has period 8N. So each m stands for one of 1, 3 ... 2N - 1, which is 2n + 1.
    """
    within = vc.select(index >= 8 * length, index - 8 * length, index).to_register()
    far = within >= 4 * length
    within = vc.select(far, within - 4 * length, within).to_register()
    past = within > 2 * length
    within = vc.select(past, 4 * length - within, within)
    return (within // 2).to_register(), far != past


def _read_4_odd(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Reorder x and change signs so that an N-point transform gives type IV, for odd N.

    Among the four odd numbers modulo 8N that stand for an x[n] (see `_fold`) exactly one is N modulo 8. So
    with m = N + 8j and q = N + 8l, where j and l run over all residues modulo N, m q / 8N is N / 8 + j + l +
    8 j l / N, and

        y[q] = 2 Re(exp(-i pi N / 4) sum x[m] exp(-2 pi i 8 l j / N)):

    value 8 l modulo N of an N-point spectrum, rotated by a constant. That it can be done with reordering
    alone is due to S. C. Chan and K. L. Ho, "Direct methods for computing discrete sinusoidal transforms",
    IEE Proceedings F 137 (1990); the index map here is derived anew.
    """
    place, negated = _fold((8 * index + recipe.length).to_register(), recipe.length)
    value = source(place).to_register()
    return vc.select(negated, -value, value), 0


def _write_4_odd(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    n = recipe.length
    # 8l is index + t N with the t below 8 that makes it divisible, as N is its own inverse modulo 8
    t = (8 - (index * (n % 8)) % 8) % 8
    place, negated = _fold((index + (t + 1) * n).to_register(), n)
    angle = math.pi / 4 * (n % 8)
    outcome = (value.real * math.cos(angle) + value.imag * math.sin(angle)).to_register()
    target.write(place, vc.select(negated, -outcome, outcome), 2)


# ---- type I ----------------------------------------------------------------------------------------


def _read_cosine_1(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Extend x evenly to 2(N - 1) values, whose spectrum is real: its first N values are type I."""
    n = recipe.length
    place = vc.select(index < n, index, recipe.complex_length - index).to_register()
    value = source(place)
    if recipe.orthogonal:
        value = _weigh(value, vc.logical_or(place == 0, place == n - 1), math.sqrt(2))
    return value, 0


def _write_cosine_1(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    n = recipe.length
    with vc.if_block(index < n):
        outcome = value.real
        if recipe.orthogonal:
            outcome = _weigh(outcome, vc.logical_or(index == 0, index == n - 1), math.sqrt(0.5))
        target.write(index, outcome)


def _read_sine_1(source: _Source, recipe: Recipe, index: Any) -> tuple[Any, Any]:
    """Extend x oddly to 2(N + 1) values: 0, x, 0, -x backwards. Values 1 to N of the spectrum are -i y."""
    n = recipe.length
    upper = index > n + 1
    nothing = vc.logical_or(index == 0, index == n + 1)
    place = vc.select(upper, (recipe.complex_length - 1) - index, index - 1)
    value = source(vc.select(nothing, 0 * index, place).to_register()).to_register()
    value = vc.select(upper, -value, value)
    return vc.select(nothing, vc.to_dtype(recipe.real_type, 0), value), 0


def _write_sine_1(target: _Target, recipe: Recipe, index: Any, value: Any) -> None:
    with vc.if_block(vc.logical_and(index >= 1, index <= recipe.length)):
        target.write(index - 1, value.imag, -1)


_FORMS: dict[str, tuple[Any, Any]] = {
    "dct1": (_read_cosine_1, _write_cosine_1),
    "dst1": (_read_sine_1, _write_sine_1),
    "2": (_read_2, _write_2),
    "3": (_read_3, _write_3),
    "4even": (_read_4_even, _write_4_even),
    "4odd": (_read_4_odd, _write_4_odd),
}


# ---- Calls of cosine and sine transforms: one complex transform along each axis, between two maps --------


_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


@record(eq=False)
class CosineOptions:
    """The options of a cosine or sine transform, as the caller passed them; see `vkdispatch.fft.dct`.

    `axis_name` is the name of the argument that gives the axes.
    """

    type: Any = 2
    axes: Sequence[int] | int | None = None
    norm: arguments.Norm | None = None
    graph: CommandGraph | None = None
    out: Buffer[Any] | None = None
    orthogonalize: bool | None = None
    buffer_shape: Sequence[int] | None = None
    print_shader: bool = False
    axis_name: str = "axes"


def cosine_transform(family: Family, inverse: bool, buffer: object, options: CosineOptions) -> Buffer[Any]:
    """Transform along some axes and return the result; see `vkdispatch.fft.dct`."""
    buffer = _require_reals(buffer)
    shape = arguments.parse_shape(buffer.shape if options.buffer_shape is None else options.buffer_shape)
    if math.prod(shape) != buffer.size:
        raise ArgumentValueError(f"buffer_shape: {shape} does not fit a buffer of {buffer.size} values")
    number, norm = _parse_type(options.type), arguments.parse_norm(options.norm)
    axes = parse_axes(options.axes, len(shape), options.axis_name)
    if family == "dct" and number == 1:
        for axis in axes:
            if shape[axis] < 2:
                raise ArgumentValueError(
                    f"type: DCT-I needs at least 2 values along an axis, got shape {shape} and axis {axis}"
                )
    out = options.out
    if out is None:
        target: Buffer[Any] = function_buffer(buffer.shape, buffer.var_type)
    else:
        target = arguments.check_like("out", out, "buffer", buffer)
        check_same_or_apart("out", target, "buffer", buffer)
    weighted = norm == "ortho" if options.orthogonalize is None else bool(options.orthogonalize)
    source = buffer
    for axis in axes:
        length, stride = shape[axis], math.prod(shape[axis + 1 :])
        period = 2 * (length + (0 if number > 1 else -1 if family == "dct" else 1))
        recipe = Recipe(
            family,
            _INVERSE_TYPE[number] if inverse else number,
            length,
            stride,
            buffer.var_type,
            weighted and (number in (2, 3) or (number == 1 and family == "dct")),
            factor(norm, inverse, period),
        )
        input_map, output_map = make_maps(recipe)
        transform_axis(
            (target, source),
            arguments.Options(
                graph=options.graph,
                print_shader=options.print_shader,
                buffer_shape=(math.prod(shape[:axis]), recipe.complex_length, stride),
                axis=1,
                inverse=recipe.inverse,
                normalize=False,
                input_map=input_map,
                output_map=output_map,
                compute_type=recipe.compute_type,
            ),
        )
        source = target
    if not axes and not is_same_memory(target, buffer):
        copyto(target, buffer, graph=options.graph)
    return target


def _require_reals(buffer: object) -> Buffer[Any]:
    reals = require_buffer(buffer, "buffer")
    if reals.var_type not in (float16, float32, float64):
        raise ArgumentValueError(
            f"buffer: expected float32, float64 or float16, got {reals.var_type.name}; the transform of "
            "complex numbers is that of their real and of their imaginary parts"
        )
    return reals


def _parse_type(type: object) -> int:
    number = parse_int(type, "type", wanted="1, 2, 3 or 4")
    if number not in _INVERSE_TYPE:
        raise ArgumentValueError(f"type: expected 1, 2, 3 or 4, got {number}")
    return number
