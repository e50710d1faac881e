"""What kernels move: elements through maps, or words; numbers that fill; sources axis by axis."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.memory.data import to_bfloat16
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import kernels
from vkdispatch.families.kernels import Argument, buffers, trace_kernel
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import H200_AND_LLVMPIPE, LLVMPIPE, Number, Table
from vkdispatch.families.values import wide_type
from vkdispatch.families.values import word_type as word_type
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Numbers found by measurement, which the plans of moving elements depend on --------------------------
#
# None changes a result.


# Twice as many do not fit into the workgroup memory that devices have at least for small elements.
_SEGMENTS = (64, 128, 256)


class TileTuning(Table, family="rearrange.tiles", found_on=H200_AND_LLVMPIPE):
    """Numbers for transposing by tiles."""

    # The most invocations of a workgroup of tiles. A power of two.
    group = Number(256, (64, 128, 256, 512))
    # Bytes of a row of a tile, of elements of 1 byte. A power of two.
    segment_1 = Number(256, _SEGMENTS)
    # Bytes of a row of a tile, of elements of 2 bytes. A power of two.
    segment_2 = Number(256, _SEGMENTS)
    # Bytes of a row of a tile, of elements of 4 bytes. A power of two.
    segment_4 = Number(256, _SEGMENTS)
    # Bytes of a row of a tile, of elements of 8 bytes. A power of two.
    segment_8 = Number(256, _SEGMENTS)
    # Bytes of a row of a tile, of elements of 16 bytes. A power of two.
    segment_16 = Number(256, _SEGMENTS)
    # Ratio of width to height of a tile of elements of 1 byte. A power of two.
    flat_1 = Number(2, (2, 4))
    # See `TileForm`.
    strip = Number(1, (0, 1))
    # If rows of the result do not begin at multiples of so many bytes, the parts of them that are stored do;
    # 0: they begin anywhere.
    sector = Number(32, (0, 32, 64))
    # Ratio of height to width of a tile of cells.
    tall = Number(1)
    # The most rows or columns of a narrow plane.
    narrow = Number(8, (0, 4, 8))
    # Invocations of a workgroup for such a plane. A power of two.
    narrow_group = Number(256, (64, 128, 256, 512))
    # Bytes of a row of a tile of cells that are smaller than 4 bytes. A power of two.
    cells = Number(256, (64, 128, 256))
    # Bytes of the largest word of blocks. On CPUs it is 8 at most: their compilers take long for larger
    # blocks of small elements.
    most = Number(16, (4, 8, 16))


class StagingTuning(Table, family="rearrange.staging"):
    """Numbers for taking elements from rows in workgroup memory."""

    # Invocations of a workgroup. A power of two.
    group = Number(256, (64, 128, 256, 512))
    # Loads that an invocation has in flight.
    ahead = Number(4, (1, 2, 4, 8))
    # Bytes of workgroup memory for several rows.
    memory = Number(1 << 14, (1 << 12, 1 << 13, 1 << 14))
    # Whether CPUs use workgroup memory, too: their caches already hold rows.
    on_cpus = Number(False, (False, True), found_on=LLVMPIPE)


class TakeTuning(Table, family="rearrange.take", found_on=H200_AND_LLVMPIPE):
    """Numbers for taking elements one by one."""

    # Words that an invocation has in flight.
    ahead = Number(2, (1, 2, 4, 8))
    # The most words for which each invocation has one, which keeps a device busy already.
    few = Number(1 << 20, (1 << 16, 1 << 18, 1 << 20, 1 << 22))


tile_tuning = TileTuning()
staging_tuning = StagingTuning()
take_tuning = TakeTuning()


# ---- What kernels move -----------------------------------------------------------------------------------
#
# Elements through maps or, if nothing converts them, words of up to 16 bytes.
#
# A run of elements that stay together is a run of words: a vec3 is three words of 4 bytes, and 1000 float16
# are 125 words of 16 bytes.


_LARGEST = 16
# A number of more than 32 bits is passed as two: its upper part, and so many lower bits.
_LOW_BITS = 20
_TOO_LARGE = 1 << 32


def find_largest_word(*sizes: int) -> int:
    """Return the bytes of the largest word that divides all these sizes in bytes."""
    word = _LARGEST
    while any(size % word for size in sizes):
        word //= 2
    return word


@record
class Move:
    """What a kernel moves.

    Attributes
    ----------
    word
        The type of the words that are moved; None for elements, through `source` and `sink`.
    source, sink
        Where elements come from, and how they are stored.
    """

    word: dtype.DType | None = None
    source: Source | None = None
    sink: Sink | None = None

    @property
    def arguments(self) -> list[Argument]:
        """The kernel's first arguments: the result, the source's, and the sink's."""
        if self.word is not None:
            return buffers(result=self.word, x=self.word)
        assert self.source is not None and self.sink is not None
        return [*buffers(result=self.sink.out_type), *self.source.parameters, *self.sink.parameters]

    @property
    def label(self) -> str:
        """A part of the names of kernels."""
        return "mapped" if self.word is None else str(self.word.item_size)

    @property
    def register_type(self) -> dtype.DType:
        """The type of a moved value in registers and in workgroup memory."""
        if self.word is not None:
            return dtype.uint32 if self.word.item_size < 4 else self.word
        assert self.source is not None
        return wide_type(self.source.out_type)

    def load(self, variables: Sequence[Any], index: Any) -> Any:
        """Load the value at an index."""
        if self.word is not None:
            value = variables[1][index].to_register()
            return value.to_dtype(self.register_type)
        assert self.source is not None
        return self.source.value(variables[1 : 1 + len(self.source.names)], index)

    def store(self, variables: Sequence[Any], index: Any, value: Any) -> None:
        """Store a loaded value at an index."""
        if self.word is not None:
            variables[0][index] = value.to_dtype(dtype.uint16) if self.word is dtype.uint16 else value
            return
        assert self.source is not None and self.sink is not None
        self.sink.store(variables[0], variables[1 + len(self.source.names) :], index, value)


