"""Algorithms: code bound to memory objects, with constants, workgroups and dispatches."""

import math
import operator
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vkdispatch.base import dtype
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.compute_plan import ComputePlan, check_features, check_workgroup
from vkdispatch.base.context import Context, use_context
from vkdispatch.base.errors import ArgumentTypeError, DeviceLostError, OutOfDeviceMemoryError, VkDispatchError
from vkdispatch.base.spirv.interface import Interface, Resource, Type
from vkdispatch.base.spirv.module import Module
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.spirv.repeat import MAX_REPEATS, repeat_kernel
from vkdispatch.base.validation import read_valid_module
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.recordable import BoundPlan
from vkdispatch.kompute import log
from vkdispatch.kompute.enums import KomputeError, Opaque, require_iterable
from vkdispatch.kompute.memory import Image, Memory, Tensor

if TYPE_CHECKING:
    from vkdispatch.shader.shader_function import ShaderFunction

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


# ---- Building of SPIR-V, GLSL and traced kernels for the dispatches of an algorithm ----------------------


class Dispatchable(Protocol):
    """A built algorithm, which records dispatches."""

    push_types: frozenset[tuple[str, int]]  # kinds and bits of the push constants
    images: tuple[Image, ...]  # the images among its memory
    stored_images: tuple[Image, ...]  # the images that the kernel writes to

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""

    def with_groups(self, groups: Groups, *, chosen: bool) -> "Dispatchable":
        """Return a copy with other workgroup counts, or with its own if the caller has `chosen` none."""

    def repeat(self, count: int) -> "Dispatchable | None":
        """Return an equivalent of `count` dispatches in one dispatch, or None if that is impossible."""


def build(
    context: Context,
    memories: Sequence[Memory],
    code: Any,
    groups: Groups | None,
    spec_consts: Any,
    push_consts: Any,
) -> tuple[Dispatchable, Array]:
    """Build an algorithm. Return the pipeline and the push constants.

    Parameters
    ----------
    code
        SPIR-V, GLSL text, or a traced kernel.
    groups
        Workgroups of a dispatch. None: the size of a traced kernel, or one for each element of the first
        memory object.

    Raises
    ------
    RuntimeError
        The code is invalid, or does not match the arguments.
    """
    if not isinstance(code, (bytes, str)):
        traced = TracedDispatch(context, memories, code, groups, spec_consts, push_consts)
        return traced, traced.constants
    module = read_spirv(compile_glsl(code, "algorithm") if isinstance(code, str) else code)
    constants = parse_constants("push_consts", push_consts, find_push_types(module[1]))
    groups = groups or (len(memories[0]), 1, 1)
    return SpirvDispatch(context, memories, module, groups, spec_consts, constants), constants


# ---- A kernel bound to memory, with its workgroups and constants -----------------------------------------


NO_CONSTANTS: Array = np.zeros(0, np.float32)


