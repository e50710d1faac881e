"""The sides of a transform: buffers, or maps over any arguments.

Kernels of several passes use `reader` and `writer`, whose values are given by a `Spot`; see `spot_at`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.codegen.execution.invocation import without_invocation
from vkdispatch.codegen.trace.current import current
from vkdispatch.compiler.ir import RawStatement, Statement, expressions_in, walk
from vkdispatch.compiler.ir.location import located
from vkdispatch.fft.arguments.types import require_complex
from vkdispatch.fft.plan.indices import add, multiply
from vkdispatch.fft.trace.ops import (
    GlobalReadOp,
    GlobalWriteOp,
    Layout,
    Line,
    Spot,
    tracing_for,
)
from vkdispatch.fft.trace.words import annotation_of, unwrap
from vkdispatch.shader.map import MappingFunction

_INSTEAD = "the map is told its place by op.io_index, with op = vd.fft.read_op() or vd.fft.write_op()"


class LongMap(Exception):
    """A map is too long to be written out for each value of an invocation."""


class IOProxy:
    """One side of a transform: a buffer of complex numbers, a map, or nothing.

    Attributes
    ----------
    name
        Its name in errors and in generated code.
    map_func
        The map, or None.
    var_type
        The buffer's dtype, or None.
    buffer_types
        Annotations of its kernel arguments.
    variables
        Its kernel arguments, after `bind`.
    most
        The statements that the map may have, or None. `read` and `write` raise LongMap if there are more.
    """

    def __init__(self, obj: DType | MappingFunction | None, name: str, words: bool = False) -> None:
        """Take a dtype, a map, or None. `words`: the kernel reads and writes whole complex numbers."""
        self.name = name
        self._words = words
        self._moves = False  # the map assigns to `io_index`
        self.most: int | None = None
        self.map_func: MappingFunction | None = None
        self.var_type: DType | None = None
        self.variables: tuple[Any, ...] | None = None
        if isinstance(obj, MappingFunction):
            self.map_func = obj
            self.buffer_types: list[Any] = list(obj.buffer_types)
        elif obj is None:
            self.buffer_types = []
        else:
            require_complex(obj, name)
            self.var_type = obj
            self.buffer_types = [annotation_of(obj) if words else vc.Buffer[obj]]  # type: ignore[valid-type]

    @property
    def present(self) -> bool:
        """Whether there is a buffer or a map."""
        return self.map_func is not None or self.var_type is not None

    def bind(self, variables: Sequence[Any]) -> None:
        """Set the kernel arguments of this side."""
        self.variables = tuple(variables)
        if self._words and self.var_type is not None:
            self.variables = tuple(map(unwrap, variables))

    def read(self, op: GlobalReadOp) -> None:
        """Trace a read into `op.register`: from the buffer, or by the map."""
        if self.map_func is None:
            op.read_from_buffer(self._bound()[0])
            return
        begun = current().recorded
        self._trace_map(self.map_func, op, read=op)
        if self.name == "input" and not _mentions(current().innermost[begun:], op.register):
            raise located(
                ArgumentValueError,
                f"input_map {self.map_func.name!r}: it never assigns the value; write op.register[:] = ..., "
                "or op.register.real and op.register.imag, with op = vd.fft.read_op()",
            )

    def write(self, op: GlobalWriteOp) -> None:
        """Trace a write of `op.register`: into the buffer, or by the map."""
        if self.map_func is None:
            op.write_to_buffer(self._bound()[0])
            return
        self._trace_map(self.map_func, op, write=op)

    def _trace_map(self, mapping: MappingFunction, op: GlobalReadOp | GlobalWriteOp, **role: Any) -> None:
        """Trace the map for an operation; a second time if it is the first that assigns to `io_index`."""
        recorder = current()
        mark, begun = recorder.mark(), recorder.recorded
        op.is_mapped = True
        if self._moves:
            op.declare_index()
        with tracing_for(**role), without_invocation(_INSTEAD):
            mapping.callback(*self._bound())
        if op.moves and not self._moves:
            recorder.rewind(mark)
            self._moves = True
            self._trace_map(mapping, op, **role)
            return
        self._check_length(begun)

    def _check_length(self, begun: int) -> None:
        most, self.most = self.most, None
        if most is not None and sum(1 for _ in walk(tuple(current().innermost[begun:]))) > most:
            raise LongMap

    def _bound(self) -> tuple[Any, ...]:
        if self.variables is None or not self.present:
            raise UsageError(f"{self.name}: the transform has no {self.name}")
        return self.variables


def _mentions(statements: Sequence[Statement], register: Any) -> bool:
    """Whether statements use a register, or are raw GLSL, which may."""
    block = tuple(statements)
    return any(isinstance(statement, RawStatement) for statement in walk(block)) or any(
        expr.value is register.expr.value for expr in expressions_in(block)
    )


def spot_at(
    line: Line, index: Any, layout: Layout = "natural", bounds: tuple[int, int] | None = None
) -> Spot:
    """Return the value at a position of a line.

    `bounds` are the least and the greatest value of `index`, if they are known.
    """
    flat = add(line.origin(layout), multiply(index, line.step(layout)))
    return Spot(line, index, bounds or (0, line.size - 1), flat)


def reader(
    proxy: IOProxy,
    compute_type: DType,
    *,
    r2c: bool = False,
    inverse: bool = False,
    signal_range: tuple[int, int] | None = None,
) -> Callable[[Spot], Any]:
    """Return a function that traces the read of a value and returns a register of `compute_type`."""

    def read(spot: Spot) -> Any:
        op = GlobalReadOp(spot, vc.new_register(compute_type), r2c, inverse, signal_range)
        proxy.read(op)
        return op.register

    return read


def writer(proxy: IOProxy, *, r2c: bool = False, inverse: bool = False) -> Callable[[Spot, Any], None]:
    """Return a function that traces the write of a value."""

    def write(spot: Spot, value: Any) -> None:
        # a map may change the register
        proxy.write(GlobalWriteOp(spot, value.to_register(), r2c, inverse))

    return write
