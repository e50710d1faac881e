"""GLSL on this package's engine: the body of a compute shader's `main`, or a shader with a `main`."""

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.errors import ArgumentValueError, ShaderBuildError, UnsupportedError, VkDispatchError
from vkdispatch.codegen.abbreviations import Buff, Const
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.orders.arguments import Argument, Counts, Grid, Parameter
from vkdispatch.orders.compilers import BuildFailure
from vkdispatch.orders.errors import Debugging
from vkdispatch.orders.models import engine
from vkdispatch.orders.models.protocol import Task
from vkdispatch.shader.raw.kernel import RawKernel, glsl_kernel

NAME = "glsl"
FILE = "accelpy.comp"

TYPES = {
    "b1": "uint8_t",
    "i1": "int8_t",
    "i2": "int16_t",
    "i4": "int",
    "i8": "int64_t",
    "u1": "uint8_t",
    "u2": "uint16_t",
    "u4": "uint",
    "u8": "uint64_t",
    "f2": "float16_t",
    "f4": "float",
    "f8": "double",
    "c8": "vec2",
    "c16": "dvec2",
}

_HEAD = """\
#version 460
#extension GL_GOOGLE_cpp_style_line_directive : enable
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
"""
_RUN = """\
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(push_constant, scalar) uniform accelpy_run_block {
  ivec3 accelpy_worker;
  ivec3 accelpy_team;
  ivec3 accelpy_assign;
  int accelpy_run;
};
"""
_MACROS = "".join(
    [
        f"#define ACCELPY_{macro}_DIM{d} (accelpy_{macro.lower()}.{'xyz'[d]})\n"
        for macro in ("WORKER", "TEAM", "ASSIGN")
        for d in range(3)
    ]
    + ["#define ACCELPY_ACCEL_RUNID (accelpy_run)\n"]
)
_MAIN = """\
void main() {
  accelpy_body();
}
"""
# If the body does not depend on workgroups, there may be more invocations than workers.
_BOUNDED_MAIN = """\
void main() {
  if (any(greaterThanEqual(gl_GlobalInvocationID, uvec3(accelpy_worker * accelpy_team)))) return;
  accelpy_body();
}
"""
_GROUP_SIZE = 256
_INT8 = 39  # SPIR-V's capability

# Names that no argument can have.
_RESERVED = (
    "active asm atomic_uint attribute bool break buffer bvec2 bvec3 bvec4 case cast centroid class "
    "coherent common const continue default discard dmat2 dmat3 dmat4 do double dvec2 dvec3 dvec4 else "
    "enum extern external false filter fixed flat float for fvec2 fvec3 fvec4 goto half highp hvec2 hvec3 "
    "hvec4 if image1D image2D image3D in inline inout input int interface invariant isampler2D ivec2 "
    "ivec3 ivec4 layout long lowp main mat2 mat3 mat4 mediump namespace noinline noperspective out output "
    "partition patch precise precision public readonly resource restrict return sample sampler sampler1D "
    "sampler2D sampler3D shared short sizeof smooth static struct subroutine superp switch template "
    "texture this true typedef uimage2D uint uniform union unsigned using uvec2 uvec3 uvec4 varying vec2 "
    "vec3 vec4 void volatile while writeonly "
)
_WORDS = frozenset(_RESERVED.split())
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OWN_MAIN = re.compile(r"\bvoid\s+main\s*\(")
_EXTENSION = re.compile(r"^[ \t]*#[ \t]*extension\b.*$", re.MULTILINE)
_GLOBAL = re.compile(r"\bshared\b")
_GROUP_NAMES = re.compile(
    r"\b(gl_WorkGroupID|gl_WorkGroupSize|gl_NumWorkGroups|gl_LocalInvocationID|gl_LocalInvocationIndex|"
    r"gl_NumSubgroups|gl_Subgroup\w+|subgroup\w+|shared|barrier|groupMemoryBarrier|memoryBarrierShared)\b"
)
_MESSAGE = re.compile(r"^(ERROR|WARNING): (.*):(\d+): (.*)$")
_TERMINATED = "'' : compilation terminated"


def write_glsl(task: Task, *, aliased: bool = False) -> str:
    """Write the shader around the body of a section.

    Parameters
    ----------
    aliased
        Whether an output is an input too. Inputs are then not declared readonly.

    Raises
    ------
    BuildFailure
        The name of an argument is not valid in GLSL.
    """
    for name in (parameter.name for parameter in task.parameters):
        if name in _WORDS or name.startswith("gl_") or "__" in name:
            raise BuildFailure(f"the argument's name {name} is reserved in GLSL; choose another")
    section, label = task.section, task.order.label.replace('"', "'")
    extensions = "".join(
        f'#line {section.body_line + section.body.count(chr(10), 0, match.start())} "{label}"\n{match[0]}\n'
        for match in _EXTENSION.finditer(section.body)
    )
    plain = _COMMENTS.sub(" ", section.body)
    opening, closing = "void accelpy_body() {\n", "}\n"
    if _OWN_MAIN.search(plain):
        opening, closing = "#define main accelpy_body\n", "#undef main\n"
    before = "".join(
        (_HEAD, extensions, _RUN, _write_declarations(task.parameters, aliased=aliased), _MACROS, opening)
    )
    body = f'#line {section.body_line} "{label}"\n{_EXTENSION.sub("", section.body)}\n'
    main = _MAIN if _GROUP_NAMES.search(plain) else _BOUNDED_MAIN
    # Errors at the end of a body are reported at its last line.
    last = section.body_line + section.body.rstrip().count("\n")
    body += f'#line {last} "{label}"\n{closing}'
    line = before.count("\n") + body.count("\n") + 2
    return f'{before}{body}#line {line} "{FILE}"\n{main}'


