"""Calls of transforms: check the arguments, choose the kernels, and launch them or record them."""

import math
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.compiler.ir.location import fixed_place
from vkdispatch.families.operands import parse_axes, require_buffer
from vkdispatch.families.stored import store_all_results
from vkdispatch.fft import arguments
from vkdispatch.fft.arguments import Options
from vkdispatch.fft.kernels.context import fft_context, trace_for_maps
from vkdispatch.fft.kernels.passes import Program, make_column_fft, make_long_fft, make_long_real_fft
from vkdispatch.fft.kernels.planes import make_plane_kernel
from vkdispatch.fft.kernels.real import make_real_kernel
from vkdispatch.fft.kernels.special_lengths import make_staged_kernel
from vkdispatch.fft.plan import passes as plans
from vkdispatch.fft.plan.passes import Pass, Transform
from vkdispatch.fft.plan.planes import plan_planes
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.trace.ops import tracing_for
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The choice of the kernel of a transform, which is made once for equal transforms --------------------


def get_fft_kernel(transform: Transform) -> Any:
    """Return the kernel of a transform. Raises ValueError if its lines are too long."""
    return build_fft_kernel(transform, plans.device_limits())


@store_all_results
@fixed_place()
def build_fft_kernel(transform: Transform, _limits: object) -> Any:
    """Make the kernel of a transform for devices of some limits: a ShaderFunction or a Program."""
    if transform.r2c:
        real = _make_real_fft(transform)
        if real is not None:
            return real
    staged = _make_staged_fft(transform)
    if staged is not None:
        return staged
    plan = plans.plan_pass(transform.shape, transform.axis, transform.compute_type)
    if plan is None:
        with tracing_for(kernel=transform.kernel_index):
            return make_long_fft(transform)
    # on a CPU, an exchange in workgroup memory takes longer than another launch
    columns = None if plan.layout is None else make_column_fft(transform)
    if columns is not None:
        return columns
    fewer = plan if not transform.is_mapped else plans.plan_for_long_maps(plan, transform)
    return trace_for_maps(lambda plan, most: _trace(transform, plan, most), plan, fewer)


def _trace(transform: Transform, plan: Pass, most: int | None) -> ShaderFunction:
    """Trace a transform in one pass, whose maps have at most so many statements."""
    r2c, inverse = transform.r2c, transform.inverse
    with fft_context(
        transform.shape,
        transform.axis,
        compute_type=transform.compute_type,
        name=transform.name,
        plan=plan,
        most=most,
    ) as context:
        io = context.make_io_manager(
            transform.output_map,
            transform.output_type,
            transform.input_type,
            transform.input_map,
            separate=transform.separate,
        )
        with tracing_for(kernel=transform.kernel_index):
            io.read_input(r2c=r2c, inverse=inverse, signal_range=transform.signal_range)
            context.execute(inverse)
            if inverse and transform.normalize:
                context.registers.normalize()
            if transform.scale != 1:
                context.registers.scale(transform.scale)
            io.write_output(r2c=r2c, inverse=inverse)
    return context.get_callable()


def _make_staged_fft(transform: Transform) -> ShaderFunction | None:
    """Return the kernel of a transform of short contiguous lines; None for others."""
    if transform.is_mapped or transform.r2c or transform.signal_range is not None:
        return None
    plan = plans.plan_staged(transform.shape, transform.axis, transform.compute_type)
    return None if plan is None else make_staged_kernel(plan, transform)


def _make_real_fft(transform: Transform) -> ShaderFunction | Program | None:
    """Return the kernel of a real transform by a complex one of half the length, or None if there is none."""
    if transform.is_mapped or transform.separate or transform.signal_range is not None:
        return None
    plan = plans.plan_real(transform.count, transform.length, transform.compute_type)
    if plan is None:
        return make_long_real_fft(transform)
    return make_real_kernel(plan, transform)


