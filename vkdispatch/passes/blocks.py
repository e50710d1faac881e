"""Kernels whose invocations each process a block of neighbouring elements, for CPU drivers.

Such a driver vectorizes arithmetic across the invocations of a subgroup, but not loads and stores. An access
costs more than its bytes:

    one element each      i: load 4 bytes, compute, store 4 bytes
    a block of 8 each     8i, 8i + 1, ... 8i + 7: load 32 bytes, compute 8 times, store 32 bytes

Elements at the invocation's own id along x are loaded and stored as vectors of four float64, through a second
declaration of the buffer. The form serves only launches of whole blocks: CPU drivers run both sides of a
branch, so a branch for the remainder would slow down every invocation.
"""

from collections.abc import Iterable, Iterator, Mapping

from vkdispatch.analyses.contents import contents
from vkdispatch.base.dtype import (
    DType,
    complex64,
    dvec4,
    float32,
    float64,
    int32,
    int64,
    ivec2,
    uint32,
    uint64,
    uvec2,
    vec2,
)
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Builtin,
    Comment,
    Declare,
    Expr,
    If,
    Kernel,
    Op,
    Register,
    Return,
    Statement,
    Storage,
    Store,
    evaluated,
    nodes,
    root_of,
    walk,
)
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes.builders import binary, compare, id_part, logical, part_of, read, uint
from vkdispatch.passes.coarsen import Copy, is_id_x, is_separable, new_register, split_guard, store_values
from vkdispatch.passes.fusion.elementwise import definitions_of

BLOCK = 8
# In longer kernels arithmetic dominates, and eight times their text takes long to compile.
_LONGEST = 64
_LANES = 4
_LETTERS = "xyzw"
# Types of which a word holds two elements, or one, with the functions from bits to value and back.
_HALVES: dict[DType, tuple[str, str]] = {
    float32: ("uintBitsToFloat", "floatBitsToUint"),
    int32: ("int", "uint"),
    uint32: ("", ""),
}
_PAIRS: dict[DType, tuple[str, str]] = {
    vec2: ("uintBitsToFloat", "floatBitsToUint"),
    complex64: ("uintBitsToFloat", "floatBitsToUint"),
    ivec2: ("ivec2", "uvec2"),
    uvec2: ("", ""),
}
_WORDS: dict[DType, tuple[str, str]] = {
    float64: ("", ""),
    int64: ("doubleBitsToInt64", "int64BitsToDouble"),
    uint64: ("doubleBitsToUint64", "uint64BitsToDouble"),
}


def can_block(kernel: Kernel) -> bool:
    """Whether a kernel runs faster if each invocation processes a block of elements."""
    if not is_separable(kernel) or split_guard(kernel.body)[0] is not None:
        return False
    found = contents(kernel)
    if len(found.expressions) > _LONGEST:
        return False
    if any(isinstance(each, Declare) and each.value.op is Op.ATOMIC for each in found.statements):
        return False
    definitions = definitions_of(list(walk(kernel.body)))
    return any(
        _is_own(root, definitions)
        for statement in kernel.body
        for root in nodes((*_find_loads(statement), *_find_stored(statement)))
    )


def put_in_blocks(kernel: Kernel) -> Kernel:
    """Return a kernel whose invocations process `BLOCK` elements each, for launches of whole blocks along x.

    It checks `exec_count` itself. `can_block` must be true of the kernel.
    """
    return _Blocks(kernel).kernel()


def _find_loads(statement: Statement) -> tuple[Expr, ...]:
    """Return the expressions that a statement always evaluates, before it stores anything."""
    if not isinstance(statement, (Declare, Store, If)):
        return ()
    if isinstance(statement, Store) and statement.operator is not None:
        return (*evaluated(statement), statement.place)
    return evaluated(statement)


def _find_stored(statement: Statement) -> tuple[Expr, ...]:
    return (statement.place,) if isinstance(statement, Store) and statement.place.op is Op.ELEMENT else ()


