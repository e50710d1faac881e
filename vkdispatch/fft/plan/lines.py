"""Plans of kernels for lines of particular lengths: short ones, primes, and those that fill the registers."""

import math

from vkdispatch.arrays.facts import device_facts
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.record import replace
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, is_rader_length, padded_length
from vkdispatch.fft.plan.passes import Pass, plan_pass
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.transforms import Transform

# Lines in place whose registers leave room for two workgroups if nothing else takes any: radices and
# invocations, as measured on an H200.
_LONG_LINES = {8192: ((32, 32, 8), 256)}


def plan_long_line(spec: Transform) -> Pass | None:
    """Plan the pass of a line that takes nearly all registers; None for others."""
    maps = spec.input_map is not None or spec.output_map is not None
    if maps or spec.r2c or spec.separate or spec.length not in _LONG_LINES or device_facts().cpu:
        return None
    radices, threads = _LONG_LINES[spec.length]
    context = get_context()
    behind = math.prod(spec.shape[spec.axis + 1 :])
    if behind > 1 or spec.compute_type is not complex64 or threads > context.max_invocations_along_x:
        return None
    split = Split(spec.length, radices, threads)
    return plan_pass(spec.shape, spec.axis, spec.compute_type, split=split)


def plan_convolved(shape: tuple[int, ...], axis: int, compute_type: DType) -> tuple[Pass, bool] | None:
    """Plan a kernel of one pass, and say whether it is Rader's; None where a workgroup cannot hold a line."""
    length = shape[axis]
    if is_rader_length(length):
        plan = plan_pass(shape, axis, compute_type, length=length - 1, whole=True)
        if plan is not None:
            return plan, True
    plan = plan_pass(shape, axis, compute_type, length=padded_length(length), whole=True)
    return None if plan is None else (plan, False)


_INVOCATIONS = 32  # of a workgroup, each with a line of its own; more for the shortest lines
_VALUES = 512
_FEW = 8  # invocations of a line that write too few neighbouring values at once
_LONGEST = 128  # of which so few do a line
_WIDEST = 16  # radix: larger ones gain nothing
_SECTOR = 4  # lines of any length that together begin and end where memory likes to be written
_GROUP = 64


def plan_staged(shape: tuple[int, ...], axis: int, compute_type: DType) -> Pass | None:
    """Plan a kernel whose invocations each hold a whole short line, or a few of them one; None for others.

    CPUs read such lines best as they lie.
    """
    length = shape[axis]
    if device_facts().cpu or math.prod(shape[axis + 1 :]) > 1:
        return None
    if LARGEST_PRIME < length <= _LONGEST:
        return _plan_of_few(shape, axis, compute_type)
    if not 2 <= length <= LARGEST_PRIME or length == 16:
        return None
    split = Split(length, (length,), 1)
    lines = _INVOCATIONS * max(1, _VALUES // _INVOCATIONS // length)
    return plan_pass(shape, axis, compute_type, split=split, lines=lines, parts=1, whole=True)


def _plan_of_few(shape: tuple[int, ...], axis: int, compute_type: DType) -> Pass | None:
    """Plan a kernel of lines that few invocations do, unless each of them has one butterfly at any time."""
    plan = plan_pass(shape, axis, compute_type)
    length = shape[axis]
    if plan is None or plan.split.threads > _FEW or length & (length - 1) == 0:
        return None
    if max(plan.split.radices) > _WIDEST:
        return None
    if all(stage.is_even and stage.rounds == 1 for stage in plan.split.stages):
        return None
    # the smaller radix first: neighbours then read more values that lie side by side
    split = replace(plan.split, radices=tuple(sorted(plan.split.radices)))
    lines = _SECTOR * -(-_GROUP // (_SECTOR * split.threads))
    return plan_pass(shape, axis, compute_type, split=split, lines=lines, parts=1, whole=True)


# So many lines have their sums done by a subgroup or two, whose branches do not part.
PAIR_LINES = 32
_LONGEST_PAIR = 80  # what registers hold half of


def suits_pairs(shape: tuple[int, ...], axis: int, compute_type: DType) -> bool:
    """Whether pairs of invocations transform such lines: those of a GPU, next to one another in memory."""
    length, context = shape[axis], get_context()
    return (
        LARGEST_PRIME < length <= _LONGEST_PAIR
        and length % 4 == 3
        and is_rader_length(length)
        and compute_type is complex64
        and math.prod(shape[axis + 1 :]) == 1
        and not device_facts().cpu
        and PAIR_LINES * length * compute_type.item_size <= context.max_shared_memory
        and context.max_invocations_along_x >= 2 * PAIR_LINES
    )
