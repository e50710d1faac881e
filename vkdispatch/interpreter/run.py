"""Runs of kernels over a grid, with NumPy and without a device."""

from __future__ import annotations

from vkdispatch.analyses.launch_values import find_shared_sizes, is_sized_by_calls, sizes_of_shared
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.interpreter.execution import run_program
from vkdispatch.interpreter.program import Checks, Memory, Program, find_lazy_choices
from vkdispatch.interpreter.races import RaceDetector
from vkdispatch.interpreter.values import Extent
from vkdispatch.ir import Kernel


def run_kernel(
    who: str,
    kernel: Kernel,
    memory: Memory,
    *,
    groups: Extent,
    local_size: Extent,
    subgroup_size: int = 32,
    checks: Checks | None = None,
    races: bool = False,
) -> None:
    """Run a kernel over a grid, writing to the buffers in place.

    Parameters
    ----------
    who
        The name of the kernel in messages.
    kernel
        The kernel.
    memory
        Its arguments, buffers and images.
    groups, local_size
        The number of workgroups, and of invocations in a workgroup, along each axis.
    subgroup_size
        Invocations in a subgroup, a power of two up to 128.
    checks
        The checks to make. None: bounds of indices and asserts.
    races
        Whether unordered accesses to an element are errors.

    Raises
    ------
    IndexError
        An index is out of range for its buffer, shared array, image, vector or matrix.
    FloatingPointError
        A NaN was stored.
    RuntimeError
        Some invocations of a workgroup miss a barrier, a loop takes too many rounds, or there is a race.
    NotImplementedError
        The kernel contains raw GLSL, or something else that is not supported.
    """
    if subgroup_size < 1 or subgroup_size > 128 or subgroup_size & (subgroup_size - 1):
        raise ArgumentValueError(f"subgroup_size: expected a power of two up to 128, got {subgroup_size!r}")
    sized = is_sized_by_calls(kernel)
    program = Program(
        who,
        kernel,
        memory,
        groups,
        local_size,
        subgroup_size,
        checks or Checks(),
        RaceDetector(who, groups, local_size) if races else None,
        find_lazy_choices(kernel),
        sizes_of_shared(kernel, find_shared_sizes(who, kernel, _integers(memory)) if sized else ()),
    )
    run_program(program)


def _integers(memory: Memory) -> dict[str, int]:
    """Return the arguments that are one integer."""
    return {
        name: int(value[0])
        for name, value in memory.arguments.items()
        if value.shape == (1,) and value.dtype.kind in "iu"
    }
