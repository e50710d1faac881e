"""Kernels traced from Python functions with any number of arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.maps.source import make_distinct
from vkdispatch.codegen.arguments import Annotation
from vkdispatch.codegen.arguments import buffer as buffer
from vkdispatch.codegen.arguments import constant as constant
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.shader.shader_function import ShaderFunction

Extent = int | Sequence[int]


def trace_kernel(
    name: str,
    body: Callable[..., None],
    arguments: Sequence[tuple[str, Annotation]],
    local_size: Extent,
    workgroups: Any = None,
    exec_size: Any = None,
    *,
    origin: str | None = None,
    unsigned: bool = False,
) -> ShaderFunction:
    """Trace a kernel.

    Parameters
    ----------
    name
        The name of the kernel in messages, profiles and generated code.
    body
        Records the statements; it is called once, with a variable for each argument. Its control flow may
        use GPU values.
    arguments
        Names and annotations, in the order of calls.
    local_size
        Invocations of a workgroup.
    workgroups, exec_size
        The workgroups or the invocations of a launch, as `vd.shader` takes them; one of the two. Invocations
        beyond `exec_size` do nothing, and no barrier may wait for them.
    origin
        Where the user's part of the kernel is defined, such as "kernel.py:12".
    unsigned
        Whether all indices are uint32 that do not overflow for buffers of up to 2**32 - 2**16 elements:
        such buffers then need no indices of 64 bits.

    Raises
    ------
    TypeError, ValueError
        Tracing the body raises it.
    """
    extent = (local_size, 1, 1) if isinstance(local_size, int) else tuple(local_size)
    flags = vc.ShaderFlags.NONE if exec_size is not None else vc.ShaderFlags.NO_EXEC_BOUNDS
    names = make_distinct([each for each, _ in arguments])
    with vc.shader_context(flags) as context:
        variables = context.declare_input_arguments([kind for _, kind in arguments], names)
        prepare_kernel(body, rewrite=True)(*variables)
    # buffers of any dtype are moved as words; maps check the buffers that they are called with
    description = context.get_description(_make_identifier(name)).reinterpreting()
    if unsigned:
        description = description.counting_unsigned()
    return ShaderFunction(description, extent, workgroups, exec_size, origin=origin)


def _make_identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text)