def is_moved_as_words(x: Operand, target: Output) -> bool:
    """Whether elements are stored in the result as they are in memory."""
    return x.source.is_plain and target.sink.mapping is None


@record
class Numbers:
    """The numbers behind the other arguments of a kernel; `is_wide` if one needs more than 32 bits."""

    names: tuple[str, ...]
    is_wide: bool

    @property
    def arguments(self) -> list[Argument]:
        """The arguments of a kernel."""
        parts = ("_high", "_low") if self.is_wide else ("",)
        return kernels.numbers(*(f"move_{name}{part}" for name in self.names for part in parts))

    def text(self, name: str) -> str:
        """Return a number as text for the size of a launch."""
        return f"(move_{name}_high * {1 << _LOW_BITS} + move_{name}_low)" if self.is_wide else f"move_{name}"

    def read(self, variables: Sequence[Any]) -> dict[str, Any]:
        """Return the numbers by name, given their variables."""
        if not self.is_wide:
            return dict(zip(self.names, variables, strict=True))
        # positions, which have 64 bits in kernels for such large buffers
        pairs = zip(variables[::2], variables[1::2], strict=True)
        return {
            name: high * (1 << _LOW_BITS) + low for name, (high, low) in zip(self.names, pairs, strict=True)
        }

    def value(self, variables: Sequence[Any], name: str, kind: dtype.DType) -> Any:
        """Return a number as a GPU value of an integer type, which must hold it."""
        at = self.names.index(name)
        if not self.is_wide:
            return variables[at].to_dtype(kind)
        high, low = (variables[2 * at + part].to_dtype(kind) for part in range(2))
        return high * (1 << _LOW_BITS) + low


def pack_numbers(values: dict[str, int]) -> tuple[Numbers, tuple[int, ...]]:
    """Return how a kernel takes numbers, and the arguments of its launch."""
    is_wide = max(values.values(), default=0) >= _TOO_LARGE
    names = Numbers(tuple(values), is_wide)
    if not is_wide:
        return names, tuple(values.values())
    low = (1 << _LOW_BITS) - 1
    return names, tuple(part for value in values.values() for part in (value >> _LOW_BITS, value & low))


