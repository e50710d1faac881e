"""Atomics of floats by atomics of their bits, where a device has none.

The buffer or shared array becomes one of unsigned integers, and what lies there is converted where the kernel
reads and writes it. A sum or an extreme is computed in a loop, which tries again until nobody else has
changed the element since it was read. Elements of structures and matrices are left alone.
"""

from collections.abc import Callable

from vkdispatch.analyses.contents import contents, mentioned
from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    float64,
    is_complex,
    is_scalar,
    is_vector,
    to_vector,
)
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Block,
    Break,
    Declare,
    Expr,
    If,
    Kernel,
    MatrixLoad,
    MatrixStore,
    Op,
    RawStatement,
    RawText,
    Register,
    SharedArray,
    Statement,
    Storage,
    Store,
    While,
    is_encoded,
    map_statement,
    root_of,
)
from vkdispatch.ir.expressions import BITS_OF
from vkdispatch.ir.names import FreshNames
from vkdispatch.ir.traversal import postorder, with_args
from vkdispatch.passes.builders import compare, read

Array = Storage | SharedArray
# Whether the bits have to stand in for an atomic of a type, in shared memory or in a buffer.
Wanted = Callable[[str, DType, bool], bool]


def is_comparison(function: str, kind: DType, shared: bool) -> bool:
    """Whether no device has an atomic: the compare-exchange of floats."""
    return function == "atomicCompSwap"


def replace_float_atomics(kernel: Kernel, wanted: Wanted) -> Kernel:
    """Return a kernel whose `wanted` atomics of floats are those of bits; the same one if it has none."""
    arrays: dict[int, Array] = {}
    for statement in contents(kernel).statements:
        if not isinstance(statement, Declare) or statement.value.op is not Op.ATOMIC:
            continue
        place, array = statement.value.args[0], root_of(statement.value.args[0]).value
        shared = isinstance(array, SharedArray)
        if place.dtype in BITS_OF and wanted(str(statement.value.value), place.dtype, shared):
            if not can_be_bits(place) or not isinstance(array, (Storage, SharedArray)):
                return kernel
            arrays[id(array)] = array
    if not arrays or _are_reached_otherwise(kernel, arrays):
        return kernel
    return _Replacement(kernel, arrays).kernel()


def can_be_bits(place: Expr) -> bool:
    """Whether the elements of the array that a place lies in may be kept as their bits."""
    root = root_of(place)
    kind = root.dtype
    if component_type(kind) not in BITS_OF or is_encoded(root):
        return False
    if isinstance(root.value, Storage) and (root.value.whole is not None or root.value.view):
        return False
    return is_scalar(kind) or (component_type(kind) is not float64 and (is_vector(kind) or is_complex(kind)))


def _are_reached_otherwise(kernel: Kernel, arrays: dict[int, Array]) -> bool:
    """Whether GLSL of the user's or a cooperative matrix reaches one of the arrays."""
    found = contents(kernel)
    texts = [each.text for each in found.statements if isinstance(each, RawStatement)]
    texts += [each.value.text for each in found.expressions if isinstance(each.value, RawText)]
    indices = {array.index for array in arrays.values() if isinstance(array, Storage)}
    names = [array.name for array in arrays.values() if isinstance(array, SharedArray)]
    if any(mentioned(text) & indices or any(name in text for name in names) for text in texts):
        return True
    return any(isinstance(each, (MatrixLoad, MatrixStore)) for each in found.statements)


def _bits_type(kind: DType) -> DType:
    word = BITS_OF[component_type(kind)][2]
    return word if is_scalar(kind) else to_vector(word, kind.child_count)


def _to_bits(value: Expr) -> Expr:
    function = BITS_OF[component_type(value.dtype)][0]
    return Expr(Op.CALL, _bits_type(value.dtype), (value,), function, value.loc)


def _from_bits(bits: Expr, kind: DType) -> Expr:
    return Expr(Op.CALL, kind, (bits,), BITS_OF[component_type(kind)][1], bits.loc)


