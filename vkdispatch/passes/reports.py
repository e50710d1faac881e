"""Expressions and statements by which an observed kernel reports: what `instrument` makes its output of."""

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    is_complex,
    is_float_dtype,
    is_matrix,
    is_scalar,
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
from vkdispatch.passes.diagnostics import PrintSite, Site

# ---- small expressions ---------------------------------------------------------------------------


def uint(value: int) -> Expr:
    """Make a uint32 literal."""
    return Expr(Op.LITERAL, uint32, (), value)


def read(register: Register) -> Expr:
    """Name a register."""
    return Expr(Op.REGISTER, register.dtype, (), register)


def cast(value: Expr, kind: DType) -> Expr:
    """Convert a scalar."""
    return value if value.dtype is kind else Expr(Op.CONSTRUCT, kind, (value,))


def _call(function: str, kind: DType, value: Expr) -> Expr:
    return Expr(Op.CALL, kind, (value,), function)


def less(left: Expr, right: Expr) -> Expr:
    """Compare two scalars of one type."""
    return Expr(Op.COMPARE, bool_, (left, right), "<")


def _plus(left: Expr, right: Expr) -> Expr:
    return Expr(Op.BINARY, uint32, (left, right), "+")


def negation(value: Expr) -> Expr:
    """Turn a condition round."""
    return Expr(Op.UNARY, bool_, (value,), "!")


def all_of(conditions: list[Expr]) -> Expr:
    """Join conditions, of which there is at least one."""
    return conditions[0] if len(conditions) == 1 else Expr(Op.LOGICAL, bool_, tuple(conditions), "&&")


def zero(kind: DType) -> Expr:
    """Make the zero of a type."""
    scalar = component_type(kind)
    value: bool | int | float = False if scalar is bool_ else 0.0 if is_float_dtype(scalar) else 0
    part = Expr(Op.LITERAL, scalar, (), value)
    if is_scalar(kind):
        return part
    return Expr(Op.CONSTRUCT, kind, (part, part) if is_complex(kind) else (part,))


def _component(value: Expr, position: int) -> Expr:
    return Expr(Op.COMPONENT, component_type(value.dtype), (value,), "xyzw"[position])


def components(value: Expr) -> list[Expr]:
    """Return the scalar components of a value that may be evaluated several times."""
    kind = value.dtype
    if is_scalar(kind):
        return [value]
    if is_matrix(kind):
        assert kind.child_type is not None
        columns = (
            Expr(Op.INDEX, kind.child_type, (value, Expr(Op.LITERAL, int32, (), position)))
            for position in range(kind.child_count)
        )
        return [part for column in columns for part in components(column)]
    return [_component(value, position) for position in range(kind.child_count)]


def words_of(scalar: Expr) -> list[Expr]:
    """Return the uint32 words of a scalar, the low word first."""
    kind = scalar.dtype
    if kind is float64:
        pair = _call("unpackDouble2x32", uvec2, scalar)
        return [_component(pair, 0), _component(pair, 1)]
    if kind in (int64, uint64):
        wide = cast(scalar, uint64)
        high = Expr(Op.BINARY, uint64, (wide, Expr(Op.LITERAL, uint64, (), 32)), ">>")
        return [cast(wide, uint32), cast(high, uint32)]
    if is_float_dtype(kind):
        return [_call("floatBitsToUint", uint32, cast(scalar, float32))]
    if kind in (int16, uint16):
        scalar = cast(scalar, int32 if kind is int16 else uint32)
    return [cast(scalar, uint32)]


def shown_word(index: Expr) -> Expr:
    """Return an index as one word; one of 64 bits that is too far off for it becomes the largest int32."""
    low = cast(index, uint32)
    if index.dtype.item_size < 8:
        return low
    half, whole = (Expr(Op.LITERAL, uint64, (), 1 << bits) for bits in (31, 32))
    near = less(Expr(Op.BINARY, uint64, (cast(index, uint64), half), "+"), whole)
    return Expr(Op.SELECT, uint32, (near, low, uint(0x7FFFFFFF)))


def wide_words(index: Expr) -> tuple[Expr, Expr]:
    """Return an index as two words; the high one counts only where it has 64 bits."""
    if index.dtype.item_size == 8:
        low, high = words_of(index)
        return low, high
    return cast(index, uint32), uint(0)


