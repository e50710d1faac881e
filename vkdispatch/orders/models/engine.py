"""The models on this package's engine: their common part, and `vkdispatch`, traced Python functions."""

import builtins
import hashlib
import importlib
import keyword
import linecache
import os
import textwrap
import threading
import types
from collections.abc import Callable, Hashable, Sequence
from operator import le
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, Handle, get_context
from vkdispatch.base.dtype import DType, compute_type, from_numpy_dtype, int32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.record import record
from vkdispatch.base.synchronization import record_event
from vkdispatch.codegen import abbreviations
from vkdispatch.codegen.arguments import Buffer as BufferAnnotation
from vkdispatch.codegen.arguments import Constant
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.analyses.contents import depends_on_workgroups
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.execution_pipeline.command_graph import CommandGraph, pause_recording
from vkdispatch.orders.arguments import Argument, Counts, Grid, Parameter
from vkdispatch.orders.compilers import BuildFailure
from vkdispatch.orders.errors import Debugging
from vkdispatch.orders.models.protocol import Placement, Task
from vkdispatch.orders.order import find_line
from vkdispatch.shader.shader_function import ShaderFunction

MAX_AXES = 3  # of a buffer
LARGEST = 2**31 - 1

_MAX_PROGRAMS = 128


class _Elements(Buffer[Any]):
    """A view of a buffer of vectors or matrices as scalars, in the same memory."""

    def __init__(self, whole: Buffer[Any], kind: DType, shape: tuple[int, ...]) -> None:
        Handle.__init__(self, whole.context)
        self.var_type = kind
        self.size = whole.mem_size // kind.item_size
        self.mem_size = whole.mem_size
        self.shape = shape
        self.shader_shape = (*shape[:MAX_AXES], *(1,) * (MAX_AXES - len(shape)), self.size)
        self._native = whole._native
        self.register_parent(whole)

    def _release(self) -> None:
        # the memory belongs to the other buffer
        pass


class DevicePlacement:
    """The arguments on a device: each array in a buffer, input scalars as values.

    Parameters
    ----------
    arguments
        The arguments to place.
    context, queue
        The context, and the queue that runs. Buffers have a copy for each queue of a context.

    Attributes
    ----------
    buffers
        A buffer for each argument, or None for an input scalar.
    values
        The value of each input scalar, or None for another argument.
    descriptions
        Further buffers of programs, by model. They are freed with the placement.
    """

    def __init__(self, arguments: Sequence[Argument], context: Context, queue: int) -> None:
        self.arguments = tuple(arguments)
        self.context = context
        self.queue = queue
        self.values: list[Any] = []
        self.buffers: list[Buffer[Any] | None] = []
        places: dict[Hashable, Buffer[Any]] = {}  # arguments that are the same array remain one
        for argument in arguments:
            if not argument.parameter.is_memory:
                self.buffers.append(None)
                self.values.append(np.asarray(argument.read(), argument.parameter.dtype).reshape(())[()])
                continue
            if argument.memory not in places:
                places[argument.memory] = _place(argument, queue)
            self.buffers.append(places[argument.memory])
            self.values.append(None)
        self.descriptions: dict[Hashable, Buffer[Any]] = {}

    @property
    def is_aliased(self) -> bool:
        """Whether an output is also another argument."""
        memory = [buffer._native for buffer in self.buffers if buffer is not None]
        return len({id(part) for part in memory}) < len(memory)

    def fetch(self) -> None:
        """Copy outputs back to the arrays of the host."""
        for argument, buffer in zip(self.arguments, self.buffers, strict=True):
            value = argument.value
            if (
                buffer is None
                or not argument.parameter.is_output
                or isinstance(value, Buffer)
                or not value.size
            ):
                continue
            if value.flags.c_contiguous and value.dtype == argument.parameter.dtype:
                buffer.read(self.queue, out=value.reshape(buffer.shape))
            else:
                argument.write(buffer.read(self.queue).reshape(value.shape))

    def close(self) -> None:
        """Release the buffers. Graphs may still refer to some of them."""
        self.buffers.clear()
        self.descriptions.clear()


