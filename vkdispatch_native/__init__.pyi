"""Types of the native extension module: the engine's interface for the Python layers.

Every call that may wait releases the GIL. It ends within 0.2 s if a signal handler raises an exception, such
as KeyboardInterrupt. Errors are raised as the exception classes passed to `set_error_types`.

A batch that cannot run fails, and the data it should have written are poisoned. Reading them, or running
commands that read them, raises the error of the batch until all of the data have been overwritten: by
`write`, by a copy of the whole, or by a dispatch after `announce`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from typing_extensions import Buffer as ReadableBuffer

def set_error_types(
    vulkan: type[Exception],
    device_lost: type[Exception],
    out_of_memory: type[Exception],
    invalid_value: type[Exception],
    device_timeout: type[Exception],
    misuse: type[Exception],
) -> None:
    """Set the classes of errors. `misuse`: what is used was destroyed or closed."""

def initialize(debug: bool) -> None:
    """Load Vulkan and create the instance.

    Raises the Vulkan error class if there is no loader or driver.
    """

def is_initialized() -> bool: ...
def validation_enabled() -> bool:
    """Whether the Khronos validation layer is active (requested by `debug`, and installed)."""

def take_messages() -> list[tuple[int, str]]:
    """Return and clear the messages of the validation layer and the hazard checker: (severity, text).

    Severities are those of `VkDebugUtilsMessageSeverityFlagBitsEXT`: 0x100 warning, 0x1000 error.
    """

def take_number() -> int:
    """Return a number that is unique in this process."""

def allocation_count() -> int | None:
    """Return how many allocations the module has made; None in sanitized builds, which do not count them.

    All of C++ counts; Python objects and the driver's memory do not.
    """

def device_properties() -> list[dict[str, Any]]:
    """Return one dictionary per physical device, with the attribute names of `DeviceInfo` as keys.

    The additional key `missing` lists the engine's requirements that the device does not meet, as text.
    """

def foreign_properties(instance: int, physical_device: int) -> dict[str, Any]:
    """Return the properties of a physical device of a foreign instance, as in `device_properties`.

    Raises ValueError if one of the handles is found to be invalid.
    """

def known_features() -> list[tuple[str, bool, str | None]]:
    """Return the Vulkan features that the engine and kernels use.

    Each entry is Vulkan's name, whether the engine requires the feature, and the extension that defines it,
    if any.
    """

def compile_glsl(
    source: str,
    path: str = "",
    vulkan_minor: int = 2,
    preamble: str = "",
    includes: Sequence[tuple[str, str, bool, str]] = (),
    texts: Mapping[str, str] = ...,
    debug: bool = False,
) -> bytes:
    """Compile a GLSL compute shader to SPIR-V. Raises ValueError with the compiler's complete log.

    path
        Path of the source file. Messages name it, and included files are searched for beside it.
    vulkan_minor
        The SPIR-V version is that of Vulkan 1.0 to 1.3. Source that uses GL_NV_cooperative_matrix2 is
        compiled for 1.3.
    preamble
        Inserted after `#version`; it does not count in line numbers.
    includes
        What each `#include` refers to, in place of the file system: the name of the including file ("" for
        the source), the name in the directive, whether that name is quoted, and the key in `texts` of the
        included text, or else the reason why there is none. With neither `path` nor `includes`, nothing can
        be included.
    debug
        Whether the module has the names and lines of the source.

    An interrupt ends the wait; the compiler then finishes on its own thread.
    """

def disassemble_spirv(spirv: bytes) -> str:
    """Return a module as text, with names where it has them. Raises ValueError if it is malformed."""

def find_spirv_error(spirv: bytes) -> str | None:
    """Return the rule of SPIR-V or Vulkan 1.3 that a module breaks, as SPIRV-Tools says it; None if valid.

    Raises ValueError if the module has more than 16 MiB, or if the answer takes more than a minute. An
    interrupt ends the wait, too. The validator then finishes on its own thread.
    """

def compiler_identity() -> str:
    """Return what determines the SPIR-V besides the source: the compiler's version and how it is used."""

def compile_count() -> int:
    """Return the number of GLSL compilations in this process."""

def prepare_compiler() -> None:
    """Build the compiler's built-in tables, most of the time of its first call, on a thread; once.

    Before it exits or forks, the process waits for that thread, and up to a second for other compilations.
    """

def plan_fft(
    device: tuple[int, int, int, tuple[int, int, int], tuple[int, int, int]],
    axes: Sequence[tuple[int, bool, tuple[int, int] | None, int]],
    options: Mapping[str, int],
    run: Callable[
        [
            tuple[tuple[str, int, int], ...],
            tuple[tuple[int, bytes], ...],
            tuple[tuple[int, tuple[int, ...], bytes, tuple[int, int, int]], ...],
        ],
        Sequence[bytes],
    ],
) -> tuple[
    tuple[tuple[str, int, int], ...],
    tuple[tuple[int, bytes], ...],
    tuple[tuple[int, tuple[int, ...], bytes, tuple[int, int, int]], ...],
    tuple[tuple[int, tuple[int, ...], bytes, tuple[int, int, int]], ...],
]:
    """Plan a transform with VkFFT. Uses no device, and releases the GIL meanwhile.

    Parameters
    ----------
    device
        Vendor id, and the limits: invocations per workgroup, bytes of shared memory per workgroup, workgroups
        along each axis, workgroup size along each axis.
    axes
        1 to 4, the contiguous one first: size, whether it is omitted, range of zeros if any, and for a
        separate input the stride of the next axis in elements (0: as in the buffer).
    options
        batches, precision (0 float16, 1 float32, 2 float64), real, normalize, forward, inverse (which passes
        to create), pad_frequency, conjugate, features; buffer_size, input_size (0: in place), kernel_size
        (0: no convolution) in bytes.
    run
        Takes kernels, buffers and passes, runs the passes, and returns the resulting contents of the buffers.
        VkFFT computes some of its tables by transforms.

    Returns
    -------
    Kernels (GLSL, number of bindings, bytes of push constants); buffers from number 3 on (size, contents or
    b"" for scratch memory); forward passes; inverse passes (kernel, buffer at each binding, push constants,
    workgroups). Buffers 0, 1 and 2 are the caller's buffer, input and kernel.

    Raises ValueError with VkFFT's error name if it cannot create the plan, and whatever `run` raises.
    """

