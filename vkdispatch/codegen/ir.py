"""The typed intermediate representation of a kernel: expression trees held by a tree of statements.

Front end, analyses and writers meet here and nowhere else. Expressions are immutable and compared by
identity; `naming.Numbering` finds the structurally equal ones. `verify.verify` is the specification in
executable form.
"""

import functools
from collections.abc import Iterator
from enum import Enum, IntFlag, auto
from typing import Any

from vkdispatch.base.dtype import DType, bool_, float32, to_vector
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.location import Loc


class ShaderFlags(IntFlag):
    """Options of a kernel.

    NO_SUBGROUP_OPS leaves out the GLSL extension lines, NO_PRINTF all prints, NO_EXEC_BOUNDS the test that
    lets invocations beyond the execution size do nothing. PYTHON_DIVISION gives `//` and `%` Python's
    meaning (the quotient is rounded down, the remainder has the divisor's sign) instead of GLSL's, also for
    floats. PRECISE_MATH computes the functions of mathematics in float32 as exactly as in float64, whatever
    the device's own are like.
    """

    NONE = 0
    NO_SUBGROUP_OPS = 1
    NO_PRINTF = 2
    NO_EXEC_BOUNDS = 4
    PYTHON_DIVISION = 8
    PRECISE_MATH = 16


class Op(Enum):
    """Kinds of expressions. The comment says what `args` and `value` hold."""

    # Members are the keys of dictionaries all over the place, and Enum's own hash is slow.
    __hash__ = object.__hash__

    LITERAL = auto()  # value: int, float or bool
    ARGUMENT = auto()  # value: Argument, a member of the argument block
    BUILTIN = auto()  # value: Builtin
    REGISTER = auto()  # value: Register
    ELEMENT = auto()  # value: Storage or SharedArray; args: (index,)
    INDEX = auto()  # args: (vector or matrix, index)
    COMPONENT = auto()  # value: one of "xyzw"; args: (vector or complex,)
    SWIZZLE = auto()  # value: two to four of "xyzw"; args: (vector or scalar,)
    UNARY = auto()  # value: "-", "~" or "!"; args: (operand,)
    BINARY = auto()  # value: operator; args: (left, right)
    COMPARE = auto()  # value: operator; args: (left, right)
    LOGICAL = auto()  # value: "&&" or "||"; args: two or more, each evaluated only if it still matters
    SELECT = auto()  # args: (condition, value if it holds, value if not); only the chosen one is evaluated
    # value: Storage or SharedArray; how many elements it has (uint32, of Storage also uint64). Or the
    # Register of a cooperative matrix: how many of its elements this invocation holds
    LENGTH = auto()
    CALL = auto()  # value: GLSL function without effects; args: its arguments
    SUBGROUP = auto()  # value: GLSL subgroup function; args: its arguments
    # value: GLSL function such as "atomicAdd"; args: (place, operands...); only as the value of a Declare
    ATOMIC = auto()
    CONSTRUCT = auto()  # args: what the dtype's constructor takes
    SAMPLE = auto()  # value: ImageBinding; args: (coordinate, level of detail)
    IMAGE_LOAD = auto()  # value: ImageBinding; args: (texel coordinate,) or (texel coordinate, mip level)
    IMAGE_SIZE = auto()  # value: ImageBinding; args: (mip level,), or () for a storage image
    RAW = auto()  # value: RawText; args: the expressions that its text mentions


class Builtin(Enum):
    """Values that the device gives every invocation."""

    __hash__ = object.__hash__

    GLOBAL_INVOCATION_ID = auto()
    LOCAL_INVOCATION_ID = auto()
    LOCAL_INVOCATION_INDEX = auto()
    WORKGROUP_ID = auto()
    WORKGROUP_SIZE = auto()
    NUM_WORKGROUPS = auto()
    NUM_SUBGROUPS = auto()
    SUBGROUP_ID = auto()
    SUBGROUP_SIZE = auto()
    SUBGROUP_INVOCATION_ID = auto()
    SUBGROUP_EQ_MASK = auto()
    SUBGROUP_GE_MASK = auto()
    SUBGROUP_GT_MASK = auto()
    SUBGROUP_LE_MASK = auto()
    SUBGROUP_LT_MASK = auto()


