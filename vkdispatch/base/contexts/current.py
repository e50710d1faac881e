"""The current context: the one that `use_context` sets for a thread, or else the global one."""

import atexit
import contextlib
import math
from _thread import _local
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vkdispatch.base import process
from vkdispatch.base.contexts import selection
from vkdispatch.base.contexts.context import GLOBAL_LOCK, Context, parse_queue
from vkdispatch.base.errors import ArgumentValueError, UsageError, check_type
from vkdispatch.base.init import get_backend, initialize, is_dummy, is_vulkan
from vkdispatch.base.process import as_int, parse_positive


class _ThreadState(_local):
    """What `use_context` has set for the running thread."""

    context: Context | None = None


_thread = _ThreadState()


def make_context(  # noqa: PLR0913  public: each is an option of its own
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
    """Create the global context. If it exists already, return it and ignore the arguments.

    If its device was lost or its timeout has passed, a new context replaces it, as in `get_context`. The new
    one has the same devices, queues, extensions and timeout, except where arguments say otherwise.

    Parameters
    ----------
    device_ids
        Index or indices into `get_devices()`. None selects the best device: discrete, integrated, virtual
        GPU. A CPU driver is selected if there is no GPU; with `use_cpu`, CPU drivers come after the GPUs. The
        environment variable VKDISPATCH_DEVICE (an index, a UUID or part of a name) selects another device.
    device_count
        The number of devices to select automatically (default 1; all with `multi_device`).
    queue_counts
        Queues per device (default 1; with `multi_queue`, a number that suits the device).
    queue_families
        A list of queue family indices per device.
    extensions
        Vulkan names of device extensions to enable, besides those that are always used. See
        `DeviceInfo.extensions` for those of a device.
    compiles
        Whether the program will compile GLSL. If so, the compiler is initialised on another thread. Pass
        False if the program has SPIR-V only.
    timeout
        Seconds that a batch of work may take. A batch is what is submitted to a queue at once, such as a
        graph, or all launches up to a wait. None means no limit, unless the environment variable
        VKDISPATCH_TIMEOUT sets one; `math.inf` means no limit in any case. When the timeout has passed,
        waiting raises `DeviceTimeoutError`. The device cannot be stopped: the context and its objects are
        abandoned, and memory that the device may still use is not freed.

    Raises
    ------
    TypeError
        `extensions` is not a sequence of names, or `timeout` is not a number.
    ValueError
        An index, count or family is out of range, VKDISPATCH_DEVICE matches no device, or `timeout` is not
        greater than 0.
    BackendUnavailableError
        This machine has no Vulkan driver or no device.
    UnsupportedError
        The device lacks something that vkdispatch needs, or one of the `extensions`.
    RuntimeError
        The global context exists and was made without one of the `extensions`. Or it was lost, it was made by
        `make_context_from_handles`, and no devices are named here: only its owner can make that device again.

    Examples
    --------
    >>> context = vd.make_context(timeout=60)
    """
    names = selection.parse_extensions(extensions)
    with GLOBAL_LOCK:
        current = Context._global
        if current is not None and current.usable:
            _require_enabled(current, names)
            return current
        if compiles and is_vulkan():
            from vkdispatch.base.compilation.compiler import prepare_for_context

            prepare_for_context()
        initialize()
        if queue_families is not None and device_ids is None:
            raise ArgumentValueError(
                "queue_families: device_ids is required too, as the families are those of these devices"
            )
        lost = _end_lost_context(device_ids is not None)
        if device_ids is not None:
            devices = selection.parse_devices(device_ids)
        elif lost is not None and device_count is None and not use_cpu and not multi_device:
            devices = lost.device_ids
        else:
            devices = selection.choose_devices(device_count, use_cpu, multi_device)
        selection.refuse_unusable(devices)
        if lost is not None:
            # A context without a limit stays without, whatever VKDISPATCH_TIMEOUT is now.
            timeout = timeout if timeout is not None else lost.timeout or math.inf
            if devices == lost.device_ids:
                names = list(dict.fromkeys([*lost._extensions, *names]))
                if queue_counts is None and not multi_queue:
                    queue_families = queue_families or lost.queue_families
        families = selection.choose_families(devices, queue_counts, queue_families, multi_queue)
        context = Context(devices, families, names, timeout)
        _log_devices(context)
        Context._global = context
        return context


def _end_lost_context(names_devices: bool) -> Context | None:
    """End the global context if its device was lost, and return it as the model for the next one.

    Raises
    ------
    DeviceLostError
        The device belongs to another library, and the caller names no other device.
    """
    lost = Context._global
    if lost is None or not lost.lost or lost._interrupted:
        return None
    if lost.borrowed:
        if lost.closed or names_devices:
            lost._end()
            return None
        raise lost._lost_error(
            "it is the global context, on a device of another library: let that library create a new device "
            "and call make_context_from_handles() again, or close the context to use a new device"
        )
    if not lost.closed:
        process.log_warning(str(lost._lost_error("a new context replaces it")))
        lost._end()
    return lost


def _require_enabled(context: Context, names: Sequence[str]) -> None:
    if not names or context._engine is None:
        return
    missing = [
        name for name in names if any(name not in device.extensions for device in context.handles.devices)
    ]
    if missing:
        raise UsageError(
            f"extensions: the global context was made without {', '.join(missing)}; pass it to the "
            "first call of make_context"
        )


def _log_devices(context: Context) -> None:
    for info in context.device_infos:
        kind = " (a CPU driver: kernels run on the processor)" if info.is_cpu() else ""
        process.log_info(f"using device {info.sorted_index}: {info.device_name}{kind}")


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
    """Create a context on the VkDevice of another library.

    The context uses the device until `Context.close()` has returned or the last reference to the context is
    gone. It destroys neither the device nor the instance; their owner does so afterwards.

    Parameters
    ----------
    instance, physical_device, device
        Vulkan handles: ints, pointers of ctypes or cffi, or objects with `__int__`. The instance must have
        been made with an `apiVersion` of Vulkan 1.2 or later, and the device with the features of
        `vd.required_device_features()`.
    queues
        The queues to use, as (family, index) or (family, VkQueue): at least one. Each family must support
        compute. The context submits to them from its own threads whenever it has work; nobody else may
        submit at the same time, except other contexts of vkdispatch.
    extensions
        Vulkan names of the extensions that were enabled on the device. VK_KHR_push_descriptor makes launches
        faster.
    features
        Vulkan names of the features that were enabled on the device, out of those that vkdispatch knows; see
        `vd.optional_device_features()`. Vulkan has no query for them. Kernels that need others raise an
        error.
    make_current
        Also make it the global context; see `Context.make_current`.
    timeout
        Seconds that a batch of work may take, as for `vd.make_context`. After a timeout, the device must not
        be destroyed while it still works.

    Raises
    ------
    TypeError
        An argument is not a handle, a list of queues, a list of names or a number.
    ValueError
        A handle is null or visibly not a handle; the physical device does not belong to the instance; a queue
        or family does not exist or does not support compute; a feature is unknown or its extension is not
        enabled; or `timeout` is not greater than 0.
    UnsupportedError
        The physical device lacks something that vkdispatch needs, or one of the named extensions or features.
    """
    context = Context.from_handles(instance, physical_device, device, queues, extensions, features, timeout)
    if make_current:
        context.make_current()
    return context


@contextlib.contextmanager
def use_context(context: Context) -> Iterator[Context]:
    """Make a context the current one of this thread inside a `with` block, instead of the global one.

    Buffers, graphs and other objects that are created in the block belong to it.

    Raises
    ------
    TypeError
        `context` is not a `Context`.
    RuntimeError
        It was closed, or its device was lost.

    Examples
    --------
    >>> with vd.use_context(vd.Context([0], [[0]])) as context:
    ...     total = float(vd.sum(vd.asbuffer(np.ones(4, np.float32))))
    ...     context.close()
    >>> total
    4.0
    """
    check_type("context", context, Context, "a vd.Context")
    context.require_usable()
    before, _thread.context = _thread.context, context
    try:
        yield context
    finally:
        _thread.context = before


def get_context() -> Context:
    """Return the current context: the one that `use_context` set for this thread, else the global one.

    The global context is created with the defaults of `make_context` if there is none. If its device was
    lost, a new one with the same settings replaces it.

    Raises
    ------
    RuntimeError
        The context of this thread was closed or its device was lost; or the device of the global context was
        lost and belongs to another library.

    Examples
    --------
    >>> context = vd.get_context()
    >>> context.closed
    False
    """
    context = _thread.context
    if context is not None:
        if not context.usable:
            context.require_usable()
        return context
    context = Context._global
    if context is not None and context.usable:
        return context
    return make_context()


def find_current_context() -> Context | None:
    """Return the current context, usable or not; None if there is none."""
    return _thread.context or Context._global


def is_current(context: Context) -> bool:
    """Whether this is the current context. Makes none."""
    return context is (_thread.context or Context._global)


def is_context_initialized() -> bool:
    """Whether there is a current context.

    Examples
    --------
    >>> context = vd.get_context()
    >>> vd.is_context_initialized()
    True
    """
    return Context._global is not None or _thread.context is not None


def get_context_handle() -> int:
    """Return a number that identifies the current context.

    Examples
    --------
    >>> context = vd.get_context()
    >>> vd.get_context_handle() > 0
    True
    """
    return get_context()._handle


def get_context_on(device: int) -> Context | None:
    """Return the current context if it runs on this device alone, else None. Makes one if there is none.

    Raises
    ------
    ValueError, UnsupportedError
        As `make_context`.
    """
    # Callers that name a device have SPIR-V. Kernels in Python start the compiler themselves.
    context = get_context() if is_context_initialized() else make_context(device, compiles=False)
    return context if context.device_ids == [device] else None


def new_context(
    device: int, queue_families: Sequence[int] | None = None, extensions: Sequence[str] = ()
) -> Context:
    """Return a new context that is not the global one. The caller has to close it.

    Raises
    ------
    ValueError, UnsupportedError
        As `make_context`.
    """
    initialize()
    devices = selection.parse_devices(device)
    selection.refuse_unusable(devices)
    families = selection.choose_families(
        devices, None, None if queue_families is None else [queue_families], False
    )
    return Context(devices, families, extensions)


def queue_wait_idle(queue_index: int | None = None, context: Context | None = None) -> None:
    """Wait until a queue, or with None every queue, has finished all submitted work.

    Raises
    ------
    ValueError
        `queue_index` is not a queue of the context.

    Examples
    --------
    >>> total = vd.sum(vd.asbuffer(np.ones(4, np.float32)))
    >>> vd.queue_wait_idle()
    """
    context = context or get_context()
    queue = -1 if queue_index is None else parse_queue(queue_index, context, "queue_index")
    if context._engine is None:
        return
    if process.has_new_kernels:
        with process.show_first_run():
            context._engine.wait_idle(queue)
    else:
        context._engine.wait_idle(queue)


def destroy_context() -> None:
    """Destroy the global context and all its objects. The next use makes a new one."""
    with GLOBAL_LOCK:
        context = Context._global
        if context is not None:
            context._require_unused()
        Context._global = None
    if context is not None:
        context.close()


def stop_threads() -> None:
    """Finish all work and stop the queue threads; the same as `destroy_context`."""
    destroy_context()


def _end_at_exit() -> None:
    context = Context._global
    if context is not None:
        context._end()


# Objects that are still alive at exit are destroyed before the library of the driver is unloaded.
atexit.register(_end_at_exit)


# ---- The limits of the dummy backend's context, which tests set to trace kernels for other devices -------


def set_dummy_context_params(
    subgroup_size: int | None = None,
    subgroup_enabled: bool | None = None,
    max_workgroup_size: tuple[int, int, int] | None = None,
    max_workgroup_invocations: int | None = None,
    max_workgroup_count: tuple[int, int, int] | None = None,
    max_shared_memory: int | None = None,
) -> None:
    """Change limits of the dummy backend's context, which is created if there is none. None keeps a limit.

    Parameters
    ----------
    subgroup_size
        Invocations in a subgroup.
    subgroup_enabled
        Whether kernels can use subgroup operations.
    max_workgroup_size
        Maximum invocations of a workgroup along x, y and z.
    max_workgroup_invocations
        Maximum invocations of a workgroup.
    max_workgroup_count
        Maximum workgroups of a launch along x, y and z.
    max_shared_memory
        Maximum bytes of shared memory of a workgroup.

    Raises
    ------
    RuntimeError
        The backend is not the dummy one.
    ValueError
        A limit is not a positive int, three positive ints, or True or False.
    """
    if not is_dummy():
        raise UsageError(
            f"set_dummy_context_params: the backend is {get_backend()!r}; "
            "call vd.initialize(backend='dummy') first"
        )
    if subgroup_enabled is not None and not isinstance(subgroup_enabled, bool):
        raise ArgumentValueError(f"subgroup_enabled: expected True or False, got {subgroup_enabled!r}")
    numbers = {
        "subgroup_size": subgroup_size,
        "max_workgroup_invocations": max_workgroup_invocations,
        "max_shared_memory": max_shared_memory,
    }
    triples = {"max_workgroup_size": max_workgroup_size, "max_workgroup_count": max_workgroup_count}
    limits: dict[str, Any] = {
        **{name: parse_positive(name, value) for name, value in numbers.items() if value is not None},
        **{name: _parse_triple(name, value) for name, value in triples.items() if value is not None},
    }
    # All arguments are valid: only now the context changes.
    context = get_context()
    context.uniform_buffer_alignment = 0
    if subgroup_enabled is not None:
        context.subgroup_enabled = context.subgroup_arithmetic = subgroup_enabled
    for name, limit in limits.items():
        setattr(context, name, limit)


def _parse_triple(argument: str, value: object) -> tuple[int, int, int]:
    numbers = [as_int(item) for item in value] if isinstance(value, (tuple, list)) else []
    match numbers:
        case [int(x), int(y), int(z)] if min(x, y, z) >= 1:
            return (x, y, z)
    raise ArgumentValueError(f"{argument}: expected three positive ints, got {value!r}")
