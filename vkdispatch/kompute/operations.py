"""Operations, and the commands that they record for a sequence: dispatches, copies and barriers, in order."""

import os
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.process import read_switch
from vkdispatch.base.spirv.repeat import MAX_REPEATS
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute.algorithm import (
    NO_CONSTANTS,
    Algorithm,
    Dispatchable,
    check_algorithm,
    copy_constants,
    make_algorithm,
)
from vkdispatch.kompute.enums import DataTypes, KomputeError, MemoryTypes
from vkdispatch.kompute.memory import (
    Image,
    ListTensor,
    Memory,
    Tensor,
    make_tensor,
    require_transfers,
    upload_block,
)

# ---- Merging of repeated dispatches ----------------------------------------------------------------------


Array = np.ndarray[Any, Any]


class Dispatch:
    """A recorded dispatch with its push constants."""

    __slots__ = ("built", "constants")

    def __init__(self, built: Dispatchable, constants: Array) -> None:
        self.built = built
        self.constants = constants

    def __call__(self, graph: CommandGraph) -> None:
        """Record it."""
        self.built.record(graph, self.constants)

    def is_repeat_of(self, other: object) -> bool:
        """Whether another command is the same dispatch."""
        return (
            isinstance(other, Dispatch)
            and other.built is self.built
            and (other.constants is self.constants or other.constants.tobytes() == self.constants.tobytes())
        )


Step = Callable[[CommandGraph], None]


def count_repeats(steps: list[Step]) -> int:
    """Return the number of dispatches that merging would save, or 0 if it is switched off."""
    if len(steps) < 2 or not read_switch("VKDISPATCH_KOMPUTE_MERGE", True):
        return 0
    return sum(isinstance(step, Dispatch) and step.is_repeat_of(before) for before, step in pairwise(steps))


def merge(steps: list[Step]) -> list[Step] | None:
    """Return the commands with repeated dispatches merged, or None if there are none to merge."""
    merged: list[Step] = []
    position = 0
    while position < len(steps):
        step, end = steps[position], position + 1
        replacement: list[Step] = []
        if isinstance(step, Dispatch):
            while end < len(steps) and step.is_repeat_of(steps[end]):
                end += 1
            if end - position > 1:
                replacement = _merge_repeats(step, end - position)
        merged += replacement or steps[position:end]
        position = end
    return merged if len(merged) < len(steps) else None


def _merge_repeats(step: Dispatch, count: int) -> list[Step]:
    """Return the fewest dispatches that are equivalent to `count`, or an empty list if that is impossible."""
    rounds = [min(MAX_REPEATS, count - done) for done in range(0, count, MAX_REPEATS)]
    merged = {length: step.built.repeat(length) for length in set(rounds)}
    if None in merged.values():
        return []
    return [Dispatch(merged[length], step.constants) for length in rounds]  # type: ignore[arg-type]


# Repeated dispatches run before they are merged: the merged pipeline takes some 20 ms to build.
_WORTH_MERGING = 1000