@record(eq=False)
class Argument:
    """A value that the host passes at each dispatch: a member of the argument block.

    A `shape` (ivec4) is that of a buffer.
    """

    name: str
    dtype: DType
    shape: bool = False


@record(eq=False)
class Register:
    """A variable of one invocation.

    The `counter` of a For, and a `fixed` register after its declaration, are not the kernel's to assign. What
    a `position` holds is one, whatever it is computed from. What goes into a `precise` one is computed as it
    is written: each operation rounds. A `local` one holds what a local variable of Python does: only its
    components are assigned to, and `+=` makes a new value.
    """

    name: str
    dtype: DType
    counter: bool = False
    fixed: bool = False
    position: bool = False
    precise: bool = False
    local: bool = False


@record(eq=False)
class Storage:
    """A storage buffer; `index` is its position among the bound resources.

    `dtype` is how its elements lie in memory: their expressions have the `compute_type` of it. `constant` is
    the shape of a constant array, which nothing ever writes; None for what calls pass. In a buffer of
    structures expressions have the elements of a field, which is a storage of its own: each element of
    `whole` has it under the names of `path`. A `view` is another declaration of the buffer of its index.
    """

    index: int
    dtype: DType
    label: str
    constant: tuple[int, ...] | None = None
    whole: "Storage | None" = None
    path: tuple[str, ...] = ()
    view: bool = False

    @property
    def name(self) -> str:
        """Name in the generated code."""
        return f"view{self.index}" if self.view else f"buf{self.index}"

    @property
    def element_size(self) -> int:
        """Bytes from one element to the next."""
        return (self.whole or self).dtype.item_size


@record(eq=False)
class SharedArray:
    """An array of `size` elements in workgroup memory, which `shape` lays out in one to three axes."""

    name: str
    dtype: DType
    size: int
    shape: tuple[int, ...] = ()


@record(eq=False)
class ImageBinding:
    """A sampled or storage image; `index` is its position among the bound resources.

    `dimensions` are 1 to 3, without the layer of an array. `dtype` is float32, int32 or uint32, or the type
    of a texel of a storage image.
    """

    index: int
    dimensions: int
    label: str
    dtype: DType = float32
    storage: bool = False
    arrayed: bool = False

    @property
    def name(self) -> str:
        """Name in the generated code."""
        return f"{'img' if self.storage else 'tex'}{self.index}"

    @property
    def coordinates(self) -> int:
        """How many numbers find a texel."""
        return self.dimensions + self.arrayed

    @property
    def texel(self) -> DType:
        """Type of a texel as kernels see it."""
        return self.dtype if self.storage else to_vector(self.dtype, 4)


@record
class RawText:
    """GLSL text given by the user."""

    text: str
    settable: bool = False
    register: bool = False
    lexical_unit: bool = False


Value = (
    int
    | float
    | bool
    | str
    | Argument
    | Builtin
    | Register
    | Storage
    | SharedArray
    | ImageBinding
    | RawText
    | None
)


@record(eq=False)
class Expr:
    """A value of type `dtype`.

    Operation, operands, the payload that `Op` documents, and where it was written. An ELEMENT that is
    written with an index for each axis has these as `axes`, each with the size of the axis: checks tell of
    them, all else goes by the flat index. A REGISTER that is `read` is what Python read of it, and no place.
    """

    op: Op
    dtype: DType
    args: tuple["Expr", ...] = ()
    value: Value = None
    loc: Loc | None = None
    axes: tuple[tuple["Expr", "Expr"], ...] = ()
    read: bool = False


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
    hand. The positions of a `wide` one have 64 bits; see `widen`.
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
        """What analyses have found out about the kernel; see `analysis.remembered`."""
        return {}


