"""What the kernels have in common that narrow long rows down to candidates for their first k elements."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.values import count_per_load, view_type
from vkdispatch.sorting.keys import Digit, Order

WORD = 32
WIDTH = 11
BINS = 1 << WIDTH
# The arguments whose elements are keys; all others have words of 32 bits.
_OF_KEYS = ("keys", "candidates", "bounds", "samples")


@record
class NarrowForm:
    """What kernels are specialised for.

    Attributes
    ----------
    order
        The order whose first k elements are wanted.
    group
        Invocations of a workgroup.
    together
        Elements of a load.
    loads
        Loads that an invocation has in flight.
    """

    order: Order
    group: int
    together: int
    loads: int

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.group * WORD

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The digits of a code, the most significant first."""
        return self.order.digits(WIDTH)[::-1]

    @property
    def view(self) -> DType:
        """The type of a load."""
        return view_type(self.order.raw, self.together) or self.order.raw

    @property
    def parts(self) -> int:
        """The number of parts of a code."""
        return len(self.order.part_bits)

    def code(self, raw: Any) -> list[Any]:
        """Return the parts of the code of an element."""
        parts = [(self.order.part(raw, part), bits) for part, bits in enumerate(self.order.part_bits)]
        return [(part if bits == 32 else part & ((1 << bits) - 1)).to_register() for part, bits in parts]


def choose_together(order: Order, rows: int, length: int) -> int:
    """Return the number of elements of a load."""
    together = count_per_load([order.raw])
    if view_type(order.raw, together) is None or (rows > 1 and length % together):
        return 1
    return together


def declare_arguments(
    raw: DType, buffers: str, numbers: str, view: DType | None = None
) -> list[tuple[str, Any]]:
    """Return names and annotations of a kernel's arguments.

    Parameters
    ----------
    raw
        The type that keys are moved as.
    buffers, numbers
        Names of the arguments, without their prefix.
    view
        The type of the argument `view`.
    """
    kinds = dict.fromkeys(_OF_KEYS, raw) | {"view": view or raw}
    return [
        *((f"top_{name}", buffer[kinds.get(name, dtype.uint32)]) for name in buffers.split()),
        *((f"top_{name}", constant[dtype.uint32]) for name in numbers.split()),
    ]


def load_bound(form: NarrowForm, states: Any, row: Any) -> list[Any]:
    """Return the code of the k-th element of a row."""
    state = (row * (form.parts + 1)).to_register("top_state")
    return [states[state + part].to_register() for part in range(form.parts)]


def is_before(code: list[Any], other: list[Any]) -> Any:
    """Return whether a code is smaller than another."""
    smaller: Any = None
    for own, bound in zip(code, other, strict=True):
        is_less = own < bound
        smaller = is_less if smaller is None else vc.any(is_less, vc.all(own == bound, smaller))
    return smaller


def is_equal(code: list[Any], other: list[Any]) -> Any:
    """Return whether a code equals another."""
    same = [own == bound for own, bound in zip(code, other, strict=True)]
    return vc.all(*same) if len(same) > 1 else same[0]


def is_good(starts: Any, row: Any, tiles: Any, k: Any, room: Any) -> Any:
    """Return whether the sample of a row gave at least k candidates, and no more than there is room for."""
    count = (starts[(row + 1) * tiles] - starts[row * tiles]).to_register("top_found")
    return vc.all(count >= k, count <= room)
