"""Python operators of GPU values, their components, and assignments to places."""

import operator
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any, NoReturn, Self

from vkdispatch.base import IN_CODEGEN
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace import range_checks
from vkdispatch.codegen.trace.current import chosen_arithmetic, current, has_flag, is_tracing
from vkdispatch.codegen.trace.operands import GpuValue, mismatch, parse_index, parse_stored_value
from vkdispatch.compiler.ir import Expr, Op, ShaderFlags, Storage, is_constant, is_place, root_of
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import MIRRORED, rounded
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.compiler.ir.program import COMPONENTS, DOUBLE_REMAINDER, FLOAT_REMAINDER, is_same_place

# ---- Components of vectors, complex numbers and matrices, as expressions ---------------------------------


def select_component(value: Expr, letter: str) -> Expr:
    """Return a component of a vector: x, y, z or w."""
    position = COMPONENTS.index(letter)
    if not dt.is_vector(value.dtype) or position >= value.dtype.child_count:
        raise located(ComponentError, f"{value.dtype.name} has no component .{letter}")
    return ex.component(value, position)


def select_part(value: Expr, index: int, name: str) -> Expr:
    """Return the real part (index 0) or the imaginary part (index 1) of a complex number."""
    if not dt.is_complex(value.dtype):
        raise located(ComponentError, f"{value.dtype.name} has no .{name}; only complex values have")
    return ex.component(value, index)


def select_element(value: Expr, index: Any) -> Expr:
    """Return an element of a vector, complex number or matrix."""
    kind = value.dtype
    if dt.is_scalar(kind):
        hint = "; an element of several axes is buf[i, j]" if value.op is Op.ELEMENT else ""
        raise located(ArgumentValueError, f"{kind.name} is a scalar and cannot be indexed{hint}")
    position = parse_index(index, kind.name, ArgumentValueError)
    if isinstance(position, Expr):
        return ex.index(value, position)
    if not 0 <= position < kind.child_count:
        raise located(
            ArgumentIndexError, f"index {position} is out of range for {kind.name} of {kind.child_count}"
        )
    if dt.is_matrix(kind):
        return ex.index(value, ex.literal(position, dt.int32))
    return ex.component(value, position)


def split_components(value: Expr) -> list[Expr]:
    """Return the scalar components of a value in order."""
    kind = value.dtype
    if dt.is_scalar(kind):
        return [value]
    if dt.is_matrix(kind):
        columns = (ex.index(value, ex.literal(i, dt.int32)) for i in range(kind.child_count))
        return [part for column in columns for part in split_components(column)]
    return [ex.component(value, i) for i in range(kind.child_count)]


def is_whole_slice(index: object) -> bool:
    """Whether an index is `[:]`. Raises ValueError for another slice."""
    if not isinstance(index, slice):
        return False
    if index.start is not None or index.stop is not None or index.step is not None:
        raise located(ArgumentValueError, "the only valid slice of a GPU value is x[:]")
    return True


# ---- Division with Python's meaning ----------------------------------------------------------------------
#
# The quotient is rounded down, the remainder has the sign of the divisor.


