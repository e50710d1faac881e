"""Expressions and statements that write reports to the diagnostics buffer; `instrument` inserts them."""

from vkdispatch.base.dtype import (
    DType,
    bool_,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    is_float_dtype,
    uint16,
    uint32,
    uint64,
    uvec2,
    uvec3,
)
from vkdispatch.ir import (
    Argument,
    Block,
    Builtin,
    Declare,
    Expr,
    If,
    Op,
    Register,
    Storage,
    Store,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes import diagnostics as words
from vkdispatch.passes.builders import binary, call, cast, component, components, less, read, uint
from vkdispatch.passes.diagnostics import PrintSite, Site


def words_of(scalar: Expr) -> list[Expr]:
    """Return the uint32 words of a scalar, the low word first."""
    kind = scalar.dtype
    if kind is float64:
        pair = call("unpackDouble2x32", uvec2, scalar)
        return [component(pair, 0), component(pair, 1)]
    if kind in (int64, uint64):
        wide = cast(scalar, uint64)
        high = Expr(Op.BINARY, uint64, (wide, Expr(Op.LITERAL, uint64, (), 32)), ">>")
        return [cast(wide, uint32), cast(high, uint32)]
    if is_float_dtype(kind):
        return [call("floatBitsToUint", uint32, cast(scalar, float32))]
    if kind in (int16, uint16):
        scalar = cast(scalar, int32 if kind is int16 else uint32)
    return [cast(scalar, uint32)]


def shown_word(index: Expr) -> Expr:
    """Return an index as one word; a 64-bit index that does not fit becomes the largest int32."""
    low = cast(index, uint32)
    if index.dtype.item_size < 8:
        return low
    half, whole = (Expr(Op.LITERAL, uint64, (), 1 << bits) for bits in (31, 32))
    near = less(Expr(Op.BINARY, uint64, (cast(index, uint64), half), "+"), whole)
    return Expr(Op.SELECT, uint32, (near, low, uint(0x7FFFFFFF)))


def wide_words(index: Expr) -> tuple[Expr, Expr]:
    """Return an index as two words; the high word is used for 64-bit indices only."""
    if index.dtype.item_size == 8:
        low, high = words_of(index)
        return low, high
    return cast(index, uint32), uint(0)


def is_nan(scalar: Expr) -> Expr:
    """Return whether a floating-point scalar is NaN; the scalar may be evaluated twice."""
    if scalar.dtype is float64:
        return call("isnan", bool_, scalar)
    # by its bits, since drivers may assume that there are no NaNs
    single = cast(scalar, float32) if scalar.dtype is float16 else scalar
    bits = call("floatBitsToUint", uint32, single)
    magnitude = Expr(Op.BINARY, uint32, (bits, uint(0x7FFFFFFF)), "&")
    return less(uint(0x7F800000), magnitude)


def is_known_number(value: Expr) -> bool:
    """Whether a value consists of literals none of which is NaN."""
    if value.op is Op.CONSTRUCT:
        return all(map(is_known_number, value.args))
    return value.op is Op.LITERAL and value.value == value.value


# ---- what goes into the diagnostics buffer -------------------------------------------------------


class Report:
    """Makes the statements that write to the diagnostics buffer.

    A violation only sets registers: the count of violations of the invocation, and the first one. The
    invocation writes them when it ends, which compiles to less code than writing at every check.
    """

    def __init__(self, storage: Storage, launch: Argument, names: FreshNames, *, wide: bool) -> None:
        self.sites: list[Site] = []
        self._names = names
        self._storage = storage
        self._launch = Expr(Op.ARGUMENT, uint32, (), launch)
        self._id = Expr(Op.BUILTIN, uvec3, (), Builtin.GLOBAL_INVOCATION_ID)
        self._count = self.register(uint32)
        self._site = self.register(uint32)
        # index (low, high) and length; with `wide` an index and a size along three axes
        self._values = tuple(self.register(uint32) for _ in range(6 if wide else 3))

    def register(self, kind: DType) -> Register:
        """Make a register of this type, which is not declared yet."""
        return Register(self._names.claim_number("check"), kind)

    def word(self, position: Expr | int) -> Expr:
        """Return the place of a word."""
        index = uint(position) if isinstance(position, int) else position
        return Expr(Op.ELEMENT, uint32, (index,), self._storage)

    def _add(self, position: int, amount: Expr, loc: Loc | None = None) -> Declare:
        atomic = Expr(Op.ATOMIC, uint32, (self.word(position), amount), "atomicAdd")
        return Declare(self.register(uint32), atomic, loc)

    def _origin(self) -> list[Expr]:
        return [self._launch, *components(self._id)]

    def make_violation(self, site: Site, loc: Loc | None, values: tuple[Expr, ...] = ()) -> Block:
        """Record a violation; `values` are the index (low, high) and the length, or six numbers."""
        self.sites.append(site)
        told = [(self._site, uint(len(self.sites) - 1)), *zip(self._values, values, strict=False)]
        stores = tuple(Store(read(register), value, None, loc) for register, value in told)
        first = Expr(Op.COMPARE, bool_, (read(self._count), uint(0)), "==")
        return (If(((first, stores),), None, loc), Store(read(self._count), uint(1), "+", loc))

    @property
    def has_violations(self) -> bool:
        """Whether the kernel may have violations."""
        return any(not isinstance(site, PrintSite) for site in self.sites)

    def declare_registers(self) -> Block:
        """Declare the registers of violations."""
        return tuple(Declare(each, uint(0)) for each in (self._count, self._site, *self._values))

    def write_violations(self) -> Block:
        """Write the count of violations, and details of the first violation of all launches."""
        count = read(self._count)
        before = self._add(words.VIOLATIONS, count)
        told = [
            (words.SITE, read(self._site)),
            *enumerate(self._origin(), words.LAUNCH),
            *enumerate(map(read, self._values), words.INDEX),
        ]
        stores = tuple(Store(self.word(position), value) for position, value in told)
        first = Expr(Op.COMPARE, bool_, (read(before.register), uint(0)), "==")
        inside = (before, If(((first, stores),)), Store(count, uint(0)))
        return (If(((Expr(Op.COMPARE, bool_, (count, uint(0)), "!="), inside),)),)

    def make_message(self, site: PrintSite, values: list[Expr], loc: Loc | None) -> Block:
        """Append a message with these values to the ring, if it fits."""
        self.sites.append(site)
        capacity = Expr(Op.LENGTH, uint32, (), self._storage)
        count = self._add(words.MESSAGES, uint(1), loc)
        start = self._add(words.CURSOR, uint(site.words), loc)
        at = read(start.register)
        fits = Expr(Op.COMPARE, bool_, (binary("+", at, uint(site.words)), capacity), "<=")
        content = [uint(len(self.sites)), *self._origin(), *values]
        stores = tuple(
            Store(self.word(binary("+", at, uint(offset)) if offset else at), value, None, loc)
            for offset, value in enumerate(content)
        )
        ending = If(((less(at, capacity), (Store(self.word(at), uint(0), None, loc),)),), None, loc)
        # more messages than can fit must not wrap the cursor around
        most = Expr(Op.BINARY, uint32, (capacity, uint(words.MESSAGE_HEAD_WORDS)), "/")
        room = less(read(count.register), most)
        attempt = If(((room, (start, If(((fits, stores),), (ending,), loc))),), None, loc)
        return (count, attempt)
