"""A traced kernel as the launcher sees it: arguments, bindings, and the source for a workgroup size."""

import functools
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any

from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import UnsupportedError, explain_backend
from vkdispatch.base.record import field, record, replace
from vkdispatch.codegen.backends import CodeGenBackend, GLSLBackend
from vkdispatch.compiler import analyses, glsl, passes
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, StructElement, Variant
from vkdispatch.compiler.ir import ImageBinding, Kernel, Storage
from vkdispatch.compiler.ir.location import Loc

__all__ = [
    "ArgType",
    "BindingType",
    "ShaderArgumentInfo",
    "ShaderBinding",
    "ShaderDescription",
    "ShaderSource",
]


@lru_cache(maxsize=256)
def _quotable(file: str) -> bool:
    """Whether a #line directive can name a file."""
    return not any(letter in '"\\' or letter < " " for letter in file)


class BindingType(IntEnum):
    """Kinds of bound resources."""

    STORAGE_BUFFER = 1
    UNIFORM_BUFFER = 3
    STORAGE_IMAGE = 4
    SAMPLER = 5


class ArgType(Enum):
    """Kinds of kernel arguments."""

    BUFFER = "buffer"
    CONSTANT = "constant"
    CONSTANT_DATACLASS = "constant dataclass"
    VARIABLE = "variable"
    IMAGE = "image"
    STORAGE_IMAGE = "storage image"
    CONSTANT_ARRAY = "constant array"


def binding_type(resource: Storage | ImageBinding) -> BindingType:
    """Return the kind of a bound resource."""
    if isinstance(resource, Storage):
        return BindingType.STORAGE_BUFFER
    return BindingType.STORAGE_IMAGE if resource.storage else BindingType.SAMPLER


@record(sealed=True)
class Place:
    """Where a kernel finds a resource: bound, or by an address in the argument block; -1 is nowhere.

    `address` and `length` are the offsets of a buffer's address and bytes (both uint64). `in_words` says that
    its elements are packed in words of 32 bits.
    """

    binding: int
    address: int = -1
    length: int = -1
    in_words: bool = False


@record(sealed=True)
class ShaderBinding:
    """A bound resource: its element type, name, dimensions (0 for a buffer) and kind."""

    dtype: DType
    name: str
    dimension: int
    binding_type: BindingType


@record(sealed=True)
class ShaderArgumentInfo:
    """An argument of a kernel.

    Attributes
    ----------
    name
        Name in Python.
    arg_type
        Its kind.
    default_value
        Value when omitted; None for none.
    shader_name
        Name in the generated code.
    shader_shape_name
        Member of the argument block that takes a buffer's shape; None if the kernel does not ask for it.
    binding
        Position among the resources; None for values.
    dtype
        Element type, or None for a dataclass.
    members, member_dtypes
        Members of the argument block that take the value, or the fields of a dataclass in order.
    fields
        Names of a dataclass's fields; fields of a nested dataclass read "inner.field".
    image
        What kind of image; None for all else.
    planar
        Whether the kernel indexes the buffer by two axes, so that its shape must have no third.
    reinterpreted
        Whether a buffer of any other dtype may be given, whose bytes are taken for elements of `dtype`.
    unsigned
        Whether all that indexes the buffer is uint32, so that it may have nearly 2**32 elements.
    least_bytes
        What a buffer must have at least.
    uniform
        Whether the buffer is bound as a uniform block.
    mapping
        Whether a dictionary by the names of `fields` may be given too, with bound variables in it.
    """

    name: str
    arg_type: ArgType
    default_value: Any
    shader_name: str
    shader_shape_name: str | None = None
    binding: int | None = None
    dtype: DType | None = None
    members: tuple[str, ...] = ()
    member_dtypes: tuple[DType, ...] = ()
    fields: tuple[str, ...] = ()
    image: ImageBinding | None = None
    planar: bool = False
    reinterpreted: bool = False
    unsigned: bool = False
    least_bytes: int = 0
    uniform: bool = False
    mapping: bool = False


