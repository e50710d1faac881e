"""The Manager, which makes all other objects of Kompute, and the devices that it takes."""

import contextlib
import weakref
from _thread import allocate_lock
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from vkdispatch.base import context as contexts
from vkdispatch.base.context import Context
from vkdispatch.base.devices import DeviceInfo
from vkdispatch.base.errors import ArgumentTypeError, VkDispatchError
from vkdispatch.base.init import get_devices
from vkdispatch.kompute import enums, log, memory
from vkdispatch.kompute.enums import KomputeError, MemoryTypes, parse_index, parse_indices, parse_names

if TYPE_CHECKING:
    from vkdispatch.kompute.algorithm import Algorithm
    from vkdispatch.kompute.memory import Image
    from vkdispatch.kompute.operations import OpBase
    from vkdispatch.kompute.sequences import Sequence

# ---- Devices: their list, their properties, and contexts on them that Managers share ---------------------


_COMPUTE = 0x2  # VkQueueFlagBits
_MAX_QUEUES = 64

# Contexts that Managers share on devices on which `vd.get_context()` is not: how many Managers use each.
_users: Counter[Context] = Counter()
_lock = allocate_lock()


def list_devices() -> list[DeviceInfo]:
    """Return all devices in Vulkan's order. Raises RuntimeError if there is no driver."""
    return sorted(get_devices(), key=lambda info: info.dev_index)


def choose_context(index: int, families: list[int], extensions: list[str]) -> tuple[Context, bool]:
    """Return a context on a device, and whether the caller must release it."""
    devices = list_devices()
    if index >= len(devices):
        raise KomputeError(f"device: expected 0 to {len(devices) - 1}, got {index}")
    info = devices[index]
    for family in families:
        if family >= len(info.queue_properties) or not info.queue_properties[family][1] & _COMPUTE:
            raise KomputeError(
                f"family_queue_indices: {info.device_name} has no queue family {family} that can compute"
            )
    if len(families) > _MAX_QUEUES:
        raise KomputeError(
            f"family_queue_indices: expected {_MAX_QUEUES} queues or less, got {len(families)}"
        )
    missing = [name for name in extensions if name not in info.extensions]
    if missing:
        log.error("desired_extensions: %s has no %s", info.device_name, ", ".join(missing))
    extensions = [name for name in extensions if name in info.extensions]
    try:
        if families or extensions:
            return contexts.new_context(info.sorted_index, families or None, extensions), True
        current = contexts.get_context_on(info.sorted_index)
        return (_share_context(info.sorted_index), True) if current is None else (current, False)
    except VkDispatchError as error:
        raise KomputeError(f"device: {error}") from error


def _share_context(device: int) -> Context:
    """Return the context that Managers on a device share, for another one of them."""
    with _lock:
        shared = (context for context in _users if context.device_ids == [device] and context.usable)
        context = next(shared, None) or contexts.new_context(device)
        _users[context] += 1
        return context


def release_context(context: Context) -> None:
    """Close a context that `choose_context` made, unless other Managers use it."""
    with _lock:
        _users[context] -= 1
        is_last = _users[context] <= 0
        if is_last:
            del _users[context]
    if is_last:
        context.close()


def describe_device(info: DeviceInfo) -> dict[str, Any]:
    """Return the properties of a device that Kompute reports."""
    return {
        "device_name": info.device_name,
        "max_work_group_count": info.max_workgroup_count,
        "max_work_group_invocations": info.max_workgroup_invocations,
        "max_work_group_size": info.max_workgroup_size,
        "timestamps_supported": bool(info.timestamp_period),
    }


# ---- The objects of a Manager ----------------------------------------------------------------------------


