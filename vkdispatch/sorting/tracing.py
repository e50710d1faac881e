"""From a function that records statements to a kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.rewrite.functions import kernel
from vkdispatch.shader.shader_function import ShaderFunction


def traced(
    name: str, body: Callable[..., None], arguments: Sequence[tuple[str, Any]], group: int, workgroups: str
) -> ShaderFunction:
    """Return the kernel of a body, which is called with a variable for each of the arguments."""
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context:
        variables = context.declare_input_arguments([kind for _, kind in arguments], [n for n, _ in arguments])
        kernel(lambda: body(*variables), rewrite=False)()
        return ShaderFunction(context.get_description(name), (group, 1, 1), workgroups, origin=None)
