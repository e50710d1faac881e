"""Convolutions: their plans, kernels and calls."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, is_complex
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.compiler.ir.location import fixed_place
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.operands import check_apart, parse_int, require_buffer
from vkdispatch.families.stored import store_all_results
from vkdispatch.fft import arguments
from vkdispatch.fft.arguments import (
    Options,
    argument_count,
    ensure_supported_complex_precision,
    parse_axis,
    parse_shape,
    require_no_type,
)
from vkdispatch.fft.calls import (
    get_fft_kernel,
    list_sides,
    parse_transform,
    require_room,
    resolve_types,
    transform_axis,
)
from vkdispatch.fft.kernels.context import (
    FFTConfig,
    IOManager,
    fft_context,
    global_reads_iterator,
    global_trasposed_write_iterator,
    trace_for_maps,
    transposed_size,
)
from vkdispatch.fft.kernels.passes import KernelSequence
from vkdispatch.fft.kernels.planes import PlaneSteps
from vkdispatch.fft.plan import passes
from vkdispatch.fft.plan.passes import Transform, plan_pass
from vkdispatch.fft.plan.planes import PlanePlan, plan_planes
from vkdispatch.fft.plan.planner import find_planner
from vkdispatch.fft.plan.stages import Split, add, hold, multiply
from vkdispatch.fft.plan.tuning import look_up, tuning
from vkdispatch.fft.trace.line_kernel import buffer_of
from vkdispatch.fft.trace.ops import GlobalReadOp, IOProxy, Line, spot_at, tracing_for
from vkdispatch.fft.trace.transform import FFTRegisters
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Convolutions, and the plans of their transforms -----------------------------------------------------


@record
class Spectra:
    """The kernels of a convolution, which are given by their spectra.

    Attributes
    ----------
    kernel_map, kernel_type
        The map that changes the signal's spectrum, or else the type of the kernels' buffer.
    count
        How many kernels are applied to one signal.
    transposed
        Whether the buffer has the layout that `transpose` writes.
    inner_only
        Whether the kernels lack the axes before the transformed one.
    """

    kernel_map: MappingFunction | None
    kernel_type: DType | None
    count: int = 1
    transposed: bool = False
    inner_only: bool = False

    @property
    def kernel(self) -> MappingFunction | DType | None:
        """The map, or else the type."""
        return self.kernel_map or self.kernel_type


@record
class Convolution:
    """A convolution along one axis: everything that its kernel depends on but the device.

    Attributes
    ----------
    transform
        The forward transform of the signal; `normalize` is that of the inverse one.
    spectra
        The kernels.
    """

    transform: passes.Transform
    spectra: Spectra

    @property
    def name(self) -> str:
        """Name of the kernel."""
        transform = self.transform
        return f"convolution_{'x'.join(map(str, transform.shape))}_axis{transform.axis}"

    @property
    def natural_elements(self) -> int:
        """Elements of one kernel in the layout of the signal."""
        shape = self.transform.shape
        return math.prod(shape[self.transform.axis :] if self.spectra.inner_only else shape)

    @property
    def kernel_elements(self) -> int:
        """Elements that the buffer of the kernels needs."""
        spectra = self.spectra
        plans = plan_convolution(self.transform) if spectra.transposed else None
        if plans is None:
            return self.natural_elements * spectra.count
        inverse = plans[1]
        return transposed_size(remove_outer_axes(inverse) if spectra.inner_only else inverse) * spectra.count


def plan_inverse(plan: passes.Pass) -> passes.Pass:
    """Return the plan of the inverse transform: the radices in reverse order.

    Its first stage then reads values from where the last stage of the forward transform leaves them. Where
    workgroup memory has no room for that, it is the same plan, and values must be moved.
    """
    radices = plan.split.radices
    if plan.layout is None or radices[0] == radices[-1]:
        return plan
    return passes.reverse_radices(plan) or plan


def plan_convolution(transform: passes.Transform) -> tuple[passes.Pass, passes.Pass] | None:
    """Return the plans of the forward and the inverse transform, or None if no workgroup holds a line."""
    plan = plan_pass(transform.shape, transform.axis, transform.compute_type, _choose(transform))
    return None if plan is None else (plan, plan_inverse(plan))


def _choose(transform: passes.Transform) -> passes.PassChoices:
    """Return what is chosen for the two transforms of one kernel."""
    shape, axis = transform.shape, transform.axis
    length = shape[axis]
    if not find_planner().has_convolution_numbers or axis != len(shape) - 1 or length & (length - 1):
        return passes.PassChoices()
    registers = look_up(tuning.registers_convolution, length)
    return passes.PassChoices(registers=registers, group=look_up(tuning.group_convolution, length))


def remove_outer_axes(plan: passes.Pass) -> passes.Pass:
    """Return the plan of the lines of one index along the axes before the transformed one."""
    lines = plan.grid.lines if plan.grid.is_interleaved else 1
    return replace(plan, grid=replace(plan.grid, outer=1, lines=lines))


def make_transposition(transform: passes.Transform, inner_only: bool) -> Convolution:
    """Return the convolution whose kernel `transpose` rearranges, between buffers of its types."""
    return Convolution(transform, Spectra(None, transform.output_type, 1, True, inner_only))


def get_transposed_layout(convolution: Convolution) -> object:
    """Return what a transposed layout depends on: which invocations read which values."""
    plans = plan_convolution(convolution.transform)
    if plans is None:
        return ("transposed",)
    plan, inverse = plans
    return (inverse.split, plan.grid, convolution.spectra.inner_only)


def get_transposed_size(
    buffer_shape: int | Sequence[int], axis: int | None = None, compute_type: DType = complex64
) -> int:
    """Return the number of elements that `transpose` writes for convolutions of a shape along an axis.

    Raises
    ------
    TypeError, ValueError
        `buffer_shape` is not a shape, or `compute_type` is not complex.
    AxisError
        There is no such axis.

    Examples
    --------
    >>> vd.fft.get_transposed_size((8, 16))
    128
    """
    shape = parse_shape(buffer_shape)
    axis = parse_axis(axis, len(shape))
    ensure_supported_complex_precision(compute_type, role="compute_type")
    plans = plan_convolution(passes.Transform(shape, axis, compute_type))
    return math.prod(shape) if plans is None else transposed_size(plans[1])


# ---- Convolutions of lines that no workgroup holds, in several kernels -----------------------------------


def multiply_by_conjugate(op: GlobalReadOp, buffer: Any, offset: int) -> None:
    """Multiply `op.register` by the conjugate of an element, `offset` elements behind `op.io_index`."""
    value = vc.new_register(op.register.var_type)
    op.read_from_buffer(buffer, value, op.io_index + offset if offset else None)
    op.register[:] = op.register * value.conjugate()


class LongConvolution(KernelSequence):
    """A convolution in several kernels, which is called like a kernel.

    Attributes
    ----------
    name
        Name of the whole.
    """

    def __init__(self, convolution: Convolution) -> None:
        signal, spectra = convolution.transform, convolution.spectra
        self.name = convolution.name
        kind = signal.compute_type
        self._shape, self._kind = signal.shape, kind
        self._written = argument_count(signal.output_map)
        self._read = argument_count(signal.input_map) if signal.is_mapped else 0
        self._in_place = not signal.is_mapped and spectra.count == 1 and signal.output_type is kind
        forward = signal
        back = replace(signal, inverse=True, signal_range=None)
        if not self._in_place:
            forward = replace(signal, output_map=None, output_type=kind, separate=signal.input_map is None)
            back = replace(back, input_map=None, input_type=kind, separate=signal.output_map is None)
        self._forward = get_fft_kernel(forward)
        numbers = range(spectra.count)
        self._products = [_make_product(convolution, number) for number in numbers]
        self._back = [get_fft_kernel(replace(back, kernel_index=number)) for number in numbers]

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> None:
        """Launch the kernels, or record them in a graph.

        Raises
        ------
        TypeError, ValueError
            An argument is missing or wrong.
        """
        outputs = args[: self._written]
        inputs = args[self._written : self._written + self._read] or outputs
        kernel = args[self._written + self._read :]
        if self._in_place:
            self._forward(*outputs, graph=graph)
            self._products[0](*outputs, *kernel, graph=graph)
            self._back[0](*outputs, graph=graph)
            return
        spectrum: Any = function_buffer(self._shape, self._kind)
        several = len(self._products) > 1
        product: Any = function_buffer(self._shape, self._kind) if several else spectrum
        self._forward(spectrum, *inputs, graph=graph)
        for apply, back in zip(self._products, self._back, strict=True):
            apply(*((product, spectrum) if several else (spectrum,)), *kernel, graph=graph)
            back(*outputs, product, graph=graph)

    def _kernels(self) -> list[Any]:
        steps = [kernel for pair in zip(self._products, self._back, strict=True) for kernel in pair]
        return [self._forward, *steps]


def _make_product(convolution: Convolution, number: int) -> ShaderFunction:
    """Make the kernel that applies one of the kernels to a spectrum, in place if it is the only one."""
    signal, spectra = convolution.transform, convolution.spectra
    kind, length, stride = signal.compute_type, signal.length, signal.stride
    proxy = IOProxy(spectra.kernel, "kernel")
    with vc.shader_context() as context:
        buffers = [buffer_of(kind)] * (2 if spectra.count > 1 else 1)
        variables = context.declare_input_arguments([*buffers, *proxy.buffer_types])
        proxy.bind(variables[len(buffers) :])
        flat = vc.global_invocation_id().x.to_register()
        rest = flat // stride if stride > 1 else flat
        inner: Any = flat % stride if stride > 1 else 0
        index = (rest % length).to_register()
        first = flat - multiply(index, stride)
        line = Line(length, stride, first, inner, add(multiply(rest // length, stride), inner))
        value = variables[len(buffers) - 1][flat].to_register()
        spot = spot_at(line, index, "inner" if spectra.inner_only else "natural")
        op = GlobalReadOp(spot, value)
        with tracing_for(kernel=number):
            if proxy.map_func is None:
                multiply_by_conjugate(op, variables[-1], number * convolution.natural_elements)
            else:
                proxy.read(op)
        variables[0][flat] = value
    return ShaderFunction(context.get_description("product"), None, None, math.prod(signal.shape))


def make_plain_copy(elements: int, input_type: DType, output_type: DType) -> ShaderFunction:
    """Make a kernel that copies complex numbers into its first buffer from its second, and casts them."""
    with vc.shader_context() as context:
        written, read = context.declare_input_arguments([buffer_of(output_type), buffer_of(input_type)])
        index = vc.global_invocation_id().x
        written[index] = read[index].to_dtype(output_type)
    return ShaderFunction(context.get_description("copy"), None, None, elements)


# ---- Convolutions of small planes in one kernel ----------------------------------------------------------


@record
class PlaneConvolution:
    """A convolution of planes: everything that its kernel depends on but the device.

    Attributes
    ----------
    count, height, width
        Number of planes, their rows and columns.
    kind, kernel_kind, compute_type
        Complex types of the buffers and of the computation.
    inner_only
        Whether all planes have one kernel.
    normalize
        Whether the result is divided by the number of values of a plane.
    """

    count: int
    height: int
    width: int
    kind: DType
    kernel_kind: DType
    compute_type: DType
    inner_only: bool
    normalize: bool


def get_plane_convolution(planes: PlaneConvolution) -> ShaderFunction | None:
    """Return the kernel, whose arguments are the signal and the kernel, or None if there is none.

    There is none where a workgroup cannot hold a plane, or two kernels are faster.
    """
    return build_plane_convolution(planes, passes.device_limits()) if find_planner().has_planes else None


@store_all_results
@fixed_place()
def build_plane_convolution(planes: PlaneConvolution, _limits: object) -> ShaderFunction | None:
    """Make the kernel of `get_plane_convolution` for devices of some limits."""
    plan = plan_planes(planes.count, planes.height, planes.width, planes.compute_type)
    if plan is None:
        return None
    # with reversed radices, the inverse transform reads values from where the forward one leaves them
    back = plan.columns.reverse()
    layout = _layout(plan, back)
    if layout is None and plan.column_layout is not None:
        return None
    least = passes.count_allocated(back, layout) if layout is not None else 0
    if least * planes.compute_type.item_size // plan.parts > get_context().max_shared_memory:
        return None
    return _trace_planes(planes, plan, back, layout, least)


def _layout(plan: PlanePlan, split: Split) -> passes.SharedLayout | None:
    if plan.column_layout is None:
        return None
    item = plan.compute_type.item_size
    return passes.plan_layout(split, plan.column_layout.lines, True, item, plan.parts)


def _trace_planes(
    planes: PlaneConvolution, plan: PlanePlan, back: Split, layout: passes.SharedLayout | None, least: int
) -> ShaderFunction:
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as shader:
        kinds: list[Any] = [planes.kind, planes.kernel_kind]
        annotations: list[Any] = [vc.Buffer[kind] for kind in kinds]  # type: ignore[valid-type]
        buffer, kernel = shader.declare_input_arguments(annotations, ["buffer", "kernel"])
        steps = PlaneSteps(plan, planes.kind, buffer, least)
        values = steps.transform_rows(steps.read_rows(), inverse=False)
        values = steps.transform_columns(steps.rows_to_columns(values), inverse=False)
        product: list[Any] = [vc.new_register(plan.compute_type) for _ in values]
        origin = 0 if planes.inner_only else steps.origin
        for number, index in steps.column_places(plan.columns.stages[-1], origin):
            factor = hold(kernel[index].to_dtype(plan.compute_type))
            product[number][:] = values[number] * vc.to_complex(factor.real, -factor.imag)
        values = steps.transform_columns_by(back, layout, product, inverse=True)
        values = steps.transform_rows(steps.columns_to_rows(values, back.stages[-1]), inverse=True)
        steps.write_rows(steps.normalize(values) if planes.normalize else values)
        description = shader.get_description(f"convolve2D_{planes.count}x{planes.height}x{planes.width}")
    return ShaderFunction(description, plan.local_size, (plan.workgroups, 1, 1))


# ---- Kernels of convolutions -----------------------------------------------------------------------------
#
# A transform, a product with a spectrum, and the inverse transform in one.


def resolve_kernel_type(kernel_map: MappingFunction | None, kernel_type: DType | None) -> DType | None:
    """Return the type of a kernel's buffer; None for a kernel map. Raises ValueError for a wrong type."""
    if kernel_map is not None:
        require_no_type("kernel", kernel_type, kernel_map)
        return None
    kernel_type = complex64 if kernel_type is None else kernel_type
    ensure_supported_complex_precision(kernel_type, role="kernel_type")
    return kernel_type