def is_nan(scalar: Expr) -> Expr:
    """Ask whether a floating scalar, which is evaluated once or twice, is NaN."""
    if scalar.dtype is float64:
        return _call("isnan", bool_, scalar)
    # by its bits: a driver may take for granted that there are no NaNs
    single = cast(scalar, float32) if scalar.dtype is float16 else scalar
    bits = _call("floatBitsToUint", uint32, single)
    magnitude = Expr(Op.BINARY, uint32, (bits, uint(0x7FFFFFFF)), "&")
    return less(uint(0x7F800000), magnitude)


def is_constant(value: Expr) -> bool:
    """Whether a value consists of literals none of which is NaN."""
    if value.op is Op.CONSTRUCT:
        return all(map(is_constant, value.args))
    return value.op is Op.LITERAL and value.value == value.value


# ---- what goes into the diagnostics buffer -------------------------------------------------------


class Report:
    """Makes the statements that write into the diagnostics buffer.

    A violation only sets registers, which say what the invocation's first one was and how many there were;
    the invocation writes them when it ends. Compilers make much of every access to memory, little of this.
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

    def _added(self, position: int, amount: Expr, loc: Loc | None = None) -> Declare:
        atomic = Expr(Op.ATOMIC, uint32, (self.word(position), amount), "atomicAdd")
        return Declare(self.register(uint32), atomic, loc)

    def _origin(self) -> list[Expr]:
        return [self._launch, *components(self._id)]

    def violation(self, site: Site, loc: Loc | None, values: tuple[Expr, ...] = ()) -> Block:
        """Note a violation; `values` are the index, low and high, and the length, or six numbers."""
        self.sites.append(site)
        told = [(self._site, uint(len(self.sites) - 1)), *zip(self._values, values, strict=False)]
        stores = tuple(Store(read(register), value, None, loc) for register, value in told)
        first = Expr(Op.COMPARE, bool_, (read(self._count), uint(0)), "==")
        return (If(((first, stores),), None, loc), Store(read(self._count), uint(1), "+", loc))

    @property
    def violations(self) -> bool:
        """Whether the kernel may have violations."""
        return any(not isinstance(site, PrintSite) for site in self.sites)

    def start(self) -> Block:
        """Declare the registers of violations."""
        return tuple(Declare(each, uint(0)) for each in (self._count, self._site, *self._values))

    def ending(self) -> Block:
        """Write what violations there were, and the first of all launches in full."""
        count = read(self._count)
        before = self._added(words.VIOLATIONS, count)
        told = [
            (words.SITE, read(self._site)),
            *enumerate(self._origin(), words.LAUNCH),
            *enumerate(map(read, self._values), words.INDEX),
        ]
        stores = tuple(Store(self.word(position), value) for position, value in told)
        first = Expr(Op.COMPARE, bool_, (read(before.register), uint(0)), "==")
        inside = (before, If(((first, stores),)), Store(count, uint(0)))
        return (If(((Expr(Op.COMPARE, bool_, (count, uint(0)), "!="), inside),)),)

    def message(self, site: PrintSite, values: list[Expr], loc: Loc | None) -> Block:
        """Append a message with these words to the ring, if it fits."""
        self.sites.append(site)
        capacity = Expr(Op.LENGTH, uint32, (), self._storage)
        count = self._added(words.MESSAGES, uint(1), loc)
        start = self._added(words.CURSOR, uint(site.words), loc)
        at = read(start.register)
        fits = Expr(Op.COMPARE, bool_, (_plus(at, uint(site.words)), capacity), "<=")
        content = [uint(len(self.sites)), *self._origin(), *values]
        stores = tuple(
            Store(self.word(_plus(at, uint(offset)) if offset else at), value, None, loc)
            for offset, value in enumerate(content)
        )
        ending = If(((less(at, capacity), (Store(self.word(at), uint(0), None, loc),)),), None, loc)
        # so many messages cannot fit, and must not make the cursor come round
        most = Expr(Op.BINARY, uint32, (capacity, uint(words.MESSAGE_HEAD_WORDS)), "/")
        room = less(read(count.register), most)
        attempt = If(((room, (start, If(((fits, stores),), (ending,), loc))),), None, loc)
        return (count, attempt)
