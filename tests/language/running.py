"""Helpers of the language tests: run expressions on the default device, make inputs, compare results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, f32, f64, i16, i32, i64, u16, u32, u64

Array = np.ndarray[Any, Any]

SIZES = [1, 7, 64, 257, 1000, 4099]
INTEGERS: list[DType] = [u16, i16, u32, i32, u64, i64]
FLOATS: list[DType] = [f32, f64]
SCALARS: list[DType] = [*INTEGERS, *FLOATS]


def supports(kind: DType) -> bool:
    """Whether the device has values of this type, in registers and in buffers."""
    # the others are computed with types that every device has
    info = vd.get_context().device_infos[0]
    return dt.component_type(kind) is not f64 or bool(info.float_64_support)


def on_nvidia() -> bool:
    """Whether the tests run on NVIDIA's driver."""
    return vd.get_context().device_infos[0].is_nvidia()


def on_swiftshader() -> bool:
    """Whether the tests run on Google's driver for processors."""
    return vd.get_context().device_infos[0].device_name.startswith("SwiftShader")


@functools.cache
def sine_error() -> float:
    """How far sines and cosines of float32 may be off: 2e-6, or what Vulkan allows if the device is loose.

    No device tells, so it is tried.
    """
    x = floats(f32, 257, 1, -3, 3)
    (found,) = evaluate(vc.sin, (f32, x))
    return 2e-6 if np.abs(found - np.sin(x.astype(float))).max() < 2e-6 else 2.0**-11


def need(*kinds: DType) -> None:
    """Skip the test unless the device has all these types."""
    for kind in kinds:
        if not supports(kind):
            pytest.skip(f"the device has no {kind.name}")


def host(kind: DType) -> np.dtype[Any]:
    """NumPy dtype of one component, or of a whole complex number."""
    return np.dtype(dt.to_numpy_dtype(kind if dt.is_complex(kind) else dt.component_type(kind)))


def bits(kind: DType) -> int:
    """Count of bits of a component."""
    return 8 * dt.component_type(kind).item_size


def buffer_of(kind: DType, values: Any) -> vd.Buffer[Any]:
    """One-dimensional buffer of `kind`, one element for each row of `values`."""
    array = np.ascontiguousarray(values, host(kind))
    buffer: vd.Buffer[Any] = vd.Buffer((len(array),), kind)
    buffer.write(array)
    return buffer


def filled(count: int, kind: DType, value: Any = 0) -> vd.Buffer[Any]:
    """Buffer of `count` elements whose components are all `value`."""
    return buffer_of(kind, np.full((count, *kind.true_numpy_shape), value, host(kind)))


def _stored_type(kind: DType) -> DType:
    return i32 if kind is dt.bool_ else kind


def _as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def result_types(rule: Callable[..., Any], kinds: Sequence[DType]) -> list[DType]:
    """Types that `rule` gives for registers of these types."""
    with vc.shader_context() as context:
        buffers = context.declare_input_arguments([Buff[kind] for kind in kinds])
        return [
            result.var_type for result in _as_list(rule(*(buffer[0].to_register() for buffer in buffers)))
        ]


def evaluate(
    rule: Callable[..., Any],
    *inputs: tuple[DType, Any],
    count: int | None = None,
    local_size: int = 64,
    interpret: bool = False,
) -> list[Array]:
    """Results of `rule`, one array each, for the rows of the inputs; on the device, or interpreted.

    `rule` gets a register for each input and returns a GPU value or a list of them.
    """
    rows = len(inputs[0][1]) if count is None else count
    types = [_stored_type(kind) for kind in result_types(rule, [kind for kind, _ in inputs])]
    distinct = list(dict.fromkeys(types))

    def kernel(*buffers: Any) -> None:
        i = vc.global_invocation_id().x
        sources, targets = buffers[: len(inputs)], buffers[len(inputs) :]
        results = _as_list(rule(*(source[i].to_register() for source in sources)))
        # the results of one type lie one after another in one buffer: devices bind only so many
        places = dict.fromkeys(distinct, 0)
        for kind, result in zip(types, results, strict=True):
            targets[distinct.index(kind)][i + places[kind] * rows] = result
            places[kind] += 1

    annotations = [Buff[kind] for kind in (*(kind for kind, _ in inputs), *distinct)]
    run = vd.shader(exec_size=rows, local_size=local_size, arg_type_annotations=annotations)(kernel)
    if interpret:
        arrays = [np.full((rows * types.count(k), *k.true_numpy_shape), 77, host(k)) for k in distinct]
        run.interpret(*(np.array(values, host(kind)) for kind, values in inputs), *arrays)
    else:
        outputs = [filled(rows * types.count(kind), kind, 77) for kind in distinct]
        run(*(buffer_of(kind, values) for kind, values in inputs), *outputs)
        arrays = [out.read(0) for out in outputs]
    pieces = {
        kind: list(np.split(array, types.count(kind))) for kind, array in zip(distinct, arrays, strict=True)
    }
    return [pieces[kind].pop(0) for kind in types]


def wrapped(values: Any, kind: DType) -> Array:
    """Python ints as integers of `kind`, which wrap around."""
    width, signed = bits(kind), dt.is_signed_dtype(kind)
    low = -(1 << (width - 1)) if signed else 0
    return np.array([(int(value) - low) % (1 << width) + low for value in values], host(kind))


def truncated(a: int, b: int) -> int:
    """Quotient of two ints, towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def integers(kind: DType, count: int, seed: int = 0) -> Array:
    """Integers of the whole range, the edges first."""
    info = np.iinfo(host(kind))
    edges = wrapped([0, 1, info.max, info.min, -1, 2, info.max - 1, info.min + 1, 7, -7], kind)
    drawn = np.random.default_rng(seed).integers(info.min, info.max, count, host(kind), endpoint=True)
    return np.concatenate([edges, drawn])[:count]


def floats(kind: DType, count: int, seed: int = 0, low: float = -10, high: float = 10) -> Array:
    """Evenly drawn floats of [low, high)."""
    return np.random.default_rng(seed).uniform(low, high, count).astype(host(kind))


def same(actual: Array, expected: Any, what: str = "") -> None:
    """Fail unless all values are equal; NaN equals NaN, and 0 equals -0."""
    np.testing.assert_array_equal(actual, expected, err_msg=what)


def close(actual: Array, expected: Any, rtol: float = 1e-6, atol: float = 0.0, what: str = "") -> None:
    """Fail unless all values are close, with equal NaNs and infinities."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=what)