def get_convolution_kernel(convolution: Convolution) -> Any:
    """Return the kernel of a convolution."""
    return build_convolution_kernel(convolution, passes.device_limits())


@store_all_results
@fixed_place()
def build_convolution_kernel(convolution: Convolution, _limits: object) -> ShaderFunction | LongConvolution:
    """Make the kernel of a convolution for devices of some limits."""
    signal = convolution.transform
    plans = plan_convolution(signal)
    if plans is None:
        return LongConvolution(convolution)
    # a transposed kernel has the order of the usual plan
    fewer = plans[0] if convolution.spectra.transposed else passes.plan_for_long_maps(plans[0], signal)
    return trace_for_maps(lambda plan, most: _trace(convolution, plan, most), plans[0], fewer)


def _trace(convolution: Convolution, plan: passes.Pass, most: int | None) -> ShaderFunction:
    """Trace a convolution by a plan whose maps have at most so many statements."""
    signal, spectra, inverse = convolution.transform, convolution.spectra, plan_inverse(plan)
    least = passes.count_allocated(inverse.split, inverse.layout) if inverse.layout else 0
    shape, axis, kind = signal.shape, signal.axis, signal.compute_type
    options: dict[str, Any] = {"compute_type": kind, "name": convolution.name, "plan": plan}
    with fft_context(shape, axis, **options, least=least, most=most) as context:
        output, read = (signal.output_map, signal.output_type), (signal.input_type, signal.input_map)
        io = context.make_io_manager(*output, *read, spectra.kernel)
        io.read_input(signal_range=signal.signal_range)
        context.execute(inverse=False)
        if inverse is plan:
            context.register_shuffle()
            registers = context.registers
        else:
            config = FFTConfig(shape, axis, compute_type=kind, plan=inverse)
            registers = context.registers.view_as(context.resources.view_as(config))
        saved = None
        if spectra.count > 1:
            saved = context.allocate_registers("spectrum")
            saved.read_from_registers(registers)
        for number in range(spectra.count):
            if number and saved is not None:
                registers.read_from_registers(saved)
            with tracing_for(kernel=number):
                _apply_kernel(registers, io, convolution, number)
                context.execute(inverse=True, registers=registers)
                if signal.normalize:
                    registers.normalize()
                io.write_output(registers)
    return context.get_callable()


