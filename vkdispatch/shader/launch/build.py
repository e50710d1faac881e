"""Compiled kernels: the GLSL of a variant, its plan, and its launcher."""

import re
from collections.abc import Sequence

from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.errors import (
    ArgumentValueError,
    DeviceLostError,
    ShaderBuildError,
    UnsupportedError,
    VulkanError,
)
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderDescription, ShaderSource
from vkdispatch.compiler.ir import Kernel
from vkdispatch.compiler.ir.location import located, pause_collection
from vkdispatch.compiler.ir.statements import INT64, Variant
from vkdispatch.compiler.passes.nesting import DEEPEST, find_depth, flatten, is_flat
from vkdispatch.shader.arguments.slots import Slot
from vkdispatch.shader.launch.features import without_float_atomics
from vkdispatch.shader.launch.launcher import BuiltKernel, bind_kernel
from vkdispatch.shader.launch.requirements import check_features, check_local_size, check_shared_memory
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.launch.variants import Coarsening, find_lacks

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
    body = _fit_nesting(who, without_float_atomics(description.kernel, context.device_infos), context)
    if body is not description.kernel:
        description = replace(description, kernel=body)
    lacks = find_lacks(description.kernel, context)
    check_shared_memory(who, description, context, lacks, variant.shared)
    # addresses are integers of 64 bits
    variant = replace(variant, lacks=lacks - {INT64} if variant.addressed else lacks)
    check_features(who, description, context, lacks)
    source = description.shader_source(local_size, variant)
    layout = description.layout(variant)
    try:
        plan = _compile(kernel, source, variant, 0 if layout.uniform else layout.size, context)
        places = description.places(variant)
        return bind_kernel(context, plan, kernel.slots, layout, source, variant, coarsening, places)
    except ValueError as error:
        # such as more buffers than the device binds
        more = "; its prints and checks take one buffer and 4 bytes of arguments" if kernel.observed else ""
        raise ArgumentValueError(f"{who}: {error}{more}") from error


def _fit_nesting(who: str, kernel: Kernel, context: Context) -> Kernel:
    """Return the form of a kernel with as few nested conditions as llvmpipe takes, on that driver."""
    if is_flat(kernel) or not any(info.is_llvmpipe for info in context.device_infos):
        return kernel
    flat = flatten(kernel)
    depth, loc = find_depth(flat)
    if depth > DEEPEST:
        raise located(
            UnsupportedError,
            f"{who}: conditions and loops are nested {depth} deep here, and Mesa's llvmpipe, which ignores "
            f"conditions beyond 80, takes {DEEPEST}: join conditions by `and`, or keep one in a variable "
            "and test that after the nest",
            loc,
        )
    return flat


def _compile(
    kernel: KernelSource, source: ShaderSource, variant: Variant, pc_size: int, context: Context
) -> ComputePlan:
    who, description = kernel.who, kernel.description
    try:
        types = description.binding_types(variant)
        spirv = compile_glsl(source.code, description.name, source.with_line_directives)
        return ComputePlan(
            source.code,
            types,
            pc_size,
            description.name,
            spirv=spirv,
            checked=True,
            context=context,
            place=kernel.place,
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
            f"{who}: the driver rejected the kernel: {error}", shader_source=source.numbered()
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