class GlslProgram(engine.EngineProgram):
    """A compiled `glsl` section. The driver compiles it again for each workgroup size."""

    def __init__(self, task: Task, context: Context) -> None:
        super().__init__(NAME, f"glslang, for {context.device_infos[0].device_name}")
        self._task = task
        self._depends_on_groups = bool(_GROUP_NAMES.search(_COMMENTS.sub(" ", task.section.body)))
        self._lock = threading.Lock()
        self._kernels = {(False, (1, 1, 1)): _compile(task, aliased=False)}

    def build(self) -> None:
        """Compile it with the driver. Raises the driver's error, or UnsupportedError."""
        kernel = self._find_kernel((1, 1, 1), aliased=False)
        for device in get_context().device_infos:
            if _INT8 in kernel.interface.capabilities and "shaderInt8" not in device.features:
                raise UnsupportedError(f"{NAME}: the device {device.device_name!r} has no 8-bit integers")
        kernel.build()

    def _find_kernel(self, local_size: Counts, *, aliased: bool) -> RawKernel:
        with self._lock:
            kernel = self._kernels.get((aliased, local_size))
            if kernel is None:
                first = (aliased, (1, 1, 1))
                if first not in self._kernels:
                    self._kernels[first] = _compile(self._task, aliased=aliased)
                kernel = self._kernels[first].specialize(dict(enumerate(local_size)))
                self._kernels[aliased, local_size] = kernel
            return kernel

    def _launch(
        self, placement: engine.DevicePlacement, grid: Grid, run_id: int, graph: CommandGraph | None
    ) -> None:
        context = placement.context
        extent = engine.count_workers(grid)
        members, teams = grid.members, grid.teams
        try:
            engine.check_groups(NAME, grid, context)
        except ArgumentValueError:
            if self._depends_on_groups:
                raise
            members, teams = _spread_workers(extent, context)
        description = placement.descriptions.get(NAME)
        if description is None:
            description = placement.descriptions[NAME] = _make_description(placement)
        arguments = [
            description,
            *(buffer for buffer in placement.buffers if buffer is not None),
            *(grid.members, grid.teams, grid.assignments, run_id & 0x7FFFFFFF),
        ]
        kernel = self._find_kernel(members, aliased=placement.is_aliased)
        engine.launch(kernel, arguments, placement, graph, workgroups=teams)


def _write_source_file(task: Task, debugging: Debugging) -> None:
    text = write_glsl(task)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()
    debugging.write_file(f"{NAME}-{digest}.comp", text)


def _compile(task: Task, *, aliased: bool) -> RawKernel:
    arguments: list[tuple[str, Any]] = [("accelpy_facts", Buff[dtype.uint32])]
    arguments += [
        (parameter.name, Buff[dtype.from_numpy_dtype(parameter.dtype)])  # type: ignore[misc]
        for parameter in task.parameters
        if parameter.is_memory
    ]
    arguments += [(f"accelpy_{what}", Const[dtype.ivec3]) for what in ("worker", "team", "assign")]
    arguments.append(("accelpy_run", Const[dtype.int32]))
    try:
        return glsl_kernel(
            write_glsl(task, aliased=aliased),
            arguments,
            local_size=(1, 1, 1),
            name=f"{task.order.label}: glsl",
        )
    except ShaderBuildError as error:
        raise BuildFailure(_translate_log(error.compiler_log or str(error), task)) from None
    except VkDispatchError as error:
        raise BuildFailure(str(error)) from None


def _translate_log(log: str, task: Task) -> str:
    """Return the messages of glslang with the lines of the order."""
    lines = task.order.code.splitlines()
    label = task.order.label.replace('"', "'")
    messages = ["glslang:"]
    for line in log.splitlines():
        match = _MESSAGE.match(line)
        if match is None or match[4].startswith(_TERMINATED):
            continue
        messages.append(f"{match[2]}:{match[3]}: {match[1].lower()}: {match[4].strip()}")
        number = int(match[3])
        if match[2] == label and 1 <= number <= len(lines):
            messages.append(f"    {lines[number - 1].strip()}")
    if len(messages) == 1:
        return f"glslang:\n{log.strip()}"
    plain = _COMMENTS.sub(" ", task.section.body)
    if _GLOBAL.search(plain) and not _OWN_MAIN.search(plain):
        messages.append(
            "shared arrays must be outside of functions: declare them above your own void main() {...}"
        )
    return "\n".join(messages)


