"""The diagnostics buffer: its layout, what writes to it, and the messages that its words mean."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Argument, Block, Builtin, Declare, Expr, If, Op, Register, Storage, Store
from vkdispatch.compiler.ir.literals import digits, is_long, rounded
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import builders as make

# ---- Formats of prints, and the Python values of what the device printed ---------------------------------


PERCENT, BRACES = "%", "{}"

# A conversion of C's printf, with Vulkan's %v3f for vectors; Python knows no length modifiers but h, l and L.
_CONVERSION = (
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?:v(?P<copies>[234]))?"
    r"(?:hh|ll|[hlLqjzt])?(?P<type>[diouxXeEfFgGcrs%])"
)


class _Shown:
    """A number that shows a text of its own, unless a format asks for another."""

    __slots__ = ()
    _text: str

    def __repr__(self) -> str:
        return self._text

    def __format__(self, spec: str) -> str:
        return self._text if not spec else super().__format__(spec)


class _Single(_Shown, float):
    """A float16 or float32, shown with the fewest digits that identify it."""

    __slots__ = ("_text",)

    def __new__(cls, value: float, kind: dt.DType) -> "_Single":
        """Round to the narrow type, and keep its digits."""
        made = super().__new__(cls, rounded(float(value), kind))
        made._text = digits(float(made), kind)
        return made

    _text: str


class _Complex(_Shown, complex):
    """A complex number, shown with the digits of its parts' type."""

    @classmethod
    def of(cls, real: float, imag: float) -> "_Complex":
        """Make one of its parts."""
        made = cls(float(real), float(imag))
        shown = [text[:-2] if text.endswith(".0") else text for text in (str(real), str(imag))]
        sign = "" if shown[1].startswith("-") else "+"
        # as Python does: 2j, but (-0+2j)
        made._text = f"{shown[1]}j" if shown[0] == "0" else f"({shown[0]}{sign}{shown[1]}j)"
        return made