def is_place(expr: Expr) -> bool:
    """Whether an expression can be stored to."""
    if expr.op in (Op.INDEX, Op.COMPONENT):
        return is_place(expr.args[0])
    if expr.op is Op.RAW:
        return isinstance(expr.value, RawText) and expr.value.settable
    if expr.op is Op.REGISTER:
        return isinstance(expr.value, Register) and not (expr.value.counter or expr.value.fixed)
    return expr.op is Op.ELEMENT and not is_constant(expr)


def is_constant(expr: Expr) -> bool:
    """Whether an expression is an element of a constant array."""
    return expr.op is Op.ELEMENT and isinstance(expr.value, Storage) and expr.value.constant is not None


def root_of(place: Expr) -> Expr:
    """Return the register, element or text that a place is a part of."""
    while place.op in (Op.INDEX, Op.COMPONENT):
        place = place.args[0]
    return place


def is_encoded(expr: Expr) -> bool:
    """Whether an expression is an element that its buffer holds in another type than kernels compute with."""
    if expr.op is not Op.ELEMENT or not isinstance(expr.value, Storage):
        return False
    return expr.value.dtype is bool_ or expr.value.dtype is not expr.dtype


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Blocks nested in a statement, in order."""
    if isinstance(statement, (Store, Declare)):
        return ()  # most are
    if isinstance(statement, If):
        bodies = tuple(body for _, body in statement.branches)
        return bodies if statement.orelse is None else (*bodies, statement.orelse)
    if isinstance(statement, (While, For, Scope, Assert)):
        return (statement.body,)
    if isinstance(statement, Switch):
        bodies = tuple(body for _, body in statement.cases)
        return bodies if statement.default is None else (*bodies, statement.default)
    return ()


def with_blocks(statement: Statement, blocks: tuple[Block, ...]) -> Statement:
    """Return a statement with other blocks nested in it, in the order of `blocks_of`."""
    if isinstance(statement, If):
        bodies = tuple(
            (condition, body) for (condition, _), body in zip(statement.branches, blocks, strict=False)
        )
        return replace(statement, branches=bodies, orelse=None if statement.orelse is None else blocks[-1])
    if isinstance(statement, (While, For, Scope, Assert)):
        return replace(statement, body=blocks[0])
    if isinstance(statement, Switch):
        cases = tuple((values, body) for (values, _), body in zip(statement.cases, blocks, strict=False))
        return replace(statement, cases=cases, default=None if statement.default is None else blocks[-1])
    return statement


def expressions_of(statement: Statement) -> tuple[Expr, ...]:
    """Expressions that a statement itself holds, places included, without those of nested blocks."""
    if isinstance(statement, Declare):
        return (statement.value,)
    if isinstance(statement, Store):
        return (statement.place, statement.value)
    if isinstance(statement, ImageStore):
        return (statement.coordinate, statement.value)
    if isinstance(statement, MatrixLoad):
        return (statement.matrix, statement.source, statement.stride, *statement.window)
    if isinstance(statement, MatrixStore):
        return (statement.place, statement.value, statement.stride, *statement.window)
    if isinstance(statement, If):
        return tuple(condition for condition, _ in statement.branches)
    if isinstance(statement, (While, Assert)):
        return (statement.condition,)
    if isinstance(statement, For):
        return (statement.start, statement.stop, statement.step)
    if isinstance(statement, Switch):
        return (statement.value,)
    if isinstance(statement, Print):
        return statement.args
    return ()


def walk(block: Block) -> Iterator[Statement]:
    """Every statement of a block and of the blocks nested in it, in program order."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def without_asserts(block: Block) -> Block:
    """Return a block without its asserts; the same one if it has none."""
    if not any(isinstance(statement, Assert) for statement in walk(block)):
        return block
    return tuple(
        with_blocks(statement, tuple(map(without_asserts, blocks_of(statement))))
        for statement in block
        if not isinstance(statement, Assert)
    )
