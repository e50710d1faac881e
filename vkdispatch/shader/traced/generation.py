"""From a traced kernel to the SPIR-V of a variant: what a device lacks, GLSL, compilation."""

import re
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from vkdispatch.base import dtype, errors
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.dtype import DType, component_type, is_cooperative, is_float_dtype
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.compiler import forms, ir
from vkdispatch.compiler.analyses.contents import Usage, packed_buffers, reaches_elements, remember, usage
from vkdispatch.compiler.analyses.joint_flow import is_barrier
from vkdispatch.compiler.analyses.launch_values import sizes_of_shared
from vkdispatch.compiler.forms import Variant, emulates
from vkdispatch.compiler.glsl import emulation
from vkdispatch.compiler.ir.location import located, pause_collection, warn, warn_once_each
from vkdispatch.compiler.passes.bounds import keeps_workgroups
from vkdispatch.compiler.passes.coarsen import BLOCK, can_block, choose_elements
from vkdispatch.compiler.passes.lowering import replace_float_atomics
from vkdispatch.compiler.passes.nesting import DEEPEST, find_depth, flatten, is_flat
from vkdispatch.compiler.passes.order import count_seconds, keep_invocations, make_form, run
from vkdispatch.shader import building, tracing
from vkdispatch.shader.building import (
    UNCOARSENED,
    BuiltKernel,
    Coarsening,
    KernelCode,
    bind_code,
    check_local_size,
)
from vkdispatch.shader.signature import Slot
from vkdispatch.shader.size import Extent

# ---- Operations of the kernel language that a device lacks -----------------------------------------------


_COMPUTE_STAGE = 0x20
# Bits of VkSubgroupFeatureFlagBits.
SUBGROUP_BITS = {
    "basic": 0x01,
    "vote": 0x02,
    "arithmetic": 0x04,
    "ballot": 0x08,
    "shuffle": 0x10,
    "shuffle_relative": 0x20,
    "clustered": 0x40,
    "quad": 0x80,
}
_ORDERING = frozenset(
    [
        "memoryBarrier",
        "memoryBarrierBuffer",
        "memoryBarrierShared",
        "memoryBarrierImage",
        "groupMemoryBarrier",
        "atomicLoad",
        "atomicStore",
    ]
)
_FLOAT_ATOMICS = {"atomicAdd": "AtomicAdd", "atomicMin": "AtomicMinMax", "atomicMax": "AtomicMinMax"}


def find_missing_operation(used: Usage, device: DeviceInfo) -> str | None:
    """Return the first operation of a kernel that a device lacks, with its Vulkan feature, or None."""
    return (
        _find_missing_subgroup(used, device)
        or _find_missing_atomic(used, device)
        or _find_missing_matrix(used, device)
    )


def find_waits_in_loops(kernel: ir.Kernel) -> Iterator[ir.Statement]:
    """Yield the statements in loops at which Mesa's llvmpipe makes whole workgroups wait: memory barriers.

    Other drivers do not wait there. llvmpipe ends an invocation for good if invocations of another subgroup
    of its workgroup reach the statement less often. In a loop with a barrier all reach it equally often.
    """
    return _walk_waits(kernel.body, apart=False)


def _walk_waits(block: ir.Block, *, apart: bool) -> Iterator[ir.Statement]:
    for statement in block:
        if apart and (
            (isinstance(statement, ir.Effect) and statement.function in _ORDERING)
            or (isinstance(statement, ir.Declare) and statement.value.value in _ORDERING)
        ):
            yield statement
        loop = isinstance(statement, (ir.While, ir.For))
        within = apart or (loop and not any(map(is_barrier, ir.walk((statement,)))))
        for inner in ir.blocks_of(statement):
            yield from _walk_waits(inner, apart=within)


@remember
def find_tile_stores(kernel: ir.Kernel) -> tuple[ir.Store, ...]:
    """Return the stores to shared memory in loops with barriers: there an invocation works for the others."""
    return tuple(_walk_tile_stores(kernel.body))


def _walk_tile_stores(block: ir.Block) -> Iterator[ir.Store]:
    for statement in block:
        if isinstance(statement, (ir.While, ir.For)) and any(map(is_barrier, ir.walk((statement,)))):
            for inner in ir.walk((statement,)):
                if isinstance(inner, ir.Store) and _is_in_tile(inner.place):
                    yield inner
        else:
            for body in ir.blocks_of(statement):
                yield from _walk_tile_stores(body)


