"""From the values of a call to what a launcher takes: bound by name, checked, dataclasses flattened."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, wrong_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedError,
    UsageError,
    VkDispatchError,
)
from vkdispatch.base.handle import Handle
from vkdispatch.base.host.packing import SCALAR_CODES, pack, plain_scalar
from vkdispatch.base.image import Image, Sampler
from vkdispatch.base.images.format import image_view_type, numeric_kind, select_format
from vkdispatch.base.record import record
from vkdispatch.base.structures import is_structure
from vkdispatch.codegen import ArgType, ShaderArgumentInfo, ShaderDescription
from vkdispatch.execution_pipeline.command_graph import BoundVariable, CommandGraph
from vkdispatch.ir import ImageBinding
from vkdispatch.shader.arguments.members import members_of

# The launcher packs these scalars by itself; C++ has no half.
_LAUNCHER_CODES = {kind: code for kind, code in SCALAR_CODES.items() if kind is not dtype.float16}


_VIEW_TYPES = {
    1: image_view_type.VIEW_TYPE_1D,
    2: image_view_type.VIEW_TYPE_2D,
    3: image_view_type.VIEW_TYPE_3D,
}


# Elements that a kernel of 32-bit indices takes: shapes are int32, and so may be indices. If none is signed,
# there is room for what comes behind the last element.
MOST_NARROW = 0x7FFFFFFF
_MOST_UNSIGNED = 0xFFFFFFFF - (1 << 16)


@record
class BufferSlot:
    """A buffer that a launcher takes: its binding, and the member that gets its shape if any does.

    A `planar` one is indexed by two axes; `item_size` is how many bytes the kernel takes for an element.
    `kind` is what its elements must be, or None where the kernel reinterprets memory on purpose. A kernel of
    32-bit indices takes `most` elements, if it reaches them by address; else at most MOST_NARROW. The buffer
    has `least_bytes` or more, which are what is bound of a `uniform` one.
    """

    label: str
    binding: int
    shape_member: str | None
    reads: bool
    writes: bool
    planar: bool = False
    item_size: int = 1
    kind: DType | None = None
    most: int = MOST_NARROW
    least_bytes: int = 0
    uniform: bool = False


@record
class ValueSlot:
    """A number, vector or matrix that a launcher takes, and the member that gets it."""

    label: str
    member: str
    kind: DType

    @property
    def scalar_code(self) -> str | None:
        """The `struct` letter, if the launcher packs it by itself."""
        return _LAUNCHER_CODES.get(self.kind)


@record
class ImageSlot:
    """A sampler or a storage image that a launcher takes, and how the kernel declares it."""

    label: str
    binding: int
    image: ImageBinding
    reads: bool
    writes: bool

    @property
    def view_type(self) -> image_view_type:
        """What the image must be."""
        if self.image.arrayed:
            return image_view_type.VIEW_TYPE_2D_ARRAY
        return _VIEW_TYPES[self.image.dimensions]

    @property
    def native_kind(self) -> int:
        """The format of a storage image; of a sampled one whether its texels are floats or integers."""
        scalar = dtype.component_type(self.image.dtype)
        if not self.image.storage:
            return numeric_kind(scalar)
        return select_format(scalar, dtype.component_count(self.image.dtype)).value


Slot = BufferSlot | ImageSlot | ValueSlot


@record
class Parameter:
    """An argument of a kernel's call, and the slots it fills.

    Attributes
    ----------
    fields
        Names of the dataclass fields that fill the slots, such as "scale" or, of a dataclass within,
        "camera.scale"; None when the value itself fills the one slot.
    variable
        Whether a graph's bound variable may be given.
    mapping
        Whether the fields may be given as a dictionary too.
    """

    name: str
    default: Any
    slots: tuple[Slot, ...]
    fields: tuple[str, ...] | None
    variable: bool
    mapping: bool = False


@record
class CheckedCall:
    """The values of a call, ready for a launcher.

    Attributes
    ----------
    slots
        One value for each slot; 0 where a variable is bound.
    resources
        The buffers, images and samplers among them.
    variables
        Per bound name, the slots that it fills.
    """

    slots: tuple[Any, ...]
    resources: tuple[Handle, ...]
    variables: dict[str, list[ValueSlot]]


def read_parameters(description: ShaderDescription) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel that its caller gives, in call order."""
    infos = (info for info in description.shader_arg_infos if info.arg_type is not ArgType.CONSTANT_ARRAY)
    return tuple(_parameter(description, info) for info in infos)


