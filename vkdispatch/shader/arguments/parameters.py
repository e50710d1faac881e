"""The parameters of a kernel, and the arguments of a call bound to them by position and name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.derived_dtypes import memory_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen import ArgType, ShaderArgumentInfo, ShaderDescription
from vkdispatch.shader.arguments.members import read_members
from vkdispatch.shader.arguments.slots import (
    MOST_NARROW,
    MOST_UNSIGNED,
    BufferSlot,
    ImageSlot,
    Slot,
    ValueSlot,
)


@record
class Parameter:
    """A parameter of a kernel, and the slots that its value fills.

    Attributes
    ----------
    fields
        Names of the dataclass fields that fill the slots, such as "scale" or, of a dataclass within,
        "camera.scale"; None if the value itself fills the one slot.
    variable
        Whether the value may be a bound variable of a graph.
    mapping
        Whether the value may also be a dictionary of the fields.
    """

    name: str
    default: Any
    slots: tuple[Slot, ...]
    fields: tuple[str, ...] | None
    variable: bool
    mapping: bool = False


def read_parameters(description: ShaderDescription) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel for which callers give values, in call order."""
    infos = (info for info in description.shader_arg_infos if info.arg_type is not ArgType.CONSTANT_ARRAY)
    return tuple(_make_parameter(description, info) for info in infos)


def read_constants(description: ShaderDescription) -> tuple[Parameter, ...]:
    """Return the parameters that follow, whose defaults are constant arrays."""
    infos = (info for info in description.shader_arg_infos if info.arg_type is ArgType.CONSTANT_ARRAY)
    return tuple(_make_parameter(description, info) for info in infos)


def read_slots(description: ShaderDescription) -> tuple[Slot, ...]:
    """Return the slots of a kernel's launcher: those of the caller's values, then of constant arrays."""
    parameters = (*read_parameters(description), *read_constants(description))
    return tuple(slot for parameter in parameters for slot in parameter.slots)


def _make_parameter(description: ShaderDescription, info: ShaderArgumentInfo) -> Parameter:
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
                None if info.reinterpreted or info.dtype is None else memory_type(info.dtype),
                MOST_UNSIGNED if info.unsigned else MOST_NARROW,
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
            raise ArgumentTypeError(f"{who}: argument {name!r} is passed twice, by position and by name")
    values = list(args)
    for parameter in parameters[len(args) :]:
        value = kwargs.get(parameter.name, parameter.default)
        if parameter.name not in kwargs and parameter.default is None:
            raise ArgumentValueError(
                f"{who}: argument {parameter.name!r} is missing; {_describe_expected(parameter)}"
            )
        values.append(value)
    return tuple(values)


def split_value(who: str, parameter: Parameter, value: Any) -> Iterator[tuple[Slot, Any]]:
    """Yield each slot of a parameter with its part of the value.

    Raises TypeError or ValueError if the parameter takes a dataclass and the value does not fit that.
    """
    if parameter.fields is None:
        yield parameter.slots[0], value
        return
    if parameter.mapping:
        yield from zip(
            parameter.slots, read_members(who, parameter.name, parameter.fields, value), strict=True
        )
        return
    if not hasattr(value, "__dataclass_fields__") or isinstance(value, type):
        raise ArgumentTypeError(
            f"{who}: argument {parameter.name!r}: {_describe_expected(parameter)}, got {describe(value)}"
        )
    if any("[" in field for field in parameter.fields):
        parts = read_members(who, parameter.name, parameter.fields, value)
        yield from zip(parameter.slots, parts, strict=True)
        return
    for field, slot in zip(parameter.fields, parameter.slots, strict=True):
        part = value
        for name in field.split("."):
            if not hasattr(part, name):
                raise ArgumentValueError(
                    f"{who}: argument {parameter.name!r}: {part!r} has no field {name!r}"
                )
            part = getattr(part, name)
        yield slot, part


def _describe_expected(parameter: Parameter) -> str:
    if parameter.mapping:
        return f"expected a dictionary of {', '.join(parameter.fields or ())}, or a dataclass instance"
    if parameter.fields is not None:
        return f"expected a dataclass instance with the fields {', '.join(parameter.fields)}"
    slot = parameter.slots[0]
    if isinstance(slot, BufferSlot):
        return "expected a vd.Buffer"
    if isinstance(slot, ImageSlot):
        return "expected a vd.Image" if slot.image.storage else "expected a vd.Sampler"
    return f"expected a value of {slot.kind.name}"


def describe(value: Any) -> str:
    """Return the class and a short text of a value, for messages, without waiting for a device."""
    if isinstance(value, Buffer):
        return f"a buffer of shape {value.shape} and dtype {value.var_type.name}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