class _Parts(tuple[Any, ...]):
    """Components of a vector or columns of a matrix; a format applies to each of them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))})"

    def __format__(self, spec: str) -> str:
        return f"({', '.join(format(part, spec) for part in self)})"


def host_value(kind: dt.DType, components: Any) -> Any:
    """Convert the scalar components (list or array) of a value of type `kind` to the value that is formatted.

    Scalars become bool, int or float, complex values complex, vectors tuples, matrices tuples of what the
    kernel calls `m[0]`, `m[1]`...
    """
    if dt.is_matrix(kind):
        assert kind.child_type is not None
        size = dt.component_count(kind.child_type)
        columns = (components[start : start + size] for start in range(0, len(components), size))
        return _Parts(host_value(kind.child_type, column) for column in columns)
    scalars = [_host_scalar(dt.component_type(kind), component) for component in components]
    if dt.is_complex(kind):
        return _Complex.of(*scalars)
    return scalars[0] if dt.is_scalar(kind) else _Parts(scalars)


def _host_scalar(kind: dt.DType, value: Any) -> bool | int | float:
    if kind is dt.bool_:
        return bool(value)
    if kind is dt.float16 or kind is dt.float32:
        return _Single(value, kind)
    return float(value) if dt.is_float_dtype(kind) else int(value)


# ---- words ---------------------------------------------------------------------------------------


def word_count(kind: dt.DType) -> int:
    """32-bit words that a printed value of this type takes."""
    return dt.component_count(kind) * (2 if dt.component_type(kind).item_size == 8 else 1)


def value_of_words(kind: dt.DType, words: "np.ndarray[Any, Any]") -> Any:
    """Convert the words that the device wrote for a value to the value that is formatted.

    A component takes a word, low and high word if it has 64 bits; what has 16 bits comes widened.
    """
    scalar = dt.component_type(kind)
    if scalar is dt.float64:
        return host_value(kind, words.view(np.float64))
    if is_long(scalar):
        return host_value(kind, words.view(np.int64 if scalar is dt.int64 else np.uint64))
    if dt.is_float_dtype(scalar):
        return host_value(kind, words.view(np.float32))
    return host_value(kind, words.view(np.int32) if dt.is_signed_dtype(scalar) else words)


# ---- formats -------------------------------------------------------------------------------------


class FormatError(ValueError):
    """A format does not match its values."""


def parse_format(text: str) -> tuple[str, str, list[str]]:
    """Parse a format of printf: returns it as a Python format, its style, and its conversions.

    A text with % conversions has the style "%". Any other has the style "{}" of `str.format`, with no list of
    conversions. Raises FormatError for a % that starts no conversion.
    """
    found = list(re.finditer(_CONVERSION, text))
    if not found:
        if "%" in text and "{" not in text:
            raise FormatError(f"{text!r} has a % that starts no conversion; write %% for the sign")
        return text, BRACES, []
    rest = re.sub(_CONVERSION, "", text)
    if "%" in rest:
        raise FormatError(f"{text!r} has a % that starts no conversion; write %% for the sign")
    conversions = [match["type"] for match in found for _ in range(int(match["copies"] or 1))]
    return (
        re.sub(_CONVERSION, _python_conversion, text),
        PERCENT,
        [letter for letter in conversions if letter != "%"],
    )


def _python_conversion(found: "re.Match[str]") -> str:
    letter = {"u": "d", "i": "d"}.get(found["type"], found["type"])
    if letter == "%":
        return "%%"
    one = f"%{found['flags']}{found['width']}{found['precision'] or ''}{letter}"
    return ", ".join([one] * int(found["copies"] or 1))


def put_texts(text: str, style: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Put the texts among the values of a format into it; returns the format and values that remain.

    Raises FormatError for a text that does not suit its conversion.
    """
    rest = [value for value in values if not isinstance(value, str)]
    if len(rest) == len(values):
        return text, rest
    try:
        put = _put_by_percent if style == PERCENT else _put_by_braces
        return put(text, values), rest
    except (TypeError, ValueError, LookupError) as error:
        raise FormatError(f"{text!r} does not format {tuple(values)!r}: {error}") from None


def _put_by_percent(text: str, values: Sequence[Any]) -> str:
    remaining = iter(values)

    def put(found: "re.Match[str]") -> str:
        if found["type"] == "%":
            return found[0]
        value = next(remaining)
        return (found[0] % value).replace("%", "%%") if isinstance(value, str) else found[0]

    return re.sub(_CONVERSION, put, text)


def check_fields(text: str, count: int) -> None:
    """Raise FormatError if a format of `str.format` leaves out some of its values, which Python allows."""
    fields = list(_fields(text))
    if "{" in "".join(spec for *_, spec, _ in fields):
        return  # a field in a field
    left = set(range(count)) - {position for _, position, *_ in fields}
    if left:
        raise FormatError(f"{text!r} has no conversion for value {min(left) + 1} of {count}")


def _fields(text: str) -> Iterator[tuple[str, int | None, str, str, str | None]]:
    """Split a format of `str.format`: plain text, and the field behind it.

    A field has the position of its value, what it takes of that, its specification and its conversion.
    """
    from string import Formatter  # compiles a regular expression when it is imported

    unnumbered = 0
    try:
        for literal, field, spec, conversion in Formatter().parse(text):
            number = re.match(r"\d*", field or "")[0]  # type: ignore[index]
            position = None if field is None else int(number) if number else unnumbered
            unnumbered += field is not None and not number
            yield literal, position, (field or "")[len(number) :], spec or "", conversion
    except ValueError as error:
        raise FormatError(f"{text!r} is no format: {error}") from None


