"""Operations that a driver lacks, or compiles badly, by others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import PURE, contents, find_operations, mentioned
from vkdispatch.compiler.ir.expressions import BITS_OF, literal
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.ir.traversal import postorder, with_args
from vkdispatch.compiler.passes import builders as make

# ---- Atomics of floats by atomics of their bits, where a device has none ---------------------------------
#
# The buffer or shared array becomes one of unsigned integers, and what lies there is converted where the
# kernel reads and writes it. A sum or an extreme is computed in a loop, which tries again until nobody else
# has changed the element since it was read. Elements of structures and matrices are left alone.


Array = ir.Storage | ir.SharedArray
# Whether the bits have to stand in for an atomic of a type, in shared memory or in a buffer.
Wanted = Callable[[str, dt.DType, bool], bool]


def is_comparison(function: str, kind: dt.DType, shared: bool) -> bool:
    """Whether no device has an atomic: the compare-exchange of floats."""
    return function == "atomicCompSwap"


def replace_float_atomics(kernel: ir.Kernel, wanted: Wanted) -> ir.Kernel:
    """Return a kernel whose `wanted` atomics of floats are those of bits; the same one if it has none."""
    arrays: dict[int, Array] = {}
    if not find_operations(kernel, ir.Op.ATOMIC):
        return kernel
    for statement in contents(kernel).statements:
        if not isinstance(statement, ir.Declare) or statement.value.op is not ir.Op.ATOMIC:
            continue
        place, array = statement.value.args[0], ir.root_of(statement.value.args[0]).value
        shared = isinstance(array, ir.SharedArray)
        if place.dtype in BITS_OF and wanted(str(statement.value.value), place.dtype, shared):
            if not can_be_bits(place) or not isinstance(array, (ir.Storage, ir.SharedArray)):
                return kernel
            arrays[id(array)] = array
    if not arrays or _are_reached_otherwise(kernel, arrays):
        return kernel
    return _Replacement(kernel, arrays).kernel()


def can_be_bits(place: ir.Expr) -> bool:
    """Whether the elements of the array that a place lies in may be kept as their bits."""
    root = ir.root_of(place)
    kind = root.dtype
    if dt.component_type(kind) not in BITS_OF or ir.is_encoded(root):
        return False
    if isinstance(root.value, ir.Storage) and (root.value.whole is not None or root.value.view):
        return False
    return dt.is_scalar(kind) or (
        dt.component_type(kind) is not dt.float64 and (dt.is_vector(kind) or dt.is_complex(kind))
    )


def _are_reached_otherwise(kernel: ir.Kernel, arrays: dict[int, Array]) -> bool:
    """Whether GLSL of the user's or a cooperative matrix reaches one of the arrays."""
    found = contents(kernel)
    texts = [statement.text for statement in found.statements if isinstance(statement, ir.RawStatement)]
    texts += [expr.value.text for expr in found.expressions if isinstance(expr.value, ir.RawText)]
    indices = {array.index for array in arrays.values() if isinstance(array, ir.Storage)}
    names = [array.name for array in arrays.values() if isinstance(array, ir.SharedArray)]
    if any(mentioned(text) & indices or any(name in text for name in names) for text in texts):
        return True
    return any(isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)) for statement in found.statements)


def _bits_type(kind: dt.DType) -> dt.DType:
    word = BITS_OF[dt.component_type(kind)][2]
    return word if dt.is_scalar(kind) else dt.to_vector(word, kind.child_count)


def _to_bits(value: ir.Expr) -> ir.Expr:
    function = BITS_OF[dt.component_type(value.dtype)][0]
    return ir.Expr(ir.Op.CALL, _bits_type(value.dtype), (value,), function, value.loc)


def _from_bits(bits: ir.Expr, kind: dt.DType) -> ir.Expr:
    return ir.Expr(ir.Op.CALL, kind, (bits,), BITS_OF[dt.component_type(kind)][1], bits.loc)


