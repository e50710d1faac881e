"""The interface of a kernel given as GLSL or SPIR-V: its arguments, matched with the code's declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.base.spirv.interface import Interface, Resource
from vkdispatch.codegen.description import ArgType, BindingType, ShaderArgumentInfo, ShaderSource
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, StructElement, Variant
from vkdispatch.shader.raw.values import (
    Place,
    PlacedValue,
    RawArgument,
    arrange_blocks,
    check_apart,
    count_block_bytes,
    find_uniform_resources,
    name_place,
    place_values,
    read_blocks,
)
from vkdispatch.shader.size import Extent

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
# Resources that cannot be bound, and what to do instead.
_INSTEAD = {
    "texture without a sampler": "declare both as one, such as a sampler2D",
    "sampler without a texture": "declare both as one, such as a sampler2D",
    "texel buffer": "declare a storage buffer",
    "cube or rectangle image": "declare a sampler2DArray",
}


@dataclass(frozen=True, eq=False)
class RawDescription:
    """The description of a kernel that was not traced: the counterpart of `ShaderDescription`."""

    name: str
    text: str
    local_size: Extent
    shader_arg_infos: tuple[ShaderArgumentInfo, ...]
    binding_type_list: tuple[int, ...]
    binding_access: tuple[tuple[bool, bool], ...]
    arguments: ArgumentLayout
    pc_size: int
    # Binding of the plan, offset among the arguments and size of each uniform block of values.
    uniform_blocks: tuple[tuple[int, int, int], ...]
    # Set and binding in the code -> binding of the plan.
    places: Mapping[Place, int]

    resource_binding_base = 0
    exec_count_name = None
    header = ""

    @property
    def body(self) -> str:
        """The code, or a description of it for SPIR-V."""
        return self.text

    @property
    def backend(self) -> vc.CodeGenBackend:
        """The backend of the kernel."""
        return vc.GLSLBackend()

    @property
    def kernel(self) -> NoReturn:
        """Raises NotImplementedError: there is no traced program."""
        raise UnsupportedError(f"{self.name}: this needs a traced kernel (@vd.shader), not GLSL or SPIR-V")

    @property
    def pc_structure(self) -> list[StructElement]:
        """Members of the push constant block."""
        return [member for member in self.arguments.members if member.offset < self.pc_size]

    @property
    def uniform_structure(self) -> list[StructElement]:
        """Members of the uniform blocks that take values. Offsets count from the push constants."""
        return [member for member in self.arguments.members if member.offset >= self.pc_size]

    def layout(self, variant: Variant = PLAIN) -> ArgumentLayout:
        """Return the layout of the values."""
        return self.arguments

    def get_arg_names_and_defaults(self) -> list[tuple[str, Any]]:
        """Return name and default value (None: none) of each argument, in call order."""
        return [(info.name, info.default_value) for info in self.shader_arg_infos]

    def shader_source(self, local_size: Extent, variant: Variant = PLAIN) -> ShaderSource:
        """Return the code as given."""
        return ShaderSource(self.name, self.text, self.local_size)

    def make_source(self, x: int, y: int, z: int, variant: Variant = PLAIN) -> str:
        """Return the code as given."""
        return self.text


def make_description(
    name: str, text: str, arguments: Sequence[RawArgument], interface: Interface, local_size: Extent
) -> RawDescription:
    """Match the arguments with the declarations of the code.

    Parameters
    ----------
    text
        The GLSL, or a description of the module.

    Raises
    ------
    ValueError
        They do not match; the message says where.
    """
    for resource in interface.resources:
        if resource.kind not in (*_RESOURCE_KINDS.values(), "uniform buffer"):
            instead = next((text for kind, text in _INSTEAD.items() if kind in resource.kind), None)
            instead = instead or "declare one storage buffer, image or sampler for each binding"
            raise ArgumentValueError(f"{name}: {_name_resource(resource)} cannot be bound: {instead}")
    blocks = read_blocks(name, interface)
    told = {_find_place(name, argument, interface) for argument in arguments if argument.is_resource}
    values = [argument for argument in arguments if not argument.is_resource]
    free = [block for block in blocks if block.place is None or block.place not in told]
    placed = place_values(name, values, free)
    # A uniform block without values is left to a buffer.
    chosen = {value.block.place for value in placed}
    taking = [block for block in free if block.place is None or block.place in chosen]
    for block in taking:
        check_apart(name, block)
    bound = _place_resources(name, arguments, interface, {block.place for block in taking})
    places = sorted(
        {place for _, place in bound} | {block.place for block in taking if block.place is not None}
    )
    numbers = {place: number for number, place in enumerate(places)}
    starts, size = arrange_blocks(name, taking)
    members = tuple(
        StructElement(value.member, value.kind, 1, starts[value.block.place] + value.offset)
        for value in placed
    )
    declared = _group_by_place(interface)
    access = [
        (
            any(resource.readable for resource in declared.get(place, ())),
            any(resource.writable for resource in declared.get(place, ())),
        )
        for place in places
    ]
    kinds = {place: argument.binding_type for argument, place in bound}
    uniforms = find_uniform_resources(interface)
    kinds |= dict.fromkeys(uniforms, BindingType.UNIFORM_BUFFER)
    least = {place: _count_least_bytes(resources) for place, resources in declared.items()}
    infos = {
        argument.name: _make_resource_info(argument, numbers[place], least[place], place in uniforms)
        for argument, place in bound
    }
    for argument in values:
        infos[argument.name] = _make_value_info(
            argument, [value for value in placed if value.argument is argument]
        )
    return RawDescription(
        name,
        text,
        local_size,
        tuple(infos[argument.name] for argument in arguments),
        tuple(int(kinds[place]) for place in places),
        tuple(access),
        ArgumentLayout(members, size, False, None, None),
        sum(count_block_bytes(block) for block in taking if block.place is None),
        tuple(
            (numbers[block.place], starts[block.place], count_block_bytes(block))
            for block in taking
            if block.place is not None
        ),
        numbers,
    )


def _count_least_bytes(resources: Sequence[Resource]) -> int:
    """Return the least size of a buffer: that of a uniform block, or of what precedes the last array."""
    sizes = [0]
    for resource in resources:
        members = resource.type.members
        open_ended = bool(members) and members[-1][2].kind == "array" and not members[-1][2].count
        if resource.kind == "uniform buffer" or open_ended:
            sizes.append(resource.type.size)
    return max(sizes)


def _make_resource_info(argument: RawArgument, number: int, least: int, uniform: bool) -> ShaderArgumentInfo:
    return ShaderArgumentInfo(
        argument.name,
        _ARG_TYPES[argument.binding_type],
        None,
        argument.name,
        binding=number,
        dtype=argument.kind,
        image=argument.image,
        least_bytes=least,
        uniform=uniform,
    )


def _make_value_info(argument: RawArgument, placed: Sequence[PlacedValue]) -> ShaderArgumentInfo:
    arg_type = ArgType.CONSTANT if argument.origin is vc.Constant else ArgType.VARIABLE
    return ShaderArgumentInfo(
        argument.name,
        ArgType.CONSTANT_DATACLASS if argument.is_tree else arg_type,
        None,
        argument.name,
        dtype=None if argument.is_tree else placed[0].kind,
        members=tuple(value.member for value in placed),
        member_dtypes=tuple(value.kind for value in placed),
        fields=tuple(value.field.path for value in placed) if argument.is_tree else (),
        mapping=argument.is_tree,
    )


# -- bindings


def _find_place(name: str, argument: RawArgument, interface: Interface) -> Place | None:
    """Return set and binding of a resource if the user gave them, or a name, else None."""
    if not isinstance(argument.place, str):
        return argument.place
    for resource in interface.resources:
        if argument.place in (resource.name, resource.type.name):
            return (resource.set, resource.binding)
    known = ", ".join(map(_name_resource, interface.resources)) or "nothing"
    raise ArgumentValueError(
        f"{name}: {argument}: the code binds nothing called {argument.place!r}; it has {known}"
    )


def _place_resources(
    name: str, arguments: Sequence[RawArgument], interface: Interface, taking: set[Place | None]
) -> list[tuple[RawArgument, Place]]:
    """Return set and binding of each buffer and image, in order of the arguments."""
    resources = [argument for argument in arguments if argument.is_resource]
    told = {argument.name: _find_place(name, argument, interface) for argument in resources}
    taken = {*told.values(), *taking}
    bound: list[tuple[RawArgument, Place]] = []
    following = 0
    for argument in resources:
        place = told[argument.name]
        if place is None:
            while (0, following) in taken:
                following += 1
            place = (0, following)
            following += 1
        if place in [other for _, other in bound]:
            raise ArgumentValueError(f"{name}: {argument}: {name_place(place)} is taken by another argument")
        bound.append((argument, place))
    declared = _group_by_place(interface)
    for argument, place in bound:
        for resource in declared.get(place, ()):
            _check_resource(name, argument, resource)
        if place not in declared:
            known = ", ".join(map(_name_resource, interface.resources)) or "nothing"
            raise ArgumentValueError(
                f"{name}: {argument} goes to {name_place(place)}, where the code declares nothing; "
                f"it declares {known}"
            )
    places = {place for _, place in bound}
    for place, resources_there in declared.items():
        if place not in places and place not in taking:
            hint = ""
            if resources_there[0].kind == "uniform buffer":
                where = resources_there[0].name or (place if place[0] else place[1])
                hint = f"; values or a buffer go there, as in ('params', dict, {where!r})"
            raise ArgumentValueError(f"{name}: {_name_resource(resources_there[0])} has no argument{hint}")
    return bound


def _group_by_place(interface: Interface) -> dict[Place, list[Resource]]:
    """Return the resources of the code by set and binding. Several may share one."""
    declared: dict[Place, list[Resource]] = {}
    for resource in interface.resources:
        declared.setdefault((resource.set, resource.binding), []).append(resource)
    return declared


def _name_resource(resource: Resource) -> str:
    called = f" ({resource.name})" if resource.name else ""
    return f"the {resource.kind} at {name_place((resource.set, resource.binding))}{called}"


def _check_resource(name: str, argument: RawArgument, resource: Resource) -> None:
    wanted = _RESOURCE_KINDS[argument.binding_type]
    if wanted == "storage buffer" and resource.kind == "uniform buffer":
        return
    if resource.kind != wanted:
        raise ArgumentValueError(
            f"{name}: {argument}: a {wanted} is passed, and the code has {_name_resource(resource)}"
        )
    image = argument.image
    if image is not None and (image.dimensions, image.arrayed) != (resource.axes, resource.layered):
        layers = " with layers" if resource.layered else ""
        raise ArgumentValueError(
            f"{name}: {argument}: {_name_resource(resource)} has {resource.axes} axes{layers}"
        )
    if wanted != "storage buffer" or not resource.type.members:
        return
    kind, last = argument.kind, resource.type.members[-1][2]
    stride, size = last.stride, kind.item_size
    if last.kind == "array" and stride and stride % size and size % stride:
        raise ArgumentValueError(
            f"{name}: {argument}: the elements of {_name_resource(resource)} lie {stride} bytes apart, a "
            f"{kind.name} takes {size}; declare the block with layout(scalar)"
        )
