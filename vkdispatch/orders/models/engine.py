"""What the models have in common that run on this package's own engine: `glsl` and `vkdispatch`.

Arguments lie in buffers of the engine. A `vd.Buffer` is used as it is, and copied nowhere.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from operator import le
from typing import Any, TypeVar

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.handle import Handle
from vkdispatch.base.init import is_dummy
from vkdispatch.base.synchronization.event import record_event
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.orders.arguments import Argument, Array
from vkdispatch.orders.compilers import BuildFailure
from vkdispatch.orders.grid import Counts, Grid
from vkdispatch.orders.models.protocol import Placement, Task
from vkdispatch.shader.shader_function import ShaderFunction

MOST_AXES = 3  # of a buffer
LARGEST = 2**31 - 1

_KEPT = 128
_Made = TypeVar("_Made")


class _Elements(Buffer[Any]):
    """A buffer of vectors or matrices, seen as the scalars in it: the same memory."""

    def __init__(self, whole: Buffer[Any], kind: DType, shape: tuple[int, ...]) -> None:
        Handle.__init__(self, whole.context)
        self.var_type = kind
        self.size = whole.mem_size // kind.item_size
        self.mem_size = whole.mem_size
        self.shape, self.shader_shape = shape, _shader_shape(shape, self.size)
        self._native = whole._native
        self.register_parent(whole)

    def _release(self) -> None:
        # the memory is the other's
        pass


class DevicePlacement:
    """The arguments on a device: each array in a buffer, scalars that are inputs as values.

    Parameters
    ----------
    arguments
        What is placed.
    context, queue
        Where: buffers have a copy for each queue of a context.

    Attributes
    ----------
    buffers
        A buffer for each argument; None for scalars that are inputs.
    values
        Those scalars; None for the others.
    facts
        What else a program has put there, by its name; it goes with the placement.
    """

    def __init__(self, arguments: Sequence[Argument], context: Context, queue: int) -> None:
        self.arguments = tuple(arguments)
        self.context = context
        self.queue = queue
        self.values = [None if argument.parameter.bound else _read_scalar(argument) for argument in arguments]
        # what is one array stays one
        bound = {each.memory: each for each in arguments if each.parameter.bound}
        places = {memory: _place(each, queue) for memory, each in bound.items()}
        self.buffers = [places[each.memory] if each.parameter.bound else None for each in arguments]
        self.facts: dict[Hashable, Buffer[Any]] = {}

    @property
    def is_aliased(self) -> bool:
        """Whether an output is also another argument."""
        memory = [buffer._native for buffer in self.buffers if buffer is not None]
        return len({id(each) for each in memory}) < len(memory)

    def fetch(self) -> None:
        """Copy outputs that come from the host back to it."""
        for argument, buffer in zip(self.arguments, self.buffers, strict=True):
            value = argument.value
            if buffer is None or not argument.parameter.output or isinstance(value, Buffer):
                continue
            if value.size == 0:
                continue
            if value.flags.c_contiguous and value.dtype == argument.parameter.dtype:
                buffer.read(self.queue, out=value.reshape(buffer.shape))
            else:
                argument.write(buffer.read(self.queue).reshape(value.shape))

    def close(self) -> None:
        """Give up the buffers. Graphs may hold on to some of them."""
        self.buffers.clear()
        self.facts.clear()


class EngineProgram:
    """A section that is a kernel of this package.

    Attributes
    ----------
    model
        The name of its model.
    description
        What built it, and where it runs.
    """

    def __init__(self, model: str, description: str) -> None:
        self.model = model
        self.description = description

    def devices(self) -> int:
        """Return how many devices the context has."""
        return len(get_context().device_infos)

    def place(self, arguments: Sequence[Argument], device: int) -> DevicePlacement:
        """Put the arguments into buffers. Raises ValueError if there is no such device."""
        context = get_context()
        return DevicePlacement(arguments, context, self._queue(context, device))

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arguments are on this device, for whichever model of the engine."""
        if not isinstance(placement, DevicePlacement) or not placement.context.usable:
            return False
        context = get_context()
        return placement.context is context and placement.queue == self._queue(context, device)

    def start(self, placement: Placement, grid: Grid, run_id: int) -> Callable[[int], None]:
        """Give the run to the device, behind all that it was given before; return what waits for it.

        Raises
        ------
        ValueError
            The device has no such teams.
        """
        assert isinstance(placement, DevicePlacement)
        if grid.is_empty:
            return lambda _: None
        with _pause_recording():
            self._launch(placement, grid, run_id, None)
        event = record_event(placement.queue)

        def wait(_: int) -> None:
            event.wait()

        return wait

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body, and wait for it."""
        self.start(placement, grid, run_id)(run_id)

    def record(self, placement: Placement, grid: Grid, run_id: int, graph: object) -> None:
        """Record the run into a graph, in place of making it.

        Raises
        ------
        TypeError
            `graph` is none.
        ValueError
            An argument is an array of the host, which a graph cannot follow.
        """
        assert isinstance(placement, DevicePlacement)
        if not isinstance(graph, CommandGraph):
            raise ArgumentTypeError(f"graph: expected a vd.CommandGraph, got {type(graph).__name__}")
        for argument in placement.arguments:
            if argument.parameter.bound and not isinstance(argument.value, Buffer):
                what = "output" if argument.parameter.output else "input"
                raise ArgumentValueError(
                    f"graph: the {what} {argument.parameter.name!r} is a NumPy array, which nobody copies "
                    "when the graph is submitted; vd.asbuffer() makes a vd.Buffer of it"
                )
        if not grid.is_empty:
            self._launch(placement, grid, run_id, graph)

    def _launch(
        self, placement: DevicePlacement, grid: Grid, run_id: int, graph: CommandGraph | None
    ) -> None:
        raise NotImplementedError

    def _queue(self, context: Context, device: int) -> int:
        count = len(context.device_infos)
        if device >= count:
            raise ArgumentValueError(
                f"device: {self.model} has {count} of them in this context, got {device}; they count from 0, "
                "and vd.make_context says which there are"
            )
        return sum(map(len, context.queue_families[:device]))


def launch(
    kernel: ShaderFunction,
    arguments: Sequence[object],
    placement: DevicePlacement,
    graph: CommandGraph | None,
    **size: Counts,
) -> None:
    """Call a kernel on the queue of a placement, or record it. `size` is its exec_size or its workgroups."""
    options: dict[str, Any] = dict(size)
    if graph is None and placement.context.queue_count > 1:
        options["queue_index"] = placement.queue
    kernel(*arguments, graph=graph, **options)


def require_context(task: Task) -> Context:
    """Return the context that kernels of a section run in.

    Raises
    ------
    BuildFailure
        There is none, or a compiler was named.
    """
    if task.compile is not None:
        raise BuildFailure(
            f"compile: {', '.join(task.compile)} was named, and this model is compiled without a program; "
            "leave compile out"
        )
    try:
        context = get_context()
    except VkDispatchError as error:
        raise BuildFailure(f"no device for Vulkan: {error}") from None
    if is_dummy() or not context.runs:
        raise BuildFailure("no device for Vulkan: the dummy backend runs nothing")
    return context


def device_kind(argument_dtype: np.dtype[Any]) -> DType:
    """Return our dtype for one of NumPy's."""
    return dtype.from_numpy_dtype(argument_dtype)


