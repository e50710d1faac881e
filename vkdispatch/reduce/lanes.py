"""States of several invocations combined into one, by exchanges in subgroups and through workgroup memory."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.reduce.accumulators.accumulator import (
    Accumulator,
    State,
    assign,
    load_state,
    store_state,
    to_registers,
)
from vkdispatch.reduce.layouts import KernelForm

# Most values of workgroup memory that one invocation combines alone.
_FEW = 32
# The same where it combines several results in turn: code with few barriers compiles fast.
_SERIAL = 16


class Lanes:
    """The lanes of a result in a kernel being traced; `lane` is the number of this invocation."""

    def __init__(self, form: KernelForm, accumulator: Accumulator, lane: Any) -> None:
        self._form, self._accumulator, self._lane = form, accumulator, lane
        self._memory: list[list[Any]] = []

    def combine(self, states: Sequence[State]) -> list[State]:
        """Return states combined over the lanes of a result. Lane 0 has the totals; others may not."""
        form = self._form
        if form.has_runs and form.layout == "columns" and form.group <= form.subgroup:
            return [
                self._combine_by_exchange(state, form.group, form.group // form.lanes) for state in states
            ]
        if form.layout == "columns" or form.lanes > form.subgroup == 1:
            return self._combine_by_memory(states)
        if form.lanes <= form.subgroup:
            return [self._combine_by_exchange(state, form.lanes) for state in states]
        return [self._combine_workgroup(state) for state in states]

    def _combine_workgroup(self, state: State) -> State:
        """Combine over a workgroup: within the subgroups first, then the states of these."""
        form = self._form
        state = self._combine_subgroup(state)
        count = form.group // form.subgroup
        (memory,) = self._share_memory(1, count)
        with vc.if_block(self._lane % form.subgroup == 0):
            store_state(memory, self._lane // form.subgroup, state)
        vc.barrier()
        if count <= _FEW:
            total = to_registers(state)
            with vc.if_block(self._lane == 0):
                assign(total, self._accumulator.merge_all([load_state(memory, i) for i in range(count)]))
            return total
        return self._combine_halves([memory], self._lane, self._lane, count, 1)[0]

    def _combine_subgroup(self, state: State) -> State:
        subgroup = self._accumulator.subgroup
        if self._form.has_arithmetic and subgroup is not None:
            return subgroup(state)
        return self._combine_by_exchange(state, self._form.subgroup)

    def _combine_by_exchange(self, state: State, lanes: int, mask: int = 1) -> State:
        while mask < lanes:
            other = tuple(vc.subgroup_shuffle_xor(value, mask).to_register() for value in state)
            state = self._accumulator.merge(state, other)
            mask *= 2
        return state

    def _share_memory(self, states: int, count: int) -> list[list[Any]]:
        """Return workgroup memory for `count` times some states. It is the same memory each time."""
        if self._memory:
            vc.barrier()
        else:
            kinds = self._accumulator.kinds
            self._memory = [[vc.shared_buffer(kind, count) for kind in kinds] for _ in range(states)]
        return self._memory

    def _combine_by_memory(self, states: Sequence[State]) -> list[State]:
        """Combine over lanes through workgroup memory only."""
        form = self._form
        if form.lanes == 1:
            return list(states)
        index = vc.local_invocation_index()
        memory = self._share_memory(len(states), form.group)
        for places, state in zip(memory, states, strict=True):
            store_state(places, index, state)
        vc.barrier()
        stride = form.group // form.lanes if form.layout == "columns" else 1
        return self._combine_halves(memory, index, self._lane, form.lanes, stride)

    def _combine_halves(
        self, memory: Sequence[Sequence[Any]], index: Any, lane: Any, count: int, stride: int
    ) -> list[State]:
        """Combine `count` states that lie `stride` apart; lane 0 has the totals."""
        merge = self._accumulator.merge
        while count > _SERIAL:
            half = (count + 1) // 2
            with vc.if_block(lane < count - half):
                for places in memory:
                    mine = load_state(places, index)
                    store_state(places, index, merge(mine, load_state(places, index + half * stride)))
            vc.barrier()
            count = half
        totals = [self._accumulator.start() for _ in memory]
        with vc.if_block(lane == 0), vc.for_block(0, count) as number:
            self._accumulator.add_to(
                totals, [load_state(places, index + number * stride) for places in memory]
            )
        return totals
