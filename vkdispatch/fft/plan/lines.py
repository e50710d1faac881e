"""Plans for lines of special lengths: short lines, primes, and lines that fill the registers."""

import math

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64
from vkdispatch.base.record import replace
from vkdispatch.families.tuning import device_facts
from vkdispatch.fft.plan.lengths import LARGEST_PRIME, choose_padded_length, is_rader_length
from vkdispatch.fft.plan.passes import Pass, PassChoices, plan_pass
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.plan.transforms import Transform
from vkdispatch.fft.plan.tuning import tuning


def plan_long_line(transform: Transform) -> Pass | None:
    """Plan the pass of lines that fill the registers; None for other lines."""
    known = {length: (radices, threads) for length, radices, threads in tuning.lines_of_all_registers}
    maps = transform.input_map is not None or transform.output_map is not None
    if maps or transform.r2c or transform.separate or transform.length not in known or device_facts().is_cpu:
        return None
    radices, threads = known[transform.length]
    context = get_context()
    behind = math.prod(transform.shape[transform.axis + 1 :])
    if behind > 1 or transform.compute_type is not complex64 or threads > context.max_invocations_along_x:
        return None
    split = Split(transform.length, radices, threads)
    return plan_pass(transform.shape, transform.axis, transform.compute_type, PassChoices(split=split))


def plan_convolved(shape: tuple[int, ...], axis: int, compute_type: DType) -> tuple[Pass, bool] | None:
    """Plan Rader's (True) or Bluestein's algorithm in one pass, or None if no workgroup holds a line."""
    length = shape[axis]
    if is_rader_length(length):
        plan = plan_pass(shape, axis, compute_type, PassChoices(length=length - 1, whole=True))
        if plan is not None:
            return plan, True
    plan = plan_pass(shape, axis, compute_type, PassChoices(length=choose_padded_length(length), whole=True))
    return None if plan is None else (plan, False)


def plan_staged(shape: tuple[int, ...], axis: int, compute_type: DType) -> Pass | None:
    """Plan a kernel of short contiguous lines, of one or a few invocations each; None for other lines.

    On a CPU there is none: it reads such lines best directly.
    """
    length = shape[axis]
    if device_facts().is_cpu or math.prod(shape[axis + 1 :]) > 1:
        return None
    if LARGEST_PRIME < length <= tuning.few_longest:
        return _plan_of_few(shape, axis, compute_type)
    if not 2 <= length <= LARGEST_PRIME or length == tuning.staged_except:
        return None
    split = Split(length, (length,), 1)
    lines = tuning.staged_group * max(1, tuning.staged_values // tuning.staged_group // length)
    return plan_pass(shape, axis, compute_type, PassChoices(split=split, lines=lines, parts=1, whole=True))


def _plan_of_few(shape: tuple[int, ...], axis: int, compute_type: DType) -> Pass | None:
    """Plan a kernel of a few invocations for each line, or None if each has one butterfly in each stage."""
    plan = plan_pass(shape, axis, compute_type)
    length = shape[axis]
    if plan is None or plan.split.threads > tuning.few_threads or length & (length - 1) == 0:
        return None
    if max(plan.split.radices) > tuning.few_widest:
        return None
    if all(stage.is_even and stage.rounds == 1 for stage in plan.split.stages):
        return None
    # with the smaller radix first, neighbouring invocations read more neighbouring values
    split = replace(plan.split, radices=tuple(sorted(plan.split.radices)))
    lines = tuning.few_lines * -(-tuning.group // (tuning.few_lines * split.threads))
    return plan_pass(shape, axis, compute_type, PassChoices(split=split, lines=lines, parts=1, whole=True))


def suits_pairs(shape: tuple[int, ...], axis: int, compute_type: DType) -> bool:
    """Whether pairs of invocations transform such lines; see `line.pairs`."""
    length, context = shape[axis], get_context()
    return (
        LARGEST_PRIME < length <= tuning.pair_longest
        and length % 4 == 3
        and is_rader_length(length)
        and compute_type is complex64
        and math.prod(shape[axis + 1 :]) == 1
        and not device_facts().is_cpu
        and tuning.pair_lines * length * compute_type.item_size <= context.max_shared_memory
        and context.max_invocations_along_x >= 2 * tuning.pair_lines
    )
