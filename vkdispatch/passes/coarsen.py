"""Kernels whose invocations each process several elements.

A device reaches its memory bandwidth only with many loads in flight, more than invocations of one element
each can have:

    one element each            i: load, compute, store
    four, `stride` apart        i, i + stride, i + 2 stride, i + 3 stride: load 4, compute 4, store 4

Invocations of a kernel without barriers run in any order, so one may do the work of several, and load all
elements before it stores any. `stride` is the workgroup size, so accesses stay coalesced.
"""

from collections.abc import Iterable, Sequence

from vkdispatch.analyses.contents import contents, depends_on_workgroups
from vkdispatch.base.dtype import DType, is_array, uint32, uvec3
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Block,
    Builtin,
    Comment,
    Declare,
    Expr,
    For,
    If,
    ImageStore,
    Kernel,
    Op,
    Register,
    Return,
    Scope,
    ShaderFlags,
    Statement,
    Storage,
    Store,
    Switch,
    is_encoded,
    map_statement,
    postorder,
    root_of,
    walk,
)
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes.builders import binary, compare, id_part, logical, negate, part_of, read, uint

# Loops do enough work for one element; in long programs the registers of several elements do not fit.
_SIMPLE = (Declare, Store, ImageStore, If, Switch, Scope, Comment, Return)
_LONGEST = 1200
_BYTES_IN_FLIGHT = 16
_MOST_ELEMENTS = 16
_SUBGROUP = frozenset(builtin for builtin in Builtin if "SUBGROUP" in builtin.name)


