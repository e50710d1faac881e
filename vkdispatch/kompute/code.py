"""The code of an algorithm: pipelines of SPIR-V modules with their memory and constants."""

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from vkdispatch.base.compute_plan import ComputePlan, check_features, check_workgroup
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, DeviceLostError, OutOfDeviceMemoryError, VkDispatchError
from vkdispatch.base.spirv.interface import Interface, Resource, Type
from vkdispatch.base.spirv.module import Module
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.spirv.repeat import MAX_REPEATS, repeat_kernel
from vkdispatch.base.validation import read_valid_module
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.recordable import BoundPlan
from vkdispatch.kompute.enums import KomputeError, require_iterable
from vkdispatch.kompute.memory import Image, Memory

# ---- Conversion of specialization and push constants -----------------------------------------------------


Array = np.ndarray[Any, Any]

# Arrays of these dtypes are not converted.
_UNCONVERTED = ("float32", "int32", "uint32")
# The dtype of each kind and number of bits that shaders declare.
DECLARED = {
    ("float", 16): "float16",
    ("float", 32): "float32",
    ("float", 64): "float64",
    ("int", 8): "int8",
    ("int", 16): "int16",
    ("int", 32): "int32",
    ("int", 64): "int64",
    ("bool", 32): "uint32",
}


def parse_constants(argument: str, values: object, declared: "frozenset[tuple[str, int]]") -> Array:
    """Return constants as an array of the dtype that the shader takes.

    Parameters
    ----------
    argument
        The name of the argument, for messages.
    values
        An array or an iterable of numbers. Arrays of float32, int32 and uint32 keep their dtype. Other
        numbers become float32, or the type of all of the shader's constants if that is another one (only
        integers become integers).
    declared
        The types that the shader declares: kind (float, int or bool) and bits. The values determine whether
        integers are signed.

    Raises
    ------
    TypeError
        `values` are not numbers.
    RuntimeError
        A number does not fit the type that the shader declares.
    """
    array = _as_array(argument, values)
    if array.dtype.name in _UNCONVERTED and isinstance(values, np.ndarray) and values.dtype.isnative:
        return array
    declared_name = DECLARED.get(next(iter(declared)), "float32") if len(declared) == 1 else "float32"
    target = np.dtype(declared_name)
    if target.kind == "f":
        return array.astype(target)
    if array.dtype.kind not in "biu":
        return array.astype(np.float32)
    for integer in (target, np.dtype(f"u{target}".replace("uu", "u"))):
        limits = np.iinfo(integer)
        if not array.size or (int(array.min()) >= limits.min and int(array.max()) <= limits.max):
            return array.astype(integer)
    raise KomputeError(
        f"{argument}: {array.tolist()} do not all fit the {declared_name} that the shader declares"
    )


