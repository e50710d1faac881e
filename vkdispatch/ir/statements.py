"""Statements, which hold expressions and nest in blocks, and the kernel that they make up."""

import functools
from typing import Any

from vkdispatch.base.record import record
from vkdispatch.ir.location import Loc
from vkdispatch.ir.nodes import Argument, Expr, ImageBinding, Register, ShaderFlags, SharedArray, Storage


@record
class Declare:
    """Declare a register with its first value."""

    register: Register
    value: Expr
    loc: Loc | None = None


@record
class Store:
    """Assign `value` to a place, or combine it with what is there by `operator` ("+" writes `+=`).

    Until `reads.settle_reads` has run, `update` marks a value that is the place as Python read it, or a
    BINARY of that and an operand.
    """

    place: Expr
    value: Expr
    operator: str | None = None
    loc: Loc | None = None
    update: bool = False


@record
class Read:
    """Python reads `value` here. `reads.settle_reads` replaces it; no finished kernel holds one.

    `register` is the local variable that gets the value: one that is declared here if anything assigns to it.
    """

    value: Expr
    loc: Loc | None = None
    register: Register | None = None


@record
class ImageStore:
    """Write a texel of a storage image."""

    image: ImageBinding
    coordinate: Expr
    value: Expr
    loc: Loc | None = None


@record
class MatrixLoad:
    """Fill a cooperative matrix from memory: element (r, c) lies at stride * r + c from `source`.

    The stride counts the array's own elements, whatever the matrix is made of; `transposed` swaps r and c.
    With a `window` (rows and columns of the whole, first row, first column) `source` is where the whole
    begins, and what lies outside of it is read as 0, and left alone by a MatrixStore.
    """

    matrix: Expr
    source: Expr
    stride: Expr
    transposed: bool = False
    window: tuple[Expr, ...] = ()
    loc: Loc | None = None


@record
class MatrixStore:
    """Write a cooperative matrix to memory; as `MatrixLoad` says, with `place` in place of `source`."""

    place: Expr
    value: Expr
    stride: Expr
    transposed: bool = False
    window: tuple[Expr, ...] = ()
    loc: Loc | None = None


@record
class If:
    """The first branch whose condition holds runs, else `orelse`."""

    branches: tuple[tuple[Expr, tuple["Statement", ...]], ...]
    orelse: tuple["Statement", ...] | None = None
    loc: Loc | None = None


@record
class While:
    """Run `body` as long as the condition, evaluated anew each time, holds.

    Compilers are asked not to unroll it if `rolled`.
    """

    condition: Expr
    body: tuple["Statement", ...]
    loc: Loc | None = None
    rolled: bool = False


@record
class For:
    """Run `body` with `counter` = start, start + step, ... up to, without it, `stop`, as `range` does.

    The counter is int32 or uint32, in a widened kernel also int64 or uint64.
    `start`, `stop` and `step` are of its type and do not change while the loop runs: literals,
    arguments, or registers that the body leaves alone. A step of zero runs nothing.
    """

    counter: Register
    start: Expr
    stop: Expr
    step: Expr
    body: tuple["Statement", ...]
    loc: Loc | None = None


@record
class Switch:
    """Run the one case among whose values `value` is, else `default`. Cases do not fall through.

    A Break inside leaves the loop around the switch.
    """

    value: Expr
    cases: tuple[tuple[tuple[int, ...], tuple["Statement", ...]], ...]
    default: tuple["Statement", ...] | None = None
    loc: Loc | None = None


@record
class Break:
    """End the innermost loop."""

    loc: Loc | None = None


@record
class Continue:
    """Go on with the next round of the innermost loop."""

    loc: Loc | None = None


@record
class Scope:
    """A block of its own, with an optional comment in front."""

    body: tuple["Statement", ...]
    comment: str | None = None
    loc: Loc | None = None


@record
class Effect:
    """Call a GLSL function for its effect: a barrier."""

    function: str
    loc: Loc | None = None


@record
class Assert:
    """Run `body`, then look whether `condition` holds; `message` says what is wrong if not.

    Both may go: the kernel is the same without, but for what is reported.
    """

    body: tuple["Statement", ...]
    condition: Expr
    message: str
    loc: Loc | None = None


@record
class Print:
    """Show values on the host: `format % values` if the style is "%", `format.format(*values)` if "{}".

    `messages.host_value` says what a value is in Python.
    """

    format: str
    args: tuple[Expr, ...]
    loc: Loc | None = None
    style: str = "{}"


@record
class Return:
    """End this invocation."""

    loc: Loc | None = None


@record
class Comment:
    """Text for the reader of the generated code."""

    text: str
    preceding_new_line: bool = True
    loc: Loc | None = None


@record
class RawStatement:
    """Lines of GLSL given by the user."""

    text: str
    loc: Loc | None = None


Statement = (
    Declare
    | Store
    | Read
    | ImageStore
    | MatrixLoad
    | MatrixStore
    | If
    | While
    | For
    | Switch
    | Break
    | Continue
    | Scope
    | Effect
    | Print
    | Assert
    | Return
    | Comment
    | RawStatement
)
Block = tuple[Statement, ...]


@record(slots=False)
class Kernel:
    """A whole kernel.

    `resources` are the bound buffers and images in binding order; `exec_count` is the argument (uvec3) that
    limits the global invocation id, or None without a limit. `reads` and `writes` have the storage marked by
    hand. The positions of a `wide` one have 64 bits; see `passes.widen`.
    """

    name: str
    arguments: tuple[Argument, ...]
    resources: tuple[Storage | ImageBinding, ...]
    shared: tuple[SharedArray, ...]
    body: Block
    exec_count: Argument | None
    flags: ShaderFlags = ShaderFlags.NONE
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    wide: bool = False

    @functools.cached_property
    def facts(self) -> dict[object, Any]:
        """What analyses have found out about the kernel; see `analyses.contents.remember`."""
        return {}