def _is_own(expr: Expr, definitions: Mapping[Register, Expr]) -> bool:
    """Whether an expression is the element at the invocation's id along x, and of a type that fits words."""
    if expr.op is not Op.ELEMENT or not isinstance(expr.value, Storage):
        return False
    storage = expr.value
    if storage.whole is not None or storage.constant is not None or expr.dtype is not storage.dtype:
        return False
    if not (storage.dtype in _HALVES or storage.dtype in _PAIRS or storage.dtype in _WORDS):
        return False
    index = expr.args[0]
    while True:
        if is_id_x(index):
            return True
        if index.op is Op.CONSTRUCT and len(index.args) == 1 and index.dtype in (int32, uint32):
            index = index.args[0]
        elif index.op is Op.REGISTER and index.value in definitions and isinstance(index.value, Register):
            index = definitions[index.value]
        else:
            return False


class _Member(Copy):
    """Copies statements for one element of the block, and knows which values of it were loaded."""

    def __init__(self, number: int, names: FreshNames, definitions: Mapping[Register, Expr]) -> None:
        super().__init__(new_register(f"element_{number}", uint32, names), f"_{number}", names)
        self._definitions = definitions
        self.loaded: dict[int, Expr] = {}

    def forget(self, loaded: dict[int, Expr] | None = None) -> None:
        """Forget all values of buffers but `loaded`."""
        self.loaded = loaded or {}
        self.exprs.clear()

    def place(self, expr: Expr) -> Expr:
        if expr.op in (Op.INDEX, Op.COMPONENT):
            return replace(expr, args=(self.place(expr.args[0]), *map(self.expr, expr.args[1:])))
        if expr.op is Op.ELEMENT:
            return replace(expr, args=tuple(map(self.expr, expr.args)), axes=())
        return self.expr(expr)

    def replace_node(self, expr: Expr) -> Expr:
        known = self.loaded.get(expr.value.index) if isinstance(expr.value, Storage) else None
        if known is not None and _is_own(expr, self._definitions):
            return known
        return super().replace_node(expr)


