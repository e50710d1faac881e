"""Kernels given as GLSL text or as SPIR-V, called and recorded like traced ones."""

import sys
from collections.abc import Mapping
from typing import Any, cast

from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compilation.includes import resolve_includes
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context
from vkdispatch.base.device_support import check_features
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DeviceLostError,
    ShaderBuildError,
    VulkanError,
    describe_place,
)
from vkdispatch.base.record import record, replace
from vkdispatch.base.spirv.module import NEWEST_OF_EXTENSIONS, Module, read_module, validate
from vkdispatch.base.spirv.reflection import Interface, SpecConstant, Value, rebound, reflect
from vkdispatch.base.spirv.type_checks import check_types
from vkdispatch.codegen import ShaderDescription, ShaderSource
from vkdispatch.ir.variant import Variant
from vkdispatch.passes.diagnostics import Checks
from vkdispatch.shader.launch.launcher import BuiltKernel, bind_kernel, check_local_size
from vkdispatch.shader.launch.size import Extent, parse_local_size
from vkdispatch.shader.launch.variants import UNCOARSENED, Coarsening
from vkdispatch.shader.raw.arguments import RawArgument, read_arguments
from vkdispatch.shader.raw.interface import RawDescription, describe
from vkdispatch.shader.shader_function import ShaderFunction