def is_grid_supported(grid: Grid, context: Context) -> bool:
    """Whether the device has workgroups of so many members, and as many as there are teams."""
    x, y, z = grid.members
    return (
        x * y * z <= context.max_workgroup_invocations
        and all(map(le, grid.members, context.max_workgroup_size))
        and all(map(le, grid.teams, context.max_workgroup_count))
    )


def check_groups(who: str, grid: Grid, context: Context) -> None:
    """Raise ValueError unless the device has such workgroups, and so many of them."""
    x, y, z = grid.members
    most = context.max_workgroup_invocations
    if x * y * z > most or not all(map(le, grid.members, context.max_workgroup_size)):
        raise ArgumentValueError(
            f"members: {who} has {grid.members} in a workgroup, whose size its body looks at; the device has "
            f"at most {context.max_workgroup_size}, {most} in all; run(members, teams) has several workgroups"
        )
    if not all(map(le, grid.teams, context.max_workgroup_count)):
        raise ArgumentValueError(
            f"teams: {grid.teams} are more than the {context.max_workgroup_count} workgroups of the device"
        )


def count_workers(grid: Grid) -> Counts:
    """Return the workers along each axis. Raises ValueError if an id of 32 bits cannot tell them apart."""
    x, y, z = (members * teams for members, teams in zip(grid.members, grid.teams, strict=True))
    if max(x, y, z) > LARGEST:
        raise ArgumentValueError(
            f"members, teams: {grid.members} times {grid.teams} are more than {LARGEST} workers along an axis"
        )
    return x, y, z


def find_or_make(key: Hashable, make: Callable[[], _Made]) -> _Made:
    """Return what was made for this key before, or make it: sections are built once for each kind of data."""
    with _lock:
        found: Any = _programs.get(key)
    if found is None:
        found = make()
        with _lock:
            _programs[key] = found
            while len(_programs) > _KEPT:
                del _programs[next(iter(_programs))]
    made: _Made = found
    return made


_lock = threading.Lock()
_programs: dict[Hashable, object] = {}


@contextmanager
def _pause_recording() -> Iterator[None]:
    """Have kernels run, whatever graph this thread records into."""
    chosen, current.chosen = current.chosen, None
    try:
        yield
    finally:
        current.chosen = chosen


def _read_scalar(argument: Argument) -> Any:
    return np.asarray(argument.read(), dtype=argument.parameter.dtype).reshape(())[()]


def _place(argument: Argument, queue: int) -> Buffer[Any]:
    value, shape = argument.value, argument.shape
    kind = device_kind(argument.parameter.dtype)
    if isinstance(value, Buffer):
        value.require_alive()
        return value if value.shape == shape and value.var_type is kind else _Elements(value, kind, shape)
    return _upload(value, argument, kind, queue)


def _upload(value: Array, argument: Argument, kind: DType, queue: int) -> Buffer[Any]:
    shape = argument.shape
    if argument.size > LARGEST:
        raise ArgumentValueError(
            f"argument {argument.parameter.name!r}: {argument.size} elements are more than {LARGEST}, which "
            "is what indices of 32 bits reach"
        )
    buffer: Buffer[Any] = Buffer(shape if len(shape) <= MOST_AXES else argument.size, kind)
    buffer.write(np.ascontiguousarray(value, dtype=argument.parameter.dtype).reshape(-1), queue)
    return buffer


def _shader_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (*shape[:MOST_AXES], *(1,) * (MOST_AXES - len(shape)), size)
