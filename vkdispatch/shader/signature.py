"""The parameters of a kernel: read from its Python signature, bound to arguments, and their slots."""

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.derived_dtypes import memory_type
from vkdispatch.base.dtype import DType, dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError, describe_place
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import SCALAR_CODES, pack
from vkdispatch.base.memory.images import image_view_type, numeric_kind, select_format
from vkdispatch.base.record import record
from vkdispatch.codegen.description import ArgType, ShaderArgumentInfo, ShaderDescription
from vkdispatch.compiler.ir import ImageBinding

# ---- The members of a block, read from a dictionary or dataclass -----------------------------------------


# The members of a structure or array, by name or number; None for a value.
_Tree = dict[Any, Any] | None


def read_members(who: str, argument: str, fields: tuple[str, ...], value: Any) -> list[Any]:
    """Return the value of each field, such as "scale" or "lights[1].color", in their order.

    Parameters
    ----------
    who
        The kernel, as messages call it.
    argument
        The name of the argument.
    value
        A dictionary, a dataclass instance or an element of a structured array. Its values may be such
        objects, or sequences of them.

    Raises
    ------
    TypeError
        `value` is something else.
    ValueError
        A name is missing or unknown.
    """
    label = f"{who}: argument {argument!r}"
    members = _Members(label)
    members.add(_make_tree(fields), value, "")
    if members.missing or members.unknown:
        parts = []
        if members.missing:
            parts.append(f"no value is passed for {', '.join(map(repr, members.missing))}")
        if members.unknown:
            parts.append(f"there is no {', '.join(map(repr, members.unknown))}")
        raise ArgumentValueError(f"{label}: {'; '.join(parts)}; its members are {', '.join(fields)}")
    return [members.values[field] for field in fields]


@functools.lru_cache(256)
def _make_tree(fields: tuple[str, ...]) -> _Tree:
    tree: dict[Any, Any] = {}
    for field in fields:
        *around, last = _split_path(field)
        place = tree
        for step in around:
            place = place.setdefault(step, {})
        place[last] = None
    return tree


def _split_path(field: str) -> list[str | int]:
    """Return ["lights", 1, "color"] for "lights[1].color"."""
    steps = field.replace("]", "").replace("[", ".").split(".")
    return [int(step) if step.isdecimal() else step for step in steps]


