"""The layout of the diagnostics buffer, and the checks and sites that its words refer to.

The buffer holds uint32 words: a head, then a ring of messages, each of which is reserved by one atomic
addition. A message consists of a header (site + 1, or 0 where no more room is left), the launch number, the
global invocation id (x, y, z) and the words of its values. The head also has the first violation of a check.
"""

import re

from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.ir.location import Loc
from vkdispatch.passes.messages import word_count

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
    kinds: tuple[DType, ...]
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
