"""A program: expressions and what they refer to, statements with their blocks, and kernels."""

import functools
from enum import Enum, IntFlag, auto
from typing import Any

from vkdispatch.base.dtype import DType, bool_, component_type, float32, float64, is_array, item_of, to_vector
from vkdispatch.base.record import record
from vkdispatch.compiler.ir.location import Loc

# ---- Expressions -----------------------------------------------------------------------------------------
#
# Operations, their operands, and what these refer to: arguments, registers, buffers, images.
#
# Expressions are immutable and compare by identity. `compiler.analyses.naming.Numbering` finds structurally
# equal ones.


class ShaderFlags(IntFlag):
    """Options of a kernel.

    NO_SUBGROUP_OPS omits the GLSL extension lines, NO_PRINTF all prints, and NO_EXEC_BOUNDS the test that
    makes invocations beyond the execution size do nothing. With PYTHON_DIVISION `//` and `%` follow Python
    instead of GLSL, for floats too: quotients are rounded down, and remainders have the sign of the divisor.
    PRECISE_MATH computes float32 mathematical functions to full float32 accuracy on any device, and rounds
    each operation of floats as it is written.
    """

    NONE = 0
    NO_SUBGROUP_OPS = 1
    NO_PRINTF = 2
    NO_EXEC_BOUNDS = 4
    PYTHON_DIVISION = 8
    PRECISE_MATH = 16


class Op(Enum):
    """Kinds of expressions. The comment says what `args` and `value` hold."""

    # Members are keys of many dictionaries, and Enum's own hash is slow.
    __hash__ = object.__hash__

    LITERAL = auto()  # value: int, float or bool
    ARGUMENT = auto()  # value: Argument, a member of the argument block
    BUILTIN = auto()  # value: Builtin
    REGISTER = auto()  # value: Register
    ELEMENT = auto()  # value: Storage or SharedArray; args: (index,)
    INDEX = auto()  # args: (vector, matrix or array, index)
    COMPONENT = auto()  # value: one of "xyzw"; args: (vector or complex,)
    SWIZZLE = auto()  # value: two to four of "xyzw"; args: (vector or scalar,)
    UNARY = auto()  # value: "-", "~" or "!"; args: (operand,)
    BINARY = auto()  # value: operator; args: (left, right)
    COMPARE = auto()  # value: operator; args: (left, right)
    LOGICAL = auto()  # value: "&&" or "||"; args: two or more, evaluated until the result is known
    SELECT = auto()  # args: (condition, value if true, value if false); only the chosen value is evaluated
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
    """Values that the device provides to every invocation."""

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

    Attributes
    ----------
    name, dtype
        Its name in the generated code, and its type.
    counter
        It counts the rounds of a For; the kernel may not assign to it.
    fixed
        The kernel may not assign to it after its declaration.
    position
        Its value is a position, however it is computed; see `compiler.passes.widen`.
    precise
        Every operation that computes its value rounds.
    local
        It holds the value of a Python local variable: `+=` makes a new value, and only components are
        assigned to.
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

    `dtype` is the type of its elements in memory; expressions have its `compute_type`. `constant` is the
    shape of a constant array, which is never written, and None for buffers that calls pass. A field of a
    buffer of structures is a storage of its own: `whole` is the buffer, and `path` has the names that lead
    to the field. Arrays on the way make its `dtype` an array, of which expressions only INDEX items. A
    `view` declares the buffer of its index a second time.
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
    """An array of `size` elements in workgroup memory; `shape` has one to three axes.

    An axis may be an integer made of the arguments of a call. Then `size` is None, and each call has a
    `Variant` for its sizes.
    """

    name: str
    dtype: DType
    size: int | None
    shape: "tuple[int | Expr, ...]" = ()


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
        """Number of coordinates of a texel."""
        return self.dimensions + self.arrayed

    @property
    def texel(self) -> DType:
        """Type of a texel in kernels."""
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

    It has an operation, operands, the payload that `Op` documents, and the place in Python that wrote it. An
    ELEMENT indexed along several axes has (index, size) of each axis in `axes`; only bounds checks use these,
    all else uses the flat index. A REGISTER that is `read` is a value that Python read, not a place. Another
    place that is `read` is read again by each use of the variable that holds it.
    """

    op: Op
    dtype: DType
    args: tuple["Expr", ...] = ()
    value: Value = None
    loc: Loc | None = None
    axes: tuple[tuple["Expr", "Expr"], ...] = ()
    read: bool = False


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
    """Return the register, element or raw text that a place is part of."""
    while place.op in (Op.INDEX, Op.COMPONENT):
        place = place.args[0]
    return place


def is_part(expr: Expr) -> bool:
    """Whether an expression is an element of an array, or a part or swizzle of one or of a register."""
    root = expr
    while root.op in (Op.INDEX, Op.COMPONENT, Op.SWIZZLE):
        root = root.args[0]
    return root.op is Op.ELEMENT or (root is not expr and is_place(root))


def is_encoded(expr: Expr) -> bool:
    """Whether an expression is an element whose type in memory differs from the type in kernels."""
    element, _ = split_array_indices(expr)
    if element.op is not Op.ELEMENT or not isinstance(element.value, Storage):
        return False
    kind = element.value.dtype
    return item_of(kind) is bool_ or kind is not element.dtype


def split_array_indices(expr: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """Return the array that an item lies in, and the indices of its axes; another expression and ()."""
    indices: list[Expr] = []
    while expr.op is Op.INDEX and is_array(expr.args[0].dtype):
        expr, index = expr.args
        indices.append(index)
    return expr, tuple(reversed(indices))


def is_item_in_memory(expr: Expr) -> bool:
    """Whether an expression is an item of an array that lies in a buffer or in shared memory."""
    return (
        expr.op is Op.INDEX and is_array(expr.args[0].dtype) and split_array_indices(expr)[0].op is Op.ELEMENT
    )


def describe_array(expr: Expr) -> str:
    """Describe the array that an INDEX selects from, with its axis if there are several."""
    outer = expr.args[0]
    array, before = split_array_indices(outer)
    name = getattr(array.value, "name", "?")
    what = f"local array {name!r}"
    if isinstance(array.value, SharedArray):
        what = f"the array in shared buffer {name!r}"
    elif isinstance(array.value, Storage):
        what = f"array {'.'.join(array.value.path)!r} in buffer {array.value.label!r}"
    return what if not before and not is_array(expr.dtype) else f"axis {len(before)} of {what}"


def is_same_place(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same place, written alike."""
    return is_place(b) and is_alike(a, b)