class _Members:
    """The values found for the members of a block, by path, and the paths that do not fit."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.values: dict[str, Any] = {}
        self.missing: list[str] = []
        self.unknown: list[str] = []

    def add(self, tree: _Tree, value: object, path: str) -> None:
        """Add the values of a tree, which begins at `path`."""
        if tree is None:
            self.values[path] = value
            return
        if 0 in tree:
            for number, part in enumerate(_read_sequence(self._label, value, path, len(tree))):
                self.add(tree[number], part, f"{path}[{number}]" if path else str(number))
            return
        inside = f"{path}." if path else ""
        parts = _read_parts(self._label, value, path)
        for name, inner in tree.items():
            if name in parts:
                self.add(inner, parts[name], f"{inside}{name}")
            else:
                self.missing.append(f"{inside}{name}")
        # A dataclass may have fields beyond the members.
        if not _is_dataclass(value):
            self.unknown += [f"{inside}{name}" for name in parts if name not in tree]


def _read_parts(label: str, value: Any, path: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if _is_dataclass(value):
        names = [name for name in value.__dataclass_fields__ if hasattr(value, name)]
        return {name: getattr(value, name) for name in names}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    what = f"{path!r}: " if path else ""
    raise ArgumentTypeError(
        f"{label}: {what}expected a dictionary or a dataclass instance, got {type(value).__name__} "
        f"{repr(value)[:60]}"
    )


def _read_sequence(label: str, value: Any, path: str, count: int) -> "Sequence[Any] | np.ndarray[Any, Any]":
    what = f"{path!r}: " if path else ""
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ArgumentTypeError(
            f"{label}: {what}expected a sequence of {count}, got {type(value).__name__} {repr(value)[:60]}"
        )
    if len(value) != count:
        raise ArgumentValueError(f"{label}: {what}expected {count} of them, got {len(value)}")
    return value


def _is_dataclass(value: object) -> bool:
    return hasattr(value, "__dataclass_fields__") and not isinstance(value, type)


# ---- The slots of launchers: buffers, images and values, each with its place in the kernel ---------------


# The launcher packs these scalars by itself; C++ has no half.
_LAUNCHER_CODES = {kind: code for kind, code in SCALAR_CODES.items() if kind is not dt.float16}
_VIEW_TYPES = {
    1: image_view_type.VIEW_TYPE_1D,
    2: image_view_type.VIEW_TYPE_2D,
    3: image_view_type.VIEW_TYPE_3D,
}
# The most elements of a buffer for kernels with 32-bit indices. Shapes are int32, and so may be indices. If
# no index is signed, the limit leaves room for indices beyond the last element.
MAX_NARROW = 0x7FFFFFFF
MAX_UNSIGNED = 0xFFFFFFFF - (1 << 16)


@record
class BufferSlot:
    """A slot for a buffer.

    Attributes
    ----------
    binding, shape_member
        Its binding, and the member of the argument block that gets its shape, or None.
    reads, writes
        Whether the kernel reads from it, and writes to it.
    planar
        Whether the kernel indexes it by two axes.
    item_size
        Bytes of an element in the kernel.
    kind
        The dtype that its elements must have; None if the kernel reinterprets memory on purpose.
    most
        The most elements for a kernel with 32-bit indices that accesses them by address. Without addresses
        the limit is MAX_NARROW.
    least_bytes
        The smallest size. Of a `uniform` buffer, this many bytes are bound.
    """

    label: str
    binding: int
    shape_member: str | None
    reads: bool
    writes: bool
    planar: bool = False
    item_size: int = 1
    kind: DType | None = None
    most: int = MAX_NARROW
    least_bytes: int = 0
    uniform: bool = False


@record
class ValueSlot:
    """A slot for a number, vector or matrix, and the member of the argument block that gets it."""

    label: str
    member: str
    kind: DType

    @property
    def scalar_code(self) -> str | None:
        """The `struct` letter if the launcher packs the value by itself, else None."""
        return _LAUNCHER_CODES.get(self.kind)


@record
class ImageSlot:
    """A slot for a sampler or a storage image, and its declaration in the kernel."""

    label: str
    binding: int
    image: ImageBinding
    reads: bool
    writes: bool

    @property
    def view_type(self) -> image_view_type:
        """The view type that the image must have."""
        if self.image.arrayed:
            return image_view_type.VIEW_TYPE_2D_ARRAY
        return _VIEW_TYPES[self.image.dimensions]

    @property
    def native_kind(self) -> int:
        """The format of a storage image, or whether the texels of a sampled one are floats or integers."""
        scalar = dt.component_type(self.image.dtype)
        if not self.image.storage:
            return numeric_kind(scalar)
        return select_format(scalar, dt.component_count(self.image.dtype)).value


Slot = BufferSlot | ImageSlot | ValueSlot
Slots = tuple[Slot, ...]


def make_zero(kind: DType) -> Any:
    """Return the zero of a dtype in the form that launchers take."""
    zero: Any = 0
    for count in reversed(kind.true_numpy_shape):
        zero = (zero,) * count
    return zero


def make_packer(slots: Sequence[Slot]) -> Callable[[int, Any], bytes]:
    """Return the function that packs the values that a launcher cannot pack itself."""

    def pack_slot(position: int, value: Any) -> bytes:
        slot = slots[position]
        assert isinstance(slot, ValueSlot)
        try:
            return pack(slot.kind, value, slot.label)
        except VkDispatchError:
            # No slot has this size: the launcher refuses it, and the checking path raises the error.
            return b""

    return pack_slot


# ---- The arguments of a kernel, read from its Python signature -------------------------------------------


@record
class Signature:
    """Annotations, names and defaults (None: no default) of a kernel's arguments, in call order."""

    annotations: tuple[Any, ...]
    names: tuple[str, ...]
    defaults: tuple[Any, ...]


def read_signature(
    function: Callable[..., Any],
    annotations: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    defaults: Sequence[Any] | None = None,
    local_names: Mapping[str, Any] | None = None,
    *,
    method: bool = False,
) -> Signature:
    """Read a function's signature, or use the given annotations instead.

    Parameters
    ----------
    function
        The kernel.
    annotations
        Used instead of those of the function.
    names
        Only with `annotations`: names of the arguments (default: param0, param1...).
    defaults
        Only with `annotations`: default values, None where there is none.
    local_names
        Local variables where the function is defined, for annotations given as text.
    method
        Whether to leave out the first parameter, the instance.

    Raises
    ------
    ValueError
        An argument has no annotation, or the lengths disagree.
    TypeError
        An annotation given as text does not evaluate.
    """
    if annotations is None:
        if names is not None or defaults is not None:
            raise ArgumentValueError("arg_names, arg_defaults: they need arg_type_annotations")
        return _read_function(function, local_names or {}, method)
    count = len(annotations)
    names = tuple(f"param{index}" for index in range(count)) if names is None else tuple(names)
    defaults = (None,) * count if defaults is None else tuple(defaults)
    for option, given in (("arg_names", names), ("arg_defaults", defaults)):
        if len(given) != count:
            raise ArgumentValueError(
                f"{option}: expected {count}, as many as arg_type_annotations, got {len(given)}"
            )
    for name in names:
        if not str(name).isidentifier():
            raise ArgumentValueError(f"arg_names: expected Python names, got {name!r}")
    return Signature(tuple(annotations), names, defaults)


def is_method(function: object, annotations: Sequence[Any] | None) -> bool:
    """Whether a function is defined in a class and its first parameter, the instance, has no annotation."""
    if not isinstance(function, types.FunctionType):
        return False
    parameters = tuple(inspect.signature(function).parameters.values())
    around = function.__qualname__.rpartition(".")[0]
    if not around or around.endswith("<locals>") or not parameters:
        return False
    first = parameters[0]
    plain = first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)
    without = first.annotation is first.empty and plain
    return without and (annotations is None or len(annotations) < len(parameters))


