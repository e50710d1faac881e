"""Real transforms of long lines on a CPU, by complex ones of half the length in several passes.

With the names of `line.real`, the passes write Z[k] to the place of X[k], and another kernel computes X[k]
and X[h - k] from Z[k] and Z[h - k]. In an inverse transform that kernel comes first.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, complex32
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.line.real import combine, spectrum_pair
from vkdispatch.fft.many.passes import Lines, make_passes
from vkdispatch.fft.many.program import Program, Step
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.long_lines import choose_factors
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.trace.butterflies import multiply_by_i
from vkdispatch.fft.trace.ends import Element, Ends, Load, Store
from vkdispatch.fft.trace.roots import root_power
from vkdispatch.fft.trace.words import annotation_of, unwrap
from vkdispatch.shader.shader_function import ShaderFunction


def make_long_real_fft(transform: Transform) -> Program | None:
    """Make the kernels of a real transform of even length in place, or None if there are none."""
    half, kind = transform.length // 2, transform.compute_type
    # the buffer must hold the values between the kernels without loss
    if (
        not device_facts().is_cpu
        or transform.length % 2
        or kind is not transform.output_type
        or kind is complex32
    ):
        return None
    factors = choose_factors(half, kind)
    if factors is None:
        return None
    count = transform.count
    name = transform.name
    kernel = _make_pair_kernel(f"{name}_pairs", count, half, kind, transform.inverse, transform.factor)
    pairs = Step(kernel, True, True, ())
    plan = make_passes(name, Lines(count, half, 1), factors, _rows(half, kind), kind, transform.inverse)
    steps = (pairs, *plan.steps) if transform.inverse else (*plan.steps, pairs)
    return Program(name, steps, tuple((size, kind) for size in plan.scratch), None)


def _rows(half: int, kind: DType) -> Ends:
    """Return the ends of lines of `half` values in rows of one more."""

    def place(element: Element) -> Any:
        return add(multiply(element.outer, half + 1), element.index)

    def load(arguments: Sequence[Any]) -> Load:
        values = unwrap(arguments[0])
        return lambda element: hold(values[place(element)])

    def store(arguments: Sequence[Any]) -> Store:
        values = unwrap(arguments[0])
        return lambda element, value: values.__setitem__(place(element), value)

    return Ends((annotation_of(kind),), (annotation_of(kind),), load, store)


def _make_pair_kernel(
    name: str, count: int, half: int, kind: DType, inverse: bool, scale: float
) -> ShaderFunction:
    pairs = half // 2 + 1
    with vc.shader_context() as context:
        (argument,) = context.declare_input_arguments([annotation_of(kind)])
        values = unwrap(argument)
        flat = vc.global_invocation_id().x
        k, row = hold(flat % pairs), hold(flat // pairs * (half + 1))
        near, far = hold(row + k), hold(row + half - k)

        def load(index: Any) -> Any:
            return hold(values[index])

        def store(index: Any, value: Any) -> None:
            values[index] = value if scale == 1 else value * scale

        root = root_power(k, 2 * half, kind, inverse)
        (_join_pair if inverse else _split_pair)(k, row, near, far, root, load, store)
        description = context.get_description(name)
    return ShaderFunction(description, None, None, count * pairs)


def _split_pair(
    k: Any, row: Any, near: Any, far: Any, root: Any, load: Callable[[Any], Any], store: Any
) -> None:
    """Compute X[k] and X[h - k] from Z[k] and Z[h - k]; Z[h] is Z[0]."""
    a, b = load(near), load(vc.select(k == 0, row, far))
    left, right = spectrum_pair(a, b, lambda value: hold(value * root))
    store(near, left)
    store(far, right)


def _join_pair(
    k: Any, row: Any, near: Any, far: Any, root: Any, load: Callable[[Any], Any], store: Any
) -> None:
    """Compute Z[k] and Z[h - k] from X[k] and X[h - k]."""
    a, b = load(near), load(far)
    with vc.if_block(k == 0):
        # these imaginary parts are zero for real lines
        a.imag, b.imag = 0, 0
    total, difference = combine(a, b)
    odd = hold(hold(multiply_by_i(difference, 1)) * root)
    store(near, total + odd)
    opposite = hold(total - odd)
    with vc.if_block(k > 0):
        store(far, vc.to_complex(opposite.real, -opposite.imag))
