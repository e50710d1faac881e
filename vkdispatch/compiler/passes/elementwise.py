"""Which kernels can be fused with others, and what fusion has to know of the places that they access."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.launch_values import Space, definitions_of
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.names import FreshNames, legal_name
from vkdispatch.compiler.passes.builders import assign, binary, call, components, negate, when, zero

# ---- Which kernels can be fused with others, and what fusion has to know of them -------------------------


_FORBIDDEN_STATEMENTS = (ir.Effect, ir.RawStatement, ir.Print, ir.ImageStore, ir.MatrixLoad, ir.MatrixStore)
_FORBIDDEN_OPERATIONS = (ir.Op.RAW, ir.Op.ATOMIC, ir.Op.SUBGROUP)


@record(eq=False)
class Elementwise:
    """A kernel whose invocations are independent of each other and of workgroups.

    Attributes
    ----------
    kernel
        The kernel, without branches that a launch never takes.
    elements
        Its elements of buffers, read or written, each expression once.
    written
        By identity of each element that is stored to: whether it is read as well.
    definitions
        The values of registers that never change.
    conditions
        Conditions of its branches, in order.
    deciding
        Arguments that indices and conditions depend on.
    size
        Number of expressions and statements.
    returns
        Whether an invocation may end early, so that nothing can come after the kernel.
    """

    kernel: ir.Kernel
    elements: tuple[ir.Expr, ...]
    written: Mapping[int, bool]
    definitions: Mapping[ir.Register, ir.Expr]
    conditions: tuple[ir.Expr, ...]
    deciding: tuple[ir.Argument, ...]
    size: int
    returns: bool


def elementwise(kernel: ir.Kernel) -> Elementwise | None:
    """Analyze a kernel; None if its invocations may depend on each other or on workgroups, or run GLSL."""
    if kernel.shared or kernel.exec_count is None or kernel.reads or kernel.writes:
        return None
    if any(isinstance(resource, ir.ImageBinding) and resource.storage for resource in kernel.resources):
        return None
    if any(
        isinstance(resource, ir.Storage) and is_structure(resource.dtype) for resource in kernel.resources
    ):
        return None
    statements = list(ir.walk(kernel.body))
    if any(isinstance(statement, _FORBIDDEN_STATEMENTS) for statement in statements):
        return None
    found = list(ir.expressions_in(kernel.body))
    if any(map(_is_forbidden, found)):
        return None
    definitions = definitions_of(statements)
    elements = tuple(expr for expr in found if expr.op is ir.Op.ELEMENT)
    conditions = tuple(_list_conditions(kernel.body))
    body, returns = _remove_returns(kernel.body)
    return Elementwise(
        kernel if body is kernel.body else replace(kernel, body=body),
        elements,
        dict(_find_written(statements)),
        definitions,
        conditions,
        _arguments_of((*(element.args[0] for element in elements), *conditions), definitions),
        len(found) + len(statements),
        returns,
    )


def decide_branches(kernel: Elementwise, space: Space) -> tuple[bool | None, ...]:
    """Return the value of each condition in all invocations of a launch; None where it may differ."""
    return tuple(space.holds(condition) for condition in kernel.conditions)


def resolve_branches(original: ir.Kernel, known: tuple[bool | None, ...]) -> Elementwise | None:
    """Return a kernel without the branches that are always or never taken.

    Parameters
    ----------
    original
        A kernel for which there is an `Elementwise`.
    known
        As `decide_branches` gives them.
    """
    if not any(answer is not None for answer in known):
        return elementwise(original)
    return elementwise(replace(original, body=_resolve(original.body, iter(known))))


def _is_forbidden(expr: ir.Expr) -> bool:
    if (
        expr.op in _FORBIDDEN_OPERATIONS
        or isinstance(expr.value, ir.SharedArray)
        or dt.is_cooperative(expr.dtype)
    ):
        return True
    return expr.op is ir.Op.BUILTIN and expr.value is not ir.Builtin.GLOBAL_INVOCATION_ID


def _find_written(statements: list[ir.Statement]) -> Iterator[tuple[int, bool]]:
    read: set[int] = set()
    written: list[int] = []
    for statement in statements:
        roots: tuple[ir.Expr, ...] = ir.expressions_of(statement)
        if isinstance(statement, ir.Store):
            root = ir.root_of(statement.place)
            if root.op is ir.Op.ELEMENT:
                written.append(id(root))
                if statement.operator is not None or root is not statement.place:
                    read.add(id(root))
            roots = (*ir.place_operands(statement.place), statement.value)
        read.update(id(expr) for expr in nodes(roots) if expr.op is ir.Op.ELEMENT)
    return ((element, element in read) for element in written)


def _list_conditions(block: ir.Block) -> Iterator[ir.Expr]:
    for statement in block:
        if isinstance(statement, ir.If):
            yield from (condition for condition, _ in statement.branches)
        for inner in ir.blocks_of(statement):
            yield from _list_conditions(inner)


def _arguments_of(
    roots: tuple[ir.Expr, ...], definitions: Mapping[ir.Register, ir.Expr]
) -> tuple[ir.Argument, ...]:
    """Return the arguments that expressions depend on, directly or through registers."""

    def operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
        if isinstance(expr.value, ir.Register) and expr.value in definitions:
            return (definitions[expr.value],)
        return expr.args

    values = (expr.value for expr in ir.reach(roots, operands))
    return tuple(dict.fromkeys(value for value in values if isinstance(value, ir.Argument)))


def _resolve(block: ir.Block, known: Iterator[bool | None]) -> ir.Block:
    out: list[ir.Statement] = []
    for statement in block:
        if not isinstance(statement, ir.If):
            out.append(ir.map_statement(statement, block=lambda inner: _resolve(inner, known)))
            continue
        # in the order of _conditions: those of one statement, then those within its blocks
        answers = [next(known) for _ in statement.branches]
        bodies = [_resolve(body, known) for _, body in statement.branches]
        orelse = None if statement.orelse is None else _resolve(statement.orelse, known)
        branches: list[tuple[ir.Expr, ir.Block]] = []
        for (condition, _), answer, body in zip(statement.branches, answers, bodies, strict=True):
            if answer is None:
                branches.append((condition, body))
            elif answer:
                orelse = body
                break
        if branches:
            out.append(replace(statement, branches=tuple(branches), orelse=orelse))
        else:
            out.extend(orelse or ())
    return tuple(out)


# ---- returns -------------------------------------------------------------------------------------


def _has_returns(block: ir.Block) -> bool:
    return any(isinstance(statement, ir.Return) for statement in ir.walk(block))


def _remove_returns(block: ir.Block) -> tuple[ir.Block, bool]:
    """Replace early returns by branches; returns the block, and whether a return is left."""
    if not _has_returns(block):
        return block, False
    lowered = _lower(block)
    return (block, True) if lowered is None else (lowered[0], False)


def _lower(block: ir.Block) -> tuple[ir.Block, bool] | None:
    """Return a block without its returns, and whether it always ends in one; None if that is impossible."""
    for position, statement in enumerate(block):
        before, after = block[:position], block[position + 1 :]
        if isinstance(statement, ir.Return):
            return before, True
        if not _has_returns((statement,)):
            continue
        if isinstance(statement, ir.Scope):
            inner = _lower((*statement.body, *after))
            return None if inner is None else ((*before, replace(statement, body=inner[0])), inner[1])
        if not isinstance(statement, ir.If):
            return None
        return _split_branches(before, statement, after)
    return block, False


def _split_branches(before: ir.Block, statement: ir.If, after: ir.Block) -> tuple[ir.Block, bool] | None:
    bodies = [body for _, body in statement.branches] + [statement.orelse or ()]
    lowered = [_lower(body) for body in bodies]
    going_on = [number for number, body in enumerate(lowered) if body is not None and not body[1]]
    # the statements after the if are not duplicated
    if None in lowered or len(going_on) > 1:
        return None
    ended = True
    if going_on:
        inner = _lower((*bodies[going_on[0]], *after))
        if inner is None:
            return None
        lowered[going_on[0]], ended = inner, inner[1]
    *branches, orelse = [body[0] for body in lowered if body is not None]
    if len(branches) == 1 and not branches[0]:
        condition = statement.branches[0][0]
        negated = negate(condition, condition.loc)
        return (*before, when(negated, *orelse, loc=statement.loc)), ended
    pairs = tuple(
        (condition, body) for (condition, _), body in zip(statement.branches, branches, strict=True)
    )
    return (*before, ir.If(pairs, orelse or None, statement.loc)), ended


# ---- Places ----------------------------------------------------------------------------------------------
#
# Elements of buffers that belong to one invocation each, and which kernels read and write them.


@record
class Part:
    """A kernel of a chain.

    Attributes
    ----------
    element
        The kernel.
    resources
        For each of its resources a number; equal numbers stand for the same buffer or image.
    places
        For each of `element.elements` the number of its place, or None if it stays in memory.
    shapes
        (argument, number) of each argument that is the shape of a buffer.
    """

    element: Elementwise
    resources: tuple[int, ...]
    places: tuple[int | None, ...]
    shapes: tuple[tuple[ir.Argument, int], ...]


def is_kept_in_registers(kind: dt.DType) -> bool:
    """Whether elements of a buffer come back from memory as they were: no conversion, no rounding."""
    # a matrix has no simple way to be rounded
    return dt.component_type(kind).item_size >= 4 and dt.compute_type(kind) is kind and not dt.is_matrix(kind)


@record(eq=False, frozen=False)
class Place:
    """An element that belongs to one invocation.

    `element` is its expression in memory, as the first part that uses it writes it. `register` is made at the
    first use.
    """

    storage: int
    kind: dt.DType
    label: str
    readers: set[int]
    writers: set[int]
    element: ir.Expr | None = None
    register: ir.Register | None = None


def collect_places(parts: Sequence[Part]) -> list[Place]:
    """Collect the places of a chain, by number."""
    places: dict[int, Place] = {}
    for position, part in enumerate(parts):
        for element, number in zip(part.element.elements, part.places, strict=True):
            if number is None:
                continue
            storage = element.value
            assert isinstance(storage, ir.Storage)
            resource = part.resources[storage.index]
            place = places.setdefault(number, Place(resource, element.dtype, storage.label, set(), set()))
            read = part.element.written.get(id(element))
            if read is not None:
                place.writers.add(position)
            if read is None or read:
                place.readers.add(position)
    return [places[number] for number in range(len(places))]


def remove_stores(
    body: ir.Block, discarded: frozenset[int], resources: dict[int, ir.Storage | ir.ImageBinding]
) -> ir.Block:
    """Remove stores to discarded buffers that are never loaded from."""
    loaded = {
        id(expr.value)
        for statement in ir.walk(body)
        for expr in nodes(ir.evaluated(statement))
        if expr.op is ir.Op.ELEMENT
    }
    dead = {
        id(resources[number])
        for number in discarded
        if number in resources and id(resources[number]) not in loaded
    }
    return _prune(body, dead) if dead else body


def _prune(block: ir.Block, dead: set[int]) -> ir.Block:
    out: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Store):
            root = ir.root_of(statement.place)
            if root.op is ir.Op.ELEMENT and id(root.value) in dead:
                continue
        out.append(ir.map_statement(statement, block=lambda inner: _prune(inner, dead)))
    return tuple(out)


# ---- Registers that hold the values of places ------------------------------------------------------------
#
# Also what is known of them at the current point of the program.


class State(Enum):
    """What is known of a place's register; a place without a state has to be loaded."""

    CLEAN = auto()  # it holds what memory holds
    CHANGED = auto()  # memory is out of date