class EngineProgram:
    """A section as a kernel of this package.

    Attributes
    ----------
    model
        The name of its model.
    description
        Its compiler and device.
    """

    def __init__(self, model: str, description: str) -> None:
        self.model = model
        self.description = description

    def build(self) -> None:
        """Compile it. Raises the errors of the compiler and the driver."""
        raise NotImplementedError

    def devices(self) -> int:
        """Return the number of devices of the context."""
        return len(get_context().device_infos)

    def place(self, arguments: Sequence[Argument], device: int) -> DevicePlacement:
        """Copy the arguments to buffers. Raises ValueError if the device does not exist."""
        context = get_context()
        return DevicePlacement(arguments, context, self._find_queue(context, device))

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arguments are on this device. Both models of the engine can use them."""
        if not isinstance(placement, DevicePlacement) or not placement.context.usable:
            return False
        context = get_context()
        return placement.context is context and placement.queue == self._find_queue(context, device)

    def start(self, placement: Placement, grid: Grid, run_id: int) -> Callable[[int], None]:
        """Queue the run on the device, and return a function that waits for it.

        Raises
        ------
        ValueError
            The device does not support these members or teams.
        """
        assert isinstance(placement, DevicePlacement)
        if grid.is_empty:
            return lambda _: None
        with pause_recording():
            self._launch(placement, grid, run_id, None)
        event = record_event(placement.queue)

        def wait(_: int) -> None:
            event.wait()

        return wait

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body, and wait for it."""
        self.start(placement, grid, run_id)(run_id)

    def record(self, placement: Placement, grid: Grid, run_id: int, graph: object) -> None:
        """Record the run to a graph instead of making it.

        Raises
        ------
        TypeError
            `graph` is not a graph.
        ValueError
            An argument is an array of the host, which a graph does not copy.
        """
        assert isinstance(placement, DevicePlacement)
        if not isinstance(graph, CommandGraph):
            raise ArgumentTypeError(f"graph: expected a vd.CommandGraph, got {type(graph).__name__}")
        for argument in placement.arguments:
            if argument.parameter.is_memory and not isinstance(argument.value, Buffer):
                what = "output" if argument.parameter.is_output else "input"
                raise ArgumentValueError(
                    f"graph: the {what} {argument.parameter.name!r} is a NumPy array, which a "
                    "submitted graph does not copy; convert it with vd.asbuffer()"
                )
        if not grid.is_empty:
            self._launch(placement, grid, run_id, graph)

    def _launch(
        self, placement: DevicePlacement, grid: Grid, run_id: int, graph: CommandGraph | None
    ) -> None:
        raise NotImplementedError

    def _find_queue(self, context: Context, device: int) -> int:
        count = len(context.device_infos)
        if device >= count:
            raise ArgumentValueError(
                f"device: {self.model} has {count} devices in this context, counted from 0, got {device}; "
                "vd.make_context chooses them"
            )
        return sum(map(len, context.queue_families[:device]))


@record
class EngineModel:
    """A model whose sections are compiled in this process.

    Attributes
    ----------
    name, options
        Its name, and the options of its sections.
    make
        Makes the program of a section.
    report
        Writes the source of a section to a file, for `debug=True`.
    """

    name: str
    options: frozenset[str]
    make: Callable[[Task, Context], EngineProgram]
    report: Callable[[Task, Debugging], None] = lambda task, debugging: None

    def build(self, task: Task) -> EngineProgram:
        """Build a section once for equal texts and types. Raises BuildFailure."""
        context = _require_context(task)
        if task.debugging is not None:
            self.report(task, task.debugging)
        order, section = task.order, task.section
        key = (self.name, order.text, order.label, section.line, repr(section.options), task.parameters)
        with _lock:
            program = _programs.get(key)
        if program is None:
            program = self.make(task, context)
            with _lock:
                _programs[key] = program
                while len(_programs) > _MAX_PROGRAMS:
                    del _programs[next(iter(_programs))]
        try:
            program.build()
        except VkDispatchError as error:
            raise BuildFailure(str(error)) from None
        return program


_lock = threading.Lock()
_programs: dict[Hashable, EngineProgram] = {}


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


def _require_context(task: Task) -> Context:
    """Return the context that runs the kernels of a section.

    Raises
    ------
    BuildFailure
        There is no context, or the task names a compiler.
    """
    if task.compile is not None:
        raise BuildFailure(
            f"compile: {', '.join(task.compile)} was named, but this model has a built-in compiler; omit "
            "compile"
        )
    try:
        context = get_context()
    except VkDispatchError as error:
        raise BuildFailure(f"no device for Vulkan: {error}") from None
    if is_dummy() or not context.runs:
        raise BuildFailure("no device for Vulkan: the dummy backend cannot run kernels")
    return context


