"""The bin of an element, in kernels.

value      bins are the numbers 0, 1, 2, ...; an element is the number of its bin
uniform    bins of equal width: a guess from the distance to the first edge, corrected by comparing with edges
search     bins between any edges: binary search

A bin includes its left edge; the last one includes both. A guess is used if its distance from an integer is
larger than the bound of its rounding errors, which `_prepare_guess` computes. Otherwise comparisons with
edges decide. So the bin is that of exact comparisons with the edges, as NumPy's is, however the device
rounds.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_signed_dtype
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant

# Sizes of workgroup memory for edges that kernels are specialised for.
_SHARED = (128, 512)


@record
class Binning:
    """How a kernel finds bins.

    Attributes
    ----------
    way
        "value", "uniform" or "search".
    edges
        dtype of the edges, in which elements are compared with them; None without edges.
    guess
        dtype of the guess.
    grid
        dtype that edges of equal width are rounded to if it is narrower than `edges`; else None.
    shared
        Edges for which there is room in workgroup memory; 0 if they are not there.
    """

    way: str
    edges: DType | None = None
    guess: DType | None = None
    grid: DType | None = None
    shared: int = 0

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and annotations of the kernel's arguments: the number of bins, and the edges."""
        edges = [] if self.edges is None else [("edges", buffer[self.edges])]
        return [("bins", constant[dtype.uint32]), *edges]


def search_edges(edges: Buffer[Any]) -> Binning:
    """Return how the bins between any edges are found."""
    shared = next((size for size in _SHARED if edges.size <= size), 0)
    return Binning("search", edges.var_type, shared=shared)


class Bins:
    """The bins of a kernel, in a trace: made before the pass, and used for each element."""

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
        if binning.shared and binning.edges:
            memory = vc.shared_buffer(binning.edges, binning.shared)
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
        # A bound of the errors of the guess, in bins: those of the element's conversion, the difference, the
        # product, the quotient in `_scale` and the edges, each below 2**-23 (2**-52) of the magnitude.
        largest = vc.max(vc.abs(first), vc.abs(last))
        unit = 2.0**-20 if guess is dtype.float32 else 2.0**-49
        if self._binning.grid is dtype.float16:
            # edges and steps are rounded three times to 11 bits, and to fewer below 2**-14
            largest, unit = vc.max(largest, bins * 2.0**-14), 2.0**-9
        self._margin = (bins * (1.0 + largest / width) * unit).to_register()

    def find(self, element: Any) -> tuple[Any, Any]:
        """Return whether an element is in a bin, and the number of the bin, which is else undefined."""
        if self._binning.way == "value":
            return self._convert_number(element)
        edges = self._binning.edges
        assert edges is not None
        if element.var_type is dtype.bool_:
            element = vc.select(element, 1, 0)
        compared = convert(element, edges).to_register()
        if self._binning.way == "uniform":
            inside = vc.all(compared >= self._first, compared <= self._last)
            return inside, self._guess(element, compared, inside)
        below_first = is_below(compared, self._first)
        above_last = is_below(self._last, compared)
        inside = ~vc.any(below_first, above_last)
        return inside, self._search(compared)

    def _convert_number(self, element: Any) -> tuple[Any, Any]:
        kind = element.var_type
        if kind is dtype.bool_:
            element = vc.select(element, 1, 0).to_dtype(dtype.uint32)
        elif is_signed_dtype(kind):
            # negative numbers become larger than any number of bins
            wide = dtype.uint64 if kind is dtype.int64 else dtype.uint32
            element = element.to_dtype(wide)
        element = element.to_register()
        bins = self.count if element.var_type is not dtype.uint64 else self.count.to_dtype(dtype.uint64)
        return element < bins, element.to_dtype(dtype.uint32)

    def _guess(self, element: Any, compared: Any, inside: Any) -> Any:
        guess = self._binning.guess
        assert guess is not None
        offset = (convert(element, guess) - self._origin) * self._scale
        # NaN and elements outside have no bin, and must not be converted
        place = vc.select(inside, offset, 0.0).to_register()
        # the guess may be slightly too large
        last = self.count - 1
        index = vc.min(place.to_dtype(dtype.uint32), last).to_register("bin")
        part = (place - index.to_dtype(guess)).to_register()
        with vc.if_block(vc.all(inside, vc.any(part < self._margin, part > 1.0 - self._margin))):
            with vc.while_block(vc.all(index > 0, compared < self._edges[index])):
                index -= 1
            with vc.while_block(vc.all(index < last, compared >= self._edges[index + 1])):
                index += 1
        return index

    def _search(self, compared: Any) -> Any:
        """Return the last bin whose left edge is not above the element."""
        base = vc.new_uint_register(0)
        length = (self.count + 0).to_register()
        with vc.while_block(length > 1):
            half = (length >> 1).to_register()
            middle = (base + half).to_register()
            base[:] = vc.select(is_below(compared, self._edges[middle].to_register()), base, middle)
            length[:] = length - half
        return base


def convert(value: Any, kind: DType) -> Any:
    """Return a value as one of a dtype."""
    return value if value.var_type is kind else value.to_dtype(kind)


def is_below(a: Any, b: Any) -> Any:
    """Whether one value is before another, with NaN after all numbers."""
    if not is_float_dtype(a.var_type):
        return a < b
    return vc.any(a < b, vc.all(vc.isnan(b), ~vc.isnan(a)))