def get_plane_kernel(transform: Transform) -> ShaderFunction | None:
    """Return the kernel that transforms the last two axes in place, or None if there is none.

    `transform` is that of the last axis, with the normalization of both.
    """
    return build_plane_kernel(transform, plans.device_limits()) if find_planner().has_planes else None


@store_all_results
@fixed_place()
def build_plane_kernel(transform: Transform, _limits: object) -> ShaderFunction | None:
    """Make the kernel of `get_plane_kernel` for devices of some limits."""
    shape = transform.shape
    plan = plan_planes(math.prod(shape[:-2]), shape[-2], shape[-1], transform.compute_type)
    return None if plan is None else make_plane_kernel(plan, transform)


Types = tuple[DType | None, DType | None]


def resolve_types(options: Options, buffers: Sequence[Any]) -> Types:
    """Return the complex types of the input and of the output, or None if a map reads or writes.

    Raises
    ------
    TypeError, ValueError
        A map is not a mapping function, or a type is not complex.
    """
    input_map = arguments.parse_map(options.input_map, "input_map")
    output_map = arguments.parse_map(options.output_map, "output_map")
    output_type = arguments.resolve_output_type(buffers, output_map, options.output_type)
    kinds = options.input_type, output_type
    return arguments.resolve_input_type(buffers, input_map, output_map, *kinds), output_type


def parse_transform(
    options: Options, buffers: Sequence[Any], types: Types, kernel_type: DType | None = None
) -> Transform:
    """Return the transform along one axis that the options of a call describe.

    Parameters
    ----------
    options, buffers
        The options and the arguments of the call.
    types
        Complex types of the input and of the output; see `resolve_types`.
    kernel_type
        Complex type of a convolution's kernel.
    """
    shape, axis = parse_shape_and_axis(buffers, options)
    if options.r2c:
        arguments.require_neighbours(shape, axis)
    inverse = bool(options.inverse)
    normalize, scale = arguments.resolve_scaling(options.norm, inverse, bool(options.normalize), shape[axis])
    compute_type = arguments.resolve_compute_type(options.compute_type, *types, kernel_type)
    signal_range = arguments.parse_range(options.signal_range, shape[axis])
    r2c, maps = bool(options.r2c), (options.input_map, options.output_map)
    return Transform(
        shape, axis, compute_type, inverse, normalize, r2c, *maps, *types, signal_range, scale=scale
    )


def parse_shape_and_axis(buffers: Sequence[Any], options: Options) -> tuple[tuple[int, ...], int]:
    """Return the shape of the data, by default that of the first buffer, and the axis from 0 on.

    Raises
    ------
    TypeError, ValueError
        One is invalid, or the axis is the one along which the buffer holds half a spectrum.
    """
    if options.buffer_shape is not None:
        shape = arguments.parse_shape(options.buffer_shape)
        return shape, arguments.parse_axis(options.axis, len(shape))
    first = next((value for value in buffers if isinstance(value, Buffer)), None)
    if first is None:
        raise ArgumentValueError("buffer_shape: required, because no argument is a buffer")
    shape = arguments.parse_shape(
        first.real_shape if isinstance(first, RFFTBuffer) and options.r2c else first.shape
    )
    axis = arguments.parse_axis(options.axis, len(shape))
    if isinstance(first, RFFTBuffer) and not options.r2c and axis == len(shape) - 1:
        raise ArgumentTypeError(
            "buffer: an RFFTBuffer holds real numbers or half a spectrum along its last axis; use "
            "vd.fft.rfft and irfft, or pass a complex buffer"
        )
    return shape, axis


def launch(name: str, transform: Transform, buffers: Sequence[Any], options: Options) -> None:
    """Check the arguments of a transform's kernel, and launch or record it. `name` is the caller's."""
    has_two_sides = transform.is_mapped or transform.separate
    sides = list_sides(transform) if has_two_sides else [("buffer", 1)]
    arguments.require_count(name, buffers, sides)
    require_room(transform, buffers[0], buffers[-1])
    arguments.launch_kernel(get_fft_kernel(transform), buffers, options)


