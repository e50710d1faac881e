"""Which bin an element belongs to: kernels' part.

value      bins are the numbers 0, 1, 2, ...; an element is its bin
uniform    bins of equal width: a guess from the element's distance to the first edge, put right by the edges
search     bins between any edges: binary search

A bin holds its left edge; the last one holds both. What the guess says is believed only where it lies further
from an integer than all of its rounding errors together, which are bounded in `_uniform`; elsewhere the edges
decide. So the bin is that of exact comparisons with the edges, as NumPy's is, whatever the device's division
and contraction do.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import buffer, constant
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_signed_dtype
from vkdispatch.base.record import record

# How many edges are kept in workgroup memory.
_KEPT = (128, 512)


@record
class Binning:
    """How a kernel finds bins.

    Attributes
    ----------
    way
        "value", "uniform" or "search".
    edges
        dtype of the edges, which is also that in which elements are compared with them; None without any.
    guess
        dtype in which a bin of equal width is guessed.
    grid
        dtype that edges of equal width are rounded to, where that is narrower than `edges`; else None.
    kept
        Edges for which there is room in workgroup memory; 0 where they are not kept there.
    """

    way: str
    edges: DType | None = None
    guess: DType | None = None
    grid: DType | None = None
    kept: int = 0

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and annotations of the kernel's arguments for it: how many bins, and the edges."""
        edges = [] if self.edges is None else [("edges", buffer[self.edges])]
        return [("bins", constant[dtype.uint32]), *edges]


def searched(edges: Buffer[Any]) -> Binning:
    """Return how bins are found between edges of any widths."""
    kept = next((size for size in _KEPT if edges.size <= size), 0)
    return Binning("search", edges.var_type, kept=kept)


class Bins:
    """The bins of a kernel being traced: made before the pass, asked for each element."""

    def __init__(self, binning: Binning, variables: Any, group: int) -> None:
        self._binning = binning
        self.count = variables[0]
        if binning.way == "value":
            return
        self._edges = variables[1]
        self._first = self._edges[0].to_register()
        self._last = self._edges[self.count].to_register()
        if binning.way == "uniform":
            self._prepare_guess()
        if binning.kept and binning.edges:
            memory = vc.shared_buffer(binning.edges, binning.kept)
            with vc.for_block(vc.local_invocation_id().x, self.count + 1, group) as number:
                memory[number] = self._edges[number]
            vc.barrier()
            self._edges = memory

    def _prepare_guess(self) -> None:
        guess = self._binning.guess
        assert guess is not None
        first, last = self._first.to_dtype(guess), self._last.to_dtype(guess)
        bins = self.count.to_dtype(guess)
        width = (last - first).to_register()
        self._origin = first.to_register()
        self._scale = (bins / width).to_register()
        # Errors of the guess, in bins: of the element's conversion, the difference, its product and the
        # quotient in `_scale`, and of the edges themselves: each below 2**-23 (2**-52) of its magnitude.
        largest = vc.max(vc.abs(first), vc.abs(last))
        unit = 2.0**-20 if guess is dtype.float32 else 2.0**-49
        if self._binning.grid is dtype.float16:
            # edges are rounded three times to 11 bits, and to fewer below 2**-14, as the steps between them
            largest, unit = vc.max(largest, bins * 2.0**-14), 2.0**-9
        self._margin = (bins * (1.0 + largest / width) * unit).to_register()

    def of(self, element: Any) -> tuple[Any, Any]:
        """Return whether an element is in a bin, and in which; the second means nothing without the first."""
        if self._binning.way == "value":
            return self._value(element)
        edges = self._binning.edges
        assert edges is not None
        if element.var_type is dtype.bool_:
            element = vc.select(element, 1, 0)
        compared = converted(element, edges).to_register()
        if self._binning.way == "uniform":
            inside = vc.all(compared >= self._first, compared <= self._last)
            return inside, self._uniform(element, compared, inside)
        below_first = is_below(compared, self._first)
        above_last = is_below(self._last, compared)
        inside = ~vc.any(below_first, above_last)
        return inside, self._searched(compared)

    def _value(self, element: Any) -> tuple[Any, Any]:
        kind = element.var_type
        if kind is dtype.bool_:
            element = vc.select(element, 1, 0).to_dtype(dtype.uint32)
        elif is_signed_dtype(kind):
            # what is negative becomes larger than any count of bins
            wide = dtype.uint64 if kind is dtype.int64 else dtype.uint32
            element = element.to_dtype(wide)
        element = element.to_register()
        bins = self.count if element.var_type is not dtype.uint64 else self.count.to_dtype(dtype.uint64)
        return element < bins, element.to_dtype(dtype.uint32)

    def _uniform(self, element: Any, compared: Any, inside: Any) -> Any:
        guess = self._binning.guess
        assert guess is not None
        offset = (converted(element, guess) - self._origin) * self._scale
        # NaN and what lies outside has no bin, and must not be converted
        place = vc.select(inside, offset, 0.0).to_register()
        # the guess counts down from above too, where it may be a little too large
        last = self.count - 1
        index = vc.min(place.to_dtype(dtype.uint32), last).to_register("bin")
        part = (place - index.to_dtype(guess)).to_register()
        with vc.if_block(vc.all(inside, vc.any(part < self._margin, part > 1.0 - self._margin))):
            with vc.while_block(vc.all(index > 0, compared < self._edges[index])):
                index -= 1
            with vc.while_block(vc.all(index < last, compared >= self._edges[index + 1])):
                index += 1
        return index

    def _searched(self, compared: Any) -> Any:
        """Return the last of the bins whose left edge is not above the element."""
        base = vc.new_uint_register(0)
        length = (self.count + 0).to_register()
        with vc.while_block(length > 1):
            half = (length >> 1).to_register()
            middle = (base + half).to_register()
            base[:] = vc.select(is_below(compared, self._edges[middle].to_register()), base, middle)
            length[:] = length - half
        return base


def converted(value: Any, kind: DType) -> Any:
    """Return a value as one of another type."""
    return value if value.var_type is kind else value.to_dtype(kind)


def is_below(a: Any, b: Any) -> Any:
    """Whether one value comes before another, with NaN after all numbers."""
    if not is_float_dtype(a.var_type):
        return a < b
    return vc.any(a < b, vc.all(vc.isnan(b), ~vc.isnan(a)))
