"""Many rows of few keys for CPU drivers: each invocation merges a row of its own.

    row              | key | key | key | key | key |
    merged by pairs  | 2 keys    | 2 keys    | 1   |    blocks of 1, 2, 4 ... keys, from one half of a
                     | 4 keys                | 1   |    scratch buffer to the other
                     | 5 keys                      |

All rows are equally long, so that invocations of a subgroup, side by side in a vector register, always are at
the same place of the same step. There are no barriers.

Invariants: of equal keys the one of the earlier block goes first, so that the sort is stable. A row is read
before it is written, so that rows may be sorted in place. Loops have at most `(length + 1) * (levels + 4)`
rounds: `planning` sees to it that llvmpipe does not end them, as it does after 65,535.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.passes import widened

_U32 = constant[dtype.uint32]
# A subgroup of llvmpipe: more would wait for each other without need.
_GROUP = 8


@record
class MergeForm:
    """What the kernel of merged rows is specialised for.

    Attributes
    ----------
    order
        Of what the keys are.
    keys, positions
        What is written: the keys in their order, and where in their rows they were.
    wide
        Whether positions are written as numbers of 64 bits.
    """

    order: Order
    keys: bool
    positions: bool
    wide: bool


@remembered
def merge_kernel(form: MergeForm) -> ShaderFunction:
    """Return the kernel that merges rows.

    Its arguments are the keys; scratch memory for twice as many, and for twice as many positions (uint32)
    where these are written; what is written of keys and positions; then how many rows there are, and how many
    keys one has.
    """

    def body(keys: Any, *others: Any) -> None:
        *buffers, rows, length = others
        row = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("sort_row")
        with vc.if_block(row < rows):
            _Merge(form, keys, buffers, rows, length, row).run()

    arguments = [("sort_keys", buffer[form.order.raw]), ("sort_scratch", buffer[form.order.raw])]
    if form.positions:
        arguments.append(("sort_scratch_positions", buffer[dtype.uint32]))
    if form.keys:
        arguments.append(("sort_sorted", buffer[form.order.raw]))
    if form.positions:
        arguments.append(("sort_positions", buffer[dtype.uvec2 if form.wide else dtype.uint32]))
    arguments += [("sort_rows", _U32), ("sort_length", _U32)]
    workgroups = f"(sort_rows + {_GROUP - 1}) // {_GROUP}"
    return traced(f"sort_merge_{form.order.kind.name}", body, arguments, _GROUP, workgroups)


class _Merge:
    """The kernel of merged rows while it is traced: the row of an invocation."""

    def __init__(
        self, form: MergeForm, keys: Any, buffers: list[Any], rows: Any, length: Any, row: Any
    ) -> None:
        rest = list(buffers)
        self._form, self._keys, self._length = form, keys, length
        self._scratch = rest.pop(0)
        self._scratch_positions = rest.pop(0) if form.positions else None
        self._results = rest
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
            results = list(self._results)
            if self._form.keys:
                results.pop(0)[self._base + place] = self._scratch[source + place]
            if self._scratch_positions is not None:
                position = self._scratch_positions[source + place].to_register()
                results.pop(0)[self._base + place] = widened(position) if self._form.wide else position

    def _merge(self, source: Any, target: Any, first: Any, block: Any) -> None:
        """Merge the block from a place on with the next, which may be short or missing."""
        order, length = self._form.order, self._length
        parts = range(len(order.part_bits))
        left = first.to_dtype(dtype.uint32).to_register("sort_left")
        middle = vc.min(left + block, length).to_register("sort_middle")
        end = vc.min(middle + block, length).to_register("sort_end")
        right = middle.to_register("sort_right")
        last = (length - 1).to_register()

        def loaded(place: Any) -> list[Any]:
            """Load a key, its code, and its position."""
            key = self._scratch[source + place].to_register()
            found = [key, *(order.part(key, part).to_register() for part in parts)]
            if self._scratch_positions is not None:
                found.append(self._scratch_positions[source + place].to_register())
            return found

        one, two = loaded(left), loaded(vc.min(right, last))
        with vc.for_block(left, end) as place:
            smaller = two[1] < one[1]
            for part in parts[1:]:  # the last part counts most
                own, other = one[1 + part], two[1 + part]
                smaller = vc.any(other < own, vc.all(other == own, smaller))
            # whether the next is that of the second block
            second = vc.all(right < end, vc.any(left >= middle, smaller)).to_register("sort_second")
            self._scratch[target + place] = vc.select(second, two[0], one[0])
            if self._scratch_positions is not None:
                self._scratch_positions[target + place] = vc.select(second, two[-1], one[-1])
            left[:] = vc.select(second, left, left + 1)
            right[:] = vc.select(second, right + 1, right)
            following = loaded(vc.min(vc.select(second, right, left), last))
            for own, other, new in zip(one, two, following, strict=True):
                own[:] = vc.select(second, own, new)
                other[:] = vc.select(second, new, other)
