"""What all kernels of a product share: types, arguments, sizes, and sums of parts."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, bool_, component_type, int32, is_complex, is_scalar
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers, numbers, trace_kernel
from vkdispatch.families.operands import Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import wide_type
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The types of sums of products, and arithmetic on sums -----------------------------------------------


def check_numbers(kind: DType, name: str) -> None:
    """Raise TypeError for an array of vectors or matrices."""
    if not is_scalar(kind) and not is_complex(kind):
        raise ArgumentTypeError(f"{name}: matmul multiplies matrices of numbers, got elements of {kind.name}")


def sum_type(kind: DType) -> DType:
    """Return the type of sums for a result of `kind`: one of at least 32 bits."""
    return dtype.uint32 if kind is dtype.bool_ else wide_type(kind)


def add_product(total: Any, x: Any, y: Any, *, logical: bool) -> None:
    """Add the product of two values to a register; booleans have "and" and "or"."""
    kind = total.var_type
    if logical:
        total[:] = total | (x & y)
    elif is_complex(kind):
        total.real = vc.fma(x.real, y.real, total.real)
        total.imag = vc.fma(x.real, y.imag, total.imag)
        total.real = vc.fma(-x.imag, y.imag, total.real)
        total.imag = vc.fma(x.imag, y.real, total.imag)
    elif kind in (dtype.float32, dtype.float64):
        total[:] = vc.fma(x, y, total)
    else:
        total[:] = total + x * y


def add_sums(x: Any, y: Any, *, logical: bool) -> Any:
    """Return the sum of two sums."""
    return x | y if logical else x + y


def add_pairwise(sums: list[Any], *, logical: bool) -> Any:
    """Return the sum of sums, added up in pairs; their number is a power of two."""
    while len(sums) > 1:
        sums = [
            add_sums(x, y, logical=logical).to_register() for x, y in zip(sums[::2], sums[1::2], strict=True)
        ]
    return sums[0]


def make_zero(kind: DType) -> Any:
    """Return the zero of a type, as an expression."""
    if is_complex(kind):
        part = component_type(kind)
        return vc.to_dtype(kind, vc.to_dtype(part, 0), vc.to_dtype(part, 0))
    return vc.to_dtype(kind, 0)


# ---- What all kernels of a product share: their arguments, and the sizes of the product ------------------


NUMBERS = ("rows", "columns", "chunk", "last", "splits", "batches", "a_batches", "b_batches")
PREFIX = "matmul_"


@record
class Sizes:
    """The sizes of a product: `batches` times (rows x length) times (length x columns).

    An operand has a matrix for each batch, or one for all. The length has `splits` parts of `chunk` elements
    each, so that numbers of 32 bits describe any length.
    """

    batches: int
    rows: int
    columns: int
    length: int
    a_batches: int
    b_batches: int
    splits: int = 1
    chunk: int = 0

    @property
    def size(self) -> int:
        """The number of elements of the result."""
        return self.batches * self.rows * self.columns

    @property
    def key(self) -> tuple[int, ...]:
        """The sizes as a key of plans."""
        return self.batches, self.rows, self.columns, self.length, self.a_batches, self.b_batches

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments of kernels, in the order of `NUMBERS`."""
        chunk = self.chunk or self.length
        last = self.length - (self.splits - 1) * chunk
        return (
            *(self.rows, self.columns, chunk, last, self.splits),
            *(self.batches, self.a_batches, self.b_batches),
        )


@record
class Factors:
    """What a kernel multiplies, and how the result is stored.

    Attributes
    ----------
    a, b
        Where the elements come from, and how many elements a load takes.
    transpose_a, transpose_b
        Whether rows and columns of an operand are swapped.
    kind
        The type of sums.
    sink
        How sums become elements of the result.
    partial
        Whether the sums of each part go to a scratch buffer, which another kernel adds up.
    """

    a: Source
    b: Source
    transpose_a: bool
    transpose_b: bool
    kind: DType
    sink: Sink
    partial: bool

    @property
    def logical(self) -> bool:
        """Whether products are of booleans."""
        return self.sink.value_type is bool_

    @property
    def arguments(self) -> list[Argument | list[Argument]]:
        """The arguments of a kernel: result, sizes, operands with their views, arguments of the sink."""
        return [
            *buffers(matmul_result=self.kind if self.partial else self.sink.out_type),
            numbers(*(PREFIX + name for name in NUMBERS)),
            self.a.parameters,
            buffers(**{f"{PREFIX}a{position}": view for position, view in self.a.views}),
            self.b.parameters,
            buffers(**{f"{PREFIX}b{position}": view for position, view in self.b.views}),
            [] if self.partial else self.sink.parameters,
        ]


