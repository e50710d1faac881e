"""Sample frequencies, and shifts of the zero frequency."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Array, Buffer, function_buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OverlapError
from vkdispatch.base.sharing.dlpack import has_dlpack
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import check_same_or_apart, is_number, is_same_memory, parse_axes, parse_int
from vkdispatch.families.stored import store_results
from vkdispatch.fft.arguments import check_like
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, d: float = 1.0) -> Array:
    """Return the frequencies of a spectrum of n values, like `numpy.fft.fftfreq`.

    Parameters
    ----------
    n
        Length of the signal, 1 or more.
    d
        Sample spacing; the frequencies are in cycles per its unit.

    Returns
    -------
    n numbers of float64: 0, 1, ..., -2, -1, divided by n d.

    Raises
    ------
    TypeError, ValueError
        `n` is not a positive int, or `d` is not a number other than 0.

    Examples
    --------
    >>> vd.fft.fftfreq(4, d=0.5)
    array([ 0. ,  0.5, -1. , -0.5])
    """
    return np.fft.fftfreq(*_parse_samples(n, d))


def rfftfreq(n: int, d: float = 1.0) -> Array:
    """Return the n // 2 + 1 frequencies of the half spectrum of n real numbers, like `numpy.fft.rfftfreq`.

    See `fftfreq`.

    Examples
    --------
    >>> vd.fft.rfftfreq(4, d=0.5)
    array([0. , 0.5, 1. ])
    """
    return np.fft.rfftfreq(*_parse_samples(n, d))


def _parse_samples(n: object, d: object) -> tuple[int, float]:
    """Return the number of samples and their spacing."""
    count = parse_int(n, "n", least=1)
    if not is_number(d):
        raise ArgumentTypeError(f"d: expected a number, got {describe(d)}")
    if not d:
        raise ArgumentValueError("d: expected a number other than 0, got 0")
    return count, float(d)


def fftshift(
    x: Any,
    axes: Sequence[int] | int | None = None,
    *,
    out: Buffer[Any] | None = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Move the zero frequency to the middle of each axis, like `numpy.fft.fftshift`.

    Parameters
    ----------
    x
        An array, which is shifted by NumPy, or a buffer of any dtype, which is shifted on the device.
    axes
        The axes; default: all.
    out
        For a buffer: the buffer for the result. It can be `x` if the axes have even lengths. None creates
        one.
    graph
        For a buffer: the graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A new array; or `out`, or the new buffer.

    Raises
    ------
    TypeError
        `out` or `graph` is given with an array.
    ValueError
        `out` has another shape or dtype, is `x` although an axis is odd, or an axis is repeated.
    AxisError
        There is no such axis of the buffer.

    Examples
    --------
    >>> vd.fft.fftshift(vd.asbuffer(np.arange(4, dtype=np.float32))).read(0)
    array([2., 3., 0., 1.], dtype=float32)
    """
    return _shift(x, axes, out, graph, inverse=False)


def ifftshift(
    x: Any,
    axes: Sequence[int] | int | None = None,
    *,
    out: Buffer[Any] | None = None,
    graph: CommandGraph | None = None,
) -> Any:
    """Undo `fftshift`, like `numpy.fft.ifftshift`; see `fftshift`.

    Examples
    --------
    >>> vd.fft.ifftshift(vd.asbuffer(np.array([2, 3, 0, 1], np.float32))).read(0)
    array([0., 1., 2., 3.], dtype=float32)
    """
    return _shift(x, axes, out, graph, inverse=True)