def _read_function(function: Callable[..., Any], local_names: Mapping[str, Any], method: bool) -> Signature:
    annotations, names, defaults = [], [], []
    parameters = tuple(inspect.signature(function).parameters.values())
    who = describe_function(function)
    for parameter in parameters[method:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ArgumentValueError(
                f"{who}: argument *{parameter.name}: name each argument, or pass arg_type_annotations"
            )
        if parameter.annotation is parameter.empty:
            raise ArgumentValueError(
                f"{who}: argument {parameter.name!r} has no annotation; write, say, "
                f"{parameter.name}: Buff[f32]"
            )
        annotations.append(_evaluate(function, parameter.name, parameter.annotation, local_names))
        names.append(parameter.name)
        defaults.append(None if parameter.default is parameter.empty else parameter.default)
    return Signature(tuple(annotations), tuple(names), tuple(defaults))


def _evaluate(
    function: Callable[..., Any], name: str, annotation: Any, local_names: Mapping[str, Any]
) -> Any:
    """Evaluate an annotation given as text, as with `from __future__ import annotations`."""
    if not isinstance(annotation, str):
        return annotation
    try:
        visible = {**local_names, **_read_closure(function)}
        annotation = eval(annotation, getattr(function, "__globals__", {}), visible)
        # Once more for an annotation in quotes with that import.
        if isinstance(annotation, str):
            annotation = eval(annotation, getattr(function, "__globals__", {}), visible)
        return annotation
    except Exception as error:
        raise ArgumentTypeError(
            f"{describe_function(function)}: argument {name!r}: the annotation {annotation!r} does not "
            f"evaluate: {error}"
        ) from error


def describe_function(function: Callable[..., Any]) -> str:
    """Return what messages call a function that is no kernel yet: its name, and where it is defined."""
    return describe_kernel(getattr(function, "__name__", type(function).__name__), find_origin(function))


def describe_kernel(name: str, origin: str | None) -> str:
    """Return what messages call a kernel: its name, and where it is defined."""
    return f"{name} ({origin})" if origin else name


def _read_closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of enclosing functions that a function uses, without unassigned ones."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    values = {}
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        with contextlib.suppress(ValueError):  # unassigned, such as the kernel's own name
            values[name] = cell.cell_contents
    return values


def read_return_type(function: Callable[..., Any], name: str) -> DType:
    """Return the dtype of a function's return annotation.

    Raises
    ------
    ValueError
        There is none.
    TypeError
        It is no dtype.
    """
    kind = find_return_type(function, f"{name}: ")
    if kind is None:
        raise ArgumentValueError(f"{name}: it needs a return annotation, such as -> f32: the result's dtype")
    return kind


def is_value(annotation: object) -> TypeGuard[DType]:
    """Whether an annotation is a dtype, so that a parameter takes a value."""
    return isinstance(annotation, type) and issubclass(annotation, dtype) and hasattr(annotation, "name")


def find_return_type(function: Callable[..., Any], where: str = "") -> DType | None:
    """Return the dtype of a function's return annotation, or None if there is none.

    Raises TypeError if it is no dtype; the message begins with `where`.
    """
    annotation = inspect.signature(function).return_annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, getattr(function, "__globals__", {}))
    if annotation in (inspect.Signature.empty, None):
        return None
    if not is_value(annotation):
        raise ArgumentTypeError(
            f"{where}return annotation: expected a dtype such as vd.float32, got {annotation!r}"
        )
    return annotation


def find_origin(function: Callable[..., Any]) -> str | None:
    """Return "file.py:12" for the line where a function is defined, or None if unknown.

    If the function has an attribute `stands_for`, a function of the user, then where that is defined.
    """
    code = getattr(getattr(function, "stands_for", function), "__code__", None)
    if code is None:
        return None
    return describe_place(code.co_filename, code.co_firstlineno)


# ---- The parameters of a kernel, and the arguments of a call bound to them by position and name ----------


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
        if info.image is not None:
            image = ImageSlot(label, binding, info.image, reads, writes)
            return Parameter(info.name, info.default_value, (image,), None, False)
        size = info.dtype.item_size if info.dtype is not None else 1
        kind = None if info.reinterpreted or info.dtype is None else memory_type(info.dtype)
        most = MAX_UNSIGNED if info.unsigned else MAX_NARROW
        layout = info.planar, size, kind, most, info.least_bytes, info.uniform
        buffer = BufferSlot(label, binding, info.shader_shape_name, reads, writes, *layout)
        return Parameter(info.name, info.default_value, (buffer,), None, False)
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
    if not parameter.mapping and not _is_dataclass(value):
        raise ArgumentTypeError(
            f"{who}: argument {parameter.name!r}: {_describe_expected(parameter)}, got {describe(value)}"
        )
    if parameter.mapping or any("[" in field for field in parameter.fields):
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