def vkfft_version() -> tuple[int, int, int]:
    """Return the version of VkFFT."""

class Engine:
    """Logical devices with one worker thread for each queue."""

    def __init__(
        self,
        device_indices: Sequence[int],
        queue_families: Sequence[Sequence[int]],
        debug: bool,
        force_staging: bool,
        extensions: Sequence[str] = (),
        timeout_ns: int = 0,
    ) -> None:
        """Create an engine. `extensions` are enabled on each device, besides those that the engine uses.

        A batch that runs for longer than `timeout_ns` (0: no limit) ends the engine: `abandoned` becomes
        true, and every call raises the timeout class.

        Raises the Vulkan error class if a device lacks an extension.
        """

    @staticmethod
    def on_handles(
        instance: int,
        physical_device: int,
        device: int,
        queues: Sequence[tuple[int, int, int]],
        extensions: Sequence[str],
        features: Sequence[str],
        debug: bool,
        force_staging: bool,
        timeout_ns: int = 0,
    ) -> Engine:
        """Return an engine on a foreign device, which it never destroys.

        Queues are (family, index, handle); a handle of 0 selects the queue with that index. Extensions and
        features are those enabled when the device was created. Raises ValueError if a handle is found to be
        invalid.
        """

    @property
    def handles(
        self,
    ) -> tuple[
        int, list[tuple[int, int, list[tuple[int, int | None, int]], list[list[tuple[int, int | None, int]]]]]
    ]:
        """VkInstance, and for each device: VkPhysicalDevice, VkDevice, queues, transfer queues by queue.

        A queue is family, index (None: unknown), VkQueue.
        """

    @property
    def device_properties(self) -> list[dict[str, Any]]:
        """As the function, for the engine's devices: features and extensions are the enabled ones."""

    @property
    def queue_count(self) -> int: ...
    @property
    def host_mapped(self) -> bool:
        """Whether the memory of buffers is memory of the host, on all devices."""

    @property
    def imports_host_memory(self) -> bool:
        """Whether `Buffer.over_host` is possible for memory that begins anywhere in a page."""

    @property
    def binding_alignment(self) -> int:
        """Of the first byte that a buffer binds."""

    @property
    def max_storage_range(self) -> int:
        """The largest buffer, in bytes, that a kernel can use on every device of the engine."""

    def image_features(self, format: int) -> int:
        """Return the VkFormatFeatureFlags (optimal tiling) that all devices support for a VkFormat.

        Raises ValueError for formats that images do not support.
        """

    @property
    def lost(self) -> bool:
        """Whether a device was lost or the engine was abandoned; the engine no longer works."""

    @property
    def abandoned(self) -> bool:
        """Whether the device may hang: what it uses is never destroyed."""

    @property
    def failures(self) -> int:
        """The number of failed batches."""

    def wait_idle(self, queue: int = -1) -> None: ...
    @property
    def transfer_queues(self) -> int:
        """The number of transfer queues, which copy to and from pinned memory beside the context's queues.

        Each queue of the context may have one for both directions, or one for each. The slot of a queue is
        its index `q`. Of `n` queues, the slot of the transfer queue of queue `q` is `n + q`, and that of a
        separate one for copies to the host is `2 * n + q`.
        """

    @property
    def exports(self) -> bool:
        """Whether another API of the process can import the memory and the timelines of the first device."""

    def take_freed_blocks(self) -> list[int]:
        """Return the numbers of blocks of memory freed since the last call; see `Buffer.block`."""

    def export_timeline(self, slot: int) -> int:
        """Return a file descriptor of a queue's timeline, which the caller owns; -1: it has none."""

    def export_incoming(self, number: int) -> int:
        """Return a file descriptor of a timeline semaphore that another API signals; -1: there are none.

        The caller owns it. Each number has a semaphore of its own.
        """

    def submit_all(self, queue: int) -> list[tuple[int, int]]:
        """Submit all work of a queue and its transfer queues.

        Return each one's slot and the value that its timeline has when the work is done.
        """

    def wait_for_incoming(self, queue: int, number: int, value: int) -> None:
        """Let later work of a queue and its transfer queues wait for a value of an incoming timeline."""

    def work_points(self, queue: int = -1) -> list[tuple[int, int]]:
        """Return points, (slot, number of a batch), for all work and transfers of a queue (-1: all)."""

    def wait_until(
        self,
        points: Sequence[tuple[int, int]],
        timeout: float | None,
        alone: bool = False,
        tells: bool = True,
    ) -> bool:
        """Wait at most `timeout` seconds until queues have reached the points. Return whether they have.

        Raises the first unresolved failure up to the points or, with `alone`, one of these very batches. With
        `tells` and a timeout other than 0, it also raises errors that kernels have recorded.
        """

    def open_journal(self, on_found: Callable[[Engine, int, int], None]) -> Buffer:
        """Create the buffer in which kernels record errors, once; see objects/journal.hpp.

        A call that waits calls `on_found(engine, queue, value)` if there are unread notes. All work of the
        queue up to batch `value` is finished then.
        """

    def take_ticket(self, note: object) -> int:
        """Return a ticket for the next call, and keep its note. Return 0 if tickets must be renewed first."""

    def stale_tickets(self) -> int:
        """Return the half of the tickets (0 or 1) that must be renewed, -1 for none.

        Waits until all work that uses these tickets is finished.
        """

    def renew_tickets(self, half: int) -> None:
        """Clear what was recorded for a half of the tickets, so that they can be used again."""

    def journal(self, queue: int) -> tuple[bool, bytes]:
        """Return whether no appended work can add to a queue's journal, and the journal."""

    def note_of(self, ticket: int, queue: int) -> tuple[Any, dict[int, int]]:
        """Return the note of a ticket, and for each slot the first batch that its work may be in.

        Slots are those of the queue and of its transfer queues.
        """

    def mark_notes_read(self, queue: int, notes: int) -> None:
        """Record that this many notes of a queue were read."""

    def clear_standing_ticket(self, queue: int, ticket: int) -> None:
        """Clear a ticket that belongs to a kernel, so that the kernel can note another error."""

    def set_pending_errors(self, waiting: bool) -> None:
        """Set whether `on_found` is called even if there are no new notes."""

    def follow(self, points: Sequence[tuple[int, int]], queue: int = -1) -> None:
        """Make later work of a queue (-1: all queues) wait for points, on the device."""

    def last_value(self, queue: int) -> int:
        """Return the number of a queue's last batch."""

    def flush(self, queue: int, value: int) -> None:
        """Submit a queue's batches up to this number."""

    def wait_for(self, queue: int, value: int, block: bool) -> bool:
        """Submit a queue's batches up to this number. Return whether they finished; wait if `block`."""

    def close(self) -> None:
        """Finish all work, stop the threads, and destroy every remaining object. Idempotent.

        An interrupt ends the wait; the engine is then abandoned.
        """

    def describe_work(self, queue: int = -1) -> str:
        """Describe the unfinished work of a queue (-1: all queues); "" if there is none.

        For example "queue 0: not finished: 3 launches of 'scale' (heat.py:12), a copy of 4096 bytes".
        """

    def statistics(self) -> dict[str, int]:
        """Return counters since creation, by name.

        commands, submits, barriers, live_objects, waiting_frees, device_memory (bytes), pinned_blocks,
        allocations (of buffers and images), idle_memory (bytes of dropped buffers that are kept for reuse;
        they are not part of device_memory), and of the heaps that are the devices' own: heap_memory (bytes),
        memory_budget (bytes that this process may use; an estimate where the device lacks
        VK_EXT_memory_budget) and memory_usage (bytes that it uses).
        """

    def set_barriers_enabled(self, enabled: bool) -> None:
        """Disable barriers, to show that the hazard checker notices. For tests."""

