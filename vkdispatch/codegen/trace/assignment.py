"""Assignments to places: elements, registers and their components."""

from vkdispatch.base.dtype import bool_, component_type, is_array, is_integer_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import GpuValue, parse_stored_value
from vkdispatch.compiler.ir import Expr, Op, Storage, is_constant, is_place, root_of
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.nodes import is_same_place


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
                ex.check_stored(number, component_type(memory.dtype))
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
        of_array = is_array(root_of(place).dtype)
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
    if symbol == "/" and is_integer_dtype(place.dtype):
        raise located(ArgumentValueError, f"/=: the quotient does not go into {place.dtype.name}; use //=")
    if value.dtype is not place.dtype:
        raise located(
            ArgumentTypeError,
            f"{symbol}=: the result is {value.dtype.name} and does not go into {place.dtype.name}; "
            + (
                "to count, start with a number, such as .to_dtype(vd.int32).to_register()"
                if place.dtype is bool_
                else f"convert the operand with .to_dtype(vd.{place.dtype.name})"
            ),
        )