class _Blocks:
    """Rewrites a kernel: each statement for all elements of the block, then the next statement."""

    def __init__(self, kernel: Kernel) -> None:
        self._source = kernel
        self._names = FreshNames.of_variables(kernel)
        self._definitions = definitions_of(list(walk(kernel.body)))
        self._members = [_Member(number, self._names, self._definitions) for number in range(BLOCK)]
        self._views: dict[int, Storage] = {}

    def kernel(self) -> Kernel:
        """Return the kernel of blocks."""
        kernel = self._source
        assert kernel.exec_count is not None
        limit = Expr(Op.ARGUMENT, kernel.exec_count.dtype, value=kernel.exec_count)
        gid = {axis: id_part(Builtin.GLOBAL_INVOCATION_ID, axis) for axis in "xyz"}
        first = new_register("first", uint32, self._names)
        beyond = [compare(">=", read(first), part_of(limit, "x"))]
        beyond += [compare(">=", gid[axis], part_of(limit, axis)) for axis in "yz"]
        places = [
            Declare(member.element, binary("+", read(first), uint(number)) if number else read(first))
            for number, member in enumerate(self._members)
        ]
        statements = [each for statement in kernel.body for each in self._statement(statement)]
        return replace(
            kernel,
            resources=(*kernel.resources, *self._views.values()),
            body=(
                Declare(first, binary("*", gid["x"], uint(BLOCK))),
                If(((logical("||", *beyond), (Return(),)),)),
                *places,
                *statements,
            ),
        )

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        if isinstance(statement, Comment):
            yield statement
            return
        yield from self._load(_find_loads(statement))
        if isinstance(statement, Store) and root_of(statement.place).op is Op.ELEMENT:
            yield from self._store(statement)
        elif isinstance(statement, (Declare, Store)):
            yield from (member.statement(statement) for member in self._members)
        elif isinstance(statement, If):
            yield from self._branch(statement)
        else:
            self._forget()
            yield from (member.statement(statement) for member in self._members)
            self._forget()

    def _forget(self) -> None:
        for member in self._members:
            member.forget()

    def _branch(self, statement: If) -> Iterator[Statement]:
        """Conditions use the loaded values; the bodies of each element load their own."""
        for member in self._members:
            conditions = [member.expr(condition) for condition, _ in statement.branches]
            loaded = member.loaded
            member.forget()
            bodies = [member.block(body) for _, body in statement.branches]
            orelse = None if statement.orelse is None else member.block(statement.orelse)
            branches = tuple(zip(conditions, bodies, strict=True))
            yield replace(statement, branches=branches, orelse=orelse)
            member.forget(loaded)
        if any(
            isinstance(each, Store) and root_of(each.place).op is Op.ELEMENT for each in walk((statement,))
        ):
            self._forget()

    # -- words

    def _load(self, roots: Iterable[Expr]) -> Iterator[Statement]:
        for expr in nodes(roots):
            storage = expr.value
            if not isinstance(storage, Storage) or storage.index in self._members[0].loaded:
                continue
            if not _is_own(expr, self._definitions):
                continue
            values: list[Expr] = []
            for element in self._vectors(storage):
                vector = new_register(f"words_{storage.index}", dvec4, self._names)
                yield Declare(vector, element, expr.loc)
                for letter in _LETTERS:
                    word = Expr(Op.COMPONENT, float64, (read(vector),), letter)
                    values += _values_of(word, storage.dtype)
            for member, value in zip(self._members, values, strict=True):
                register = member.register(f"loaded_{storage.index}", storage.dtype, fixed=True)
                yield Declare(register, value, expr.loc)
                member.loaded[storage.index] = read(register)
                # copies made before refer to memory
                member.exprs.clear()

    def _store(self, statement: Store) -> Iterator[Statement]:
        found = list(store_values(statement, self._members))
        storage = statement.place.value
        if isinstance(storage, Storage) and _is_own(statement.place, self._definitions):
            declared = [each for each in found if isinstance(each, Declare)]
            yield from declared
            words = _words_of([read(each.register) for each in declared], storage.dtype)
            for number, element in enumerate(self._vectors(storage)):
                part = tuple(words[number * _LANES : (number + 1) * _LANES])
                yield Store(element, Expr(Op.CONSTRUCT, dvec4, part), None, statement.loc)
        else:
            yield from found
        self._forget()

    def _vectors(self, storage: Storage) -> list[Expr]:
        """Return the vectors of words that hold the block of a buffer."""
        view = self._views.get(storage.index)
        if view is None:
            view = Storage(storage.index, dvec4, storage.label, view=True)
            self._views[storage.index] = view
        count = storage.dtype.item_size * BLOCK // dvec4.item_size
        start = id_part(Builtin.GLOBAL_INVOCATION_ID, "x")
        if count > 1:
            start = binary("*", start, uint(count))
        places = [binary("+", start, uint(number)) if number else start for number in range(count)]
        return [Expr(Op.ELEMENT, dvec4, (place,), view) for place in places]


def _convert(function: str, kind: DType, value: Expr) -> Expr:
    return Expr(Op.CALL, kind, (value,), function) if function else value


def _values_of(word: Expr, kind: DType) -> list[Expr]:
    """Return the elements that a word holds."""
    if kind in _WORDS:
        return [_convert(_WORDS[kind][0], kind, word)]
    pair = Expr(Op.CALL, uvec2, (word,), "unpackDouble2x32")
    if kind in _PAIRS:
        return [_convert(_PAIRS[kind][0], kind, pair)]
    halves = [Expr(Op.COMPONENT, uint32, (pair,), letter) for letter in "xy"]
    return [_convert(_HALVES[kind][0], kind, half) for half in halves]


def _words_of(values: list[Expr], kind: DType) -> list[Expr]:
    """Return the words that hold elements."""
    if kind in _WORDS:
        return [_convert(_WORDS[kind][1], float64, value) for value in values]
    if kind in _PAIRS:
        pairs = [_convert(_PAIRS[kind][1], uvec2, value) for value in values]
    else:
        bits = [_convert(_HALVES[kind][1], uint32, value) for value in values]
        pairs = [
            Expr(Op.CONSTRUCT, uvec2, (low, high)) for low, high in zip(bits[::2], bits[1::2], strict=True)
        ]
    return [Expr(Op.CALL, float64, (pair,), "packDouble2x32") for pair in pairs]
