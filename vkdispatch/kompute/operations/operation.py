"""The base classes of operations, and the barrier."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.memory import Memory

if TYPE_CHECKING:
    from vkdispatch.kompute.commands.commands import Commands


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
