"""The arguments of a kernel that is given as GLSL or SPIR-V, held against what its code declares."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.record import record
from vkdispatch.base.spirv_reflection import Interface, Resource, Type
from vkdispatch.codegen import ArgType, BindingType, ShaderArgumentInfo, ShaderSource
from vkdispatch.codegen.arguments import image_binding, is_image, leaf_fields
from vkdispatch.codegen.ir import ImageBinding
from vkdispatch.codegen.layout import ArgumentLayout, StructElement
from vkdispatch.codegen.variant import PLAIN, Variant

Place = tuple[int, int]
_ARG_TYPES = {
    BindingType.STORAGE_BUFFER: ArgType.BUFFER,
    BindingType.SAMPLER: ArgType.IMAGE,
    BindingType.STORAGE_IMAGE: ArgType.STORAGE_IMAGE,
}
_RESOURCE_KINDS = {
    BindingType.STORAGE_BUFFER: "storage buffer",
    BindingType.SAMPLER: "sampled image",
    BindingType.STORAGE_IMAGE: "storage image",
}
_WANTED = "Buff[...], Const[...], Var[...], Img2[...] or a dataclass of dtypes"


@record
class RawArgument:
    """An argument as declared by the user.

    Attributes
    ----------
    origin
        The annotation's class, such as `vc.Buffer`, or a dataclass.
    kinds
        The dtype of each value that it stands for, by name of the member that takes it.
    place
        Set and binding where the user said so.
    """

    name: str
    origin: Any
    kinds: tuple[tuple[str, DType], ...]
    place: Place | None = None

    @property
    def is_resource(self) -> bool:
        """Whether it is bound, rather than passed by value."""
        return self.origin is vc.Buffer or is_image(self.origin)

    @property
    def image(self) -> ImageBinding | None:
        """The image that it stands for, or None. Raises ValueError for texels that no format has."""
        return image_binding(0, self.name, self.origin, self.kinds[0][1]) if is_image(self.origin) else None

    @property
    def binding_type(self) -> BindingType:
        """How a resource is bound."""
        image = self.image
        if image is None:
            return BindingType.STORAGE_BUFFER
        return BindingType.STORAGE_IMAGE if image.storage else BindingType.SAMPLER

    def __str__(self) -> str:
        kinds = ", ".join(kind.name for _, kind in self.kinds)
        return f"argument {self.name!r} ({getattr(self.origin, '__name__', self.origin)} of {kinds})"


def read_arguments(arguments: object) -> tuple[RawArgument, ...]:
    """Understand the arguments given to `glsl_kernel` or `spirv_kernel`.

    Raises
    ------
    TypeError
        They are no pairs of name and annotation, or an annotation has no dtype.
    ValueError
        A name is no Python name or given twice, or an annotation is of another kind.
    """
    if isinstance(arguments, Mapping):
        arguments = list(arguments.items())
    if isinstance(arguments, (str, bytes)) or not isinstance(arguments, Sequence):
        raise ArgumentTypeError(
            "arguments: expected a list such as [('data', Buff[f32]), ('alpha', Const[f32])], "
            f"got {arguments!r}"
        )
    made: list[RawArgument] = []
    for item in arguments:
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise ArgumentTypeError(
                f"arguments: expected (name, annotation) or (name, annotation, binding), got {item!r}"
            )
        name, annotation, *place = item
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentValueError(f"arguments: expected a Python name, got {name!r}")
        if name in [argument.name for argument in made]:
            raise ArgumentValueError(f"arguments: {name!r} is there twice")
        made.append(_argument(name, annotation, _place(name, place[0]) if place else None))
    return tuple(made)


def _place(name: str, value: object) -> Place:
    numbers = value if isinstance(value, tuple) else (0, value)
    match numbers:
        case (int(in_set), int(binding)) if in_set >= 0 and binding >= 0:
            return (in_set, binding)
    raise ArgumentValueError(
        f"argument {name!r}: expected a binding, or a tuple of set and binding, got {value!r}"
    )


def _argument(name: str, annotation: Any, place: Place | None) -> RawArgument:
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        fields = leaf_fields(annotation)
        kinds = tuple((f"{name}_{field.replace('.', '_')}", kind) for field, kind in fields)
        origin: Any = annotation
    else:
        origin = getattr(annotation, "__origin__", None)
        kinds = tuple((name, kind) for kind in getattr(annotation, "__args__", ()))
        if origin is None or len(kinds) != 1:
            raise ArgumentTypeError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
        if origin not in (vc.Buffer, vc.Constant, vc.Variable) and not is_image(origin):
            raise ArgumentValueError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
    for _, kind in kinds:
        if not (isinstance(kind, type) and dtype.is_dtype(kind) and hasattr(kind, "item_size")):
            raise ArgumentTypeError(f"argument {name!r}: expected a dtype such as vd.float32, got {kind!r}")
    argument = RawArgument(name, origin, kinds, place)
    if place is not None and not argument.is_resource:
        raise ArgumentValueError(f"{argument}: only buffers and images have bindings")
    return argument


@dataclass(frozen=True, eq=False)
class RawDescription:
    """What launching needs to know of a kernel that was not traced: a counterpart of `ShaderDescription`."""

    name: str
    text: str
    local_size: tuple[int, int, int]
    shader_arg_infos: tuple[ShaderArgumentInfo, ...]
    binding_type_list: tuple[int, ...]
    binding_access: tuple[tuple[bool, bool], ...]
    arguments: ArgumentLayout
    uniform_binding: int
    # Set and binding in the code -> binding of the plan.
    places: Mapping[Place, int]

    resource_binding_base = 0
    exec_count_name = None
    header = ""

    @property
    def body(self) -> str:
        """The code, or for SPIR-V a description of it."""
        return self.text

    @property
    def backend(self) -> vc.CodeGenBackend:
        """The language of the kernel's surroundings."""
        return vc.GLSLBackend()

    @property
    def kernel(self) -> NoReturn:
        """The traced program, which there is none of. Raises NotImplementedError."""
        raise UnsupportedError(f"{self.name}: this needs a traced kernel (@vd.shader), not GLSL or SPIR-V")

    @property
    def pc_size(self) -> int:
        """Bytes of push constants."""
        return 0 if self.arguments.uniform else self.arguments.size

    @property
    def pc_structure(self) -> list[StructElement]:
        """Members of the push constant block."""
        return [] if self.arguments.uniform else list(self.arguments.members)

    @property
    def uniform_structure(self) -> list[StructElement]:
        """Members of the uniform block that takes the values, where the code has one."""
        return list(self.arguments.members) if self.arguments.uniform else []

    def layout(self, variant: Variant = PLAIN) -> ArgumentLayout:
        """Return where the values lie."""
        return self.arguments

    def get_arg_names_and_defaults(self) -> list[tuple[str, Any]]:
        """Return name and default value (None: none) of each argument, in call order."""
        return [(info.name, info.default_value) for info in self.shader_arg_infos]

    def shader_source(self, local_size: tuple[int, int, int], variant: Variant = PLAIN) -> ShaderSource:
        """Return the code as given."""
        return ShaderSource(self.name, self.text, self.local_size)

    def make_source(self, x: int, y: int, z: int, variant: Variant = PLAIN) -> str:
        """Return the code as given."""
        return self.text