@record
class RawCode:
    """The code of a kernel and all that was said about it.

    Attributes
    ----------
    glsl
        The text, or None if SPIR-V was given.
    local_size
        Workgroup size asked for, or None to take the code's.
    specialization
        Values of specialization constants by id.
    untrusted
        Whether a stranger wrote it.
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
        """How messages call the code."""
        return f"{self.name}: {'source' if self.glsl is not None else 'spirv'}"


class RawKernel(ShaderFunction):
    """A kernel given as GLSL or SPIR-V. Calling it queues a dispatch, or records one into a graph.

    `exec_size` is rounded up to whole workgroups, and all of their invocations run: the code itself has to
    leave out those beyond the end, unlike a traced kernel. It is pickled by value: its SPIR-V, and
    the arguments that it was made with.

    Attributes
    ----------
    interface
        What the code declares: bindings, push constants, specialization constants, workgroup size.
    specialization
        Values given to specialization constants, by id.
    """

    def __init__(self, code: RawCode, exec_size: Any, workgroups: Any, origin: str | None) -> None:
        self._code, self.interface, local_size = _specialize(code)
        self.specialization: dict[int, Value] = dict(self._code.specialization)
        text = code.glsl if code.glsl is not None else _summarize(code, self.interface, local_size)
        self._raw = describe(code.name, text, code.arguments, self.interface, local_size)
        # It has all that launching looks at.
        description = cast(ShaderDescription, self._raw)
        super().__init__(description, local_size, workgroups, exec_size, origin=origin)

    def __reduce__(self) -> tuple[Any, ...]:
        code = self._code
        parts = code.name, code.glsl, code.module.words.tobytes(), code.entry_point, code.arguments
        options = code.local_size, dict(code.specialization), code.untrusted
        return _restore, (parts, options, self.exec_size, self.workgroups, self._origin)

    def specialize(self, values: "Mapping[int | str, Value]") -> "RawKernel":
        """Return this kernel with other values of specialization constants, given by id or name.

        Those not named keep the value that they have here.

        Raises
        ------
        ValueError
            The code has no such constant, or a value does not fit it.
        TypeError
            A value is of another kind than the constant.
        """
        given = _parse_values(self._code, self.interface, values)
        merged = {**self.specialization, **given}
        # The axes of the workgroup that are named anew count, whatever `local_size` said before.
        renewed = set(self.interface.local_size_ids) & set(given)
        code = replace(
            self._code, specialization=merged, local_size=None if renewed else self._code.local_size
        )
        return RawKernel(code, self.exec_size, self.workgroups, self._origin)

    _traced = False

    def _observe(self, checks: Checks) -> None:
        """Return None: there is no program to add checks to."""

    def _choose_coarsening(self, context: Context, state: object) -> Coarsening:
        return UNCOARSENED

    def _compile(self, context: Context, state: object, local_size: Extent, variant: Variant) -> BuiltKernel:
        who, description = self._who, self._raw
        if variant.folded:
            raise ArgumentValueError(
                f"{who}: a launch on this device has at most {context.max_workgroup_count} workgroups (of "
                f"{local_size}); launch several times"
            )
        check_local_size(who, local_size, context)
        check_features(who, self.interface, context)
        source = description.shader_source(local_size)
        plan = _build_plan(who, context, self._code, self.interface, description, source)
        return bind_kernel(context, plan, self._slots, description.arguments, -1, source)


def glsl_kernel(
    source: str,
    arguments: Any = (),
    exec_size: Any = None,
    local_size: Any = None,
    workgroups: Any = None,
    specialization: "Mapping[int | str, Value] | None" = None,
    name: str | None = None,
    untrusted: bool = False,
    include: Any = None,
    defines: "Mapping[str, Any] | None" = None,
) -> RawKernel:
    """Make a kernel of a GLSL compute shader. It is compiled here and now, which needs no device.

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
        What messages and tools call it (default: "glsl_kernel").
    untrusted
        Whether the text comes from a stranger. It is then compiled in a child process with limits on time
        and memory, what comes out is checked as in `spirv_kernel`, and the driver compiles that in a child
        process first. The code that runs in the end is still theirs: see :doc:`/raw`.
    include
        What `#include "name"` and `<name>` find: texts by name, a folder, or a list of these, which are
        searched in order. A file that is included is looked for beside the including one first, unless its
        name is in angle brackets. With `untrusted`, nothing outside of the folders is read.
    defines
        Macros, as if defined behind `#version`: numbers or text by name; True and False are 1 and 0, None is
        nothing.

    Raises
    ------
    ShaderBuildError
        The source does not compile, includes what is not there, or, of an untrusted one, a compiler crashed
        or took more than it may.
    ValueError, TypeError
        Arguments, sizes or constants do not fit what the code declares; the message says where.
    """
    if not isinstance(source, str):
        raise ArgumentTypeError(f"source: expected GLSL text, got {type(source).__name__}")
    name = _parse_name(name, "glsl_kernel")
    read = read_arguments(arguments)
    size = parse_local_size(local_size)
    preprocessing = resolve_includes(name, source, include, defines, confined=bool(untrusted))
    if untrusted:
        from vkdispatch.base.untrusted.compiler import compile_untrusted  # which few programs need

        compiled = compile_untrusted(source, name, preprocessing)
        module = read_module(compiled, f"{name}: source", NEWEST_OF_EXTENSIONS)
        check_types(module, f"{name}: source")
    else:
        compiled = compile_glsl(source, name, None, preprocessing)
        module = read_module(compiled, f"{name}: source", NEWEST_OF_EXTENSIONS)
    code = RawCode(name, source, module, "main", read, size, {}, bool(untrusted))
    return _make_kernel(code, exec_size, workgroups, specialization, _locate_caller())


def spirv_kernel(
    spirv: bytes,
    arguments: Any = (),
    exec_size: Any = None,
    local_size: Any = None,
    workgroups: Any = None,
    specialization: "Mapping[int | str, Value] | None" = None,
    name: str | None = None,
    entry_point: str = "main",
    untrusted: bool = False,
) -> RawKernel:
    """Make a kernel of a SPIR-V module, of SPIR-V 1.0 to 1.5.

    A broken module can crash a driver. Its structure, blocks and types are checked here; all its rules are
    where the program `spirv-val` is installed (Debian: spirv-tools), which is then asked.

    Parameters
    ----------
    spirv
        The bytes of the module, such as `Path("kernel.spv").read_bytes()`.
    arguments, exec_size, local_size, workgroups, specialization
        As in `glsl_kernel`.
    name
        What messages and tools call it (default: the entry point).
    entry_point
        The compute entry point to run.
    untrusted
        Whether the module comes from a stranger. The driver then compiles it in a child process first, with
        limits on time and memory, which crashes in place of this one.

    Raises
    ------
    ShaderBuildError
        The driver refused the module when the kernel was built, or, of an untrusted one, crashed or took more
        than it may.
    ValueError, TypeError
        The module is broken, or arguments, sizes or constants do not fit what it declares.
    """
    if not isinstance(entry_point, str):
        raise ArgumentTypeError(f"entry_point: expected text, got {entry_point!r}")
    name = _parse_name(name, entry_point)
    read = read_arguments(arguments)
    size = parse_local_size(local_size)
    module = read_module(spirv, f"{name}: spirv")
    check_types(module, f"{name}: spirv")
    validate(module.words.tobytes(), f"{name}: spirv")
    code = RawCode(name, None, module, entry_point, read, size, {}, bool(untrusted))
    return _make_kernel(code, exec_size, workgroups, specialization, _locate_caller())


def _make_kernel(
    code: RawCode,
    exec_size: Any,
    workgroups: Any,
    specialization: "Mapping[int | str, Value] | None",
    origin: str,
) -> RawKernel:
    if specialization is not None:
        interface = reflect(code.module, code.entry_point, argument=code.argument)
        values = _parse_values(code, interface, specialization)
        code = replace(code, specialization=values)
    return RawKernel(code, exec_size, workgroups, origin)


def _restore(
    parts: tuple[Any, ...], options: tuple[Any, ...], exec_size: Any, workgroups: Any, origin: str | None
) -> RawKernel:
    """Make a kernel of what its pickle has."""
    name, glsl, spirv, entry_point, arguments = parts
    module = read_module(spirv, f"{name}: spirv", NEWEST_OF_EXTENSIONS)
    code = RawCode(name, glsl, module, entry_point, arguments, *options)
    return RawKernel(code, exec_size, workgroups, origin)


def _parse_name(name: object, default: str) -> str:
    if name is None:
        return default
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"name: expected text, got {name!r}")
    return name


def _locate_caller() -> str:
    """Return "file.py:12" for the line that called `glsl_kernel` or `spirv_kernel`."""
    frame = sys._getframe(2)
    return describe_place(frame.f_code.co_filename, frame.f_lineno)


# -- specialization


def _parse_values(
    code: RawCode, interface: Interface, values: "Mapping[int | str, Value]"
) -> dict[int, Value]:
    """Return checked values of specialization constants by id."""
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"{code.name}: specialization: expected a dictionary, got {values!r}")
    found = {}
    for key, value in values.items():
        constant = _find_constant(code, interface, key)
        try:
            constant.pack(value)
        except (ArgumentTypeError, ArgumentValueError) as error:
            raise type(error)(f"{code.name}: {error}") from None
        kinds: dict[str, type[Any]] = {"bool": bool, "int": int, "float": float}
        found[constant.id] = kinds[constant.kind](value)
    return found


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
    hint = ": the code has no names, so give ids" if stripped and isinstance(key, str) else ""
    raise ArgumentValueError(
        f"{code.name}: specialization: the code has no constant {key!r}; it has {names or 'none'}{hint}"
    )


def _specialize(code: RawCode) -> tuple[RawCode, Interface, Extent]:
    """Return the code with the workgroup size among its constants, what it declares then, and that size."""
    interface = reflect(code.module, code.entry_point, code.specialization, code.argument)
    if code.local_size is None:
        if interface.local_size is None:
            raise ArgumentValueError(
                f"{code.name}: local_size: the code computes it in an unknown way; say what it is"
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
            raise ArgumentValueError(
                f"{code.name}: local_size: {code.local_size} was asked for, the code says "
                f"{interface.local_size}; give its axes ids, as in layout(local_size_x_id = 0) in;"
            )
    code = replace(code, specialization=values)
    return code, reflect(code.module, code.entry_point, values, code.argument), code.local_size or (1, 1, 1)


# -- building


def _build_plan(
    who: str,
    context: Context,
    code: RawCode,
    interface: Interface,
    description: RawDescription,
    source: ShaderSource,
) -> ComputePlan:
    constants = [
        (number, interface.spec_constants[number].pack(value))
        for number, value in sorted(code.specialization.items())
    ]
    spirv = rebound(code.module, description.places, interface)
    if code.untrusted:
        from vkdispatch.base.untrusted.compiler import check_pipeline

        types, size = description.binding_type_list, description.pc_size
        check_pipeline(context, spirv, types, size, code.entry_point, constants, description.name)
    try:
        return ComputePlan(
            description.text,
            description.binding_type_list,
            description.pc_size,
            description.name,
            spirv=spirv,
            checked=True,
            entry_point=code.entry_point,
            specialization=constants,
            uniform_blocks=description.uniform_blocks,
        )
    except DeviceLostError:
        raise
    except VulkanError as error:
        raise ShaderBuildError(
            f"{who}: the driver refused the kernel: {error}", shader_source=source.numbered()
        ) from error


def _summarize(code: RawCode, interface: Interface, local_size: Extent) -> str:
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