def _apply_kernel(registers: FFTRegisters, io: IOManager, convolution: Convolution, number: int) -> None:
    """Multiply the signal's spectrum by the conjugate of a kernel's, or call the kernel map for it."""
    spectra = convolution.spectra
    layout: dict[str, Any] = {"format_transposed": spectra.transposed, "inner_only": spectra.inner_only}
    if spectra.kernel_map is not None:
        io.read_kernel(registers, **layout)
        return
    assert io.kernel_proxy.variables is not None
    (buffer,) = io.kernel_proxy.variables
    offset = convolution.kernel_elements // spectra.count * number
    for op in global_reads_iterator(registers, **layout):
        multiply_by_conjugate(op, buffer, offset)


# ---- the transposed layout of kernels -------------------------------------------------------------


def get_transpose_kernel(convolution: Convolution) -> ShaderFunction:
    """Return the kernel that writes a convolution's kernel in the transposed layout."""
    return build_transpose_kernel(convolution, passes.device_limits())


@store_all_results
@fixed_place()
def build_transpose_kernel(convolution: Convolution, _limits: object) -> ShaderFunction:
    """Make the kernel of `get_transpose_kernel` for devices of some limits."""
    signal, inner_only = convolution.transform, convolution.spectra.inner_only
    shape, axis, compute_type = signal.shape, signal.axis, signal.compute_type
    input_type, output_type = signal.input_type or complex64, signal.output_type or complex64
    plans = plan_convolution(signal)
    if plans is None:
        return make_plain_copy(convolution.natural_elements, input_type, output_type)
    plan = replace(remove_outer_axes(plans[1]) if inner_only else plans[1], layout=None)
    name = f"transpose_{'x'.join(map(str, shape))}_axis{axis}"
    with fft_context(shape, axis, compute_type=compute_type, name=name, plan=plan) as context:
        written, read = context.declare_shader_args([buffer_of(output_type), buffer_of(input_type)])
        for op in global_reads_iterator(context.registers, inner_only=inner_only):
            op.read_from_buffer(read)
        for target in global_trasposed_write_iterator(context.registers, inner_only=inner_only):
            target.write_to_buffer(written)
    return context.get_callable()