def describe(
    name: str,
    text: str,
    arguments: Sequence[RawArgument],
    interface: Interface,
    local_size: tuple[int, int, int],
) -> RawDescription:
    """Lay the arguments over what the code declares.

    Parameters
    ----------
    text
        GLSL, or what is shown in its place.

    Raises
    ------
    ValueError
        They do not fit each other; the message says where.
    """
    block, uniform = _value_block(name, arguments, interface)
    bound = _bound(name, arguments, interface, uniform)
    places = sorted({place for _, place in bound} | ({uniform} if uniform is not None else set()))
    numbers = {place: number for number, place in enumerate(places)}
    layout = _value_layout(name, arguments, block, uniform is not None)
    declared: dict[Place, list[Resource]] = {}
    for resource in interface.resources:
        declared.setdefault((resource.set, resource.binding), []).append(resource)
    access = [
        (
            any(resource.readable for resource in declared.get(place, ())),
            any(resource.writable for resource in declared.get(place, ())),
        )
        for place in places
    ]
    kinds = {place: argument.binding_type for argument, place in bound}
    if uniform is not None:
        kinds[uniform] = BindingType.UNIFORM_BUFFER
    by_name = {argument.name: numbers[place] for argument, place in bound}
    return RawDescription(
        name,
        text,
        local_size,
        tuple(_info(argument, by_name) for argument in arguments),
        tuple(int(kinds[place]) for place in places),
        tuple(access),
        layout,
        -1 if uniform is None else numbers[uniform],
        numbers,
    )


