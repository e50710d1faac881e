"""The operations of scans, the arguments of their kernels, and how results are stored."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch import control_flow
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.families.kernels import Argument, buffers, numbers
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.values import (
    integer_limits,
    is_expression,
    join_words,
    parse_infinity,
    split_words,
    view_type,
)

# ---- Results of scans ------------------------------------------------------------------------------------
#
# Neighbouring elements are stored as vectors, unless an output map is between.


_WIDEST = 16  # bytes of the widest store


def choose_result_view(together: int, sink: Sink) -> tuple[dt.DType, int] | None:
    """Return the dtype and the number of elements of a vector store, or None to store one by one."""
    if sink.mapping is not None or dt.component_type(sink.out_type).item_size < 4:
        return None
    count = min(together, _WIDEST // sink.out_type.item_size)
    view = view_type(sink.out_type, count) if count > 1 else None
    return None if view is None else (view, count)


@record(eq=False)
class ResultStore:
    """Where results go, in a trace.

    Attributes
    ----------
    sink
        How an element is stored.
    view
        What `choose_result_view` gives.
    result, result_view
        The buffer, and a view of it as `view` says.
    arguments
        The arguments of the sink.
    together
        Elements of a vector.
    """

    sink: Sink
    view: tuple[dt.DType, int] | None
    result: Any
    result_view: Any
    arguments: Sequence[Any]
    together: int

    def store_vector(self, position: Any, row: Sequence[Any]) -> None:
        """Store a vector at a position, which counts vectors."""
        if self.view is None:
            for i, value in enumerate(row):
                self.store_element(position * self.together + i if self.together > 1 else position, value)
            return
        view, count = self.view
        steps = self.together // count
        kind = self.sink.out_type
        for step in range(steps):
            part = [value.to_dtype(kind) for value in row[step * count : (step + 1) * count]]
            words = [word for value in part for word in split_words(value)]
            place = position * steps + step if steps > 1 else position
            self.result_view[place] = join_words(view, words)

    def store_element(self, index: Any, value: Any) -> None:
        """Store an element."""
        self.sink.store(self.result, self.arguments, index, value)


# ---- The arguments of scan kernels -----------------------------------------------------------------------
#
# Declared, unpacked in a trace and passed to a launch, always in one order.
#
# results (and a view of them); partial results, and their flags; words of a look-back; flags of segments;
# arguments of the source, and views of them; arguments of the sink; numbers


class Form(Protocol):
    """The part of a kernel's form that decides which arguments it has."""

    @property
    def mode(self) -> str:
        """What the kernel does: "scan", "reduce" or "lookback"."""

    @property
    def together(self) -> int:
        """Elements of a vector."""

    @property
    def flag_type(self) -> dt.DType | None:
        """The dtype of the flags that mark where segments begin; None without segments."""

    @property
    def is_carried(self) -> bool:
        """Whether the kernel reads partial results of what comes before."""

    @property
    def is_segmented(self) -> bool:
        """Whether segments begin elsewhere than at the first element."""

    @property
    def board(self) -> tuple[tuple[str, dt.DType], ...]:
        """Names and dtypes of the buffers of a look-back."""


def declare_arguments(
    form: Form, kind: dt.DType, source: Source, sink: Sink, names: Sequence[str]
) -> list[Argument | list[Argument]]:
    """Return a kernel's arguments; `kind` is the dtype that is combined, `names` those of its numbers."""
    has_results, has_partials = form.mode != "reduce", form.mode == "reduce" or form.is_carried
    view = choose_result_view(form.together, sink)
    return [
        *buffers(
            scan_result=sink.out_type if has_results else None,
            scan_result_view=view[0] if has_results and view else None,
            scan_partials=kind if has_partials else None,
            scan_partial_flags=dt.uint32 if has_partials and form.is_segmented else None,
        ),
        buffers(**dict(form.board)),
        *buffers(scan_flags=form.flag_type),
        source.parameters,
        buffers(**{f"scan_{source.names[at]}_{word.name}": word for at, word in source.views}),
        sink.parameters if has_results else [],
        numbers(*(f"scan_{name}" for name in names)),
    ]


