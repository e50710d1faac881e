"""Branches, loops and blocks, and the truth of several conditions.

The context managers (`if_block`...) are the usual way; `if_statement` ... `end` open and close the same
blocks by hand.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from vkdispatch.base.dtype import bool_
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.codegen import expressions as ex
from vkdispatch.codegen.ir import Expr, If, RawStatement, Return
from vkdispatch.codegen.location import here, located
from vkdispatch.codegen.recording import Recorder, current
from vkdispatch.codegen.variables import ShaderVariable

Condition = ShaderVariable | bool


class _Block:
    """A block that is open while a with statement runs."""

    def __init__(self, opener: Callable[[Recorder], None]) -> None:
        self._opener = opener

    def __enter__(self) -> None:
        self._recorder = current()
        self._depth = self._recorder.depth
        self._opener(self._recorder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # also what was left open inside, so that an error leaves no trace
        self._recorder.close(self._depth)


def _truth(value: object, what: str) -> Expr:
    if isinstance(value, ShaderVariable):
        return ex.condition(value._value())
    if isinstance(value, bool):
        return ex.literal(value, bool_)
    raise located(
        ArgumentTypeError,
        f"{what}: expected a GPU value or a bool as condition, got {value!r} ({type(value).__name__})",
    )


def if_block(condition: Condition) -> _Block:
    """Run a block if the condition holds: `with vc.if_block(x > 0):`."""
    truth = _truth(condition, "if_block")
    return _Block(lambda recorder: recorder.open_if(truth))


def else_if_block(condition: Condition) -> _Block:
    """Run a block if the ones before, which it follows directly, did not and the condition holds."""
    truth = _truth(condition, "else_if_block")
    return _Block(lambda recorder: recorder.open_else_if(truth))


def else_block() -> _Block:
    """Run a block if the ones before, which it follows directly, did not."""
    return _Block(lambda recorder: recorder.open_else())


def while_block(condition: Condition) -> _Block:
    """Run a block as long as the condition, evaluated anew each time, holds.

    It should depend on registers.
    """
    truth = _truth(condition, "while_block")
    return _Block(lambda recorder: recorder.open_while(truth))


def scope_block(indent: bool = True, comment: str | None = None) -> _Block:
    """Make a block of its own, with an optional comment. `indent` is kept for old programs."""
    return _Block(lambda recorder: recorder.open_scope(comment))


def return_statement(arg: Any = None) -> None:
    """End this invocation. Kernels return nothing, so `arg` must be None."""
    if arg is not None:
        raise located(ArgumentTypeError, f"return_statement: a kernel returns no value, got {arg!r}")
    current().emit(Return(here()))


def any(*conditions: Condition) -> ShaderVariable:
    """Whether at least one condition holds. Raises TypeError for what is no condition."""
    return _joined("||", conditions, "any", False)


def all(*conditions: Condition) -> ShaderVariable:
    """Whether all conditions hold. Raises TypeError for what is no condition."""
    return _joined("&&", conditions, "all", True)


def _joined(symbol: str, conditions: tuple[Condition, ...], what: str, empty: bool) -> ShaderVariable:
    truths = [_truth(condition, what) for condition in conditions]
    return ShaderVariable(ex.logical(symbol, truths) if truths else ex.literal(empty, bool_))


def logical_and(a: Condition, b: Condition) -> ShaderVariable:
    """Whether both conditions hold."""
    return all(a, b)


def logical_or(a: Condition, b: Condition) -> ShaderVariable:
    """Whether one of the conditions holds."""
    return any(a, b)


# ---- blocks opened and closed by hand ------------------------------------------------------------


def if_statement(condition: Condition, command: str | None = None) -> None:
    """Open a branch until `else_statement`, `else_if_statement` or `end`.

    With `command` (GLSL) it is that alone.
    """
    truth = _truth(condition, "if_statement")
    if command is None:
        current().open_if(truth)
        return
    loc = here()
    current().emit(If(((truth, (RawStatement(command, loc),)),), None, loc))


def if_any(*conditions: Condition) -> None:
    """Open a branch for when at least one condition holds."""
    if_statement(any(*conditions))


def if_all(*conditions: Condition) -> None:
    """Open a branch for when all conditions hold."""
    if_statement(all(*conditions))


def _close_branch() -> Recorder:
    recorder = current()
    if recorder.open_kind == "if":
        recorder.close()
    return recorder


def else_statement() -> None:
    """Close the open branch and open the one for when none before ran."""
    _close_branch().open_else()


def else_if_statement(condition: Condition) -> None:
    """Close the open branch and open another one with a condition."""
    truth = _truth(condition, "else_if_statement")
    _close_branch().open_else_if(truth)


def else_if_any(*conditions: Condition) -> None:
    """Close the open branch and open one for when at least one condition holds."""
    else_if_statement(any(*conditions))


def else_if_all(*conditions: Condition) -> None:
    """Close the open branch and open one for when all conditions hold."""
    else_if_statement(all(*conditions))


def while_statement(condition: Condition) -> None:
    """Open a loop until `end`."""
    current().open_while(_truth(condition, "while_statement"))


def new_scope(indent: bool = True, comment: str | None = None) -> None:
    """Open a block of its own until `end`."""
    current().open_scope(comment)


def end(indent: bool = True) -> None:
    """Close the innermost block. Raises RuntimeError if none is open."""
    current().close()