def _shift(
    x: Any, axes: Sequence[int] | int | None, out: object, graph: CommandGraph | None, *, inverse: bool
) -> Any:
    if not isinstance(x, Buffer):
        for name, value in (("out", out), ("graph", graph)):
            if value is not None:
                raise ArgumentTypeError(f"{name}: it is for buffers, and x is a {type(x).__name__}")
        if has_dlpack(x) and not hasattr(x, "__array__"):
            raise ArgumentTypeError(
                f"x: expected a vd.Buffer or an array that NumPy takes, got {type(x).__name__}; make a "
                "buffer with vd.from_dlpack(x)"
            )
        return np.fft.ifftshift(x, axes) if inverse else np.fft.fftshift(x, axes)
    shape = x.shape
    chosen = parse_axes(axes, len(shape), "axes")
    # the offset of the source along each axis
    steps = [0] * max(len(shape), _AXES)
    lengths = shape if len(shape) > _AXES else ()
    for axis in chosen:
        steps[axis] = shape[axis] // 2 if inverse else -(-shape[axis] // 2)
        steps[axis] %= max(shape[axis], 1)
    if out is None:
        target: Buffer[Any] = function_buffer(shape, x.var_type, context=x.context)
    else:
        target = check_like("out", out, "x", x)
    if not x.size:
        return target
    check_same_or_apart("out", target, "x", x)
    if is_same_memory(target, x):
        odd = [axis for axis in chosen if shape[axis] % 2 and shape[axis] > 1]
        if odd:
            raise OverlapError(
                "out: it shares memory with x, but only axes of even length can be shifted in place; "
                f"axis {odd[0]} has {shape[odd[0]]}; pass another buffer"
            )
        _make_swap(x.var_type, len(steps))(x, *steps, *lengths, graph=graph)
    elif any(steps):
        _make_roll(x.var_type, len(steps))(target, x, *steps, *lengths, graph=graph)
    else:
        copyto(target, x, graph=graph)
    return target


# Of buffers, in kernels. Where there are more, the lengths are arguments behind the steps.
_AXES = 3


def _source_index(buffer: Any, i: Any, numbers: Sequence[Any]) -> Any:
    """Return the source of the value at a flat index."""
    count = max(_AXES, len(numbers) // 2)
    steps, lengths = numbers[:count], numbers[count:] or (buffer.shape.x, buffer.shape.y, buffer.shape.z)
    places: list[Any] = []
    rest = i
    for axis in range(count - 1, 0, -1):
        places.insert(0, rest % lengths[axis])
        rest = rest // lengths[axis]
        rest = rest.to_register() if axis > 1 else rest
    index: Any = 0
    for place, length, step in zip((rest, *places), lengths, steps, strict=True):
        moved = (place + step).to_register()
        index = index * length + vc.select(moved >= length, moved - length, moved)
    return index.to_register()


@store_results
def _make_roll(kind: DType, axes: int) -> ShaderFunction:
    """Return the kernel that shifts from one buffer to another."""

    def roll(dst: Any, src: Any, *numbers: Any) -> None:
        i = vc.global_invocation_id().x
        dst[i] = src[_source_index(src, i, numbers)]

    return _make_kernel(roll, ("dst", "src"), kind, axes)


@store_results
def _make_swap(kind: DType, axes: int) -> ShaderFunction:
    """Return the kernel that shifts in place, by half of even axes."""

    def swap(dst: Any, *numbers: Any) -> None:
        i = vc.global_invocation_id().x
        other = _source_index(dst, i, numbers)
        # each of a pair finds the other, and the first swaps them
        with vc.if_block(i < other):
            here, there = dst[i].to_register(), dst[other].to_register()
            dst[i] = there
            dst[other] = here

    return _make_kernel(swap, ("dst",), kind, axes)


def _make_kernel(function: Any, buffers: tuple[str, ...], kind: DType, axes: int) -> ShaderFunction:
    from vkdispatch.shader.decorator import shader  # something is traced

    names = list("xyz") if axes <= _AXES else [f"{what}{k}" for what in ("step", "size") for k in range(axes)]
    decorate = shader(
        "dst.size",
        arg_type_annotations=[*[buffer[kind]] * len(buffers), *[constant[uint32]] * len(names)],
        arg_names=[*buffers, *names],
        rewrite=False,
    )
    return decorate(function)