@record(eq=False)
class Variables:
    """The variables of a kernel that is being traced. Those that it does not have are None or empty.

    Attributes
    ----------
    store
        Where results go.
    partials, partial_flags
        Partial results, and whether a segment begins in each.
    board
        The buffers of a look-back.
    flags
        Where segments begin.
    arguments, views
        The arguments of the source, and views of them.
    number
        The numbers, by name.
    """

    store: ResultStore
    partials: Any
    partial_flags: Any
    board: tuple[Any, ...]
    flags: Any
    arguments: tuple[Any, ...]
    views: tuple[Any, ...]
    number: dict[str, Any]


def name_variables(form: Form, sink: Sink, variables: Sequence[Any], names: Sequence[str]) -> Variables:
    """Return the variables of `declare_arguments` by their meaning."""
    result, result_view, partials, partial_flags, *rest = variables
    board, flags, arguments, views, mapping, values = rest
    view = choose_result_view(form.together, sink)
    store = ResultStore(sink, view, result, result_view, mapping, form.together)
    number = dict(zip(names, values, strict=True))
    return Variables(store, partials, partial_flags, board, flags, arguments, views, number)


def launch_values(
    form: Form,
    x: Operand,
    output: Output,
    result: Buffer[Any],
    own: Sequence[Buffer[Any]],
    flags: Buffer[Any] | None,
    given_numbers: Sequence[int],
) -> list[Any]:
    """Return what a kernel is launched with; `own` are partial results, or the board of a look-back."""
    values = [*own, *([] if flags is None else [flags]), *x.arguments, *x.views]
    if form.mode != "reduce":
        results = [result, result] if choose_result_view(form.together, output.sink) else [result]
        values = [*results, *values, *output.arguments]
    return [*values, *given_numbers]


# ---- The operations of scans: any associative function, applied in the order of the elements -------------


@record
class ScanOp:
    """An associative operation, which keeps the order of its operands.

    Attributes
    ----------
    name
        Its name in names of kernels and in messages.
    function
        Combines two GPU values, the earlier one first.
    kind
        The dtype that it combines.
    identity
        Components of the identity, as numbers; None if there is none.
    is_expression
        Whether the function is one expression of its operands.
    is_commutative
        Whether the operands may be exchanged, apart from rounding.
    edition
        The version of the function, by what it reads from outside.
    """

    name: str
    function: Callable[[Any, Any], Any]
    kind: dt.DType
    identity: tuple[Any, ...] | None
    is_expression: bool
    is_commutative: bool = False
    edition: Any = None

    def combine(self, x: Any, y: Any) -> Any:
        """Return two values combined, in a register."""
        if self.is_expression:
            return self._apply(x, y).to_register()
        register = vc.new_register(self.kind)
        with vc.scope_block():
            register[:] = self._apply(x.to_register(), y.to_register())
        return register

    def _apply(self, x: Any, y: Any) -> Any:
        result = control_flow.prepare_function(self.function)(x, y)
        if isinstance(result, vc.ShaderVariable) and result.var_type is not self.kind:
            return result.to_dtype(self.kind)
        return result

    def neutral(self) -> Any:
        """Return the identity as a GPU value."""
        assert self.identity is not None
        return vc.to_dtype(self.kind, *self.identity)


def make_operation(
    name: str,
    function: Callable[[Any, Any], Any],
    kind: dt.DType,
    identity: tuple[Any, ...] | None,
    *,
    is_commutative: bool = False,
    edition: Any = None,
) -> ScanOp:
    """Make an operation. It traces the function once, to find out whether it is an expression.

    Raises
    ------
    TypeError, ValueError
        Tracing the function fails.
    """
    who = f"scan {getattr(function, '__name__', 'scan')!r}"
    is_single = is_expression(function, kind, who)
    return ScanOp(name, function, kind, identity, is_single, is_commutative, edition)


