"""Types of the native extension module: the engine as the Python layers see it.

Every call that may wait releases the GIL, and ends within 0.2 s when a signal's handler
raises, such as KeyboardInterrupt. Errors arrive as the exception classes given to `set_error_types`.

A batch that cannot be run fails. What it should have written is poisoned: reading it, and running what reads
it, raises the error of the batch, until it is written whole by `write`, a copy of the whole, or after
`announce`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import Buffer as ReadableBuffer

def set_error_types(
    vulkan: type[Exception],
    device_lost: type[Exception],
    out_of_memory: type[Exception],
    device_timeout: type[Exception],
) -> None: ...
def initialize(debug: bool) -> None:
    """Load Vulkan and create the instance.

    Raises the Vulkan error class when there is no loader or driver.
    """

def is_initialized() -> bool: ...
def validation_enabled() -> bool:
    """Whether the Khronos validation layer is active (debug was asked for and the layer is installed)."""

def take_messages() -> list[tuple[int, str]]:
    """Return and clear what the validation layer and the hazard checker said: (severity, text).

    Severities are those of `VkDebugUtilsMessageSeverityFlagBitsEXT`: 0x100 warning, 0x1000 error.
    """

def take_number() -> int:
    """Return a number that no call before has returned."""

def allocation_count() -> int | None:
    """How often the module has asked for memory of its own; None in sanitized builds, which do not count.

    Everything in C++ counts; Python's objects and the driver's memory do not.
    """

def device_properties() -> list[dict[str, Any]]:
    """One dictionary per physical device, keyed by the attribute names of `DeviceInfo`.

    The additional key `missing` lists what the engine needs and the device lacks, as text.
    """

def foreign_properties(instance: int, physical_device: int) -> dict[str, Any]:
    """As an entry of `device_properties`, of a physical device of somebody else's instance.

    Raises ValueError where one of the two is seen not to be what it should.
    """

def known_features() -> list[tuple[str, bool, str | None]]:
    """Return the features of Vulkan that the engine and kernels use.

    By Vulkan's name, with whether the engine needs it, and the extension that it belongs to, if any.
    """

def compile_glsl(
    source: str,
    path: str = "",
    vulkan_minor: int = 2,
    preamble: str = "",
    includes: Sequence[tuple[str, str, bool, str]] = (),
    texts: Mapping[str, str] = ...,
) -> bytes:
    """Compile a GLSL compute shader to SPIR-V. Raises ValueError with the compiler's whole log.

    `path` is that of its file: what messages call it, and what files that it includes are found beside.
    `includes` has what each `#include` stands for, and replaces the file system: the name of the file that
    has it ("" for the source), the name in it, whether that is in quotes, and the name in `texts` of what it
    stands for, or else the reason why there is none. Without either nothing can be included. `preamble` is
    read behind `#version`, and counts in no line number. The SPIR-V is that of Vulkan 1.0 to 1.3; source
    that asks for GL_NV_cooperative_matrix2 becomes that of 1.3. An interrupt ends the wait; the compiler
    then comes to its end on its own thread.
    """

def compiler_identity() -> str:
    """Return what SPIR-V follows from besides the source: the compiler's version and how it is used."""

def compile_count() -> int:
    """Return how often this process has compiled GLSL."""

