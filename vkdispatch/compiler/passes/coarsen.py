"""Kernels whose invocations each process several elements, or on CPU drivers a block of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import contents, depends_on_workgroups, find_operations
from vkdispatch.compiler.analyses.launch_values import definitions_of
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import builders as make

# ---- Kernels whose invocations each process several elements ---------------------------------------------
#
# A device reaches its memory bandwidth only with many loads in flight, more than invocations of one element
# each can have:
#
#     one element each            i: load, compute, store
#     four, `stride` apart        i, i + stride, i + 2 stride, i + 3 stride: load 4, compute 4, store 4
#
# Invocations of a kernel without barriers run in any order, so one may do the work of several, and load all
# elements before it stores any. `stride` is the workgroup size, so accesses stay coalesced.


# Loops do enough work for one element; in long programs the registers of several elements do not fit.
_SIMPLE = (ir.Declare, ir.Store, ir.ImageStore, ir.If, ir.Switch, ir.Scope, ir.Comment, ir.Return)
_LONGEST = 1200
_BYTES_IN_FLIGHT = 16
_MAX_ELEMENTS = 16
_SUBGROUP = frozenset(builtin for builtin in ir.Builtin if "SUBGROUP" in builtin.name)


def choose_elements(kernel: ir.Kernel) -> int:
    """Return how many elements an invocation of a large launch should process; 1 if only one is possible."""
    if not is_separable(kernel):
        return 1
    sizes = [resource.dtype.item_size for resource in kernel.resources if isinstance(resource, ir.Storage)]
    elements = min(_BYTES_IN_FLIGHT // max(sizes, default=_BYTES_IN_FLIGHT), _MAX_ELEMENTS)
    return elements if elements > 1 and len(contents(kernel).expressions) * elements <= _LONGEST else 1


def is_separable(kernel: ir.Kernel) -> bool:
    """Whether an invocation may do the work of several: the kernel is simple, and uses its id along x."""
    if kernel.exec_count is None or kernel.flags & ir.ShaderFlags.NO_EXEC_BOUNDS:
        return False
    if depends_on_workgroups(kernel):
        return False
    _, body = split_guard(kernel.body)
    statements = list(ir.walk(body))
    if not all(isinstance(statement, _SIMPLE) for statement in statements):
        return False
    if any(isinstance(statement, ir.Return) for statement in statements):
        return False
    if any(
        isinstance(statement, ir.Declare) and dt.is_array(statement.register.dtype)
        for statement in statements
    ):
        return False
    everything = contents(kernel).expressions
    if any(expr.op is ir.Op.SUBGROUP or expr.value in _SUBGROUP for expr in everything):
        return False
    # without the id along x all invocations do the same
    return any(is_id_x(expr) for expr in everything)


def is_id_x(expr: ir.Expr) -> bool:
    """Whether an expression is the invocation's own id along x."""
    return expr.op is ir.Op.COMPONENT and expr.value == "x" and _is_id(expr.args[0])


