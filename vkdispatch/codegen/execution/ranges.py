"""Ranges that a kernel counts through on the GPU."""

import builtins
from collections.abc import Iterator
from typing import Any, NoReturn

from vkdispatch.base.dtype import DType, bool_, int32, is_integer_dtype, is_scalar, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.codegen.trace.range_checks import check_start
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.literals import fits
from vkdispatch.compiler.ir.location import located

__all__ = ["range"]


class GpuRange:
    """start, start + step, ... up to, without it, stop: counted on the GPU by the for loop over it."""

    def __init__(self, *bounds: Any) -> None:
        if len(bounds) == 1 and type(bounds[0]).__name__ == "range":
            known = bounds[0]
            bounds = (known.start, known.stop, known.step)
        if not 1 <= len(bounds) <= 3:
            raise located(ArgumentTypeError, f"range: expected 1 to 3 bounds, got {len(bounds)}")
        if len(bounds) == 1:
            bounds = (0, bounds[0])
        self.start, self.stop, self.step = bounds if len(bounds) == 3 else (*bounds, 1)
        for name, bound in (("start", self.start), ("stop", self.stop), ("step", self.step)):
            _check(name, bound)
        if ex.is_integer_number(self.step) and self.step == 0:
            raise located(ArgumentValueError, "range: step must not be zero")
        self.is_reversed = False

    def bounds(self) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step in the type of the counter.

        That is uint32 where every bound of the GPU is unsigned and no other is negative, and int32 otherwise.
        """
        values = (self.start, self.stop, self.step)
        known = [int(value) for value in values if ex.is_integer_number(value)]
        types = [value._value().dtype for value in values if isinstance(value, ShaderVariable)]
        unsigned = (
            bool(types) and all(kind.name.startswith("u") for kind in types) and min(known, default=0) >= 0
        )
        kind = uint32 if unsigned else int32
        if unsigned and isinstance(self.start, ShaderVariable):
            check_start(self.start._value())
        for value in known:
            if not -(1 << 31) <= value < (1 << 32 if unsigned else 1 << 31):
                raise located(ArgumentValueError, f"range: {value} does not fit in {kind.name}")
        if len(known) == len(values):
            check_counter("range", kind, *known)
        start, stop, step = (
            ex.cast(value._value(), kind) if isinstance(value, ShaderVariable) else ex.literal(value, kind)
            for value in values
        )
        return start, stop, step

    def __reversed__(self) -> "GpuRange":
        turned = GpuRange(self.start, self.stop, self.step)
        turned.is_reversed = not self.is_reversed
        return turned

    def _refuse(self) -> NoReturn:
        raise located(
            UsageError,
            "a range of the GPU can only be looped over by a for statement of a kernel in plain Python; here "
            "Python wants its numbers while the kernel is traced",
        )

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def __getitem__(self, index: Any) -> Any:
        self._refuse()

    def __contains__(self, value: object) -> bool:
        self._refuse()


def find_ends(start: Expr, stop: Expr, step: Expr) -> Expr:
    """Return the sum of the first and the last number of a range that is not empty; it wraps around."""
    kind = start.dtype

    def combine(symbol: str, left: Expr, right: Expr) -> Expr:
        return Expr(Op.BINARY, left.dtype, (left, right), symbol)

    def measure(first: Expr, last: Expr, distance: Expr) -> Expr:
        """Return the steps between the first number and the last, times their distance."""
        span = combine("-", combine("-", ex.cast(last, uint32), ex.cast(first, uint32)), one)
        return combine("*", combine("/", span, distance), distance)

    if step.op is Op.LITERAL and step.value in (1, -1):
        return combine("-", combine("+", start, stop), step)
    one, zero, size = ex.literal(1, uint32), ex.literal(0, uint32), ex.cast(step, uint32)
    if step.op is not Op.LITERAL:
        # with a step of zero the loop does not run
        is_zero = Expr(Op.COMPARE, bool_, (size, zero), "==")
        size = Expr(Op.SELECT, uint32, (is_zero, one, size))
    up = combine("+", ex.cast(start, uint32), measure(start, stop, size))
    down = combine("-", ex.cast(start, uint32), measure(stop, start, combine("-", zero, size)))
    is_up = Expr(Op.COMPARE, bool_, (ex.literal(0, kind), step), "<")
    last = Expr(Op.SELECT, uint32, (is_up, up, down))
    if step.op is Op.LITERAL and isinstance(step.value, int):
        last = up if step.value > 0 else down
    return combine("+", start, ex.cast(last, kind))


def check_counter(what: str, kind: DType, start: int, stop: int, step: int) -> None:
    """Raise ValueError if the counter of a range, one step behind its last number, leaves its type."""
    numbers = builtins.range(start, stop, step)
    if numbers and not fits(numbers[-1] + step, kind):
        raise located(
            ArgumentValueError,
            f"{what}: one step behind {numbers[-1]}, the last number of range({start}, {stop}, {step}), the "
            f"counter does not fit in {kind.name}; loop over fewer numbers, or by a step of 1",
        )


def _check(name: str, bound: Any) -> None:
    if isinstance(bound, ShaderVariable):
        kind = bound._value().dtype
        if not (is_scalar(kind) and is_integer_dtype(kind)):
            raise located(ArgumentTypeError, f"range: {name} must be an integer, got {kind.name}")
        if kind.item_size == 8:
            raise located(
                ArgumentTypeError,
                f"range: {name} is {kind.name}, but loops of the GPU count in 32 bits; convert it",
            )
    elif not ex.is_integer_number(bound):
        raise located(ArgumentTypeError, f"range: {name} must be an integer, got {bound!r}")


def range(*bounds: Any) -> GpuRange:
    """Count on the GPU, in a for loop of a kernel in plain Python, even where Python knows all bounds.

    Parameters
    ----------
    *bounds
        As of Python's `range`: stop; start and stop; or start, stop and step. Integers or GPU values.

    Raises
    ------
    TypeError, ValueError
        A bound is no integer of at most 32 bits, or the step is zero.
    """
    return GpuRange(*bounds)
