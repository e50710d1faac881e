"""One pass of a radix sort on CPU drivers: each invocation sorts a long run of keys alone.

    rows of keys     | row 0: run 0, run 1, ... run n-1 | row 1: run 0, ... |
    count            counters[workgroup][digit][invocation] = keys of the invocation's run that have the digit
    sum up           along the runs of a row, in place; totals[row][digit] = keys of the row that have it
    move             the counters become places: each key goes to the place of its digit, which is incremented

There are no barriers and there is no workgroup memory: the invocations of a subgroup share a vector register,
and each has counters of its own in device memory, beside those of its neighbours.

Invariants: the keys of a run are moved in their order, and runs follow each other within a digit, so a pass
is stable. One invocation of a launch touches each counter and each place. All loops of an invocation together
have fewer than 65,535 rounds, after which llvmpipe leaves a loop.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.outputs import widen
from vkdispatch.sorting.passes import SHIFT, PassForm, declare_move_arguments

_U32 = constant[dtype.uint32]
# The number of rows, runs of each row, keys of a run, and keys of the last run of a row.
_SHAPE = [("sort_rows", _U32), ("sort_runs", _U32), ("sort_run", _U32), ("sort_last", _U32)]
_SUM_GROUP = 64


class _Run:
    """The keys of an invocation, and its counters, in a trace."""

    def __init__(self, form: PassForm, counters: Any, runs: Any, run: Any, last: Any) -> None:
        group, self._bins = form.tile.group, 1 << form.digit.bits
        self._form, self._counters = form, counters
        groups = (runs + (group - 1)) // group
        self.row = (vc.workgroup_id().x // groups).to_register("sort_row")
        lane = vc.local_invocation_index().to_register("sort_lane")
        self.number = ((vc.workgroup_id().x % groups) * group + lane).to_register("sort_number")
        self._first = (vc.workgroup_id().x * (self._bins * group) + lane).to_register("sort_first_counter")
        self.count = vc.select(
            self.number + 1 < runs, run, vc.select(self.number < runs, last, 0)
        ).to_register("sort_count")
        self.row_base = (self.row * ((runs - 1) * run + last)).to_register("sort_row_base")
        self.base = (self.row_base + vc.select(self.number < runs, self.number, 0) * run).to_register(
            "sort_base"
        )

    def each_digit(self) -> Any:
        """Return a loop over all digits."""
        return vc.for_block(0, self._bins)

    def each_key(self) -> Any:
        """Return a loop over the places in the run."""
        return vc.for_block(0, self.count)

    def entry(self, digit: Any) -> Any:
        """Return the index of the counter of a digit."""
        return (self._first + digit * self._form.tile.group).to_register("sort_entry")

    def increment(self, key: Any, shift: Any) -> Any:
        """Increment the counter of a key's digit, and return its value before."""
        entry = self.entry(self._form.order.digit(key, self._form.digit, shift))
        before = self._counters[entry].to_register("sort_found")
        self._counters[entry] = before + 1
        return before


@memoize
def make_count_runs_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that counts the digits of each run: keys, counters, `_SHAPE`, the shift."""

    def body(keys: Any, counters: Any, rows: Any, runs: Any, run: Any, last: Any, shift: Any) -> None:
        del rows
        own = _Run(form, counters, runs, run, last)
        with own.each_digit() as digit:
            counters[own.entry(digit)] = 0
        with own.each_key() as place:
            own.increment(keys[own.base + place].to_register("sort_key"), shift)

    arguments = [
        ("sort_keys", buffer[form.order.raw]),
        ("sort_counters", buffer[form.counter]),
        *_SHAPE,
        SHIFT,
    ]
    return trace_kernel(
        f"sort_count_runs_{form.order.kind.name}", body, arguments, form.tile.group, _workgroups(form)
    )


@memoize
def make_sum_runs_kernel(group: int, bins: int, counter: DType) -> ShaderFunction:
    """Return the kernel that sums up counters along a row's runs, an invocation for each row and digit.

    Its arguments are the counters, the totals, the number of rows, and the runs of each.
    """

    def body(counters: Any, totals: Any, rows: Any, runs: Any) -> None:
        line = (vc.workgroup_id().x * _SUM_GROUP + vc.local_invocation_index()).to_register("sort_line")
        groups = ((runs + (group - 1)) // group).to_register("sort_groups")
        with vc.if_block(line < rows * bins):
            first = (((line // bins) * groups * bins + line % bins) * group).to_register("sort_first")
            before = vc.new_register(counter)
            with vc.for_block(0, groups) as number:
                entry = (first + number * (bins * group)).to_register("sort_entry")
                for lane in range(group):
                    count = counters[entry + lane].to_register("sort_found")
                    counters[entry + lane] = before
                    before += count
            totals[line] = before

    arguments = [
        ("sort_counters", buffer[counter]),
        ("sort_totals", buffer[counter]),
        ("sort_rows", _U32),
        ("sort_runs", _U32),
    ]
    workgroups = f"(sort_rows * {bins} + {_SUM_GROUP - 1}) // {_SUM_GROUP}"
    return trace_kernel("sort_sum_runs", body, arguments, _SUM_GROUP, workgroups)


@memoize
def make_move_runs_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that moves keys and their payload to their places by one digit.

    Its arguments are the keys, the counters, the totals, those of `declare_move_arguments`, `_SHAPE`, and
    the shift.
    """
    bins = 1 << form.digit.bits

    def body(keys: Any, counters: Any, totals: Any, *others: Any) -> None:
        *buffers, _, runs, run, last, shift = others
        keys_to = buffers.pop(0) if form.writes_keys else None
        own = _Run(form, counters, runs, run, last)
        before = vc.new_register(form.counter)
        with own.each_digit() as digit:
            entry = own.entry(digit)
            counters[entry] = counters[entry] + before
            before += totals[own.row * bins + digit]
        with own.each_key() as place:
            key = keys[own.base + place].to_register("sort_key")
            target = own.row_base + own.increment(key, shift)
            target = target.to_register("sort_target")
            if keys_to is not None:
                keys_to[target] = key
            if form.payload is not None:
                if form.makes_positions:
                    moved = _position(form, own, place, run)
                else:
                    moved = buffers[0][own.base + place]
                buffers[-1][target] = widen(moved.to_register()) if form.is_wide else moved

    arguments = [
        ("sort_keys", buffer[form.order.raw]),
        ("sort_counters", buffer[form.counter]),
        ("sort_totals", buffer[form.counter]),
        *declare_move_arguments(form),
        *_SHAPE,
        SHIFT,
    ]
    return trace_kernel(
        f"sort_move_runs_{form.order.kind.name}", body, arguments, form.tile.group, _workgroups(form)
    )


def _position(form: PassForm, own: _Run, place: Any, run: Any) -> Any:
    """Return the position in its row of a key of a run, as a payload."""
    if form.payload is dtype.uint32:
        return own.number * run + place
    return vc.unpack_uint2x32(own.number.to_dtype(dtype.uint64) * run + place.to_dtype(dtype.uint64))


def _workgroups(form: PassForm) -> str:
    group = form.tile.group
    return f"sort_rows * ((sort_runs + {group - 1}) // {group})"
