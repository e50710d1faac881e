"""The transform of a line that lies in registers."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.fft.radix import dft, held
from vkdispatch.fft.registers import FFTRegisters
from vkdispatch.fft.shared import SharedLines
from vkdispatch.fft.stages import Split, Stage, plus
from vkdispatch.fft.tables import twiddle_offsets, twiddles


def transform(registers: FFTRegisters, shared: SharedLines | None, thread: Any, inverse: bool) -> None:
    """Transform a line in place, unnormalized.

    Parameters
    ----------
    registers
        Before: what the first stage's butterflies take. After: what the last stage's leave.
    shared
        Where stages exchange values; None for a transform of one stage.
    thread
        Which of the line's invocations this is.
    inverse
        Whether the exponent is positive.
    """
    split = registers.split
    stages, sign = split.stages, 1 if inverse else -1
    values = list(registers)
    for number, stage in enumerate(stages):
        if number:
            assert shared is not None
            values = shared.exchange(values, stages[number - 1], stage, thread)
            values = _twiddled(values, split, number, thread, registers.compute_type, inverse)
        turns = (values[turn * stage.radix : (turn + 1) * stage.radix] for turn in range(stage.rounds))
        values = [value for taken in turns for value in dft(taken, sign)]
    for index, value in enumerate(values):
        registers[index] = value


def _twiddled(
    values: Sequence[Any], split: Split, number: int, thread: Any, compute_type: DType, inverse: bool
) -> list[Any]:
    """Multiply a stage's values by exp(-+2 pi i k i / (previous radix)), k being the butterfly's place."""
    stage = split.stages[number]
    table = vc.constant_array(twiddles(split, compute_type))
    offset = twiddle_offsets(split)[number]
    # where all butterflies of an invocation have the same place
    shared = stage.threads % stage.previous == 0
    powers: list[Any] = []
    outcome: list[Any] = []
    for turn in range(stage.rounds):
        if turn == 0 or not shared:
            root = table[plus(stage.twiddle_index(thread, turn), offset)]
            powers = _powers(root, stage.radix, inverse)
        first, *others = values[turn * stage.radix : (turn + 1) * stage.radix]
        outcome += [first, *(held(value * power) for value, power in zip(others, powers, strict=True))]
    return outcome


def _powers(root: Any, radix: int, inverse: bool) -> list[Any]:
    """Return the powers 1 ... radix - 1 of a twiddle factor, each by as few multiplications as possible."""
    root = held(root)
    if inverse:
        root = held(vc.to_complex(root.real, -root.imag))
    powers = [root]
    for exponent in range(2, radix):
        half = exponent // 2
        powers.append(held(powers[half - 1] * powers[exponent - half - 1]))
    return powers
