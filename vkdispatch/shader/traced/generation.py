"""From a traced kernel to the SPIR-V of a variant: checks against the devices, GLSL, compilation."""

import re
from collections.abc import Sequence

from vkdispatch.base import dtype, errors
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.compiler.analyses.contents import usage
from vkdispatch.compiler.analyses.launch_values import sizes_of_shared
from vkdispatch.compiler.forms import INT64, Variant, emulates
from vkdispatch.compiler.glsl.emulation import REPLACED, can_emulate, usage_by_lanes
from vkdispatch.compiler.ir import ImageBinding, Kernel
from vkdispatch.compiler.ir.location import located, pause_collection, warn, warn_once_each
from vkdispatch.compiler.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.compiler.passes.nesting import DEEPEST, find_depth, flatten, is_flat
from vkdispatch.shader.building import BuiltKernel, KernelCode, bind_code, check_local_size
from vkdispatch.shader.signature import Slot
from vkdispatch.shader.size import Extent
from vkdispatch.shader.traced import lacks as lacking
from vkdispatch.shader.variants import Coarsening

# ---- What a kernel requires of a device: checked before the driver sees the kernel -----------------------


def check_shared_memory(
    who: str, description: ShaderDescription, context: Context, lacks: frozenset[str], sized: Sequence[int]
) -> None:
    """Raise ValueError if the kernel declares more shared memory than a workgroup has.

    `sized` are the counts of elements that a call decides.
    """
    kernel = description.kernel
    guarded = guard_effects(kernel) if keeps_workgroups(kernel) else kernel
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
    if not lacking.can_pack(kernel, lacks):
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
        missing = lacking.find_missing_operation(usage_by_lanes(called, kernel, lacks), device)
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
    return keeps_workgroups(kernel) and bool(lacking.find_tile_stores(kernel))


def warn_of_gaps(kernel: Kernel, extent: Extent, local_size: Extent) -> None:
    """Warn of an incomplete workgroup whose shared memory has gaps; see `fills_tiles`."""
    warn(
        f"exec_size {extent} leaves a workgroup of {local_size} incomplete. Invocations beyond it store "
        "nothing in shared memory either, so others read elements that nobody has stored. Launch whole "
        "workgroups by workgroups=, let all invocations store here, and compare their ids with the size "
        "before they write results",
        lacking.find_tile_stores(kernel)[0].loc,
    )


def _warn_of_waiting(kernel: Kernel) -> None:
    locs = [statement.loc for statement in lacking.find_waits_in_loops(kernel) if statement.loc is not None]
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


# ---- The code of a variant -------------------------------------------------------------------------------


_COMPILER_LINE = r"ERROR: (?P<file>.*?):(?P<line>\d+): (?P<text>.*)"


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


def build_kernel(
    kernel: KernelSource, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
) -> BuiltKernel:
    """Generate, compile and bind a variant of a kernel; see `generate_code` and `bind_code`."""
    code = generate_code(kernel, context, local_size, variant)
    return bind_code(kernel.who, kernel.place, code, context, coarsening)


@pause_collection()
def generate_code(kernel: KernelSource, context: Context, local_size: Extent, variant: Variant) -> KernelCode:
    """Generate and compile a variant of a kernel.

    Raises
    ------
    ValueError
        `local_size` exceeds the device's limits.
    UnsupportedError
        The device lacks a type that the kernel uses, or does not take as many nested conditions.
    ShaderBuildError
        The compiler rejected the kernel.
    """
    who, description = kernel.who, kernel.description
    check_local_size(who, local_size, context)
    body = _fit_nesting(who, lacking.without_float_atomics(description.kernel, context.device_infos), context)
    if body is not description.kernel:
        description = replace(description, kernel=body)
    lacks = lacking.find_lacks(description.kernel, context)
    check_shared_memory(who, description, context, lacks, variant.shared)
    # addresses are integers of 64 bits
    variant = replace(variant, lacks=lacks - {INT64} if variant.addressed else lacks)
    check_features(who, description, context, lacks)
    source = description.shader_source(local_size, variant)
    try:
        spirv = compile_glsl(source.code, description.name, source.with_line_directives)
    except errors.ShaderBuildError as error:
        log = error.compiler_log or ""
        raise errors.ShaderBuildError(
            f"{who}: the GLSL does not compile:\n{explain_log(source, log)}",
            shader_source=source.numbered(),
            compiler_log=log,
        ) from error
    types, places = description.binding_types(variant), description.places(variant)
    layout = description.layout(variant)
    return KernelCode(source, spirv, types, variant, kernel.slots, layout, places, kernel.observed)


def _fit_nesting(who: str, kernel: Kernel, context: Context) -> Kernel:
    """Return the form of a kernel with as few nested conditions as llvmpipe takes, on that driver."""
    if is_flat(kernel) or not any(info.is_llvmpipe() for info in context.device_infos):
        return kernel
    flat = flatten(kernel)
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


def explain_log(source: ShaderSource, log: str) -> str:
    """Return a compiler's messages, each with the Python line, a caret, and the GLSL concerned."""
    lines: list[str] = []
    for message in filter(None, map(str.strip, log.splitlines())):
        match = re.match(_COMPILER_LINE, message)
        if match is None:
            lines.append(message)
            continue
        file, line = match["file"], int(match["line"])
        locs = (loc for loc in source.line_map if loc and (loc.file, loc.line) == (file, line))
        loc = next(locs, None)
        lines.append(f"{loc or f'line {line} of the GLSL'}: {match['text']}")
        if loc is not None:
            lines += [loc.excerpt()]
        lines += [f"    GLSL: {text}" for text in source.lines_of(file, line)]
    return "\n".join(dict.fromkeys(filter(None, lines)))