class Resources:
    """The objects of a Manager, separate from it so that its finalizer can free them.

    Attributes
    ----------
    objects
        Sequences, algorithms, tensors and images.
    named_sequences
        Sequences by name, as in Kompute 0.5 and 0.6.
    """

    def __init__(self, context: Context, owns_context: bool) -> None:
        self.context = context
        self.owns_context = owns_context
        self.objects: weakref.WeakSet[Any] = weakref.WeakSet()
        self.named_sequences: dict[str, Sequence] = {}

    def free(self) -> None:
        """Destroy sequences, algorithms, memory, and then the context if no other Manager uses it."""
        objects = sorted(self.objects, key=_find_rank)
        log.debug("manager destroyed: number of its objects %d", len(objects))
        self.objects = weakref.WeakSet()
        self.named_sequences = {}
        with contextlib.ExitStack() as stack:  # destroys all of them even if one raises
            if self.owns_context:
                stack.callback(release_context, self.context)
            for instance in reversed(objects):
                stack.callback(instance.destroy)


_ORDER = ("Sequence", "Algorithm", "Tensor", "Image")


def _find_rank(instance: object) -> int:
    """Return the position in the order of destruction, by class name: not every class is imported."""
    return next(_ORDER.index(kind.__name__) for kind in type(instance).__mro__ if kind.__name__ in _ORDER)


# ---- The methods of a Manager in Kompute 0.5 and 0.6 -----------------------------------------------------


_DEVICE_TYPE = MemoryTypes.device


class _Evaluation:
    """A method `eval[_async]_<operation>[_def]` of a Manager.

    Parameters
    ----------
    function
        The function of `operations.named` that makes the operation.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._is_named = self._waits = True

    def __set_name__(self, owner: type, name: str) -> None:
        """Derive from the name whether the method takes a sequence's name, and whether it waits."""
        self._is_named = not name.endswith("_def")
        self._waits = not name.startswith("eval_async_")

    def __get__(self, manager: Any, owner: Any = None) -> "Callable[..., None]":
        """Return the method. It takes the operation's arguments, and second a sequence's name if named."""

        def evaluate(tensors: Any, *arguments: Any, **options: Any) -> None:
            from vkdispatch.kompute import operations

            name = None
            if self._is_named:
                name, *arguments = arguments or (None,)  # type: ignore[assignment]
                if not isinstance(name, str):
                    raise ArgumentTypeError(
                        f"sequenceName: expected the name of a sequence as second argument, got {name!r}"
                    )
            resources = manager._require_alive()
            place = operations.Owner(manager._require_context(), resources.objects)
            op = getattr(operations, self._function)(place, tensors, *arguments, **options)
            manager._evaluate(name, op, waits=self._waits)

        return evaluate