class PlaceRegisters:
    """Loads places where they are first needed, and stores them where they were last changed.

    Attributes
    ----------
    places
        The places, by number.
    states
        What is known of the registers of places; a place without a state has to be loaded.
    in_memory
        Places that are left to memory: those that the loops around the current point store to, or that the
        part reads back.
    depth
        How many blocks are open around the current point.
    prelude
        Declarations that go to the start of the kernel.
    """

    def __init__(self, places: Sequence[Place], names: FreshNames) -> None:
        self.places = places
        self.states: dict[int, State] = {}
        self.in_memory: frozenset[int] = frozenset()
        self.depth = 0
        self.prelude: list[ir.Statement] = []
        self._names = names

    def read(self, place: int) -> ir.Expr:
        """Name the register of a place."""
        register = self.places[place].register
        assert register is not None
        return ir.Expr(ir.Op.REGISTER, register.dtype, (), register)

    def load(self, place: int, out: list[ir.Statement]) -> None:
        """Load a place unless its register holds it, or memory has it."""
        if place in self.states or place in self.in_memory:
            return
        element = self.places[place].element
        assert element is not None
        self.assign(place, element, out)
        self.states[place] = State.CLEAN

    def assign(self, place: int, value: ir.Expr, out: list[ir.Statement]) -> None:
        """Give a place's register a value, and declare it if it has none."""
        known = self.places[place]
        if known.register is not None:
            out.append(assign(known.register, value, value.loc))
            return
        known.register = ir.Register(self._names.claim_copy(legal_name(known.label), first=2), known.kind)
        if self.depth == 0:
            out.append(ir.Declare(known.register, value, value.loc))
            return
        self.prelude.append(ir.Declare(known.register, zero(known.kind)))
        out.append(assign(known.register, value, value.loc))

    def _store(self, place: int, out: list[ir.Statement]) -> None:
        """Bring memory up to date."""
        element = self.places[place].element
        assert element is not None
        out.append(ir.Store(element, self.read(place), None, element.loc))

    def store_all(self, out: list[ir.Statement], places: Iterable[int] | None = None) -> None:
        """Bring memory up to date with all registers, or those of some places."""
        for place in sorted(self.states if places is None else places):
            if self.states.get(place) is State.CHANGED:
                self._store(place, out)
                self.states[place] = State.CLEAN

    def join(
        self, before: dict[int, State], ways: Sequence[tuple[list[ir.Statement], dict[int, State]]]
    ) -> dict[int, State]:
        """Return what is known where branches meet, and bring memory up to date at their ends if need be.

        `ways` has the statements of each branch that reaches its end, and what is known there.
        """
        if not ways:
            return before
        joined: dict[int, State] = {}
        for place in range(len(self.places)):
            states = {known.get(place) for _, known in ways}
            if len(states) == 1:
                (state,) = states
            elif None not in states and before.get(place) is State.CHANGED:
                state = State.CHANGED
            else:
                for out, known in ways:
                    if known.get(place) is State.CHANGED:
                        self._store(place, out)
                state = None if None in states else State.CLEAN
            if state is not None:
                joined[place] = state
        return joined


# ---- Values that are kept from what compilers know of them -----------------------------------------------


def seal(value: ir.Expr, zero: ir.Argument) -> ir.Expr:
    """Return a value in a way that no compiler sees through: its bits, changed by an argument of zero."""
    kind = value.dtype
    mask = ir.Expr(ir.Op.ARGUMENT, dt.uint32, (), zero)
    if dt.component_type(kind) is dt.float32:
        words = dt.to_vector(dt.uint32, dt.component_count(kind))
        bits = binary("^", call("floatBitsToUint", words, value), mask)
        return replace(call("uintBitsToFloat", kind, bits), loc=value.loc)
    parts = tuple(
        call("packDouble2x32", dt.float64, binary("^", call("unpackDouble2x32", dt.uvec2, part), mask))
        for part in components(value)
    )
    return parts[0] if dt.is_scalar(kind) else ir.Expr(ir.Op.CONSTRUCT, kind, parts, None, value.loc)