def prepare_compiler() -> None:
    """Have the compiler make its built-in tables, most of its first call's time, on a thread; once.

    The process waits for that thread before it ends or forks, as it does for a second for any other compiler.
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
    """Have VkFFT plan a transform. No device is touched; the GIL is released meanwhile.

    Parameters
    ----------
    device
        Vendor id, invocations of a workgroup, bytes of its shared memory, workgroups along each axis, size of
        a workgroup along each axis: the most that there may be.
    axes
        1 to 4, the contiguous one first: size, whether it is left out, range of zeros if any, elements of a
        separate input from one step along the next axis to another (0: as the buffer).
    options
        batches, precision (0 float16, 1 float32, 2 float64), real, normalize, forward, inverse (which passes
        are wanted), pad_frequency, conjugate, features; buffer_size, input_size (0: in place), kernel_size
        (0: no convolution) in bytes.
    run
        Is given kernels, buffers and passes; runs them and returns what the buffers then hold. VkFFT makes
        some of its tables by transforms.

    Returns
    -------
    Kernels (GLSL, number of bindings, bytes of push constants); buffers from number 3 on (size, contents or
    b"" for scratch memory); passes forward; passes back (kernel, buffer at each binding, push constants,
    workgroups). Buffers 0, 1 and 2 are the caller's buffer, input and kernel.

    Raises ValueError with VkFFT's name of why it has no such plan, and what `run` raises.
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
        """Make devices. `extensions` are switched on for each, besides those that are used.

        A batch that runs for longer than `timeout_ns` (0: any time) ends the engine: `abandoned` is
        true then, and every call raises the timeout class.

        Raises the Vulkan error class where a device lacks one of them.
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
        """Return an engine on somebody else's device, which is left as it is at the end.

        Queues are (family, index, handle); a handle of 0 means the queue with that index. Extensions and
        features are those of the device that were enabled when it was made. Raises ValueError where handles
        are seen not to be what they should.
        """

    @property
    def handles(
        self,
    ) -> tuple[
        int,
        list[tuple[int, int, list[tuple[int, int | None, int]], list[list[tuple[int, int | None, int]]]]],
    ]:
        """The VkInstance, and of each device VkPhysicalDevice, VkDevice, queues, and the twins of each queue.

        A queue is family, index (None: unknown), VkQueue.
        """

    @property
    def device_properties(self) -> list[dict[str, Any]]:
        """As the function, of the engine's devices: features and extensions are those that are on."""

    @property
    def queue_count(self) -> int: ...
    @property
    def max_storage_range(self) -> int:
        """Most bytes of a buffer that a kernel can be given on every device of the engine."""

    def image_features(self, format: int) -> int:
        """Return the VkFormatFeatureFlags (optimal tiling) that every device has for a VkFormat.

        Raises ValueError for formats that images are not made of.
        """

    @property
    def lost(self) -> bool:
        """Whether a device was lost, or the engine abandoned; nothing on this engine works any more."""

    @property
    def abandoned(self) -> bool:
        """Whether the device may still be at work for ever: what it uses is never destroyed."""

    @property
    def failures(self) -> int:
        """How many batches have failed."""

    def wait_idle(self, queue: int = -1) -> None: ...
    @property
    def transfer_queues(self) -> int:
        """How many queues there are that copy to and from pinned memory beside those of the context.

        Each of the context's may have one, or one for each direction. The slot of a queue is its index `q`,
        and with `n` queues that of its twin `n + q`, and `2 * n + q` that of one which only copies to the
        host.
        """

    def work_points(self, queue: int = -1) -> list[tuple[int, int]]:
        """Return points, (slot, number of a batch), for the work and transfers given to a queue (-1: all)."""

    def wait_until(
        self,
        points: Sequence[tuple[int, int]],
        timeout: float | None,
        alone: bool = False,
        tells: bool = True,
    ) -> bool:
        """Wait until queues have come that far, at most `timeout` seconds; return whether they have.

        Raises the first failure until there that still matters, with `alone` one of these very batches; and
        what kernels have noted, with `tells` and a timeout that is not 0.
        """

    def tell_all(self) -> None:
        """Raise what kernels have noted and are done with. Never waits."""

    def open_journal(self, on_found: Callable[[Engine, int, int], None]) -> Buffer:
        """Make the buffer in which kernels note errors, once; see objects/journal.hpp.

        Whatever waits calls `on_found(engine, queue, value)` when there are notes that nobody has looked at:
        all that the queue was given up to that batch is done.
        """

    def take_ticket(self, note: object) -> int:
        """Return a ticket for a call that comes next, and keep its note; 0: some have to be renewed."""

    def stale_tickets(self) -> int:
        """Return the half of the tickets (0 or 1) that has to be renewed, -1 for none.

        Waits until all is done that was given these tickets.
        """

    def renew_tickets(self, half: int) -> None:
        """Forget what was found under a half of the tickets, which are taken again."""

    def journal(self, queue: int) -> tuple[bool, bytes]:
        """Return the journal of a queue, and whether nothing that the queue was given adds to it any more."""

    def note_of(self, ticket: int, queue: int) -> tuple[Any, dict[int, int]]:
        """Return the note of a ticket, and the first batch of each slot that what it did can have been in.

        Slots are a queue's own, and those for its copies.
        """

    def mark_notes_read(self, queue: int, notes: int) -> None:
        """Note that so many notes of a queue were looked at."""

    def set_pending_errors(self, waiting: bool) -> None:
        """Note whether `on_found` is to be called although there are no new notes."""

    def follow(self, points: Sequence[tuple[int, int]], queue: int = -1) -> None:
        """Have the work given to a queue later (-1: all) wait for points, on the device."""

    def last_value(self, queue: int) -> int:
        """Return the number of the last batch that was given to a queue."""

    def flush(self, queue: int, value: int) -> None:
        """Submit a queue's batches up to this number."""

    def wait_for(self, queue: int, value: int, block: bool) -> bool:
        """Submit a queue's batches up to this number; return whether they are done, waiting if `block`."""

    def close(self) -> None:
        """Finish all work, stop the threads, destroy every object still alive. Idempotent.

        An interrupt ends the wait: the engine is abandoned.
        """

    def describe_work(self, queue: int = -1) -> str:
        """Return what a queue (-1: all) was given and has not finished, in words; "" where that is nothing.

        Such as "queue 0: not finished: 3 launches of 'scale' (heat.py:12), a copy of 4096 bytes".
        """

    def statistics(self) -> dict[str, int]:
        """Counters since creation, by name.

        commands, submits, barriers, live_objects, waiting_frees, device_memory (bytes), pinned_blocks,
        allocations (of buffers and images, so far), idle_memory (bytes of dropped buffers, kept for later
        ones; they are not part of device_memory).
        """

    def set_barriers_enabled(self, enabled: bool) -> None:
        """Leave barriers out, to show that the hazard checker finds that. For tests."""