def convolve_axis(buffers: Sequence[Any], spectra: Spectra, options: Options) -> None:
    """Convolve along one axis; see `vkdispatch.fft.convolve`."""
    arguments.parse_map(spectra.kernel_map, "kernel_map")
    arguments.require_any(buffers, "a convolution needs a buffer and a kernel")
    types = resolve_types(options, buffers)
    sides = [("signal", 1)]
    if options.input_map is not None or options.output_map is not None:
        sides = list_sides(options)
    position = sum(count for _, count in sides)
    if spectra.kernel_map is None and len(buffers) <= position:
        raise ArgumentValueError(
            "buffers: a convolution needs a kernel, as a buffer behind the other arguments or as kernel_map; "
            f"got {len(buffers)} arguments"
        )
    arguments.require_count(
        "convolve", buffers, [*sides, ("kernel", arguments.argument_count(spectra.kernel_map))]
    )
    kernel_type = spectra.kernel_type
    if spectra.kernel_map is None and kernel_type is None:
        kernel_type = require_buffer(buffers[position], "kernel buffer").var_type
    kernel_type = resolve_kernel_type(spectra.kernel_map, kernel_type)
    transform = parse_transform(options, buffers, types, kernel_type)
    count = parse_int(spectra.count, "kernel_num", least=1)
    convolution = Convolution(transform, replace(spectra, kernel_type=kernel_type, count=count))
    require_room(transform, buffers[0], buffers[position - 1])
    if kernel_type is not None:
        arguments.require_room(buffers[position], convolution.kernel_elements, kernel_type, "kernel buffer")
        if spectra.transposed:
            _check_layout(buffers[position], convolution)
    _check_kernels_apart(buffers, transform)
    arguments.launch_kernel(get_convolution_kernel(convolution), buffers, options)