def require_room(transform: Transform, target: object, source: object) -> None:
    """Raise TypeError unless what no map writes or reads is a buffer, ValueError if it is too small."""
    elements = math.prod(transform.shape)
    if transform.r2c:
        elements = elements // transform.length * (transform.length // 2 + 1)
    if transform.output_type is not None:
        arguments.require_room(target, elements, transform.output_type, "output buffer")
    if transform.input_type is not None:
        arguments.require_room(source, elements, transform.input_type, "input buffer")


def list_sides(maps: Options | Transform) -> list[tuple[str, int]]:
    """Return how many arguments the output and the input have."""
    return [
        ("output", arguments.argument_count(maps.output_map)),
        ("input", arguments.argument_count(maps.input_map)),
    ]


def transform_axis(buffers: Sequence[Any], options: Options) -> None:
    """Transform along one axis; see `vkdispatch.fft.fft`."""
    arguments.require_any(buffers, "a transform needs at least one buffer")
    transform = parse_transform(options, buffers, resolve_types(options, buffers))
    launch("fft", transform, buffers, options)


def transform_last_axes(name: str, buffers: Sequence[Any], count: int, options: Options) -> None:
    """Transform the last `count` axes; see `vkdispatch.fft.fft2`.

    The input map belongs to the first pass and the output map to the last.
    """
    arguments.require_any(buffers, "a transform needs at least one buffer")
    input_type, output_type = resolve_types(options, buffers)
    compute_type = arguments.resolve_compute_type(options.compute_type, input_type, output_type)
    mapped = options.input_map is not None or options.output_map is not None
    sides = list_sides(options) if mapped else [("buffer", 1)]
    arguments.require_count(name, buffers, sides)
    outputs = buffers[: sides[0][1]]
    inputs = buffers[sides[0][1] :] if mapped else buffers
    # the shape is that of the output buffer, or of the input buffer if only that is a buffer
    shape, _ = parse_shape_and_axis(inputs if output_type is None and input_type else buffers, options)
    arguments.require_axes(name, shape, count)
    axes = range(len(shape) - count, len(shape))
    if not mapped:
        assert output_type is not None
        _transform_in_place(name, buffers, _Passes(shape, compute_type, output_type), axes, options)
        return
    # the buffer between the first pass and the last
    middle: Any = outputs[0] if options.output_map is None else function_buffer(shape, compute_type)
    passes = _Passes(shape, compute_type, output_type or compute_type)
    for axis in axes:
        is_first, is_last = axis == axes[0], axis == axes[-1]
        transform = passes.along(
            axis,
            options,
            options.input_map if is_first else None,
            options.output_map if is_last else None,
            input_type if is_first else None,
        )
        source = inputs if is_first else [middle]
        target = outputs if is_last else [middle]
        in_place = not transform.is_mapped and not transform.separate
        launch(name, transform, target if in_place else [*target, *source], options)


@record(eq=False)
class _Passes:
    """The transforms of several axes, one after another; `kind` is the type of the buffer between them."""

    shape: tuple[int, ...]
    compute_type: DType
    kind: DType

    def along(
        self,
        axis: int,
        options: Options,
        input_map: MappingFunction | None = None,
        output_map: MappingFunction | None = None,
        input_type: DType | None = None,
    ) -> Transform:
        """Return the transform of an axis; `input_type` is that of the input, if it is another buffer."""
        inverse = options.inverse
        normalize, scale = arguments.resolve_scaling(
            options.norm, inverse, options.normalize, self.shape[axis]
        )
        return Transform(
            self.shape,
            axis,
            self.compute_type,
            inverse,
            normalize,
            input_map=input_map,
            output_map=output_map,
            input_type=None if input_map else input_type or self.kind,
            output_type=None if output_map else self.kind,
            separate=input_type is not None and options.output_map is not None,
            scale=scale,
        )