class Algorithm(Opaque):
    """A kernel bound to memory: SPIR-V, GLSL or a traced kernel, with workgroups and constants.

    Without memory or code an algorithm is empty: `is_init()` is False, and only OpMult and `rebuild` accept
    it.
    """

    __slots__ = (
        "_bound",
        "_built",
        "_code",
        "_context",
        "_memories",
        "_push",
        "_requested_workgroup",
        "_spec",
        "_workgroup",
    )

    _maker = "kp.Manager.algorithm"
    _context: Context
    _memories: tuple[Memory, ...]
    _bound: list[tuple[Memory, Any]]  # each with its native memory when it was bound
    _code: Any  # SPIR-V bytes, GLSL text, or a vd.ShaderFunction
    _built: "Dispatchable | None"
    _push: Array
    _spec: Any
    _workgroup: Groups
    _requested_workgroup: Groups  # the argument, with zeros for the size of the first memory object

    def get_mem_objects(self) -> list[Memory]:
        """Return the tensors and images that the algorithm is bound to."""
        return list(self._memories)

    get_tensors = get_mem_objects

    def is_init(self) -> bool:
        """Whether the algorithm can be dispatched: it has memory and code and was not destroyed."""
        return self._built is not None

    def destroy(self) -> None:
        """Free the pipeline once the device no longer uses it. Idempotent."""
        self._built = None
        log.debug("algorithm destroyed")

    def rebuild(
        self,
        tensors: Sequence[Memory] = (),
        spirv: Any = b"",
        workgroup: Sequence[int] = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
    ) -> None:
        """Bind the algorithm to other memory, code and constants. Recorded dispatches do not change.

        Raises the errors of `kp.Manager.algorithm`.
        """
        self._set_up(self._context, tensors, spirv, workgroup, spec_consts, push_consts)

    def set_workgroup(self, workgroup: Sequence[int]) -> None:
        """Set the workgroups of later recordings. Raises as `kp.Manager.algorithm`."""
        requested = _parse_workgroup(workgroup)
        groups = _count_workgroups(requested, self._memories)
        if self._built is not None:
            self._built = self._built.with_groups(groups, chosen=requested[0] > 0)
        self._workgroup, self._requested_workgroup = groups, requested

    def get_workgroup(self) -> Groups:
        """Return the number of workgroups along x, y and z."""
        return self._workgroup

    def set_push_consts(self, push_consts: Any) -> None:
        """Set the default push constants of dispatches.

        Raises
        ------
        TypeError, RuntimeError
            As `kp.Manager.algorithm`, or if the size in bytes changes.
        """
        self._push = self._parse_push_consts(push_consts)

    set_push_constants = set_push_consts

    def get_push_consts(self) -> Array:
        """Return the default push constants of dispatches."""
        return self._push.copy()

    def get_spec_consts(self) -> Array:
        """Return the specialization constants."""
        return np.array(self._spec)

    def _set_up(
        self,
        context: Context,
        tensors: Sequence[Memory],
        spirv: Any,
        workgroup: Sequence[int],
        spec_consts: Any,
        push_consts: Any,
    ) -> None:
        """Build the algorithm. If that raises, nothing changes."""
        memories = parse_memories(context, "tensors", tensors)
        counts = _parse_workgroup(workgroup)
        groups = _count_workgroups(counts, memories)
        built: Dispatchable | None = None
        spec_consts = copy_constants("spec_consts", spec_consts)
        push_consts = copy_constants("push_consts", push_consts)
        push = parse_constants("push_consts", push_consts, frozenset())
        is_code = isinstance(spirv, (bytes, str))
        if not is_code and not hasattr(spirv, "shader_description"):
            raise ArgumentTypeError(
                "spirv: expected the bytes of a SPIR-V module, GLSL text or a vd.shader, got "
                f"{type(spirv).__name__}"
            )
        if memories and (spirv or not is_code):
            explicit = groups if counts[0] else None
            built, push = build(context, memories, spirv, explicit, spec_consts, push_consts)
        self._context, self._memories, self._code = context, memories, spirv
        self._workgroup, self._requested_workgroup = groups, counts
        self._built, self._push, self._spec = built, push, spec_consts
        self._bound = [(memory, memory._native) for memory in memories]
        if built is not None:
            log.debug(
                "algorithm built: number of tensors and images %d, workgroups %s, push constants %d bytes",
                *(len(memories), groups, push.nbytes),
            )

    def _require_built(self) -> "Dispatchable":
        """Return the pipeline to dispatch.

        Raises RuntimeError if the algorithm is empty or its memory was destroyed.
        """
        built = self._built
        if built is None:
            raise KomputeError(
                "algorithm: it has no tensors or no code, or was destroyed, so there is nothing to dispatch"
            )
        for memory, native in self._bound:
            if not memory._initialized:
                memory._require()
            if memory._native is not native:  # the memory was rebuilt
                return self._rebind()
        return built

    def _rebind(self) -> "Dispatchable":
        """Bind rebuilt memory. Raises RuntimeError if the code no longer fits it."""
        push = self._push
        self._set_up(self._context, self._memories, self._code, self._requested_workgroup, self._spec, push)
        built = self._built
        assert built is not None
        return built

    def _parse_push_consts(self, values: Any) -> Array:
        """Return push constants of the original size in bytes. Empty: the current ones."""
        declared = self._built.push_types if self._built is not None else frozenset()
        constants = parse_constants("push_consts", values, declared)
        if constants.size == 0:
            return self._push
        if constants.nbytes != self._push.nbytes:
            raise KomputeError(
                f"push_consts: {constants.nbytes} bytes; the algorithm was made with {self._push.nbytes}, "
                "which cannot change"
            )
        return constants.copy()  # the caller may change its array


def make_algorithm(
    context: Context, tensors: Any, spirv: Any, workgroup: Any, spec_consts: Any, push_consts: Any
) -> Algorithm:
    """Make an algorithm; see `kp.Manager.algorithm`."""
    algorithm = Algorithm.__new__(Algorithm)
    algorithm._set_up(context, tensors, spirv, workgroup, spec_consts, push_consts)
    return algorithm


def check_algorithm(algorithm: object) -> Algorithm:
    """Return an algorithm. Raises TypeError for anything else."""
    if not isinstance(algorithm, Algorithm):
        raise ArgumentTypeError(f"algorithm: expected a kp.Algorithm, got {algorithm!r}")
    return algorithm


def parse_memories(context: Context, argument: str, value: object) -> tuple[Memory, ...]:
    """Return memory objects of a context.

    Raises
    ------
    TypeError
        An item is not a memory object.
    RuntimeError
        One was destroyed, or belongs to another device.
    """
    if isinstance(value, Memory):  # a ListTensor is iterable
        raise ArgumentTypeError(f"{argument}: expected a list of tensors and images, got {value!r}")
    memories = tuple(require_iterable(argument, value, "a list of tensors and images"))
    for memory in memories:
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"{argument}: expected tensors and images, got {memory!r}")
        memory._require()
        if memory._context is not context:
            raise KomputeError(f"{argument}: {memory!r} belongs to a Manager of another device or queues")
    return memories