def _is_in_tile(place: ir.Expr) -> bool:
    """Whether a place in shared memory may be another one for each invocation."""
    root = ir.root_of(place)
    return isinstance(root.value, ir.SharedArray) and any(
        operand.op is not ir.Op.LITERAL for operand in ir.place_operands(place)
    )


def _find_missing_matrix(used: Usage, device: DeviceInfo) -> str | None:
    matrices = [kind for kind in used.dtypes if is_cooperative(kind)]
    if not matrices:
        return None
    if "cooperativeMatrix" not in device.features:
        return "cooperative matrices (cooperativeMatrix of VK_KHR_cooperative_matrix)"
    if emulation.has_bfloat16_matrices(used):
        if any(component_type(kind) is dtype.float16 for kind in used.dtypes):
            return "float16 in kernels with cooperative matrices of bfloat16"
        if "shaderBFloat16CooperativeMatrix" not in device.features:
            return "cooperative matrices of bfloat16 (shaderBFloat16CooperativeMatrix)"
    for kind in sorted(matrices, key=lambda each: each.name):
        if not _is_matrix_supported(kind, device):
            return f"a {kind.name} among its products (DeviceInfo.cooperative_matrices)"
    if used.windows and "cooperativeMatrixTensorAddressing" not in device.features:
        return "windows of matrices (cooperativeMatrixTensorAddressing of VK_NV_cooperative_matrix2)"
    return None


def _is_matrix_supported(kind: Any, device: DeviceInfo) -> bool:
    """Whether a matrix belongs to a product that the device computes."""
    scalar = component_type(kind).name
    for product in device.cooperative_matrices:
        sizes, scalars = {
            "a": ((product.m, product.k), (product.a,)),
            "b": ((product.k, product.n), (product.b,)),
            "accumulator": ((product.m, product.n), (product.c, product.result)),
        }[kind.use]
        fits = [
            length % size == 0 if product.flexible else length == size
            for length, size in zip(kind.shape, sizes, strict=True)
        ]
        # A product may be converted to an accumulator of another type.
        if all(fits) and product.scope == kind.scope and (scalar in scalars or kind.use == "accumulator"):
            return True
    return False


def _find_missing_subgroup(used: Usage, device: DeviceInfo) -> str | None:
    if not used.subgroup_functions:
        return None
    if not device.supported_stages & _COMPUTE_STAGE:
        return "subgroup operations in compute kernels (VkPhysicalDeviceSubgroupProperties.supportedStages)"
    for function in sorted(used.subgroup_functions):
        group = emulation.subgroup_class(function)
        if not device.supported_operations & SUBGROUP_BITS[group]:
            flag = f"VK_SUBGROUP_FEATURE_{group.upper()}_BIT"
            return f"subgroup operations of the class {group!r}, which {function} needs ({flag})"
    if "shaderSubgroupExtendedTypes" not in device.features:
        for kinds, _ in emulation.EXTENDED_TYPES:
            for kind in kinds:
                if kind in used.subgroup_dtypes:
                    return f"subgroup operations of {kind.name} (shaderSubgroupExtendedTypes)"
    return None


def _find_missing_atomic(used: Usage, device: DeviceInfo) -> str | None:
    for function, kind, shared in sorted(used.atomics, key=lambda item: (item[0], item[1].name, item[2])):
        feature = find_atomic_feature(function, kind, shared=shared)
        if feature and feature not in device.features:
            where = "shared memory" if shared else "buffers"
            return f"{function} of {kind.name} in {where} ({feature})"
    return None


def without_float_atomics(kernel: ir.Kernel, devices: Sequence[DeviceInfo]) -> ir.Kernel:
    """Return a kernel without the atomics of floats that one of the devices lacks: see `passes.lowering`."""

    def lacks(function: str, kind: DType, shared: bool) -> bool:
        feature = find_atomic_feature(function, kind, shared=shared)
        return any(feature not in info.features for info in devices)

    return run("atomics", replace_float_atomics, kernel, lacks)


def find_atomic_feature(function: str, kind: DType, *, shared: bool) -> str | None:
    """Return the Vulkan feature that an atomic needs, or None if every device has it."""
    memory = "Shared" if shared else "Buffer"
    if is_float_dtype(kind):
        return f"shader{memory}Float{8 * kind.item_size}{_FLOAT_ATOMICS.get(function, 'Atomics')}"
    return f"shader{memory}Int64Atomics" if kind.item_size == 8 else None


# ---- The forms of a kernel that suit the devices of a context --------------------------------------------