def _transform_in_place(
    name: str, buffers: Sequence[Any], passes: _Passes, axes: range, options: Options
) -> None:
    """Transform some axes in place, the last two with one kernel if there is one."""
    shape, inverse = passes.shape, options.inverse
    size = shape[-1] * shape[-2]
    normalize, scale = arguments.resolve_scaling(options.norm, inverse, options.normalize, size)
    planes = replace(passes.along(axes[-1], options), normalize=normalize, scale=scale)
    kernel = get_plane_kernel(planes)
    if kernel is not None:
        arguments.require_room(buffers[0], math.prod(shape), passes.kind, "output buffer")
        axes = axes[:-2]
    for axis in axes:
        launch(name, passes.along(axis, options), buffers, options)
    if kernel is not None:
        arguments.launch_kernel(kernel, buffers, options)


def transform_axes(buffer: object, axes: object, options: Options) -> None:
    """Transform a complex buffer along some axes, in place; see `vkdispatch.fft.fftn`."""
    given = require_buffer(buffer, "buffer").shape if options.buffer_shape is None else options.buffer_shape
    shape = arguments.parse_shape(given)
    options = replace(options, norm=arguments.parse_norm(options.norm), buffer_shape=shape)
    chosen = parse_axes(axes, len(shape), "axes")
    if len(shape) > 1 and {len(shape) - 2, len(shape) - 1} <= set(chosen):
        # one kernel transforms planes that fit into a workgroup
        name = "ifft2" if options.inverse else "fft2"
        transform_last_axes(name, (buffer,), 2, replace(options, norm=options.norm or "backward"))
        chosen = tuple(axis for axis in chosen if axis < len(shape) - 2)
    for axis in reversed(chosen):
        transform_axis((buffer,), replace(options, axis=axis))


# ---- Real transforms -------------------------------------------------------------------------------------


def transform_real(buffer: object, options: Options) -> None:
    """Transform an RFFTBuffer along its last axis, in place; see `vkdispatch.fft.rfft`."""
    shape = arguments.require_rfft_buffer(buffer).real_shape
    # with a map, the buffer is both the output and the input
    mapped = options.input_map is not None or options.output_map is not None
    buffers = (buffer, buffer) if mapped else (buffer,)
    transform_axis(buffers, replace(options, buffer_shape=shape, axis=None, r2c=True))


def transform_last_real_axes(name: str, buffer: object, count: int, options: Options) -> None:
    """Transform the last `count` axes of an RFFTBuffer; see `vkdispatch.fft.rfft2`."""
    shape = arguments.require_rfft_buffer(buffer).real_shape
    arguments.require_axes(name, shape, count)
    _transform_real_and_others(buffer, tuple(range(len(shape) - count, len(shape) - 1)), options)


def transform_real_axes(buffer: object, axes: object, options: Options) -> None:
    """Transform an RFFTBuffer along some axes, of which the last is the real one; see `rfftn`."""
    dimensions = len(arguments.require_rfft_buffer(buffer).real_shape)
    chosen = parse_axes(axes, dimensions, "axes")
    if chosen[-1:] != (dimensions - 1,):
        raise ArgumentValueError(
            f"axes: an RFFTBuffer has its reals along the last axis, so {dimensions - 1} must be named last; "
            f"got {axes!r}"
        )
    _transform_real_and_others(buffer, chosen[:-1], replace(options, norm=arguments.parse_norm(options.norm)))


def _transform_real_and_others(buffer: object, others: tuple[int, ...], options: Options) -> None:
    """Transform the real axis first, or last if inverse."""
    if not options.inverse:
        transform_real(buffer, options)
    for axis in others if options.inverse else reversed(others):
        transform_axis((buffer,), replace(options, axis=axis))
    if options.inverse:
        transform_real(buffer, options)