def _parse_workgroup(value: object) -> Groups:
    """Return three workgroup counts. Raises TypeError for anything else."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        sizes = tuple(operator.index(size) for size in value)  # type: ignore[attr-defined]
        if len(sizes) != 3 or min(sizes) < 0:
            raise TypeError
    except TypeError:
        raise ArgumentTypeError(f"workgroup: expected three counts, 0 or more, got {value!r}") from None
    return sizes


def _count_workgroups(counts: Groups, memories: Sequence[Memory]) -> Groups:
    """Return workgroups along x, y and z. With x = 0, one for each element of the first memory object."""
    x, y, z = counts
    if x == 0:
        return (len(memories[0]) if memories else 0, 1, 1)
    return (x, max(y, 1), max(z, 1))


# ---- Traced kernels as the code of an algorithm ----------------------------------------------------------


class TracedDispatch:
    """A traced kernel. Its buffers are the tensors and its numbers the push constants, in order."""

    def __init__(
        self,
        context: Context,
        memories: Sequence[Memory],
        kernel: "ShaderFunction",
        groups: Groups | None,
        spec_consts: Any,
        push_consts: Any,
    ) -> None:
        """Match a kernel's parameters with tensors and push constants.

        Raises
        ------
        RuntimeError
            The parameters do not match.
        """
        from vkdispatch.shader.signature import BufferSlot, ValueSlot  # who has made one has loaded it

        label = f"spirv: {kernel.name}"
        if len(np.ravel(spec_consts)):
            raise KomputeError(f"{label}: spec_consts: a traced kernel has none; use values of its closure")
        if any(isinstance(memory, Image) for memory in memories):
            raise KomputeError(
                f"{label}: tensors: a traced kernel takes tensors; pass images to GLSL or SPIR-V"
            )
        self.context = context
        self.kernel = kernel
        self.memories = tuple(memories)
        self.images: tuple[Image, ...] = ()
        self.stored_images: tuple[Image, ...] = ()
        buffers = [index for index, slot in enumerate(kernel._kernel.slots) if isinstance(slot, BufferSlot)]
        values = [slot for slot in kernel._kernel.slots if isinstance(slot, ValueSlot)]
        if len(buffers) + len(values) != len(kernel._kernel.parameters):
            raise KomputeError(
                f"{label}: an algorithm's kernel takes buffers and numbers, no images or dataclasses"
            )
        if len(buffers) != len(memories):
            raise KomputeError(f"tensors: {kernel.name} takes {len(buffers)} buffers, got {len(memories)}")
        if not all(dtype.is_scalar(slot.kind) for slot in values):
            raise KomputeError(f"{label}: push constants are numbers; it has a vector or matrix parameter")
        self.kinds = tuple(slot.kind for slot in values)
        self.push_types = frozenset(
            ("float" if dtype.is_float_dtype(kind) else "int", kind.item_size * 8) for kind in self.kinds
        )
        self.constants = parse_constants("push_consts", push_consts, self.push_types)
        if self.constants.size != len(values):
            raise KomputeError(
                f"push_consts: {kernel.name} takes {len(values)} numbers, got {self.constants.size}"
            )
        self.positions = frozenset(buffers)
        # Without workgroups: the kernel's own size, or one invocation for each element.
        is_sized = kernel.exec_size is not None or kernel.workgroups is not None
        self.own_size: dict[str, Any] = {} if is_sized else {"exec_size": len(memories[0])}
        self.size = self.own_size if groups is None else {"workgroups": groups}

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""
        tensors = iter([memory.buffer for memory in self.memories if isinstance(memory, Tensor)])
        numbers = iter(
            [
                float(value) if dtype.is_float_dtype(kind) else _parse_integer(value, kind)
                for value, kind in zip(constants.tolist(), self.kinds, strict=True)
            ]
        )
        count = len(self.memories) + len(self.kinds)
        arguments = [next(tensors if index in self.positions else numbers) for index in range(count)]
        try:
            with use_context(self.context):
                self.kernel(*arguments, graph=graph, **self.size)
        except (ValueError, TypeError, VkDispatchError) as error:
            raise KomputeError(f"algorithm: {error}") from error

    def with_groups(self, groups: Groups, *, chosen: bool) -> "TracedDispatch":
        """Return a copy with other workgroup counts, or with the kernel's own size."""
        other = copy(self)
        other.size = {"workgroups": groups} if chosen else self.own_size
        return other

    def repeat(self, count: int) -> None:
        """Return None: `vd.CommandGraph.optimize` merges dispatches of traced kernels."""


def _parse_integer(value: float, kind: dtype.DType) -> int:
    """Return a push constant as an integer. Raises RuntimeError if it has a fraction."""
    if not math.isfinite(value) or value != int(value):
        raise KomputeError(f"push_consts: {value!r} is not an integer; the kernel declares {kind.name}")
    return int(value)