def choose_elements(kernel: Kernel) -> int:
    """Return how many elements an invocation of a large launch should process; 1 if only one is possible."""
    if not is_separable(kernel):
        return 1
    sizes = [resource.dtype.item_size for resource in kernel.resources if isinstance(resource, Storage)]
    elements = min(_BYTES_IN_FLIGHT // max(sizes, default=_BYTES_IN_FLIGHT), _MOST_ELEMENTS)
    return elements if elements > 1 and len(contents(kernel).expressions) * elements <= _LONGEST else 1


def is_separable(kernel: Kernel) -> bool:
    """Whether an invocation may do the work of several: the kernel is simple, and uses its id along x."""
    if kernel.exec_count is None or kernel.flags & ShaderFlags.NO_EXEC_BOUNDS:
        return False
    if depends_on_workgroups(kernel):
        return False
    _, body = split_guard(kernel.body)
    statements = list(walk(body))
    if not all(isinstance(statement, _SIMPLE) for statement in statements):
        return False
    if any(isinstance(statement, Return) for statement in statements):
        return False
    if any(isinstance(statement, Declare) and is_array(statement.register.dtype) for statement in statements):
        return False
    everything = contents(kernel).expressions
    if any(map(_knows_neighbours, everything)):
        return False
    # without the id along x all invocations do the same
    return any(is_id_x(expr) for expr in everything)


def _knows_neighbours(expr: Expr) -> bool:
    return expr.op is Op.SUBGROUP or (isinstance(expr.value, Builtin) and expr.value in _SUBGROUP)


def is_id_x(expr: Expr) -> bool:
    """Whether an expression is the invocation's own id along x."""
    return expr.op is Op.COMPONENT and expr.value == "x" and _is_id(expr.args[0])


def _operands(expr: Expr) -> tuple[Expr, ...]:
    """Return what is replaced before an expression; the id along x is replaced as a whole."""
    return expr.args if expr.op is not Op.COMPONENT or not is_id_x(expr) else ()


def _is_id(expr: Expr) -> bool:
    return expr.value is Builtin.GLOBAL_INVOCATION_ID


def split_guard(body: Block) -> tuple[Expr | None, Block]:
    """Split off a first `if condition: return`."""
    for position, statement in enumerate(body):
        if isinstance(statement, Comment):
            continue
        if (
            isinstance(statement, If)
            and statement.orelse is None
            and len(statement.branches) == 1
            and all(isinstance(inner, Return) for inner in statement.branches[0][1])
            and statement.branches[0][1]
        ):
            return statement.branches[0][0], body[position + 1 :]
        break
    return None, body


def coarsen(kernel: Kernel, elements: int) -> Kernel:
    """Return a kernel whose invocations process `elements` elements each.

    It checks `exec_count` itself. `choose_elements` must have returned more than 1.
    """
    assert kernel.exec_count is not None
    limit = Expr(Op.ARGUMENT, kernel.exec_count.dtype, value=kernel.exec_count)
    names = FreshNames.of_variables(kernel)

    stride = id_part(Builtin.WORKGROUP_SIZE, "x")
    width = binary("*", stride, uint(elements))
    first = new_register("first", uint32, names)
    start = binary(
        "+",
        binary("*", id_part(Builtin.WORKGROUP_ID, "x"), width),
        id_part(Builtin.LOCAL_INVOCATION_ID, "x"),
    )
    outside = [
        compare(">=", id_part(Builtin.GLOBAL_INVOCATION_ID, axis), part_of(limit, axis)) for axis in "yz"
    ]
    guard, body = split_guard(kernel.body)

    copies = [Copy(new_register(f"element_{k}", uint32, names), f"_{k}", names) for k in range(elements)]
    offsets = [binary("+", read(first), binary("*", stride, uint(k))) for k in range(1, elements)]
    places = [
        Declare(copy.element, place) for copy, place in zip(copies, [read(first), *offsets], strict=True)
    ]
    whole = compare("<", read(copies[-1].element), part_of(limit, "x"))
    if guard is not None:
        whole = logical("&&", whole, *(negate(copy.expr(guard)) for copy in copies))

    turn = new_register("turn", uint32, names, counter=True)
    single = Copy(new_register("element", uint32, names), "_n", names)
    inside = compare("<", read(single.element), part_of(limit, "x"))
    if guard is not None:
        inside = logical("&&", inside, negate(single.expr(guard)))
    rest = For(
        turn,
        uint(0),
        uint(elements),
        uint(1),
        (
            Declare(single.element, binary("+", read(first), binary("*", stride, read(turn)))),
            If(((inside, tuple(map(single.statement, body))),)),
        ),
    )
    return replace(
        kernel,
        body=(
            If(((logical("||", *outside), (Return(),)),)),
            Declare(first, start),
            *places,
            If(((whole, tuple(_interleave(body, copies))),), (rest,)),
        ),
    )


def _interleave(body: Block, copies: list["Copy"]) -> Iterable[Statement]:
    """Each statement for all elements before the next, values before stores."""
    for statement in body:
        if isinstance(statement, Comment):
            yield statement
        elif isinstance(statement, Store) and root_of(statement.place).op is Op.ELEMENT:
            yield from store_values(statement, copies)
        else:
            yield from (copy.statement(statement) for copy in copies)


def store_values(statement: Store, copies: Sequence["Copy"]) -> Iterable[Statement]:
    """Compute the stored values of all elements before storing any."""
    if statement.operator is not None and is_encoded(statement.place):
        yield from (copy.statement(statement) for copy in copies)
        return
    values = [copy.register("value", statement.place.dtype) for copy in copies]
    for copy, value in zip(copies, values, strict=True):
        result = copy.expr(statement.value)
        if statement.operator is not None:
            place = copy.expr(statement.place)
            result = Expr(Op.BINARY, place.dtype, (place, result), statement.operator, statement.loc)
        yield Declare(value, result, statement.loc)
    for copy, value in zip(copies, values, strict=True):
        yield Store(copy.place(statement.place), read(value), None, statement.loc)


class Copy:
    """Copies statements for one element, with registers and an id of its own."""

    def __init__(self, element: Register, suffix: str, names: FreshNames) -> None:
        self.element = element
        self._suffix = suffix
        self._names = names
        self._registers: dict[int, Register] = {}
        self.exprs: dict[int, tuple[Expr, Expr]] = {}  # by identity of the original, which it keeps alive

    def register(self, name: str, kind: DType, fixed: bool = False) -> Register:
        """Make a register of the element."""
        return new_register(name + self._suffix, kind, self._names, fixed=fixed)

    def statement(self, statement: Statement) -> Statement:
        """Return a statement for this element."""
        if isinstance(statement, Declare):
            value = self.expr(statement.value)
            old = statement.register
            new = self.register(old.name, old.dtype, old.fixed)
            if old.precise:
                new = replace(new, precise=True)
            self._registers[id(old)] = new
            return Declare(new, value, statement.loc)
        return map_statement(statement, self.expr, self.block, self.place)

    def block(self, block: Block) -> Block:
        """Return statements for this element."""
        return tuple(map(self.statement, block))

    def place(self, expr: Expr) -> Expr:
        """Return a place that is stored to for this element."""
        return self.expr(expr)

    def expr(self, root: Expr) -> Expr:
        """Return an expression for this element; the same object if it does not depend on the element."""
        for expr in () if id(root) in self.exprs else postorder(root, self.exprs, _operands):
            self.exprs[id(expr)] = (self.replace_node(expr), expr)
        return self.exprs[id(root)][0]

    def replace_node(self, expr: Expr) -> Expr:
        """Return an expression whose operands have been replaced for this element."""
        if is_id_x(expr):
            return read(self.element)
        if _is_id(expr):
            axes = (id_part(Builtin.GLOBAL_INVOCATION_ID, axis) for axis in "yz")
            return Expr(Op.CONSTRUCT, uvec3, (read(self.element), *axes), loc=expr.loc)
        if expr.op is Op.REGISTER:
            new = self._registers.get(id(expr.value))
            return expr if new is None else replace(expr, value=new)
        args = tuple(self.exprs[id(arg)][0] for arg in expr.args)
        if all(new is old for new, old in zip(args, expr.args, strict=True)):
            return expr
        return replace(expr, args=args, axes=())


def new_register(
    name: str, kind: DType, names: FreshNames, *, counter: bool = False, fixed: bool = True
) -> Register:
    """Make a register whose name nothing else has."""
    return Register(names.claim(name), kind, counter, fixed and not counter)
