"""Building of SPIR-V, GLSL and traced kernels for the dispatches of an algorithm."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.context import Context
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.algorithms.constants import parse_constants
from vkdispatch.kompute.algorithms.spirv import SpirvDispatch, find_push_types, read_spirv
from vkdispatch.kompute.memory.image import Image
from vkdispatch.kompute.memory.memory import Memory

Array = np.ndarray[Any, Any]


Groups = tuple[int, int, int]


class Dispatchable(Protocol):
    """A built algorithm, which records dispatches."""

    push_types: frozenset[tuple[str, int]]  # kinds and bits of the push constants
    images: tuple[Image, ...]  # the images among its memory
    stored_images: tuple[Image, ...]  # the images that the kernel writes to

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""

    def with_groups(self, groups: Groups) -> "Dispatchable":
        """Return a copy with other workgroup counts."""

    def repeat(self, count: int) -> "Dispatchable | None":
        """Return an equivalent of `count` dispatches in one dispatch, or None if that is impossible."""


def build(
    context: Context,
    memories: Sequence[Memory],
    code: Any,
    groups: Groups | None,
    spec_consts: Any,
    push_consts: Any,
) -> tuple[Dispatchable, Array]:
    """Build an algorithm. Return the pipeline and the push constants.

    Parameters
    ----------
    code
        SPIR-V, GLSL text, or a traced kernel.
    groups
        Workgroups of a dispatch. None: the size of a traced kernel, or one for each element of the first
        memory object.

    Raises
    ------
    RuntimeError
        The code is invalid, or does not match the arguments.
    """
    if not isinstance(code, (bytes, str)):
        # Imported here: this module needs the kernel language.
        from vkdispatch.kompute.algorithms.traced import TracedDispatch

        traced = TracedDispatch(context, memories, code, groups, spec_consts, push_consts)
        return traced, traced.constants
    module = read_spirv(compile_glsl(code, "algorithm") if isinstance(code, str) else code)
    constants = parse_constants("push_consts", push_consts, find_push_types(module[1]))
    groups = groups or (len(memories[0]), 1, 1)
    return SpirvDispatch(context, memories, module, groups, spec_consts, constants), constants