def split_index(index: Any, sizes: Sequence[Any]) -> list[Any]:
    """Return the position along each axis for a flat index; `sizes` are those of all axes but the first."""
    positions: list[Any] = []
    rest = index
    for size in reversed(sizes):
        positions.insert(0, (rest % size).to_register())
        rest = (rest // size).to_register()
    return [rest, *positions]


# ---- Numbers that fill arrays, as kernels take them: in the dtype of the array, or as words --------------


@record
class Filler:
    """Numbers that fill arrays of a dtype: one, or two for each padded axis if they differ."""

    kind: dtype.DType
    numbers: tuple[Any, ...]

    @property
    def is_several(self) -> bool:
        """Whether there are several numbers."""
        return len(self.numbers) > 1

    def values(self, move: Move) -> list[Any]:
        """Return the numbers as arguments of a launch."""
        if move.word is not None:
            return [to_word(number, self.kind, move.word) for number in self.numbers]
        return [to_value(number, self.kind, move.register_type) for number in self.numbers]


def host_component(kind: dtype.DType) -> Any:
    """Return the NumPy type of a number that fills an element: of its components, or its complex type."""
    if kind is dtype.complex32:
        return np.complex64
    if kind is dtype.bfloat16:
        return np.float32
    return np.dtype(dtype.to_numpy_dtype(kind if dtype.is_complex(kind) else dtype.component_type(kind)))


def cast_number(value: object, kind: dtype.DType, name: str) -> Any:
    """Return a number as NumPy casts it to a dtype.

    Raises
    ------
    TypeError
        The value is not a number, or is complex and the dtype is real.
    ValueError
        The value is a Python int out of the bounds of the dtype.
    """
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")
    if isinstance(value, (complex, np.complexfloating)) and not dtype.is_complex(kind):
        raise ArgumentTypeError(f"{name}: {value!r} cannot be stored as {kind.name}")
    host = np.dtype(host_component(kind))
    if type(value) is int and host.kind in "iu" and not np.iinfo(host).min <= value <= np.iinfo(host).max:
        raise ArgumentValueError(f"{name}: {value} is out of bounds for {kind.name}")
    try:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(host)[()]
    except (ValueError, OverflowError, TypeError):
        raise ArgumentTypeError(f"{name}: {value!r} cannot be stored as {kind.name}") from None


def to_bytes(number: Any, kind: dtype.DType) -> bytes:
    """Return the bytes of an element whose components all are the number."""
    if kind is dtype.bfloat16:
        return to_bfloat16(np.asarray([number], np.float32)).tobytes()
    if kind is dtype.complex32:
        return np.asarray([number.real, number.imag], np.float16).tobytes()
    octets = np.asarray([number], host_component(kind)).tobytes()
    return octets * (kind.item_size // len(octets))


def to_word(number: Any, kind: dtype.DType, word: dtype.DType) -> Any:
    """Return a word of such elements, or of a part of one."""
    octets = to_bytes(number, kind)
    # a word may hold parts of elements, whose components are all the same
    octets = (octets * -(-word.item_size // len(octets)))[: word.item_size]
    if word.item_size <= 4:
        return int.from_bytes(octets, "little")
    parts: list[int] = np.frombuffer(octets, np.uint32).tolist()
    return parts


def to_value(number: Any, kind: dtype.DType, held: dtype.DType) -> Any:
    """Return a number as a kernel takes a value of the type `held`."""
    if held is dtype.bool_:
        return int(bool(number))
    if dtype.is_scalar(held):
        return number.item()
    if dtype.is_complex(held):
        return complex(number)
    if dtype.is_matrix(held):
        size = held.child_count
        return np.full((size, size), number)
    parts: Sequence[Any] = [number.item()] * dtype.component_count(held)
    return parts


# ---- Kernels that find the source of each element axis by axis: roll, pad, flip, tile, repeat ------------
#
#     result[i, j, k] = x[f(i), g(j), h(k)]
#
# Each of f, g and h is one of a few kinds (see `Axis`). Axes are joined before a kernel is made: an
# unchanged axis is joined with its neighbour, also with one that is rolled or padded with a constant,
# because whole rows can be rolled and padded. The last axis first has bytes, and then the largest words
# that no kind splits: a roll along the first axis of three moves 16 bytes at a time, whatever the dtype.


GROUP = 256
# Kinds that can move whole rows.
_BY_ROWS = ("same", "roll", "constant", "wrap", "tile")


@record
class Axis:
    """How positions along an axis of the result depend on those of the array.

    Attributes
    ----------
    kind
        "same"; "roll" (by `at`); "flip"; "tile"; "repeat" (`at` times each); or the mode of padding with `at`
        elements before: "constant", "edge", "reflect", "symmetric", "wrap".
    result, x
        Lengths in the result and in the array.
    at
        See `kind`.
    """

    kind: str
    result: int
    x: int
    at: int = 0

    def scale(self, factor: int) -> "Axis":
        """Return the axis in elements, if it counts rows of `factor` elements."""
        return Axis(self.kind, self.result * factor, self.x * factor, self.at * factor)

    @property
    def is_trivial(self) -> bool:
        """Whether the axis has one element, and keeps it."""
        return self.result == self.x == 1

    @property
    def near(self) -> "Axis":
        """The axis with a kind that needs no remainder, if no padding is longer than the array."""
        most = self.x - (self.kind == "reflect")
        if (
            self.kind not in ("reflect", "symmetric", "wrap")
            or max(self.at, self.result - self.x - self.at) > most
        ):
            return self
        return Axis(f"{self.kind}_near", self.result, self.x, self.at)

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers that a kernel needs besides the length in the result."""
        period = {"reflect": 2 * (self.x - 1), "symmetric": 2 * self.x, "wrap": self.x}.get(self.kind, 0)
        match self.kind:
            case "same":
                return {"x": self.x}
            case "repeat" | "roll" | "constant" | "edge" | "reflect_near" | "symmetric_near" | "wrap_near":
                return {"x": self.x, "at": self.at}
            case "flip" | "tile":
                return {"x": self.x}
            case "wrap":
                return {"x": self.x, "at": -self.at % period}
        return {"x": self.x, "at": -self.at % period, "period": period}


def join_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Join axes that can move whole rows with an unchanged axis behind them."""
    joined: list[Axis] = []
    for axis in reversed(axes):
        if axis.is_trivial and joined:
            continue
        if axis.kind == "reflect" and axis.x == 1:
            axis = Axis("edge", axis.result, axis.x, axis.at)
        if joined and joined[0].kind == "same" and axis.kind in _BY_ROWS:
            rows = joined.pop(0)
            axis = axis.scale(rows.result)
        joined.insert(0, axis)
    return joined


def launch_by_axes(
    x: Operand,
    axes: Sequence[Axis],
    target: Output,
    buffer: Buffer[Any],
    graph: CommandGraph | None,
    filler: Filler | None = None,
) -> None:
    """Queue the launch that finds elements axis by axis; `filler` pads the axes of the kind "constant"."""
    move = Move(None, x.source, target.sink)
    item = x.var_type.item_size
    values: tuple[Any, ...]
    if is_moved_as_words(x, target):
        joined = join_axes([*axes, Axis("same", item, item)])
        last = joined[-1]
        size = find_largest_word(last.result, last.x, last.at)
        move = Move(word_type(size))
        last = Axis(last.kind, last.result // size, last.x // size, last.at // size)
        joined = [*joined[:-1], last]
    else:
        joined = join_axes(axes)
    if joined and joined[-1].is_trivial:
        del joined[-1]
    joined = [axis.near for axis in joined]
    kinds = tuple(axis.kind for axis in joined)
    # smaller words of a row are stored 4 bytes at once
    together = 4 // move.word.item_size if move.word is not None and move.word.item_size < 4 else 1
    if not joined or joined[-1].result % together:
        together = 1
    named = {f"result{k}": axis.result for k, axis in enumerate(joined) if k}
    if len(joined) > 1:
        named[f"result{len(joined) - 1}"] //= together
    named |= {f"{name}{k}": value for k, axis in enumerate(joined) for name, value in axis.numbers.items()}
    named["total"] = math.prod(axis.result for axis in joined) // together
    numbers, values = pack_numbers(named)
    fills = filler.values(move) if filler is not None else ()
    several = filler is not None and filler.is_several
    kernel = _make_kernel(move, kinds, numbers, several, together)
    kernel(buffer, *x.arguments, *target.arguments, *fills, *values, graph=graph)


@store_results
def _make_kernel(
    move: Move, kinds: tuple[str, ...], numbers: Numbers, several: bool, together: int
) -> ShaderFunction:
    arguments = move.arguments
    if together > 1:
        arguments[:1] = buffers(result=dtype.uint32)
    padded = [k for k, kind in enumerate(kinds) if kind == "constant"]
    names = [f"fill_{k}_{end}" for k in padded for end in ("before", "after")] if several else ["fill"]
    fills = kernels.numbers(*names, kind=fill_type(move)) if padded else []

    def body(moved: Any, filling: Any, variables: Any) -> None:
        number = numbers.read(variables)
        index = vc.global_invocation_id().x
        parts = split_index(index, [number[f"result{k}"] for k in range(1, len(kinds))])
        if together == 1:
            move.store(moved, index, load(moved, filling, number, parts, index))
            return
        *rows, last = parts
        word: Any = None
        for k in range(together):
            value = load(moved, filling, number, [*rows, last * together + k], index)
            value = value << (32 // together * k)
            word = value if word is None else word | value
        moved[0][index] = word

    def load(moved: Any, filling: Any, number: dict[str, Any], parts: list[Any], index: Any) -> Any:
        """Return the element for a position in the result."""
        place: Any = 0
        outside: list[tuple[Any, Any]] = []
        for k, (kind, part) in enumerate(zip(kinds, parts, strict=False)):
            source = _find_source(kind, part, k, number, outside)
            place = source if k == 0 else place * number[f"x{k}"] + source
        place = place.to_register() if kinds else index
        if not filling:
            return move.load(moved, place)
        within = vc.all(*(beyond for before, after in outside for beyond in (~before, ~after)))
        value = move.load(moved, vc.select(within, place, 0).to_register())
        value = value.to_register()
        if not several:
            return vc.select(within, value, _load_fill(move, filling[0])).to_register()
        # the last padded axis fills the corners
        for (before, after), low, high in zip(outside, filling[::2], filling[1::2], strict=True):
            value = vc.select(before, _load_fill(move, low), value)
            value = vc.select(after, _load_fill(move, high), value)
        return value.to_register()

    name = f"move_{'_'.join(kinds)}_{move.label}"
    groups = [arguments, fills, numbers.arguments]
    return trace_kernel(name, body, groups, GROUP, exec_size=numbers.text("total"))


def fill_type(move: Move) -> dtype.DType:
    """Return the dtype of the numbers that fill, as arguments of kernels."""
    return dtype.uint32 if move.register_type is dtype.bool_ else move.register_type


def _load_fill(move: Move, value: Any) -> Any:
    return value != 0 if move.register_type is dtype.bool_ else value


def _find_source(kind: str, part: Any, k: int, number: dict[str, Any], outside: list[tuple[Any, Any]]) -> Any:
    """Return the position in the array for a position along axis `k` of the result."""
    length = number[f"x{k}"]
    at: Any = number.get(f"at{k}")
    match kind:
        case "same":
            return part
        case "roll":
            return vc.select(part < at, part + (length - at), part - at)
        case "flip":
            return (length - 1) - part
        case "tile":
            return part % length
        case "repeat":
            return part // at
        case "constant":
            outside.append((part < at, part >= at + length))
            return part - at
        case "edge":
            return vc.min(vc.select(part < at, 0, part - at), length - 1)
        case "wrap":
            return (part + at) % length
        case "wrap_near":
            inside = vc.select(part < at, part + (length - at), part - at)
            return vc.select(inside < length, inside, inside - length)
        case "reflect_near":
            inside = vc.select(part < at, at - part, part - at)
            return vc.select(inside < length, inside, (2 * length - 2) - inside)
        case "symmetric_near":
            inside = vc.select(part < at, (at - 1) - part, part - at)
            return vc.select(inside < length, inside, (2 * length - 1) - inside)
    period = number[f"period{k}"]
    folded = ((part + at) % period).to_register()
    other = period - folded if kind == "reflect" else (period - 1) - folded
    return vc.select(folded < length, folded, other)