def copy_constants(argument: str, values: Any) -> Any:
    """Return a copy that can be iterated repeatedly. Raises TypeError if they are not numbers."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    constants = values.copy() if isinstance(values, np.ndarray) else list(numbers)
    _as_array(argument, constants)
    return constants


def _as_array(argument: str, values: object) -> Array:
    """Return numbers as a flat, contiguous array of the dtype that NumPy chooses."""
    numbers = require_iterable(argument, values, "an array or a list of numbers")
    try:
        array = np.ascontiguousarray(values if isinstance(values, np.ndarray) else list(numbers)).ravel()
        if array.dtype.kind == "O" and all(isinstance(value, (int, float)) for value in array):
            array = array.astype(np.float64)  # integers beyond NumPy's range
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}: {error}") from None
    if array.size == 0:
        return array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"{argument}: expected numbers, got {values!r}")
    return array


# ---- Pipelines of SPIR-V modules with their memory -------------------------------------------------------


Groups = tuple[int, int, int]
Constants = list[tuple[int, bytes]]  # numbers and values of specialization constants


_STORAGE_BUFFER, _STORAGE_IMAGE = 1, 4


_KINDS = {"storage buffer": _STORAGE_BUFFER, "storage image": _STORAGE_IMAGE}


repeat_spirv = lru_cache(maxsize=64)(repeat_kernel)


@lru_cache(maxsize=256)
def read_spirv(code: bytes) -> tuple[Module, Interface]:
    """Read a module. The result is cached.

    Raises
    ------
    RuntimeError
        The code is not a valid SPIR-V compute module with the entry point "main".
    """
    code = code[: len(code) // 4 * 4]  # rounded down, as in Kompute
    try:
        module = read_valid_module(code)
        return module, reflect(module)
    except VkDispatchError as error:
        raise KomputeError(str(error)) from None


class SpirvDispatch:
    """A SPIR-V module as the code of an algorithm: a pipeline with its memory."""

    def __init__(
        self,
        context: Context,
        memories: Sequence[Memory],
        code: tuple[Module, Interface],
        groups: Groups,
        spec_consts: object,
        push_consts: Array,
    ) -> None:
        """Build the pipeline.

        Raises
        ------
        RuntimeError
            The code is invalid, the memory is missing or has the wrong kind, or the driver rejects the code.
        """
        module, interface = code
        self.spirv = module.words.tobytes()
        self.specialization = _pack_specialization(interface, spec_consts)
        if self.specialization:
            interface = _specialize(self.spirv, tuple(self.specialization))
        self.push_types = find_push_types(interface)
        self.groups = check_groups(context, groups)
        try:
            check_features("spirv", interface, context)
            check_workgroup("spirv", interface, context)
        except VkDispatchError as error:
            raise KomputeError(str(error)) from None
        by_binding = _match_resources(interface, memories)
        kinds = [_STORAGE_IMAGE if isinstance(memory, Image) else _STORAGE_BUFFER for memory in memories]
        declared = interface.push_constants.size if interface.push_constants is not None else 0
        # The pipeline takes all push constants that the code declares; missing ones are zero.
        size = max(push_consts.nbytes, -(-declared // 4) * 4)
        self.padding = bytes(size - push_consts.nbytes)
        limit = min(info.max_push_constant_size for info in context.device_infos)
        if size > limit or size % 4:
            raise KomputeError(
                f"push_consts: {size} bytes; the device takes a multiple of 4, at most {limit}"
            )
        try:
            plan = _make_plan(context, kinds, size, "algorithm", self.spirv, self.specialization)
        except (DeviceLostError, OutOfDeviceMemoryError):
            raise  # not an error of the code
        except VkDispatchError as error:
            raise KomputeError(f"spirv: the driver rejects it: {error}") from None
        bindings, stored_images = [], []
        for index, memory in enumerate(memories):
            resource = by_binding.get(index)
            readable, writable = (resource.readable, resource.writable) if resource else (False, False)
            bindings.append((memory._native, index, 0, 0, readable, writable))
            if writable and isinstance(memory, Image):
                stored_images.append(memory)
        self.bound = BoundPlan(plan, bindings)
        self.images = tuple(memory for memory in memories if isinstance(memory, Image))
        self.stored_images = tuple(stored_images)

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""
        graph._append_dispatch(self.bound, constants.tobytes() + self.padding, self.groups, True)

    def with_groups(self, groups: Groups, *, chosen: bool) -> "SpirvDispatch":
        """Return a copy with other workgroup counts. Raises RuntimeError if they are too large."""
        other = copy(self)
        other.groups = check_groups(self.bound.plan.context, groups)
        return other

    def repeat(self, count: int) -> "SpirvDispatch | None":
        """Return an equivalent of `count` dispatches in one dispatch, or None if that is impossible."""
        bound = self.bound
        context = bound.plan.context
        # CPU drivers need no fence between rounds. It would take as long as a round.
        loop = repeat_spirv(self.spirv, fence=not all(info.is_cpu() for info in context.device_infos))
        if (
            loop is None
            or count > MAX_REPEATS
            or self.groups[1:] != (1, 1)
            or self._has_shared_memory(loop.written)
        ):
            return None
        title = f"{count} dispatches of an algorithm"
        constants = [*self.specialization, (loop.count_id, np.uint32(count).tobytes())]
        kinds, size = bound.plan.binding_list, bound.plan.pc_size
        try:
            plan = _make_plan(context, kinds, size, title, loop.spirv, constants)
        except VkDispatchError:
            return None  # the driver rejects it: keep the separate dispatches
        merged = copy(self)
        merged.bound = BoundPlan(plan, bound.bindings)
        return merged

    def _has_shared_memory(self, written: frozenset[int]) -> bool:
        """Whether the memory of one of these bindings is also bound elsewhere."""
        memory = [binding[0] for binding in self.bound.bindings]
        return any(memory.count(memory[index]) > 1 for index in written)


def _make_plan(
    context: Context, kinds: list[int], size: int, title: str, spirv: bytes, specialization: Constants
) -> ComputePlan:
    return ComputePlan(
        "", kinds, size, title, spirv=spirv, checked=True, specialization=specialization, context=context
    )


def check_groups(context: Context, groups: Groups) -> Groups:
    """Return workgroup counts. Raises RuntimeError if they exceed the limits of the device."""
    limit = context.max_workgroup_count
    if any(count > most for count, most in zip(groups, limit, strict=True)):
        raise KomputeError(f"workgroup: {groups} workgroups; one dispatch on this device takes {limit}")
    return groups


def _match_resources(interface: Interface, memories: Sequence[Memory]) -> dict[int, Resource]:
    """Return the declared resources by binding. Raises RuntimeError if the memory does not match."""
    resources = {}
    for resource in interface.resources:
        where = f"{resource.name or 'a resource'} (set {resource.set}, binding {resource.binding})"
        if resource.set != 0:
            raise KomputeError(f"spirv: {where}: an algorithm has only descriptor set 0")
        if resource.binding >= len(memories):
            raise KomputeError(f"tensors: the code uses {where}, got {len(memories)} tensors and images")
        memory = memories[resource.binding]
        kind = _KINDS.get(resource.kind)
        if kind is None:
            raise KomputeError(
                f"spirv: {where} is a {resource.kind}; an algorithm has storage buffers and images"
            )
        if (kind == _STORAGE_IMAGE) != isinstance(memory, Image):
            raise KomputeError(f"tensors: {where} is a {resource.kind}, got a {memory._class_name()}")
        resources[resource.binding] = resource
    return resources


@lru_cache(maxsize=256)
def _specialize(code: bytes, constants: tuple[tuple[int, bytes], ...]) -> Interface:
    """Return the interface of a module with these constants, on which sizes may depend.

    Raises
    ------
    RuntimeError
        A size is zero.
    """
    module, interface = read_spirv(code)
    values = {}
    for number, data in constants:
        constant = interface.spec_constants[number]
        value = np.frombuffer(data, DECLARED[constant.kind, constant.width])[0].item()
        values[number] = bool(value) if constant.kind == "bool" else value
    try:
        return reflect(module, specialization=values, argument="spec_consts")
    except VkDispatchError as error:
        raise KomputeError(str(error)) from None


def find_push_types(interface: Interface) -> frozenset[tuple[str, int]]:
    """Return the kinds and bits of the numbers in the push constant block."""
    block = interface.push_constants
    return frozenset() if block is None else frozenset(_list_scalars(block))


def _list_scalars(kind: Type) -> list[tuple[str, int]]:
    """Return the kind and bits of each number in a type."""
    if kind.kind == "struct":
        return [scalar for _, _, member in kind.members for scalar in _list_scalars(member)]
    if kind.element is not None:
        return _list_scalars(kind.element)
    return [(kind.kind, kind.width)]


def _pack_specialization(interface: Interface, values: object) -> Constants:
    """Return the bytes of specialization constants 0, 1, ...; constants that the code lacks are omitted."""
    declared = interface.spec_constants
    kinds = frozenset((constant.kind, constant.width) for constant in declared.values())
    packed = []
    for number, value in enumerate(parse_constants("spec_consts", values, kinds)):
        constant = declared.get(number)
        if constant is None:
            continue
        if value.nbytes != max(constant.width, 8) // 8:  # another width: convert the value
            kind = frozenset(((constant.kind, constant.width),))
            value = parse_constants("spec_consts", [value.item()], kind)[0]
        packed.append((number, value.tobytes()))
    return packed