def _put_by_braces(text: str, values: Sequence[Any]) -> str:
    parts: list[str] = []
    for literal, position, inner, spec, conversion in _fields(text):
        parts.append(_escaped(literal))
        if position is None:
            continue
        value = values[position]
        ending = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        if isinstance(value, str):
            parts.append(_escaped(f"{{0{inner}{ending}}}".format(value)))
        else:
            before = sum(isinstance(value, str) for value in values[:position])
            parts.append(f"{{{position - before}{inner}{ending}}}")
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def check_format(text: str, style: str, kinds: Sequence[dt.DType]) -> None:
    """Raise FormatError if a format cannot format values of these types."""
    try:
        _format(text, style, [host_value(kind, [1] * dt.component_count(kind)) for kind in kinds])
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        types = ", ".join(kind.name for kind in kinds) or "nothing"
        raise FormatError(f"{text!r} does not format {types}: {error}") from None


def message_text(text: str, style: str, values: Sequence[Any]) -> str:
    """Format values as Python does; if that fails, show the format, the values and the error instead."""
    try:
        return _format(text, style, values)
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        return f"{text!r} cannot show {tuple(values)!r}: {error}\n"


def _format(text: str, style: str, values: Sequence[Any]) -> str:
    return text % tuple(values) if style == PERCENT else text.format(*values)


# ---- The layout of the diagnostics buffer, and the checks and sites that its words refer to --------------
#
# The buffer holds uint32 words: a head, then a ring of messages, each of which is reserved by one atomic
# addition. A message consists of a header (site + 1, or 0 where no more room is left), the launch number,
# the global invocation id (x, y, z) and the words of its values. The head also has the first violation of a
# check.


# Words of the head: the end of the ring so far, how many messages there were, how many violations, the most
# rounds of a loop, then the first violation: its site, launch number, invocation, index (low, high) and
# length (and of a wide kernel its high word); of an image the texel (x, y, z) and the size of the image; of
# several axes the index and the size along each.
CURSOR, MESSAGES, VIOLATIONS, ROUNDS, SITE, LAUNCH, INVOCATION, INDEX, LENGTH = 0, 1, 2, 3, 4, 5, 6, 9, 11
HEAD_WORDS = 16
MESSAGE_HEAD_WORDS = 5


@record
class Checks:
    """The checks that a kernel makes on the device.

    `rounds` is the largest number of rounds of a while loop; None lets the device choose.
    """

    bounds: bool = False
    nan: bool = False
    loops: bool = False
    rounds: int | None = None
    asserts: bool = False

    def __bool__(self) -> bool:
        return self.bounds or self.nan or self.loops or self.asserts


_CHECK = r"(bounds|nan|loops|asserts)(?:=(\d+))?"


def parse_checks(value: object, what: str = "check") -> Checks:
    """Parse a value of the option `check`.

    Parameters
    ----------
    value
        False or None (nothing), True (bounds, loops and asserts), or any of "bounds", "nan", "loops",
        "asserts" in a text with commas or in a set; "loops=5000" also says how many rounds.
    what
        Name of the option in messages.

    Raises
    ------
    TypeError, ValueError
        `value` is none of these.
    """
    if value is None or value is False:
        return Checks()
    if value is True:
        return Checks(bounds=True, loops=True, asserts=True)
    names: list[object]
    if isinstance(value, str):
        names = [name.strip() for name in value.split(",") if name.strip()]
        if value.strip() in ("0", "1"):
            return parse_checks(value.strip() == "1")
    else:
        try:
            names = list(value)  # type: ignore[call-overload]
        except TypeError:
            raise ArgumentTypeError(f"{what}: {_describe_expected(value)}") from None
    rounds = None
    known = set()
    for name in names:
        found = re.fullmatch(_CHECK, name) if isinstance(name, str) else None
        if found is None or (found[2] and (found[1] != "loops" or not 0 < int(found[2]) < 1 << 32)):
            raise ArgumentValueError(f"{what}: {_describe_expected(value)}")
        known.add(found[1])
        rounds = int(found[2]) if found[2] else rounds
    return Checks("bounds" in known, "nan" in known, "loops" in known, rounds, "asserts" in known)


