"""Many rows of few keys on CPU drivers: each invocation merges a row of its own.

    row              | key | key | key | key | key |
    merged by pairs  | 2 keys    | 2 keys    | 1   |    blocks of 1, 2, 4 ... keys, from one half of a
                     | 4 keys                | 1   |    scratch buffer to the other
                     | 5 keys                      |

All rows have the same length, so the invocations of a subgroup, which share a vector register, are always at
the same place of the same step. There are no barriers.

Invariants: of equal keys, that of the earlier block goes first, so the sort is stable. A row is read before
it is written, so rows may be sorted in place. Loops have at most `(length + 1) * (levels + 4)` rounds in all:
`planning` keeps them below 65,535, after which llvmpipe leaves a loop.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.tuning import memoize
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order
from vkdispatch.sorting.outputs import SortOutputs

_U32 = constant[dtype.uint32]
# A subgroup of llvmpipe. Larger workgroups would make subgroups wait for each other.
_GROUP = 8


@record
class MergeForm:
    """What the kernel of merged rows is specialised for: the order of keys, and what is written."""

    order: Order
    outputs: SortOutputs


@memoize
def make_merge_kernel(form: MergeForm) -> ShaderFunction:
    """Return the kernel that merges rows.

    Its arguments are the keys; scratch memory for twice as many keys, and for twice as many positions
    (uint32) if positions are written; the outputs; the number of rows, and their length.
    """

    def body(keys: Any, *others: Any) -> None:
        *buffers, rows, length = others
        row = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("sort_row")
        with vc.if_block(row < rows):
            _Merge(form, keys, buffers, rows, length, row).run()

    arguments = [("sort_keys", buffer[form.order.raw]), ("sort_scratch", buffer[form.order.raw])]
    if form.outputs.has_positions:
        arguments.append(("sort_scratch_positions", buffer[dtype.uint32]))
    arguments += [*form.outputs.arguments(form.order.raw), ("sort_rows", _U32), ("sort_length", _U32)]
    workgroups = f"(sort_rows + {_GROUP - 1}) // {_GROUP}"
    return trace_kernel(f"sort_merge_{form.order.kind.name}", body, arguments, _GROUP, workgroups)


class _Merge:
    """The kernel of merged rows, in a trace: the row of an invocation."""

    def __init__(
        self, form: MergeForm, keys: Any, buffers: list[Any], rows: Any, length: Any, row: Any
    ) -> None:
        rest = list(buffers)
        self._form, self._keys, self._length = form, keys, length
        self._scratch = rest.pop(0)
        self._scratch_positions = rest.pop(0) if form.outputs.has_positions else None
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
            if self._form.outputs.has_keys:
                self._results[0][self._base + place] = self._scratch[source + place]
            if self._scratch_positions is not None:
                position = self._scratch_positions[source + place].to_register()
                self._results[-1][self._base + place] = self._form.outputs.position(position)

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
                own, other = one[1 + part], two[1 + part]
                smaller = vc.any(other < own, vc.all(other == own, smaller))
            # whether the next key is that of the second block
            is_second = vc.all(right < end, vc.any(left >= middle, smaller)).to_register("sort_second")
            self._scratch[target + place] = vc.select(is_second, two[0], one[0])
            if self._scratch_positions is not None:
                self._scratch_positions[target + place] = vc.select(is_second, two[-1], one[-1])
            left[:] = vc.select(is_second, left, left + 1)
            right[:] = vc.select(is_second, right + 1, right)
            following = load(vc.min(vc.select(is_second, right, left), last))
            for own, other, new in zip(one, two, following, strict=True):
                own[:] = vc.select(is_second, own, new)
                other[:] = vc.select(is_second, new, other)