class _Replacement:
    def __init__(self, kernel: ir.Kernel, arrays: dict[int, Array]) -> None:
        self._kernel = kernel
        self._names = FreshNames.of_variables(kernel)
        self._arrays = {key: replace(array, dtype=_bits_type(array.dtype)) for key, array in arrays.items()}

    def kernel(self) -> ir.Kernel:
        return replace(
            self._kernel,
            resources=tuple(self._arrays.get(id(resource), resource) for resource in self._kernel.resources),
            shared=tuple(self._arrays.get(id(array), array) for array in self._kernel.shared),
            body=self._block(self._kernel.body),
        )

    def _block(self, block: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for statement in block:
            if isinstance(statement, ir.Declare) and statement.value.op is ir.Op.ATOMIC:
                if id(ir.root_of(statement.value.args[0]).value) in self._arrays:
                    self._atomic(statement, out)
                    continue
            elif isinstance(statement, ir.Store) and id(ir.root_of(statement.place).value) in self._arrays:
                out.append(self._store(statement))
                continue
            out.append(ir.map_statement(statement, self._value, self._block, self._place))
        return tuple(out)

    # -- values and places

    def _value(self, root: ir.Expr) -> ir.Expr:
        done: dict[int, ir.Expr] = {}
        for expr in postorder(root, done):
            args = tuple([done[id(arg)] for arg in expr.args])
            array = self._arrays.get(id(expr.value))
            if array is None:
                done[id(expr)] = with_args(expr, args)
            elif expr.op is ir.Op.LENGTH:
                done[id(expr)] = replace(expr, value=array)
            else:
                done[id(expr)] = _from_bits(self._element(expr, args, array), expr.dtype)
        return done[id(root)]

    def _element(self, expr: ir.Expr, args: tuple[ir.Expr, ...], array: Array) -> ir.Expr:
        axes = tuple([(self._value(index), self._value(size)) for index, size in expr.axes])
        return replace(expr, dtype=_bits_type(expr.dtype), args=args, value=array, axes=axes)

    def _place(self, place: ir.Expr) -> ir.Expr:
        if place.op in (ir.Op.COMPONENT, ir.Op.INDEX):
            whole = self._place(place.args[0])
            args = (whole, *map(self._value, place.args[1:]))
            same = whole.dtype is place.args[0].dtype
            return replace(place, dtype=place.dtype if same else _bits_type(place.dtype), args=args)
        args = tuple(map(self._value, place.args))
        array = self._arrays.get(id(place.value))
        return with_args(place, args) if array is None else self._element(place, args, array)

    # -- statements

    def _store(self, old: ir.Store) -> ir.Statement:
        value, place = self._value(old.value), self._place(old.place)
        if old.operator is not None:
            before = _from_bits(place, old.place.dtype)
            value = make.binary(old.operator, before, value, old.loc)
        return ir.Store(place, _to_bits(value), None, old.loc)

    def _declare(self, name: str, value: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        register = ir.Register(self._names.claim_copy(name), value.dtype)
        out.append(ir.Declare(register, value, value.loc))
        return make.read(register)

    def _atomic(self, old: ir.Declare, out: list[ir.Statement]) -> None:
        target, *operands = old.value.args
        function, kind, loc = str(old.value.value), target.dtype, old.loc
        place = self._place(target)
        values = [self._declare("operand", self._value(operand), out) for operand in operands]

        def call(name: str, *args: ir.Expr) -> ir.Expr:
            return ir.Expr(ir.Op.ATOMIC, place.dtype, (place, *args), name, loc)

        if function in ("atomicExchange", "atomicCompSwap"):
            before = self._declare("before", call(function, *map(_to_bits, values)), out)
        else:
            place = self._with_fixed_indices(place, out)
            before = self._declare("before", place, out)
            seen, (value,) = _from_bits(before, kind), values
            if function == "atomicAdd":
                result = ir.Expr(ir.Op.BINARY, kind, (seen, value), "+", loc)
            else:
                name = function.removeprefix("atomic").lower()
                result = ir.Expr(ir.Op.CALL, kind, (seen, value), name, loc)
            body: list[ir.Statement] = []
            found = self._declare("found", call("atomicCompSwap", before, _to_bits(result)), body)
            body.append(make.when(make.compare("==", found, before), ir.Break(loc), loc=loc))
            body.append(ir.Store(before, found, None, loc))
            out.append(ir.While(make.truth(True), tuple(body), loc))
        out.append(ir.Declare(old.register, _from_bits(before, kind), loc))

    def _with_fixed_indices(self, place: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        """Compute the indices of a place once."""
        first = 0 if place.op is ir.Op.ELEMENT else 1
        args = [self._with_fixed_indices(arg, out) for arg in place.args[:first]]
        args += [
            arg if arg.op is ir.Op.LITERAL else self._declare("index", arg, out) for arg in place.args[first:]
        ]
        return with_args(place, tuple(args))


# ---- Large conditional expressions become if statements --------------------------------------------------
#
# Operands that `a if c else b`, `and`, `or`, `elif` and `while` evaluate conditionally cannot be computed
# in advance and named, so they are written out at every use, and nested repeated uses grow exponentially.
# In the branch of an if statement, or at the head of a loop, they can be named.


_CONDITIONAL = (ir.Op.SELECT, ir.Op.LOGICAL)
# Operations, as written out, that make operands too large: in any case, or if most of them are repetitions.
_LARGE = 2048
_REPETITIVE = 512
_REPEATS = 4


def unfold_conditionals(kernel: ir.Kernel, new_name: Callable[[], str]) -> ir.Kernel:
    """Return a kernel whose large conditional expressions are if statements.

    `new_name` makes names that are not used in the kernel.
    """
    found = contents(kernel)
    late = [condition for statement in found.statements for condition in _list_late(statement)]
    if not late and not any(find_operations(kernel, op) for op in _CONDITIONAL):
        return kernel
    sizes = _Sizes(found.evaluated)
    if not sizes.any_large and not any(map(sizes.is_large_operand, late)):
        return kernel
    return replace(kernel, body=_Unfolding(sizes, new_name).block(kernel.body))


def _list_late(statement: ir.Statement) -> tuple[ir.Expr, ...]:
    """Return the conditions that are not evaluated at the start of the statement."""
    if isinstance(statement, ir.While):
        return (statement.condition,)
    return ir.expressions_of(statement)[1:] if isinstance(statement, ir.If) else ()


class _Sizes:
    """Sizes of expressions as written out, and which of them contain a large conditional."""

    def __init__(self, expressions: Iterable[ir.Expr]) -> None:
        # by identity; pure expressions, which get a name if they are used twice, have the size 1
        self._sizes: dict[int, int] = {}
        self._pure: set[int] = set()
        self._large: set[int] = set()
        self._holding: set[int] = set()
        for expr in expressions:  # operands first
            self._measure(expr)

    @property
    def any_large(self) -> bool:
        """Whether any expression is a large conditional."""
        return bool(self._large)

    def holds_large(self, root: ir.Expr) -> bool:
        """Whether an expression is or contains a large conditional."""
        if id(root) not in self._sizes:  # such as what only a place holds
            for expr in postorder(root, self._sizes):
                self._measure(expr)
        return id(root) in self._holding

    def is_large(self, expr: ir.Expr) -> bool:
        """Whether a measured expression is a large conditional."""
        return id(expr) in self._large

    def is_large_operand(self, expr: ir.Expr) -> bool:
        """Whether a conditionally evaluated expression is too large, or contains a large conditional."""
        return self.holds_large(expr) or self._is_too_large((expr,))

    def _measure(self, expr: ir.Expr) -> None:
        args = expr.args
        size = 1
        if expr.op in PURE and (not args or self._pure.issuperset(map(id, args))):
            self._pure.add(id(expr))
        else:
            size += sum([self._sizes[id(arg)] for arg in args])
            if self._holding and not self._holding.isdisjoint(map(id, args)):
                self._holding.add(id(expr))
            if expr.op in _CONDITIONAL and self._is_too_large(args[1:]):
                self._large.add(id(expr))
                self._holding.add(id(expr))
                size = 1
        self._sizes[id(expr)] = size

    def _is_too_large(self, operands: Sequence[ir.Expr]) -> bool:
        if not self._holding.isdisjoint(map(id, operands)):
            # statements before this expression would run unconditionally
            return True
        size = sum([self._sizes[id(operand)] for operand in operands])
        if size >= _LARGE:
            return True
        if size < _REPETITIVE:
            return False
        distinct: set[int] = set()
        stack = list(operands)
        while stack and len(distinct) * _REPEATS <= size:
            expr = stack.pop()
            if id(expr) not in distinct:
                distinct.add(id(expr))
                if id(expr) not in self._pure and id(expr) not in self._large:
                    stack += expr.args
        return not stack


class _Unfolding:
    """Rewrites blocks."""

    def __init__(self, sizes: _Sizes, new_name: Callable[[], str]) -> None:
        self._sizes = sizes
        self._new_name = new_name
        # new expressions by identity of the old ones, as long as they are valid
        self._values: dict[int, ir.Expr] = {}
        self._precise = False

    def block(self, block: ir.Block) -> ir.Block:
        """Rewrite a block."""
        out: list[ir.Statement] = []
        for statement in block:
            with self._inside():
                # registers and memory may have changed
                self._values = {}
                self._statement(statement, out)
        return tuple(out)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        before = self._values
        self._values = dict(before)
        try:
            yield
        finally:
            self._values = before

    def _statement(self, statement: ir.Statement, out: list[ir.Statement]) -> None:
        if isinstance(statement, ir.If):
            is_large = self._sizes.is_large_operand
            make.rewrite_branches(statement, out, self._value, self.block, is_large, self._inside)
            return
        if isinstance(statement, ir.While):
            out.append(self._while(statement))
            return
        if any(map(self._sizes.holds_large, ir.expressions_of(statement))):
            if isinstance(statement, ir.Assert):
                inside: list[ir.Statement] = list(self.block(statement.body))
                condition = self._value(statement.condition, inside)
                out.append(replace(statement, body=tuple(inside), condition=condition))
                return
            self._precise = isinstance(statement, ir.Declare) and statement.register.precise
            statement = ir.map_statement(statement, lambda expr: self._value(expr, out))
        out.append(ir.map_statement(statement, block=self.block))

    def _while(self, statement: ir.While) -> ir.While:
        if not self._sizes.is_large_operand(statement.condition):
            return replace(statement, body=self.block(statement.body))
        loc = statement.loc
        head: list[ir.Statement] = []
        value = self._value(statement.condition, head)
        head.append(make.when(make.negate(value, value.loc), ir.Break(loc), loc=loc))
        return ir.While(literal(True, dt.bool_), (*head, *self.block(statement.body)), loc, statement.rolled)

    # -- expressions

    def _value(self, root: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        """Rewrite an expression; statements that compute its large conditionals are added to `out`."""
        if not self._sizes.holds_large(root):
            return root
        for expr in postorder(root, self._values, self._find_operands):
            if self._sizes.is_large(expr):
                self._values[id(expr)] = self._unfold(expr, out)
            else:
                self._values[id(expr)] = replace(expr, args=tuple(map(self._new, expr.args)))
        return self._new(root)

    def _find_operands(self, expr: ir.Expr) -> list[ir.Expr]:
        """Return the operands to rewrite before an expression; of a large one only those that always run."""
        operands = expr.args[:1] if self._sizes.is_large(expr) else expr.args
        return [operand for operand in operands if self._sizes.holds_large(operand)]

    def _new(self, expr: ir.Expr) -> ir.Expr:
        return self._values.get(id(expr), expr)

    def _unfold(self, expr: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        """Compute a conditional expression in a register."""
        register = ir.Register(self._new_name(), expr.dtype, precise=self._precise)

        def store(operand: ir.Expr) -> ir.Block:
            inside: list[ir.Statement] = []
            with self._inside():
                inside.append(make.assign(register, self._value(operand, inside), expr.loc))
            return tuple(inside)

        out += make.unfold(expr, register, self._new(expr.args[0]), store)
        return make.read(register)
