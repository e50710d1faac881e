"""Compiled kernels: what they require of a device, their GLSL, plans and launchers."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

from vkdispatch.base import dtype, errors
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import StandingTicket
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, pair_twin
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderDescription, ShaderSource
from vkdispatch.codegen.description import Place
from vkdispatch.compiler.analyses.contents import ArgumentLayout, usage
from vkdispatch.compiler.analyses.launch_values import sizes_of_shared
from vkdispatch.compiler.glsl.emulation import REPLACED, can_emulate, usage_by_lanes
from vkdispatch.compiler.ir import ImageBinding, Kernel
from vkdispatch.compiler.ir.location import located, pause_collection, warn, warn_once_each
from vkdispatch.compiler.ir.statements import INT64, PLAIN, Variant, emulates
from vkdispatch.compiler.passes.bounds import keeps_workgroups
from vkdispatch.compiler.passes.nesting import DEEPEST, find_depth, flatten, is_flat
from vkdispatch.compiler.passes.order import count_seconds, keep_invocations, make_form, run
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.diagnostics import Probe
from vkdispatch.execution_pipeline.optimization import Fusible
from vkdispatch.shader import tracing, variants
from vkdispatch.shader.arguments import CheckedCall
from vkdispatch.shader.signature import MAX_NARROW, BufferSlot, ImageSlot, Slot, make_packer
from vkdispatch.shader.size import Extent
from vkdispatch.shader.variants import UNCOARSENED, Coarsening

# ---- What a kernel requires of a device: checked before the driver sees the kernel -----------------------


def check_local_size(who: str, local_size: Extent, context: Context) -> None:
    """Raise ValueError if a workgroup size exceeds the limits of the device."""
    x, y, z = local_size
    if x * y * z > context.max_workgroup_invocations or any(
        size > most for size, most in zip(local_size, context.max_workgroup_size, strict=True)
    ):
        raise errors.ArgumentValueError(
            f"{who}: local_size: {local_size} is more than this device's workgroups hold: at most "
            f"{context.max_workgroup_size}, {context.max_workgroup_invocations} invocations in all"
        )


def check_shared_memory(
    who: str, description: ShaderDescription, context: Context, lacks: frozenset[str], sized: Sequence[int]
) -> None:
    """Raise ValueError if the kernel declares more shared memory than a workgroup has.

    `sized` are the counts of elements that a call decides.
    """
    kernel = description.kernel
    guarded = keep_invocations(kernel)
    counts = sizes_of_shared(guarded, sized)
    size = sum(counts[id(array)] * _count_shared_bytes(array.dtype, lacks) for array in guarded.shared)
    if size > context.max_shared_memory:
        by_call = [f"{array.name!r} {counts[id(array)]}" for array in kernel.shared if array.size is None]
        elements = f" (elements with these arguments: {', '.join(by_call)})" if by_call else ""
        raise errors.ArgumentValueError(
            f"{who}: its shared buffers take {size} bytes{elements}; a workgroup on this device has "
            f"{context.max_shared_memory}"
        )


def _count_shared_bytes(kind: DType, lacks: frozenset[str]) -> int:
    """Return the bytes of a value in shared memory, where emulated 16-bit types take 32 bits."""
    small = dtype.component_type(kind).item_size == 2 and emulates(kind, lacks)
    return kind.item_size * (2 if small else 1)


_FEATURES: tuple[tuple[tuple[DType, ...], str, str], ...] = (
    ((dtype.float64,), "float_64_support", "float64"),
    ((dtype.float16,), "float_16_support", "float16"),
    ((dtype.int64, dtype.uint64), "int_64_support", "64-bit integers"),
    ((dtype.int16, dtype.uint16), "int_16_support", "16-bit integers"),
)


def check_features(who: str, description: ShaderDescription, context: Context, lacks: frozenset[str]) -> None:
    """Raise UnsupportedError if a device lacks a feature of the kernel, before the driver sees the kernel.

    `lacks` is the result of `find_lacks`: features that the kernel's variant for these devices replaces.
    """
    kernel = description.kernel
    usage_ = usage(kernel)
    used = {dtype.component_type(kind) for kind in usage_.dtypes}
    if not variants.can_pack(kernel, lacks):
        names = ", ".join(sorted(lacks - REPLACED))
        raise errors.UnsupportedError(
            f"{who}: the device {context.device_infos[0].device_name!r} has no {names}: "
            "elements are packed in words, which code in GLSL and cooperative matrices do not reach; use a "
            "dtype of 32 bits"
        )
    emulated = {kind for kind in used if emulates(kind, lacks)} if can_emulate(kernel, lacks) else set()
    for device in context.device_infos:
        # Operations come first: emulation does not help if the operation of a type is missing.
        called = replace(usage_, subgroup_dtypes=usage_.subgroup_dtypes - emulated)
        missing = variants.find_missing_operation(usage_by_lanes(called, kernel, lacks), device)
        if missing:
            raise errors.UnsupportedError(f"{who}: the device {device.device_name!r} has no {missing}")
        for kinds, feature, name in _FEATURES:
            if used.intersection(kinds) and not getattr(device, feature) and not emulated.intersection(kinds):
                error = _make_unsupported(who, device, name + _name_argument(description, kinds))
                error._dtypes = kinds
                raise error
        images = [r.dtype for r in kernel.resources if isinstance(r, ImageBinding) and r.storage]
        pairs = any(dtype.component_count(kind) == 2 for kind in images)
        if pairs and not device.storage_image_extended_formats:
            raise _make_unsupported(who, device, "storage images of two channels")
    if any(device.is_llvmpipe() for device in context.device_infos):
        _warn_of_waiting(kernel)


def fills_tiles(kernel: Kernel) -> bool:
    """Whether a kernel fills shared memory in a loop, so that missing invocations leave gaps in it."""
    return keeps_workgroups(kernel) and bool(variants.find_tile_stores(kernel))


def warn_of_gaps(kernel: Kernel, extent: Extent, local_size: Extent) -> None:
    """Warn of an incomplete workgroup whose shared memory has gaps; see `fills_tiles`."""
    warn(
        f"exec_size {extent} leaves a workgroup of {local_size} incomplete. Invocations beyond it store "
        "nothing in shared memory either, so others read elements that nobody has stored. Launch whole "
        "workgroups by workgroups=, let all invocations store here, and compare their ids with the size "
        "before they write results",
        variants.find_tile_stores(kernel)[0].loc,
    )


def _warn_of_waiting(kernel: Kernel) -> None:
    locs = [statement.loc for statement in variants.find_waits_in_loops(kernel) if statement.loc is not None]
    warn_once_each(
        "Mesa's llvmpipe makes the whole workgroup wait here: if its subgroups come here differently "
        "often, or exec_size does not fill it, results are wrong; atomic_load and atomic_store with "
        "relaxed=True, other atomics and subgroup barriers are safe",
        locs,
    )


def _name_argument(description: ShaderDescription, kinds: Sequence[DType]) -> str:
    """Return a clause that names the first argument of one of these types, or ""."""
    for info in description.shader_arg_infos:
        dtypes = (*(() if info.dtype is None else (info.dtype,)), *info.member_dtypes)
        if not info.reinterpreted and any(dtype.component_type(kind) in kinds for kind in dtypes):
            return f", which {info.name!r} is of"
    return ""


def _make_unsupported(who: str, device: DeviceInfo, what: str) -> errors.UnsupportedError:
    return errors.UnsupportedError(
        f"{who}: the device {device.device_name!r} has no {what}; use another dtype or device"
    )


# ---- Launchers -------------------------------------------------------------------------------------------
#
# Native objects that pack the arguments of a compiled kernel, and launch or record it.


class GuardValues:
    """The journal and the ticket of a kernel in a context. While they live, the ticket is the kernel's."""

    __slots__ = ("_ticket", "journal", "slots")

    def __init__(self, journal: Buffer[Any], ticket: StandingTicket) -> None:
        self._ticket = ticket
        self.journal = journal
        self.slots = (journal, ticket.number)