class _Replacement:
    def __init__(self, kernel: Kernel, arrays: dict[int, Array]) -> None:
        self._kernel = kernel
        self._names = FreshNames.of_variables(kernel)
        self._arrays = {each: replace(array, dtype=_bits_type(array.dtype)) for each, array in arrays.items()}

    def kernel(self) -> Kernel:
        return replace(
            self._kernel,
            resources=tuple(self._arrays.get(id(each), each) for each in self._kernel.resources),
            shared=tuple(self._arrays.get(id(each), each) for each in self._kernel.shared),
            body=self._block(self._kernel.body),
        )

    def _block(self, block: Block) -> Block:
        out: list[Statement] = []
        for statement in block:
            if isinstance(statement, Declare) and statement.value.op is Op.ATOMIC:
                if id(root_of(statement.value.args[0]).value) in self._arrays:
                    self._atomic(statement, out)
                    continue
            elif isinstance(statement, Store) and id(root_of(statement.place).value) in self._arrays:
                out.append(self._store(statement))
                continue
            out.append(map_statement(statement, self._value, self._block, self._place))
        return tuple(out)

    # -- values and places

    def _value(self, root: Expr) -> Expr:
        done: dict[int, Expr] = {}
        for expr in postorder(root, done):
            args = tuple([done[id(arg)] for arg in expr.args])
            array = self._arrays.get(id(expr.value))
            if array is None:
                done[id(expr)] = with_args(expr, args)
            elif expr.op is Op.LENGTH:
                done[id(expr)] = replace(expr, value=array)
            else:
                done[id(expr)] = _from_bits(self._element(expr, args, array), expr.dtype)
        return done[id(root)]

    def _element(self, expr: Expr, args: tuple[Expr, ...], array: Array) -> Expr:
        axes = tuple([(self._value(index), self._value(size)) for index, size in expr.axes])
        return replace(expr, dtype=_bits_type(expr.dtype), args=args, value=array, axes=axes)

    def _place(self, place: Expr) -> Expr:
        if place.op in (Op.COMPONENT, Op.INDEX):
            whole = self._place(place.args[0])
            args = (whole, *map(self._value, place.args[1:]))
            same = whole.dtype is place.args[0].dtype
            return replace(place, dtype=place.dtype if same else _bits_type(place.dtype), args=args)
        args = tuple(map(self._value, place.args))
        array = self._arrays.get(id(place.value))
        return with_args(place, args) if array is None else self._element(place, args, array)

    # -- statements

    def _store(self, old: Store) -> Statement:
        value, place = self._value(old.value), self._place(old.place)
        if old.operator is not None:
            before = _from_bits(place, old.place.dtype)
            value = Expr(Op.BINARY, old.place.dtype, (before, value), old.operator, old.loc)
        return Store(place, _to_bits(value), None, old.loc)

    def _declare(self, name: str, value: Expr, out: list[Statement]) -> Expr:
        register = Register(self._names.claim_copy(name), value.dtype)
        out.append(Declare(register, value, value.loc))
        return read(register)

    def _atomic(self, old: Declare, out: list[Statement]) -> None:
        target, *operands = old.value.args
        function, kind, loc = str(old.value.value), target.dtype, old.loc
        place = self._place(target)
        values = [self._declare("operand", self._value(each), out) for each in operands]

        def call(name: str, *args: Expr) -> Expr:
            return Expr(Op.ATOMIC, place.dtype, (place, *args), name, loc)

        if function in ("atomicExchange", "atomicCompSwap"):
            before = self._declare("before", call(function, *map(_to_bits, values)), out)
        else:
            place = self._with_fixed_indices(place, out)
            before = self._declare("before", place, out)
            seen, (value,) = _from_bits(before, kind), values
            if function == "atomicAdd":
                result = Expr(Op.BINARY, kind, (seen, value), "+", loc)
            else:
                name = function.removeprefix("atomic").lower()
                result = Expr(Op.CALL, kind, (seen, value), name, loc)
            body: list[Statement] = []
            found = self._declare("found", call("atomicCompSwap", before, _to_bits(result)), body)
            body.append(If(((compare("==", found, before), (Break(loc),)),), None, loc))
            body.append(Store(before, found, None, loc))
            out.append(While(Expr(Op.LITERAL, bool_, (), True), tuple(body), loc))
        out.append(Declare(old.register, _from_bits(before, kind), loc))

    def _with_fixed_indices(self, place: Expr, out: list[Statement]) -> Expr:
        """Compute the indices of a place once."""
        first = 0 if place.op is Op.ELEMENT else 1
        args = [self._with_fixed_indices(arg, out) for arg in place.args[:first]]
        args += [
            arg if arg.op is Op.LITERAL else self._declare("index", arg, out) for arg in place.args[first:]
        ]
        return with_args(place, tuple(args))
