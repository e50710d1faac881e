"""Tracing a kernel: the builder that the functions of this package record into."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import Any

from vkdispatch.base.dtype import DType, uvec3
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.record import replace
from vkdispatch.codegen.annotations import Annotation
from vkdispatch.codegen.arguments import declare_argument
from vkdispatch.codegen.backends import get_codegen_backend
from vkdispatch.codegen.constant_arrays import ConstantArray
from vkdispatch.codegen.description import (
    ArgType,
    BindingType,
    ShaderArgumentInfo,
    ShaderBinding,
    ShaderDescription,
    binding_type,
)
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.codegen.trace.current import current, set_current
from vkdispatch.codegen.trace.operands import check_dtype, check_printed, refuse_placeholders
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import GROUP_COUNT, check_scopes, contents, find_operations
from vkdispatch.compiler.analyses.joint_flow import JointFlow, has_barriers, is_barrier
from vkdispatch.compiler.glsl.writer import statements_text
from vkdispatch.compiler.ir import ShaderFlags
from vkdispatch.compiler.ir.location import here, located, pause_collection, warn
from vkdispatch.compiler.passes.nesting import check_nesting
from vkdispatch.compiler.passes.order import TRACE_SECONDS, finish_trace, leave_out_asserts
from vkdispatch.compiler.passes.reads import settle_reads

__all__ = ["ShaderBuilder", "ShaderContext", "get_builder", "set_builder", "shader_context"]

_EXEC_COUNT = "exec_count"


class ShaderBuilder(Recorder):
    """The kernel being traced.

    `backend` is the language it will be written in, `flags` its options, `shader_args` the variables of its
    arguments and `shader_arg_infos` their descriptions.
    """

    def __init__(self, flags: ShaderFlags = ShaderFlags.NONE) -> None:
        super().__init__(flags)
        self.backend = get_codegen_backend()

    def _clear(self) -> None:
        super()._clear()
        self._begin = perf_counter()
        self._names.update((_EXEC_COUNT, GROUP_COUNT))
        self.shader_args: list[Any] = []
        self.shader_arg_infos: list[ShaderArgumentInfo] = []
        # What constant arrays were asked for with, what they hold, and how the kernel sees them.
        self._constants: list[tuple[Any, ConstantArray, ir.Storage]] = []
        self.exec_count = None if self.flags & ShaderFlags.NO_EXEC_BOUNDS else ir.Argument(_EXEC_COUNT, uvec3)

    def reset(self) -> None:
        """Forget everything recorded."""
        self._clear()

    @property
    def contents(self) -> str:
        """The statements recorded so far, as GLSL."""
        numbers = count()
        body = settle_reads(tuple(self._frames[0].statements), lambda: f"read{next(numbers)}")
        return statements_text(body)

    @property
    def binding_list(self) -> list[ShaderBinding]:
        """The bound resources in order."""
        return [
            ShaderBinding(resource.dtype, resource.name, 0, BindingType.STORAGE_BUFFER)
            if isinstance(resource, ir.Storage)
            else ShaderBinding(resource.texel, resource.name, resource.dimensions, binding_type(resource))
            for resource in self._resources
        ]

    @property
    def shared_buffers(self) -> list[ir.SharedArray]:
        """The arrays in workgroup memory."""
        return list(self._shared)

    def declare_shader_arguments(
        self,
        type_annotations: Sequence[Annotation],
        names: Sequence[str] | None = None,
        defaults: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Add arguments by annotation; returns their variables.

        Names default to param0, param1...; a default of None is none. Raises RuntimeError the second time,
        ValueError or TypeError for an annotation that is not understood.
        """
        if self.shader_arg_infos:
            raise located(UsageError, "the arguments of this kernel are declared already")
        names = [f"param{i}" for i in range(len(type_annotations))] if names is None else names
        defaults = [None] * len(type_annotations) if defaults is None else defaults
        if not len(type_annotations) == len(names) == len(defaults):
            raise located(
                ArgumentValueError,
                f"arguments: got {len(type_annotations)} annotations, {len(names)} names and "
                f"{len(defaults)} defaults",
            )
        for annotation, name, default in zip(type_annotations, names, defaults, strict=True):
            if not isinstance(name, str):
                raise located(ArgumentTypeError, f"argument names must be str, got {name!r}")
            variable, info = declare_argument(self, name, annotation, default)
            self.shader_args.append(variable)
            self.shader_arg_infos.append(info)
        return list(self.shader_args)

    def take_argument_as(self, buffer: BufferVariable, dtype: DType) -> None:
        """Have callers give a buffer of another dtype for an argument, whose elements are as large."""
        binding = buffer.storage.index if isinstance(buffer.storage, ir.Storage) else None
        for number, info in enumerate(self.shader_arg_infos):
            if info.binding is not None and info.binding == binding:
                self.shader_arg_infos[number] = replace(info, dtype=dtype)

    def get_shader_arguments(self) -> list[Any]:
        """Return the variables of the arguments."""
        return list(self.shader_args)

    def shared_buffer(
        self, var_type: DType, size: int | tuple[int, ...], var_name: str | None = None
    ) -> BufferVariable:
        """Add an array of `size` elements in workgroup memory."""
        check_dtype(var_type, "shared_buffer")
        return BufferVariable(self.add_shared(var_type, size, var_name))

    def constant_array(self, array: Any, var_name: str | None = None) -> BufferVariable:
        """Add a constant array, unless the kernel has it; see `vc.constant_array`."""
        if var_name is not None and (not var_name or not isinstance(var_name, str)):
            raise located(ArgumentTypeError, f"var_name: expected a non-empty str, got {var_name!r}")
        for given, known, storage in self._constants:
            # an array may hold other numbers by now
            if given is array and (known is array or known.holds(array)):
                return BufferVariable(storage)
        constant = array if isinstance(array, ConstantArray) else ConstantArray(array)
        label = f"constant{len(self._constants)}" if var_name is None else var_name
        refuse_placeholders(label, "var_name")
        storage = self.add_storage(constant.var_type, label, constant.shape)
        self._constants.append((array, constant, storage))
        return BufferVariable(storage)

    def _constant_infos(self) -> Iterator[ShaderArgumentInfo]:
        """Describe the constant arrays, as arguments whose names no other one has."""
        taken = {info.name for info in self.shader_arg_infos}
        for _, constant, storage in self._constants:
            name, copies = storage.label, 0
            while name in taken:
                copies += 1
                name = f"{storage.label}_{copies}"
            taken.add(name)
            yield ShaderArgumentInfo(
                name,
                ArgType.CONSTANT_ARRAY,
                constant,
                storage.name,
                binding=storage.index,
                dtype=constant.var_type,
            )

    def append_contents(self, contents: str) -> None:
        """Append raw GLSL lines."""
        self.emit(ir.RawStatement(contents, here()))

    def scope_increment(self) -> None:
        """Open a block."""
        self.open_scope()

    def scope_decrement(self) -> None:
        """Close the innermost block."""
        self.close()

    def build(self, name: str) -> ShaderDescription:
        """Return the kernel.

        Raises RuntimeError if a block is open or too deep, or a variable is used where it does not exist.
        """
        arguments = tuple(self._arguments)
        body = self.body()
        check_nesting(body)
        settled = settle_reads(body, self.new_name)
        kernel = ir.Kernel(
            name,
            arguments if self.exec_count is None else (*arguments, self.exec_count),
            tuple(self._resources),
            tuple(self._shared),
            settled,
            self.exec_count,
            self.flags,
            frozenset(self.marked_reads),
            frozenset(self.marked_writes),
        )
        check_scopes(kernel)
        check_printed(self.placeholders)
        _check_texts(kernel)
        _warn_of_barriers(kernel)
        kernel = finish_trace(kernel, self.new_name)
        self.show_warnings(settled)
        infos = (*map(self._complete, self.shader_arg_infos), *self._constant_infos())
        plain = leave_out_asserts(kernel)
        plain.facts[TRACE_SECONDS] = perf_counter() - self._begin
        return ShaderDescription(plain, infos, self.backend, None if plain is kernel else kernel)

    def _complete(self, info: ShaderArgumentInfo) -> ShaderArgumentInfo:
        """Add what is known only after the trace: what the kernel asks of a buffer's shape."""
        shape = None if info.binding is None else self._shapes.get(info.binding)
        if shape is None:
            return info
        return replace(info, shader_shape_name=shape.name, planar=info.binding in self._planar)