@record(eq=False)
class Launch:
    """A checked call and its destination.

    Attributes
    ----------
    call
        The values.
    extent
        Invocations along x, y and z; workgroups if `in_groups`.
    graph
        The graph to record it in; None launches it now.
    queue
        The queue of a launch now.
    """

    call: CheckedCall
    extent: Extent
    in_groups: bool
    graph: CommandGraph | None
    queue: int = ALL_QUEUES


@record
class BuiltKernel:
    """A compiled kernel: one variant, for one workgroup size.

    `fusible` is what graphs need to fuse its launches, or None. `loop_guard` is what launches pass after the
    arguments, or None (see `shader.program`). `make_untyped` makes a launcher that compares no dtypes.
    `times` are the stages of the build and their seconds. `form` is the program as written, for traces.
    """

    plan: ComputePlan
    launcher: native.Launcher
    source: ShaderSource
    local_size: Extent
    layout: ArgumentLayout
    make_untyped: Callable[[], native.Launcher]
    fusible: Fusible | None = None
    loop_guard: GuardValues | None = None
    times: tuple[tuple[str, float], ...] = ()
    form: Kernel | None = None

    def run(self, launch: Launch, probe: tuple[int, Probe] | None = None) -> bool:
        """Launch or record a checked call. Return False if the launcher refused it; nothing happened then.

        `probe` goes with the recording of an observed kernel; see `CommandGraph._append_dispatch`.
        """
        call, extent, in_groups = launch.call, launch.extent, launch.in_groups
        if call.is_mixed:
            # launchers refuse one memory as two types
            untyped = self.make_untyped()
            untyped.guard = self.launcher.guard
            mixed = replace(self, launcher=untyped)
            return mixed.run(replace(launch, call=replace(call, is_mixed=False)), probe)
        if self.loop_guard is not None:
            resources = (*call.resources, self.loop_guard.journal)
            call = replace(call, slots=(*call.slots, *self.loop_guard.slots), resources=resources)
        if launch.graph is None:
            return self.launcher.launch(call.slots, extent, in_groups, launch.queue)
        variables = {
            name: [(self.layout.offset_of(slot.member), slot.kind) for slot in slots]
            for name, slots in call.variables.items()
        }
        return launch.graph._append_dispatch(
            self, call.slots, extent, in_groups, call.resources, variables, probe
        )


