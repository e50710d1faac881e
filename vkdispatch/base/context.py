"""Contexts: devices with their queues, limits, and the objects made on them; one context is current."""

import atexit
import contextlib
import math
import sys
import weakref
from _thread import RLock, _local
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vkdispatch.base.aliases import names_elsewhere
from vkdispatch.base.choosing import as_int as as_int
from vkdispatch.base.choosing import automatic_devices, choose_families, explicit_devices, refuse_unusable
from vkdispatch.base.devices.information import DeviceInfo
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DeviceLostError,
    DeviceTimeoutError,
    UsageError,
    VkDispatchError,
    VulkanError,
)
from vkdispatch.base.init import (
    after_contexts,
    debug_enabled,
    device_info,
    get_devices,
    initialize,
    is_dummy,
    is_vulkan,
)
from vkdispatch.base.native_module import native
from vkdispatch.base.process.environment import read_switch
from vkdispatch.base.process.listing import Listed, internal
from vkdispatch.base.process.timeouts import as_nanoseconds, batch_timeout
from vkdispatch.base.process.unshared import Unshared

if TYPE_CHECKING:
    from vkdispatch.base.interop import ContextHandles

_Kept = TypeVar("_Kept")
_OLD_ADDRESSES = "VK_EXT_buffer_device_address"


class Owned(Protocol):
    """An object of a context, as far as the context knows it: a `vkdispatch.base.handle.Handle`."""

    _handle: int

    def destroy(self) -> None:
        """Release the device memory of the object."""