def _operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return what is replaced before an expression; the id along x is replaced as a whole."""
    return expr.args if expr.op is not ir.Op.COMPONENT or not is_id_x(expr) else ()


def _is_id(expr: ir.Expr) -> bool:
    return expr.value is ir.Builtin.GLOBAL_INVOCATION_ID


def split_guard(body: ir.Block) -> tuple[ir.Expr | None, ir.Block]:
    """Split off a first `if condition: return`."""
    for position, statement in enumerate(body):
        if isinstance(statement, ir.Comment):
            continue
        if (
            isinstance(statement, ir.If)
            and statement.orelse is None
            and len(statement.branches) == 1
            and all(isinstance(inner, ir.Return) for inner in statement.branches[0][1])
            and statement.branches[0][1]
        ):
            return statement.branches[0][0], body[position + 1 :]
        break
    return None, body


def coarsen(kernel: ir.Kernel, elements: int) -> ir.Kernel:
    """Return a kernel whose invocations process `elements` elements each.

    It checks `exec_count` itself. `choose_elements` must have returned more than 1.
    """
    assert kernel.exec_count is not None
    limit = ir.Expr(ir.Op.ARGUMENT, kernel.exec_count.dtype, value=kernel.exec_count)
    names = FreshNames.of_variables(kernel)

    stride = make.id_part(ir.Builtin.WORKGROUP_SIZE, "x")
    width = make.binary("*", stride, make.uint(elements))
    first = new_register("first", dt.uint32, names)
    start = make.binary(
        "+",
        make.binary("*", make.id_part(ir.Builtin.WORKGROUP_ID, "x"), width),
        make.id_part(ir.Builtin.LOCAL_INVOCATION_ID, "x"),
    )
    outside = [
        make.compare(">=", make.id_part(ir.Builtin.GLOBAL_INVOCATION_ID, axis), make.part_of(limit, axis))
        for axis in "yz"
    ]
    guard, body = split_guard(kernel.body)

    copies = [Copy(new_register(f"element_{k}", dt.uint32, names), f"_{k}", names) for k in range(elements)]
    offsets = [
        make.binary("+", make.read(first), make.binary("*", stride, make.uint(k))) for k in range(1, elements)
    ]
    places = [
        ir.Declare(copy.element, place)
        for copy, place in zip(copies, [make.read(first), *offsets], strict=True)
    ]
    whole = make.compare("<", make.read(copies[-1].element), make.part_of(limit, "x"))
    if guard is not None:
        whole = make.logical("&&", whole, *(make.negate(copy.expr(guard)) for copy in copies))

    turn = new_register("turn", dt.uint32, names, counter=True)
    single = Copy(new_register("element", dt.uint32, names), "_n", names)
    inside = make.compare("<", make.read(single.element), make.part_of(limit, "x"))
    if guard is not None:
        inside = make.logical("&&", inside, make.negate(single.expr(guard)))
    rest = ir.For(
        turn,
        make.uint(0),
        make.uint(elements),
        make.uint(1),
        (
            ir.Declare(
                single.element, make.binary("+", make.read(first), make.binary("*", stride, make.read(turn)))
            ),
            make.when(inside, *map(single.statement, body)),
        ),
    )
    return replace(
        kernel,
        body=(
            make.when(make.logical("||", *outside), ir.Return()),
            ir.Declare(first, start),
            *places,
            ir.If(((whole, tuple(_interleave(body, copies))),), (rest,)),
        ),
    )


def _interleave(body: ir.Block, copies: list["Copy"]) -> Iterable[ir.Statement]:
    """Each statement for all elements before the next, values before stores."""
    for statement in body:
        if isinstance(statement, ir.Comment):
            yield statement
        elif isinstance(statement, ir.Store) and ir.root_of(statement.place).op is ir.Op.ELEMENT:
            yield from store_values(statement, copies)
        else:
            yield from (copy.statement(statement) for copy in copies)


def store_values(statement: ir.Store, copies: Sequence["Copy"]) -> Iterable[ir.Statement]:
    """Compute the stored values of all elements before storing any."""
    if statement.operator is not None and ir.is_encoded(statement.place):
        yield from (copy.statement(statement) for copy in copies)
        return
    values = [copy.register("value", statement.place.dtype) for copy in copies]
    for copy, value in zip(copies, values, strict=True):
        result = copy.expr(statement.value)
        if statement.operator is not None:
            place = copy.expr(statement.place)
            result = make.binary(statement.operator, place, result, statement.loc)
        yield ir.Declare(value, result, statement.loc)
    for copy, value in zip(copies, values, strict=True):
        yield ir.Store(copy.place(statement.place), make.read(value), None, statement.loc)


class Copy:
    """Copies statements for one element, with registers and an id of its own."""

    def __init__(self, element: ir.Register, suffix: str, names: FreshNames) -> None:
        self.element = element
        self._suffix = suffix
        self._names = names
        self._registers: dict[int, ir.Register] = {}
        self.exprs: dict[
            int, tuple[ir.Expr, ir.Expr]
        ] = {}  # by identity of the original, which it keeps alive

    def register(self, name: str, kind: dt.DType, fixed: bool = False) -> ir.Register:
        """Make a register of the element."""
        return new_register(name + self._suffix, kind, self._names, fixed=fixed)

    def statement(self, statement: ir.Statement) -> ir.Statement:
        """Return a statement for this element."""
        if isinstance(statement, ir.Declare):
            value = self.expr(statement.value)
            old = statement.register
            new = self.register(old.name, old.dtype, old.fixed)
            if old.precise:
                new = replace(new, precise=True)
            self._registers[id(old)] = new
            return ir.Declare(new, value, statement.loc)
        return ir.map_statement(statement, self.expr, self.block, self.place)

    def block(self, block: ir.Block) -> ir.Block:
        """Return statements for this element."""
        return tuple(map(self.statement, block))

    def place(self, expr: ir.Expr) -> ir.Expr:
        """Return a place that is stored to for this element."""
        return self.expr(expr)

    def expr(self, root: ir.Expr) -> ir.Expr:
        """Return an expression for this element; the same object if it does not depend on the element."""
        for expr in () if id(root) in self.exprs else ir.postorder(root, self.exprs, _operands):
            self.exprs[id(expr)] = (self.replace_node(expr), expr)
        return self.exprs[id(root)][0]

    def replace_node(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression whose operands have been replaced for this element."""
        if is_id_x(expr):
            return make.read(self.element)
        if _is_id(expr):
            axes = (make.id_part(ir.Builtin.GLOBAL_INVOCATION_ID, axis) for axis in "yz")
            return ir.Expr(ir.Op.CONSTRUCT, dt.uvec3, (make.read(self.element), *axes), loc=expr.loc)
        if expr.op is ir.Op.REGISTER:
            new = self._registers.get(id(expr.value))
            return expr if new is None else replace(expr, value=new)
        args = tuple(self.exprs[id(arg)][0] for arg in expr.args)
        if all(new is old for new, old in zip(args, expr.args, strict=True)):
            return expr
        return replace(expr, args=args, axes=())


