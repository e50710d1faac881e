"""What a graph records: kernels and plans, and the bytes of their arguments."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.command_list import CommandList, Rows
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.descriptor_set import Binding
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import pack, pack_rows
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.optimization import Fusible, Moves

if TYPE_CHECKING:
    from vkdispatch.base.image import Sampler
    from vkdispatch.compiler.forms import ArgumentLayout
    from vkdispatch.execution_pipeline.diagnostics import Probe


# ---- The arguments of a recording ------------------------------------------------------------------------
#
# The bytes of one instance, and the values of bound variables in them.


# Programs with kernels in SPIR-V need not import the kernel language, which takes longest of all.


class BoundVariable:
    """A named value of a graph, to be passed as the argument of a `Var[...]` parameter."""

    __slots__ = ("graph", "name")

    if TYPE_CHECKING:
        # Tells type checkers that a bound variable is a value of `Var[D]`.
        def __rmul__(self, other: Any, /) -> "BoundVariable": ...

    def __init__(self, graph: CommandList, name: str) -> None:
        self.graph = graph
        self.name = name

    def __call__(self, *_: object) -> str:
        """Return the name. Bound variables are callable, as values are not."""
        return self.name

    def __repr__(self) -> str:
        return f"<variable {self.name!r} of a CommandGraph>"


@record
class VariableSlot:
    """The place of a bound variable: its offset in the bytes of an instance, and its dtype."""

    offset: int
    kind: DType


class ArgumentBytes:
    """The arguments of all dispatches of a recording.

    Attributes
    ----------
    instance
        The bytes of one instance. Values of bound variables are written into copies of it.
    variables
        The places of each bound variable, by name.
    values
        The values of bound variables, by name.
    probes
        For each observed kernel: the offset of its launch number, and what its reports mean.
    """

    __slots__ = ("instance", "probes", "values", "variables")

    def __init__(self) -> None:
        self.instance = bytearray()
        self.variables: dict[str, list[VariableSlot]] = {}
        self.values: dict[str, object] = {}
        self.probes: list[tuple[int, Probe]] = []

    def store(self, offset: int, block: "bytes | bytearray") -> None:
        """Store the bytes of a dispatch at their offset."""
        missing = offset - len(self.instance)
        if missing > 0:
            self.instance += bytes(missing)
        self.instance[offset : offset + len(block)] = block

    def complete(self, size: int) -> None:
        """Append zeros up to `size`, for the arguments of dispatches that have no packed ones."""
        self.instance += bytes(size - len(self.instance))

    def add_variables(self, offset: int, variables: Mapping[str, Iterable[tuple[int, DType]]]) -> None:
        """Add the places of bound variables in a dispatch whose arguments begin at `offset`."""
        for name, places in variables.items():
            slots = self.variables.setdefault(name, [])
            slots.extend(VariableSlot(offset + place, kind) for place, kind in places)

    def set_value(self, name: str, value: object) -> None:
        """Set the value of a bound variable. Raises as `CommandGraph.set_var`."""
        array = _parse_numbers(name, value)
        if name not in self.variables:
            known = ", ".join(map(repr, self.variables)) or "none"
            raise ArgumentValueError(f"name: no variable {name!r} was bound in this graph; bound are {known}")
        # a copy: later changes by the caller have no effect
        self.values[name] = array.copy() if isinstance(value, np.ndarray) else array

    def require_values(self) -> None:
        """Raise ValueError if a variable that a recorded kernel uses has no value."""
        for name, slots in self.variables.items():
            if slots and name not in self.values:
                raise ArgumentValueError(
                    f"variable {name!r} has no value; call graph.set_var({name!r}, ...) before the submit"
                )

    def pack_rows(self, instances: int) -> Rows:
        """Return the bytes of all instances, with the values of bound variables."""
        if not self.values and instances == 1:
            return self.instance
        # NumPy releases the GIL while it copies
        rows = np.empty((instances, len(self.instance)), np.uint8)
        rows[:] = np.frombuffer(self.instance, np.uint8)
        for name, value in self.values.items():
            for slot in self.variables[name]:
                packed = pack_rows(slot.kind, value, instances, f"variable {name!r}")
                rows[:, slot.offset : slot.offset + slot.kind.item_size] = np.frombuffer(
                    packed, np.uint8
                ).reshape(instances, -1)
        return rows.reshape(-1).data

    def number_launches(self, rows: Rows, instances: int) -> bytearray:
        """Return a copy of the bytes of all instances, with the launch number of each observed kernel."""
        numbered = np.frombuffer(bytearray(rows), np.uint8).reshape(instances, -1)
        count = len(self.probes)
        for position, (offset, _) in enumerate(self.probes):
            numbers = np.arange(position, instances * count, count, dtype=np.uint32)
            numbered[:, offset : offset + 4] = numbers.view(np.uint8).reshape(instances, 4)
        return bytearray(numbered)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes only; bound variables keep their names."""
        del self.instance[size:]
        for name, slots in self.variables.items():
            self.variables[name] = [slot for slot in slots if slot.offset < size]
        self.probes = [(offset, probe) for offset, probe in self.probes if offset < size]

    def move(self, moves: Moves, target: bytearray) -> None:
        """Copy the bytes to their new offsets in `target`, which replaces them."""
        moves.copy(self.instance, target)
        self.instance = target
        for name, slots in self.variables.items():
            self.variables[name] = [VariableSlot(moves.follow(slot.offset), slot.kind) for slot in slots]
        self.probes = [(moves.follow(offset), probe) for offset, probe in self.probes]