# GPUs need this many elements before several per invocation are faster.
_MANY = 1 << 19
# With fewer elements a CPU finishes the plain variant before the blocked one is compiled.
_MANY_IN_BLOCKS = 1 << 17
# The attribute of `DeviceInfo` for each feature.
_ATTRIBUTES = {
    forms.STORAGE[1]: "storage_buffer_8_bit_access",
    forms.STORAGE[2]: "storage_buffer_16_bit_access",
    forms.INT64: "int_64_support",
    forms.INT16: "int_16_support",
    forms.FLOAT16: "float_16_support",
}


def choose_coarsening(kernel: ir.Kernel, context: Context) -> Coarsening:
    """Choose when to coarsen a kernel on these devices. On CPUs, only blocks are faster."""
    if without_float_atomics(kernel, context.device_infos) is not kernel:
        return UNCOARSENED
    forced = "coarse" in building._FORCED
    if "blocks" in building._FORCED or (context.is_cpu() and not forced):
        if not all(info.float_64_support for info in context.device_infos) or not can_block(kernel):
            return UNCOARSENED
        return Coarsening(BLOCK, 1 if "blocks" in building._FORCED else _MANY_IN_BLOCKS, blocks=True)
    elements = choose_elements(kernel)
    return Coarsening(elements, 1 if forced else _MANY) if elements > 1 else UNCOARSENED


def find_lacks(kernel: ir.Kernel, context: Context) -> frozenset[str]:
    """Return the features that a kernel uses and a device lacks, which its variant has to replace."""
    used = usage(kernel)
    wanted = {forms.STORAGE[size] for size in map(_count_scalar_bytes, used.stored) if size in forms.STORAGE}
    computed = {
        forms.FEATURE_OF[kind] for kind in map(component_type, used.dtypes) if kind in forms.FEATURE_OF
    }
    short = any(_count_scalar_bytes(member.dtype) == 2 for member in kernel.arguments)
    if "packed" not in building._FORCED:
        infos = context.device_infos
        missing = {
            feature
            for feature in wanted | computed
            if not all(getattr(info, _ATTRIBUTES[feature]) for info in infos)
        }
        missing |= _find_missing_classes(used, context)
        if short and (missing & computed or not all(map(_takes_short_arguments, infos))):
            missing.add(forms.SHORT_ARGUMENTS)
        return frozenset(missing)
    classes = _find_replaceable_classes(used) if _can_go_by_lanes(context) else set()
    forced = frozenset(wanted | computed | classes | ({forms.SHORT_ARGUMENTS} if short else set()))
    if not emulation.can_emulate(kernel, forced):
        forced = frozenset(wanted | classes)
    return forced if can_pack(kernel, forced) else frozenset()


def _find_replaceable_classes(used: Usage) -> set[str]:
    """Return the classes of a kernel's subgroup operations that a variant can replace."""
    return {emulation.subgroup_class(function) for function in used.subgroup_functions} & emulation.REPLACED


def _can_go_by_lanes(context: Context) -> bool:
    needed = SUBGROUP_BITS["ballot"] | SUBGROUP_BITS["shuffle"]
    return all(info.supported_operations & needed == needed for info in context.device_infos)


def _find_missing_classes(used: Usage, context: Context) -> set[str]:
    if not used.subgroup_functions or not _can_go_by_lanes(context):
        return set()
    operations = -1
    for info in context.device_infos:
        operations &= info.supported_operations
    return {group for group in _find_replaceable_classes(used) if not operations & SUBGROUP_BITS[group]}


def _count_scalar_bytes(kind: DType) -> int:
    return component_type(kind).item_size


def _takes_short_arguments(info: DeviceInfo) -> bool:
    return bool(info.storage_push_constant_16 and info.uniform_and_storage_buffer_16_bit_access)


def can_pack(kernel: ir.Kernel, lacks: frozenset[str]) -> bool:
    """Whether a kernel accesses buffers that would be packed only by loads and stores of elements."""
    return not lacks or not reaches_elements(kernel, packed_buffers(kernel, Variant(lacks=lacks)))