class LegacyManager:
    """The methods that evaluate operations in named sequences.

    `eval_<operation>` takes the name of a sequence as its second argument, behind the tensors, and runs the
    operation there. `eval_<operation>_def` runs it in a sequence without a name. `eval_async_<operation>`
    does not wait; `eval_await(name)` and `eval_await_def()` do.
    """

    __slots__ = ()

    _require_alive: "Callable[[], Resources]"
    _make_sequence: "Callable[..., Sequence]"

    eval_tensor_create = _Evaluation("make_tensor_create")
    eval_tensor_create_def = _Evaluation("make_tensor_create")
    eval_async_tensor_create = _Evaluation("make_tensor_create")
    eval_async_tensor_create_def = _Evaluation("make_tensor_create")
    eval_tensor_sync_device = _Evaluation("make_sync_device")
    eval_tensor_sync_device_def = _Evaluation("make_sync_device")
    eval_async_tensor_sync_device = _Evaluation("make_sync_device")
    eval_async_tensor_sync_device_def = _Evaluation("make_sync_device")
    eval_tensor_sync_local = _Evaluation("make_sync_local")
    eval_tensor_sync_local_def = _Evaluation("make_sync_local")
    eval_async_tensor_sync_local = _Evaluation("make_sync_local")
    eval_async_tensor_sync_local_def = _Evaluation("make_sync_local")
    eval_tensor_copy = _Evaluation("make_copy")
    eval_tensor_copy_def = _Evaluation("make_copy")
    eval_async_tensor_copy = _Evaluation("make_copy")
    eval_async_tensor_copy_def = _Evaluation("make_copy")
    eval_algo_data = _Evaluation("make_algo_data")
    eval_algo_data_def = _Evaluation("make_algo_data")
    eval_async_algo_data = _Evaluation("make_algo_data")
    eval_async_algo_data_def = _Evaluation("make_algo_data")
    eval_algo_str = _Evaluation("make_algo_data")
    eval_algo_str_def = _Evaluation("make_algo_data")
    eval_async_algo_str = _Evaluation("make_algo_data")
    eval_async_algo_str_def = _Evaluation("make_algo_data")
    eval_algo_file = _Evaluation("make_algo_file")
    eval_algo_file_def = _Evaluation("make_algo_file")
    eval_async_algo_file = _Evaluation("make_algo_file")
    eval_async_algo_file_def = _Evaluation("make_algo_file")
    eval_algo_mult = _Evaluation("make_algo_mult")
    eval_algo_mult_def = _Evaluation("make_algo_mult")
    eval_async_algo_mult = _Evaluation("make_algo_mult")
    eval_async_algo_mult_def = _Evaluation("make_algo_mult")
    eval_algo_lro = _Evaluation("make_algo_lro")
    eval_algo_lro_def = _Evaluation("make_algo_lro")
    eval_async_algo_lro = _Evaluation("make_algo_lro")
    eval_async_algo_lro_def = _Evaluation("make_algo_lro")

    def build_tensor(self, data: Any, tensorType: MemoryTypes = _DEVICE_TYPE) -> memory.ListTensor:  # noqa: N803
        """Make a `kp.Tensor(data)` with device memory. Raises the errors of `kp.Tensor`."""
        tensor = memory.ListTensor(data, memory.parse_memory_type(tensorType, "tensorType"))
        self.eval_tensor_create_def([tensor])
        return tensor

    def create_sequence(self, name: str = "", queueIndex: int = 0) -> "Sequence":  # noqa: N803
        """Make a sequence, and register it by name if the name is new and not empty.

        Raises
        ------
        TypeError, RuntimeError
            `name` is not a string, or as `sequence`.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"name: expected text, got {name!r}")
        sequence = self._make_named_sequence(queueIndex)
        if name:
            self._require_alive().named_sequences.setdefault(name, sequence)
        return sequence

    def get_create_sequence(self, name: str) -> "Sequence":
        """Return the sequence of a name; make it if it does not exist. Raises as `create_sequence`."""
        return self._require_alive().named_sequences.get(name) or self.create_sequence(name)

    def _make_named_sequence(self, queue_index: int = 0) -> "Sequence":
        """Make a sequence of the generation in use."""
        if not enums.is_before_0_7():
            return self._make_sequence(queue_index, 0)
        from vkdispatch.kompute.sequences import LegacySequence

        return self._make_sequence(queue_index, 0, LegacySequence)

    def eval_await(self, sequenceName: str, waitFor: int | None = None) -> None:  # noqa: N803
        """Wait for a named sequence, if it is running, for at most `waitFor` nanoseconds.

        Raises RuntimeError if it does not exist.
        """
        sequence = self._require_alive().named_sequences.get(sequenceName)
        if sequence is None:
            raise KomputeError(f"sequenceName: there is no sequence {sequenceName!r}")
        if sequence.is_running():
            sequence.eval_await(waitFor)

    def eval_await_def(self, waitFor: int | None = None) -> None:  # noqa: N803
        """Wait for the last `eval_async_..._def`, if it is running.

        Raises RuntimeError if there was no `eval_..._def`.
        """
        self.eval_await("", waitFor)

    def _evaluate(self, name: str | None, op: "OpBase", *, waits: bool) -> None:
        """Run an operation in a named sequence, or with None in a new one.

        `eval_await_def` waits for the new sequence, which is kept unless the operation raises an error.
        """
        sequences = self._require_alive().named_sequences
        sequence = (None if name is None else sequences.get(name)) or self._make_named_sequence()
        if waits:
            sequence.eval(op)
        else:
            sequence.eval_async(op)
        if name is None and waits:
            sequences.setdefault("", sequence)  # an earlier sequence may still be running
        else:
            sequences[name or ""] = sequence


_T = TypeVar("_T")


class Manager(LegacyManager):
    """Makes tensors, images, algorithms and sequences on a device, and destroys them when it is destroyed.

    Managers of the same device with default queues share a context, which is `vd.get_context()` if that is on
    the same device. Their tensors can be used together, and by native kernels.
    """

    __slots__ = ("__weakref__", "_finalizer", "_resources")

    def __init__(
        self,
        device: int = 0,
        family_queue_indices: Iterable[int] = (),
        desired_extensions: Iterable[str] = (),
        *,
        context: Context | None = None,
    ) -> None:
        """Open a device.

        Parameters
        ----------
        device
            Index of the device in `list_devices`.
        family_queue_indices
            The queue family of each queue; positions in this list are the `queue_index` of `sequence`. Empty:
            one queue of the first family that supports compute.
        desired_extensions
            Names of device extensions. Extensions that the device lacks are logged as errors and ignored.
        context
            A vkdispatch context to use, with its devices and queues. The Manager does not close it.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            The device, the queue family or a Vulkan driver does not exist.
        """
        index = parse_index("device", device)
        families = parse_indices("family_queue_indices", family_queue_indices)
        extensions = parse_names("desired_extensions", desired_extensions)
        owns_context = False
        if context is None:
            context, owns_context = choose_context(index, families, extensions)
        elif not isinstance(context, Context):
            raise ArgumentTypeError(f"context: expected a context such as vd.get_context(), got {context!r}")
        elif context.closed or not context.runs:
            raise KomputeError("context: it was closed, or is the dummy backend's")
        else:
            context.require_usable()
        self._resources: Resources | None = Resources(context, owns_context)
        self._finalizer = weakref.finalize(self, self._resources.free)
        log.info("using device %d: %s", index, context.device_infos[0].device_name)
        kind = "its own" if owns_context else "a shared"
        log.debug("manager made: number of queues %d, %s context", context.queue_count, kind)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Raise TypeError: a Manager cannot be pickled or copied."""
        raise ArgumentTypeError("kp.Manager cannot be pickled or copied: it belongs to a device")

    # -- memory

    def tensor(
        self, data: Any, memory_type: MemoryTypes = _DEVICE_TYPE, *, tensor_type: MemoryTypes | None = None
    ) -> memory.Tensor:
        """Make a tensor of float32.

        Parameters
        ----------
        data
            Anything that NumPy converts to float32, flattened in C order; or a `vd.Buffer` of float32, whose
            memory the tensor shares.
        memory_type
            The type of memory. `tensor_type` is the older name of this argument.

        Raises
        ------
        TypeError
            `data` are not numbers, or `memory_type` is invalid.
        RuntimeError
            `data` is empty, or the device is out of memory.
        """
        kind = memory.parse_memory_type(memory_type if tensor_type is None else tensor_type)
        if _is_buffer(data):
            return self._register(self._make_tensor_on(data, kind, np.dtype(np.float32)))
        values = memory.parse_floats("data", data)
        return self._register(memory.make_tensor(self._require_context(), values, np.float32, kind))

    def tensor_t(
        self, data: Any, memory_type: MemoryTypes = _DEVICE_TYPE, *, tensor_type: MemoryTypes | None = None
    ) -> memory.Tensor:
        """Make a tensor of an array's dtype.

        Parameters
        ----------
        data
            An array of float32, float64, bool, or integers of 8 to 32 bits, flattened in C order; or a
            `vd.Buffer` of such elements, whose memory the tensor shares.
        memory_type
            The type of memory. `tensor_type` is the older name of this argument.

        Raises
        ------
        TypeError
            `data` is not an array, or `memory_type` is invalid.
        RuntimeError
            The dtype is another one, `data` is empty, or the device is out of memory.
        """
        kind = memory.parse_memory_type(memory_type if tensor_type is None else tensor_type)
        if _is_buffer(data):
            return self._register(self._make_tensor_on(data, kind, None))
        values = memory.parse_array("data", data, memory.TENSOR_TYPES)
        return self._register(memory.make_tensor(self._require_context(), values, values.dtype, kind))

    def empty_tensor(
        self, size: int, dtype: Any = np.float32, memory_type: MemoryTypes = _DEVICE_TYPE
    ) -> memory.Tensor:
        """Make a tensor of `size` elements, undefined on the device and zero in the host's view.

        Raises
        ------
        TypeError, RuntimeError
            As `tensor_t`.
        """
        count = parse_index("size", size)
        try:
            kind = np.dtype(dtype)
        except TypeError as error:
            raise ArgumentTypeError(
                f"dtype: expected one of {', '.join(memory.TENSOR_TYPES)}: {error}"
            ) from None
        if kind.name not in memory.TENSOR_TYPES or not kind.isnative:
            raise KomputeError(f"dtype: expected one of {', '.join(memory.TENSOR_TYPES)}, got {kind}")
        return self._register(
            memory.make_tensor(self._require_context(), count, kind, memory.parse_memory_type(memory_type))
        )

    def _make_tensor_on(self, buffer: Any, kind: MemoryTypes, dtype: "np.dtype[Any] | None") -> memory.Tensor:
        buffer.require_alive()
        if buffer.context is not self._require_context():
            raise KomputeError("data: the buffer belongs to another context than this Manager")
        if kind is not MemoryTypes.device:
            raise KomputeError(f"memory_type: a tensor on a vd.Buffer has the type device, not {kind.name}")
        name = {"bool_": "bool"}.get(buffer.var_type.name, buffer.var_type.name)
        if name not in memory.TENSOR_TYPES or (dtype is not None and name != dtype.name):
            expected = dtype.name if dtype is not None else ", ".join(memory.TENSOR_TYPES)
            raise KomputeError(f"data: expected a buffer of {expected}, got one of {buffer.var_type.name}")
        return memory.make_tensor_on(buffer, np.dtype(name))

    def image(
        self,
        data: Any,
        width: int,
        height: int,
        num_channels: int,
        memory_type: MemoryTypes = _DEVICE_TYPE,
        *,
        tensor_type: MemoryTypes | None = None,
    ) -> "Image":
        """Make a storage image of float32.

        Parameters
        ----------
        data
            Anything that NumPy converts to float32: rows of `width` texels of `num_channels` values. Values
            beyond the first `width * height * num_channels` are ignored.
        num_channels
            1, 2 or 4.
        memory_type
            The type of memory.

        Raises
        ------
        TypeError
            `data` are not numbers, or another argument has the wrong type.
        RuntimeError
            A size is 0, `data` has too few elements, or the device does not support such images.
        """
        kind = memory.parse_memory_type(memory_type if tensor_type is None else tensor_type)
        return self._make_image(memory.parse_floats("data", data), width, height, num_channels, kind)

    def image_t(
        self,
        data: Any,
        width: int,
        height: int,
        num_channels: int,
        memory_type: MemoryTypes = _DEVICE_TYPE,
        *,
        tensor_type: MemoryTypes | None = None,
    ) -> "Image":
        """Make a storage image of an array's dtype: float32, or integers of 8 to 32 bits. Else as `image`."""
        kind = memory.parse_memory_type(memory_type if tensor_type is None else tensor_type)
        values = memory.parse_array("data", data, memory.IMAGE_FORMATS)
        return self._make_image(values, width, height, num_channels, kind)

    def _make_image(self, data: Any, width: int, height: int, channels: int, kind: MemoryTypes) -> "Image":
        width, height = parse_index("width", width), parse_index("height", height)
        channels = parse_index("num_channels", channels)
        return self._register(memory.make_image(self._require_context(), data, width, height, channels, kind))

    # -- algorithms and sequences

    def algorithm(
        self,
        tensors: Any = (),
        spirv: Any = b"",
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
    ) -> "Algorithm":
        """Bind a kernel to memory.

        Parameters
        ----------
        tensors
            Tensors and images; number i is at binding i of descriptor set 0. A traced kernel's buffers get
            them in order.
        spirv
            A SPIR-V module with the entry point "main" as bytes, GLSL text, or a kernel of `vd.shader`.
        workgroup
            Workgroups along x, y and z. With x = 0: one for each element of the first memory object, or the
            size of a traced kernel that has one.
        spec_consts
            Specialization constants 0, 1, ...
        push_consts
            Push constants from byte 0 on, or the numbers of a traced kernel, in order. Their size in bytes is
            fixed; further constants that the code declares are zero.

            Arrays of float32, int32 and uint32 keep their dtype. Other numbers become float32, or the type of
            all of the code's push constants if that is another one.

        Returns
        -------
        The algorithm. Without tensors or code it is empty, for OpMult or `rebuild`.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            The code is invalid, or does not match the memory, the constants or the device.
        """
        from vkdispatch.kompute.algorithm import make_algorithm

        return self._register(
            make_algorithm(self._require_context(), tensors, spirv, workgroup, spec_consts, push_consts)
        )

    def sequence(self, queue_index: int = 0, total_timestamps: int = 0) -> "Sequence":
        """Make an empty sequence.

        Parameters
        ----------
        queue_index
            The queue of the Manager that the sequence runs on.
        total_timestamps
            The largest number of operations that it can time.

        Raises
        ------
        TypeError
            An argument is not an int of 0 or more.
        RuntimeError
            The queue does not exist, or the device does not support timestamps.
        """
        return self._make_sequence(queue_index, total_timestamps)

    def _make_sequence(
        self, queue_index: int, total_timestamps: int, kind: "type[Sequence] | None" = None
    ) -> "Sequence":
        context = self._require_context()
        queue = parse_index("queue_index", queue_index)
        count = parse_index("total_timestamps", total_timestamps)
        if queue >= context.queue_count:
            raise KomputeError(f"queue_index: expected 0 to {context.queue_count - 1}, got {queue}")
        if count and not all(info.timestamp_period for info in context.device_infos):
            raise KomputeError("total_timestamps: this device has no timestamps")
        from vkdispatch.kompute.sequences import make_sequence

        objects = self._require_alive().objects
        sequence = make_sequence(context, queue, count, objects, kind)
        objects.add(sequence)
        return sequence

    # -- devices

    def list_devices(self) -> list[dict[str, Any]]:
        """Return the properties of each device of the machine, as `get_device_properties`."""
        self._require_alive()
        return [describe_device(info) for info in list_devices()]

    def get_device_properties(self) -> dict[str, Any]:
        """Return the name and limits of the device.

        The keys are device_name, max_work_group_count, max_work_group_invocations, max_work_group_size and
        timestamps_supported.

        Raises
        ------
        RuntimeError
            The Manager was destroyed.
        """
        return describe_device(self._require_context().device_infos[0])

    @property
    def context(self) -> Context:
        """The context of the Manager."""
        return self._require_context()

    @property
    def timestamp_period(self) -> float:
        """Nanoseconds per tick of `kp.Sequence.get_timestamps`; 0 without support for timestamps."""
        return self._require_context().device_infos[0].timestamp_period

    # -- destruction

    def clear(self) -> None:
        """Drop unused objects. This happens automatically, too."""
        self._require_alive()

    def destroy(self) -> None:
        """Destroy all sequences, algorithms and memory of this Manager. Idempotent."""
        if hasattr(self, "_finalizer"):
            self._resources = None
            self._finalizer()

    def _require_alive(self) -> Resources:
        # The attribute is missing if a derived class did not call super().__init__().
        resources: Resources | None = getattr(self, "_resources", None)
        if resources is None:
            raise KomputeError("this kp.Manager was destroyed, or never initialized; make a new one")
        return resources

    def _require_context(self) -> Context:
        context = self._require_alive().context
        if not context.usable:
            if context.closed:
                raise KomputeError("the context of this kp.Manager was closed; make a new one")
            context.require_usable()
        return context

    def _register(self, instance: _T) -> _T:
        self._require_alive().objects.add(instance)
        return instance


def _is_buffer(data: object) -> bool:
    """Whether an object is a `vd.Buffer`, without importing that class."""
    return any(kind.__module__ == "vkdispatch.base.buffer" for kind in type(data).__mro__)