def new_register(
    name: str, kind: dt.DType, names: FreshNames, *, counter: bool = False, fixed: bool = True
) -> ir.Register:
    """Make a register whose name nothing else has."""
    return ir.Register(names.claim(name), kind, counter, fixed and not counter)


# ---- Kernels whose invocations each process a block of neighbouring elements, for CPU drivers ------------
#
# Such a driver vectorizes arithmetic across the invocations of a subgroup, but not loads and stores. An
# access costs more than its bytes:
#
#     one element each      i: load 4 bytes, compute, store 4 bytes
#     a block of 8 each     8i, 8i + 1, ... 8i + 7: load 32 bytes, compute 8 times, store 32 bytes
#
# Elements at the invocation's own id along x are loaded and stored as vectors of four float64, through a
# second declaration of the buffer. The form serves only launches of whole blocks: CPU drivers run both
# sides of a branch, so a branch for the remainder would slow down every invocation.


BLOCK = 8
# In longer kernels arithmetic dominates, and eight times their text takes long to compile.
_LONGEST_BLOCK_KERNEL = 64
_LANES = 4
_LETTERS = "xyzw"
# Types of which a word holds two elements, or one, with the functions from bits to value and back.
_HALVES: dict[dt.DType, tuple[str, str]] = {
    dt.float32: ("uintBitsToFloat", "floatBitsToUint"),
    dt.int32: ("int", "uint"),
    dt.uint32: ("", ""),
}
_PAIRS: dict[dt.DType, tuple[str, str]] = {
    dt.vec2: ("uintBitsToFloat", "floatBitsToUint"),
    dt.complex64: ("uintBitsToFloat", "floatBitsToUint"),
    dt.ivec2: ("ivec2", "uvec2"),
    dt.uvec2: ("", ""),
}
_WORDS: dict[dt.DType, tuple[str, str]] = {
    dt.float64: ("", ""),
    dt.int64: ("doubleBitsToInt64", "int64BitsToDouble"),
    dt.uint64: ("doubleBitsToUint64", "uint64BitsToDouble"),
}


def can_block(kernel: ir.Kernel) -> bool:
    """Whether a kernel runs faster if each invocation processes a block of elements."""
    if not is_separable(kernel) or split_guard(kernel.body)[0] is not None:
        return False
    if len(contents(kernel).expressions) > _LONGEST_BLOCK_KERNEL:
        return False
    if find_operations(kernel, ir.Op.ATOMIC):
        return False
    definitions = definitions_of(list(ir.walk(kernel.body)))
    return any(
        _is_own(root, definitions)
        for statement in kernel.body
        for root in nodes((*_find_loads(statement), *_find_stored(statement)))
    )


def put_in_blocks(kernel: ir.Kernel) -> ir.Kernel:
    """Return a kernel whose invocations process `BLOCK` elements each, for launches of whole blocks along x.

    It checks `exec_count` itself. `can_block` must be true of the kernel.
    """
    return _Blocks(kernel).kernel()