def check_groups(model: str, grid: Grid, context: Context) -> None:
    """Raise ValueError unless the device supports workgroups of this size and number."""
    x, y, z = grid.members
    most = context.max_workgroup_invocations
    if x * y * z > most or not all(map(le, grid.members, context.max_workgroup_size)):
        raise ArgumentValueError(
            f"members: {model} uses the workgroup size, {grid.members} here; the device supports at most "
            f"{context.max_workgroup_size}, {most} in all; run(members, teams) uses several workgroups"
        )
    if not all(map(le, grid.teams, context.max_workgroup_count)):
        raise ArgumentValueError(
            f"teams: {grid.teams} are more than the {context.max_workgroup_count} workgroups of the device"
        )


def count_workers(grid: Grid) -> Counts:
    """Return the workers along each axis. Raises ValueError if they exceed 32-bit ids."""
    x, y, z = (members * teams for members, teams in zip(grid.members, grid.teams, strict=True))
    if max(x, y, z) > LARGEST:
        raise ArgumentValueError(
            f"members, teams: {grid.members} times {grid.teams} are more than {LARGEST} workers along an axis"
        )
    return x, y, z


def _place(argument: Argument, queue: int) -> Buffer[Any]:
    value, shape = argument.value, argument.shape
    kind = dtype.from_numpy_dtype(argument.parameter.dtype)
    if isinstance(value, Buffer):
        value.require_alive()
        return value if value.shape == shape and value.var_type is kind else _Elements(value, kind, shape)
    if argument.size > LARGEST:
        raise ArgumentValueError(
            f"argument {argument.parameter.name!r}: {argument.size} elements are more than {LARGEST}, the "
            "limit of 32-bit indices"
        )
    buffer: Buffer[Any] = Buffer(shape if len(shape) <= MAX_AXES else argument.size, kind)
    buffer.write(np.ascontiguousarray(value, dtype=argument.parameter.dtype).reshape(-1), queue)
    return buffer


NAME = "vkdispatch"
FUNCTION = "vkdispatch_order"

# The names of the grid in bodies, with the attribute and axis of each.
_COUNTS = {
    f"ACCELPY_{what}_DIM{d}": (field, d)
    for what, field in (("WORKER", "members"), ("TEAM", "teams"), ("ASSIGN", "assignments"))
    for d in range(3)
}
_RUN_ID = "ACCELPY_ACCEL_RUNID"


class ArrayVariable(BufferVariable):
    """An argument of an order in the body of a kernel: a buffer with `ndim`, `size` and `stride`."""

    __slots__ = ("_ndim",)

    def __init__(self, variable: BufferVariable, ndim: int) -> None:
        super().__init__(variable.storage)
        self._ndim = ndim

    @property
    def ndim(self) -> int:
        """The number of axes, a Python int."""
        return self._ndim

    @property
    def size(self) -> ShaderVariable:
        """The number of elements."""
        return self.shape[3]

    @property
    def stride(self) -> "tuple[ShaderVariable | int, ...]":
        """The strides in elements."""
        strides: list[ShaderVariable | int] = [1]
        for axis in range(self._ndim - 1, 0, -1):
            strides.insert(0, self.shape[axis] * strides[0])
        return tuple(strides[: self._ndim])


class TracedProgram(EngineProgram):
    """A traced `vkdispatch` section."""

    def __init__(self, task: Task, context: Context) -> None:
        super().__init__(NAME, f"vkdispatch, for {context.device_infos[0].device_name}")
        self._check = task.section.options.get("check")
        self._origin = f"{os.path.basename(task.order.label)}:{task.section.line}"
        self._description, self._grid_names = _trace(task)
        self._depends_on_groups = depends_on_workgroups(self._description.kernel)
        self._lock = threading.Lock()
        self._kernels: dict[Counts | None, ShaderFunction] = {}

    def build(self) -> None:
        """Compile it. Raises the errors of the compiler and the driver."""
        self._find_kernel(None).build()

    def _find_kernel(self, local_size: Counts | None) -> ShaderFunction:
        with self._lock:
            if local_size not in self._kernels:
                self._kernels[local_size] = ShaderFunction(
                    self._description, local_size, origin=self._origin, check=self._check
                )
            return self._kernels[local_size]

    def _launch(
        self, placement: DevicePlacement, grid: Grid, run_id: int, graph: CommandGraph | None
    ) -> None:
        extent = count_workers(grid)
        arguments = [
            value if buffer is None else buffer
            for buffer, value in zip(placement.buffers, placement.values, strict=True)
        ]
        for name in self._grid_names:
            field, axis = _COUNTS.get(name, ("", 0))
            arguments.append(getattr(grid, field)[axis] if field else run_id & 0x7FFFFFFF)
        if self._depends_on_groups:
            check_groups(NAME, grid, placement.context)
            launch(self._find_kernel(grid.members), arguments, placement, graph, workgroups=grid.teams)
        else:
            launch(self._find_kernel(None), arguments, placement, graph, exec_size=extent)


