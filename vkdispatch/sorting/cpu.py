"""Sorts on CPU drivers: long rows run by run, short rows by merging."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, SortOutputs, widen
from vkdispatch.sorting.passes import SHIFT, PassForm, declare_move_arguments

# ---- Many rows of few keys on CPU drivers: each invocation merges a row of its own -----------------------
#
#     row              | key | key | key | key | key |
#     merged by pairs  | 2 keys    | 2 keys    | 1   |    blocks of 1, 2, 4 ... keys, from one half of a
#                      | 4 keys                | 1   |    scratch buffer to the other
#                      | 5 keys                      |
#
# All rows have the same length, so the invocations of a subgroup, which share a vector register, are always
# at the same place of the same step. There are no barriers.
#
# Invariants: of equal keys, that of the earlier block goes first, so the sort is stable. A row is read
# before it is written, so rows may be sorted in place. Loops have at most `(length + 1) * (levels + 4)`
# rounds in all: `launching` keeps them below 65,535, after which llvmpipe leaves a loop.


# A subgroup of llvmpipe. Larger workgroups would make subgroups wait for each other.
_GROUP = 8


@record
class MergeForm:
    """What the kernel of merged rows is specialised for: the order of keys, and what is written."""

    order: Order
    outputs: SortOutputs


@store_results
def make_merge_kernel(form: MergeForm) -> ShaderFunction:
    """Return the kernel that merges rows.

    Its arguments are the keys; scratch memory for twice as many keys, and for twice as many positions
    (uint32) if positions are written; the outputs; the number of rows, and their length.
    """

    def body(keys: Any, scratch: Any, results: Any, rows: Any, length: Any) -> None:
        row = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("sort_row")
        with vc.if_block(row < rows):
            _Merge(form, keys, scratch, results, rows, length, row).run()

    raw, position = form.order.raw, dtype.uint32 if form.outputs.has_positions else None
    arguments = [
        *buffers(sort_keys=raw),
        buffers(sort_scratch=raw, sort_scratch_positions=position),
        form.outputs.arguments(raw),
        *numbers("sort_rows", "sort_length"),
    ]
    workgroups = f"(sort_rows + {_GROUP - 1}) // {_GROUP}"
    return trace_kernel(f"sort_merge_{form.order.kind.name}", body, arguments, _GROUP, workgroups)


class _Merge:
    """The kernel of merged rows, in a trace: the row of an invocation."""

    def __init__(
        self, form: MergeForm, keys: Any, scratch: Any, results: Any, rows: Any, length: Any, row: Any
    ) -> None:
        self._form, self._keys, self._length = form, keys, length
        self._scratch, self._scratch_positions = scratch
        self._sorted, self._positions = results
        self._base = (row * length).to_register("sort_base")
        self._half = (rows * length).to_register("sort_half")

    def run(self) -> None:
        """Record the kernel's statements."""
        source, target = self._base.to_register("sort_source"), (self._base + self._half).to_register()
        with vc.for_block(0, self._length) as place:
            self._scratch[source + place] = self._keys[self._base + place]
            if self._scratch_positions is not None:
                self._scratch_positions[source + place] = place.to_dtype(dtype.uint32)
        block = vc.new_uint_register(1)
        with vc.while_block(block < self._length):
            with vc.for_block(0, self._length, block * 2) as first:
                self._merge(source, target, first, block)
            block *= 2
            other = source.to_register()
            source[:] = target
            target[:] = other
        with vc.for_block(0, self._length) as place:
            if self._sorted is not None:
                self._sorted[self._base + place] = self._scratch[source + place]
            if self._scratch_positions is not None:
                position = self._scratch_positions[source + place].to_register()
                self._positions[self._base + place] = self._form.outputs.position(position)

    def _merge(self, source: Any, target: Any, first: Any, block: Any) -> None:
        """Merge the block that begins at a place with the next one, which may be short or missing."""
        order, length = self._form.order, self._length
        parts = range(len(order.part_bits))
        left = first.to_dtype(dtype.uint32).to_register("sort_left")
        middle = vc.min(left + block, length).to_register("sort_middle")
        end = vc.min(middle + block, length).to_register("sort_end")
        right = middle.to_register("sort_right")
        last = (length - 1).to_register()

        def load(place: Any) -> list[Any]:
            """Return a key, its code, and its position."""
            key = self._scratch[source + place].to_register()
            loaded = [key, *(order.part(key, part).to_register() for part in parts)]
            if self._scratch_positions is not None:
                loaded.append(self._scratch_positions[source + place].to_register())
            return loaded

        one, two = load(left), load(vc.min(right, last))
        with vc.for_block(left, end) as place:
            smaller = two[1] < one[1]
            for part in parts[1:]:  # the last part is the most significant
                code, other = one[1 + part], two[1 + part]
                smaller = vc.any(other < code, vc.all(other == code, smaller))
            # whether the next key is that of the second block
            is_second = vc.all(right < end, vc.any(left >= middle, smaller)).to_register("sort_second")
            self._scratch[target + place] = vc.select(is_second, two[0], one[0])
            if self._scratch_positions is not None:
                self._scratch_positions[target + place] = vc.select(is_second, two[-1], one[-1])
            left[:] = vc.select(is_second, left, left + 1)
            right[:] = vc.select(is_second, right + 1, right)
            following = load(vc.min(vc.select(is_second, right, left), last))
            for code, other, new in zip(one, two, following, strict=True):
                code[:] = vc.select(is_second, code, new)
                other[:] = vc.select(is_second, new, other)


