"""What a kernel requires of a device: checked before the driver sees the kernel."""

from collections.abc import Sequence

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.record import replace
from vkdispatch.codegen import ShaderDescription
from vkdispatch.compiler.analyses.contents import usage
from vkdispatch.compiler.analyses.launch_values import sizes_of_shared
from vkdispatch.compiler.glsl.emulation import REPLACED, can_emulate, usage_by_lanes
from vkdispatch.compiler.ir import ImageBinding, Kernel
from vkdispatch.compiler.ir.location import warn, warn_once_each
from vkdispatch.compiler.ir.statements import emulates
from vkdispatch.compiler.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.shader.launch.features import (
    find_missing_operation,
    find_tile_stores,
    find_waits_in_loops,
)
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.launch.variants import can_pack


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
    who: str, description: ShaderDescription, context: Context, lacks: frozenset[str], sized: Sequence[int]
) -> None:
    """Raise ValueError if the kernel declares more shared memory than a workgroup has.

    `sized` are the counts of elements that a call decides.
    """
    kernel = description.kernel
    guarded = guard_effects(kernel) if keeps_workgroups(kernel) else kernel
    counts = sizes_of_shared(guarded, sized)
    size = sum(counts[id(each)] * _count_shared_bytes(each.dtype, lacks) for each in guarded.shared)
    if size > context.max_shared_memory:
        by_call = [f"{each.name!r} {counts[id(each)]}" for each in kernel.shared if each.size is None]
        elements = f" (elements with these arguments: {', '.join(by_call)})" if by_call else ""
        raise ArgumentValueError(
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
    if not can_pack(kernel, lacks):
        names = ", ".join(sorted(lacks - REPLACED))
        raise UnsupportedError(
            f"{who}: the device {context.device_infos[0].device_name!r} has no {names}: "
            "elements are packed in words, which code in GLSL and cooperative matrices do not reach; use a "
            "dtype of 32 bits"
        )
    emulated = {kind for kind in used if emulates(kind, lacks)} if can_emulate(kernel, lacks) else set()
    for device in context.device_infos:
        # Operations come first: emulation does not help if the operation of a type is missing.
        called = replace(usage_, subgroup_dtypes=usage_.subgroup_dtypes - emulated)
        missing = find_missing_operation(usage_by_lanes(called, kernel, lacks), device)
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


def fills_tiles(kernel: Kernel) -> bool:
    """Whether a kernel fills shared memory in a loop, so that missing invocations leave gaps in it."""
    return keeps_workgroups(kernel) and bool(find_tile_stores(kernel))


def warn_of_gaps(kernel: Kernel, extent: Extent, local_size: Extent) -> None:
    """Warn of an incomplete workgroup whose shared memory has gaps; see `fills_tiles`."""
    warn(
        f"exec_size {extent} leaves a workgroup of {local_size} incomplete. Invocations beyond it store "
        "nothing in shared memory either, so others read elements that nobody has stored. Launch whole "
        "workgroups by workgroups=, let all invocations store here, and compare their ids with the size "
        "before they write results",
        find_tile_stores(kernel)[0].loc,
    )


def _warn_of_waiting(kernel: Kernel) -> None:
    locs = [statement.loc for statement in find_waits_in_loops(kernel) if statement.loc is not None]
    warn_once_each(
        "Mesa's llvmpipe makes the whole workgroup wait here: if its subgroups come here differently "
        "often, or exec_size does not fill it, results are wrong; atomic_load and atomic_store with "
        "relaxed=True, other atomics and subgroup barriers are safe",
        locs,
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
