"""Kernels that are traced from Python functions with any number of arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.maps.source import make_distinct
from vkdispatch.rewrite.functions import kernel
from vkdispatch.shader.shader_function import ShaderFunction

Extent = int | Sequence[int]
# The annotations of buffers and constants, of which dtypes are known when a kernel is traced only.
buffer: Any = vc.Buff
constant: Any = vc.Const


def trace_kernel(
    name: str,
    body: Callable[..., None],
    arguments: Sequence[tuple[str, Any]],
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
        What it is called in messages, profiles and generated code.
    body
        Called once with a variable for each argument; records the statements. GPU values may be used in its
        own control flow.
    arguments
        Names and annotations, in the order of calls.
    local_size
        Invocations of a workgroup.
    workgroups, exec_size
        How many workgroups, or invocations, a launch has, as `vd.shader` takes it; one of the two. With
        `exec_size` those beyond it do nothing, and must not be waited for by barriers.
    origin
        Where the user's part of it is defined, such as "kernel.py:12".
    unsigned
        Whether all indices are uint32, with no overflow on buffers of up to 2**32 - 2**16 elements: such
        buffers need no indices of 64 bits.

    Raises
    ------
    TypeError, ValueError
        Whatever tracing the body raises.
    """
    extent = (local_size, 1, 1) if isinstance(local_size, int) else tuple(local_size)
    flags = vc.ShaderFlags.NONE if exec_size is not None else vc.ShaderFlags.NO_EXEC_BOUNDS
    names = make_distinct([each for each, _ in arguments])
    with vc.shader_context(flags) as context:
        variables = context.declare_input_arguments([kind for _, kind in arguments], names)
        kernel(body, rewrite=True)(*variables)
    # the words that families move are of any dtype; maps check the buffers that they are called with
    description = context.get_description(_identifier(name)).reinterpreting()
    if unsigned:
        description = description.counting_unsigned()
    return ShaderFunction(description, extent, workgroups, exec_size, origin=origin)


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text)