def _find_alignment(parameter: Parameter) -> int:
    size = parameter.dtype.itemsize
    return size // 2 if parameter.dtype.kind == "c" else size


def _sort_block_members(parameters: Sequence[Parameter]) -> list[tuple[Parameter, int]]:
    """Return arrays and input scalars with their alignment, in the order that leaves no gaps."""
    described = [(p, 4 if p.ndim else _find_alignment(p)) for p in parameters if p.ndim or not p.is_output]
    return sorted(described, key=lambda item: -item[1])


def _write_declarations(parameters: Sequence[Parameter], *, aliased: bool) -> str:
    ranks = sorted({parameter.ndim for parameter in parameters if parameter.ndim})
    text = "".join(
        f"struct accelpy_attributes_{n} {{ int shape[{n}]; int stride[{n}]; int size; int ndim; }};\n"
        for n in ranks
    )
    text += "layout(binding = 0, scalar) restrict readonly buffer accelpy_facts_block {\n"
    after = ""
    for parameter, _ in _sort_block_members(parameters):
        name = parameter.name
        if parameter.ndim:
            text += f"  accelpy_attributes_{parameter.ndim} {name};\n"
        elif parameter.dtype.kind == "b":
            text += f"  {TYPES[parameter.code]} accelpy_bool_{name};\n"
            after += f"bool {name} = uint(accelpy_bool_{name}) != 0u;\n"
        else:
            text += f"  {TYPES[parameter.code]} {name};\n"
    # a block needs at least one member
    text += "  int accelpy_end;\n};\n"
    for number, parameter in enumerate(p for p in parameters if p.is_memory):
        access = "" if parameter.is_output or aliased else "readonly "
        # The macros expand only before parentheses: components such as x may have the same names.
        memory = f"accelpy_data_{number}" if parameter.ndim else parameter.name
        text += (
            f"layout(binding = {number + 1}, scalar) {access}buffer accelpy_block_{number} "
            f"{{ {TYPES[parameter.code]} {memory}{'[]' if parameter.ndim else ''}; }};\n"
        )
        if parameter.ndim:
            element = f"{memory}[{_flatten_index(parameter)}]"
            if parameter.dtype.kind == "b" and not parameter.is_output:
                element = f"(uint({element}) != 0u)"
            indices = ", ".join(f"accelpy_i{d}" for d in range(parameter.ndim))
            after += f"#define {parameter.name}({indices}) {element}\n"
    return text + after


def _flatten_index(parameter: Parameter) -> str:
    """Return the index of an element in memory. The last index varies fastest."""
    text = "(accelpy_i0)"
    for d in range(1, parameter.ndim):
        text = f"({text} * {parameter.name}.shape[{d}] + (accelpy_i{d}))"
    return text


def _make_description(placement: engine.DevicePlacement) -> Buffer[Any]:
    """Return a buffer with shapes, strides and scalars, in the layout of the shader's block."""
    by_name = {argument.parameter.name: argument for argument in placement.arguments}
    values = {
        argument.parameter.name: value
        for argument, value in zip(placement.arguments, placement.values, strict=True)
    }
    parts = [
        _pack_attributes(by_name[parameter.name])
        if parameter.ndim
        else np.asarray(values[parameter.name], parameter.dtype).tobytes()
        for parameter, _ in _sort_block_members([argument.parameter for argument in placement.arguments])
    ]
    octets = b"".join(parts)
    # padding, and the last member of the block, an int
    octets += bytes(-len(octets) % 4 + 4)
    buffer: Buffer[Any] = Buffer(len(octets) // 4, dtype.uint32)
    # on every queue: a graph can be submitted to any of them
    buffer.write(octets)
    return buffer


def _pack_attributes(argument: Argument) -> bytes:
    shape = argument.shape
    strides = [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))]
    return np.array([*shape, *strides, argument.size, len(shape)], np.int32).tobytes()


def _spread_workers(extent: Counts, context: Context) -> tuple[Counts, Counts]:
    """Return a size of workgroups, and the number of workgroups for all invocations."""
    left, sizes = min(_GROUP_SIZE, context.max_workgroup_invocations), []
    for count, most in zip(extent, context.max_workgroup_size, strict=True):
        # Powers of two: the driver compiles few sizes.
        size = min(left, most, 1 << (count - 1).bit_length())
        sizes.append(size)
        left //= size
    x, y, z = sizes
    a, b, c = (-(-count // size) for count, size in zip(extent, sizes, strict=True))
    return (x, y, z), (a, b, c)


MODELS = (engine.EngineModel(NAME, frozenset(), GlslProgram, _write_source_file),)
