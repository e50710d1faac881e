"""Kernels given as GLSL text or as SPIR-V, called and recorded like traced ones."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from vkdispatch.base import errors
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compilation.includes import resolve_includes
from vkdispatch.base.compute_plan import ComputePlan, check_features
from vkdispatch.base.context import Context
from vkdispatch.base.record import record, replace
from vkdispatch.base.spirv.interface import Interface, SpecConstant, Value
from vkdispatch.base.spirv.module import Module, read_module
from vkdispatch.base.spirv.reflection import rebind, reflect
from vkdispatch.base.validation import read_valid_module
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.compiler.forms import Variant
from vkdispatch.shader.building import BuiltKernel, Coarsening, bind_kernel, check_local_size
from vkdispatch.shader.pickling import load_payload, make_payload
from vkdispatch.shader.program import Program
from vkdispatch.shader.raw.interface import make_description
from vkdispatch.shader.raw.values import RawArgument, read_arguments
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import Slots, describe_kernel
from vkdispatch.shader.size import Extent, GroupSize, Size, parse_local_size

# ---- The code of a kernel given as GLSL or SPIR-V, and the values of its specialization constants --------


# Values of specialization constants, by id or name.
Values = Mapping[int | str, Value]


@record
class RawCode:
    """The code of a kernel, and the options that the user gave with it.

    Attributes
    ----------
    glsl
        The text, or None if SPIR-V was given.
    local_size
        The workgroup size that the user gave, or None for the code's own.
    specialization
        Values of specialization constants by id.
    untrusted
        Whether its author is not trusted.
    """

    name: str
    glsl: str | None
    module: Module
    entry_point: str
    arguments: tuple[RawArgument, ...]
    local_size: Extent | None
    specialization: Mapping[int, Value]
    untrusted: bool = False

    @property
    def argument(self) -> str:
        """What messages call the code."""
        return f"{self.name}: {'source' if self.glsl is not None else 'spirv'}"


def parse_values(code: RawCode, interface: Interface, values: Values) -> dict[int, Value]:
    """Return checked values of specialization constants by id."""
    if not isinstance(values, Mapping):
        raise errors.ArgumentTypeError(f"{code.name}: specialization: expected a dictionary, got {values!r}")
    parsed = {}
    for key, value in values.items():
        constant = _find_constant(code, interface, key)
        try:
            constant.pack(value)
        except (errors.ArgumentTypeError, errors.ArgumentValueError) as error:
            raise type(error)(f"{code.name}: {error}") from None
        kinds: dict[str, type[Any]] = {"bool": bool, "int": int, "float": float}
        parsed[constant.id] = kinds[constant.kind](value)
    return parsed


def _find_constant(code: RawCode, interface: Interface, key: object) -> SpecConstant:
    known = interface.spec_constants
    for constant in known.values():
        if key == constant.name != "" or (key == constant.id and not isinstance(key, bool)):
            return constant
    names = ", ".join(
        f"{number} ({constant.name})" if constant.name else str(number)
        for number, constant in sorted(known.items())
    )
    stripped = known and not any(constant.name for constant in known.values())
    hint = ": the code has no names, so pass ids" if stripped and isinstance(key, str) else ""
    raise errors.ArgumentValueError(
        f"{code.name}: specialization: the code has no constant {key!r}; it has {names or 'none'}{hint}"
    )


def specialize(code: RawCode) -> tuple[RawCode, Interface, Extent]:
    """Return the code with its workgroup size among the constants, the resulting interface, and that size."""
    interface = reflect(code.module, code.entry_point, code.specialization, code.argument)
    if code.local_size is None:
        if interface.local_size is None:
            raise errors.ArgumentValueError(
                f"{code.name}: local_size: the code computes it in a way that is not supported; pass it"
            )
        return code, interface, interface.local_size
    if interface.local_size is None:
        return code, interface, code.local_size
    values = dict(code.specialization)
    for wanted, declared, number in zip(
        code.local_size, interface.local_size, interface.local_size_ids, strict=True
    ):
        if number is not None and values.get(number, wanted) == wanted:
            values[number] = wanted
        elif wanted != declared:
            raise errors.ArgumentValueError(
                f"{code.name}: local_size: {code.local_size} is passed, the code says "
                f"{interface.local_size}; add ids for its axes, as in layout(local_size_x_id = 0) in;"
            )
    code = replace(code, specialization=values)
    return code, reflect(code.module, code.entry_point, values, code.argument), code.local_size or (1, 1, 1)


# ---- The programs of kernels given as GLSL or SPIR-V -----------------------------------------------------


class RawProgram(Program):
    """The program of a kernel given as GLSL or SPIR-V.

    It has one variant, and there is no IR to add prints or checks to.

    Attributes
    ----------
    code
        The code, with the workgroup size among its constants.
    interface
        What the code declares.
    local_size
        Invocations of a workgroup along x, y and z.
    """

    def __init__(self, code: RawCode, origin: str | None) -> None:
        """Read what code declares. Raises ValueError if the arguments do not fit that."""
        self.code, self.interface, self.local_size = specialize(code)
        text = code.glsl
        if text is None:
            text = _describe_module(self.code, self.interface, self.local_size)
        self._who = describe_kernel(code.name, origin)
        self._raw = make_description(code.name, text, code.arguments, self.interface, self.local_size)
        # It has all attributes that launching uses.
        self.description = cast(ShaderDescription, self._raw)

    def compile(
        self, slots: Slots, context: Context, local_size: Extent, variant: Variant, coarsening: Coarsening
    ) -> BuiltKernel:
        """Compile the code; see `Program`. Raises ValueError for the folded variant, which does not exist."""
        who = self._who
        if variant.folded:
            raise errors.ArgumentValueError(
                f"{who}: a launch on this device has at most {context.max_workgroup_count} workgroups (of "
                f"{local_size}); launch several times"
            )
        check_local_size(who, local_size, context)
        check_features(who, self.interface, context)
        source = self._raw.shader_source(local_size)
        return bind_kernel(context, self._build_plan(context, source), slots, self._raw.arguments, source)

    def _build_plan(self, context: Context, source: ShaderSource) -> ComputePlan:
        constants = [
            (number, self.interface.spec_constants[number].pack(value))
            for number, value in sorted(self.code.specialization.items())
        ]
        spirv = rebind(self.code.module, self._raw.places, self.interface)
        if self.code.untrusted:
            from vkdispatch.base.untrusted.compiler import check_pipeline

            types, size = self._raw.binding_type_list, self._raw.pc_size
            check_pipeline(context, spirv, types, size, self.code.entry_point, constants, self._raw.name)
        try:
            return ComputePlan(
                self._raw.text,
                self._raw.binding_type_list,
                self._raw.pc_size,
                self._raw.name,
                spirv=spirv,
                checked=True,
                context=context,
                entry_point=self.code.entry_point,
                specialization=constants,
                uniform_blocks=self._raw.uniform_blocks,
            )
        except errors.DeviceLostError:
            raise
        except errors.VulkanError as error:
            raise errors.ShaderBuildError(
                f"{self._who}: the driver rejected the kernel: {error}", shader_source=source.numbered()
            ) from error


def _describe_module(code: RawCode, interface: Interface, local_size: Extent) -> str:
    """Describe a module, in place of a source."""
    major, minor = code.module.version
    lines = [
        f"// SPIR-V {major}.{minor}, {code.module.words.nbytes} bytes, entry point {code.entry_point!r}",
        f"// workgroups of {local_size}",
    ]
    lines += [
        f"// set {resource.set}, binding {resource.binding}: {resource.kind} {resource.name}".rstrip()
        for resource in interface.resources
    ]
    if interface.push_constants is not None:
        lines += [
            f"// push constants, byte {offset}: {kind} {name}".rstrip()
            for name, offset, kind in interface.push_constants.members
        ]
    lines += [
        f"// constant {constant.id}: {constant.kind} {constant.name}".rstrip()
        for constant in interface.spec_constants.values()
    ]
    return "\n".join(lines) + "\n"


class RawKernel(ShaderFunction):
    """A kernel given as GLSL or SPIR-V. Calling it queues a dispatch, or records one into a graph.

    `exec_size` is rounded up to whole workgroups, and all of their invocations run. Unlike a traced kernel,
    the code itself has to skip those beyond the end. The kernel is pickled by value: its SPIR-V and the
    arguments that it was made with.

    Attributes
    ----------
    interface
        What the code declares: bindings, push constants, specialization constants, workgroup size.
    specialization
        The values of specialization constants, by id.
    """

    def __init__(self, code: RawCode, exec_size: object, workgroups: object, origin: str | None) -> None:
        program = RawProgram(code, origin)
        self._code = program.code
        self.interface = program.interface
        self.specialization: dict[int, Value] = dict(program.code.specialization)
        super().__init__(
            program.description, program.local_size, workgroups, exec_size, origin=origin, program=program
        )

    def _reduce_otherwise(self) -> tuple[Any, ...] | None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        # its functions, if any, are launch sizes: without cloudpickle, those of modules can be pickled
        return load_payload, (make_payload(self),)

    def _get_state(self) -> tuple[Any, ...]:
        code = self._code
        parts = code.name, code.glsl, code.module.words.tobytes(), code.entry_point, code.arguments
        options = code.local_size, dict(code.specialization), code.untrusted
        return parts, options, self.exec_size, self.workgroups, self._kernel.origin

    def _set_state(self, *state: Any) -> None:
        (name, glsl, spirv, entry_point, arguments), options, exec_size, workgroups, origin = state
        module = read_module(spirv, f"{name}: spirv")
        code = RawCode(name, glsl, module, entry_point, arguments, *options)
        RawKernel.__init__(self, code, exec_size, workgroups, origin)

    def _get_content(self) -> tuple[Any, ...]:
        return self._get_state()[:-1]

    def specialize(self, values: "Mapping[int | str, Value]") -> "RawKernel":
        """Return this kernel with other values of specialization constants, given by id or name.

        Other constants keep the value that they have here.

        Raises
        ------
        ValueError
            The code has no such constant, or a value does not fit it.
        TypeError
            A value has another type than the constant.
        """
        changed = parse_values(self._code, self.interface, values)
        # New values of the workgroup's axes replace the earlier `local_size`.
        is_resized = not changed.keys().isdisjoint(self.interface.local_size_ids)
        code = replace(
            self._code,
            specialization={**self.specialization, **changed},
            local_size=None if is_resized else self._code.local_size,
        )
        return RawKernel(code, self.exec_size, self.workgroups, self._kernel.origin)


def glsl_kernel(  # noqa: PLR0913 - public
    source: str,
    arguments: "Sequence[Any] | Mapping[str, Any]" = (),
    exec_size: Size | None = None,
    local_size: GroupSize | None = None,
    workgroups: Size | None = None,
    specialization: "Mapping[int | str, Value] | None" = None,
    name: str | None = None,
    untrusted: bool = False,
    include: Any = None,
    defines: "Mapping[str, Any] | None" = None,
) -> RawKernel:
    """Make a kernel of a GLSL compute shader. It is compiled at once, which needs no device.

    Parameters
    ----------
    source
        GLSL for Vulkan, with `#version` and `void main()`.
    arguments
        (name, annotation) or (name, annotation, binding) of each argument, in call order, or a dictionary of
        names and annotations. `binding` is a binding of set 0, a (set, binding), or the name of a block.

        `Buff[...]` are storage buffers: binding 0, 1, ... of set 0 in order unless `binding` says otherwise.
        One at a uniform block is bound as a uniform buffer.

        `Const[...]`, `Var[...]`, dataclasses and dictionaries are values of the push constants, or of the
        uniform block that `binding` names (or of the one that there is, without push constants), whatever
        its layout. `Const` and `Var` take its members in order. A dictionary of names and dtypes, such as
        `{"alpha": f32, "weights": (f32, 9)}`, takes the members of these names, `dict` all of them; a
        dataclass those of the names of its fields if all of these are members, else members in order.
        A call gives for any of these three a dictionary or a dataclass instance.
    exec_size, workgroups
        Invocations or workgroups of a call, in the forms that `vd.shader` takes. Whole workgroups run: the
        code has to check its global invocation id itself.
    local_size
        Workgroup size, 1 to 3 ints. The default is what the source says; an axis can differ from that where
        the source gives it an id, as in `layout(local_size_x_id = 0) in;`.
    specialization
        Values of specialization constants, by id or name.
    name
        The name in messages and tools (default: "glsl_kernel").
    untrusted
        Whether the author of the text is not trusted. It is then compiled in a child process with limits on
        time and memory, the result is checked as in `spirv_kernel`, and the driver compiles that in a child
        process first. The code that runs in the end is still the author's: see :doc:`/reference/kernels/raw`.
    include
        The sources of `#include "name"` and `<name>`: texts by name, a folder, or a list of these, which is
        searched in order. The folder of the including file is searched first, unless the name is in angle
        brackets. With `untrusted`, nothing outside of the folders is read.
    defines
        Macros, as if defined after `#version`: numbers or text by name. True and False are 1 and 0, None is
        an empty macro.

    Raises
    ------
    ShaderBuildError
        The source does not compile, an include is not found, or the compiler crashed or exceeded a limit on
        an untrusted one.
    ValueError, TypeError
        Arguments, sizes or constants do not fit what the code declares; the message says where.

    Examples
    --------
    >>> add_one = vd.glsl_kernel('''
    ... #version 450
    ... layout(local_size_x = 64) in;
    ... layout(std430, binding = 0) buffer Data { float x[]; };
    ... void main() {
    ...     uint i = gl_GlobalInvocationID.x;
    ...     if (i < x.length()) x[i] += 1.0;
    ... }
    ... ''', [("x", Buff[f32])], exec_size="x.size")
    >>> buffer = vd.asbuffer(np.zeros(3, np.float32))
    >>> add_one(buffer)
    >>> buffer.read(0)
    array([1., 1., 1.], dtype=float32)
    """
    errors.check_type("source", source, str, "GLSL text")
    name = _parse_name(name, "glsl_kernel")
    read = read_arguments(arguments)
    size = parse_local_size(local_size)
    preprocessing = resolve_includes(name, source, include, defines, confined=bool(untrusted))
    if untrusted:
        from vkdispatch.base.untrusted.compiler import compile_untrusted  # few programs need this

        compiled = compile_untrusted(source, name, preprocessing)
    else:
        compiled = compile_glsl(source, name, preprocessing)
    argument = f"{name}: source"
    module = read_valid_module(compiled, argument, True) if untrusted else read_module(compiled, argument)
    code = RawCode(name, source, module, "main", read, size, {}, bool(untrusted))
    return _make_kernel(code, exec_size, workgroups, specialization, _locate_caller())


def spirv_kernel(  # noqa: PLR0913 - public
    spirv: bytes,
    arguments: "Sequence[Any] | Mapping[str, Any]" = (),
    exec_size: Size | None = None,
    local_size: GroupSize | None = None,
    workgroups: Size | None = None,
    specialization: "Mapping[int | str, Value] | None" = None,
    name: str | None = None,
    entry_point: str = "main",
    untrusted: bool = False,
) -> RawKernel:
    """Make a kernel of a SPIR-V module, of SPIR-V 1.0 to 1.6. A device with Vulkan 1.2 takes at most 1.5.

    A broken module can crash a driver. SPIRV-Tools, which is part of vkdispatch, therefore validates it here.

    Parameters
    ----------
    spirv
        The bytes of the module, such as `Path("kernel.spv").read_bytes()`.
    arguments, exec_size, local_size, workgroups, specialization
        As in `glsl_kernel`.
    name
        The name in messages and tools (default: the entry point).
    entry_point
        The compute entry point to run.
    untrusted
        Whether the author of the module is not trusted. The driver then compiles it in a child process first,
        with limits on time and memory, which crashes in place of this one.

    Raises
    ------
    ShaderBuildError
        The driver refused the module when the kernel was built, or crashed or exceeded a limit on an
        untrusted one.
    ValueError, TypeError
        The module is broken, or arguments, sizes or constants do not fit what it declares.
    """
    if not isinstance(entry_point, str):
        raise errors.ArgumentTypeError(f"entry_point: expected text, got {entry_point!r}")
    name = _parse_name(name, entry_point)
    read = read_arguments(arguments)
    size = parse_local_size(local_size)
    module = read_valid_module(spirv, f"{name}: spirv", bool(untrusted))
    code = RawCode(name, None, module, entry_point, read, size, {}, bool(untrusted))
    return _make_kernel(code, exec_size, workgroups, specialization, _locate_caller())


def _make_kernel(
    code: RawCode, exec_size: object, workgroups: object, specialization: Values | None, origin: str
) -> RawKernel:
    if specialization is not None:
        interface = reflect(code.module, code.entry_point, argument=code.argument)
        values = parse_values(code, interface, specialization)
        code = replace(code, specialization=values)
    return RawKernel(code, exec_size, workgroups, origin)


def _parse_name(name: object, default: str) -> str:
    if name is None:
        return default
    if not isinstance(name, str) or not name:
        raise errors.ArgumentTypeError(f"name: expected text, got {name!r}")
    return name


def _locate_caller() -> str:
    """Return "file.py:12" for the line that called `glsl_kernel` or `spirv_kernel`."""
    frame = sys._getframe(2)
    return errors.describe_place(frame.f_code.co_filename, frame.f_lineno)