@record(sealed=True)
class ShaderSource:
    """Generated source of a kernel for one workgroup size.

    `line_map` has the line of the user's Python for each line of `code`, or None.
    """

    name: str
    code: str
    local_size: tuple[int, int, int]
    line_map: tuple[Loc | None, ...] = field(default=(), hidden=True)

    def __repr__(self) -> str:
        return f"// ====== {self.name}, workgroup_size={tuple(self.local_size)} ======\n{self.code}"

    def numbered(self) -> "ShaderSource":
        """Return the same source with a line number, from 1, in front of each line."""
        lines = self.code.splitlines()
        code = "".join(f"{number:4d}: {line}\n" for number, line in enumerate(lines, 1))
        return ShaderSource(self.name, code, self.local_size, self.line_map)

    def with_line_directives(self) -> str:
        """Return the code for a compiler, whose messages will then name the user's files and lines.

        Lines that come from nowhere in Python count as those of "GLSL".
        """
        version, *rest = self.code.splitlines()
        lines = [version, "#extension GL_GOOGLE_cpp_style_line_directive : require"]
        expected: tuple[str, int] | None = None
        for number, text in enumerate(rest, 2):
            loc = self.python_line(number)
            place = ("GLSL", number)
            if loc is not None and _quotable(loc.file):
                place = (loc.file, loc.line)
            if place != expected:
                lines.append(f'#line {place[1]} "{place[0]}"')
            lines.append(text)
            expected = (place[0], place[1] + 1)
        return "\n".join(lines) + "\n"

    def lines_of(self, file: str, line: int) -> list[str]:
        """Return the generated lines behind a line of Python."""
        code = self.code.splitlines()
        if file == "GLSL":
            return code[line - 1 : line]
        pairs = zip(code, self.line_map, strict=False)
        return [text.strip() for text, loc in pairs if loc and (loc.file, loc.line) == (file, line)]

    def python_line(self, line: int) -> Loc | None:
        """Return the Python line behind line `line` (from 1) of the code, if it is known."""
        return self.line_map[line - 1] if 0 < line <= len(self.line_map) else None