def _check_layout(buffer: Buffer[Any], convolution: Convolution) -> None:
    """Raise ValueError for a kernel that is known to be transposed for another convolution."""
    if buffer._order is not None and buffer._order != get_transposed_layout(convolution):
        signal = convolution.transform
        raise ArgumentValueError(
            "transposed_kernel: the kernel was transposed for another convolution; call vd.fft.transpose "
            f"with conv_shape={signal.shape}, axis={signal.axis}, "
            f"kernel_inner_only={convolution.spectra.inner_only} and "
            f"compute_type=vd.{signal.compute_type.name}"
        )


def _check_kernels_apart(buffers: Sequence[Any], transform: Transform) -> None:
    """Raise OverlapError for a kernel, or an argument of its map, that is the output as well."""
    outputs = arguments.argument_count(transform.output_map)
    # without maps one buffer is the output and the input
    first = outputs + arguments.argument_count(transform.input_map) if transform.is_mapped else outputs
    for kernel in buffers[first:]:
        for signal in buffers[:outputs]:
            check_apart("kernel", kernel, "the signal", signal)


# ---- two axes --------------------------------------------------------------------------------------


def convolve_planes(
    buffer: Any, kernel: Any, spectra: Spectra, options: Options, map_arguments: tuple[Any, Any]
) -> None:
    """Convolve along the last two axes; see `vkdispatch.fft.convolve2D`.

    `map_arguments` are those of the input map and of the output map, None for `buffer` alone.
    """
    input_map = arguments.parse_map(options.input_map, "input_map")
    output_map = arguments.parse_map(options.output_map, "output_map")
    buffer = require_buffer(buffer, "buffer")
    values = _parse_kernel_arguments("convolve2D", buffer, kernel, spectra.kernel_map)
    shape = _parse_planes("convolve2D", buffer.shape, options)
    input_type, output_type = options.input_type, options.output_type
    arguments.require_no_type("output", output_type, output_map)
    arguments.require_no_type("input", input_type, input_map)
    if input_type is not None and output_type is not None and input_type is not output_type:
        raise ArgumentValueError("input_type, output_type: one buffer is both, so they must be the same")
    kind = output_type or input_type
    mapped = not (input_map is output_map is spectra.kernel_map is None)
    if not (mapped or spectra.transposed or kind or spectra.kernel_type):
        plane_kernel = _get_plane_kernel(shape, buffer, kernel, spectra, options)
        if plane_kernel is not None:
            arguments.launch_kernel(plane_kernel, (buffer, kernel), options)
            return
    reads, writes = map_arguments
    inputs = () if input_map is None else (buffer,) if reads is None else tuple(reads)
    outputs = (buffer,) if writes is None else tuple(writes)
    plain = replace(options, buffer_shape=shape, input_map=None, output_map=None, input_type=None)
    plain = replace(plain, output_type=kind)
    transform_axis((buffer, *inputs), replace(plain, input_map=input_map, normalize=True))
    convolve_axis((buffer, *values), spectra, replace(plain, axis=len(shape) - 2))
    back = replace(plain, inverse=True)
    if output_map is None:
        transform_axis((buffer,), back)
    else:
        back = replace(back, output_map=output_map, output_type=None, input_type=kind)
        transform_axis((*outputs, buffer), back)