class Commands:
    """A sequence's commands while they are recorded: the argument of an operation's `record`.

    Barriers are inserted where two commands need one. Effects are in the order of the calls.

    Attributes
    ----------
    graph
        The `vd.CommandGraph` with the commands.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.graph = CommandGraph(context=context)
        self._steps: list[Step] = []
        self._step_length = 0  # commands recorded by the steps; operations may add others to the graph
        # Algorithms whose push constants changed since the last operation, with their previous values.
        self._replaced_constants: list[tuple[Algorithm, Array]] = []
        # The number of dispatches that merging would save in each run; -1: not counted yet.
        self._repeats = -1
        self._missed_merges = 0  # the number that merging would have saved so far

    # -- for operations

    def dispatch(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Dispatch an algorithm. `push_consts`, if given, become its current ones.

        Raises
        ------
        TypeError, RuntimeError
            The algorithm is empty, its memory was destroyed, or the push constants do not match.
        """
        built = check_algorithm(algorithm)._require_built()
        if algorithm._context is not self._context:
            raise KomputeError("algorithm: it belongs to a Manager of another device or queues")
        constants = (
            algorithm._push if push_consts is NO_CONSTANTS else algorithm._parse_push_consts(push_consts)
        )
        for image in built.images:
            if image._is_host_mirrored:
                self._copy_image(image, to_image=True)
        self._add(Dispatch(built, constants))
        if constants is not algorithm._push:
            self._replaced_constants.append((algorithm, algorithm._push))
            algorithm._push = constants
        for image in built.stored_images:
            if image._is_host_mirrored:
                self._copy_image(image, to_image=False)

    def copy_to_device(self, memory: Memory) -> None:
        """Copy the host view of memory of type `device` to the device. No effect for other types."""
        self._copy_view(memory, to_device=True)

    def copy_to_host(self, memory: Memory) -> None:
        """Copy memory of type `device` to its host view. No effect for other types."""
        self._copy_view(memory, to_device=False)

    def copy(self, source: Memory, target: Memory) -> None:
        """Copy from one tensor or image to another, on the device.

        Raises
        ------
        RuntimeError
            Their types or numbers of elements differ.
        """
        self._check(source)
        self._check(target)
        if source._data_type is not target._data_type:
            raise KomputeError(
                f"OpCopy: from elements of {source._data_type.name} to elements of {target._data_type.name}"
            )
        if source._size != target._size:
            raise KomputeError(f"OpCopy: from {source._size} elements to {target._size}")
        if source is target:
            return
        for image in (source, target):
            if isinstance(image, Image) and image._is_host_mirrored:
                self._copy_image(image, to_image=True)
        origin, destination, size = source._native, target._native, source._byte_size
        if not isinstance(source, Image) and not isinstance(target, Image):
            self._add(lambda graph: graph.record_copy(origin, destination, size))
        elif not isinstance(source, Image):
            self._add(lambda graph: graph.record_texel_copy(destination, origin, to_image=True))
        elif not isinstance(target, Image):
            self._add(lambda graph: graph.record_texel_copy(origin, destination, to_image=False))
        elif source._extent == target._extent and source._channels == target._channels:
            self._add(lambda graph: graph.record_image_copy(origin, destination))
        else:
            raise KomputeError(
                f"OpCopy: from {source._extent} texels of {source._channels} channels to {target._extent} of "
                f"{target._channels}"
            )
        if isinstance(target, Image) and target._is_host_mirrored:
            self._copy_image(target, to_image=False)

    def fill(self, tensor: Tensor, block: Any) -> None:
        """Copy host memory of the same size to a tensor."""
        self._check(tensor)
        buffer, size = tensor._native, tensor._byte_size
        self._add(lambda graph: graph.record_copy(block, buffer, size))

    def barrier(self) -> None:
        """Make all preceding commands finish, with visible effects, before any command that follows."""
        self._add(lambda graph: graph.record_barrier())

    def timestamp(self) -> None:
        """Record a timestamp when all preceding commands are done."""
        self._add(lambda graph: graph.record_timestamp())

    def _check(self, memory: Memory) -> None:
        memory._require()
        if memory._context is not self._context:
            raise KomputeError(f"{memory!r} belongs to a Manager of another device or queues")

    def _copy_view(self, memory: Memory, *, to_device: bool) -> None:
        self._check(memory)
        if not memory._is_staged:
            return
        if isinstance(memory, Image):
            self._copy_image(memory, to_image=to_device)
            return
        source_target = (memory._block, memory._native) if to_device else (memory._native, memory._block)
        size = memory._byte_size
        self._add(lambda graph: graph.record_copy(*source_target, size))

    def _copy_image(self, image: Image, to_image: bool) -> None:
        texels, block = image._native, image._block
        assert block is not None
        self._add(lambda graph: graph.record_texel_copy(texels, block, to_image=to_image))

    def _add(self, step: Step) -> None:
        before = self.graph.length
        try:
            step(self.graph)
        except (ValueError, TypeError) as error:
            raise KomputeError(str(error)) from error
        self._step_length += self.graph.length - before
        self._steps.append(step)

    # -- for sequences

    def mark(self) -> tuple[int, int, int, int]:
        """Return the present position of the recording, for `rewind`."""
        return (self.graph.length, len(self._steps), self._step_length, len(self._replaced_constants))

    def rewind(self, mark: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Remove all commands recorded since `mark`, including those that operations added to the graph."""
        length, steps, self._step_length, constants = mark
        if self.graph.length > length:
            self.graph.truncate(length)
        del self._steps[steps:]
        while len(self._replaced_constants) > constants:
            algorithm, before = self._replaced_constants.pop()
            algorithm._push = before

    def keep_push_constants(self) -> None:
        """Keep the push constants set so far, even if later commands are removed."""
        if self._replaced_constants:
            self._replaced_constants = []

    def restart(self) -> None:
        """Remove all commands."""
        if self._steps or self.graph.length:
            self.graph.reset()
        self._steps = []
        self._step_length = 0
        self._replaced_constants = []
        self._repeats, self._missed_merges = -1, 0

    def evaluate(self, queue: int) -> None:
        """Run the commands on a queue, and wait."""
        if self._repeats:
            self._merge_if_worthwhile()
        try:
            self.graph.run(queue)
        except RuntimeError:
            self._require_open()
            raise

    def submit(self, queue: int) -> int:
        """Run the commands on a queue; return the number of the batch to wait for."""
        if self._repeats:
            self._merge_if_worthwhile()
        try:
            value = self.graph.start(queue)
            self._context._native.flush(queue, value)  # in this thread, without waking the submitter
        except RuntimeError:
            self._require_open()
            raise
        return value

    def _require_open(self) -> None:
        if self._context.closed:
            raise KomputeError("the context of this sequence was closed; make a new kp.Manager")

    def _merge_if_worthwhile(self) -> None:
        """Merge repeated dispatches once this pays off."""
        if self._repeats < 0:
            self._repeats = count_repeats(self._steps)
        self._missed_merges += self._repeats
        if self._missed_merges >= _WORTH_MERGING:
            self._repeats = 0
            merged = merge(self._steps) if self._step_length == self.graph.length else None
            if merged is not None:
                graph = CommandGraph(context=self._context)
                for step in merged:
                    step(graph)
                self.graph = graph


# ---- The base classes of operations, and the barrier -----------------------------------------------------


class OpBase:
    """The base class of operations. Programs can derive classes from it, or from one of the others.

    When an operation is recorded, the sequence calls `init`, then `record`; `rerecord` calls them again. On
    the host, it calls `pre_eval` before each evaluation and `post_eval` after it.
    """

    __slots__ = ("__weakref__",)

    _has_host_hooks: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Determine whether the class has a `pre_eval` or a `post_eval`."""
        super().__init_subclass__()
        cls._has_host_hooks = cls.pre_eval is not OpBase.pre_eval or cls.post_eval is not OpBase.post_eval

    def __init__(self, *_: object, **__: object) -> None:
        """Raise TypeError for an OpBase itself."""
        if type(self) is OpBase:
            raise ArgumentTypeError("kp.OpBase has no constructor: derive a class from it")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise TypeError: an operation cannot be pickled."""
        raise ArgumentTypeError(f"kp.{type(self).__name__} cannot be pickled: it belongs to a device")

    def init(self) -> None:
        """Prepare for `record`."""

    def record(self, commands: "Commands") -> None:
        """Record device commands: `commands.dispatch`, `copy_to_host` and others."""

    def pre_eval(self) -> None:
        """Run on the host before the device starts."""

    def post_eval(self) -> None:
        """Run on the host after the device has finished."""


class MemoryOperation(OpBase):
    """An operation on a list of tensors and images."""

    __slots__ = ("_memories",)

    _minimum = 1

    def __init__(self, memories: Sequence[Memory], /) -> None:
        """Make the operation for a list of tensors and images.

        Raises
        ------
        TypeError
            `memories` is not a list of tensors and images.
        RuntimeError
            The list is too short.
        """
        self._memories = parse_memories(memories, f"kp.{type(self).__name__}")
        if len(self._memories) < self._minimum:
            raise KomputeError(
                f"kp.{type(self).__name__}: expected {self._minimum} or more tensors or images, got "
                f"{len(self._memories)}"
            )


def parse_memories(memories: object, who: str) -> tuple[Memory, ...]:
    """Return a list of tensors and images as a tuple. Raises TypeError for anything else."""
    if not isinstance(memories, (list, tuple)):
        raise ArgumentTypeError(f"{who}: expected a list of tensors and images, got {memories!r}")
    for memory in memories:
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"{who}: expected tensors and images, got {memory!r}")
    return tuple(memories)


def require_attribute(op: OpBase, name: str) -> Any:
    """Return an attribute set by `__init__`. Raises RuntimeError if a derived class did not call it."""
    try:
        return getattr(op, name)
    except AttributeError:
        raise KomputeError(f"{type(op).__name__}: its __init__ must call super().__init__()") from None


class OpMemoryBarrier(OpBase):
    """An explicit barrier, for programs that use it.

    Sequences insert a barrier wherever two of their commands need one, so it is never required. It orders all
    commands before it and all commands after it, whatever the accesses and stages.
    """

    __slots__ = ("_memories",)

    def __init__(
        self,
        memories: Sequence[Memory],
        src_access_mask: int,
        dst_access_mask: int,
        src_stage_mask: int,
        dst_stage_mask: int,
        barrier_on_primary: bool = True,
    ) -> None:
        """Make a barrier for memory between accesses in pipeline stages.

        Parameters
        ----------
        src_access_mask, dst_access_mask
            VkAccessFlags.
        src_stage_mask, dst_stage_mask
            VkPipelineStageFlags.
        barrier_on_primary
            Whether the barrier is for the device memory or for its host copy.

        Raises
        ------
        TypeError
            An argument is of the wrong type.
        RuntimeError
            `memories` is empty, or a mask is negative.
        """
        self._memories = parse_memories(memories, "kp.OpMemoryBarrier")
        masks = (src_access_mask, dst_access_mask, src_stage_mask, dst_stage_mask)
        if not all(hasattr(mask, "__index__") for mask in masks):
            raise ArgumentTypeError(f"kp.OpMemoryBarrier: expected masks of Vulkan's flags, got {masks}")
        if not self._memories or min(masks) < 0:
            raise KomputeError("kp.OpMemoryBarrier: expected memory, and masks of 0 or more")

    def record(self, commands: "Commands") -> None:
        """Record the barrier."""
        for memory in require_attribute(self, "_memories"):
            memory._require()
        commands.barrier()


# ---- Operations that copy memory -------------------------------------------------------------------------


class OpSyncDevice(MemoryOperation):
    """Copies the host view of tensors and images of type `device` to the device."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in require_attribute(self, "_memories"):
            commands.copy_to_device(memory)


class OpSyncLocal(MemoryOperation):
    """Copies tensors and images of type `device` from the device to the host view."""

    __slots__ = ()

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        for memory in require_attribute(self, "_memories"):
            commands.copy_to_host(memory)


class OpCopy(MemoryOperation):
    """Copies the first tensor or image to each of the others, on the device and in the host views."""

    __slots__ = ()

    _minimum = 2

    def record(self, commands: "Commands") -> None:
        """Record the copies. Raises RuntimeError if types or numbers of elements differ."""
        source, *targets = require_attribute(self, "_memories")
        for target in targets:
            commands.copy(source, target)

    def post_eval(self) -> None:
        """Copy the host view of the first one to those of the others."""
        source, *targets = self._memories
        if not source._interface:
            return
        for target in targets:
            if target._interface and target is not source:
                np.copyto(np.asarray(target), np.asarray(source))


class OpTensorCreate(OpBase):
    """Allocates device memory for tensors when it is recorded, and fills it when it is evaluated.

    Every evaluation copies the values that the tensors had when the operation was recorded.
    """

    __slots__ = ("_blocks", "_context", "_objects", "_tensors")

    def __init__(
        self, context: Context, objects: "weakref.WeakSet[Any]", tensors: Sequence[ListTensor]
    ) -> None:
        """Make the operation for tensors without device memory.

        Parameters
        ----------
        objects
            The objects of the Manager, to which the tensors are added.

        Raises
        ------
        TypeError
            `tensors` is not a list of tensors.
        RuntimeError
            It is empty, or a tensor has device memory already.
        """
        if not isinstance(tensors, (list, tuple)):
            raise ArgumentTypeError(f"tensors: expected a list of tensors, got {tensors!r}")
        if not tensors:
            raise KomputeError("tensors: expected at least one tensor, got none")
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"tensors: expected tensors, got {tensor!r}")
            if tensor._initialized or any(tensor is other for other in tensors[:index]):
                raise KomputeError(f"tensors: number {index} has device memory already, or occurs twice")
            if not isinstance(tensor, ListTensor):
                raise KomputeError(
                    f"tensors: number {index} was destroyed; only a kp.Tensor(data) keeps its values"
                )
        self._context, self._objects, self._tensors = context, objects, tuple(tensors)
        self._blocks: tuple[Any, ...] | None = None

    def init(self) -> None:
        """Allocate memory for all tensors or none. Raises RuntimeError if the device has too little."""
        if self._blocks is not None:
            return
        allocated: list[Tensor] = []
        blocks: list[Any] = []
        for tensor in self._tensors:
            values = tensor._host_values()
            allocated.append(make_tensor(self._context, values, values.dtype, tensor._memory_type))
            is_copied = tensor._memory_type is MemoryTypes.device
            blocks.append(upload_block(self._context, values) if is_copied else None)
        for tensor, new in zip(self._tensors, allocated, strict=True):
            tensor._replace_with(new)
            if tensor._memory_type is not MemoryTypes.storage:
                tensor._values = None
            self._objects.add(tensor)
        self._blocks = tuple(blocks)

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        assert self._blocks is not None
        for tensor, block in zip(self._tensors, self._blocks, strict=True):
            if block is not None:
                commands.fill(tensor, block)


