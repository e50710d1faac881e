"""From a call of an element-wise function to an expression: operands, dtypes and shapes, by NumPy's rules."""

import math
import sys
import warnings
from collections.abc import Sequence
from os.path import dirname
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentOverflowError, ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import pause_recording
from vkdispatch.families.kernels import note_bad_starts
from vkdispatch.numpy.core import expressions, memory
from vkdispatch.numpy.core.kernels import as_buffer, gather
from vkdispatch.numpy.core.operations import COPY, OPERATIONS

apply_known = native.apply_known
_PACKAGE = dirname(dirname(dirname(__file__)))
_INT32 = np.dtype(np.int32)
_NEGATIVE_POWERS = "power: integers to negative integer powers are not allowed"
_INTEGER_LIMITS = {
    np.dtype(kind): (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in "bhilqBHILQ"
}


def broadcast_shapes(shapes: Sequence[memory.Shape], name: str) -> memory.Shape:
    """Return the shape to which shapes broadcast; `name` is the function in messages. Raises ValueError."""
    first = shapes[0]
    if all(shape == first or not shape for shape in shapes[1:]):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except RuntimeError as error:
        raise ArgumentValueError(f"{name}: more axes than NumPy broadcasts: {error}") from None
    except ValueError:
        text = " ".join(str(shape) for shape in shapes)
        raise ArgumentValueError(
            f"{name}: operands could not be broadcast together with shapes {text}"
        ) from None


def number_as(value: Any, kind: memory.Kind, name: str = "value") -> Any:
    """Return a number of Python or NumPy as a Python number that a dtype holds.

    Raises OverflowError for an integer that the dtype cannot represent, ValueError for NaN among integers,
    TypeError for a complex number in a real place.
    """
    if kind.kind in "iu":
        if value != value:
            raise ArgumentValueError(f"{name}: cannot convert NaN to {kind}")
        number = int(value)
        low, high = _INTEGER_LIMITS[kind]
        if not low <= number <= high:
            raise ArgumentOverflowError(f"{name}: Python integer {number} out of bounds for {kind}")
        return number
    if kind.kind == "b":
        return bool(value)
    try:
        return complex(kind.type(value)) if kind.kind == "c" else float(kind.type(value))
    except OverflowError as error:
        raise ArgumentOverflowError(f"{name}: {error}, which {kind} is") from None


def describe_operand(value: object) -> Any:
    """Return what NumPy's promotion takes for an operand: the dtype, or the type of a Python number."""
    if isinstance(value, (expressions.Node, memory.View, np.generic)):
        return value.dtype
    if isinstance(value, bool):
        return memory.bool_
    for kind in (int, float, complex):
        if isinstance(value, kind):
            return kind
    return None


def promote(*kinds: Any) -> memory.Kind:
    """Return the dtype to which dtypes, Python numbers and types of such promote. Raises as `np.result_type`.

    Real and complex numbers get the default dtype where no dtype asks for a wider one.
    """
    found = np.result_type(*(kind() if isinstance(kind, type) else kind for kind in kinds))
    is_wide = any(isinstance(kind, np.dtype) and kind in memory.NARROWER for kind in kinds)
    if is_wide or found not in memory.NARROWER:
        return found
    return memory.default_real() if found == memory.float64 else memory.default_complex()


def apply_ufunc(
    name: str, operands: tuple[Any, ...], dtype: memory.Kind | None = None, casting: Any = "same_kind"
) -> expressions.Node:
    """Return the expression of a ufunc for values and numbers.

    Parameters
    ----------
    operands
        Expressions, views, and numbers of Python or NumPy; at least one is no number.
    dtype
        The dtype with which to compute; None: as NumPy chooses.
    casting
        How operands may be converted to it.

    Raises
    ------
    TypeError
        The function does not take the operands' dtypes.
    ValueError
        Shapes do not broadcast.
    """
    if dtype is None:
        known = apply_known(name, operands)
        if known is not None:
            return known
    described: list[Any] = []
    shapes = []
    size = 1
    for operand in operands:
        if type(operand) is expressions.Node or type(operand) is memory.View:
            described.append(operand.dtype.num)
            shapes.append(operand.shape)
            size = operand.size
        else:
            described.append(type(operand))
    if dtype is None:
        key = (name, *described)
        loop = loops.get(key) or _resolve(name, key, operands)
    else:
        loop = _resolve_as(name, operands, dtype, casting)
    shape = shapes[0]
    for other in shapes:
        if other != shape:
            shape = broadcast_shapes(shapes, name)
            size = math.prod(shape)
            break
    values: Sequence[Any] = operands
    if len(shapes) < len(operands):
        values = make_values(operands, loop.kinds, name)
    if name == "power" and size and loop.dtype.kind == "i":
        _check_exponent(values[1])
    return expressions.make_node(loop, tuple(values), shape, size)


def _check_exponent(exponent: Any) -> None:
    """Refuse powers of integers with a negative exponent; in an array the device looks for it."""
    if type(exponent) is expressions.Node or type(exponent) is memory.View:
        if exponent.dtype.kind == "i":
            with pause_recording():
                wide = memory.int64 if exponent.dtype == memory.int64 else _INT32
                view = gather(expressions.evaluate(cast(exponent, wide)))
                note_bad_starts("power", as_buffer(view, (view.size,)), name=_NEGATIVE_POWERS)
    elif exponent < 0:
        raise ArgumentValueError(f"{_NEGATIVE_POWERS}, got the exponent {exponent}; use float_power")


# Loops by ufunc and operands: dtype numbers, and types of numbers.
loops: dict[tuple[Any, ...], expressions.Loop] = {}


def _resolve(name: str, key: tuple[Any, ...], operands: Sequence[Any]) -> expressions.Loop:
    kinds = [describe_operand(operand) for operand in operands]
    real = any(isinstance(kind, np.dtype) and kind.kind in "fc" for kind in kinds)
    try:
        is_wide = real or memory.default_real() == memory.float64
        found = memory.resolve(getattr(np, name), tuple(kinds), is_wide)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
    for kind in found:
        memory.kernel_type(kind)  # a number of NumPy may have a type that arrays do not
    loop = expressions.find_loop(OPERATIONS[name], found[:-1], found[-1])
    # kept is what the default dtype does not decide, and what has no values to check
    if real or not (any(kind.kind in "fc" for kind in found) or (name == "power" and loop.dtype.kind == "i")):
        loops[key] = loop
    return loop


def _resolve_as(name: str, operands: Sequence[Any], dtype: memory.Kind, casting: Any) -> expressions.Loop:
    """Find the loop of a ufunc that computes with a dtype."""
    ufunc: np.ufunc = getattr(np, name)
    kinds = [describe_operand(operand) for operand in operands]
    signature = (*(None,) * ufunc.nin, dtype)
    try:
        found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), signature=signature, casting=casting)
    except TypeError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
    return expressions.find_loop(OPERATIONS[name], tuple(found[:-1]), found[-1])