def _check_texts(kernel: ir.Kernel) -> None:
    """Raise TypeError where an f-string put a GPU value into a text that is no print."""
    parts = contents(kernel)
    for statement in parts.statements:
        if isinstance(statement, ir.Comment):
            refuse_placeholders(statement.text, "comment", statement.loc)
        elif isinstance(statement, ir.RawStatement):
            refuse_placeholders(statement.text, "raw GLSL", statement.loc)
    for expr in find_operations(kernel, ir.Op.RAW):
        if isinstance(expr.value, ir.RawText):
            refuse_placeholders(expr.value.text, "raw GLSL", expr.loc)


def _has_joint_block(statement: ir.Statement) -> bool:
    """Whether a branch or a loop has a barrier, or a return."""
    nested = (inner for block in ir.blocks_of(statement) for inner in ir.walk(block))
    return any(is_barrier(inner) or isinstance(inner, ir.Return) for inner in nested)


def _warn_of_barriers(kernel: ir.Kernel) -> None:
    """Warn where only some invocations of a workgroup may reach a barrier."""
    if not has_barriers(kernel) or not any(map(_has_joint_block, kernel.body)):
        return  # most kernels, without an analysis of what differs
    for statement in JointFlow(kernel).divergent_statements():
        if isinstance(statement, ir.Return):
            warn(
                "return: a barrier follows, which all invocations of a workgroup must reach; put what the "
                "others do under an `if`, and leave it to exec_size to end invocations beyond the data",
                statement.loc,
            )
        else:
            warn(
                "barrier: whether an invocation comes here depends on its position in the workgroup. If not "
                "all of them come, the device may wait forever: put the barrier after the `if` or the loop, "
                "not inside",
                getattr(statement, "loc", None),
            )


