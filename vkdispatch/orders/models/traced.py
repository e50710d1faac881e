"""The model `vkdispatch`: the body of a Python function that is traced to a kernel."""

import builtins
import hashlib
import importlib
import keyword
import linecache
import os
import textwrap
import threading
import types
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import compute_type, from_numpy_dtype, int32
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen import abbreviations
from vkdispatch.codegen.arguments import Buffer as BufferAnnotation
from vkdispatch.codegen.arguments import Constant
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.codegen.objects.buffers import BufferVariable
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.analyses.contents import depends_on_workgroups
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.orders.arguments import Counts, Grid, Parameter
from vkdispatch.orders.compilers import BuildFailure
from vkdispatch.orders.models import engine
from vkdispatch.orders.models.protocol import Task
from vkdispatch.orders.order import find_line
from vkdispatch.shader.shader_function import ShaderFunction

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


class TracedProgram(engine.EngineProgram):
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
        self, placement: engine.DevicePlacement, grid: Grid, run_id: int, graph: CommandGraph | None
    ) -> None:
        extent = engine.count_workers(grid)
        arguments = [
            value if buffer is None else buffer
            for buffer, value in zip(placement.buffers, placement.values, strict=True)
        ]
        for name in self._grid_names:
            field, axis = _COUNTS.get(name, ("", 0))
            arguments.append(getattr(grid, field)[axis] if field else run_id & 0x7FFFFFFF)
        if self._depends_on_groups:
            engine.check_groups(NAME, grid, placement.context)
            engine.launch(self._find_kernel(grid.members), arguments, placement, graph, workgroups=grid.teams)
        else:
            engine.launch(self._find_kernel(None), arguments, placement, graph, exec_size=extent)


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
        if parameter.ndim > engine.MAX_AXES:
            raise BuildFailure(
                f"{parameter.name} has {parameter.ndim} dimensions, but buffers have at most "
                f"{engine.MAX_AXES}"
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


MODELS = (engine.EngineModel(NAME, frozenset(("check",)), TracedProgram),)