class HostBlock:
    """Pinned host memory for the device of a queue. Arrays that are views of it may outlive the engine.

    kind: "upload" is cached host memory, for copies to and from the device. "host" is host memory that
    kernels use, and "device_host" is device memory that the host can access; both are for `Buffer.over`.
    Raises the out-of-memory class if the device has no such memory, or no more of it.
    """

    def __init__(self, engine: Engine, queue: int, size: int, kind: str = "upload") -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class HostPages:
    """Ordinary memory for a large array, in huge pages. It is reused for a later array of the same size.

    Raises MemoryError if the system is out of memory.
    """

    def __init__(self, size: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def spare_pages() -> int:
    """Return the bytes of released `HostPages` that are kept for reuse. Closing an engine frees them."""

def settle_with(function: Callable[[Buffer], None]) -> None:
    """Set what computes all that waits to read a buffer, and calls its `unwatch`: see `Buffer.watch`."""

class Buffer:
    """Device memory: one copy per queue of the engine or, with `shared`, one memory for all queues.

    Work on a shared buffer, including copies from and to the host, waits for earlier work on it in other
    queues. Commands for all queues that write to it run on the first queue only.

    `readers` is for the layer above: what waits to read the buffer.
    """

    readers: Any

    @property
    def may_overlap(self) -> bool:
        """Whether it is a part of another buffer, or memory of the host or of another library."""

    @property
    def memory_handle(self) -> int:
        """A number for the memory. Parts of a buffer have the same one as the buffer."""

    def overlaps(self, other: Buffer) -> bool:
        """Whether two buffers have a byte of memory in common."""

    def __init__(self, engine: Engine, size: int, shared: bool = False, for_device: bool = False) -> None:
        """Create the buffer, possibly in the memory of a dropped one of the same size.

        The device may still be using that memory; work on the new buffer is ordered after that. If memory is
        mapped, a write from the host would have to wait, so only buffers that are `for_device`, because
        kernels fill them, reuse such memory.

        Raises ValueError if `shared` is requested on an engine with several devices.
        """

    @staticmethod
    def over(block: HostBlock) -> Buffer:
        """Return a shared buffer on the memory of a block. The memory lives as long as either.

        Raises ValueError if the engine has several devices, RuntimeError if it is closed.
        """

    def watch(self) -> None:
        """Have the function of `settle_with` called before anything writes the buffer.

        Launchers refuse to write it instead: call `settle` and launch again. A command list settles all its
        buffers when it is submitted.
        """

    def unwatch(self) -> None:
        """Undo `watch`."""

    def settle(self) -> None:
        """Call the function of `settle_with` if the buffer is watched."""

    @property
    def size(self) -> int: ...
    @property
    def shared(self) -> bool: ...
    def lend_on_device(self) -> Loan:
        """Keep the memory for another API of the device, which orders its use. Waits for nothing."""

    def block(self) -> tuple[int, int, int, bool] | None:
        """Return the block of memory where the first queue's copy lies; None if it cannot be exported.

        Its number, which no later block gets, its bytes, where the copy begins in it, and whether it is a
        dedicated allocation.
        """

    def export_block(self) -> int:
        """Return a file descriptor of the block, which the caller owns."""

    @property
    def host_mapped(self) -> bool: ...
    @staticmethod
    def over_host(engine: Engine, address: int, size: int, owner: object, ordered: bool = True) -> Buffer:
        """Return a buffer on memory of the host, for every queue, without a copy.

        The address is a multiple of `Engine.binding_alignment`. `owner` is referenced until no queue uses the
        memory any more. ordered: as for `lend`, as long as the buffer lives. Raises ValueError, or the Vulkan
        error class if the driver refuses the memory.
        """

    @staticmethod
    def over_handle(engine: Engine, handle: int, size: int, owner: object) -> Buffer:
        """Return a buffer on a VkBuffer of another library, for every queue of the device.

        `owner` is referenced until no queue uses it any more. The VkBuffer is not destroyed.
        """

    def part(self, offset: int, size: int) -> Buffer:
        """Return a buffer on a part of the memory, in bytes, which lives as long as the part.

        The offset is a multiple of `Engine.binding_alignment`. Work on both is in order. Raises ValueError if
        the part does not lie within the buffer.
        """

    def lend(self, queue: int = 0, ordered: bool = True) -> Loan | None:
        """Lend the host the memory of a queue's copy, after all work that uses it. None if it is not mapped.

        ordered: calls that append commands on the buffer return when the device has run them, while the loan
        lasts.
        """

    @property
    def lent(self) -> bool:
        """Whether the memory is lent, or belongs to the host."""

    @property
    def imported(self) -> bool:
        """Whether it was made by `over_host`."""

    @property
    def read_only(self) -> bool: ...
    def refuse_writes(self, function: Callable[[], None]) -> None:
        """Have a function, which raises an exception, called before each write."""

    def write(self, queue: int, data: ReadableBuffer, offset: int = 0) -> None:
        """Copy contiguous host bytes to one queue's copy (queue -1: all copies).

        Waits for earlier work of the queue that uses the buffer.
        """

    def read_into(self, queue: int, out: ReadableBuffer, offset: int = 0, tells: bool = True) -> None:
        """Wait for the last write to one queue's copy, and copy its bytes to contiguous memory.

        With `tells`, errors that kernels have recorded until then are raised.
        """

    def write_async(self, queue: int, data: ReadableBuffer, offset: int = 0) -> list[tuple[int, int]]:
        """Start to copy host bytes to the buffer (queue -1: to all copies). Return the points of its end.

        Data in a `HostBlock` are copied from there, and must not be changed until then.
        """

    def read_async(self, queue: int, out: ReadableBuffer, offset: int = 0) -> list[tuple[int, int]]:
        """Start to copy bytes to the memory of a `HostBlock`. Return the points of its end."""

    def copy_from(self, source: Buffer, queue: int = -1) -> None:
        """Copy another buffer of the same size on the device (queue -1: all copies). Never waits."""

    def copy_between(self, source: int, target: int) -> None:
        """Copy one queue's copy to another's, in the order of both queues' work."""

    def mark(self, steady: bool) -> None:
        """Declare that no user writes the buffer.

        Each run of a command list whose recording began before the buffer was created writes the parts it
        needs before it reads them. With `steady`, each dispatch restores the contents instead.
        """

    def announce(self) -> None:
        """Declare that the next dispatch that only writes the buffer begins to overwrite all of it."""

    @property
    def poisoned(self) -> bool:
        """Whether a batch that should have written any queue's copy has failed."""

    def check(self, queue: int) -> None:
        """Raise the error of the batch that should have written a queue's copy, if it failed. Never waits."""

    def last_write(self, queue: int) -> list[tuple[int, int]]:
        """Return points for the last work and the last transfer of a queue that write its copy."""

    def destroy(self) -> None:
        """Free the memory once the device has finished using it. Never blocks. Idempotent."""

def find_shared(engine: Engine, first: int, end: int) -> tuple[Buffer, int] | None:
    """Return a buffer that the host uses, too, and that holds these bytes, and their offset in it."""

class Loan:
    """Memory of a buffer that the host uses. It lasts as long as this object, even if the buffer ends."""

    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...

class HostView:
    """Elements in memory of the host, for Python's buffer protocol. `strides` are in bytes.

    With "" for `format` they have none there, and requests raise BufferError.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        format: str,
        item_size: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        read_only: bool = False,
    ) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    owner: object
    address: int
    format: str
    item_size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool

DLPACK_VERSION: tuple[int, int]

def make_dlpack(
    owner: object,
    address: int,
    device: tuple[int, int],
    dtype: tuple[int, int, int],
    shape: Sequence[int],
    strides: Sequence[int],
    *,
    byte_offset: int = 0,
    versioned: bool = True,
    flags: int = 0,
) -> object:
    """Return a DLPack capsule. `dtype` is code, bits and lanes; strides are in elements.

    The tensor references `owner` until its deleter is called, by any thread, or the capsule is destroyed
    without having been taken.
    """

class ForeignTensor:
    """A tensor taken from a DLPack capsule. Its deleter is called when this object is destroyed, or released.

    Raises ValueError for a capsule without a tensor, or that was taken before, and BufferError for an unknown
    version of DLPack, or a shape, strides or an address that no memory has.
    """

    def __init__(self, capsule: object) -> None: ...
    def release(self) -> None: ...
    @property
    def version(self) -> tuple[int, int] | None: ...
    @property
    def flags(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def device(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> tuple[int, int, int]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...] | None: ...

class Image:
    """An image in device memory, one copy per queue of the engine. Its contents are undefined.

    view_type: 0 1D, 1 2D, 2 3D, 5 array of 2D layers. format: VkFormat. storage: kernels may store to it.
    shared: as for `Buffer`.
    """

    def __init__(
        self,
        engine: Engine,
        view_type: int,
        format: int,
        extent: tuple[int, int, int],
        layers: int,
        levels: int,
        storage: bool,
        shared: bool = False,
    ) -> None: ...
    @staticmethod
    def over_handle(
        engine: Engine,
        handle: int,
        view_type: int,
        format: int,
        extent: tuple[int, int, int],
        layers: int,
        levels: int,
        layout: int,
        usage: int,
        owner: object,
    ) -> Image:
        """Return an image on a VkImage of another library, with its VkImageLayout and VkImageUsageFlags.

        It is brought to the general layout, and stays the library's. A reference to `owner` is kept until the
        device has finished with it.
        """

    @property
    def sampleable(self) -> bool: ...
    @property
    def storable(self) -> bool: ...
    def write(self, queue: int, data: ReadableBuffer, level: int = 0) -> None:
        """Copy contiguous host bytes to a whole mip level of one queue's copy (queue -1: all copies).

        The copy is ordered with the queue's other work. Layers, slices and rows are contiguous.
        """

    def read_into(self, queue: int, out: ReadableBuffer, level: int = 0) -> None:
        """Wait for the last write to one queue's copy, and copy a whole mip level to contiguous memory."""

    def destroy(self) -> None:
        """Free the memory once the device has finished using it. Never blocks. Idempotent."""

class Sampler:
    """How to sample an image. The numbers are those of Vulkan's enumerations."""

    def __init__(
        self,
        image: Image,
        mag_filter: int,
        min_filter: int,
        mip_filter: int,
        address_mode: int,
        mip_lod_bias: float,
        min_lod: float,
        max_lod: float,
        border_color: int,
    ) -> None: ...

class Plan:
    """A compute pipeline.

    binding_types as `BindingType`: 1 storage buffer, 3 uniform buffer, 4 storage image, 5 sampler.
    """

    def __init__(
        self,
        engine: Engine,
        spirv: bytes,
        binding_types: Sequence[int],
        push_constant_size: int,
        name: str,
        entry_point: str = "main",
        specialization: Sequence[tuple[int, bytes]] = (),
        cached: Sequence[bytes] = (),
        place: str = "",
        uniform_blocks: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        """Create the pipelines. `specialization` has the ids and bytes of specialization constants.

        `cached` has for each device of the engine what `new_cache_data` returned for the same plan before, or
        b"" if that is unknown; data of another driver are ignored. If it is empty, nothing is cached.

        `place` is where the kernel is defined, such as "heat.py:12", for error messages.

        `uniform_blocks` has binding, offset and size of blocks whose bytes are part of each launch's
        arguments, after the push constants.
        """

    def new_cache_data(self) -> list[bytes]:
        """Return for each device the cache data to keep for the next time, b"" if they are unchanged."""

    @property
    def id(self) -> int:
        """A number that is unique among all plans of this process."""

    def destroy(self) -> None: ...

# A binding: (resource, binding index, byte offset, byte range or 0 for the rest, reads, writes)
# Offset and range apply to buffers; an `Image` is bound as a storage image.
Binding = tuple[Buffer | Image | Sampler, int, int, int, bool, bool]

class CommandList:
    """Recorded commands that can be submitted repeatedly, with barriers where they are needed.

    Only dispatches take arguments. After waiting for a submit, the host sees what it wrote to a `HostBlock`
    or to a host-mapped `Buffer`. The commands of a submit see what the host wrote there before.
    """

    def __init__(self, engine: Engine) -> None: ...
    @property
    def instance_size(self) -> int:
        """Bytes of argument data per instance."""

    @property
    def length(self) -> int: ...
    @property
    def object_count(self) -> int:
        """The number of buffers, images, samplers and plans that the commands use."""

    def forget_objects(self, count: int) -> None:
        """Keep the first `count` of these objects only, which the remaining commands use."""

    def record(
        self,
        plan: Plan,
        bindings: Sequence[Binding],
        groups: tuple[int, int, int],
        argument_size: int,
        uniform_binding: int = -1,
    ) -> int:
        """Append a dispatch. Return the offset of its arguments in an instance.

        The `argument_size` bytes are passed as push constants or, if `uniform_binding` >= 0, through uniform
        memory at that binding. For a plan with `uniform_blocks`, `argument_size` is the size of its push
        constants and these blocks.
        """

    def record_copy(
        self,
        source: Buffer | HostBlock,
        source_offset: int,
        target: Buffer | HostBlock,
        target_offset: int,
        size: int,
    ) -> None:
        """Append a copy of `size` bytes.

        Raises ValueError if a range exceeds its memory, if the ranges overlap in one memory, or if an object
        belongs to another engine.
        """

    def record_image_copy(self, image: Image, other: Buffer | HostBlock, offset: int, to_image: bool) -> None:
        """Append a copy of a whole mip level 0 to or from bytes starting at `offset`, in rows without gaps.

        Raises ValueError if it does not fit or the offset is not a multiple of the texel size.
        """

    def record_image_to_image(self, source: Image, target: Image) -> None:
        """Append a copy of mip level 0. Raises ValueError if the shapes or texel sizes differ."""

    def record_barrier(self) -> None:
        """Append a barrier between all earlier and all later commands, whether or not they conflict."""

    def record_timestamp(self) -> None:
        """Append a timestamp, written when all earlier commands are finished.

        Raises ValueError if no queue has timestamps; `submit` does so for a queue without them.
        """

    def timestamps(self, queue: int) -> list[int]:
        """Return the ticks that the last submit to a queue wrote, in order; [] before the first submit.

        Wait for the submit first: if it is not finished, this raises the Vulkan error class. Of several
        instances the last one counts. Bits that the queue's counter does not have are 0.
        """

    def reset(self) -> None: ...
    def rearrange(self, order: Sequence[int]) -> list[tuple[int, int]]:
        """Keep the commands with these numbers, in this order, and drop the others.

        Returns for each the previous offset of its arguments in an instance, and their size in bytes;
        arguments are contiguous afterwards. Raises ValueError, without changing anything, if there is no such
        command.
        """

    def submit(self, queue: int, data: ReadableBuffer, instance_count: int) -> int:
        """Append all recorded commands `instance_count` times.

        queue -2: every queue, -1: any one, otherwise that one. `data` holds `instance_count * instance_size`
        bytes and is copied. Returns the number of the batch to wait for on that queue, the last one of
        several; 0 if there was nothing to submit.
        """

    def evaluate(self, queue: int, data: ReadableBuffer, timeout_ns: int | None) -> bool:
        """Submit one instance to a queue (-1: any one) and wait for it. Return whether it finished in time.

        After a timeout the work continues. With `timeout_ns` None it waits without limit.
        """

    def destroy(self) -> None: ...

def is_coarse(
    extent: tuple[int, int, int], width: int, least: int, wide: bool = False, step: int = 1
) -> bool:
    """Whether a launch uses the coarse form of a kernel, whose workgroups process `width` elements along x.

    It does if it has at least `least` elements (0: never; 1: always), a multiple of `step` along x, and
    leaves few invocations idle. With `wide`, ids have 64 bits.
    """

class Parameter(int):
    """A number that differs between equal calls. It is passed to kernels unchanged."""

class RealParameter(float):
    """The same for real numbers: those that maps have as arguments."""

class CallRecorder:
    """Records what a call of a function on arrays appends to the queues, in the thread that enters it.

    arguments: the buffers among the call's arguments, in order.
    args, kwargs: what to call the function with. Its parameters, and the real numbers in its maps, are
        replaced by others, every one of which must be passed to a kernel.
    """

    arguments: list[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __enter__(self) -> CallRecorder: ...
    def __exit__(self, *_: object) -> None: ...
    def keep(
        self, results: Sequence[Buffer], finish: Callable[[Any, list[Any], list[Any]], Any] | None
    ) -> bool:
        """Make equal calls repeat this one from now on. Return False if the call is not repeatable.

        results: the buffers created in the call that it returns.
        finish: creates the result of an equal call from the context, its `arguments` and its new buffers;
            None: it cannot be made again.
        """

    def drop(self) -> None:
        """End the recording. New buffers keep the recorder alive, so it drops all its references."""

def repeat(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: tuple[int, ...] = (),
    context: Any = None,
    settings: tuple[Any, ...] | None = None,
    computes: bool = True,
) -> tuple[Any] | CallRecorder | None:
    """Repeat the recording of an equal call, and return its result in a tuple.

    Parameters may differ, and so may real numbers among the arguments of maps, if kernels get them unchanged.

    Returns a recorder if there is no recording yet: make the call while the recorder is entered. Returns None
    if the call cannot be repeated: make it without a recorder.

    context: where the call runs, if none of its arguments determines it.
    settings: what a function of Arrays depends on beside its arguments; None: no Array is an argument. Such
        calls are recorded when they come a second time. In the recorder's `arguments` an Array is a View, or
        several if it is an expression.
    computes: whether small expressions with numbers are computed first; else calls with them are not
        repeated.
    """

def repeated_parameter(make: Callable[[], int]) -> int:
    """Return `make()`. If the call is recorded, `make` is called again for each equal call.

    The number must be passed to kernels unchanged.
    """

def forbid_repeating() -> None:
    """Exclude the call that this thread records from repetition, because part of it differs each time."""

def take_turns(buffers: Sequence[Buffer]) -> None:
    """Make repeated calls that use one of these buffers use all of them in turn."""

def set_repeated_types(
    buffers: Sequence[type], arrays: Sequence[type], maps: Sequence[type], plain: Sequence[type]
) -> None:
    """Set the argument types by which calls can be compared.

    buffers: the classes of buffers, the most frequent one first.
    arrays: classes with a `mapping`, a map, and `arguments`.
    maps: classes with a `version`, by which they are compared.
    plain: classes whose objects are compared by equality.
    """

class ArgumentSlot:
    """How a launcher handles an argument of a call: one of the following classes."""

class BufferSlot(ArgumentSlot):
    """A buffer argument. Offsets are positions in the argument block; -1: nothing is written.

    shape_offset: for the shape, as an ivec4 (in a wide launcher: four int64).
    planar: the kernel indexes it by two axes, so its shape must not have a third.
    least_bytes, most_bytes: limits of the buffer's size; most_bytes 0: none.
    uniform: bound as a uniform buffer, of which the kernel uses `least_bytes`.
    address_offset: for its address (uint64), which the kernel uses instead of a binding.
    length_offset: for its size in bytes (uint64).
    in_words: the kernel accesses its elements as 32-bit words; the last word is bound completely.
    element, twin: its `var_type` must be one of these objects; None: any.
    """

    def __init__(
        self,
        *,
        binding: int,
        shape_offset: int = -1,
        reads: bool = True,
        writes: bool = True,
        planar: bool = False,
        most_bytes: int = 0,
        address_offset: int = -1,
        length_offset: int = -1,
        in_words: bool = False,
        element: object = None,
        twin: object = None,
        least_bytes: int = 0,
        uniform: bool = False,
    ) -> None: ...

class SamplerSlot(ArgumentSlot):
    """A sampler argument. `texels`: 0 float, 1 int, 2 unsigned."""

    def __init__(self, *, binding: int, view_type: int, texels: int, reads: bool = True) -> None: ...

class ImageSlot(ArgumentSlot):
    """A storage image argument with this VkFormat."""

    def __init__(
        self, *, binding: int, view_type: int, format: int, reads: bool = True, writes: bool = True
    ) -> None: ...

class ScalarSlot(ArgumentSlot):
    """A number argument, packed like this `struct` format character."""

    def __init__(self, *, offset: int, code: str) -> None: ...

class ValueSlot(ArgumentSlot):
    """An argument of any other type; the launcher's `pack(position, value)` returns its bytes."""

    def __init__(self, *, offset: int, size: int) -> None: ...

NO_VALUE: object

class Guard:
    """Tells whether values are the same objects as before, and containers and arrays have the same contents.

    entries: (dict, key, value). attributes: (object, name, value). The value is NO_VALUE where there is none.
    containers: (list, set or another sized iterable, its items), or (dict, keys and values in turn).
    arrays: (NumPy array, (its bytes, shape, dtype)).
    """

    def __init__(
        self,
        entries: Iterable[tuple[dict[Any, Any], Any, Any]] = (),
        attributes: Iterable[tuple[Any, str, Any]] = (),
        containers: Iterable[tuple[Any, Iterable[Any]]] = (),
        arrays: Iterable[tuple[Any, tuple[Any, ...]]] = (),
    ) -> None: ...
    def holds(self) -> bool: ...
    def adopt(self, other: Guard) -> None:
        """Compare with the values of another guard from now on."""

    def __len__(self) -> int:
        """Return how many comparisons it makes."""

class Launcher:
    """Binds one call signature to a plan: packs the arguments and appends a dispatch in one native call.

    slots: one per shader argument, in call order.
    exec_offset: offset of the uvec3 execution limit in the argument block, or -1.
    local_size: elements that a workgroup processes along each axis.
    groups_offset: offset of the uvec3 actual group count of a folded plan, or -1.
    coarse_width, coarse_least, coarse_step, coarse: launches are accepted if `is_coarse` is `coarse`, and
        refused otherwise.
    wide: shapes are four int64 instead of an ivec4, and the execution limit is three uint64.
    guard: unless None, launches are refused when it does not hold or was dropped. The reference is weak.
    """

    guard: Guard | None

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        slots: Sequence[ArgumentSlot],
        argument_size: int,
        uniform_binding: int,
        exec_offset: int,
        groups_offset: int,
        local_size: tuple[int, int, int],
        max_groups: tuple[int, int, int],
        pack: Any,
        coarse_width: int = 1,
        coarse_least: int = 0,
        coarse: bool = False,
        wide: bool = False,
        coarse_step: int = 1,
    ) -> None: ...
    def launch(self, arguments: tuple[Any, ...], limit: Any, limit_is_groups: bool, queue: int = -2) -> bool:
        """Append one dispatch to a queue; -1: the least busy one, -2: every queue.

        `limit` is an int or a tuple of one to three ints: invocations, or workgroups if `limit_is_groups`.
        Buffer arguments are objects whose `_native` is a `Buffer` and whose `shader_shape` is a 4-tuple;
        sampler and image arguments are objects whose `_native` is a `Sampler` or `Image`.
        Returns False, without appending anything, if an argument or the limit has an unexpected type or the
        grid is too large: the caller then takes the checking path, which raises or folds.
        """

    def record(
        self, commands: CommandList, arguments: tuple[Any, ...], limit: Any, limit_is_groups: bool
    ) -> tuple[int, bytes] | None:
        """Record into a command list instead.

        Returns the offset of the arguments in an instance, and their bytes; None if `launch` would return
        False.
        """

# A command that ran: kind (0 dispatch; by the host: 1 wrote a buffer, 2 read one, 3 wrote an image, 4 read
# one; on the device: 5 copied to a buffer, 6 copied from or to an image), queue, whether it ran on a transfer
# queue, plan id and name, workgroups, bytes copied, argument block, resources (binding or -1, offset of the
# address in the block or -1, bytes per texel or 0, bytes), begin and end in nanoseconds of `host_clock`.
TimedCommand = tuple[
    int, int, bool, int, str, tuple[int, int, int], int, bytes, list[tuple[int, int, int, int]], int, int
]
# A submit: queue, whether it is a transfer queue, number of commands, begin and end on the host.
TimedSubmit = tuple[int, bool, int, int, int]

def clocks_are_read_by_submits(engine: Engine) -> bool:
    """Whether `start_timing` and `timings` wait for earlier work of the engine."""

def start_timing(engine: Engine) -> list[int]:
    """Time every command from here on, until `stop_timing` has been called as often.

    Returns the numbers of the last batches before, those of the transfer queues last. Meanwhile command lists
    are streamed instead of replayed. Raises ValueError if a queue has no timestamps.
    """

def timings(
    engine: Engine, since: Sequence[int]
) -> tuple[list[TimedCommand], list[TimedSubmit], list[tuple[int, int]]]:
    """Return the finished commands that were timed after these batches, the result of `start_timing`.

    With them their submits, and when the host began and ended to wait for memory that it shares.
    """

def stop_timing(engine: Engine) -> None: ...
def host_clock() -> int:
    """Return the time in nanoseconds on the clock of `timings`."""

# Expressions of `vkdispatch.numpy`. What is rarely needed is the package's: see `serve_expressions`.

INDEX: object
"""An operand of a node: the flat index of the element that is computed."""
READ: str
NUMBER: str
PLACE: str

def serve_expressions(
    *,
    package: str,
    oversized: type[Exception],
    allocate: Callable[..., Any],
    wrap: Callable[..., Any],
    evaluate: Callable[[Any], View],
    lock: AbstractContextManager[Any],
    show: Callable[[Node], View],
    shrink: Callable[[tuple[Any, ...], int, int, int], tuple[int, int, int]],
    trim: Callable[[list[Any]], None],
    kernels: dict[Any, tuple[Any, Any]],
    parts: tuple[Any, ...],
    graphs: Any,
    profiles: list[Any],
) -> None:
    """Set what expressions call.

    package: the folder whose frames are no lines of programs.
    oversized: the error of shapes with more elements than any memory.
    allocate, wrap: return a `vd.Buffer` of a shape and dtype; on a context, memory, shape and dtype.
    evaluate: computes a node and returns its view.
    lock: is held while nodes are computed.
    show: returns a view with the elements of a node, computed if they lie nowhere.
    shrink: computes parts of operands beyond the bounds; returns the bounds of their node.
    trim: drops readers that are computed.
    """

def bound_expressions(nodes: int, reads: int, held: int) -> tuple[int, int, int]:
    """Bound the nodes of an expression, its reads of memory, and the bytes that it alone keeps.

    Return the bounds before.
    """

class Storage:
    """Device memory, and the expressions that will read it.

    memory, context: the memory and its context.
    var_type, size, nbytes: the dtype of its elements (a `vd` dtype), how many there are, and their bytes.
    readers: weak references to the expressions that wait to read it. Storages of one memory have one list.
    watched: the memory, if programs may write it by other ways than arrays: it has its readers computed
        before. None if only arrays write it.
    is_immediate: whether the host always writes it without a call. Expressions that read it are computed at
        once, as they are while the memory is lent to the host.
    is_read_only: whether arrays on this storage must not be written; others on its memory may be.
    """

    context: Any
    memory: Buffer
    var_type: Any
    size: int
    nbytes: int
    readers: list[Any]
    watched: Buffer | None
    is_immediate: bool
    is_read_only: bool

    def __init__(self, buffer: Any, *, is_shared: bool = False) -> None: ...
    @staticmethod
    def allocate(size: int, var_type: Any, context: Any) -> Storage:
        """Return new memory, which is undefined until a kernel writes it. Raises as `vd.Buffer`."""

    @staticmethod
    def over(memory: Buffer, var_type: Any, context: Any, size: int) -> Storage:
        """Return the storage of a memory that nothing else shows."""

    @property
    def buffer(self) -> Any:
        """The memory as a `vd.Buffer` of one axis, or the buffer that it was made of."""

    @property
    def is_shared(self) -> bool:
        """Whether programs may write the memory by other ways than arrays."""

    def share(self) -> None:
        """Let programs write the memory by other ways than arrays: by buffers, kernels and graphs."""

    def lend(self) -> None:
        """Note that this thread gives the memory to a function, as part of an expression."""

    def move(self) -> None:
        """Go on with a copy of the memory, if another thread may be about to have a function read it.

        Memory that programs know by other ways stays what it is.
        """

class View:
    """Elements of a storage. It never changes; what it shows may.

    storage, shape, dtype, num: where the elements lie, their lengths along each axis, their type, its number.
    offset, strides: the place of the first element, and how far apart neighbours along each axis are, in
        elements. Without `strides` the elements lie one behind the other.
    size: how many elements.
    is_contiguous: whether the elements lie one behind the other, in C order.
    """

    storage: Storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    num: int
    offset: int
    size: int
    is_contiguous: bool

    def __init__(
        self,
        storage: Storage,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
    ) -> None: ...
    @property
    def is_whole(self) -> bool:
        """Whether the view shows all elements of its storage, in the order in which they lie."""

MOST_ELEMENTS: int  # of an array: the bytes of as many do not overflow

def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in C order, in elements."""

def is_c_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements with these strides lie one behind the other."""

def basic_view(view: View, index: object) -> View | None:
    """Return what ints, slices, None and Ellipsis show of a view; None for other indices and wrong ones."""

def is_same_view(first: View, second: View) -> bool:
    """Whether two views show the same elements, in the same shape and order."""

class Loop:
    """An operation with its dtypes.

    operation: what is computed.
    kinds: the dtypes to which operands are converted before.
    dtype: of the result.
    """

    operation: Any
    kinds: tuple[np.dtype[Any], ...]
    dtype: np.dtype[Any]

    def __init__(self, operation: Any, kinds: tuple[np.dtype[Any], ...], dtype: np.dtype[Any]) -> None: ...

class Node:
    """An operation and its operands. Once it is computed, it knows its result and no operands.

    loop, operands: what is to be done, with nodes, views, numbers and INDEX.
    shape, dtype, num, size: of the result.
    result: the view that holds the values, or None while nothing has needed them.
    failure: the error of an attempt to compute it before its operands were overwritten, or None.
    readers: weak references to the nodes that have it as an operand: they will read its result's memory.
    is_dear: whether a function has computed it where it read it, and it had better be kept.
    count, reads, held: upper bounds of the nodes of the expression, of its reads of memory, and of the bytes
        that it keeps.
    """

    loop: Loop
    operands: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    num: int
    size: int
    result: View | None
    failure: Exception | None
    readers: list[Any]
    count: int
    reads: int
    held: int

    @property
    def is_dear(self) -> bool: ...
    @property
    def line(self) -> tuple[str, int]:
        """The file and the line of the program that made it."""

def count_distinct(operands: tuple[Any, ...]) -> tuple[int, int]:
    """Return the number of nodes of an expression with these operands, and of the views that it reads."""

def make_node(loop: Loop, operands: tuple[Any, ...], shape: tuple[int, ...], size: int) -> Node:
    """Return a node, of which parts are computed if it would become too large."""

class ArrayBase:
    """What `vkdispatch.numpy.Array` is derived from: it holds an expression, or a view."""

    _value: Any

def serve_operators(array_type: type, loops: dict[Any, Loop], operate: Callable[..., Any]) -> None:
    """Set the class of arrays, the known loops, and what computes an operator that is not known.

    Keys of loops are `(name, *kinds)`: the numbers of dtypes, and the types of Python numbers.
    """

def array_of(value: View | Node) -> Any:
    """Return the array of an expression or view."""

def value_of(array: ArrayBase) -> Any:
    """Return the expression of an array, or its view if it is computed."""

def apply_known(name: str, operands: tuple[Any, ...]) -> Node | None:
    """Return the node of a function of arrays, their values and numbers; None if it is not known.

    It is known if the loop is, the shapes are equal, and the loop's dtypes hold the numbers.
    """

def operate_known(name: str, operands: tuple[Any, ...]) -> Any:
    """Return the array of a function as `apply_known` does."""

def operate(name: str, *operands: Any) -> Any:
    """Return the array of an operator. The function of `serve_operators` computes what is not known."""

def known_part(array: ArrayBase, index: Any) -> Any:
    """Return the view `array[index]` as an array; None for what the checking path has to look at."""

def wait_to_read(storage: Storage, node: Node) -> None:
    """Note that a node reads a memory: it is computed before that is written."""

class Program:
    """An expression as kernels need it: its structure, the views that it reads, and its numbers.

    steps: what is computed, in order: `(loop, *arguments)` for nodes, `(READ, slot)` for elements of
        `views[slot]`, `(NUMBER, dtype.num)` for the next of `numbers`, `(PLACE, dtype.num)` for the flat
        index. Arguments are positions of earlier steps.
    views, numbers: what the steps read.
    kinds: the dtype numbers of the views.
    shape, size: of the result.
    is_plain: whether each view has the elements of a result of this shape where its memory begins.
    places: the positions of nodes, by identity.
    """

    steps: list[tuple[Any, ...]]
    views: list[View]
    numbers: list[Any]
    kinds: list[int]
    shape: tuple[int, ...]
    size: int
    is_plain: bool
    places: dict[int, int]

    def __init__(self, root: Node | View, is_read: bool = False) -> None:
        """Make the program of an expression.

        is_read: a function computes it where it reads it, and does not keep it. What such a program has
            computed before is computed and kept now.
        """

def compute_plain(program: Program, dtype: np.dtype[Any]) -> View | None:
    """Compute a plain program by a kernel that is known, or return None."""

def evaluate_known(value: Node | View) -> View | None:
    """Return the view with the values of an expression; None if the checking path has to compute them."""
