"""Compiled kernels: the GLSL and the plan for one workgroup size, and the launcher that packs arguments."""

import bisect
import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from vkdispatch.analyses.contents import usage
from vkdispatch.analyses.layout import ArgumentLayout
from vkdispatch.base import dtype
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.devices.information import DeviceInfo
from vkdispatch.base.dtype import DType, pair_twin
from vkdispatch.base.errors import (
    ArgumentValueError,
    DeviceLostError,
    ShaderBuildError,
    UnsupportedError,
    VulkanError,
)
from vkdispatch.base.handle import Handle
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderDescription, ShaderSource
from vkdispatch.codegen.description import Place
from vkdispatch.codegen.trace.kernel_warnings import warn
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.diagnostics import Probe
from vkdispatch.execution_pipeline.optimization import Fusible
from vkdispatch.glsl.emulation import can_emulate
from vkdispatch.glsl.lanes import REPLACED, usage_by_lanes
from vkdispatch.ir import ImageBinding, Kernel
from vkdispatch.ir.variant import INT64, PLAIN, Variant, emulates
from vkdispatch.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.shader.arguments.slots import MOST_NARROW, BufferSlot, ImageSlot, Slot, make_packer
from vkdispatch.shader.arguments.values import CheckedCall
from vkdispatch.shader.launch.features import missing_operation, waiting_in_loops
from vkdispatch.shader.launch.size import Extent, LaunchSize
from vkdispatch.shader.launch.variants import UNCOARSENED, Coarsening, can_pack, count_elements, find_lacks

_COMPILER_LINE = r"ERROR: (?P<file>.*?):(?P<line>\d+): (?P<text>.*)"


@record
class BuiltKernel:
    """A compiled kernel: one variant, for one workgroup size.

    `fusible` is what graphs need to fuse its launches, or None.
    """

    plan: ComputePlan
    launcher: native.Launcher
    source: ShaderSource
    local_size: Extent
    layout: ArgumentLayout
    fusible: Fusible | None = None

    def run(
        self,
        call: CheckedCall,
        extent: Extent,
        in_groups: bool,
        graph: CommandGraph | None,
        probe: tuple[int, Probe] | None = None,
        queue: int = ALL_QUEUES,
    ) -> bool:
        """Launch or record a checked call. Return False if the launcher refused it; nothing happened then.

        `queue` is for a launch; `probe` goes with the recording of an observed kernel, see
        `CommandGraph._append_dispatch`.
        """
        if graph is None:
            return self.launcher.launch(call.slots, extent, in_groups, queue)
        variables = {
            name: [(self.layout.offset_of(slot.member), slot.kind) for slot in slots]
            for name, slots in call.variables.items()
        }
        return graph._append_dispatch(self, call.slots, extent, in_groups, call.resources, variables, probe)


class FastPath:
    """Launches calls without checking their arguments in Python: the native launchers check them.

    There is one launcher for each variant that was built. A launcher refuses what is not for its variant.
    """

    __slots__ = (
        "__weakref__",
        "_constants",
        "_count",
        "_in_groups",
        "_kernels",
        "_launch",
        "_others",
        "_ranks",
        "_resources",
    )

    def __init__(self, slots: Sequence[Slot], in_groups: bool, constants: tuple[Handle, ...] = ()) -> None:
        """Prepare for launchers with these slots, the last of which get the `constants`."""
        self._count = len(slots)
        self._constants = constants
        self._ranks: list[int] = []
        self._kernels: tuple[BuiltKernel, ...] = ()
        self._launch: Callable[[tuple[Any, ...], Any, bool, int], bool] = _refuse
        self._others: tuple[Callable[[tuple[Any, ...], Any, bool, int], bool], ...] = ()
        self._in_groups = in_groups
        self._resources = _make_picker(
            [index for index, slot in enumerate(slots) if isinstance(slot, (BufferSlot, ImageSlot))]
        )

    def add(self, kernel: BuiltKernel, variant: Variant) -> None:
        """Add a variant. Variants for large buffers accept small ones too, so they are tried last."""
        rank = variant.addressed + variant.wide
        place = bisect.bisect(self._ranks, rank)
        self._ranks.insert(place, rank)
        self._kernels = (*self._kernels[:place], kernel, *self._kernels[place:])
        self._launch, *others = (each.launcher.launch for each in self._kernels)
        self._others = tuple(others)

    def run(self, values: tuple[Any, ...], size: LaunchSize, graph: object, queue: int = ALL_QUEUES) -> bool:
        """Launch, or record into a graph. Return False if all launchers refused; nothing happened then.

        Raises
        ------
        VulkanError
            The launch failed and the context is still usable.
        """
        limit: Any = size.fixed
        if limit is None:
            try:
                limit = size.compute(*values)  # type: ignore[misc]
            except Exception:
                # the checking path reports which argument is at fault
                return False
        if self._constants:
            values += self._constants
        try:
            if graph is None:
                if self._launch(values, limit, self._in_groups, queue):
                    return True
                return any(launch(values, limit, self._in_groups, queue) for launch in self._others)
            if queue != ALL_QUEUES or not isinstance(graph, CommandGraph) or graph.destroyed:
                return False
            if len(values) != self._count:
                return False
            resources = self._resources(values)
            for kernel in self._kernels:
                if graph._append_dispatch(kernel, values, limit, self._in_groups, resources):
                    return True
            return False
        except VulkanError:
            if self._kernels[0].plan.context.usable:
                raise
            return False


