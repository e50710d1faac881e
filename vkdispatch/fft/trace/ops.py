"""Reads and writes: of single values, as maps see them, and of the sides and ends of transforms."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, component_type, int32, is_complex, is_scalar, uint32
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.current import current
from vkdispatch.compiler.ir import Expr, RawStatement, Statement, expressions_in, walk
from vkdispatch.compiler.ir.location import located
from vkdispatch.fft.arguments import require_complex
from vkdispatch.fft.plan.passes import Transform
from vkdispatch.fft.plan.stages import add, multiply
from vkdispatch.fft.trace.transform import guard
from vkdispatch.shader.map import MappingFunction

# The layout of a buffer: that of the shape, that without the axes before the line, the reals or the half
# spectrum of an RFFTBuffer, or the order in which invocations read.
Layout = Literal["natural", "inner", "real", "half", "transposed"]


@record
class Line:
    """A line of values.

    Attributes
    ----------
    size, stride
        Number of values, and their distance in memory.
    first
        Flat index of the first value.
    inner
        Index along the axes behind the line; 0 if there are none.
    number
        Number of the line, in C order of the other axes.
    """

    size: int
    stride: int
    first: Any
    inner: Any
    number: Any

    def origin(self, layout: Layout) -> Any:
        """Return the flat index of the line in a layout."""
        half = self.size // 2 + 1
        if layout == "natural":
            return self.first
        if layout == "inner":
            return self.inner
        return multiply(self.number, 2 * half if layout == "real" else half)

    def step(self, layout: Layout) -> int:
        """Return the distance of neighbouring values in a layout."""
        return self.stride if layout in ("natural", "inner") else 1


@record
class Spot:
    """A value of a line.

    Attributes
    ----------
    line
        The line.
    index
        Position in it.
    bounds
        Least and greatest value of `index`.
    flat
        Flat index of the value in memory.
    register_id, register_count
        Number of its register, of those of the invocation.
    element_id, element_count
        Its number within its butterfly.
    instance_id, instance_count
        Number of its butterfly, of those of the invocation.
    """

    line: Line
    index: Any
    bounds: tuple[int, int]
    flat: Any
    register_id: int = 0
    register_count: int = 1
    element_id: int = 0
    element_count: int = 1
    instance_id: int = 0
    instance_count: int = 1


def _variable(value: Any) -> Any:
    """Return an index as a GPU value: maps need not know that it may be a constant."""
    return vc.to_dtype(uint32, value) if isinstance(value, int) else value


class MemoryOp:
    """A value of a line and its register.

    Attributes
    ----------
    register_id, register_count, element_id, element_count, instance_id, instance_count
        Number of the register, its number within its butterfly, and the number of the butterfly.
    """

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.register_id, self.register_count = spot.register_id, spot.register_count
        self.element_id, self.element_count = spot.element_id, spot.element_count
        self.instance_id, self.instance_count = spot.instance_id, spot.instance_count

    @property
    def fft_index(self) -> Any:
        """Position in the line (u32)."""
        return _variable(self.spot.index)

    @property
    def fft_index_shifted(self) -> Any:
        """Position in the line as a signed frequency (i32), from -(N // 2); 0 for the first value."""
        half = self.fft_size // 2
        return (self.fft_index.to_dtype(int32) + half) % self.fft_size - half

    @property
    def fft_size(self) -> int:
        """Values of the line."""
        return self.spot.line.size


@functools.cache
def _make_index_type() -> Callable[[vc.ShaderVariable, _GlobalOp], vc.ShaderVariable]:
    """Make the class of `io_index`, where something is traced."""

    class Index(vc.ShaderVariable):
        """The index of an operation. `io_index[:] = other` is noted only; the map is then traced anew."""

        __slots__ = ("_op",)

        _op: _GlobalOp

        def __init__(self, value: vc.ShaderVariable, op: _GlobalOp) -> None:
            super().__init__(value.expr)
            object.__setattr__(self, "_op", op)

        def _store_whole(self, place: Expr, value: object) -> None:
            if not self._op.is_mapped:
                super()._store_whole(place, value)
            self._op.moves = True

    return Index


class _GlobalOp(MemoryOp):
    """A read or write of a value.

    `is_mapped`: a map is traced for it, which `moves` it if it assigns to `io_index`.
    """

    is_mapped = moves = False

    def __init__(self, spot: Spot, register: Any, r2c: bool = False, inverse: bool = False) -> None:
        super().__init__(spot)
        self._register = register
        self._moved: Any = None
        self.r2c = r2c
        self.inverse = inverse

    def declare_index(self) -> None:
        """Make `io_index` a register, to which a map may assign."""
        self._moved = _variable(self.spot.flat).to_register("io_index")

    @property
    def register(self) -> Any:
        """The value. `op.register = z` assigns to all of its components."""
        return self._register

    @register.setter
    def register(self, value: Any) -> None:
        # `op.register *= z` has changed the register already, and assigns it to itself
        if value is not self._register:
            self._register[:] = value

    @property
    def io_index(self) -> Any:
        """Flat index in memory (u32). A map may assign to it: `op.io_index[:] = ...`."""
        return _make_index_type()(_variable(self.spot.flat), self) if self._moved is None else self._moved

    @property
    def fft_offset(self) -> Any:
        """Flat index of the line's first value (u32)."""
        return _variable(self.spot.line.first)

    @property
    def fft_stride(self) -> int:
        """Distance of neighbouring values of the line."""
        return self.spot.line.stride


class GlobalReadOp(_GlobalOp):
    """A read of a value into a register.

    Attributes
    ----------
    register
        The destination; in a kernel map it holds the value of the spectrum.
    r2c, inverse
        Whether the transform is real, and its direction.
    format_transposed
        Whether the buffer is in the layout that `transpose` makes.
    signal_range
        Start and end of the values that are read, or None; the others are zero.
    """

    def __init__(
        self,
        spot: Spot,
        register: Any,
        r2c: bool = False,
        inverse: bool = False,
        signal_range: tuple[int, int] | None = None,
        format_transposed: bool = False,
    ) -> None:
        super().__init__(spot, register, r2c, inverse)
        self.signal_range = signal_range
        self.format_transposed = format_transposed

    @property
    def r2c_inverse_offset(self) -> Any:
        """The sum of `io_index` and `io_index_2`."""
        line = self.spot.line
        return _variable(add(multiply(line.origin("half"), 2), line.size))

    @property
    def io_index_2(self) -> Any:
        """In a real inverse transform: flat index of the value at the opposite frequency (u32)."""
        return self.r2c_inverse_offset - self.io_index

    def read_from_buffer(self, buffer: Any, register: Any = None, io_index: Any = None) -> None:
        """Load the value: cast, zero outside the signal range, mirrored in a real inverse transform.

        Parameters
        ----------
        buffer
            A buffer of complex numbers, of vectors of two, or of reals, whose imaginary part is zero. In a
            forward real transform the reals are packed as in an RFFTBuffer.
        register
            The destination; None takes `self.register`.
        io_index
            Index of the element; None takes `self.io_index`.
        """
        target = self.register if register is None else register
        within = _within(self.spot, self.signal_range)
        if within is not True:
            target[:] = 0
        if within is not False:
            with guard([within]):
                self._load(buffer, target, io_index)

    def _load(self, buffer: Any, target: Any, io_index: Any) -> None:
        index = self.io_index if io_index is None else io_index
        kind = target.var_type
        if self.r2c and not self.inverse:
            target[:] = vc.to_dtype(kind, _real_element(buffer, index), 0)
            return
        if not self.r2c:
            target[:] = _complex_element(buffer, index, kind)
            return
        middle = self.fft_size // 2
        least, most = self.spot.bounds
        opposite = self.io_index_2 if io_index is None else index
        if most <= middle:
            target[:] = _complex_element(buffer, index, kind)
        elif least > middle:
            target[:] = _complex_element(buffer, opposite, kind)
            target.imag = -target.imag
        else:
            beyond = self.fft_index > middle
            with vc.if_block(beyond):
                target[:] = _complex_element(buffer, opposite, kind)
                target.imag = -target.imag
            with vc.else_block():
                target[:] = _complex_element(buffer, index, kind)


class GlobalWriteOp(_GlobalOp):
    """A write of a value from a register.

    Attributes
    ----------
    register
        The value.
    r2c, inverse
        Whether the transform is real, and its direction.
    """

    def write_to_buffer(self, buffer: Any, register: Any = None, io_index: Any = None) -> None:
        """Store the value, cast to the dtype of the buffer; reals get the real part.

        Parameters
        ----------
        buffer
            A buffer of complex numbers, of vectors of two, or of reals. The result of a real inverse
            transform is packed as in an RFFTBuffer.
        register
            The value; None takes `self.register`.
        io_index
            Index of the element; None takes `self.io_index`.
        """
        value = self.register if register is None else register
        index = self.io_index if io_index is None else io_index
        kind = buffer.var_type
        if is_scalar(kind):
            buffer[index] = value.real.to_dtype(kind)
        elif self.r2c and self.inverse:
            buffer[index // 2][index % 2] = value.real.to_dtype(component_type(kind))
        elif is_complex(kind):
            buffer[index] = value.to_dtype(kind)
        else:
            buffer[index] = vc.to_dtype(kind, value.real, value.imag)


class GlobalTransposedWriteOp(GlobalWriteOp):
    """A write into the transposed layout of convolutions, where `io_index` is the place of the value."""


def _complex_element(buffer: Any, index: Any, kind: DType) -> Any:
    value = buffer[index]
    if is_complex(value.var_type):
        return value.to_dtype(kind)
    if is_scalar(value.var_type):
        return vc.to_dtype(kind, value, 0)
    return vc.to_dtype(kind, value[0], value[1])


def _real_element(buffer: Any, index: Any) -> Any:
    return buffer[index] if is_scalar(buffer.var_type) else buffer[index // 2][index % 2]


def _within(spot: Spot, signal_range: tuple[int, int] | None) -> Any:
    """Return whether a value belongs to the signal: True, False, or a condition."""
    if signal_range is None:
        return True
    (start, end), (least, most) = signal_range, spot.bounds
    if most < start or least >= end:
        return False
    conditions = []
    if least < start:
        conditions.append(spot.index >= start)
    if most >= end:
        conditions.append(spot.index < end)
    return vc.all(*conditions) if conditions else True


# ---- the current operation -------------------------------------------------------------------------


class _Current(threading.local):
    """The operation of the map that this thread traces."""

    read: GlobalReadOp | None = None
    write: GlobalWriteOp | None = None
    kernel: int | None = None


_current = _Current()


def read_op() -> GlobalReadOp:
    """Return the read operation of the input or kernel map that is traced.

    Raises ValueError outside of such a map.

    Examples
    --------
    >>> @vd.map
    ... def scaled(data: Buff[c64]) -> None:
    ...     op = vd.fft.read_op()
    ...     op.read_from_buffer(data)
    ...     op.register[:] = 2 * op.register
    >>> x = vd.asbuffer(np.ones(4, np.complex64))
    >>> y = vd.Buffer((4,), c64)
    >>> vd.fft.fft(y, x, input_map=scaled)
    >>> y.read(0)
    array([8.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    if _current.read is None:
        raise located(ArgumentValueError, "read_op: only input maps and kernel maps can call it")
    return _current.read


def write_op() -> GlobalWriteOp:
    """Return the write operation of the output map that is traced.

    Raises ValueError outside of such a map.

    Examples
    --------
    >>> @vd.map
    ... def real_part(data: Buff[c64]) -> None:
    ...     op = vd.fft.write_op()
    ...     op.register.imag = 0
    ...     op.write_to_buffer(data)
    >>> x = vd.asbuffer(np.ones(4, np.complex64))
    >>> y = vd.Buffer((4,), c64)
    >>> vd.fft.fft(y, x, output_map=real_part)
    >>> y.read(0).real
    array([4., 0., 0., 0.], dtype=float32)
    """
    if _current.write is None:
        raise located(ArgumentValueError, "write_op: only output maps can call it")
    return _current.write


def mapped_kernel_index() -> int | None:
    """Return the number of the kernel that a map of a convolution is traced for; None outside of one.

    Examples
    --------
    >>> vd.fft.mapped_kernel_index() is None  # outside a convolution's map
    True
    """
    return _current.kernel


@contextmanager
def tracing_for(**current: GlobalReadOp | GlobalWriteOp | int | None) -> Iterator[None]:
    """Let `read_op`, `write_op` or `mapped_kernel_index` return `read`, `write` or `kernel`."""
    before = {name: getattr(_current, name) for name in current}
    vars(_current).update(current)
    try:
        yield
    finally:
        vars(_current).update(before)


# ---- The sides of a transform: buffers, or maps over any arguments ---------------------------------------


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


def spot_at(line: Line, index: Any, layout: Layout) -> Spot:
    """Return the value at a position of a line."""
    flat = add(line.origin(layout), multiply(index, line.step(layout)))
    return Spot(line, index, (0, line.size - 1), flat)


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
    source = IOProxy(transform.input_map or transform.input_type, "input")
    target = IOProxy(transform.output_map or transform.output_type, "output")
    length, stride = transform.length, transform.stride
    direction, scale = (transform.r2c, transform.inverse), transform.factor

    def load(arguments: Sequence[Any]) -> Load:
        source.bind(arguments)
        layout: Layout = "natural" if not transform.r2c else "half" if transform.inverse else "real"

        def read(element: Element) -> Any:
            spot, register = spot_of(element, length, stride, layout), vc.new_register(transform.compute_type)
            op = GlobalReadOp(spot, register, *direction, transform.signal_range)
            source.read(op)
            return op.register

        return read

    def store(arguments: Sequence[Any]) -> Store:
        target.bind(arguments)
        layout: Layout = "natural" if not transform.r2c else "real" if transform.inverse else "half"
        limit = length // 2 + 1 if layout == "half" else length

        def write(element: Element, value: Any) -> None:
            if element.bounds[0] >= limit:
                return
            value = value if scale == 1 else value * scale
            spot = spot_of(element, length, stride, layout)
            with guard([True if element.bounds[1] < limit else element.index < limit]):
                # a map may change the register
                target.write(GlobalWriteOp(spot, value.to_register(), *direction))

        return write

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


def spot_of(element: Element, length: int, stride: int, layout: Layout) -> Spot:
    """Return a value as maps and buffers see it."""
    number = add(multiply(element.outer, stride), element.inner)
    first = add(multiply(element.outer, length * stride), element.inner)
    line = Line(length, stride, first, element.inner, number)
    flat = element.flat
    if layout != "natural":
        flat = add(line.origin(layout), element.index)
    return Spot(line, element.index, element.bounds, flat)