# ---- Operations that dispatch algorithms -----------------------------------------------------------------


class OpAlgoDispatch(OpBase):
    """Dispatches an algorithm."""

    __slots__ = ("_algorithm", "_push_consts")

    def __init__(self, algorithm: Algorithm, push_consts: Any = NO_CONSTANTS) -> None:
        """Make the dispatch of an algorithm.

        Parameters
        ----------
        push_consts
            An array or an iterable of numbers, of the size in bytes that the algorithm was made with. They
            become the algorithm's own when the dispatch is recorded. Empty: use the algorithm's.

        Raises
        ------
        TypeError
            `algorithm` is not an algorithm, or `push_consts` are not numbers.
        """
        self._algorithm = check_algorithm(algorithm)
        if push_consts is not NO_CONSTANTS:
            push_consts = copy_constants("push_consts", push_consts)
        self._push_consts = push_consts if len(push_consts) else NO_CONSTANTS

    def record(self, commands: "Commands") -> None:
        """Record the dispatch.

        Raises RuntimeError if the algorithm is empty or the constants do not fit.
        """
        commands.dispatch(require_attribute(self, "_algorithm"), self._push_consts)


class OpAlgoLro(OpAlgoDispatch):
    """Dispatches an algorithm on left, right and out, and copies out to the host view."""

    __slots__ = ("_out",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm) -> None:
        """Make the operation for the memory that the algorithm is bound to.

        Raises RuntimeError unless `memories` are three tensors of the same size.
        """
        tensors = parse_memories(memories, "algo_lro")
        if len(tensors) != 3 or len({tensor.size() for tensor in tensors}) != 1:
            raise KomputeError(
                "algo_lro: expected left, right and out of the same size, got "
                f"{[tensor.size() for tensor in tensors]}"
            )
        super().__init__(algorithm)
        self._out = tensors[2]

    def record(self, commands: "Commands") -> None:
        """Record the dispatch and the copy."""
        super().record(commands)
        commands.copy_to_host(self._out)


