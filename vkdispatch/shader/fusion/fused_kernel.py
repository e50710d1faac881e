"""The kernel that does the work of a chain of launches."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.record import record
from vkdispatch.codegen import ArgType, ShaderArgumentInfo, ShaderDescription
from vkdispatch.codegen.description import CodeGenBackend
from vkdispatch.compiler.analyses.launch_values import Extent
from vkdispatch.compiler.ir import Storage
from vkdispatch.compiler.passes.elementwise import Part
from vkdispatch.compiler.passes.fuse import fuse
from vkdispatch.shader.arguments.slots import make_zero

_LONGEST_NAME = 80


@record(eq=False)
class FusedKernel:
    """A kernel that replaces several.

    Attributes
    ----------
    description, local_size
        The kernel, and its workgroup size if the user gave one of the several one.
    resources
        The number in the chain of each of its resources.
    zeros
        Values for its other arguments, to be replaced when it is recorded.
    members
        For each of the several, the member that each argument became.
    """

    description: ShaderDescription
    local_size: Extent | None
    resources: tuple[int, ...]
    zeros: tuple[Any, ...]
    members: tuple[dict[str, str], ...]


# Equal chains share one description, which is compiled once.
@functools.lru_cache(maxsize=256)
def fuse_parts(
    name: str,
    parts: tuple[Part, ...],
    unread: frozenset[int],
    planar: frozenset[int],
    local_size: Extent | None,
    backend: CodeGenBackend,
) -> FusedKernel:
    """Return the kernel that does the work of several.

    Parameters
    ----------
    parts
        The kernels, in order.
    unread, planar
        Resources of the chain that nothing reads afterwards, and those that are indexed by two axes.
    """
    fused = fuse(name, parts, unread)
    kernel = fused.kernel
    infos = []
    for position, (number, resource) in enumerate(zip(fused.resources, kernel.resources, strict=True)):
        is_buffer = isinstance(resource, Storage)
        infos.append(
            ShaderArgumentInfo(
                f"{resource.label}_{position}",
                ArgType.BUFFER if is_buffer else ArgType.IMAGE,
                None,
                resource.name,
                fused.shapes.get(number),
                position,
                resource.dtype,
                image=None if isinstance(resource, Storage) else resource,
                planar=number in planar and number in fused.shapes,
            )
        )
    shapes = set(fused.shapes.values())
    values = [
        argument
        for argument in kernel.arguments
        if argument is not kernel.exec_count and argument.name not in shapes
    ]
    infos.extend(
        ShaderArgumentInfo(
            argument.name,
            ArgType.VARIABLE,
            None,
            argument.name,
            dtype=argument.dtype,
            members=(argument.name,),
            member_dtypes=(argument.dtype,),
        )
        for argument in values
    )
    description = ShaderDescription(kernel, tuple(infos), backend)
    zeros = tuple(make_zero(argument.dtype) for argument in values)
    return FusedKernel(description, local_size, fused.resources, zeros, fused.members)


def join_names(names: Sequence[str]) -> str:
    """Join kernels' names: "a+b*3+c", or "a+...+c (17)" where that is long."""
    runs = [(name, len(list(group))) for name, group in itertools.groupby(names)]
    text = "+".join(name if count == 1 else f"{name}*{count}" for name, count in runs)
    return text if len(text) <= _LONGEST_NAME else f"{names[0]}+...+{names[-1]} ({len(names)})"