# ---- What a kernel requires of a device: checked before the driver sees the kernel -----------------------


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
    small = component_type(kind).item_size == 2 and emulates(kind, lacks)
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
    used = {component_type(kind) for kind in usage_.dtypes}
    if not can_pack(kernel, lacks):
        names = ", ".join(sorted(lacks - emulation.REPLACED))
        raise errors.UnsupportedError(
            f"{who}: the device {context.device_infos[0].device_name!r} has no {names}: "
            "elements are packed in words, which code in GLSL and cooperative matrices do not reach; use a "
            "dtype of 32 bits"
        )
    emulated: set[DType] = set()
    if emulation.can_emulate(kernel, lacks):
        emulated = {kind for kind in used if emulates(kind, lacks)}
    for device in context.device_infos:
        # Operations come first: emulation does not help if the operation of a type is missing.
        called = replace(usage_, subgroup_dtypes=usage_.subgroup_dtypes - emulated)
        missing = find_missing_operation(emulation.usage_by_lanes(called, kernel, lacks), device)
        if missing:
            raise errors.UnsupportedError(f"{who}: the device {device.device_name!r} has no {missing}")
        for kinds, feature, name in _FEATURES:
            if used.intersection(kinds) and not getattr(device, feature) and not emulated.intersection(kinds):
                error = _make_unsupported(who, device, name + _name_argument(description, kinds))
                error._dtypes = kinds
                raise error
        images = [r.dtype for r in kernel.resources if isinstance(r, ir.ImageBinding) and r.storage]
        pairs = any(dtype.component_count(kind) == 2 for kind in images)
        if pairs and not device.storage_image_extended_formats:
            raise _make_unsupported(who, device, "storage images of two channels")
    if any(device.is_llvmpipe() for device in context.device_infos):
        _warn_of_waiting(kernel)


def fills_tiles(kernel: ir.Kernel) -> bool:
    """Whether a kernel fills shared memory in a loop, so that missing invocations leave gaps in it."""
    return keeps_workgroups(kernel) and bool(find_tile_stores(kernel))


def warn_of_gaps(kernel: ir.Kernel, extent: Extent, local_size: Extent) -> None:
    """Warn of an incomplete workgroup whose shared memory has gaps; see `fills_tiles`."""
    warn(
        f"exec_size {extent} leaves a workgroup of {local_size} incomplete. Invocations beyond it store "
        "nothing in shared memory either, so others read elements that nobody has stored. Launch whole "
        "workgroups by workgroups=, let all invocations store here, and compare their ids with the size "
        "before they write results",
        find_tile_stores(kernel)[0].loc,
    )


def _warn_of_waiting(kernel: ir.Kernel) -> None:
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
        dtypes = (*(() if info.dtype is None else (info.dtype,)), *info.member_dtypes)
        if not info.reinterpreted and any(component_type(kind) in kinds for kind in dtypes):
            return f", which {info.name!r} is of"
    return ""


def _make_unsupported(who: str, device: DeviceInfo, what: str) -> errors.UnsupportedError:
    return errors.UnsupportedError(
        f"{who}: the device {device.device_name!r} has no {what}; use another dtype or device"
    )


# ---- The code of a variant -------------------------------------------------------------------------------


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
    begin, passes = perf_counter(), -count_seconds()
    body = adapt_kernel(who, description.kernel, context)
    if body is not description.kernel:
        description = replace(description, kernel=body)
    lacks = find_lacks(description.kernel, context)
    check_shared_memory(who, description, context, lacks, variant.shared)
    variant = adapt_variant(variant, lacks)
    check_features(who, description, context, lacks)
    source = description.shader_source(local_size, variant)
    passes += count_seconds()
    written = perf_counter()
    try:
        spirv = compile_glsl(source.code, description.name)
    except errors.ShaderBuildError as error:
        log = error.compiler_log or ""
        raise errors.ShaderBuildError(
            f"{who}: the GLSL does not compile:\n{explain_log(source, log)}",
            shader_source=source.numbered(),
            compiler_log=log,
        ) from error
    seconds = {"passes": passes, "GLSL": written - begin - passes, "SPIR-V": perf_counter() - written}
    types, places = description.binding_types(variant), description.places(variant)
    layout, slots = description.layout(variant), kernel.slots
    form = make_form(description.kernel, variant) if tracing.LEVEL >= tracing.STEPS else None
    times = tuple(seconds.items())
    return KernelCode(source, spirv, types, variant, slots, layout, places, kernel.observed, times, form)


def adapt_kernel(who: str, kernel: ir.Kernel, context: Context) -> ir.Kernel:
    """Return the form of a kernel for the devices of a context. Raises UnsupportedError if there is none."""
    return _fit_nesting(who, without_float_atomics(kernel, context.device_infos), context)


def adapt_variant(variant: Variant, lacks: frozenset[str]) -> Variant:
    """Return a variant that does without what devices lack."""
    # addresses are integers of 64 bits
    return replace(variant, lacks=lacks - {forms.INT64} if variant.addressed else lacks)


def _fit_nesting(who: str, kernel: ir.Kernel, context: Context) -> ir.Kernel:
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