_MULTIPLY = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""


class OpMult(OpBase):
    """Multiplies two tensors of floats, element by element, into a third one."""

    __slots__ = ("_algorithm",)

    def __init__(self, memories: Sequence[Memory], algorithm: Algorithm, /) -> None:
        """Rebuild the algorithm, which may be empty, as the multiplication of these tensors.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            `memories` are not three tensors of floats of the same size.
        """
        tensors = parse_memories(memories, "kp.OpMult")
        if len(tensors) != 3:
            raise KomputeError(f"Kompute OpMult expected 3 mem objects but got {len(tensors)}")
        check_algorithm(algorithm)
        for memory in tensors:
            memory._require()
            if memory._data_type is not DataTypes.float or memory._size != tensors[0]._size:
                raise KomputeError(
                    f"kp.OpMult: expected three tensors of {tensors[0]._size} floats, got {memory._size} "
                    f"elements of {memory._data_type.name}"
                )
        algorithm.rebuild(tensors, _MULTIPLY)
        self._algorithm = algorithm

    def record(self, commands: "Commands") -> None:
        """Record the dispatch."""
        commands.dispatch(require_attribute(self, "_algorithm"))


# ---- The named operations of Kompute 0.5 and 0.6, such as `algo_data`, made from their arguments ---------


