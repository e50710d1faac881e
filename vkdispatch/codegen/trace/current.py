"""The recorder of this thread: the kernel that is being traced, if any."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import UsageError
from vkdispatch.compiler.ir import Expr, ShaderFlags
from vkdispatch.compiler.ir.location import collect_warnings, located

if TYPE_CHECKING:
    from vkdispatch.codegen.trace.recording import Recorder


class Arithmetic(Protocol):
    """Types and operators other than the language's, for functions that are written for another one.

    Attributes
    ----------
    integer, real
        The types of `int(x)`, and of real numbers that are made of integers.
    """

    integer: DType
    real: DType

    def apply(self, symbol: str, *operands: Any) -> Expr | None:
        """Return the result of an operator of expressions and numbers; None: as the language does."""
        ...

    def unify(self, *operands: Any) -> list[Any]:
        """Return variables and numbers as variables of one type."""
        ...


class _ThreadState(threading.local):
    recorder: Recorder | None = None
    arithmetic: Arithmetic | None = None


_state = _ThreadState()


def current() -> Recorder:
    """Return the recorder of this thread. Raises RuntimeError outside tracing."""
    recorder = _state.recorder
    if recorder is None:
        raise located(
            UsageError, "this is only possible while a kernel is traced: inside a @vd.shader function"
        )
    return recorder


def is_tracing() -> bool:
    """Whether this thread is tracing a kernel."""
    return _state.recorder is not None


def has_flag(flag: ShaderFlags) -> bool:
    """Whether this thread is tracing a kernel that has an option."""
    return _state.recorder is not None and bool(_state.recorder.flags & flag)


@contextmanager
def precise_math(switch: bool = True) -> Iterator[None]:
    """Use the precise mathematical functions in what is traced here, if `switch`."""
    recorder = _state.recorder
    if not switch or recorder is None:
        yield
        return
    before = recorder.flags
    recorder.flags |= ShaderFlags.PRECISE_MATH
    try:
        yield
    finally:
        recorder.flags = before


def chosen_arithmetic() -> Arithmetic | None:
    """Return the arithmetic of what is traced here; None: the language's."""
    return _state.arithmetic


@contextmanager
def compute_by(arithmetic: Arithmetic | None) -> Iterator[None]:
    """Use an arithmetic for the operators that are traced here."""
    before, _state.arithmetic = _state.arithmetic, arithmetic
    try:
        yield
    finally:
        _state.arithmetic = before


def set_current(recorder: Recorder | None) -> None:
    """Set the recorder of this thread, or None. Raises RuntimeError if another one is active."""
    if recorder is not None and _state.recorder is not None and recorder is not _state.recorder:
        raise located(UsageError, "a kernel is being traced in this thread already; kernels cannot be nested")
    _state.recorder = recorder
    collect_warnings(None if recorder is None else recorder.warnings)