def _trace(task: Task) -> tuple[ShaderDescription, tuple[str, ...]]:
    """Return the kernel of a section, and the names of the grid that it uses: its last arguments."""
    function, file = _make_function(task)
    names = _list_names(function.__code__)
    grid_names = tuple(name for name in (*_COUNTS, _RUN_ID) if name in names)
    parameters = task.parameters
    annotations = [*map(_make_annotation, parameters), *(Constant[int32] for _ in grid_names)]
    labels = [*(parameter.name for parameter in parameters), *(name.lower() for name in grid_names)]
    try:
        with vc.shader_context() as context:
            variables = context.declare_input_arguments(annotations, labels, [None] * len(labels))
            function.__globals__.update(zip(grid_names, variables[len(parameters) :], strict=True))
            values = [
                ArrayVariable(variable, parameter.ndim) if isinstance(variable, BufferVariable) else variable
                for parameter, variable in zip(parameters, variables, strict=False)
            ]
            prepare_kernel(function, rewrite=True)(*values)
        description = context.get_description(FUNCTION)
    except VkDispatchError as error:
        raise BuildFailure(str(error)) from None
    except Exception as error:
        raise BuildFailure(_describe_failure(task, error, find_line(error, file))) from error
    bound = [parameter for parameter in parameters if parameter.is_memory]
    accesses = description.binding_access[description.resource_binding_base :]
    for parameter, (_, written) in zip(bound, accesses, strict=False):
        if written and not parameter.is_output:
            raise BuildFailure(
                f"{task.order.label}:{task.section.line}: the body writes to {parameter.name}, an input; "
                "pass outputs after the order, and name them with set_argnames"
            )
    return description, grid_names


def _make_annotation(parameter: Parameter) -> Any:
    kind = from_numpy_dtype(parameter.dtype)
    if parameter.is_memory:
        return BufferAnnotation[kind]  # type: ignore[valid-type]
    return Constant[compute_type(kind)]  # type: ignore[misc]


def _make_function(task: Task) -> tuple[types.FunctionType, str]:
    """Return the body as a function of the arguments, and its file name.

    The file does not exist. Its lines are in `linecache`, with the line numbers of the order.
    """
    for parameter in task.parameters:
        if keyword.iskeyword(parameter.name):
            raise BuildFailure(f"the argument's name {parameter.name} is a keyword of Python; choose another")
        if parameter.ndim > MAX_AXES:
            raise BuildFailure(
                f"{parameter.name} has {parameter.ndim} dimensions, but buffers have at most {MAX_AXES}"
            )
    arguments = ", ".join(parameter.name for parameter in task.parameters)
    header = "\n" * (task.section.body_line - 2) + f"def {FUNCTION}({arguments}):\n"
    text = header + _indent(task.section.body)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    # Messages show the last part of the file name.
    file = f"<order {digest}>/{os.path.basename(task.order.label)}"
    namespace: dict[str, Any] = {
        name: value for name, value in vars(abbreviations).items() if not name.startswith("_")
    }
    namespace |= {"vc": vc, "vd": importlib.import_module("vkdispatch"), "np": np}
    namespace |= task.order.names
    namespace |= {"__name__": file, "__builtins__": builtins}
    try:
        code = compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise BuildFailure(_describe_failure(task, error, getattr(error, "lineno", None))) from None
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(code, namespace)
    function = namespace[FUNCTION]
    assert isinstance(function, types.FunctionType)
    return function, file


def _indent(body: str) -> str:
    """Return the indented body of a function. A body that is indented already is unchanged."""
    lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return "    pass\n"
    if all(line[0] in " \t" for line in lines):
        return body
    return textwrap.indent(body, "    ")


def _list_names(code: types.CodeType) -> set[str]:
    """Return the global names that a function and its nested functions use."""
    names = set(code.co_names)
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            names |= _list_names(value)
    return names


def _describe_failure(task: Task, error: BaseException, line: int | None) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    lines = task.order.code.splitlines()
    place = f"{task.order.label}:{line}" if line else task.order.label
    shown = f"\n    {lines[line - 1].strip()}" if line and line <= len(lines) else ""
    return f"{place}: {type(error).__name__}: {message}{shown}"


MODELS = (EngineModel(NAME, frozenset(("check",)), TracedProgram),)