def _describe_expected(value: object) -> str:
    known = '"bounds", "nan", "loops", "loops=<most rounds>", "asserts"'
    return f"expected a bool, or any of {known}; got {value!r}"


# ---- sites: places in a kernel that report something ---------------------------------------------


@record
class PrintSite:
    """A print: its format and the types of its values."""

    format: str
    style: str
    kinds: tuple[dt.DType, ...]
    loc: Loc | None

    @property
    def words(self) -> int:
        """Words of a message, its head included."""
        return MESSAGE_HEAD_WORDS + sum(map(word_count, self.kinds))


@record
class BoundsSite:
    """An access by index.

    `what` describes what is indexed; `resource` is its position among the bound resources, or None. The index
    has `bits` bits, and is `signed` or not.
    """

    what: str
    resource: int | None
    signed: bool
    bits: int
    loc: Loc | None


@record
class AxesSite:
    """An access by one index for each of `axes` axes; see `BoundsSite`."""

    what: str
    resource: int | None
    axes: int
    loc: Loc | None


@record
class TexelSite:
    """An access to a texel of an image by `coordinates` coordinates."""

    what: str
    coordinates: int
    loc: Loc | None


@record
class NanSite:
    """A place that a floating-point value is stored to; `indexed` if it has an index."""

    what: str
    indexed: bool
    loc: Loc | None


@record
class LoopSite:
    """A while loop."""

    loc: Loc | None


@record
class AssertSite:
    """An assert and its message."""

    message: str
    loc: Loc | None


Site = PrintSite | BoundsSite | AxesSite | TexelSite | NanSite | LoopSite | AssertSite


# ---- Expressions and statements that write reports to the diagnostics buffer -----------------------------
#
# `instrument` inserts them.


def words_of(scalar: Expr) -> list[Expr]:
    """Return the uint32 words of a scalar, the low word first."""
    kind = scalar.dtype
    if kind is dt.float64:
        pair = make.call("unpackDouble2x32", dt.uvec2, scalar)
        return [make.component(pair, 0), make.component(pair, 1)]
    if is_long(kind):
        wide = make.cast(scalar, dt.uint64)
        high = make.binary(">>", wide, Expr(Op.LITERAL, dt.uint64, (), 32))
        return [make.cast(wide, dt.uint32), make.cast(high, dt.uint32)]
    if dt.is_float_dtype(kind):
        return [make.call("floatBitsToUint", dt.uint32, make.cast(scalar, dt.float32))]
    if kind in (dt.int16, dt.uint16):
        scalar = make.cast(scalar, dt.int32 if kind is dt.int16 else dt.uint32)
    return [make.cast(scalar, dt.uint32)]


def shown_word(index: Expr) -> Expr:
    """Return an index as one word; a 64-bit index that does not fit becomes the largest int32."""
    low = make.cast(index, dt.uint32)
    if index.dtype.item_size < 8:
        return low
    half, whole = (Expr(Op.LITERAL, dt.uint64, (), 1 << bits) for bits in (31, 32))
    near = make.less(make.binary("+", make.cast(index, dt.uint64), half), whole)
    return Expr(Op.SELECT, dt.uint32, (near, low, make.uint(0x7FFFFFFF)))


def wide_words(index: Expr) -> tuple[Expr, Expr]:
    """Return an index as two words; the high word is used for 64-bit indices only."""
    if index.dtype.item_size == 8:
        low, high = words_of(index)
        return low, high
    return make.cast(index, dt.uint32), make.uint(0)