def parse_identity(identity: Any, kind: dt.DType) -> tuple[Any, ...] | None:
    """Return the components of an identity of dtype `kind`.

    Parameters
    ----------
    identity
        A number for all components; "inf" or "-inf"; components as `Buffer.read` gives them; or None.

    Raises
    ------
    TypeError, ValueError
        It is none of these.
    """
    if identity is None:
        return None
    if isinstance(identity, str):
        identity = parse_infinity(identity, kind)
    count = dt.component_count(kind)
    try:
        array = np.asarray(identity)
        numbers = np.asarray(array, np.complex128 if dt.is_complex(kind) else np.result_type(array, np.int8))
    except (TypeError, ValueError):
        numbers = np.zeros(0, object)
    if numbers.dtype.kind not in "iufc" or not numbers.size:
        raise ArgumentTypeError(f"identity: expected a number, 'inf' or '-inf', got {identity!r}")
    if numbers.dtype.kind == "c" and not dt.is_complex(kind):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass a real number")
    if dt.is_complex(kind):
        if numbers.size != 1:
            raise ArgumentValueError(f"identity: expected one number for {kind.name}, got {identity!r}")
        number = complex(numbers.reshape(-1)[0])
        return (number.real, number.imag)
    if dt.is_matrix(kind) and numbers.size == 1 and numbers.reshape(-1)[0] != 0:
        raise ArgumentValueError(
            f"identity: expected all components of a {kind.name}, such as numpy.eye({kind.child_count}), "
            f"got {identity!r}"
        )
    if numbers.size not in (1, count):
        raise ArgumentValueError(
            f"identity: expected {count} components for {kind.name}, got {numbers.size} of them"
        )
    flat = np.broadcast_to(numbers.reshape(-1), count) if numbers.size == 1 else numbers.reshape(-1)
    return tuple(_convert_number(value.item(), dt.component_type(kind), identity) for value in flat)


def _convert_number(value: Any, kind: dt.DType, identity: Any) -> Any:
    if dt.is_float_dtype(dt.compute_type(kind)):
        return float(value)
    low, high = integer_limits(kind)
    if isinstance(value, float) and math.isinf(value):
        return high if value > 0 else low
    if value != int(value):
        raise ArgumentValueError(f"identity: {identity!r} is not a {kind.name}; pass an integer")
    if not low <= int(value) <= high:
        raise ArgumentValueError(f"identity: {identity!r} does not fit in {kind.name}")
    return int(value)


def largest(a: Any, b: Any) -> Any:
    """Return the larger of two values as `numpy.maximum`: NaN if one is NaN, the first of equal ones."""
    first = a >= b
    return vc.select(vc.any(first, vc.isnan(a)) if dt.is_float_dtype(a.var_type) else first, a, b)


def smallest(a: Any, b: Any) -> Any:
    """Return the smaller of two values as `numpy.minimum`: NaN if one is NaN, the first of equal ones."""
    first = a <= b
    return vc.select(vc.any(first, vc.isnan(a)) if dt.is_float_dtype(a.var_type) else first, a, b)


# The function and the identity of each.
ACCUMULATIONS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cumsum": (operator.add, 0),
    "cumprod": (operator.mul, 1),
    "cummax": (largest, "-inf"),
    "cummin": (smallest, "inf"),
}


def check_dtype(name: str, kind: dt.DType) -> None:
    """Raise ValueError if one of `ACCUMULATIONS` is not defined for a dtype."""
    if name in ("cummax", "cummin") and (dt.is_complex(kind) or dt.is_matrix(kind) or not dt.is_scalar(kind)):
        raise ArgumentValueError(
            f"x: {kind.name} has no order, which {name} needs; map it to a number, such as its magnitude"
        )
    if name == "cumprod" and dt.is_matrix(kind):
        raise ArgumentValueError(
            f"x: the product of {kind.name} is ambiguous; define it: @vd.scan() def product(a: ..., b: ...): "
            "return a @ b"
        )