def _info(argument: RawArgument, bindings: Mapping[str, int]) -> ShaderArgumentInfo:
    names = tuple(member for member, _ in argument.kinds)
    kinds = tuple(kind for _, kind in argument.kinds)
    if argument.is_resource:
        arg_type = _ARG_TYPES[argument.binding_type]
        place = bindings[argument.name]
        return ShaderArgumentInfo(
            argument.name, arg_type, None, argument.name, binding=place, dtype=kinds[0], image=argument.image
        )
    if isinstance(argument.origin, type) and dataclasses.is_dataclass(argument.origin):
        fields = tuple(field for field, _ in leaf_fields(argument.origin))
        arg_type, kind = ArgType.CONSTANT_DATACLASS, None
    else:
        fields = ()
        arg_type = ArgType.CONSTANT if argument.origin is vc.Constant else ArgType.VARIABLE
        kind = kinds[0]
    return ShaderArgumentInfo(
        argument.name,
        arg_type,
        None,
        argument.name,
        dtype=kind,
        members=names,
        member_dtypes=kinds,
        fields=fields,
    )


# -- bindings


def _value_block(
    name: str, arguments: Sequence[RawArgument], interface: Interface
) -> tuple[Type | None, Place | None]:
    """Return the block that takes the values: push constants, or else the one uniform buffer."""
    given = {argument.place for argument in arguments}
    uniforms = [
        resource
        for resource in interface.resources
        if resource.kind == "uniform buffer" and (resource.set, resource.binding) not in given
    ]
    if interface.push_constants is None and len(uniforms) == 1:
        return uniforms[0].type, (uniforms[0].set, uniforms[0].binding)
    if uniforms:
        raise ArgumentValueError(
            f"{name}: {_said(uniforms[0])} cannot be bound: values go to the push constants, or where there "
            "are none to one uniform buffer; make it a storage buffer"
        )
    return interface.push_constants, None


def _bound(
    name: str,
    arguments: Sequence[RawArgument],
    interface: Interface,
    uniform: Place | None,
) -> list[tuple[RawArgument, Place]]:
    """Return where each buffer and image goes, in order of the arguments."""
    taken = {argument.place for argument in arguments} | {uniform}
    bound: list[tuple[RawArgument, Place]] = []
    following = 0
    for argument in arguments:
        if not argument.is_resource:
            continue
        place = argument.place
        if place is None:
            while (0, following) in taken:
                following += 1
            place = (0, following)
            following += 1
        if place in [other for _, other in bound]:
            raise ArgumentValueError(f"{name}: {argument}: {_where(place)} is taken by another argument")
        bound.append((argument, place))
    declared: dict[Place, list[Resource]] = {}
    for resource in interface.resources:
        declared.setdefault((resource.set, resource.binding), []).append(resource)
    for argument, place in bound:
        for resource in declared.get(place, ()):
            _check_resource(name, argument, resource)
        if place not in declared:
            known = ", ".join(map(_said, interface.resources)) or "nothing"
            raise ArgumentValueError(
                f"{name}: {argument} goes to {_where(place)}, where the code declares nothing; "
                f"it declares {known}"
            )
    places = {place for _, place in bound}
    for place, resources in declared.items():
        if place not in places and place != uniform:
            raise ArgumentValueError(f"{name}: {_said(resources[0])} has no argument")
    return bound