def is_alike(a: Expr, b: Expr) -> bool:
    """Whether two expressions are written alike."""
    if a is b:
        return True
    if a.op is not b.op or a.dtype is not b.dtype or a.value != b.value or len(a.args) != len(b.args):
        return False
    return all(is_alike(left, right) for left, right in zip(a.args, b.args, strict=True))


# ---- What the attributes of GPU values may be called, and what to say about others -----------------------


COMPONENTS = "xyzw"


def is_swizzle(name: str) -> bool:
    """Whether a name is written with the letters of components."""
    return 1 <= len(name) <= 4 and all(letter in COMPONENTS for letter in name)


_ADVICE = {
    "dtype": ".var_type is its type",
    "astype": ".to_dtype(vd.float32) converts",
    "conj": "use .conjugate()",
    **dict.fromkeys("rgba", "components are .x, .y, .z and .w"),
    "normalize": "vc.normalize(v)",
    "dot": "vc.dot(v, w)",
    "length": "vc.length(v)",
    "norm": "vc.length(v)",
    "normalized": "vc.normalize(v)",
    "atomic_add": "vc.atomic_add(buf[i], value)",
    "T": "vc.transpose(m)",
    "sum": "vc.dot(v, 1) adds components",
    "copy": ".to_register() copies",
}


_REDUCTION = "a kernel reads single elements; vd.sum(x), vd.max(x) and their like are called outside"
_BUFFER_ADVICE = {
    "dtype": ".var_type is the type of its elements",
    **dict.fromkeys(("sum", "mean", "max", "min", "argmax", "argmin", "any", "all"), _REDUCTION),
    **dict.fromkeys(("read", "write", "data", "numpy", "item"), "x[i] is an element"),
    "copy": "x[i] is an element; buffers are copied outside",
    "ndim": "x.shape has three axes and the size",
    "atomic_add": "vc.atomic_add(buf[i], value)",
}


# Attributes that programs of 0.1.0 may read, and that are no help to anybody who looks for one.
_SELDOM_MEANT = """
binding can_index expr image is_conjugate is_register is_setable lexical_unit parents printf_args raw_name
read_callback read_lambda register resolve settable shape_name storage use_child_type write_callback
write_lambda
"""


def unknown_attribute(name: str, owner: str, offered: list[str]) -> str:
    """Say that something has no such attribute, what was probably meant, and what there is."""
    import difflib

    offered = [attribute for attribute in offered if attribute not in _SELDOM_MEANT.split()]
    meant = difflib.get_close_matches(name, offered, 1)
    known = _BUFFER_ADVICE if "buffer" in owner else _ADVICE
    advice = known.get(name) or (f"did you mean .{meant[0]}?" if meant else "")
    return f"{owner} has no .{name}{'; ' + advice if advice else ''}; it has {', '.join(offered)}"


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