def bind_kernel(
    context: Context,
    plan: ComputePlan,
    slots: Sequence[Slot],
    layout: ArgumentLayout,
    source: ShaderSource,
    variant: Variant = PLAIN,
    coarsening: Coarsening = UNCOARSENED,
    places: Mapping[int, Place] | None = None,
) -> BuiltKernel:
    """Make the launcher of a compiled kernel.

    Parameters
    ----------
    slots
        The slots of the launcher, in order.
    layout
        The layout of the argument block.
    places
        For variants that move resources: the place of each binding of the plain variant.
    """

    def make(*, typed: bool) -> native.Launcher:
        form = None if places is None else variant
        return native.Launcher(
            context._native,
            plan._native,
            [_make_native_slot(slot, layout, places or {}, form, typed) for slot in slots],
            layout.size,
            0 if layout.uniform else -1,
            -1 if layout.exec_offset is None else layout.exec_offset,
            -1 if layout.group_count_offset is None else layout.group_count_offset,
            variants.count_elements(source.local_size, variant),
            context.max_workgroup_count,
            make_packer(slots),
            coarsening.elements * source.local_size[0],
            coarsening.least,
            variant.coarse > 1,
            wide=variant.wide,
            coarse_step=coarsening.step,
        )

    untyped = cache(lambda: make(typed=False))
    return BuiltKernel(plan, make(typed=True), source, source.local_size, layout, untyped)


def _make_native_slot(
    slot: Slot, layout: ArgumentLayout, places: Mapping[int, Place], variant: Variant | None, typed: bool
) -> native.ArgumentSlot:
    """Return a slot as the native launcher takes it. Without a variant, buffers may have any length."""
    if isinstance(slot, BufferSlot):
        elements = 0  # any number
        if variant is not None and not variant.wide:
            elements = slot.most if variant.addressed else MAX_NARROW
        place = places.get(slot.binding) or Place(slot.binding)
        return native.BufferSlot(
            binding=max(place.binding, 0),
            shape_offset=-1 if slot.shape_member is None else layout.offset_of(slot.shape_member),
            reads=slot.reads,
            writes=slot.writes,
            planar=slot.planar,
            most_bytes=elements * slot.item_size,
            address_offset=place.address,
            length_offset=place.length,
            in_words=place.in_words,
            element=slot.kind if typed else None,
            twin=None if slot.kind is None else pair_twin(slot.kind),
            least_bytes=slot.least_bytes,
            uniform=slot.uniform,
        )
    if isinstance(slot, ImageSlot):
        binding = (places.get(slot.binding) or Place(slot.binding)).binding
        view_type, kind = slot.view_type.value[0], slot.native_kind
        if slot.image.storage:
            return native.ImageSlot(
                binding=binding, view_type=view_type, format=kind, reads=slot.reads, writes=slot.writes
            )
        return native.SamplerSlot(binding=binding, view_type=view_type, texels=kind, reads=slot.reads)
    if slot.scalar_code is not None:
        return native.ScalarSlot(offset=layout.offset_of(slot.member), code=slot.scalar_code)
    return native.ValueSlot(offset=layout.offset_of(slot.member), size=slot.kind.item_size)


# ---- Compiled kernels: the GLSL of a variant, its plan, and its launcher ---------------------------------


_COMPILER_LINE = r"ERROR: 0:(?P<line>\d+): (?P<text>.*)"


@record
class KernelSource:
    """What a compiled kernel is built of.

    Attributes
    ----------
    who
        The kernel and where it is defined, for messages.
    description
        The kernel.
    slots
        The slots of its launcher, in order.
    place
        Where the kernel is defined.
    observed
        Whether the last two of `slots` serve prints and checks.
    """

    who: str
    description: ShaderDescription
    slots: Sequence[Slot]
    place: str | None
    observed: bool = False