class HostBlock:
    """Pinned host memory for the device of a queue; arrays may be views of it for as long as they like.

    kind: "upload" is for copies from and to the device, in memory that the host caches. "host" is host memory
    that kernels work on, "device_host" the device's own memory that the host reaches: both are what
    `Buffer.over` is for. Raises the out-of-memory class where the device has no such memory or no more of it.
    """

    def __init__(self, engine: Engine, queue: int, size: int, kind: str = "upload") -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class HostPages:
    """Ordinary memory for a large array, in huge pages; one of its size takes it over when it is gone.

    Raises MemoryError where the system has not as much.
    """

    def __init__(self, size: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def spare_pages() -> int:
    """Return the bytes that are kept of `HostPages` that are gone. The end of an engine drops them."""

class Buffer:
    """Device memory, one copy for each queue of the engine; with `shared` one memory for all of them.

    What a queue is given that uses a shared buffer waits for what others were given before, copies from and
    to the host included. What is given to all queues and writes to it runs on the first one alone.
    """

    def __init__(self, engine: Engine, size: int, shared: bool = False, for_device: bool = False) -> None:
        """Make it, or use the memory of one of the same size that was given up.

        The device may still be at work on that: what uses the new buffer comes after it. Where memory is
        mapped, a write from the host would wait: there only what is `for_device`, as kernels fill it, gets
        such memory.

        Raises ValueError where `shared` is asked of an engine with several devices.
        """

    @staticmethod
    def over(block: HostBlock) -> Buffer:
        """Return a shared buffer whose memory is the block's; it lives as long as either.

        Raises ValueError where the engine has several devices, RuntimeError where it is closed.
        """

    @property
    def size(self) -> int: ...
    @property
    def shared(self) -> bool: ...
    @property
    def host_mapped(self) -> bool: ...
    def write(self, queue: int, data: ReadableBuffer, offset: int = 0) -> None:
        """Copy contiguous host bytes into one queue's copy (queue -1: all).

        Waits for the work already given to the queue that uses the buffer.
        """

    def read_into(self, queue: int, out: ReadableBuffer, offset: int = 0, tells: bool = True) -> None:
        """Wait for the last write to one queue's copy, and copy its bytes to contiguous memory.

        With `tells`, what kernels have noted until then is raised.
        """

    def write_async(self, queue: int, data: ReadableBuffer, offset: int = 0) -> list[tuple[int, int]]:
        """Have the bytes copied in (queue -1: every copy); return the points when that is done.

        Data in a `HostBlock` is copied from there, and must be left alone until then.
        """

    def read_async(self, queue: int, out: ReadableBuffer, offset: int = 0) -> list[tuple[int, int]]:
        """Have bytes copied to memory of a `HostBlock`; return the points when that is done."""

    def copy_from(self, source: Buffer, queue: int = -1) -> None:
        """Have the device copy another buffer of the same size (queue -1: every copy). Never waits for it."""

    def copy_between(self, source: int, target: int) -> None:
        """Copy one queue's copy to another's, in the order of both queues' work."""

    def mark(self, steady: bool) -> None:
        """Note that no user writes it.

        Each run of a command list that was begun before it was made writes what it needs of it before reading
        it, or, where it is `steady`, each dispatch leaves it as it found it.
        """

    def announce(self) -> None:
        """Announce that the next dispatch that only writes it is the first of those that write all of it."""

    @property
    def poisoned(self) -> bool:
        """Whether a batch that should have written the copy of any queue has failed."""

    def check(self, queue: int) -> None:
        """Raise the error of the batch that should have written a queue's copy, if it failed. Never waits."""

    def last_write(self, queue: int) -> list[tuple[int, int]]:
        """Return points for the last work and the last transfer of a queue that write its copy."""

    def destroy(self) -> None:
        """Free the memory once the device is done with it. Never blocks. Idempotent."""

class Image:
    """An image in device memory, one copy for each queue of the engine, its contents undefined.

    view_type: 0 1D, 1 2D, 2 3D, 5 array of 2D layers. format: VkFormat. storage: kernels may store to it.
    shared: as a `Buffer`'s.
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
    @property
    def sampleable(self) -> bool: ...
    @property
    def storable(self) -> bool: ...
    def write(self, queue: int, data: ReadableBuffer, level: int = 0) -> None:
        """Copy contiguous host bytes into a whole mip level of one queue's copy (queue -1: all).

        The copy takes its place in the queue. Layers and slices lie one after another, rows in them likewise.
        """

    def read_into(self, queue: int, out: ReadableBuffer, level: int = 0) -> None:
        """Wait for the last write to one queue's copy, and copy a whole mip level to contiguous memory."""

    def destroy(self) -> None:
        """Free the memory once the device is done with it. Never blocks. Idempotent."""

class Sampler:
    """A way to sample an image; the numbers are those of Vulkan's enumerations."""

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
        """Make the pipelines; `specialization` has the id and the bytes of constants to be replaced.

        `cached` has for each device of the engine what `new_cache_data` gave for the same plan before, or
        b"" where that is not known; data of another driver is ignored. With no entry nothing is cached.

        `place` is where the kernel is defined, such as "heat.py:12", for errors.

        `uniform_blocks` has binding, offset and size of blocks whose bytes come with each launch: behind the
        push constants, in one block of arguments.
        """

    def new_cache_data(self) -> list[bytes]:
        """Return for each device what to keep for the next time, b"" where that is as it was given."""

    @property
    def id(self) -> int:
        """A number that no other plan of this process has or had."""

    def destroy(self) -> None: ...

# A binding: (resource, binding index, byte offset, byte range or 0 for the rest, reads, writes)
# Offset and range are a buffer's; an `Image` is bound as a storage image.
Binding = tuple[Buffer | Image | Sampler, int, int, int, bool, bool]

class CommandList:
    """Recorded commands that can be submitted again and again, with barriers where they need some.

    Only dispatches take arguments. What is written to a `HostBlock`, or a `Buffer` that the host sees, is
    there for the host when the submit has been waited for; what the host has written before a submit is there
    for its commands.
    """

    def __init__(self, engine: Engine) -> None: ...
    @property
    def instance_size(self) -> int:
        """Bytes of argument data that one instance takes."""

    @property
    def length(self) -> int: ...
    def record(
        self,
        plan: Plan,
        bindings: Sequence[Binding],
        groups: tuple[int, int, int],
        argument_size: int,
        uniform_binding: int = -1,
    ) -> int:
        """Append a dispatch; returns the offset of its arguments inside an instance.

        The `argument_size` bytes travel as push constants, or, when `uniform_binding` >= 0, through uniform
        memory bound there. Those of a plan with `uniform_blocks` are all that these and its push constants
        take.
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

        Raises ValueError where they reach beyond an end, overlap in one memory, or belong to another engine.
        """

    def record_image_copy(self, image: Image, other: Buffer | HostBlock, offset: int, to_image: bool) -> None:
        """Append a copy of a whole mip level 0 from or to bytes from `offset` on, in rows without gaps.

        Raises ValueError where it does not fit or the offset is no multiple of a texel.
        """

    def record_image_to_image(self, source: Image, target: Image) -> None:
        """Append a copy of mip level 0. Raises ValueError for other shapes or sizes of texels."""

    def record_barrier(self) -> None:
        """Append a barrier of all before against all after, where the list would need none by itself."""

    def record_timestamp(self) -> None:
        """Append a timestamp, taken when all commands before it are done.

        Raises ValueError where no queue has timestamps; `submit` does for a queue that has none.
        """

    def timestamps(self, queue: int) -> list[int]:
        """Return the ticks that the last submit to a queue wrote, in order; [] before the first.

        The submit must have been waited for; raises the Vulkan error class if it is not done. The last
        instance counts. Ticks have the bits that the queue counts with, the others are 0.
        """

    def reset(self) -> None: ...
    def rearrange(self, order: Sequence[int]) -> list[tuple[int, int]]:
        """Keep the commands with these numbers, in this order, and forget the others.

        Returns for each where its arguments lay in an instance and how many bytes they have; they lie one
        after another now. Raises ValueError, with nothing changed, for a number that no command has.
        """

    def submit(self, queue: int, data: ReadableBuffer, instance_count: int) -> int:
        """Queue all recorded commands `instance_count` times.

        queue -2: every queue, -1: any one, else that one. `data` holds `instance_count * instance_size`
        bytes and is copied. Returns the number of the batch to wait for on that queue, the last of several; 0
        where there was nothing to do.
        """

    def evaluate(self, queue: int, data: ReadableBuffer, timeout_ns: int | None) -> bool:
        """Submit one instance to a queue (-1: any one) and wait for it; return whether it was done in time.

        What was not goes on. With no limit it waits for ever.
        """

    def destroy(self) -> None: ...

def is_coarse(
    extent: tuple[int, int, int], width: int, least: int, wide: bool = False, step: int = 1
) -> bool:
    """Whether a launch goes to the coarse form of a kernel, whose workgroups do `width` elements along x.

    It has `least` elements (0: never; 1: always), along x a multiple of `step`, and leaves few invocations
    without any. With `wide`, ids have 64 bits.
    """

class CallRecorder:
    """Notes what a call of a function on arrays gives to the queues, in the thread that enters it.

    arguments: the buffers among the call's arguments, in order.
    parameters: what the call is made with in place of its parameters; kernels have to get all of them.
    """

    arguments: list[Any]
    parameters: tuple[Any, ...]

    def __enter__(self) -> CallRecorder: ...
    def __exit__(self, *_: object) -> None: ...
    def keep(self, results: Sequence[Buffer], finish: Callable[[Any, list[Any], list[Any]], Any]) -> bool:
        """Have equal calls do the same from now on; False: the call cannot be repeated so.

        results: the buffers made in the call that it returns.
        finish: makes what an equal call returns, of the context, its `arguments` and its new buffers.
        """

    def drop(self) -> None:
        """End: new buffers refer to the recorder for as long as they live, and it refers to nothing."""

def repeat(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: tuple[int, ...] = (),
    context: Any = None,
) -> tuple[Any] | CallRecorder | None:
    """Do what an equal call came to, and return its result in a tuple. Equal calls may differ in parameters.

    A recorder: it was not made yet, and is to be made while the recorder is entered. None: it cannot be
    repeated, and is to be made as any call.

    context: where the call is made, if none of its arguments says so.
    """

def repeated_parameter(make: Callable[[], int]) -> int:
    """Return `make()`, which is called anew for each equal call where this one is recorded.

    The number must go to kernels as it is.
    """

def forbid_repeating() -> None:
    """Have the call that this thread records be no pattern for others: something of it differs each time."""

def refuse_repeating(recorder: CallRecorder) -> None:
    """Do the same for a call that is over."""

def take_turns(buffers: Sequence[Buffer]) -> None:
    """Have calls that are repeated with one of these buffers take another one each, in turn."""

def set_repeated_types(buffers: Sequence[type], arrays: Sequence[type], plain: Sequence[type]) -> None:
    """Say which arguments calls can be told apart by.

    buffers: the classes of buffers, the most frequent first.
    arrays: classes with a `mapping`, by which they are equal, and `arguments`.
    plain: classes whose objects are equal where calls are.
    """

class ArgumentSlot:
    """What a launcher does with an argument of a call: one of the classes that follow."""

class BufferSlot(ArgumentSlot):
    """An argument that is a buffer. Offsets are places in the argument block; -1: nothing goes there.

    shape_offset: gets the shape, as an ivec4 (of a wide launcher: four int64).
    planar: the kernel indexes it by two axes: the shape must have no third.
    least_bytes, most_bytes: what a buffer may have; most_bytes 0: any number.
    uniform: bound as a uniform buffer, of which the kernel reaches `least_bytes`.
    address_offset: gets its address (uint64), by which it is reached in place of the binding.
    length_offset: gets its bytes (uint64).
    in_words: the kernel reaches its elements by words of 32 bits, of which the last is bound whole.
    element, twin: the objects of which its `var_type` must be one; None: any.
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
    """An argument that is a sampler. `texels`: 0 float, 1 int, 2 unsigned."""

    def __init__(self, *, binding: int, view_type: int, texels: int, reads: bool = True) -> None: ...

class ImageSlot(ArgumentSlot):
    """An argument that is a storage image of a VkFormat."""

    def __init__(
        self, *, binding: int, view_type: int, format: int, reads: bool = True, writes: bool = True
    ) -> None: ...

class ScalarSlot(ArgumentSlot):
    """An argument that is a number; the launcher packs it as `struct` does for this format character."""

    def __init__(self, *, offset: int, code: str) -> None: ...

class ValueSlot(ArgumentSlot):
    """An argument that is any other value; the launcher's `pack(position, value)` gives its bytes."""

    def __init__(self, *, offset: int, size: int) -> None: ...

class Launcher:
    """Binds one call signature to a plan: packs the arguments and queues a dispatch in one native call.

    slots: one per shader argument, in call order.
    exec_offset: where the uvec3 execution limit lies in the argument block, or -1.
    local_size: elements along each axis that a workgroup does.
    groups_offset: where the uvec3 true group count of a folded plan lies, or -1.
    coarse_width, coarse_least, coarse_step, coarse: launches are taken where `is_coarse` is `coarse`, others
        refused.
    wide: shapes are four int64 instead of an ivec4, and the execution limit is three uint64.
    """

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
        """Queue one dispatch on a queue; -1: the least busy one, -2: every queue.

        `limit` is an int or a tuple of one to three ints: invocations, or workgroups if `limit_is_groups`.
        Buffer arguments are objects whose `_native` is a `Buffer` and whose `shader_shape` is a 4-tuple,
        sampler and image arguments objects whose `_native` is a `Sampler` or `Image`.
        Returns False, having queued nothing, if an argument or the limit is not of the expected kind or the
        grid is too large: the caller then takes the checking path, which raises or folds.
        """

    def record(
        self, commands: CommandList, arguments: tuple[Any, ...], limit: Any, limit_is_groups: bool
    ) -> tuple[int, bytes] | None:
        """Record into a command list instead.

        Returns the offset of the arguments in an instance and their bytes; None as `launch`'s False.
        """

# What ran: kind (0 dispatch; the host: 1 wrote a buffer, 2 read one, 3 wrote an image, 4 read one; on the
# device: 5 copied to a buffer, 6 copied from or to an image), queue,
# whether it was the queue beside it that only moves data, plan id and name, workgroups, bytes copied, the
# argument block, what was used (binding or -1, where its address lies in the block or -1, bytes of a texel or
# 0, bytes), begin and end in nanoseconds of `host_clock`.
TimedCommand = tuple[
    int,
    int,
    bool,
    int,
    str,
    tuple[int, int, int],
    int,
    bytes,
    list[tuple[int, int, int, int]],
    int,
    int,
]
# A submit: queue and whether the one beside it, how many commands, begin and end on the host.
TimedSubmit = tuple[int, bool, int, int, int]

def clocks_are_read_by_submits(engine: Engine) -> bool:
    """Whether `start_timing` and `timings` wait for what was given to the engine before."""

def start_timing(engine: Engine) -> list[int]:
    """Time every command given to the engine from here on, until `stop_timing` was called as often.

    Returns the numbers of the last batches before, those of the queues beside last. Command lists are
    streamed rather than replayed meanwhile. Raises ValueError where a queue has no timestamps.
    """

def timings(engine: Engine, since: Sequence[int]) -> tuple[list[TimedCommand], list[TimedSubmit]]:
    """Return what was timed after these batches, as `start_timing` gave them, and is done."""

def stop_timing(engine: Engine) -> None: ...
def host_clock() -> int:
    """Return the time in nanoseconds on the clock of `timings`."""
