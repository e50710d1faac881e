"""Statements, which contain expressions and nested blocks, and kernels, which consist of statements."""

import functools
from typing import Any

from vkdispatch.base.dtype import DType, component_type, float64
from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.nodes import (
    Argument,
    Expr,
    ImageBinding,
    Register,
    ShaderFlags,
    SharedArray,
    Storage,
)


@record
class Declare:
    """Declare a register with an initial value."""

    register: Register
    value: Expr
    loc: Loc | None = None


@record
class Store:
    """Assign `value` to a place, or update the place by `operator` ("+" is written `+=`).

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
    """Mark where Python read `value`. `reads.settle_reads` removes these; finished kernels have none.

    `register` is the local variable that gets the value. It is declared here if anything assigns to it.
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

    The stride counts elements of the array, not of the matrix; `transposed` swaps r and c. With a `window`
    (rows and columns of the whole matrix, first row, first column), `source` is the start of the whole
    matrix. Elements outside of it are read as 0, and a MatrixStore does not write them.
    """

    matrix: Expr
    source: Expr
    stride: Expr
    transposed: bool = False
    window: tuple[Expr, ...] = ()
    loc: Loc | None = None


@record
class MatrixStore:
    """Write a cooperative matrix to memory, which `place` and the rest describe as in `MatrixLoad`."""

    place: Expr
    value: Expr
    stride: Expr
    transposed: bool = False
    window: tuple[Expr, ...] = ()
    loc: Loc | None = None


@record
class If:
    """Run the first branch whose condition is true, or else `orelse`."""

    branches: tuple[tuple[Expr, tuple["Statement", ...]], ...]
    orelse: tuple["Statement", ...] | None = None
    loc: Loc | None = None


@record
class While:
    """Run `body` while the condition, which is evaluated before each round, is true.

    `rolled` asks compilers not to unroll the loop.
    """

    condition: Expr
    body: tuple["Statement", ...]
    loc: Loc | None = None
    rolled: bool = False


@record
class For:
    """Run `body` with `counter` = start, start + step, ... up to but excluding `stop`, as `range` does.

    The counter is int32 or uint32, or in a widened kernel int64 or uint64. `start`, `stop` and `step` have
    its type. `stop` and `step` are literals, arguments, or registers that the body does not assign to. With
    a step of zero the body does not run. `unrolled` asks compilers to write out all rounds.
    """

    counter: Register
    start: Expr
    stop: Expr
    step: Expr
    body: tuple["Statement", ...]
    loc: Loc | None = None
    unrolled: bool = False


@record
class Switch:
    """Run the case that lists `value`, or else `default`. Cases do not fall through.

    A Break inside a case leaves the loop around the switch.
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
    """A nested block, with an optional comment before it."""

    body: tuple["Statement", ...]
    comment: str | None = None
    loc: Loc | None = None


@record
class Effect:
    """Call a GLSL function that has an effect but no value, such as a barrier."""

    function: str
    loc: Loc | None = None


@record
class Assert:
    """Run `body`, then report `message` unless `condition` is true.

    Kernels compute the same without their asserts.
    """

    body: tuple["Statement", ...]
    condition: Expr
    message: str
    loc: Loc | None = None


@record
class Print:
    """Print values on the host: `format % values` for the style "%", `format.format(*values)` for "{}".

    `passes.diagnostics.host_value` converts device values to Python.
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
    """A comment in the generated code."""

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

    `resources` are the bound buffers and images in binding order. `exec_count` is the argument (uvec3) that
    limits the global invocation id, or None. `reads` and `writes` are the buffers that the user marked. In a
    `wide` kernel positions have 64 bits; see `compiler.passes.widen`.
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
        """What analyses have found out about the kernel; see `compiler.analyses.contents.remember`."""
        return {}


# ---- Names of helper functions that programs call by `Op.CALL`: see `compiler.glsl.helpers` --------------


UMUL_HIGH = "umul_high"
WRAPPED = "wrapped"
INTEGER_POWER = "integer_power"
# The bits of a remainder, of the bits of two floats and of two doubles.
FLOAT_REMAINDER = "float_remainder"
DOUBLE_REMAINDER = "double_remainder"
HALF_OF_DOUBLE = "half_of_double"
HALF_OF_FLOAT = "half_of_float"

# Functions of `glsl.mathematics`, written in float32 and in float64.
SINGLE, DOUBLE = "f32_", "f64_"


def own_name(function: str, kind: DType) -> str:
    """Return the name of a mathematical function for float32 or float64, or vectors of these."""
    return (DOUBLE if component_type(kind) is float64 else SINGLE) + function