def is_nan(scalar: Expr) -> Expr:
    """Return whether a floating-point scalar is NaN; the scalar may be evaluated twice."""
    if scalar.dtype is dt.float64:
        return make.call("isnan", dt.bool_, scalar)
    # by its bits, since drivers may assume that there are no NaNs
    single = make.cast(scalar, dt.float32) if scalar.dtype is dt.float16 else scalar
    bits = make.call("floatBitsToUint", dt.uint32, single)
    return make.less(make.uint(0x7F800000), make.binary("&", bits, make.uint(0x7FFFFFFF)))


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
        self._launch = Expr(Op.ARGUMENT, dt.uint32, (), launch)
        self._id = Expr(Op.BUILTIN, dt.uvec3, (), Builtin.GLOBAL_INVOCATION_ID)
        self._count = self.register(dt.uint32)
        self._site = self.register(dt.uint32)
        # index (low, high) and length; with `wide` an index and a size along three axes
        self._values = tuple(self.register(dt.uint32) for _ in range(6 if wide else 3))

    def register(self, kind: dt.DType) -> Register:
        """Make a register of this type, which is not declared yet."""
        return Register(self._names.claim_number("check"), kind)

    def word(self, position: Expr | int) -> Expr:
        """Return the place of a word."""
        index = make.uint(position) if isinstance(position, int) else position
        return Expr(Op.ELEMENT, dt.uint32, (index,), self._storage)

    def _add(self, position: int, amount: Expr, loc: Loc | None = None) -> Declare:
        atomic = Expr(Op.ATOMIC, dt.uint32, (self.word(position), amount), "atomicAdd")
        return Declare(self.register(dt.uint32), atomic, loc)

    def _origin(self) -> list[Expr]:
        return [self._launch, *make.components(self._id)]

    def make_violation(self, site: Site, loc: Loc | None, values: tuple[Expr, ...] = ()) -> Block:
        """Record a violation; `values` are the index (low, high) and the length, or six numbers."""
        self.sites.append(site)
        told = [(self._site, make.uint(len(self.sites) - 1)), *zip(self._values, values, strict=False)]
        stores = tuple(make.assign(register, value, loc) for register, value in told)
        first = make.is_zero(make.read(self._count))
        return (make.when(first, *stores, loc=loc), Store(make.read(self._count), make.uint(1), "+", loc))

    @property
    def has_violations(self) -> bool:
        """Whether the kernel may have violations."""
        return any(not isinstance(site, PrintSite) for site in self.sites)

    def declare_registers(self) -> Block:
        """Declare the registers of violations."""
        return tuple(Declare(register, make.uint(0)) for register in (self._count, self._site, *self._values))

    def write_violations(self) -> Block:
        """Write the count of violations, and details of the first violation of all launches."""
        count = make.read(self._count)
        before = self._add(VIOLATIONS, count)
        told = [
            (SITE, make.read(self._site)),
            *enumerate(self._origin(), LAUNCH),
            *enumerate(map(make.read, self._values), INDEX),
        ]
        stores = tuple(Store(self.word(position), value) for position, value in told)
        first = make.is_zero(make.read(before.register))
        inside = (before, make.when(first, *stores), Store(count, make.uint(0)))
        return (make.when(make.is_nonzero(count), *inside),)

    def make_message(self, site: PrintSite, values: list[Expr], loc: Loc | None) -> Block:
        """Append a message with these values to the ring, if it fits."""
        self.sites.append(site)
        capacity = Expr(Op.LENGTH, dt.uint32, (), self._storage)
        count = self._add(MESSAGES, make.uint(1), loc)
        start = self._add(CURSOR, make.uint(site.words), loc)
        at = make.read(start.register)
        fits = make.compare("<=", make.binary("+", at, make.uint(site.words)), capacity)
        content = [make.uint(len(self.sites)), *self._origin(), *values]
        stores = tuple(
            Store(self.word(make.binary("+", at, make.uint(offset)) if offset else at), value, None, loc)
            for offset, value in enumerate(content)
        )
        ending = make.when(make.less(at, capacity), Store(self.word(at), make.uint(0), None, loc), loc=loc)
        # more messages than can fit must not wrap the cursor around
        most = make.binary("/", capacity, make.uint(MESSAGE_HEAD_WORDS))
        room = make.less(make.read(count.register), most)
        attempt = make.when(room, start, If(((fits, stores),), (ending,), loc), loc=loc)
        return (count, attempt)