def floor_quotient(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a // b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("//", a, b)
    if dt.is_float_dtype(kind):
        return _by_parts(_floor_quotient, dividend, divisor, kind)
    if not dt.is_signed_dtype(dt.component_type(kind)) or _power_of_two(b):
        return ex.floor_divide(a, b)
    ex.check_divisor("//", b)
    quotient, _, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", quotient, correction)


def floor_remainder(a: ex.Operand, b: ex.Operand) -> Expr:
    """Make `a % b` as Python means it, of integers or floats. Raises TypeError for other types."""
    dividend, divisor, kind = _operands("%", a, b)
    if dt.is_float_dtype(kind):
        return _by_parts(_floor_remainder, dividend, divisor, kind)
    if not dt.is_signed_dtype(dt.component_type(kind)):
        return ex.modulo(a, b)
    if ex.is_integer_number(b) and _power_of_two(b):
        return ex.bitwise("&", a, b - 1)
    ex.check_divisor("%", b)
    _, remainder, correction = _correct_quotient(dividend, divisor)
    return ex.add("+", remainder, ex.bitwise("&", divisor, correction))


def _operands(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, dt.DType]:
    for value in (a, b):
        if isinstance(value, Expr) and (dt.is_complex(value.dtype) or dt.is_matrix(value.dtype)):
            raise located(
                ArgumentTypeError, f"{symbol}: expected integers or real numbers, got {value.dtype.name}"
            )
    kind, (dividend, divisor) = ex.meet((a, b), symbol)
    return dividend, divisor, kind


def _power_of_two(value: ex.Operand) -> bool:
    return ex.is_integer_number(value) and value > 0 and value & (value - 1) == 0


def _correct_quotient(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Quotient and remainder as GLSL truncates them, and -1 where the signs ask for one less, else 0."""
    quotient = ex.floor_divide(a, b)
    # GLSL leaves the remainder of negative numbers undefined
    remainder = ex.add("-", a, ex.multiply(quotient, b))
    top = 8 * dt.component_type(remainder.dtype).item_size - 1
    differ = ex.bitwise("^", remainder, b)
    nonzero = ex.bitwise("|", remainder, ex.negate(remainder))
    return quotient, remainder, ex.bitwise(">>", ex.bitwise("&", differ, nonzero), top)


# ---- floats: what Python and NumPy compute of C's fmod ---------------------------------------------


def float_remainder(a: ex.Operand, b: ex.Operand, name: str = "fmod") -> Expr:
    """Make the exact remainder of floats with the sign of `a`, as C's fmod. Integers become floats."""
    return _by_parts(_remainder_toward_zero, *_floats(name, a, b))


def _floats(symbol: str, a: ex.Operand, b: ex.Operand) -> tuple[Expr, Expr, dt.DType]:
    _operands(symbol, a, b)
    kind, (dividend, divisor) = ex.meet((a, b), symbol, floating=True)
    return dividend, divisor, kind


def _by_parts(rule: Callable[[Expr, Expr], Expr], a: Expr, b: Expr, kind: dt.DType) -> Expr:
    """Apply a rule for float32 or float64 to components; halves take part as float32, and round then."""
    scalar = dt.component_type(kind)
    if scalar is not dt.float16:
        return ex.by_component(rule, kind, a, b)
    return ex.by_component(lambda x, y: ex.cast(rule(_widen_half(x), _widen_half(y)), scalar), kind, a, b)


def _remainder_toward_zero(a: Expr, b: Expr) -> Expr:
    to_bits, from_bits, word = ex.BITS_OF[a.dtype]
    function = FLOAT_REMAINDER if word is dt.uint32 else DOUBLE_REMAINDER
    bits = ex.call(function, word, ex.call(to_bits, word, a), ex.call(to_bits, word, b))
    return ex.call(from_bits, a.dtype, bits)


def _signs_differ(rest: Expr, b: Expr) -> Expr:
    other = ex.compare("!=", ex.compare("<", rest, 0), ex.compare("<", b, 0))
    return ex.logical("&&", (ex.compare("!=", rest, 0), other))


def _floor_remainder(a: Expr, b: Expr) -> Expr:
    rest = _remainder_toward_zero(a, b)
    moved = ex.select(_signs_differ(rest, b), ex.add("+", rest, b), rest)
    return ex.select(ex.compare("==", rest, 0), ex.copy_sign(rest, b), moved)


def _floor_quotient(a: Expr, b: Expr) -> Expr:
    rest, plain = _remainder_toward_zero(a, b), ex.divide(a, b)
    # devices may return 0 for quotients by the largest numbers
    scale = ex.select(ex.compare(">", ex.absolute(b), 1e36), ex.literal(0.0625, a.dtype), 1.0)
    whole = ex.divide(ex.multiply(ex.add("-", a, rest), scale), ex.multiply(b, scale))
    # a multiple of b over b, which the device's division may miss by a little
    whole = ex.call("roundEven", a.dtype, whole)
    quotient = ex.add("-", whole, ex.select(_signs_differ(rest, b), ex.literal(1.0, a.dtype), 0.0))
    quotient = ex.select(ex.compare("==", quotient, 0), ex.copy_sign(quotient, plain), quotient)
    return ex.select(ex.compare("==", b, 0), plain, quotient)


def _widen_half(value: Expr) -> Expr:
    if value.op is Op.LITERAL and isinstance(value.value, float):
        # a number takes part as a half
        return ex.literal(rounded(value.value, dt.float16), dt.float32)
    return ex.cast(value, dt.float32)


# ---- Python operators of GPU values: each builds an expression, in-place ones record a statement ---------


_Rule = Callable[[ex.Operand, ex.Operand], Expr]
_RULES: dict[str, _Rule] = {
    **{symbol: partial(ex.add, symbol) for symbol in ("+", "-")},
    **{symbol: partial(ex.bitwise, symbol) for symbol in ("<<", ">>", "&", "|", "^")},
    "*": ex.multiply,
    "/": ex.divide,
}


def _choose_rule(symbol: str) -> _Rule:
    if symbol == "//":
        return floor_quotient if divides_as_python() else ex.floor_divide
    if symbol == "%":
        return floor_remainder if divides_as_python() else ex.modulo
    if symbol == "**":
        return partial(ex.power, precise=has_flag(ShaderFlags.PRECISE_MATH))
    return _RULES[symbol]


def divides_as_python() -> bool:
    """Whether `//` and `%` of the kernel being traced round down, as Python's."""
    return has_flag(ShaderFlags.PYTHON_DIVISION)


# NumPy's functions behind the operators of its scalars.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def _apply_chosen(symbol: str, *operands: ex.Operand) -> Expr | None:
    """Return what an operator gives by another arithmetic; None by the language's."""
    arithmetic = chosen_arithmetic()
    return None if arithmetic is None else arithmetic.apply(symbol, *operands)


def _is_numpy_scalar(value: object) -> bool:
    return isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0


def _advise_instead(name: str) -> str:
    """Return what does in kernels what a function of NumPy does on the host."""
    # imported here: that module imports this one
    import vkdispatch.codegen as vc

    if hasattr(vc, name):
        return f"use vc.{name}"
    return f"instead: {IN_CODEGEN[name]}" if name in IN_CODEGEN else "use the functions of vc"


# Names that only functions have which plain control flow was rewritten in.
_REWRITTEN = {"_vd_rt", "_vd_f"}


class _LastIndex(threading.local):
    """Where `__index__` refused last: the value, and the instruction of Python that it was asked by."""

    place: tuple[int, CodeType, int] | None = None


_last_index = _LastIndex()


def _explain_unrewritten() -> str:
    """Return ", and " with the reason why the function that asks for a value was not rewritten, or ""."""
    notes = current().truth_notes if is_tracing() else {}
    place = here() if notes else None
    note = notes.get(place.code if place else None) or notes.get(None)
    return f", and {note}" if note else ""


def _place_of(value: object, frame: FrameType) -> tuple[int, CodeType, int]:
    return id(value), frame.f_code, frame.f_lasti


def _is_neutral(symbol: str, kind: dt.DType, other: object, reflected: bool) -> bool:
    """Whether an operator with this number changes neither a value nor its type."""
    if symbol not in ("*", "//") or isinstance(other, Operators) or not ex.is_number(other):
        return False
    if other != 1 or chosen_arithmetic():
        return False
    if symbol == "//":
        return not reflected and ex.is_integer_number(other) and dt.is_integer_dtype(kind)
    return ex.is_integer_number(other) or not (dt.is_integer_dtype(kind) or ex.is_bool_like(kind))


def _check_division(symbol: str, dividend: Expr, divisor: ex.Operand) -> None:
    if symbol == "//":
        range_checks.check_quotient(dividend)
    elif symbol == "%":
        range_checks.check_remainder(dividend, divisor, floors=divides_as_python())


def _components_shape(value: Any) -> tuple[int, ...]:
    """Shape of the components of a vector, complex number or matrix; () of a scalar or a whole buffer."""
    try:
        count = len(value)
    except ArgumentTypeError:
        return ()
    return (count, *_components_shape(value[0]))


class Operators(GpuValue):
    """Arithmetic, comparison and bit operators over `expr`."""

    __slots__ = ()

    def _wrap(self, expr: Expr) -> Self:
        """Make a variable of an expression."""
        raise NotImplementedError

    def _operand(self, other: object, symbol: str) -> ex.Operand:
        if isinstance(other, Operators):
            return other._value()
        if ex.is_number(other):
            return other
        mine = self._value().dtype
        if isinstance(other, complex) and dt.is_complex(mine):
            return ex.as_complex(other, mine)
        if isinstance(other, (bool, np.bool_)) and mine is dt.bool_:
            return ex.literal(bool(other), dt.bool_)
        if isinstance(other, complex):
            raise located(
                ArgumentTypeError,
                f"{symbol}: a {mine.name} and the complex number {other!r}; convert the value with "
                "vc.to_complex64(...)",
            )
        raise mismatch(f"{symbol}: expected a GPU value or a number", other)

    # whether it also computes `other + self`, where `other` is a GPU value of a class above
    _goes_first = False

    def _operate(self, symbol: str, other: object, reflected: bool = False) -> Self:
        """Return `self + other`, or if `reflected` `other + self`, for any binary operator."""
        if isinstance(other, Operators) and other._goes_first and isinstance(other, type(self)):
            return other._operate(symbol, self, not reflected)
        mine = self._value()
        if _is_neutral(symbol, mine.dtype, other, reflected):
            return self
        theirs = self._operand(other, symbol)
        operands = (theirs, mine) if reflected else (mine, theirs)
        chosen = _apply_chosen(symbol, *operands)
        if chosen is not None:
            return self._wrap(chosen)
        if symbol in MIRRORED:
            range_checks.check_comparison(symbol, *operands)
            return self._wrap(ex.compare(symbol, *operands))
        if not reflected and not chosen_arithmetic():
            _check_division(symbol, mine, theirs)
        expr = _choose_rule(symbol)(*operands)
        if expr.dtype is not mine.dtype:
            range_checks.check_conversion(symbol, mine, expr.dtype)
        elif isinstance(theirs, Expr) and expr.dtype is not theirs.dtype:
            range_checks.check_conversion(symbol, theirs, expr.dtype)
        return self._wrap(expr)

    def _update(self, symbol: str, result: Self) -> Self:
        """Return what a name holds after an in-place operator: the result, as Python's numbers do."""
        return result

    # -- where Python or NumPy want a value now

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute `np.float32(2) * x`, whose left side would do so itself; refuse NumPy's other functions."""
        name = ufunc.__name__
        if method == "__call__" and name in _OPERATORS and not options:
            # NumPy's scalars become Python's, which leave the operation to us
            values = [value.item() if _is_numpy_scalar(value) else value for value in inputs]
            if not any(isinstance(value, np.ndarray) for value in values):
                return _OPERATORS[name](*values)
        advice = _advise_instead(name)
        if method == "reduce":
            name += ".reduce"
            advice = "write a loop, or call vd.sum(x) and its like before the kernel"
        raise located(
            ArgumentTypeError,
            f"np.{name}: NumPy computes on the host and does not accept GPU values; {advice}",
        )

    def _refuse_number(self, what: str) -> NoReturn:
        raise located(
            ArgumentTypeError,
            f"{what}: the number behind a GPU value is not known while the kernel is traced"
            f"{_explain_unrewritten()}; convert it with .to_dtype(...), and use the functions of vc, not of "
            "math",
        )

    def __int__(self) -> int:
        self._refuse_number("int()")

    def __float__(self) -> float:
        self._refuse_number("float()")

    def __complex__(self) -> complex:
        self._refuse_number("complex()")

    def __index__(self) -> int:
        _last_index.place = _place_of(self, sys._getframe(1))
        raise located(
            ArgumentTypeError,
            "range() or an index: the number behind a GPU value is not known while the kernel is traced"
            f"{_explain_unrewritten()}, so that Python cannot choose an element of a list, text or array by "
            "it, nor count to it: pass the elements as a buffer, make them part of the kernel by "
            "vc.constant_array(np.array(...)), or use conditions",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        """Be an element, or the components, in an array of objects; refuse to be an index."""
        # NumPy asks for an index first, forgets the error, and then asks for an array of indices
        if _last_index.place == _place_of(self, sys._getframe(1)):
            raise located(
                ArgumentIndexError,
                "a NumPy array cannot be indexed by a GPU value, whose number is not known while the kernel "
                "is traced: vc.constant_array(array)[...] makes the array part of the kernel; or pass it as "
                "a buffer",
            )
        if dtype is not None and np.dtype(dtype).kind != "O":
            raise located(
                ArgumentTypeError,
                f"NumPy computes on the host: {np.dtype(dtype)} cannot take a GPU value, which is not known "
                "while the kernel is traced; use the functions of vc, and .to_dtype(...) to convert",
            )
        whole = np.empty(_components_shape(self), object)
        for position in np.ndindex(whole.shape):
            part: Any = self
            for index in position:
                part = part[index]
            whole[position] = part
        return whole

    def __hash__(self) -> int:
        raise located(
            ArgumentTypeError,
            "a GPU value has no hash, since its number is not known while the kernel is traced: it cannot be "
            "a key of a dict, a member of a set, or an argument of a function that remembers results",
        )

    # -- + - * / // % ** @

    def __add__(self, other: object) -> Self:
        return self._operate("+", other)

    def __radd__(self, other: object) -> Self:
        return self._operate("+", other, reflected=True)

    def __sub__(self, other: object) -> Self:
        return self._operate("-", other)

    def __rsub__(self, other: object) -> Self:
        return self._operate("-", other, reflected=True)

    def __mul__(self, other: object) -> Self:
        return self._operate("*", other)

    def __rmul__(self, other: object) -> Self:
        return self._operate("*", other, reflected=True)

    def __matmul__(self, other: object) -> Self:
        if not isinstance(other, Operators):
            raise located(ArgumentTypeError, f"@: expected a GPU matrix or vector, got {other!r}")
        return self._wrap(ex.matmul(self._value(), other._value()))

    def __truediv__(self, other: object) -> Self:
        return self._operate("/", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._operate("/", other, reflected=True)

    def __floordiv__(self, other: object) -> Self:
        return self._operate("//", other)

    def __rfloordiv__(self, other: object) -> Self:
        return self._operate("//", other, reflected=True)

    def __mod__(self, other: object) -> Self:
        return self._operate("%", other)

    def __rmod__(self, other: object) -> Self:
        return self._operate("%", other, reflected=True)

    def __pow__(self, other: object) -> Any:
        if ex.is_number(other) and other == 0 and not chosen_arithmetic():
            return 1
        return self._operate("**", other)

    def __rpow__(self, other: object) -> Self:
        return self._operate("**", other, reflected=True)

    # -- << >> & | ^ ~

    def __lshift__(self, other: object) -> Self:
        return self._operate("<<", other)

    def __rlshift__(self, other: object) -> Self:
        return self._operate("<<", other, reflected=True)

    def __rshift__(self, other: object) -> Self:
        return self._operate(">>", other)

    def __rrshift__(self, other: object) -> Self:
        return self._operate(">>", other, reflected=True)

    def __and__(self, other: object) -> Self:
        return self._operate("&", other)

    def __rand__(self, other: object) -> Self:
        return self._operate("&", other, reflected=True)

    def __or__(self, other: object) -> Self:
        return self._operate("|", other)

    def __ror__(self, other: object) -> Self:
        return self._operate("|", other, reflected=True)

    def __xor__(self, other: object) -> Self:
        return self._operate("^", other)

    def __rxor__(self, other: object) -> Self:
        return self._operate("^", other, reflected=True)

    def __neg__(self) -> Self:
        chosen = _apply_chosen("-", self._value())
        return self._wrap(ex.negate(self._value()) if chosen is None else chosen)

    def __pos__(self) -> Self:
        return self

    def __invert__(self) -> Self:
        chosen = _apply_chosen("~", self._value())
        return self._wrap(ex.invert(self._value()) if chosen is None else chosen)

    def __abs__(self) -> Self:
        chosen = _apply_chosen("abs", self._value())
        if chosen is None:
            range_checks.check_difference("abs", self._value())
            chosen = ex.absolute(self._value())
        return self._wrap(chosen)

    # -- comparison

    def __lt__(self, other: object) -> Self:
        return self._operate("<", other)

    def __le__(self, other: object) -> Self:
        return self._operate("<=", other)

    def __gt__(self, other: object) -> Self:
        return self._operate(">", other)

    def __ge__(self, other: object) -> Self:
        return self._operate(">=", other)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return self._operate("==", other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._operate("!=", other)

    def __bool__(self) -> bool:
        place, note = here(), _explain_unrewritten()
        if place is not None and _REWRITTEN & {*place.code.co_freevars, *place.code.co_cellvars}:
            raise located(
                ArgumentValueError,
                "a GPU value has no truth value while the kernel is traced, and here Python itself asks for "
                "one: comparisons of whole tuples and lists, sorted, list.index and their like do; compare "
                "the elements one by one",
            )
        raise located(
            ArgumentValueError,
            f"a GPU value has no truth value while the kernel is traced{note}: instead of a Python if, "
            "while, and, or, not use vc.if_block / vc.while_block, vc.all, vc.any and ~"
            + ("" if note else ", or move the condition into a plain function, whose source is rewritten"),
        )

    # -- in place

    def __iadd__(self, other: object) -> Self:
        return self._update("+", self + other)

    def __isub__(self, other: object) -> Self:
        return self._update("-", self - other)

    def __imul__(self, other: object) -> Self:
        return self._update("*", self * other)

    def __itruediv__(self, other: object) -> Self:
        return self._update("/", self / other)

    def __ifloordiv__(self, other: object) -> Self:
        return self._update("//", self // other)

    def __imod__(self, other: object) -> Self:
        return self._update("%", self % other)

    def __ipow__(self, other: object) -> Self:
        power = self**other
        if isinstance(power, Operators):
            return self._update("**", self._wrap(power.expr))
        return self._update("**", self._wrap(ex.storable(power, self._value().dtype)))

    def __ilshift__(self, other: object) -> Self:
        return self._update("<<", self << other)

    def __irshift__(self, other: object) -> Self:
        return self._update(">>", self >> other)

    def __iand__(self, other: object) -> Self:
        return self._update("&", self & other)

    def __ior__(self, other: object) -> Self:
        return self._update("|", self | other)

    def __ixor__(self, other: object) -> Self:
        return self._update("^", self ^ other)


# ---- Assignments to places: elements, registers and their components -------------------------------------


def assign(place: Expr, value: object) -> None:
    """Store a value in a place."""
    update = value._pending_update() if isinstance(value, GpuValue) else None
    if isinstance(value, GpuValue) and update is not None:
        if is_same_place(update[0], place):
            _check_update(place, update[1], value.expr)
        else:
            update = None
    memory = root_of(place).value
    if isinstance(memory, Storage):
        for number in value._extremes() if isinstance(value, GpuValue) else (value,):
            if ex.is_number(number):
                ex.check_stored(number, dt.component_type(memory.dtype))
    try:
        stored = parse_stored_value(value, place.dtype)
    except ArgumentValueError as error:
        held = root_of(place)
        storage = held.value
        if isinstance(storage, Storage) and storage.dtype is not held.dtype:
            error.add_note(
                f"The buffer holds {storage.dtype.name}; kernels read and write its elements as "
                f"{held.dtype.name}."
            )
        raise
    if is_constant(root_of(place)):
        raise located(ArgumentValueError, "the elements of a constant array cannot be assigned to")
    if not is_place(place):
        of_array = dt.is_array(root_of(place).dtype)
        raise located(
            ArgumentValueError,
            "the arguments of a kernel cannot be assigned to; of an array, a[:] is a copy"
            if of_array
            else "this value cannot be assigned to; copy it with .to_register() and assign to that",
        )
    recorder = current()
    if recorder.aliasing and is_same_place(stored, place):
        # buf[i] += x ends with buf[i] = buf[i]
        return
    if update is not None and (stored is update[0] or _combines(stored, update[1], update[0])):
        recorder.update(place, stored)
    else:
        recorder.store(place, stored)
    recorder.note_copy(place)


def update_in_place(place: Expr, symbol: str, value: Expr) -> None:
    """Record `place op= x`, whose result is `value`."""
    _check_update(place, symbol, value)
    if _combines(value, symbol, place):
        current().store(place, value.args[1], symbol)
    elif value is not place:
        current().store(place, value)


def _combines(value: Expr, symbol: str, place: Expr) -> bool:
    """Whether a value is one operation on what a place holds."""
    if value.op is not Op.BINARY or value.value != symbol:
        return False
    left = value.args[0]
    return left is place or (left.op is Op.REGISTER and left.value is place.value)


def _check_update(place: Expr, symbol: str, value: Expr) -> None:
    if symbol == "/" and dt.is_integer_dtype(place.dtype):
        raise located(ArgumentValueError, f"/=: the quotient does not go into {place.dtype.name}; use //=")
    if value.dtype is not place.dtype:
        raise located(
            ArgumentTypeError,
            f"{symbol}=: the result is {value.dtype.name} and does not go into {place.dtype.name}; "
            + (
                "to count, start with a number, such as .to_dtype(vd.int32).to_register()"
                if place.dtype is dt.bool_
                else f"convert the operand with .to_dtype(vd.{place.dtype.name})"
            ),
        )