# ---- One pass of a radix sort on CPU drivers: each invocation sorts a long run of keys alone -------------
#
#   rows of keys     | row 0: run 0, run 1, ... run n-1 | row 1: run 0, ... |
#   count            counters[workgroup][digit][invocation] = keys of the invocation's run that have the digit
#   sum up           along the runs of a row, in place; totals[row][digit] = keys of the row that have it
#   move             the counters become places: each key goes to the place of its digit, which is incremented
#
# There are no barriers and there is no workgroup memory: the invocations of a subgroup share a vector
# register, and each has counters of its own in device memory, beside those of its neighbours.
#
# Invariants: the keys of a run are moved in their order, and runs follow each other within a digit, so a
# pass is stable. One invocation of a launch touches each counter and each place. All loops of an invocation
# together have fewer than 65,535 rounds, after which llvmpipe leaves a loop.


# The number of rows, runs of each row, keys of a run, and keys of the last run of a row.
_SHAPE = ("sort_rows", "sort_runs", "sort_run", "sort_last")
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


@store_results
def make_count_runs_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that counts the digits of each run: keys, counters, `_SHAPE`, the shift."""

    def body(keys: Any, counters: Any, rows: Any, runs: Any, run: Any, last: Any, shift: Any) -> None:
        del rows
        here = _Run(form, counters, runs, run, last)
        with here.each_digit() as digit:
            counters[here.entry(digit)] = 0
        with here.each_key() as place:
            here.increment(keys[here.base + place].to_register("sort_key"), shift)

    arguments = [*buffers(sort_keys=form.order.raw, sort_counters=form.counter), *numbers(*_SHAPE, SHIFT)]
    return trace_kernel(
        f"sort_count_runs_{form.order.kind.name}", body, arguments, form.tile.group, _workgroups(form)
    )


@store_results
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

    tables = buffers(sort_counters=counter, sort_totals=counter)
    arguments = [*tables, *numbers("sort_rows", "sort_runs")]
    workgroups = f"(sort_rows * {bins} + {_SUM_GROUP - 1}) // {_SUM_GROUP}"
    return trace_kernel("sort_sum_runs", body, arguments, _SUM_GROUP, workgroups)


@store_results
def make_move_runs_kernel(form: PassForm) -> ShaderFunction:
    """Return the kernel that moves keys and their payload to their places by one digit.

    Its arguments are the keys, the counters, the totals, those of `declare_move_arguments`, `_SHAPE`, and
    the shift.
    """
    bins = 1 << form.digit.bits

    def body(keys: Any, counters: Any, totals: Any, moved_to: Any, shape: Any, shift: Any) -> None:
        keys_to, payload, payload_to = moved_to
        _, runs, run, last = shape
        here = _Run(form, counters, runs, run, last)
        before = vc.new_register(form.counter)
        with here.each_digit() as digit:
            entry = here.entry(digit)
            counters[entry] = counters[entry] + before
            before += totals[here.row * bins + digit]
        with here.each_key() as place:
            key = keys[here.base + place].to_register("sort_key")
            target = here.row_base + here.increment(key, shift)
            target = target.to_register("sort_target")
            if keys_to is not None:
                keys_to[target] = key
            if form.payload is not None:
                if form.makes_positions:
                    moved = _position(form, here, place, run)
                else:
                    moved = payload[here.base + place]
                payload_to[target] = widen(moved.to_register()) if form.is_wide else moved

    tables = buffers(sort_keys=form.order.raw, sort_counters=form.counter, sort_totals=form.counter)
    arguments = [*tables, declare_move_arguments(form), numbers(*_SHAPE), *numbers(SHIFT)]
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