def read_constants(description: ShaderDescription) -> tuple[Parameter, ...]:
    """Return the parameters behind those, for the constant arrays that are their defaults."""
    infos = (info for info in description.shader_arg_infos if info.arg_type is ArgType.CONSTANT_ARRAY)
    return tuple(_parameter(description, info) for info in infos)


def read_slots(description: ShaderDescription) -> tuple[Slot, ...]:
    """Return what a kernel's launcher takes, in order: what the caller gives, then constant arrays."""
    parameters = (*read_parameters(description), *read_constants(description))
    return tuple(slot for parameter in parameters for slot in parameter.slots)


def _parameter(description: ShaderDescription, info: ShaderArgumentInfo) -> Parameter:
    label = f"argument {info.name!r}"
    if info.binding is not None:
        binding = info.binding + description.resource_binding_base
        reads, writes = description.binding_access[binding]
        slot: Slot = (
            BufferSlot(
                label,
                binding,
                info.shader_shape_name,
                reads,
                writes,
                info.planar,
                info.dtype.item_size if info.dtype is not None else 1,
                None if info.reinterpreted else info.dtype,
                _MOST_UNSIGNED if info.unsigned else MOST_NARROW,
                info.least_bytes,
                info.uniform,
            )
            if info.image is None
            else ImageSlot(label, binding, info.image, reads, writes)
        )
        return Parameter(info.name, info.default_value, (slot,), None, False)
    members = tuple(zip(info.members, info.member_dtypes, strict=True))
    if info.arg_type is ArgType.CONSTANT_DATACLASS:
        slots = tuple(
            ValueSlot(f"{label}, field {field!r}", member, kind)
            for field, (member, kind) in zip(info.fields, members, strict=True)
        )
        return Parameter(info.name, info.default_value, slots, info.fields, info.mapping, info.mapping)
    slots = tuple(ValueSlot(label, member, kind) for member, kind in members)
    return Parameter(info.name, info.default_value, slots, None, info.arg_type is ArgType.VARIABLE)