def _find_loads(statement: ir.Statement) -> tuple[ir.Expr, ...]:
    """Return the expressions that a statement always evaluates, before it stores anything."""
    if not isinstance(statement, (ir.Declare, ir.Store, ir.If)):
        return ()
    if isinstance(statement, ir.Store) and statement.operator is not None:
        return (*ir.evaluated(statement), statement.place)
    return ir.evaluated(statement)


def _find_stored(statement: ir.Statement) -> tuple[ir.Expr, ...]:
    return (
        (statement.place,) if isinstance(statement, ir.Store) and statement.place.op is ir.Op.ELEMENT else ()
    )


def _is_own(expr: ir.Expr, definitions: Mapping[ir.Register, ir.Expr]) -> bool:
    """Whether an expression is the element at the invocation's id along x, and of a type that fits words."""
    if expr.op is not ir.Op.ELEMENT or not isinstance(expr.value, ir.Storage):
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
        if index.op is ir.Op.CONSTRUCT and len(index.args) == 1 and index.dtype in (dt.int32, dt.uint32):
            index = index.args[0]
        elif (
            index.op is ir.Op.REGISTER and index.value in definitions and isinstance(index.value, ir.Register)
        ):
            index = definitions[index.value]
        else:
            return False


class _Member(Copy):
    """Copies statements for one element of the block, and knows which values of it were loaded."""

    def __init__(self, number: int, names: FreshNames, definitions: Mapping[ir.Register, ir.Expr]) -> None:
        super().__init__(new_register(f"element_{number}", dt.uint32, names), f"_{number}", names)
        self._definitions = definitions
        self.loaded: dict[int, ir.Expr] = {}

    def forget(self, loaded: dict[int, ir.Expr] | None = None) -> None:
        """Forget all values of buffers but `loaded`."""
        self.loaded = loaded or {}
        self.exprs.clear()

    def place(self, expr: ir.Expr) -> ir.Expr:
        if expr.op in (ir.Op.INDEX, ir.Op.COMPONENT):
            return replace(expr, args=(self.place(expr.args[0]), *map(self.expr, expr.args[1:])))
        if expr.op is ir.Op.ELEMENT:
            return replace(expr, args=tuple(map(self.expr, expr.args)), axes=())
        return self.expr(expr)

    def replace_node(self, expr: ir.Expr) -> ir.Expr:
        known = self.loaded.get(expr.value.index) if isinstance(expr.value, ir.Storage) else None
        if known is not None and _is_own(expr, self._definitions):
            return known
        return super().replace_node(expr)