def _where(place: Place) -> str:
    return f"set {place[0]}, binding {place[1]}"


def _said(resource: Resource) -> str:
    called = f" ({resource.name})" if resource.name else ""
    return f"the {resource.kind} at {_where((resource.set, resource.binding))}{called}"


def _check_resource(name: str, argument: RawArgument, resource: Resource) -> None:
    wanted = _RESOURCE_KINDS[argument.binding_type]
    if resource.kind != wanted:
        raise ArgumentValueError(
            f"{name}: {argument}: a {wanted} is given, and the code has {_said(resource)}"
        )
    if wanted != "storage buffer" or not resource.type.members:
        return
    (_, kind), last = argument.kinds[0], resource.type.members[-1][2]
    stride, size = last.stride, kind.item_size
    if last.kind == "array" and stride and stride % size and size % stride:
        raise ArgumentValueError(
            f"{name}: {argument}: the elements of {_said(resource)} lie {stride} bytes apart, a {kind.name} "
            f"takes {size}; declare the block with layout(scalar)"
        )


# -- values


def _value_layout(
    name: str, arguments: Sequence[RawArgument], block: Type | None, uniform: bool
) -> ArgumentLayout:
    values = [
        (argument, member, kind)
        for argument in arguments
        if not argument.is_resource
        for member, kind in argument.kinds
    ]
    slots = list(_flat(block)) if block is not None else []
    where = "the uniform block" if uniform else "the push constant block"
    if len(values) != len(slots):
        had = ", ".join(f"{slot} {kind}" for slot, _, kind in slots) or "none"
        given = ", ".join(f"{member} ({kind.name})" for _, member, kind in values) or "none"
        raise ArgumentValueError(
            f"{name}: {where} of the code has {len(slots)} values ({had}), "
            f"the arguments have {len(values)} ({given})"
        )
    members = []
    for (argument, member, kind), (slot, offset, declared) in zip(values, slots, strict=True):
        if not _fits(kind, declared):
            raise ArgumentValueError(
                f"{name}: {argument} goes to {slot!r} of {where}, which is {declared} at byte {offset}"
                + _layout_hint(kind, declared)
            )
        members.append(StructElement(member, kind, 1, offset))
    size = block.size if block is not None else 0
    return ArgumentLayout(tuple(members), -(-size // 4) * 4, uniform, None, None)


def _flat(block: Type, prefix: str = "", start: int = 0) -> Iterator[tuple[str, int, Type]]:
    """Yield name, byte offset and type of each value in a block, those of structures within it too."""
    for index, (name, offset, kind) in enumerate(block.members):
        label = f"{prefix}{name or index}"
        if kind.kind == "struct":
            yield from _flat(kind, f"{label}.", start + offset)
        else:
            yield label, start + offset, kind


def _fits(kind: DType, declared: Type) -> bool:
    component = dtype.component_type(kind)
    count = dtype.component_count(kind)
    if dtype.is_scalar(kind):
        family = "float" if dtype.is_float_dtype(component) else "int"
        return declared.kind == family and declared.width == component.item_size * 8
    element = declared.element
    if element is None:
        return False
    if dtype.is_matrix(kind):
        side = kind.true_numpy_shape[0]
        return (
            declared.kind == "matrix"
            and declared.count == side == element.count
            and declared.stride == side * component.item_size
            and element.element is not None
            and _fits(component, element.element)
        )
    tight = declared.kind == "vector" or declared.stride == component.item_size
    return (
        declared.kind in ("vector", "array")
        and tight
        and declared.count == count
        and _fits(component, element)
    )


def _layout_hint(kind: DType, declared: Type) -> str:
    if declared.kind in ("matrix", "array") and declared.count in kind.true_numpy_shape:
        return f", {declared.stride} bytes from one to the next; declare the block with layout(scalar)"
    return ""