Workgroup = Sequence[int]


_BY_SIZE = (0, 0, 0)


_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


class Owner(NamedTuple):
    """The context that an operation runs in, and the objects of the Manager there."""

    context: Context
    objects: "weakref.WeakSet[Any]"


def make_tensor_create(owner: Owner, tensors: Any) -> OpBase:
    """Return the operation that allocates device memory for tensors and fills it."""
    return OpTensorCreate(owner.context, owner.objects, tensors)


def make_sync_device(owner: Owner, tensors: Sequence[Memory]) -> OpBase:
    """Return an OpSyncDevice."""
    return _make_transfer(OpSyncDevice, tensors)


def make_sync_local(owner: Owner, tensors: Sequence[Memory]) -> OpBase:
    """Return an OpSyncLocal."""
    return _make_transfer(OpSyncLocal, tensors)


def make_copy(owner: Owner, tensors: Sequence[Memory]) -> OpBase:
    """Return an OpCopy."""
    return _make_transfer(OpCopy, tensors)


def _make_transfer(operation: Callable[[Sequence[Memory]], OpBase], tensors: Sequence[Memory]) -> OpBase:
    op = operation(tensors)
    require_transfers(tensors)
    return op


def make_algo_data(
    owner: Owner,
    tensors: Sequence[Memory],
    bytes: Any,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> OpBase:
    """Return the dispatch of SPIR-V, GLSL or a traced kernel on tensors."""
    code = _parse_code("bytes", bytes)
    return OpAlgoDispatch(_make_algorithm(owner, tensors, code, work_group, spec_consts, push_consts))


def make_algo_file(
    owner: Owner,
    tensors: Sequence[Memory],
    file_path: str | os.PathLike[str],
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> OpBase:
    """Return the dispatch of a file of SPIR-V or GLSL."""
    if not isinstance(file_path, (str, os.PathLike)):
        raise ArgumentTypeError(f"file_path: expected the path of a SPIR-V or GLSL file, got {file_path!r}")
    with open(file_path, "rb") as file:
        code = _parse_code("file_path", file.read())
    return make_algo_data(owner, tensors, code, work_group, spec_consts, push_consts)


def make_algo_mult(owner: Owner, tensors: Sequence[Memory]) -> OpBase:
    """Return an OpMult."""
    return OpMult(tensors, _make_algorithm(owner, (), b""))


def make_algo_lro(
    owner: Owner,
    tensors: Sequence[Memory],
    shader: Any = None,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> OpBase:
    """Return the dispatch of a shader on left, right and out, with out copied to the host."""
    if shader is None:
        raise KomputeError("shader: left, right and out need a shader: SPIR-V, GLSL or a traced kernel")
    code = _parse_code("shader", shader)
    return OpAlgoLro(tensors, _make_algorithm(owner, tensors, code, work_group, spec_consts, push_consts))


def _make_algorithm(
    owner: Owner,
    tensors: Sequence[Memory],
    code: Any,
    work_group: Workgroup = _BY_SIZE,
    spec_consts: Any = (),
    push_consts: Any = (),
) -> Algorithm:
    return make_algorithm(owner.context, tensors, code, work_group, spec_consts, push_consts)


def _parse_code(argument: str, code: Any) -> Any:
    """Return SPIR-V as bytes, GLSL as text, and a traced kernel unchanged.

    Parameters
    ----------
    code
        Bytes, text, a list of bytes or characters, or a traced kernel.

    Raises
    ------
    TypeError
        `code` is something else.
    RuntimeError
        The bytes are neither SPIR-V nor GLSL.
    """
    if isinstance(code, list) and code and all(isinstance(item, str) for item in code):
        code = "".join(code)
    if isinstance(code, (bytearray, memoryview, list)):
        try:
            code = bytes(code)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters: {error}"
            ) from None
    if isinstance(code, str):
        is_spirv = code.startswith(tuple(mark.decode("latin-1") for mark in _SPIRV))
        return code.encode("latin-1", "replace") if is_spirv else code
    if not isinstance(code, bytes) and not hasattr(code, "shader_description"):
        raise ArgumentTypeError(
            f"{argument}: expected SPIR-V or GLSL: bytes, text or a list of characters; got {code!r}"
        )
    if not isinstance(code, bytes) or code.startswith(_SPIRV):
        return code
    text = code.decode("utf-8", "replace").rstrip("\0")
    if any(not (letter.isprintable() or letter.isspace()) or letter == "\ufffd" for letter in text):
        raise KomputeError(f"{argument}: neither a SPIR-V module nor GLSL text")
    return text


# ---- The `record_<operation>` methods of sequences in Kompute 0.5 and 0.6 --------------------------------


class LegacyRecordMethods:
    """The `record_<operation>` methods. Each returns and raises what `record` does."""

    __slots__ = ()

    if TYPE_CHECKING:
        _context: Context
        _objects: "weakref.WeakSet[Any]"

        def record(self, op: OpBase) -> Any:
            """Record an operation."""

    def record_tensor_create(self, tensors: Any) -> Any:
        """Allocate device memory for tensors of `kp.Tensor(data)`, and record a copy of their data to it.

        Every evaluation copies the data of this moment.
        """
        return self.record(make_tensor_create(self._make_owner(), tensors))

    def record_tensor_sync_device(self, tensors: Sequence[Memory]) -> Any:
        """Record an OpSyncDevice."""
        return self.record(make_sync_device(self._make_owner(), tensors))

    def record_tensor_sync_local(self, tensors: Sequence[Memory]) -> Any:
        """Record an OpSyncLocal."""
        return self.record(make_sync_local(self._make_owner(), tensors))

    def record_tensor_copy(self, tensors: Sequence[Memory]) -> Any:
        """Record an OpCopy."""
        return self.record(make_copy(self._make_owner(), tensors))

    def record_algo_data(
        self, tensors: Sequence[Memory], bytes: Any, work_group: Sequence[int] = (0, 0, 0), *options: Any
    ) -> Any:
        """Record the dispatch of SPIR-V or GLSL on tensors.

        Parameters
        ----------
        bytes
            SPIR-V or GLSL as bytes, text, or a list of bytes or characters.
        work_group
            Workgroups along x, y and z. With zeros, one for each element of the first tensor.
        options
            spec_consts and push_consts, as of `kp.Manager.algorithm`.
        """
        return self.record(make_algo_data(self._make_owner(), tensors, bytes, work_group, *options))

    def record_algo_file(
        self,
        tensors: Sequence[Memory],
        file_path: str | os.PathLike[str],
        work_group: Sequence[int] = (0, 0, 0),
        *options: Any,
    ) -> Any:
        """Record the dispatch of a file of SPIR-V or GLSL on tensors. Otherwise as `record_algo_data`."""
        return self.record(make_algo_file(self._make_owner(), tensors, file_path, work_group, *options))

    def record_algo_mult(self, tensors: Sequence[Memory]) -> Any:
        """Record an OpMult of three tensors."""
        return self.record(make_algo_mult(self._make_owner(), tensors))

    def record_algo_lro(
        self,
        tensors: Sequence[Memory],
        shader: Any = None,
        work_group: Sequence[int] = (0, 0, 0),
        *options: Any,
    ) -> Any:
        """Record the dispatch of a shader on left, right and out, and the copy of out to the host.

        The three tensors have the same size. Otherwise as `record_algo_data`.
        """
        return self.record(make_algo_lro(self._make_owner(), tensors, shader, work_group, *options))

    def _make_owner(self) -> Owner:
        return Owner(self._context, self._objects)