class Variables:
    """The arguments of a kernel that is being traced, and values computed of them."""

    def __init__(self, factors: Factors, variables: Sequence[Any]) -> None:
        self.factors = factors
        self.result, sizes, self.a, self.a_views, self.b, self.b_views, self.rest = variables
        self.number: dict[str, Any] = dict(zip(NUMBERS, sizes, strict=True))
        number = self.number
        self.length = ((number["splits"] - 1) * number["chunk"] + number["last"]).to_register("length")

    def part(self, split: Any) -> tuple[Any, Any]:
        """Return where a part of the length begins and ends."""
        number = self.number
        begin = (split * number["chunk"]).to_register("begin")
        size = vc.select(split + 1 == number["splits"], number["last"], number["chunk"])
        return begin, (begin + size).to_register("end")

    def store(self, split: Any, batch: Any, row: Any, column: Any, total: Any) -> None:
        """Store a sum by batch, row and column."""
        number = self.number
        index = (batch * number["rows"] + row) * number["columns"] + column
        self.store_at(split, index, total)

    def store_at(self, split: Any, index: Any, total: Any) -> None:
        """Store a sum by its flat index in the result."""
        number, factors = self.number, self.factors
        if factors.partial:
            size = number["batches"] * number["rows"] * number["columns"]
            self.result[split * size + index] = total
        else:
            store_sum(factors, self.result, self.rest, index, total)


def store_sum(factors: Factors, result: Any, rest: Sequence[Any], index: Any, total: Any) -> None:
    """Store a sum through the sink."""
    value = total != make_zero(factors.kind) if factors.logical else total
    factors.sink.store(result, rest, index.to_register("index"), value)


def tile_count(rows: int, columns: int) -> str:
    """Return the number of workgroups as text that launches evaluate."""
    across, down = f"-(-{PREFIX}columns // {columns})", f"-(-{PREFIX}rows // {rows})"
    return f"{PREFIX}splits * {PREFIX}batches * {across} * {down}"


def find_tile(
    number: dict[str, Any], rows: int, columns: int, band: int, apart: int = 0
) -> tuple[Any, Any, Any, Any]:
    """Return the tile of a workgroup: its part of the length, batch, first row and first column.

    If `apart` is not 0, workgroups at this distance make neighbouring tiles.
    """
    group = vc.workgroup_id().x
    split = (group % number["splits"]).to_register("split")
    rest = (group // number["splits"]).to_register("rest")
    down = ((number["rows"] + (rows - 1)) // rows).to_register("down")
    across = ((number["columns"] + (columns - 1)) // columns).to_register("across")
    batch = (rest // (down * across)).to_register("batch")
    tile = (rest % (down * across)).to_register("tile")
    if apart:
        first = (tile // (2 * apart) * (2 * apart)).to_register("first")
        with vc.if_block(first + 2 * apart <= down * across):
            place = tile - first
            tile[:] = first + (place % apart) * 2 + place // apart
    bands = (tile // (across * band)).to_register("bands")
    within = (tile % (across * band)).to_register("within")
    high = vc.min(down - bands * band, band).to_register("high")
    first_row = ((bands * band + within % high) * rows).to_register("first_row")
    first_column = ((within // high) * columns).to_register("first_column")
    return split, batch, first_row, first_column


# ---- Sums of parts, added up in a fixed order; the sum of no parts is zero -------------------------------
#
#     part 0    [ sums of all elements of the result ]
#     part 1    [ ...                                ]    each element: lane t of `lanes` adds parts t,
#     part 2    [ ...                                ]    t + lanes, ...; then halves of the lanes are added
#
# The order of additions depends on the form only: the same input gives the same bits.


GROUP = 256


@record
class PartialsForm:
    """What the kernel is specialised for. It uses only the type and the sink of `factors`."""

    factors: Factors
    lanes: int


@store_results
def make_partials_kernel(form: PartialsForm) -> ShaderFunction:
    """Trace the kernel; its arguments are the result, the parts, their number, and those of the sink."""
    factors = form.factors
    elements = GROUP // form.lanes

    def body(result: Any, parts: Any, count: Any, rest: Any) -> None:
        lane = vc.local_invocation_index()
        place = (lane % form.lanes).to_register("lane")
        index = (vc.workgroup_id().x * elements + lane // form.lanes).to_register("index")
        total = make_zero(factors.kind).to_register("total")
        inside = index.to_dtype(int32) < result.shape.w
        with vc.if_block(inside), vc.for_block(place, count, form.lanes) as part:
            value = parts[part * result.shape.w + index]
            total[:] = add_sums(total, value, logical=factors.logical)
        total = add_lanes(total, lane, form.lanes, GROUP, factors)
        with vc.if_block(vc.all(inside, place == 0)):
            store_sum(factors, result, rest, index, total)

    tables = buffers(matmul_result=factors.sink.out_type, matmul_parts=factors.kind)
    arguments = [*tables, *numbers("matmul_count"), factors.sink.parameters]
    groups = f"-(-{PREFIX}result.size // {elements})"
    return trace_kernel(f"matmul_parts_{factors.kind.name}", body, arguments, GROUP, workgroups=groups)


def add_lanes(total: Any, lane: Any, lanes: int, group: int, factors: Factors) -> Any:
    """Add up the values of runs of `lanes` invocations; the first invocation of each has the sum."""
    if lanes == 1:
        return total
    memory = vc.shared_buffer(factors.kind, group)
    memory[lane] = total
    vc.barrier()
    half = lanes // 2
    while half:
        with vc.if_block(lane % lanes < half):
            memory[lane] = add_sums(memory[lane], memory[lane + half], logical=factors.logical)
        vc.barrier()
        half //= 2
    return memory[lane]
