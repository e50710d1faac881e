"""The context: devices with their queues, their limits, and the objects that belong to it."""

import weakref
from _thread import RLock
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from vkdispatch.base import errors, init
from vkdispatch.base.contexts import selection
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.native_module import native
from vkdispatch.base.process import Listed, Unshared, as_int, as_nanoseconds, batch_timeout, internal

if TYPE_CHECKING:
    from vkdispatch.base.contexts.selection import ContextHandles

_Kept = TypeVar("_Kept")

# Held while the global context changes.
GLOBAL_LOCK = RLock()


class Owned(Protocol):
    """An object of a context: what the context needs of a `vkdispatch.base.context.Handle`."""

    _handle: int

    def destroy(self) -> None:
        """Release the device memory of the object."""


class Context(Unshared, Listed):
    """Devices with their queues, and the limits that hold on all of them.

    Each limit is the smallest over the devices (`uniform_buffer_alignment`: the largest). Memory sizes are
    bytes.

    Examples
    --------
    >>> context = vd.Context([0], [[0]])
    >>> with vd.use_context(context):
    ...     total = float(vd.sum(vd.asbuffer(np.ones(3, np.float32))))
    >>> context.close()
    >>> total
    3.0

    Attributes
    ----------
    device_ids
        Indices of the devices in `vd.get_devices()`.
    device_infos
        The properties of each device.
    queue_families, queue_count
        The queue families of each device, and the total number of queues.
    closed
        Whether `close` was called.
    borrowed
        Whether another library owns the devices; see `vd.make_context_from_handles`.
    timeout
        Seconds that a batch of work may take, or None.
    subgroup_size, subgroup_enabled, subgroup_arithmetic
        Invocations of a subgroup, and whether kernels have subgroup operations and subgroup reductions.
    max_workgroup_size, max_workgroup_invocations, max_workgroup_count
        Maximum invocations of a workgroup along each axis and in total, and workgroups along each axis.
    max_shared_memory
        Maximum shared memory of a workgroup, in bytes.
    max_storage_buffer_range, uniform_buffer_alignment
        Maximum bytes that a kernel sees through one binding, and the alignment of uniform data.
    """

    _instead = "call vd.make_context(...) where a context is needed"

    def __init__(
        self,
        device_ids: Sequence[int],
        queue_families: Sequence[Sequence[int]],
        extensions: Sequence[str] = (),
        timeout: float | None = None,
    ) -> None:
        """Create a context on devices, with one queue for each entry of `queue_families`.

        Does not make it the current context; see `make_current` and `use_context`.

        Parameters
        ----------
        device_ids
            Indices into `get_devices()`.
        queue_families
            A list of queue family indices per device.
        extensions, timeout
            As for `make_context`.

        Raises
        ------
        TypeError, ValueError
            A device or family does not exist or does not support compute, `extensions` is not a sequence of
            names, or `timeout` is not a number of seconds.
        UnsupportedError
            A device lacks something that vkdispatch needs, or one of the extensions.
        VulkanError
            The driver failed to create a device.
        """
        indices = selection.parse_devices(device_ids)
        selection.refuse_unusable(indices)
        families = selection.choose_families(indices, None, queue_families, False)
        names = selection.parse_extensions(extensions)
        infos = [init.get_devices()[index] for index in indices]
        selection.check_enableable(names, infos)
        self.timeout = batch_timeout(timeout)
        engine = None  # on the dummy backend, which has nothing to run on
        if not init.is_dummy():
            numbers, limit = [info.dev_index for info in infos], as_nanoseconds(self.timeout)
            switches = init.is_debug_enabled(), init.is_staging_forced()
            engine = native.Engine(numbers, families, *switches, names, timeout_ns=limit)
        self._extensions = names
        self._set_up(indices, infos, families, engine)

    @internal
    @classmethod
    def from_handles(
        cls,
        instance: object,
        physical_device: object,
        device: object,
        queues: Sequence[object],
        extensions: Iterable[str] = (),
        features: Iterable[str] = (),
        timeout: float | None = None,
    ) -> "Context":
        """Return a context on a VkDevice of another library; see `vd.make_context_from_handles`."""
        from vkdispatch.base.contexts.selection import get_handles, make_foreign_engine

        init.initialize()
        if init.is_dummy():
            raise errors.UsageError("the dummy backend cannot use a device")
        limit = batch_timeout(timeout)
        engine = make_foreign_engine(
            instance, physical_device, device, queues, extensions, features, as_nanoseconds(limit)
        )
        (entry,) = engine.device_properties
        uuid, known = entry["uuid"], [device.uuid for device in init.get_devices()]
        # -1 if this process sees the device through another driver
        index = known.index(uuid) if uuid is not None and uuid in known else -1
        self = cls.__new__(cls)
        self.borrowed = True
        self.timeout = limit
        info = init.device_info(index, entry)
        families = [queue.family for queue in get_handles(engine).devices[0].queues]
        self._set_up([index], [info], [families], engine)
        return self

    # The context that `get_context` returns unless the thread has its own; see `contexts.current`.
    _global: ClassVar["Context | None"] = None

    borrowed = False
    timeout: float | None = None
    # names of the requested extensions
    _extensions: Sequence[str] = ()
    # whether `close` was interrupted while work was still running
    _interrupted = False

    def _set_up(
        self,
        device_ids: list[int],
        infos: list[DeviceInfo],
        families: list[list[int]],
        engine: native.Engine | None,
    ) -> None:
        self.device_ids = device_ids
        self.mapped_device_ids = [info.dev_index for info in infos]
        self.device_infos = infos
        self.queue_families = families
        # Weak references to all objects of the context. They remove themselves without running Python code.
        self._handles: set[weakref.ref[Owned]] = set()
        self._forget = self._handles.discard
        # State that higher layers keep between calls, by name (`kept`) and by object (`_states`).
        # State that refers to the context must be stored here: elsewhere it would keep the context alive.
        self.kept: dict[str, Any] = {}
        self._states: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # recorded calls of functions on arrays; see native.repeat
        self.calls: dict[Any, Any] = {}
        # Memory that other libraries use, if the device is one of another library.
        self.loans: weakref.WeakSet[Any] = weakref.WeakSet()
        self.closed = False
        self._engine = engine
        self._handle = id(self)
        self.queue_count = sum(map(len, families))
        self.refresh_limits_from_device_infos()

    @property
    def _native(self) -> native.Engine:
        """The engine. Raises RuntimeError on the dummy backend."""
        if self._engine is None:
            raise errors.UsageError(
                "the dummy backend has no device: kernels can only be traced and their source be read"
            )
        return self._engine

    def _keep(self, name: str, make: "Callable[[], _Kept]") -> "_Kept":
        """Return the state stored under a name, made on first use. The first of several threads wins."""
        state: _Kept | None = self.kept.get(name)
        return state if state is not None else self.kept.setdefault(name, make())

    def _state_of(self, owner: object, make: "Callable[[], _Kept]") -> "_Kept":
        """Return the state stored for an object while the object lives, made on first use.

        The state must not refer to the object, which would keep both alive.
        """
        state: _Kept | None = self._states.get(owner)
        return state if state is not None else self._states.setdefault(owner, make())

    @internal
    def refresh_limits_from_device_infos(self) -> None:
        """Recompute the limits from `device_infos`."""
        infos = self.device_infos
        self.subgroup_size = min(info.sub_group_size for info in infos)
        self.subgroup_enabled = all(info.subgroup_enabled for info in infos)
        self.subgroup_arithmetic = all(info.subgroup_arithmetic for info in infos)
        self.max_workgroup_size = _smallest(info.max_workgroup_size for info in infos)
        self.max_workgroup_invocations = min(info.max_workgroup_invocations for info in infos)
        self.max_workgroup_count = _smallest(info.max_workgroup_count for info in infos)
        self.uniform_buffer_alignment = max(info.uniform_buffer_alignment for info in infos)
        self.max_shared_memory = min(info.max_compute_shared_memory_size for info in infos)
        self.max_storage_buffer_range = min(info.max_storage_buffer_range for info in infos)

    @property
    def _devices(self) -> str:
        return " and ".join(info.device_name for info in self.device_infos)

    def __repr__(self) -> str:
        queues = f"{self.queue_count} queue{'s' * (self.queue_count != 1)}"
        state = ", closed" * self.closed or ", lost" * self.lost
        return f"<vd.Context of {self._devices}: {queues}{state}>"

    @property
    def runs(self) -> bool:
        """Whether kernels can run: false on the dummy backend."""
        return self._engine is not None

    @property
    def usable(self) -> bool:
        """Whether the context still accepts work."""
        engine = self._engine
        return not (self.closed or (engine is not None and engine.lost))

    @property
    @internal
    def handles_dict(self) -> dict[int, Owned]:
        """The live objects of this context, by number."""
        alive = (handle() for handle in self._handles.copy())
        return {handle._handle: handle for handle in alive if handle is not None}

    def _disown(self, handle: Owned) -> None:
        """Leave an object out of those that are destroyed with the context."""
        self._handles.discard(weakref.ref(handle))

    @property
    def lost(self) -> bool:
        """Whether a device failed, or was abandoned during work; see `timeout` and `close`."""
        return self._engine is not None and self._engine.lost

    def is_apple(self) -> bool:
        """Whether any of the devices is made by Apple."""
        return any(info.is_apple() for info in self.device_infos)

    def is_cpu(self) -> bool:
        """Whether any of the devices is a CPU. Kernels are then planned for CPUs."""
        return any(info.is_cpu() for info in self.device_infos)

    @property
    def features(self) -> frozenset[str]:
        """The features that all of the devices support, by their Vulkan names."""
        return frozenset.intersection(*(info.features for info in self.device_infos))

    @property
    def max_invocations_along_x(self) -> int:
        """The limit of invocations of a workgroup along x."""
        return min(self.max_workgroup_size[0], self.max_workgroup_invocations)

    @property
    def handles(self) -> "ContextHandles":
        """The Vulkan handles of the instance, the devices and the queues. They are valid until `close`.

        Vulkan allows one thread at a time to submit to a queue, and the context submits whenever it has work.
        Before you submit to its queues, call `vd.queue_wait_idle()`, and launch nothing until you are done.
        Do not destroy any of these objects.

        Raises
        ------
        RuntimeError
            The context was closed, or the backend is the dummy one.
        """
        from vkdispatch.base.contexts.selection import get_handles

        return get_handles(self._native)

    def make_current(self) -> "Context | None":
        """Make this the global context of all threads. Return the previous one, which stays open.

        Raises
        ------
        RuntimeError
            This context was closed, or its device was lost.
        """
        self.require_usable()
        with GLOBAL_LOCK:
            before, Context._global = Context._global, self
        return before

    @internal
    def require_usable(self) -> None:
        """Raise UsageError if the context was closed, or DeviceLostError if its device was lost."""
        if self.lost and not self._interrupted:
            raise self._lost_error("make a new one")
        if self.closed:
            raise errors.UsageError("this context was closed; make a new one")

    @internal
    def require_finished(self) -> None:
        """Raise an error unless all work of this closed context is known to be done."""
        if self._interrupted:
            raise errors.UsageError("closing the context was interrupted before the work was done")
        if self.lost:
            raise self._lost_error("run it again")
        if self._engine is not None and self._engine.failures:
            raise errors.VulkanError(
                "some work of the context failed before it was closed: whether this work was done is "
                "unknown; wait for work before you close the context"
            )

    def _lost_error(self, remedy: str) -> errors.DeviceLostError:
        """Return the error for a lost context: what happened, and the `remedy`."""
        if self._timed_out:
            return errors.DeviceTimeoutError(
                f"work took longer than the timeout of its context, {self.timeout:g} seconds, and the "
                f"context was abandoned; {remedy}"
            )
        return errors.DeviceLostError(f"the device of this context was lost; {remedy}")

    @property
    def _timed_out(self) -> bool:
        return self.timeout is not None and self._engine is not None and self._engine.abandoned

    def close(self) -> None:
        """Destroy all objects of the context, then its devices unless another library owns them. Idempotent.

        Waits for all work. If the wait is interrupted (Ctrl-C), the context is closed nevertheless, and
        memory that the device may still use is never freed.

        Raises
        ------
        RuntimeError
            Another library owns the device, and arrays of `vd.empty_pinned`, or of libraries that buffers are
            shared with, still use its memory. Nothing is closed.
        """
        self._require_unused()
        self._end()

    def _require_unused(self) -> None:
        if not self.borrowed or self.closed or self._engine is None or self.lost:
            return
        count = self._engine.statistics()["pinned_blocks"]
        if count:
            raise errors.UsageError(
                f"arrays still use {count} block(s) of pinned memory (vd.empty_pinned), which is freed with "
                "the device: delete or copy these arrays before you close the context"
            )
        count = len(self.loans)
        if count:
            raise errors.UsageError(
                f"arrays of other libraries still use memory of buffers in {count} place(s) (np.from_dlpack, "
                "vd.share and others), which is freed with the device: delete or copy these arrays before "
                "you close the context"
            )

    def _end(self) -> None:
        if self.closed:
            return
        lost = self.lost
        self.closed = True
        try:
            for handle in self.handles_dict.values():
                handle.destroy()
        except BaseException:
            self.closed = False  # interrupted: the caller may close it again
            raise
        try:
            if self._engine is not None:
                self._engine.close()
        finally:
            self._interrupted = self.lost and not lost
            for function in init.after_contexts if self.runs else ():
                function()
            self.kept.clear()
            self.calls.clear()
            self._states.clear()


def _smallest(sizes: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    x, y, z = (min(component) for component in zip(*sizes, strict=True))
    return (x, y, z)


def wrong_context(what: str, context: Context) -> errors.VkDispatchError:
    """Return the error for `what`, an object of this context that is used in another one."""
    if context.usable:
        return errors.UsageError(
            f"{what} belongs to another context; objects that are used together must be made in one context"
        )
    kind: type[errors.VkDispatchError] = errors.UsageError
    if context.lost and not context._interrupted:
        kind = errors.DeviceTimeoutError if context._timed_out else errors.DeviceLostError
    return kind(f"{what} belongs to a context that is gone; make it again")


def parse_queue(queue_index: object, context: Context, argument: str) -> int:
    """Return `queue_index` if it is a queue of the context.

    Raises
    ------
    ValueError
        It is not. The message calls it `argument`.
    """
    queue = as_int(queue_index)
    if queue is not None and 0 <= queue < context.queue_count:
        return queue
    raise errors.ArgumentValueError(
        f"{argument}: expected a queue from 0 to {context.queue_count - 1} or None (all), got {queue_index!r}"
    )