def get_builder() -> ShaderBuilder:
    """Return this thread's builder. Raises RuntimeError outside tracing."""
    recorder = current()
    assert isinstance(recorder, ShaderBuilder)
    return recorder


def set_builder(builder: ShaderBuilder | None) -> None:
    """Make a builder this thread's, or none. Raises RuntimeError while another one is active."""
    if builder is not None and not isinstance(builder, ShaderBuilder):
        raise located(ArgumentTypeError, f"set_builder: expected a ShaderBuilder or None, got {builder!r}")
    set_current(builder)


class ShaderContext:
    """A kernel being traced by hand; see `shader_context`."""

    def __init__(self, builder: ShaderBuilder) -> None:
        self.builder = builder
        self.shader_description: ShaderDescription | None = None

    def declare_input_arguments(
        self,
        type_annotations: Sequence[Annotation],
        names: Sequence[str] | None = None,
        defaults: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Add arguments by annotation; returns their variables. Raises RuntimeError the second time."""
        return self.builder.declare_shader_arguments(type_annotations, names, defaults)

    def get_description(self, name: str | None = None) -> ShaderDescription:
        """Return the kernel as recorded when this is first called; later calls return the same."""
        if self.shader_description is None:
            self.shader_description = self.builder.build("shader" if name is None else name)
        return self.shader_description


@contextmanager
def shader_context(flags: ShaderFlags = ShaderFlags.NONE) -> Iterator[ShaderContext]:
    """Trace a kernel by hand: what happens inside is recorded. Raises RuntimeError inside another trace."""
    context = ShaderContext(ShaderBuilder(flags))
    set_builder(context.builder)
    try:
        with pause_collection():
            yield context
    finally:
        set_builder(None)