def pack_members(
    who: str, layout: "ArgumentLayout", exec_limits: Sequence[int], values: Mapping[str, object]
) -> tuple[bytearray, list[tuple[BoundVariable, VariableSlot]]]:
    """Return a dispatch's argument bytes, and the offsets of bound variables in them."""
    block = bytearray(layout.size)
    variables = []
    for member in layout.members:
        if member.offset == layout.exec_offset:
            continue
        if member.name not in values:
            raise ArgumentValueError(f"{who}: uniform_values, pc_values: {member.name!r} has no value")
        value = values[member.name]
        if isinstance(value, BoundVariable):
            variables.append((value, VariableSlot(member.offset, member.dtype)))
            continue
        packed = pack(member.dtype, value, f"{who}: {member.name!r}")
        block[member.offset : member.offset + len(packed)] = packed
    unknown = set(values) - {member.name for member in layout.members}
    if unknown:
        raise ArgumentValueError(
            f"{who}: uniform_values, pc_values: no member is called {sorted(unknown)[0]!r}"
        )
    if layout.exec_offset is not None:
        try:
            struct.pack_into("<3I", block, layout.exec_offset, *(*exec_limits, 1, 1)[:3])
        except (struct.error, TypeError):
            raise ArgumentValueError(
                f"{who}: exec_limits: expected 1 to 3 ints of 32 bits, got {exec_limits!r}"
            ) from None
    return block, variables


def _parse_numbers(name: str, value: object) -> "np.ndarray[Any, Any]":
    if value is None or callable(value):
        raise ArgumentTypeError(f"value: variable {name!r} needs numbers, got {value!r}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(
            f"value: variable {name!r} needs numbers of one shape, got {value!r}"
        ) from error
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"value: variable {name!r} needs numbers, got {value!r}")
    return array


# ---- What a graph records: kernels with their launchers, and plans with their bindings -------------------


# Programs with kernels in SPIR-V need not import the kernel language, which takes longest of all.


class Recorder(Protocol):
    """A launcher, as far as graphs use it; `Launcher` in `vkdispatch_native` is one."""

    def record(
        self, commands: Any, arguments: Any, limit: Any, limit_is_groups: bool, /
    ) -> "tuple[int, bytes | bytearray] | None":
        """Append a dispatch; return where its arguments lie in an instance, and their bytes."""


class Recordable(Protocol):
    """A compiled kernel, as graphs record it: `BuiltKernel` in `vkdispatch.shader.building`."""

    @property
    def plan(self) -> ComputePlan:
        """The plan to dispatch. Destroying it ends the graph."""

    @property
    def launcher(self) -> Recorder:
        """The launcher that binds and packs its arguments."""

    @property
    def fusible(self) -> Fusible | None:
        """What `optimize` needs to fuse its dispatches; None leaves them as they are."""


@record
class BoundPlan:
    """A plan with its bindings, recorded in place of a kernel; its arguments are bytes, its limit workgroups.

    `bindings` has one for each of the plan's, except that of a block of arguments at `uniform_binding`.
    """

    plan: ComputePlan
    bindings: Sequence[Binding]
    uniform_binding: int = -1

    @property
    def launcher(self) -> "BoundPlan":
        """The plan itself: there is nothing left to bind."""
        return self

    @property
    def fusible(self) -> None:
        """None: what the plan does is unknown."""

    def record(
        self, commands: Any, arguments: "bytes | bytearray", groups: Any, limit_is_groups: bool, /
    ) -> "tuple[int, bytes | bytearray]":
        """Append a dispatch of `groups` workgroups along x, y and z; see `Recorder`."""
        offset = commands.record(
            self.plan._native, self.bindings, groups, len(arguments), self.uniform_binding
        )
        return offset, arguments


class Described(Protocol):
    """A kernel's description, as far as `record_shader` uses it."""

    @property
    def name(self) -> str:
        """Name of the kernel, for messages."""

    @property
    def binding_type_list(self) -> Sequence[int]:
        """The type of each binding: 3 is the uniform block of arguments."""

    def layout(self) -> "ArgumentLayout":
        """Return the layout of the arguments."""


@record(sealed=True)
class BufferBindInfo:
    """A buffer, its binding, and how the kernel accesses it."""

    buffer: Buffer[Any]
    binding: int
    shape_name: str | None
    read_access: bool
    write_access: bool


@record(sealed=True)
class ImageBindInfo:
    """A sampler, its binding, and how the kernel accesses its image."""

    sampler: "Sampler"
    binding: int
    read_access: bool
    write_access: bool
