"""What a rewritten kernel keeps while it is traced: running functions, and copies of what they hold."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from vkdispatch.codegen.ir import Expr, Op, is_place
from vkdispatch.codegen.location import Loc, here
from vkdispatch.codegen.recording import Recorder, current, is_tracing
from vkdispatch.rewrite.state import Scope, State, capture, read, variables, write
from vkdispatch.rewrite.values import LocalValue, is_gpu, is_steady


class Running(Protocol):
    """A rewritten function that runs."""

    scope: Scope


_LEAVES = (Op.LITERAL, Op.ARGUMENT, Op.BUILTIN)


class Retry(BaseException):
    """Trace a construct again, knowing more. It is no Exception, so that kernels do not catch it."""

    def __init__(self, target: object) -> None:
        super().__init__()
        self.target = target


@dataclass(slots=True)
class Tracer:
    """The rewritten functions that run at the moment, the innermost last.

    `gpu` tells whether the kernel has reached control flow that the GPU decides: from there on local
    variables hold copies, as Python's do. `kernel_next` tells that the next function is the kernel itself,
    `abandoned` where an exception has left a construct of the GPU.
    """

    recorder: Recorder
    enabled: bool = True
    gpu: bool = False
    kernel_next: bool = False
    frames: list[Running] = field(default_factory=list)
    abandoned: Loc | None = None

    def abandon(self) -> None:
        """Note that an exception leaves a construct of the GPU: whoever catches it cannot go on."""
        self.abandoned = self.abandoned or here()

    @property
    def scopes(self) -> list[Scope]:
        """Local variables of the running functions."""
        return [frame.scope for frame in self.frames]

    def capture(self, *, containers: bool = True) -> State:
        """Note all local variables, and what Python containers among them hold if that is to be compared."""
        return capture(self.scopes, containers=containers)

    def enter_gpu(self, live: set[str] | None = None) -> None:
        """Prepare for control flow on the GPU: variables that hold unevaluated reads get copies of their own.

        `live` are the names of the innermost function that matter from here on (None: all).
        """
        self.gpu = True
        own = self.frames[-1].scope if self.frames else None
        for variable in variables(self.scopes).values():
            if variable.scope is own and live is not None and variable.name not in live:
                continue
            if variable.name in variable.scope.aliases:
                continue
            value = read(variable.cell)
            copied = self.copied(value, variable.name, fresh=True, steady_too=False)
            if copied is not value:
                write(variable.cell, copied)

    def bind(self, value: Any, label: str | None, fresh: bool) -> Any:
        """Return the value for a local variable. `fresh` tells that nothing else holds it."""
        return self.copied(value, label, fresh=fresh, steady_too=True) if self.gpu else value

    def copied(self, value: Any, label: str | None, *, fresh: bool, steady_too: bool) -> Any:
        """Return a value that stays as it is, kept in a register where it must."""
        if type(value) is tuple:
            parts = [self.copied(part, label, fresh=fresh, steady_too=steady_too) for part in value]
            changed = any(new is not old for new, old in zip(parts, value, strict=True))
            return tuple(parts) if changed else value
        if not is_gpu(value) or isinstance(value, LocalValue):
            return value
        expr = value._value()
        if expr.op is Op.REGISTER and fresh:
            return value
        if (expr.op is Op.RAW and is_place(expr)) or _is_leaf(expr) or (not steady_too and is_steady(expr)):
            return value
        copy = LocalValue(self.recorder.declare_around(expr.dtype, expr, label))
        copy.is_conjugate = value.is_conjugate
        return copy


def _is_leaf(expr: Expr) -> bool:
    if expr.op in (Op.COMPONENT, Op.SWIZZLE):
        expr = expr.args[0]
    return expr.op in _LEAVES


def tracer() -> Tracer | None:
    """Return what belongs to the kernel being traced in this thread, or None outside tracing."""
    if not is_tracing():
        return None
    recorder = current()
    if not isinstance(recorder.extension, Tracer):
        recorder.extension = Tracer(recorder)
    return recorder.extension


def need_tracer() -> Tracer:
    """Return what belongs to the kernel being traced. Raises RuntimeError outside tracing."""
    found = tracer()
    if found is None:
        current()
    assert found is not None
    return found