def _get_plane_kernel(
    shape: tuple[int, ...], buffer: Buffer[Any], kernel: Any, spectra: Spectra, options: Options
) -> ShaderFunction | None:
    """Return the kernel that convolves whole planes, or None if there is none, or an argument is wrong."""
    if not isinstance(kernel, Buffer) or not (is_complex(buffer.var_type) and is_complex(kernel.var_type)):
        return None
    compute_type = arguments.resolve_compute_type(options.compute_type, buffer.var_type, kernel.var_type)
    height, width = shape[-2:]
    elements, plane = math.prod(shape), height * width
    inner_only = bool(spectra.inner_only)
    wanted = (plane if inner_only else elements) * kernel.var_type.item_size
    if buffer.mem_size < elements * buffer.var_type.item_size or kernel.mem_size < wanted:
        return None
    normalize, kinds = bool(options.normalize), (buffer.var_type, kernel.var_type, compute_type)
    planes = PlaneConvolution(elements // plane, height, width, *kinds, inner_only, normalize)
    return get_plane_convolution(planes)


def convolve_real_planes(buffer: Any, kernel: Any, spectra: Spectra, options: Options) -> None:
    """Convolve reals along the last two axes; see `vkdispatch.fft.convolve2DR`."""
    buffer = arguments.require_rfft_buffer(buffer)
    shape = _parse_planes("convolve2DR", buffer.real_shape, options)
    values = _parse_kernel_arguments("convolve2DR", buffer, kernel, spectra.kernel_map)
    real = replace(options, buffer_shape=shape, r2c=True)
    half = (*shape[:-1], shape[-1] // 2 + 1)
    transform_axis((buffer,), replace(real, normalize=True))
    convolve_axis((buffer, *values), spectra, replace(options, buffer_shape=half, axis=len(shape) - 2))
    transform_axis((buffer,), replace(real, inverse=True))


def _parse_planes(name: str, default: Sequence[int], options: Options) -> tuple[int, ...]:
    """Return the shape of the planes. Raises ValueError for another number of axes."""
    shape = arguments.parse_shape(default if options.buffer_shape is None else options.buffer_shape)
    arguments.require_axes(name, shape, 2)
    return shape


def _parse_kernel_arguments(
    name: str, buffer: Buffer[Any] | RFFTBuffer, kernel: Any, kernel_map: MappingFunction | None
) -> tuple[Any, ...]:
    """Return the arguments of a kernel, checked before anything is done to the buffer."""
    values: tuple[Any, ...] = (kernel,)
    if arguments.parse_map(kernel_map, "kernel_map") is None:
        require_buffer(kernel, "kernel")
    elif kernel is None:
        values = ()
    elif isinstance(kernel, (tuple, list)):
        values = tuple(kernel)
    wanted = arguments.argument_count(kernel_map)
    if len(values) != wanted:
        raise ArgumentValueError(
            f"{name}: kernel: expected {wanted} arguments for kernel_map, got {len(values)}"
        )
    for value in values:
        check_apart("kernel", value, "the signal", buffer)
    return values


# ---- the transposed layout of kernels -------------------------------------------------------------


def transpose_buffer(in_buffer: Any, out_buffer: Any, inner_only: bool, options: Options) -> Buffer[Any]:
    """Write a convolution's kernel in the transposed layout; see `vkdispatch.fft.transpose`."""
    source = require_buffer(in_buffer, "in_buffer")
    shape = arguments.parse_shape(
        source.shape if options.buffer_shape is None else options.buffer_shape, "conv_shape"
    )
    axis = arguments.parse_axis(options.axis, len(shape))
    read = source.var_type if options.input_type is None else options.input_type
    arguments.ensure_supported_complex_precision(read, role="input_type")
    written = read if options.output_type is None else options.output_type
    arguments.ensure_supported_complex_precision(written, role="output_type")
    compute_type = arguments.resolve_compute_type(options.compute_type, read, written)
    signal = Transform(shape, axis, compute_type, input_type=read, output_type=written)
    convolution = make_transposition(signal, inner_only)
    arguments.require_room(source, convolution.natural_elements, read, "in_buffer")
    elements = convolution.kernel_elements
    if out_buffer is None:
        size = elements if inner_only else get_transposed_size(shape, axis, compute_type)
        target: Buffer[Any] = function_buffer((size,), written)
    else:
        target = require_buffer(out_buffer, "out_buffer")
        if target.var_type is not written:
            raise ArgumentValueError(
                f"out_buffer: expected a buffer of {written.name}, got {target.var_type.name}"
            )
        check_apart("out_buffer", target, "in_buffer", source)
        arguments.require_room(target, elements, written, "out_buffer")
    arguments.launch_kernel(get_transpose_kernel(convolution), (target, source), options)
    target._order = get_transposed_layout(convolution)
    return target