def make_operation(
    operation: expressions.Operation,
    operands: Sequence[Any],
    kinds: Sequence[memory.Kind],
    shape: memory.Shape,
    dtype: memory.Kind,
) -> expressions.Node:
    """Return the expression of an operation whose dtypes are known. Numbers are converted to theirs."""
    values = make_values(operands, kinds, operation.name)
    loop = expressions.find_loop(operation, tuple(kinds), dtype)
    return expressions.make_node(loop, values, shape, math.prod(shape))


def make_values(operands: Sequence[Any], kinds: Sequence[memory.Kind], name: str) -> tuple[Any, ...]:
    """Return operands with numbers converted to their dtypes. Raises as `number_as`."""
    return tuple(
        each
        if type(each) is expressions.Node or type(each) is memory.View or each is expressions.INDEX
        else number_as(each, kind, name)
        for each, kind in zip(operands, kinds, strict=True)
    )


def cast(value: expressions.Value, dtype: memory.Kind) -> expressions.Value:
    """Return the expression of a value with another dtype; the same value if it has it.

    Warns as NumPy where imaginary parts are lost.
    """
    if value.dtype == dtype:
        return value
    if value.dtype.kind == "c" and dtype.kind not in "cb":
        _warn_of_lost_parts()
    loop = expressions.find_loop(COPY, (dtype,), dtype)
    return expressions.make_node(loop, (value,), value.shape, value.size)


def _warn_of_lost_parts() -> None:
    level, frame = 3, sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    native.forbid_repeating()  # the warning would come once
    text = "Casting complex values to real discards the imaginary part"
    warnings.warn(np.exceptions.ComplexWarning(text), stacklevel=level)


def broadcast_to(value: expressions.Value, shape: memory.Shape) -> memory.View:
    """Return a view that repeats a value along new or single axes. Raises ValueError if it cannot."""
    view = expressions.evaluate_apart(value)
    if broadcast_shapes([view.shape, shape], "broadcast_to") != shape:
        raise ArgumentValueError(f"broadcast_to: the shape {view.shape} does not broadcast to {shape}")
    strides = memory.stretch(shape, view.shape, view.strides)
    return memory.View(view.storage, shape, view.dtype, view.offset, strides)


def refuse_read_only(target: memory.View) -> None:
    """Raise ValueError for a view that must not be written."""
    if memory.is_read_only(target):
        raise ArgumentValueError(
            "assignment destination is read-only: a view of broadcast_to or diagonal; copy it first"
        )


def assign(target: memory.View, value: Any, name: str = "value") -> None:
    """Write a value, which may broadcast, or a number, to the elements of a view.

    Raises
    ------
    ValueError
        The value does not broadcast to the view's shape.
    TypeError
        The storage is read-only.
    """
    kind = target.dtype
    refuse_read_only(target)
    if type(value) is not expressions.Node and type(value) is not memory.View:
        number = value if kind.kind in "fc" else number_as(value, kind, name)
        source: expressions.Value = make_operation(COPY, (number,), (kind,), target.shape, kind)
        expressions.evaluate_into(source, target)
        return
    expressions.evaluate_into(cast(fit_shape(value, target.shape, name), kind), target)


def fit_shape(value: expressions.Value, shape: memory.Shape, name: str) -> expressions.Value:
    """Return a value as it is written to elements of a shape: broadcast, or without leading axes of length 1.

    Raises ValueError if it does not broadcast.
    """
    more = len(value.shape) - len(shape)
    if more > 0 and value.shape[:more] == (1,) * more:
        view = expressions.evaluate_apart(value)
        value = memory.View(view.storage, view.shape[more:], view.dtype, view.offset, view.strides[more:])
    if value.shape == shape:
        return value
    if broadcast_shapes([value.shape, shape], name) != shape:
        raise ArgumentValueError(f"{name}: could not broadcast from shape {value.shape} into shape {shape}")
    return broadcast_to(value, shape)