class _Blocks:
    """Rewrites a kernel: each statement for all elements of the block, then the next statement."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._source = kernel
        self._names = FreshNames.of_variables(kernel)
        self._definitions = definitions_of(list(ir.walk(kernel.body)))
        self._members = [_Member(number, self._names, self._definitions) for number in range(BLOCK)]
        self._views: dict[int, ir.Storage] = {}

    def kernel(self) -> ir.Kernel:
        """Return the kernel of blocks."""
        kernel = self._source
        assert kernel.exec_count is not None
        limit = ir.Expr(ir.Op.ARGUMENT, kernel.exec_count.dtype, value=kernel.exec_count)
        gid = {axis: make.id_part(ir.Builtin.GLOBAL_INVOCATION_ID, axis) for axis in "xyz"}
        first = new_register("first", dt.uint32, self._names)
        beyond = [make.compare(">=", make.read(first), make.part_of(limit, "x"))]
        beyond += [make.compare(">=", gid[axis], make.part_of(limit, axis)) for axis in "yz"]
        places = [
            ir.Declare(
                member.element,
                make.binary("+", make.read(first), make.uint(number)) if number else make.read(first),
            )
            for number, member in enumerate(self._members)
        ]
        statements = [part for statement in kernel.body for part in self._statement(statement)]
        return replace(
            kernel,
            resources=(*kernel.resources, *self._views.values()),
            body=(
                ir.Declare(first, make.binary("*", gid["x"], make.uint(BLOCK))),
                make.when(make.logical("||", *beyond), ir.Return()),
                *places,
                *statements,
            ),
        )

    def _statement(self, statement: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(statement, ir.Comment):
            yield statement
            return
        yield from self._load(_find_loads(statement))
        if isinstance(statement, ir.Store) and ir.root_of(statement.place).op is ir.Op.ELEMENT:
            yield from self._store(statement)
        elif isinstance(statement, (ir.Declare, ir.Store)):
            yield from (member.statement(statement) for member in self._members)
        elif isinstance(statement, ir.If):
            yield from self._branch(statement)
        else:
            self._forget()
            yield from (member.statement(statement) for member in self._members)
            self._forget()

    def _forget(self) -> None:
        for member in self._members:
            member.forget()

    def _branch(self, statement: ir.If) -> Iterator[ir.Statement]:
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
            isinstance(inner, ir.Store) and ir.root_of(inner.place).op is ir.Op.ELEMENT
            for inner in ir.walk((statement,))
        ):
            self._forget()

    # -- words

    def _load(self, roots: Iterable[ir.Expr]) -> Iterator[ir.Statement]:
        for expr in nodes(roots):
            storage = expr.value
            if not isinstance(storage, ir.Storage) or storage.index in self._members[0].loaded:
                continue
            if not _is_own(expr, self._definitions):
                continue
            values: list[ir.Expr] = []
            for element in self._vectors(storage):
                vector = new_register(f"words_{storage.index}", dt.dvec4, self._names)
                yield ir.Declare(vector, element, expr.loc)
                for letter in _LETTERS:
                    word = ir.Expr(ir.Op.COMPONENT, dt.float64, (make.read(vector),), letter)
                    values += _values_of(word, storage.dtype)
            for member, value in zip(self._members, values, strict=True):
                register = member.register(f"loaded_{storage.index}", storage.dtype, fixed=True)
                yield ir.Declare(register, value, expr.loc)
                member.loaded[storage.index] = make.read(register)
                # copies made before refer to memory
                member.exprs.clear()

    def _store(self, statement: ir.Store) -> Iterator[ir.Statement]:
        found = list(store_values(statement, self._members))
        storage = statement.place.value
        if isinstance(storage, ir.Storage) and _is_own(statement.place, self._definitions):
            declares = [inner for inner in found if isinstance(inner, ir.Declare)]
            yield from declares
            words = _words_of([make.read(declare.register) for declare in declares], storage.dtype)
            for number, element in enumerate(self._vectors(storage)):
                part = tuple(words[number * _LANES : (number + 1) * _LANES])
                yield ir.Store(element, ir.Expr(ir.Op.CONSTRUCT, dt.dvec4, part), None, statement.loc)
        else:
            yield from found
        self._forget()

    def _vectors(self, storage: ir.Storage) -> list[ir.Expr]:
        """Return the vectors of words that hold the block of a buffer."""
        view = self._views.get(storage.index)
        if view is None:
            view = ir.Storage(storage.index, dt.dvec4, storage.label, view=True)
            self._views[storage.index] = view
        count = storage.dtype.item_size * BLOCK // dt.dvec4.item_size
        start = make.id_part(ir.Builtin.GLOBAL_INVOCATION_ID, "x")
        if count > 1:
            start = make.binary("*", start, make.uint(count))
        places = [make.binary("+", start, make.uint(number)) if number else start for number in range(count)]
        return [ir.Expr(ir.Op.ELEMENT, dt.dvec4, (place,), view) for place in places]


def _convert(function: str, kind: dt.DType, value: ir.Expr) -> ir.Expr:
    return make.call(function, kind, value) if function else value


def _values_of(word: ir.Expr, kind: dt.DType) -> list[ir.Expr]:
    """Return the elements that a word holds."""
    if kind in _WORDS:
        return [_convert(_WORDS[kind][0], kind, word)]
    pair = make.call("unpackDouble2x32", dt.uvec2, word)
    if kind in _PAIRS:
        return [_convert(_PAIRS[kind][0], kind, pair)]
    halves = [make.part_of(pair, letter) for letter in "xy"]
    return [_convert(_HALVES[kind][0], kind, half) for half in halves]


def _words_of(values: list[ir.Expr], kind: dt.DType) -> list[ir.Expr]:
    """Return the words that hold elements."""
    if kind in _WORDS:
        return [_convert(_WORDS[kind][1], dt.float64, value) for value in values]
    if kind in _PAIRS:
        pairs = [_convert(_PAIRS[kind][1], dt.uvec2, value) for value in values]
    else:
        bits = [_convert(_HALVES[kind][1], dt.uint32, value) for value in values]
        pairs = [
            ir.Expr(ir.Op.CONSTRUCT, dt.uvec2, (low, high))
            for low, high in zip(bits[::2], bits[1::2], strict=True)
        ]
    return [make.call("packDouble2x32", dt.float64, pair) for pair in pairs]