@record(eq=False, slots=False, sealed=True)
class ShaderDescription:
    """A traced kernel: all that is known of it without a device.

    `asserting` is the kernel with its asserts, if it has any.
    """

    kernel: Kernel
    shader_arg_infos: tuple[ShaderArgumentInfo, ...]
    backend: CodeGenBackend
    asserting: Kernel | None = None

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.kernel.name

    def reinterpreting(self) -> "ShaderDescription":
        """Return the same kernel, which takes buffers of any dtype for what it declares."""
        return self._replace_infos(reinterpreted=True)

    def counting_unsigned(self) -> "ShaderDescription":
        """Return the same kernel, whose indices are uint32 and do not overflow below 2**32 - 2**16."""
        return self._replace_infos(unsigned=True)

    def _replace_infos(self, **changes: bool) -> "ShaderDescription":
        infos = tuple(replace(info, **changes) for info in self.shader_arg_infos)
        return replace(self, shader_arg_infos=infos)

    @functools.cached_property
    def _texts(self) -> "dict[Variant, glsl.writer.GlslText]":
        return {}

    def _text(self, variant: Variant) -> "glsl.writer.GlslText":
        if not isinstance(self.backend, GLSLBackend):
            raise UnsupportedError(
                f"{self.name}: {explain_backend(self.backend.name)}; call vc.set_codegen_backend(None) "
                "before the kernel is defined"
            )
        if variant not in self._texts:
            self._texts[variant] = glsl.writer.write_kernel(self.kernel, variant)
        return self._texts[variant]

    @functools.cached_property
    def _layouts(self) -> dict[Variant, ArgumentLayout]:
        return {}

    def layout(self, variant: Variant = PLAIN) -> ArgumentLayout:
        """Return the layout of the argument block."""
        if variant not in self._layouts:
            # Other forms have the arguments of the kernel itself.
            kernel = passes.widen.widen(self.kernel) if variant.wide else self.kernel
            self._layouts[variant] = analyses.contents.argument_layout(kernel, variant)
        return self._layouts[variant]

    @property
    def header(self) -> str:
        """Source before the main function, without the workgroup size."""
        return self._text(PLAIN).header

    @property
    def body(self) -> str:
        """Source of the main function."""
        return "\n".join(self._text(PLAIN).body) + "\n"

    @property
    def pc_size(self) -> int:
        """Bytes of push constants."""
        layout = self.layout()
        return 0 if layout.uniform else layout.size

    @property
    def pc_structure(self) -> list[StructElement]:
        """Members of the push constant block."""
        layout = self.layout()
        return [] if layout.uniform else list(layout.members)

    @property
    def uniform_structure(self) -> list[StructElement]:
        """Members of the uniform block, which holds the arguments that do not fit in push constants."""
        layout = self.layout()
        return list(layout.members) if layout.uniform else []

    @property
    def resource_binding_base(self) -> int:
        """Binding of the first buffer or image."""
        return 1 if self.layout().uniform else 0

    @property
    def binding_type_list(self) -> list[int]:
        """Kind of each binding, as numbers of `BindingType`."""
        return self.binding_types(PLAIN)

    def binding_types(self, variant: Variant) -> list[int]:
        """Kind of each binding of a form of the kernel, as numbers of `BindingType`."""
        layout = self.layout(variant)
        bound = analyses.contents.resource_bindings(self.kernel, layout)
        kinds = [binding_type(resource) for resource in self.kernel.resources if resource.index in bound]
        return [int(kind) for kind in ([BindingType.UNIFORM_BUFFER] if layout.uniform else []) + kinds]

    def places(self, variant: Variant) -> dict[int, Place]:
        """Where a form of the kernel finds what the plain one finds at a binding."""
        layout, base = self.layout(variant), self.resource_binding_base
        bound = analyses.contents.resource_bindings(self.kernel, layout)
        places = {index + base: Place(binding) for index, binding in bound.items()}
        lengths = {index: layout.offset_of(name) for index, name in layout.lengths.items()}
        for index, name in layout.addresses.items():
            places[index + base] = Place(-1, layout.offset_of(name), lengths.get(index, -1))
        for index in analyses.contents.packed_buffers(self.kernel, variant):
            place = places[index + base]
            places[index + base] = replace(place, length=lengths.get(index, -1), in_words=True)
        return places

    @functools.cached_property
    def binding_access(self) -> list[tuple[bool, bool]]:
        """Whether each binding is (read, written)."""
        access = analyses.contents.resource_access(self.kernel)
        kinds = [
            (resource.index in access.reads, resource.index in access.writes)
            for resource in self.kernel.resources
        ]
        return [(True, False)] * self.resource_binding_base + kinds

    @property
    def exec_count_name(self) -> str | None:
        """Member that takes the execution limit, or None without one."""
        return None if self.kernel.exec_count is None else self.kernel.exec_count.name

    def get_arg_names_and_defaults(self) -> list[tuple[str, Any]]:
        """Return name and default value (None: none) of each argument, in call order."""
        return [(info.name, info.default_value) for info in self.shader_arg_infos]

    def shader_source(self, local_size: tuple[int, int, int], variant: Variant = PLAIN) -> ShaderSource:
        """Return the source for a workgroup size."""
        code, line_map = self._text(variant).source(local_size)
        return ShaderSource(self.name, code, local_size, line_map)

    def make_source(self, x: int, y: int, z: int, variant: Variant = PLAIN) -> str:
        """Return the source text for a workgroup of x * y * z invocations."""
        return self.shader_source((x, y, z), variant).code