def _refuse(*_: object) -> bool:
    """Refuse every call, as there is no launcher yet."""
    return False


def _make_picker(positions: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that selects values as a tuple, which `itemgetter` returns for two or more only."""
    if len(positions) > 1:
        return itemgetter(*positions)
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))


def build_kernel(
    who: str,
    description: ShaderDescription,
    slots: Sequence[Slot],
    context: Context,
    local_size: Extent,
    *,
    variant: Variant = PLAIN,
    coarsening: Coarsening = UNCOARSENED,
    observed: bool = False,
    place: str | None = None,
) -> BuiltKernel:
    """Generate, compile and bind a kernel.

    Parameters
    ----------
    who
        The kernel and where it is defined, for messages.
    slots
        The slots of its launcher, in order.
    variant
        The variant to compile.
    coarsening
        Which launches use the coarse variant.
    observed
        Whether the last two of `slots` serve prints and checks.
    place
        Where the kernel is defined.

    Raises
    ------
    ValueError
        `local_size` exceeds the device's limits, or the kernel has more bindings than the device allows.
    UnsupportedError
        The device lacks a type that the kernel uses.
    ShaderBuildError
        The compiler or the driver rejected the kernel.
    """
    check_local_size(who, local_size, context)
    lacks = find_lacks(description.kernel, context)
    check_shared_memory(who, description, context, lacks)
    # addresses are integers of 64 bits
    variant = replace(variant, lacks=lacks - {INT64} if variant.addressed else lacks)
    check_features(who, description, context, lacks)
    source = description.shader_source(local_size, variant)
    layout = description.layout(variant)
    uniform_binding = 0 if layout.uniform else -1
    try:
        pc_size = 0 if layout.uniform else layout.size
        plan = _compile(who, source, description, variant, pc_size, place)
        places = description.places(variant)
        return bind_kernel(context, plan, slots, layout, uniform_binding, source, variant, coarsening, places)
    except ValueError as error:
        # such as more buffers than the device binds
        more = "; its prints and checks take one buffer and 4 bytes of arguments" if observed else ""
        raise ArgumentValueError(f"{who}: {error}{more}") from error


def bind_kernel(
    context: Context,
    plan: ComputePlan,
    slots: Sequence[Slot],
    layout: ArgumentLayout,
    uniform_binding: int,
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
    uniform_binding
        The binding of that block; -1 if it is passed as push constants.
    places
        For variants that move resources: the place of each binding of the plain variant.
    """
    launcher = native.Launcher(
        context._native,
        plan._native,
        [
            _make_native_slot(slot, layout.offset_of, places or {}, None if places is None else variant)
            for slot in slots
        ],
        layout.size,
        uniform_binding,
        -1 if layout.exec_offset is None else layout.exec_offset,
        -1 if layout.group_count_offset is None else layout.group_count_offset,
        count_elements(source.local_size, variant),
        context.max_workgroup_count,
        make_packer(slots),
        coarsening.elements * source.local_size[0],
        coarsening.least,
        variant.coarse > 1,
        wide=variant.wide,
        coarse_step=coarsening.step,
    )
    return BuiltKernel(plan, launcher, source, source.local_size, layout)


def check_local_size(who: str, local_size: Extent, context: Context) -> None:
    """Raise ValueError if a workgroup size exceeds the limits of the device."""
    x, y, z = local_size
    if x * y * z > context.max_workgroup_invocations or any(
        size > most for size, most in zip(local_size, context.max_workgroup_size, strict=True)
    ):
        raise ArgumentValueError(
            f"{who}: local_size: {local_size} is more than this device's workgroups hold: at most "
            f"{context.max_workgroup_size}, {context.max_workgroup_invocations} invocations in all"
        )


def check_shared_memory(
    who: str, description: ShaderDescription, context: Context, lacks: frozenset[str]
) -> None:
    """Raise ValueError if the kernel declares more shared memory than a workgroup has."""
    kernel = description.kernel
    arrays = guard_effects(kernel).shared if keeps_workgroups(kernel) else kernel.shared
    size = sum(array.size * _count_shared_bytes(array.dtype, lacks) for array in arrays)
    if size > context.max_shared_memory:
        raise ArgumentValueError(
            f"{who}: its shared buffers take {size} bytes; a workgroup on this device has "
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
    if not can_pack(kernel, lacks):
        names = ", ".join(sorted(lacks - REPLACED))
        raise UnsupportedError(
            f"{who}: the device {context.device_infos[0].device_name!r} has no {names}: "
            "elements are packed in words, which code in GLSL and cooperative matrices do not reach; use a "
            "dtype of 32 bits"
        )
    emulated = {kind for kind in used if emulates(kind, lacks)} if can_emulate(kernel, lacks) else set()
    for device in context.device_infos:
        # operations first: the type of a missing operation is not emulated either
        called = replace(usage_, subgroup_dtypes=usage_.subgroup_dtypes - emulated)
        missing = missing_operation(usage_by_lanes(called, kernel, lacks), device)
        if missing:
            raise UnsupportedError(f"{who}: the device {device.device_name!r} has no {missing}")
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


def _warn_of_waiting(kernel: Kernel) -> None:
    for statement in waiting_in_loops(kernel):
        if statement.loc is not None:
            warn(
                "Mesa's llvmpipe makes the whole workgroup wait here: if its subgroups come here differently "
                "often, or exec_size does not fill it, results are wrong; atomic_load and atomic_store with "
                "relaxed=True, other atomics and subgroup barriers are safe",
                statement.loc,
            )


def _name_argument(description: ShaderDescription, kinds: Sequence[DType]) -> str:
    """Return a clause that names the first argument of one of these types, or ""."""
    for info in description.shader_arg_infos:
        own = (*(() if info.dtype is None else (info.dtype,)), *info.member_dtypes)
        if not info.reinterpreted and any(dtype.component_type(kind) in kinds for kind in own):
            return f", which {info.name!r} is of"
    return ""


def _make_unsupported(who: str, device: DeviceInfo, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{who}: the device {device.device_name!r} has no {what}; use another dtype or device"
    )


def _compile(
    who: str,
    source: ShaderSource,
    description: ShaderDescription,
    variant: Variant,
    pc_size: int,
    place: str | None,
) -> ComputePlan:
    try:
        types = description.binding_types(variant)
        spirv = compile_glsl(source.code, description.name, source.with_line_directives)
        return ComputePlan(
            source.code, types, pc_size, description.name, spirv=spirv, checked=True, place=place
        )
    except ShaderBuildError as error:
        log = error.compiler_log or ""
        raise ShaderBuildError(
            f"{who}: the GLSL does not compile:\n{explain_log(source, log)}",
            shader_source=source.numbered(),
            compiler_log=log,
        ) from error
    except DeviceLostError:
        raise
    except VulkanError as error:
        raise ShaderBuildError(
            f"{who}: the driver refused the kernel: {error}", shader_source=source.numbered()
        ) from error


def explain_log(source: ShaderSource, log: str) -> str:
    """Return a compiler's messages, each with the Python line, a caret, and the GLSL concerned."""
    lines: list[str] = []
    for message in filter(None, map(str.strip, log.splitlines())):
        found = re.match(_COMPILER_LINE, message)
        if found is None:
            lines.append(message)
            continue
        file, line = found["file"], int(found["line"])
        locs = (loc for loc in source.line_map if loc and (loc.file, loc.line) == (file, line))
        loc = next(locs, None)
        lines.append(f"{loc or f'line {line} of the GLSL'}: {found['text']}")
        if loc is not None:
            lines += [loc.excerpt()]
        lines += [f"    GLSL: {text}" for text in source.lines_of(file, line)]
    return "\n".join(dict.fromkeys(filter(None, lines)))


def _make_native_slot(
    slot: Slot, offset_of: Callable[[str], int], places: Mapping[int, Place], variant: Variant | None
) -> native.ArgumentSlot:
    """Return a slot as the native launcher takes it. Without a variant, buffers may have any length."""
    if isinstance(slot, BufferSlot):
        elements = 0  # any number
        if variant is not None and not variant.wide:
            elements = slot.most if variant.addressed else MOST_NARROW
        place = places.get(slot.binding) or Place(slot.binding)
        return native.BufferSlot(
            binding=max(place.binding, 0),
            shape_offset=-1 if slot.shape_member is None else offset_of(slot.shape_member),
            reads=slot.reads,
            writes=slot.writes,
            planar=slot.planar,
            most_bytes=elements * slot.item_size,
            address_offset=place.address,
            length_offset=place.length,
            in_words=place.in_words,
            element=slot.kind,
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
        return native.ScalarSlot(offset=offset_of(slot.member), code=slot.scalar_code)
    return native.ValueSlot(offset=offset_of(slot.member), size=slot.kind.item_size)
