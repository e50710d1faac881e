"""The result of a function that the GPU may leave in several places: kept in registers."""

from collections.abc import Callable
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.compiler.ir import Break, Expr, If
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located
from vkdispatch.rewrite.branches.joins import join_kinds
from vkdispatch.rewrite.branches.paths import declare_register, make_register
from vkdispatch.rewrite.state.tracer import Retry, Tracer
from vkdispatch.rewrite.state.values import (
    Kind,
    LocalValue,
    Mismatch,
    as_expr,
    describe,
    dtype_of,
    flatten_kind,
    iterate_leaves,
    join,
    make_zero,
    rebuild,
)


@record
class _NoValue:
    """The type of the result of a function that returns no value."""


class Result:
    """The result of one call: its type, its registers, and a register that tells whether it is known."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind: Kind | _NoValue | None = None
        self._registers: list[Expr] = []
        self._done: Expr | None = None

    @property
    def is_stored(self) -> bool:
        """Whether some `return` is recorded, which stores the result in registers."""
        return self._kind is not None

    def clear(self) -> None:
        """Forget what is known, for another call."""
        self._kind = None
        self.clear_registers()

    def clear_registers(self) -> None:
        """Forget the registers, for another trace of the function. The type remains."""
        self._done = None
        self._registers = []

    def note(self) -> Callable[[], None]:
        """Note the state of the result; returns a function that restores it."""
        known = (self._kind, list(self._registers), self._done)

        def restore() -> None:
            self._kind, registers, self._done = known
            self._registers = list(registers)

        return restore

    def list_registers(self) -> list[Expr]:
        """Return the registers, which are declared after the function has been traced."""
        return self._registers if self._done is None else [*self._registers, self._done]

    def declare(self, recorder: Recorder) -> None:
        """Record the declarations of the registers."""
        if self._done is not None:
            recorder.emit(declare_register(self._done, ex.literal(False, bool_)))
        for place in self._registers:
            recorder.emit(declare_register(place, make_zero(place.dtype)))

    @property
    def value(self) -> Any:
        """The result in its registers."""
        if isinstance(self._kind, _NoValue) or self._kind is None:
            return None
        return rebuild(self._kind, map(LocalValue, self._registers))

    def store(self, active: Tracer, value: Any) -> None:
        """Store one of several results that the GPU chooses between. Raises Retry if the type widens."""
        if isinstance(self._kind, _NoValue) or value is None:
            if value is not None or self._kind not in (None, _NoValue()):
                raise located(
                    ArgumentTypeError,
                    f"{self._name} returns a value on some of the paths that the GPU decides between and "
                    "none on others",
                )
            self._kind = _NoValue()
            return
        kind, why = join_kinds(value, value)
        if kind is not None and self._kind is not None:
            try:
                kind = join(self._kind, kind)
            except Mismatch as error:
                kind, why = None, f"{error} have no common type"
        if kind is None:
            raise located(
                ArgumentTypeError,
                f"{self._name} returns {describe(value)} where the GPU decides whether it does: {why}",
            )
        types = [dtype_of(leaf) for leaf in flatten_kind(kind)]
        self._kind = kind
        if self._registers and types != [place.dtype for place in self._registers]:
            raise Retry(self)
        if not self._registers:
            self._registers = [make_register(active, f"{self._name}_result", dtype) for dtype in types]
        for place, (part, _) in zip(self._registers, iterate_leaves(value, kind), strict=True):
            active.recorder.store(place, as_expr(part, place.dtype))

    def mark_done(self, active: Tracer) -> None:
        """Record that the result is known, for the loops that enclose the `return`."""
        if self._done is None:
            self._done = make_register(active, f"{self._name}_done", bool_)
        active.recorder.store(self._done, ex.literal(True, bool_))

    def leave_if_done(self, recorder: Recorder) -> None:
        """Leave the enclosing loop if a `return` has left the inner one."""
        assert self._done is not None
        recorder.emit(If(((self._done, (Break(here()),)),), None, here()))