@pause_collection()
def build_kernel(
    kernel: KernelSource, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
) -> BuiltKernel:
    """Generate, compile and bind a variant of a kernel.

    `coarsening` says which launches use the coarse variant.

    Raises
    ------
    ValueError
        `local_size` exceeds the device's limits, or the kernel has more bindings than the device allows.
    UnsupportedError
        The device lacks a type that the kernel uses, or does not take as many nested conditions.
    ShaderBuildError
        The compiler or the driver rejected the kernel.
    """
    who, description = kernel.who, kernel.description
    check_local_size(who, local_size, context)
    begin, passes = perf_counter(), -count_seconds()
    body = adapt_kernel(who, description.kernel, context)
    if body is not description.kernel:
        description = replace(description, kernel=body)
    lacks = variants.find_lacks(description.kernel, context)
    check_shared_memory(who, description, context, lacks, variant.shared)
    variant = adapt_variant(variant, lacks)
    check_features(who, description, context, lacks)
    source = description.shader_source(local_size, variant)
    layout = description.layout(variant)
    passes += count_seconds()
    written = perf_counter()
    try:
        plan, compiled = _compile(kernel, source, variant, 0 if layout.uniform else layout.size, context)
        pipeline = perf_counter() - compiled
        places = description.places(variant)
        built = bind_kernel(context, plan, kernel.slots, layout, source, variant, coarsening, places)
        times = {"passes": passes, "GLSL": written - begin - passes, "SPIR-V": compiled - written}
        form = make_form(description.kernel, variant) if tracing.LEVEL >= tracing.STEPS else None
        return replace(built, times=(*times.items(), ("pipeline", pipeline)), form=form)
    except ValueError as error:
        # such as more buffers than the device binds
        more = "; its prints and checks take one buffer and 4 bytes of arguments" if kernel.observed else ""
        raise errors.ArgumentValueError(f"{who}: {error}{more}") from error


def adapt_kernel(who: str, kernel: Kernel, context: Context) -> Kernel:
    """Return the form of a kernel for the devices of a context. Raises UnsupportedError if there is none."""
    return _fit_nesting(who, variants.without_float_atomics(kernel, context.device_infos), context)


def adapt_variant(variant: Variant, lacks: frozenset[str]) -> Variant:
    """Return a variant that does without what devices lack."""
    # addresses are integers of 64 bits
    return replace(variant, lacks=lacks - {INT64} if variant.addressed else lacks)


def _fit_nesting(who: str, kernel: Kernel, context: Context) -> Kernel:
    """Return the form of a kernel with as few nested conditions as llvmpipe takes, on that driver."""
    if is_flat(kernel) or not any(info.is_llvmpipe() for info in context.device_infos):
        return kernel
    flat = run("nesting", flatten, kernel)
    depth, loc = find_depth(flat)
    if depth > DEEPEST:
        raise located(
            errors.UnsupportedError,
            f"{who}: conditions and loops are nested {depth} deep here, and Mesa's llvmpipe, which ignores "
            f"conditions beyond 80, takes {DEEPEST}: join conditions by `and`, or keep one in a variable "
            "and test that after the nest",
            loc,
        )
    return flat


def _compile(
    kernel: KernelSource, source: ShaderSource, variant: Variant, pc_size: int, context: Context
) -> tuple[ComputePlan, float]:
    """Return the pipeline, and when its SPIR-V was there."""
    who, description = kernel.who, kernel.description
    try:
        types = description.binding_types(variant)
        name = description.name
        spirv = compile_glsl(source.code, name)
        compiled = perf_counter()
        plan = ComputePlan(
            source.code, types, pc_size, name, spirv=spirv, checked=True, context=context, place=kernel.place
        )
        return plan, compiled
    except errors.ShaderBuildError as error:
        log = error.compiler_log or ""
        raise errors.ShaderBuildError(
            f"{who}: the GLSL does not compile:\n{explain_log(source, log)}",
            shader_source=source.numbered(),
            compiler_log=log,
        ) from error
    except errors.DeviceLostError:
        raise
    except errors.VulkanError as error:
        raise errors.ShaderBuildError(
            f"{who}: the driver rejected the kernel: {error}", shader_source=source.numbered()
        ) from error


def explain_log(source: ShaderSource, log: str) -> str:
    """Return a compiler's messages, each with the Python line, a caret, and the GLSL concerned."""
    lines, code = list[str](), source.code.splitlines()
    for message in filter(None, map(str.strip, log.splitlines())):
        match = re.match(_COMPILER_LINE, message)
        if match is None:
            lines.append(message)
            continue
        line = int(match["line"])
        loc = source.python_line(line)
        lines.append(f"{loc or f'line {line} of the GLSL'}: {match['text']}")
        if loc is not None:
            lines.append(loc.excerpt())
        lines += [f"    GLSL: {text.strip()}" for text in code[line - 1 : line]]
    return "\n".join(dict.fromkeys(filter(None, lines)))
