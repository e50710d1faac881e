"""Cosine and sine transforms of real buffers, with SciPy's definitions and normalization."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.aliasing import is_same_memory
from vkdispatch.arrays.axes import checked_axes
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.numbers import checked_int
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import float16, float32, float64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.api.transforms import fft
from vkdispatch.fft.arguments.buffers import require_buffer
from vkdispatch.fft.arguments.norms import Norm, checked_norm, factor
from vkdispatch.fft.arguments.shapes import checked_shape
from vkdispatch.fft.cosine.maps import Family, Recipe, maps_of
from vkdispatch.shader.copying import copyto

_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


@array_function
def dct(
    buffer: Buffer[Any],
    type: int = 2,
    axis: int = -1,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the discrete cosine transform along an axis, batched over all others, as `scipy.fft.dct`.

    It is one complex transform, into which the reordering and the rotations are fused: of the length N for
    types II, III, and IV of odd N, of N / 2 for type IV of even N, of 2(N - 1) for type I.

    Parameters
    ----------
    buffer
        Reals: float32, float64 or float16 (which is computed in float32). Left as it is.
    type
        1, 2, 3 or 4; type 1 needs at least 2 values.
    axis
        Negative ones count from the end.
    norm
        "backward" (as None): nothing here, and the inverse is divided by 2N (type I: 2(N - 1)). "forward":
        the other way round. "ortho": both by the square root.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.
    out
        Where the outcome goes: a buffer of the same shape and dtype, maybe `buffer` itself. None makes one.
    orthogonalize
        Whether values at the ends are weighted such that, with "ortho", the matrix is orthogonal. Default:
        only with "ortho".
    buffer_shape
        Shape of the data, of any number of axes; default: the buffer's.
    print_shader
        Whether to print the kernel.

    Returns
    -------
    `out`, or the new buffer.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong, such as a buffer of complex numbers.
    AxisError
        There is no such axis.
    """
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dct", buffer, type, (axis,), False, *options, name="axis")


@array_function
def idct(
    buffer: Buffer[Any],
    type: int = 2,
    axis: int = -1,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the inverse of `dct` of the same type and norm, as `scipy.fft.idct`; see `dct`."""
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dct", buffer, type, (axis,), True, *options, name="axis")


@array_function
def dst(
    buffer: Buffer[Any],
    type: int = 2,
    axis: int = -1,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the discrete sine transform along an axis, batched over all others, as `scipy.fft.dst`.

    The complex transform has the length of that of `dct`, but 2(N + 1) for type I, which takes lines of one
    value too and is normalized by that number. All else is as in `dct`.
    """
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dst", buffer, type, (axis,), False, *options, name="axis")


@array_function
def idst(
    buffer: Buffer[Any],
    type: int = 2,
    axis: int = -1,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the inverse of `dst` of the same type and norm, as `scipy.fft.idst`; see `dct`."""
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dst", buffer, type, (axis,), True, *options, name="axis")


@array_function
def dctn(
    buffer: Buffer[Any],
    type: int = 2,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the cosine transform along some axes (default: all), as `scipy.fft.dctn`; see `dct`.

    The first axis is transformed from `buffer` to `out`, the others there.
    """
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dct", buffer, type, axes, False, *options)


@array_function
def idctn(
    buffer: Buffer[Any],
    type: int = 2,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the inverse of `dctn`, as `scipy.fft.idctn`; see `dctn`."""
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dct", buffer, type, axes, True, *options)


@array_function
def dstn(
    buffer: Buffer[Any],
    type: int = 2,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the sine transform along some axes (default: all), as `scipy.fft.dstn`; see `dctn`."""
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dst", buffer, type, axes, False, *options)


@array_function
def idstn(
    buffer: Buffer[Any],
    type: int = 2,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    out: Buffer[Any] | None = None,
    orthogonalize: bool | None = None,
    buffer_shape: Sequence[int] | None = None,
    print_shader: bool = False,
) -> Buffer[Any]:
    """Return the inverse of `dstn`, as `scipy.fft.idstn`; see `dctn`."""
    options = (norm, graph, out, orthogonalize, buffer_shape, print_shader)
    return cosine_transform("dst", buffer, type, axes, True, *options)


# ---- what they share -------------------------------------------------------------------------------


def cosine_transform(
    family: Family,
    buffer: Any,
    type: Any,
    axes: Any,
    inverse: bool,
    norm: Any,
    graph: CommandGraph | None,
    out: Any,
    orthogonalize: bool | None,
    buffer_shape: Any,
    shown: bool,
    name: str = "axes",
) -> Buffer[Any]:
    """Transform along some axes; for the arguments see `dct`."""
    buffer = _checked_reals(buffer)
    shape = checked_shape(buffer.shape if buffer_shape is None else buffer_shape)
    if math.prod(shape) != buffer.size:
        raise ArgumentValueError(f"buffer_shape: {shape} is not what a buffer of {buffer.size} values holds")
    number, norm = _checked_type(type), checked_norm(norm)
    chosen = checked_axes(axes, len(shape), name)
    if family == "dct" and number == 1:
        for axis in chosen:
            if shape[axis] < 2:
                raise ArgumentValueError(
                    f"type: DCT-I needs at least 2 values along an axis, got shape {shape} and axis {axis}"
                )
    target = _checked_out(out, buffer)
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    source = buffer
    for axis in chosen:
        length, stride = shape[axis], math.prod(shape[axis + 1 :])
        period = 2 * (length + (0 if number > 1 else -1 if family == "dct" else 1))
        recipe = Recipe(
            family,
            _INVERSE_TYPE[number] if inverse else number,
            length,
            stride,
            buffer.var_type,
            orthogonal and (number in (2, 3) or (number == 1 and family == "dct")),
            factor(norm, inverse, period),
        )
        input_map, output_map = maps_of(recipe)
        fft(
            target,
            source,
            buffer_shape=(math.prod(shape[:axis]), recipe.complex_length, stride),
            axis=1,
            inverse=recipe.inverse,
            normalize_inverse=False,
            input_map=input_map,
            output_map=output_map,
            compute_type=recipe.compute_type,
            graph=graph,
            print_shader=shown,
        )
        source = target
    if not chosen and not is_same_memory(target, buffer):
        copyto(target, buffer, graph=graph)
    return target


def _checked_reals(buffer: Any) -> Buffer[Any]:
    given: Buffer[Any] = require_buffer(buffer, "buffer")
    if given.var_type not in (float16, float32, float64):
        raise ArgumentValueError(
            f"buffer: expected float32, float64 or float16, got {given.var_type.name}; the transform of "
            "complex numbers is that of their real and of their imaginary parts"
        )
    return given


def _checked_type(type: Any) -> int:
    number = checked_int(type, "type", wanted="1, 2, 3 or 4")
    if number not in _INVERSE_TYPE:
        raise ArgumentValueError(f"type: expected 1, 2, 3 or 4, got {number}")
    return number


def _checked_out(out: Any, buffer: Buffer[Any]) -> Buffer[Any]:
    if out is None:
        return function_buffer(buffer.shape, buffer.var_type)
    given: Buffer[Any] = require_buffer(out, "out")
    if given.shape != buffer.shape or given.var_type is not buffer.var_type:
        raise ArgumentValueError(
            f"out: expected shape {buffer.shape} of {buffer.var_type.name} as buffer has, got shape "
            f"{given.shape} of {given.var_type.name}"
        )
    return given