class Context(Unshared, Listed):
    """Devices with their queues, and the limits that hold on all of them.

    Limits are the smallest over the devices (`uniform_buffer_alignment` the largest); memory sizes are bytes.

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
        Limits: invocations of a workgroup along each axis and in total, and workgroups along each axis.
    max_shared_memory
        Limit of the shared memory of a workgroup, in bytes.
    max_storage_buffer_range, uniform_buffer_alignment
        Limit of the bytes that a kernel sees through one binding, and the alignment of uniform data.
    """

    _instead = "make one where it is needed, with vd.make_context(...)"

    def __init__(
        self,
        device_ids: Sequence[int],
        queue_families: Sequence[Sequence[int]],
        extensions: Sequence[str] = (),
        timeout: float | None = None,
    ) -> None:
        """Take devices, by their index in `get_devices()`, with a queue for each family that is named.

        Vulkan's `extensions` are switched on for every device, beside those that are used anyway; `timeout`
        is that of `make_context`. The context is not the current one: see `make_current` and `use_context`.

        Raises
        ------
        TypeError, ValueError
            There is no such device or family, or it cannot compute, or `extensions` are no names, or
            `timeout` is no number of seconds.
        UnsupportedError
            A device lacks something that vkdispatch needs, or one of the extensions.
        VulkanError
            The driver refused to make a device.
        """
        chosen = explicit_devices(device_ids)
        refuse_unusable(chosen)
        families = choose_families(chosen, None, queue_families, False)
        names = _extension_names(extensions)
        infos = [get_devices()[index] for index in chosen]
        _refuse_extensions(names, infos)
        self.timeout = batch_timeout(timeout)
        # None on the dummy backend, which has nothing to run on.
        engine = (
            None
            if is_dummy()
            else native.Engine(
                [info.dev_index for info in infos],
                families,
                debug_enabled(),
                _force_staging(),
                names,
                timeout_ns=as_nanoseconds(self.timeout),
            )
        )
        self._extensions = names
        self._begin(chosen, infos, families, engine)

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
        from vkdispatch.base.interop import foreign_engine, handles_of

        initialize()
        if is_dummy():
            raise UsageError("the dummy backend has no use for a device")
        limit = batch_timeout(timeout)
        engine = foreign_engine(
            instance,
            physical_device,
            device,
            queues,
            extensions,
            features,
            debug=debug_enabled(),
            force_staging=_force_staging(),
            timeout_ns=as_nanoseconds(limit),
        )
        (entry,) = engine.device_properties
        devices = get_devices()
        # the device's index; there is none if this process sees the device through other drivers
        same = [
            i for i, known in enumerate(devices) if known.uuid == entry["uuid"] and known.uuid is not None
        ]
        index = same[0] if same else -1
        self = cls.__new__(cls)
        self.borrowed = True
        self.timeout = limit
        info = device_info(index, entry)
        families = [queue.family for queue in handles_of(engine).devices[0].queues]
        self._begin([index], [info], [families], engine)
        return self

    # whether the devices belong to another library
    borrowed = False
    timeout: float | None = None
    # names of the requested extensions
    _extensions: Sequence[str] = ()
    # whether `close` was interrupted while work was still running
    _left = False

    def _begin(
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
        # Weak references to all objects of the context, which remove themselves without a Python call.
        self._handles: set[weakref.ref[Owned]] = set()
        self._forget = self._handles.discard
        # What higher layers keep between calls, by name, and by object such as a kernel. Internal
        # objects that refer to the context must be here: anything else would keep the context alive.
        self.kept: dict[str, Any] = {}
        self._states: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # recorded calls of functions on arrays, for native.repeat
        self.calls: dict[Any, Any] = {}
        self.closed = False
        self._engine = engine
        self._handle = id(self)
        self.queue_count = sum(map(len, families))
        self.refresh_limits_from_device_infos()

    @property
    def _native(self) -> native.Engine:
        """The engine. Raises RuntimeError on the dummy backend."""
        if self._engine is None:
            raise UsageError(
                "the dummy backend has no device: kernels can be traced and their source be read, no more"
            )
        return self._engine

    def _keep(self, name: str, make: "Callable[[], _Kept]") -> "_Kept":
        """Return what is kept under a name, made on first use. If two threads make it, the first one wins."""
        found: _Kept | None = self.kept.get(name)
        return found if found is not None else self.kept.setdefault(name, make())

    def _state_of(self, owner: object, make: "Callable[[], _Kept]") -> "_Kept":
        """Return what is kept for an object while the object lives, made on first use.

        It must not refer to the object itself, which would never end then.
        """
        found: _Kept | None = self._states.get(owner)
        return found if found is not None else self._states.setdefault(owner, make())

    @internal
    def refresh_limits_from_device_infos(self) -> None:
        """Compute the limits again from `device_infos`."""
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
        """The objects of this context, by number."""
        alive = (handle() for handle in self._handles.copy())
        return {handle._handle: handle for handle in alive if handle is not None}

    def _disown(self, handle: Owned) -> None:
        """Do not destroy an object when the context ends."""
        self._handles.discard(weakref.ref(handle))

    @property
    def lost(self) -> bool:
        """Whether a device failed, or was abandoned while it worked; see `timeout` and `close`."""
        return self._engine is not None and self._engine.lost

    def is_apple(self) -> bool:
        """Whether any of the devices is one of Apple's."""
        return any(info.is_apple() for info in self.device_infos)

    def is_cpu(self) -> bool:
        """Whether any of the devices is a CPU, for which kernels are then planned."""
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
        """Vulkan's own handles of instance, devices and queues, to be used beside this context until it ends.

        Vulkan wants one thread at a time to submit to a queue, and the context does so whenever it has work:
        call `vd.queue_wait_idle()` first, and give it none meanwhile. Nothing of it may be destroyed.

        Raises
        ------
        RuntimeError
            The context was closed, or the backend is the dummy one.
        """
        from vkdispatch.base.interop import handles_of

        return handles_of(self._native)

    def make_current(self) -> "Context | None":
        """Make this the global context of all threads; return the previous one, which stays open.

        Raises
        ------
        RuntimeError
            This context was closed, or its device lost.
        """
        global _context
        self.require_usable()
        with _lock:
            before, _context = _context, self
        return before

    @internal
    def require_usable(self) -> None:
        """Raise UsageError if the context was closed, or DeviceLostError if its device was lost."""
        if self.lost and not self._left:
            raise self._loss("make a new one")
        if self.closed:
            raise UsageError("this context was closed; make a new one")

    @internal
    def require_finished(self) -> None:
        """Raise an error unless all work of this context, which has ended, is known to be done."""
        if self._left:
            raise UsageError("the context was closed, and its close interrupted, before the work was done")
        if self.lost:
            raise self._loss("run it again")
        if self._engine is not None and self._engine.failures:
            raise VulkanError(
                "work of the context failed before it was closed: whether this was done is not known; wait "
                "for work before the context is closed"
            )

    def _loss(self, remedy: str) -> DeviceLostError:
        """Return the error for a lost context: what happened, and the `remedy`."""
        if self._timed_out:
            return DeviceTimeoutError(
                f"work took longer than the timeout of its context, {self.timeout:g} seconds, and the "
                f"context was given up; {remedy}"
            )
        return DeviceLostError(f"the device of this context was lost; {remedy}")

    @property
    def _timed_out(self) -> bool:
        return self.timeout is not None and self._engine is not None and self._engine.abandoned

    def close(self) -> None:
        """Destroy all objects of the context, then its devices unless another library owns them. Idempotent.

        It waits for all work. If that is interrupted (Ctrl-C), the context is closed nevertheless, and memory
        that the device may still use is never freed.

        Raises
        ------
        RuntimeError
            Another library owns the device, and arrays of `vd.empty_pinned` still use its memory. Nothing is
            closed.
        """
        self._require_unpinned()
        self._end()

    def _require_unpinned(self) -> None:
        if not self.borrowed or self.closed or self._engine is None or self.lost:
            return
        count = self._engine.statistics()["pinned_blocks"]
        if count:
            raise UsageError(
                f"arrays still look at {count} block(s) of pinned memory (vd.empty_pinned), which end with "
                "the device: drop or copy them before the context is closed"
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
            self.closed = False  # interrupted: `close` can be called again
            raise
        try:
            if self._engine is not None:
                self._engine.close()
        finally:
            self._left = self.lost and not lost
            for function in after_contexts if self.runs else ():
                function()
            self.kept.clear()
            self.calls.clear()
            self._states.clear()


def _force_staging() -> bool:
    return read_switch("VKDISPATCH_FORCE_STAGING")


def _smallest(sizes: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    x, y, z = (min(component) for component in zip(*sizes, strict=True))
    return (x, y, z)


class _Chosen(_local):
    """What `use_context` has chosen for the running thread."""

    context: Context | None = None


_lock = RLock()
_context: Context | None = None
_chosen = _Chosen()


def make_context(
    device_ids: int | Sequence[int] | None = None,
    device_count: int | None = None,
    queue_counts: int | Sequence[int] | None = None,
    queue_families: Sequence[Sequence[int]] | None = None,
    use_cpu: bool = False,
    multi_device: bool = False,
    multi_queue: bool = False,
    extensions: Sequence[str] = (),
    compiles: bool = True,
    timeout: float | None = None,
) -> Context:
    """Make the global context, or return it, arguments ignored, when it exists.

    Where its device was lost, or its timeout passed, a new one takes its place, as with `get_context`: on the
    same devices and queues, with the same extensions and timeout, save what is named here.

    Parameters
    ----------
    device_ids
        Index or indices into `get_devices()`. None chooses: discrete, integrated, virtual GPU; a CPU
        driver when there is nothing else or, with `use_cpu`, after the GPUs. The environment variable
        VKDISPATCH_DEVICE (an index, or a part of the name) picks another.
    device_count
        How many devices to take when chosen automatically (default 1; all with `multi_device`).
    queue_counts
        Queues per device (default 1; with `multi_queue` what suits the device).
    queue_families
        A list of queue family indices per device.
    extensions
        Vulkan's names of device extensions to switch on, besides those that are used anyway. What each device
        has is `DeviceInfo.extensions`.
    compiles
        Whether there will be GLSL to compile, for which the compiler gets ready on another thread. False is
        for programs that have SPIR-V.
    timeout
        Seconds that a batch of work may take: what is submitted to a queue at once, such as the launches
        until the program waits, or a graph. None is no limit, unless the environment variable
        VKDISPATCH_TIMEOUT names one; `math.inf` is none in any case. When it has passed, whoever waits gets a
        `DeviceTimeoutError`. The device cannot be made to stop: the context is given up, with all that
        belongs to it and without freeing what the device may still use.

    Raises
    ------
    TypeError
        `extensions` are no names, or `timeout` is no number.
    ValueError
        An index, count or family is out of range, VKDISPATCH_DEVICE matches no device, or `timeout` is not
        more than 0.
    BackendUnavailableError
        This machine has no Vulkan driver or no device.
    UnsupportedError
        The device lacks something that vkdispatch needs, or one of the `extensions`.
    RuntimeError
        The global context was made before, without one of the `extensions`; or it was lost and no devices
        are named here, and it was made by `make_context_from_handles`, whose device is not ours to make.
    """
    global _context
    names = _extension_names(extensions)
    with _lock:
        if _context is not None and _context.usable:
            _require_enabled(_context, names)
            return _context
        if compiles and is_vulkan():
            from vkdispatch.base.compilation.compiler import context_comes_up

            context_comes_up()
        initialize()
        if queue_families is not None and device_ids is None:
            raise ArgumentValueError("queue_families: needs device_ids, to know whose families they are")
        lost = _take_lost(device_ids is not None)
        if device_ids is not None:
            chosen = explicit_devices(device_ids)
        elif lost is not None and device_count is None and not use_cpu and not multi_device:
            chosen = lost.device_ids
        else:
            chosen = automatic_devices(device_count, use_cpu, multi_device)
        refuse_unusable(chosen)
        if lost is not None:
            # no limit stays no limit, whatever the environment says now
            timeout = timeout if timeout is not None else lost.timeout or math.inf
            if chosen == lost.device_ids:
                names = list(dict.fromkeys([*lost._extensions, *names]))
                if queue_counts is None and not multi_queue:
                    queue_families = queue_families or lost.queue_families
        families = choose_families(chosen, queue_counts, queue_families, multi_queue)
        context = Context(chosen, families, names, timeout)
        _announce(context)
        _context = context
        return context


def _take_lost(elsewhere: bool) -> Context | None:
    """End the global context if its device was lost, and return it as the model for the next one.

    Raises
    ------
    DeviceLostError
        The device is another library's, and no other one is wanted.
    """
    lost = _context
    if lost is None or not lost.lost or lost._left:
        return None
    if lost.borrowed:
        if lost.closed or elsewhere:
            lost._end()
            return None
        raise lost._loss(
            "it is the global one, on a device of another library: have that make a new device, and call "
            "make_context_from_handles() again; or close the context, and the next has a device of its own"
        )
    if not lost.closed:
        from vkdispatch.base.process.logging import log_warning

        log_warning(str(lost._loss("making one like it")))
        lost._end()
    return lost


def _extension_names(extensions: object) -> list[str]:
    if isinstance(extensions, tuple) and not extensions:
        return []
    from vkdispatch.base.interop import parse_names

    return parse_names("extensions", extensions)


def _refuse_extensions(names: Sequence[str], devices: Iterable[DeviceInfo]) -> None:
    if not names:
        return
    from vkdispatch.base.interop import check_extensions

    check_extensions(names, devices)
    if _OLD_ADDRESSES in names:
        raise ArgumentValueError(
            f"extensions: {_OLD_ADDRESSES} cannot be on beside bufferDeviceAddress, which took its place in "
            "Vulkan 1.2 and is on"
        )


def _require_enabled(context: Context, names: Sequence[str]) -> None:
    if not names or context._engine is None:
        return
    missing = [
        name for name in names if any(name not in device.extensions for device in context.handles.devices)
    ]
    if missing:
        raise UsageError(
            f"extensions: the global context was made without {', '.join(missing)}; ask for it in the first "
            "call of make_context"
        )


def make_context_from_handles(
    instance: object,
    physical_device: object,
    device: object,
    queues: Sequence[object],
    extensions: Iterable[str] = (),
    features: Iterable[str] = (),
    make_current: bool = False,
    timeout: float | None = None,
) -> Context:
    """Make a context that runs on a VkDevice which somebody else made, beside what else runs there.

    The device is used until `Context.close()` has returned, or the last reference to the context is gone, and
    neither it nor the instance is destroyed then. Whoever made them destroys them later than that.

    Parameters
    ----------
    instance, physical_device, device
        Vulkan's handles: ints, pointers of ctypes or cffi, or what has `__int__`. The instance must be made
        with Vulkan 1.2 or later as `apiVersion`, the device with what `vd.required_device_features()` lists.
    queues
        The queues to use, as (family, index) or (family, VkQueue): at least one; each family must be able to
        compute. The context submits to them whenever it has work, from threads of its own; nobody else may
        at the same moment, save other contexts of vkdispatch.
    extensions
        Vulkan's names of the extensions that were enabled on the device. VK_KHR_push_descriptor makes
        launches faster.
    features
        Vulkan's names of features that were enabled on the device, as far as vkdispatch knows them:
        `vd.optional_device_features()`. Vulkan cannot be asked; kernels that need others are refused.
    make_current
        Make it the global context as well, see `Context.make_current`.
    timeout
        Seconds that a batch of work may take, as of `vd.make_context`. The device must not be destroyed
        after that has passed, while it works.

    Raises
    ------
    TypeError
        An argument is no handle, list of queues, list of names or number.
    ValueError
        A handle is null or is seen not to be one; the physical device is none of the instance's; a queue or
        family does not exist, or cannot compute; a feature is unknown, or its extension is not on; `timeout`
        is not more than 0.
    UnsupportedError
        The physical device lacks what vkdispatch needs, or an extension or feature that is named.
    """
    context = Context.from_handles(instance, physical_device, device, queues, extensions, features, timeout)
    if make_current:
        context.make_current()
    return context


@contextlib.contextmanager
def use_context(context: Context) -> Iterator[Context]:
    """Make a context the current one of this thread, in place of the global one, inside a `with` block.

    Buffers, graphs and all else that is made there belongs to it.

    Raises
    ------
    TypeError
        It is no context.
    RuntimeError
        It was closed, or its device lost.
    """
    if not isinstance(context, Context):
        raise ArgumentTypeError(f"context: expected a vd.Context, got {type(context).__name__}")
    context.require_usable()
    before, _chosen.context = _chosen.context, context
    try:
        yield context
    finally:
        _chosen.context = before


def _announce(context: Context) -> None:
    if "vkdispatch.base.process.logging" not in sys.modules:
        return  # the level cannot have been set
    from vkdispatch.base.process.logging import log_info

    for info in context.device_infos:
        kind = " (a CPU driver: kernels run on the processor)" if info.is_cpu() else ""
        log_info(f"using device {info.sorted_index}: {info.device_name}{kind}")


def get_context() -> Context:
    """Return the current context: the thread's, see `use_context`, else the global one.

    That is made with the defaults of `make_context` when there is none, and as it was when its device was
    lost.

    Raises
    ------
    RuntimeError
        The context that this thread chose was closed, or its device lost; or the global one's was, which is
        another library's.
    """
    context = _chosen.context
    if context is not None:
        if not context.usable:
            context.require_usable()
        return context
    context = _context
    if context is not None and context.usable:
        return context
    return make_context()


def find_context() -> Context | None:
    """Return the current context, or None if there is none; none is made."""
    return _chosen.context or _context


def is_current(context: Context) -> bool:
    """Whether this is the current context, without making one."""
    return context is (_chosen.context or _context)


def wrong_context(what: str, context: Context) -> VkDispatchError:
    """Return the error for `what`, an object of this context that is used in another one."""
    if context.usable:
        return UsageError(f"{what} belongs to another context; what is used together must be made in one")
    kind: type[VkDispatchError] = UsageError
    if context.lost and not context._left:
        kind = DeviceTimeoutError if context._timed_out else DeviceLostError
    return kind(f"{what} belongs to a context that is gone; make it again")


def get_context_on(device: int) -> Context | None:
    """Return the current context if it is on this one device, else None. Make one if there is none.

    Raises
    ------
    ValueError, UnsupportedError
        As `make_context`.
    """
    # Callers that name a device have SPIR-V. Kernels in Python have announced themselves to the compiler.
    context = get_context() if is_context_initialized() else make_context(device, compiles=False)
    return context if context.device_ids == [device] else None


def new_context(
    device: int, queue_families: Sequence[int] | None = None, extensions: Sequence[str] = ()
) -> Context:
    """Return a context beside the global one, which the caller has to close.

    Raises
    ------
    ValueError, UnsupportedError
        As `make_context`.
    """
    initialize()
    chosen = explicit_devices(device)
    refuse_unusable(chosen)
    families = choose_families(chosen, None, None if queue_families is None else [queue_families], False)
    return Context(chosen, families, extensions)


def get_context_handle() -> int:
    """Return a number that identifies the current context."""
    return get_context()._handle


def is_context_initialized() -> bool:
    """Whether there is a current context."""
    return _context is not None or _chosen.context is not None


def queue_wait_idle(queue_index: int | None = None, context: Context | None = None) -> None:
    """Wait until one queue, or with None every queue, has done all work given to it.

    Raises
    ------
    ValueError
        `queue_index` is not a queue of the context.
    """
    context = context or get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    if context._engine is not None:
        context._engine.wait_idle(queue)


def parse_queue(queue_index: object, context: Context, argument: str) -> int:
    """Return `queue_index` when it is a queue of the context.

    Raises
    ------
    ValueError
        It is not; `argument` is how the message calls it.
    """
    queue = as_int(queue_index)
    if queue is not None and 0 <= queue < context.queue_count:
        return queue
    raise ArgumentValueError(
        f"{argument}: expected a queue from 0 to {context.queue_count - 1} or None (all), got {queue_index!r}"
    )


def destroy_context() -> None:
    """Destroy the global context and every object made in it. The next use makes a new one."""
    global _context
    with _lock:
        context = _context
        if context is not None:
            context._require_unpinned()
        _context = None
    if context is not None:
        context.close()


def stop_threads() -> None:
    """Finish all work and stop the queue threads; the same as `destroy_context`."""
    destroy_context()


def _at_exit() -> None:
    context = _context
    if context is not None:
        context._end()


# At exit, objects that are still alive are destroyed before the driver's library is unloaded.
atexit.register(_at_exit)


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.choosing": "select_queue_families",
            "base.dummy_context": "set_dummy_context_params",
            "base.handle": "Handle",
            "base.synchronization.signal": "Signal",
        },
    )
