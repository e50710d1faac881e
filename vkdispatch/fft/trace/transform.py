"""The transform of a line that is held in registers."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.fft.plan.indices import add, hold, multiply
from vkdispatch.fft.plan.stages import Split
from vkdispatch.fft.trace.butterflies import dft
from vkdispatch.fft.trace.registers import FFTRegisters
from vkdispatch.fft.trace.roots import second_power, twiddle_offsets, twiddles
from vkdispatch.fft.trace.shared import SharedLines
from vkdispatch.fft.trace.words import cast


def transform(registers: FFTRegisters, shared: SharedLines | None, thread: Any, inverse: bool) -> None:
    """Transform a line in place, unnormalized.

    Parameters
    ----------
    registers
        The input of the first stage, replaced by the output of the last.
    shared
        Workgroup memory; None for a transform of one stage.
    thread
        Number of the invocation in its line.
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
        factors = _Factors(split, number, thread, registers.compute_type, inverse) if number else None
        outcome: list[Any] = []
        for turn in range(stage.rounds):
            taken = values[turn * stage.radix : (turn + 1) * stage.radix]
            outcome += dft(_Twiddled(taken, factors.of_turn(turn)) if factors else taken, sign)
        values = outcome
    for index, value in enumerate(values):
        registers[index] = value


class _Twiddled(Sequence[Any]):
    """Values times powers of a twiddle factor, multiplied on access.

    A butterfly accesses few of them at a time, so that few powers occupy registers.
    """

    def __init__(self, values: Sequence[Any], powers: "Powers") -> None:
        self._values, self._powers = values, powers

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        value = self._values[index]
        if not index:
            return value
        # twiddle factors never have half precision
        turned = value * self._powers[index]
        return hold(cast(turned, value.var_type))


class _Factors:
    """The twiddle factors of a stage: exp(-+2 pi i k / (previous radix)), k being the butterfly's place."""

    def __init__(self, split: Split, number: int, thread: Any, compute_type: DType, inverse: bool) -> None:
        self._stage = split.stages[number]
        self._table = vc.constant_array(twiddles(split, compute_type))
        self._offset = twiddle_offsets(split)[number]
        self._thread, self._inverse = thread, inverse
        self._roots: dict[int, Any] = {}

    def of_turn(self, turn: int) -> "Powers":
        """Powers for a butterfly."""
        stage = self._stage
        # where all butterflies of an invocation have the same place
        if not self._roots or stage.threads % stage.previous:
            index = add(multiply(stage.twiddle_index(self._thread, turn), 2), self._offset)
            index = hold(index)
            second = second_power(stage.radix)
            self._roots = {1: self._root(index)}
            if second > 1:
                self._roots[second] = self._root(add(index, 1))
        return Powers(self._roots, stage.radix)

    def _root(self, index: Any) -> Any:
        root = hold(self._table[index])
        return hold(vc.to_complex(root.real, -root.imag)) if self._inverse else root


class Powers:
    """Powers of a complex number, computed from two of them. Intermediate powers are stored."""

    def __init__(self, roots: dict[int, Any], radix: int) -> None:
        self._step = second_power(radix)
        self._known = dict(roots)

    def __getitem__(self, exponent: int) -> Any:
        if exponent in self._known:
            return self._known[exponent]
        high, low = divmod(exponent, self._step)
        if high and low:
            return hold(self[high * self._step] * self[low])
        half = high // 2 * self._step if high else exponent // 2
        self._known[exponent] = hold(self[half] * self[exponent - half])
        return self._known[exponent]