def bind_values(
    who: str, parameters: Sequence[Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return one value per parameter from positional and keyword arguments and defaults.

    Raises
    ------
    TypeError
        There are more arguments than parameters, or an unknown or repeated keyword.
    ValueError
        An argument is missing.
    """
    names = [parameter.name for parameter in parameters]
    if len(args) > len(names):
        raise ArgumentTypeError(f"{who}: takes {len(names)} arguments ({', '.join(names)}), got {len(args)}")
    for name in kwargs:
        if name not in names:
            raise ArgumentTypeError(
                f"{who}: has no argument {name!r}; its arguments are {', '.join(names) or 'none'}"
            )
        if names.index(name) < len(args):
            raise ArgumentTypeError(f"{who}: argument {name!r} is given twice, by position and by name")
    values = list(args)
    for parameter in parameters[len(args) :]:
        value = kwargs.get(parameter.name, parameter.default)
        if parameter.name not in kwargs and parameter.default is None:
            raise ArgumentValueError(f"{who}: argument {parameter.name!r} is missing; {_expect(parameter)}")
        values.append(value)
    return tuple(values)


def check_values(
    who: str,
    parameters: Sequence[Parameter],
    values: Sequence[Any],
    context: Context,
    graph: CommandGraph | None,
) -> CheckedCall:
    """Check every value of a call and flatten them to one per slot.

    Parameters
    ----------
    who
        The kernel, as messages call it.
    context
        Where the kernel runs.
    graph
        Where it is recorded, or None for an immediate launch.

    Raises
    ------
    TypeError
        A value is of the wrong kind.
    ValueError
        A value has the wrong shape, does not fit, or a variable is bound where there can be none.
    RuntimeError
        A buffer was destroyed.
    """
    slots: list[Any] = []
    resources: list[Handle] = []
    variables: dict[str, list[ValueSlot]] = {}
    for parameter, value in zip(parameters, values, strict=True):
        for slot, part in parts_of(who, parameter, value):
            if isinstance(slot, BufferSlot):
                slots.append(_parse_buffer(who, slot, part, context))
                resources.append(part)
            elif isinstance(slot, ImageSlot):
                slots.append(_parse_image(who, slot, part, context))
                resources.append(part)
            elif isinstance(part, BoundVariable):
                _check_variable(who, parameter, part, graph)
                variables.setdefault(part.name, []).append(slot)
                slots.append(zero_of(slot.kind))
            else:
                slots.append(parse_number(who, slot, part, parameter.variable))
    check_apart(who, [slot for parameter in parameters for slot in parameter.slots], slots)
    return CheckedCall(tuple(slots), tuple(resources), variables)


def check_apart(who: str, slots: Sequence[Slot], values: Sequence[Any]) -> None:
    """Raise ValueError where a kernel that writes gets one memory as elements of two dtypes."""
    typed = [
        (slot, value._memory_handle)
        for slot, value in zip(slots, values, strict=True)
        if isinstance(slot, BufferSlot) and slot.kind is not None and isinstance(value, Buffer)
    ]
    for (first, memory), (second, other) in itertools.combinations(typed, 2):
        if memory == other and first.kind is not second.kind and (first.writes or second.writes):
            assert first.kind is not None and second.kind is not None
            raise ArgumentValueError(
                f"{who}: {first.label} and {second.label} are the same memory, as {first.kind.name} and as "
                f"{second.kind.name}, and the kernel writes to it; convert in the kernel, or give a copy"
            )


def parts_of(who: str, parameter: Parameter, value: Any) -> Iterator[tuple[Slot, Any]]:
    """Return each slot of a parameter with what fills it. Raises TypeError or ValueError for no dataclass."""
    if parameter.fields is None:
        yield parameter.slots[0], value
        return
    if parameter.mapping:
        yield from zip(parameter.slots, members_of(who, parameter.name, parameter.fields, value), strict=True)
        return
    if not hasattr(value, "__dataclass_fields__") or isinstance(value, type):
        raise ArgumentTypeError(
            f"{who}: argument {parameter.name!r}: {_expect(parameter)}, got {describe(value)}"
        )
    for field, slot in zip(parameter.fields, parameter.slots, strict=True):
        part = value
        for name in field.split("."):
            if not hasattr(part, name):
                raise ArgumentValueError(
                    f"{who}: argument {parameter.name!r}: {part!r} has no field {name!r}"
                )
            part = getattr(part, name)
        yield slot, part


def _parse_buffer(who: str, slot: BufferSlot, value: Any, context: Context) -> Buffer[Any]:
    if not isinstance(value, Buffer):
        # A ValueError by contract; a caller who thinks of types would look for a TypeError.
        raise WrongBufferError(
            f"{who}: {slot.label}: expected a vd.Buffer, got {describe(value)}; make one with "
            "vd.asbuffer(...)"
        )
    _check_usable(f"{who}: {slot.label}: the buffer", value, context)
    if slot.planar and value.shader_shape[2] != 1:
        raise ArgumentValueError(
            f"{who}: {slot.label}: the kernel indexes it by two axes, the buffer has the shape {value.shape}"
        )
    check_element(f"{who}: {slot.label}", slot.kind, value.var_type)
    if value.mem_size < slot.least_bytes:
        what = "the uniform block" if slot.uniform else "what precedes the last array of the block"
        raise ArgumentValueError(
            f"{who}: {slot.label}: the buffer has {value.mem_size} bytes, {what} in the code takes "
            f"{slot.least_bytes}"
        )
    if slot.writes:
        try:
            value._native.settle()  # launchers refuse to write what an expression waits to read
        except ArgumentValueError as error:
            raise ArgumentValueError(f"{who}: {slot.label}: {error}") from None
    return value


def check_element(label: str, wanted: DType | None, kind: DType) -> None:
    """Raise WrongBufferError where a buffer's elements are not what a kernel takes.

    A complex type and the vector of its two components are the same in memory, and stand for each other.
    """
    if wanted is None or kind is wanted or kind is dtype.pair_twin(wanted):
        return
    hint = (
        ""
        if is_structure(wanted) or is_structure(kind)
        else f"; convert the data, or reinterpret the memory with .view(vd.{wanted.name})"
    )
    raise WrongBufferError(f"{label}: expected elements of {wanted.name}, the buffer has {kind.name}{hint}")


def _check_usable(what: str, value: Handle, context: Context) -> None:
    if value.context is not context:
        raise wrong_context(what, value.context)
    if value.destroyed:
        raise UsageError(f"{what} was destroyed")


def _parse_image(who: str, slot: ImageSlot, value: Any, context: Context) -> Image | Sampler:
    where = f"{who}: {slot.label}"
    image = check_image(who, slot, value)
    if isinstance(value, Sampler):
        _check_usable(f"{where}: the sampler", value, context)
    _check_usable(f"{where}: the image", image, context)
    if slot.image.storage and not image.is_storable:
        raise UnsupportedError(f"{where}: the device cannot store to {image!r}")
    return image if slot.image.storage else value


def check_image(who: str, slot: ImageSlot, value: Any) -> Image:
    """Return the image of what was given for one. Raises TypeError or ValueError if it does not fit."""
    where = f"{who}: {slot.label}"
    if slot.image.storage:
        if not isinstance(value, Image):
            hint = "; give the image itself, not a sampler" if isinstance(value, Sampler) else ""
            raise WrongBufferError(f"{where}: expected a vd.Image, got {describe(value)}{hint}")
        image = value
    else:
        if not isinstance(value, Sampler):
            hint = "; call .sample() of the image" if isinstance(value, Image) else ""
            raise WrongBufferError(f"{where}: expected a vd.Sampler, got {describe(value)}{hint}")
        image = value.image
    if image.view_type is not slot.view_type:
        raise ArgumentValueError(
            f"{where}: the kernel declares an image of {slot.view_type.name}, this one is of "
            f"{image.view_type.name}"
        )
    wanted = slot.image.dtype
    scalar, channels = dtype.component_type(wanted), dtype.component_count(wanted)
    if image.dtype is not scalar:
        raise ArgumentValueError(
            f"{where}: the kernel declares texels of {scalar.name}, this image has {image.dtype.name}; "
            "annotation and image must agree"
        )
    if slot.image.storage and image.channels != channels:
        raise ArgumentValueError(
            f"{where}: the kernel declares texels of {wanted.name}, {channels} channels, this image has "
            f"{image.channels}"
        )
    return image


class WrongBufferError(ArgumentValueError, TypeError):
    """Something that is no buffer, image or sampler was given where a kernel needs one."""


def _check_variable(who: str, parameter: Parameter, value: BoundVariable, graph: CommandGraph | None) -> None:
    where = f"{who}: argument {parameter.name!r}"
    if not parameter.variable:
        raise ArgumentValueError(
            f"{where}: bind_var needs a Var[...] argument; this one is fixed when recorded"
        )
    if graph is None or graph.submit_on_record:
        raise ArgumentValueError(
            f"{where}: bind_var needs graph=, a CommandGraph that does not submit on record"
        )
    if value.graph is not graph:
        raise ArgumentValueError(f"{where}: {value!r} was bound by another graph")


def parse_number(who: str, slot: ValueSlot, value: Any, variable: bool = False) -> Any:
    """Return a host value as launchers take it. Raises TypeError or ValueError for what does not fit.

    `variable` says whether a graph's bound variable could be given.
    """
    label = f"{who}: {slot.label}"
    if variable and isinstance(value, str):
        raise ArgumentTypeError(
            f"{label}: expected a {slot.kind.name} value, got {describe(value)}; a variable of a graph is "
            f"graph.bind_var({value!r})"
        )
    if callable(value) and not hasattr(value, "__array__"):
        raise ArgumentValueError(f"{label}: expected a {slot.kind.name} value, got {describe(value)}")
    if slot.scalar_code is not None:
        return plain_scalar(slot.kind, value, label)
    pack(slot.kind, value, label)
    return value


def zero_of(kind: DType) -> Any:
    """Return the zero of a dtype as launchers take it."""
    zero: Any = 0
    for count in reversed(kind.true_numpy_shape):
        zero = (zero,) * count
    return zero


def make_packer(slots: Sequence[Slot]) -> Callable[[int, Any], bytes]:
    """Return the function by which a launcher packs what it cannot pack itself."""

    def pack_slot(position: int, value: Any) -> bytes:
        slot = slots[position]
        assert isinstance(slot, ValueSlot)
        try:
            return pack(slot.kind, value, slot.label)
        except VkDispatchError:
            # Of no slot's size: the launcher refuses it, and the checking path says why.
            return b""

    return pack_slot


def _expect(parameter: Parameter) -> str:
    if parameter.mapping:
        return f"expected a dictionary of {', '.join(parameter.fields or ())}, or a dataclass instance"
    if parameter.fields is not None:
        return f"expected a dataclass instance with the fields {', '.join(parameter.fields)}"
    slot = parameter.slots[0]
    if isinstance(slot, BufferSlot):
        return "expected a vd.Buffer"
    if isinstance(slot, ImageSlot):
        return "expected a vd.Image" if slot.image.storage else "expected a vd.Sampler"
    return f"expected a {slot.kind.name} value"


def describe(value: Any) -> str:
    """Describe what a caller gave: its class and a short text, which waits for no device."""
    if isinstance(value, Buffer):
        return f"a buffer of shape {value.shape} and dtype {value.var_type.name}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
