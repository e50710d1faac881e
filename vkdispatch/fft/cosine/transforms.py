"""Calls of cosine and sine transforms: one complex transform along each axis, between two maps."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import float16, float32, float64
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axes, parse_int
from vkdispatch.families.operands import check_same_or_apart, is_same_memory
from vkdispatch.fft.arguments.buffers import check_like, require_buffer
from vkdispatch.fft.arguments.norms import Norm, factor, parse_norm
from vkdispatch.fft.arguments.options import Options
from vkdispatch.fft.arguments.shapes import parse_shape
from vkdispatch.fft.cosine.maps import Family, Recipe, make_maps
from vkdispatch.fft.many.calls import transform_axis
from vkdispatch.shader.copying import copyto

_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


@record(eq=False)
class CosineOptions:
    """The options of a cosine or sine transform, as the caller passed them; see `vkdispatch.fft.dct`.

    `axis_name` is the name of the argument that gives the axes.
    """

    type: Any = 2
    axes: Sequence[int] | int | None = None
    norm: Norm | None = None
    graph: CommandGraph | None = None
    out: Buffer[Any] | None = None
    orthogonalize: bool | None = None
    buffer_shape: Sequence[int] | None = None
    print_shader: bool = False
    axis_name: str = "axes"


def cosine_transform(family: Family, inverse: bool, buffer: object, options: CosineOptions) -> Buffer[Any]:
    """Transform along some axes and return the result; see `vkdispatch.fft.dct`."""
    buffer = _require_reals(buffer)
    shape = parse_shape(buffer.shape if options.buffer_shape is None else options.buffer_shape)
    if math.prod(shape) != buffer.size:
        raise ArgumentValueError(f"buffer_shape: {shape} does not fit a buffer of {buffer.size} values")
    number, norm = _parse_type(options.type), parse_norm(options.norm)
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
        target = check_like("out", out, "buffer", buffer)
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
            Options(
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
