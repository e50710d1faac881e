"""The sides of a transform, and the ends of long ones: buffers, or maps over any arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.current import current
from vkdispatch.compiler.ir import RawStatement, Statement, expressions_in, walk
from vkdispatch.compiler.ir.location import located
from vkdispatch.fft.arguments import require_complex
from vkdispatch.fft.plan.passes import Transform
from vkdispatch.fft.plan.stages import add, multiply
from vkdispatch.fft.trace.ops import GlobalReadOp, GlobalWriteOp, Layout, Line, Spot, tracing_for
from vkdispatch.shader.map import MappingFunction

# ---- The sides of a transform: buffers, or maps over any arguments ---------------------------------------
#
# Kernels of several passes use `reader` and `writer`, whose values are given by a `Spot`; see `spot_at`.


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

    def __init__(self, obj: DType | MappingFunction | None, name: str) -> None:
        """Take a dtype, a map, or None."""
        self.name = name
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
            self.buffer_types = [vc.Buffer[obj]]  # type: ignore[valid-type]

    @property
    def present(self) -> bool:
        """Whether there is a buffer or a map."""
        return self.map_func is not None or self.var_type is not None

    def bind(self, variables: Sequence[Any]) -> None:
        """Set the kernel arguments of this side."""
        self.variables = tuple(variables)

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
        from vkdispatch.codegen.execution.invocation import without_invocation  # something is traced

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


# ---- The two ends of a long transform: what reads its values, and what writes them -----------------------


@record
class Element:
    """A value of a long line.

    Attributes
    ----------
    outer, inner
        Index of the line along the axes before and behind the transformed one.
    index
        Position in the line.
    bounds
        Least and greatest position that it can be.
    flat
        Flat index in the natural layout.
    """

    outer: Any
    inner: Any
    index: Any
    bounds: tuple[int, int]
    flat: Any


Load = Callable[[Element], Any]
Store = Callable[[Element, Any], None]


@record
class Ends:
    """The two ends of a long transform.

    Attributes
    ----------
    read_types, write_types
        Annotations of the kernel arguments of either end.
    load, store
        Functions of these arguments that return what traces a read or a write.
    read_slot, write_slot
        Number of the scratch buffer, if it is not the caller's.
    scale
        Factor of the result, where both ends are buffers of the computation's type; else None.
    outputs
        How many of a call's arguments belong to the output; None: one buffer is both ends.
    """

    read_types: tuple[Any, ...]
    write_types: tuple[Any, ...]
    load: Callable[[Sequence[Any]], Load]
    store: Callable[[Sequence[Any]], Store]
    read_slot: int | None = None
    write_slot: int | None = None
    scale: float | None = None
    outputs: int | None = None


def ends_of(transform: Transform) -> Ends:
    """Return the ends of a transform."""
    source, target = _proxies(transform)
    length, stride = transform.length, transform.stride
    scale = transform.factor

    def load(arguments: Sequence[Any]) -> Load:
        source.bind(arguments)
        read = reader(
            source,
            transform.compute_type,
            r2c=transform.r2c,
            inverse=transform.inverse,
            signal_range=transform.signal_range,
        )
        layout: Layout = "natural" if not transform.r2c else "half" if transform.inverse else "real"
        return lambda element: read(spot_of(element, length, stride, layout))

    def store(arguments: Sequence[Any]) -> Store:
        target.bind(arguments)
        write = writer(target, r2c=transform.r2c, inverse=transform.inverse)
        layout: Layout = "natural" if not transform.r2c else "real" if transform.inverse else "half"
        limit = length // 2 + 1 if layout == "half" else length

        def put(element: Element, value: Any) -> None:
            if element.bounds[0] >= limit:
                return
            value = value if scale == 1 else value * scale
            spot = spot_of(element, length, stride, layout)
            if element.bounds[1] < limit:
                write(spot, value)
            else:
                with vc.if_block(element.index < limit):
                    write(spot, value)

        return put

    in_place = not transform.is_mapped and not transform.separate
    kinds = {source.var_type, target.var_type, transform.compute_type}
    plain = not (transform.is_mapped or transform.r2c or transform.signal_range) and len(kinds) == 1
    return Ends(
        tuple(source.buffer_types),
        tuple(target.buffer_types),
        load,
        store,
        scale=scale if plain else None,
        outputs=None if in_place else len(target.buffer_types),
    )


def _proxies(transform: Transform) -> tuple[IOProxy, IOProxy]:
    return (
        IOProxy(transform.input_map or transform.input_type, "input"),
        IOProxy(transform.output_map or transform.output_type, "output"),
    )


def spot_of(element: Element, length: int, stride: int, layout: Layout) -> Spot:
    """Return a value as maps and buffers see it."""
    number = add(multiply(element.outer, stride), element.inner)
    first = add(multiply(element.outer, length * stride), element.inner)
    line = Line(length, stride, first, element.inner, number)
    flat = element.flat
    if layout != "natural":
        flat = add(line.origin(layout), element.index)
    return Spot(line, element.index, element.bounds, flat)
