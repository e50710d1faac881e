# cython: language_level=3, binding=False, embedsignature=False, auto_pickle=False, freethreading_compatible=True
"""The engine's Python interface: argument conversion, errors and the GIL. __init__.pyi documents each name."""

cimport cython

import atexit
import os
import sys
import types
import weakref
from _thread import allocate_lock
from weakref import ref as weakref_ref
from time import monotonic, sleep

from cpython.buffer cimport (PyBUF_C_CONTIGUOUS, PyBUF_CONTIG, PyBUF_CONTIG_RO, PyBUF_F_CONTIGUOUS, PyBUF_FORMAT,
                             PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release,
                             PyObject_GetBuffer)
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next
from cpython.exc cimport PyErr_SetInterrupt
from cpython.float cimport PyFloat_AsDouble, PyFloat_Check
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.math cimport fabs, isinf
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.map cimport map as cppmap
from libcpp.memory cimport shared_ptr
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "<cstddef>" namespace "std" nogil:
    cdef cppclass byte:
        pass

cdef extern from "python/bridge.hpp" namespace "vkd":
    int INTERRUPTED "vkd::kInterrupted"
    int current_error(string& text)

# ---- errors

# By ErrorKind. The last one is also that of objects which were destroyed or never created.
cdef tuple _error_types = (RuntimeError, RuntimeError, MemoryError, ValueError, TimeoutError, RuntimeError)
cdef object misuse_error = RuntimeError


cdef int raise_error() except -1:
    cdef string text
    cdef int kind = current_error(text)
    if kind == INTERRUPTED:
        return -1  # the handler's exception is already set
    message = text.decode("utf-8", "replace")
    raise _error_types[max(kind, 0)](message)


def set_error_types(vulkan, device_lost, out_of_memory, invalid_value, device_timeout, misuse):
    global _error_types, misuse_error
    _error_types = (vulkan, device_lost, out_of_memory, invalid_value, device_timeout, misuse)
    misuse_error = misuse


include "declarations.pxi"

cdef extern from "Python.h":
    ctypedef struct PyInterpreterState
    PyInterpreterState* PyInterpreterState_Get()
    int64_t PyInterpreterState_GetID(PyInterpreterState* interpreter)
    int check_signals "PyErr_CheckSignals"()  # leaves its exception set
    unsigned long thread_number "PyThread_get_thread_ident"() nogil

# The thread that ends the process. During interpreter shutdown, acquiring the GIL ends any other thread, which must
# not happen inside C++. So other threads no longer check for signals.
cdef atomic[unsigned long] _ending_thread


cdef cbool _was_interrupted() noexcept nogil:
    cdef unsigned long ending = _ending_thread.load()
    if ending != 0 and ending != thread_number():
        return False
    return _check_signals()


cdef bint _interrupted = False  # whether a signal's handler has ended a wait


cdef cbool _check_signals() noexcept with gil:
    global _interrupted
    if check_signals() == 0:
        return False
    _interrupted = True
    return True


# Threads of drivers and of the engine take Python's lock, which the end of a subinterpreter would wait for.
if PyInterpreterState_GetID(PyInterpreterState_Get()) != 0:
    raise ImportError("vkdispatch_native runs in the main interpreter only, not in subinterpreters")

set_signal_check(_was_interrupted)

# ---- instance

_engines = weakref.WeakSet()
cdef bint _ending = False
cdef bint _forked = False  # this process has the memory of its parent, but not its threads and devices

cdef extern from "<signal.h>" nogil:
    ctypedef void (*sighandler_t)(int)
    sighandler_t SIG_DFL
    int SIGINT
    sighandler_t signal(int number, sighandler_t handler)

# Engines under creation. No device may be created while the process ends and unloads its driver.
cdef atomic[int] _making
SECONDS_TO_MAKE = 20
DEF SILENT_WAIT_NS = 1_000_000_000  # at the end of the process


def _say_how_to_leave():
    """Say why the process does not end, to a user who is there or has pressed Ctrl-C before."""
    try:
        if _interrupted or sys.stderr.isatty():
            print("vkdispatch: waiting until the device has finished its work; press Ctrl-C to leave now",
                  file=sys.stderr, flush=True)
    except (AttributeError, OSError, ValueError):  # there is no stderr, or it is closed
        pass


def _shutdown():
    global _ending
    _ending = True
    _ending_thread.store(thread_number())
    process_is_ending.store(True)
    patience = monotonic() + SECONDS_TO_MAKE
    while _making.load() > 0 and monotonic() < patience:
        sleep(0.001)
    _finish_compiling()
    cdef bint compiling = CppPlanCreation.running() > 0  # closing would wait for the driver's compiler
    interrupt = None
    for reference in _engines.data.copy():
        engine = reference()
        if engine is None:
            continue
        if compiling:
            (<Engine>engine).abandon()
            continue
        try:
            if not (<Engine>engine).is_idle_within(SILENT_WAIT_NS):
                _say_how_to_leave()
            engine.close()
        except BaseException as error:
            interrupt = error
            if not (<Engine>engine).ptr.get().closed():
                (<Engine>engine).abandon()
            # The user does not want to wait: the next interrupt ends the process immediately.
            signal(SIGINT, SIG_DFL)
    CppInstance.destroy()
    if interrupt is not None:
        raise interrupt


def initialize(bint debug):
    if CppInstance.exists():
        return
    with nogil:
        CppInstance.create(debug)
    atexit.register(_shutdown)
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    """Leave all Vulkan objects to the parent: the child has none of its threads, and locks may be held."""
    global _ending, _forked
    _ending = _forked = True
    process_is_ending.store(True)
    atexit.unregister(_shutdown)
    for reference in _engines.data.copy():
        engine = reference()
        if engine is not None:
            (<Engine>engine).abandon()


def is_initialized():
    return bool(CppInstance.exists())


def validation_enabled():
    return bool(CppInstance.exists() and CppInstance.get().get().validation())


def take_messages():
    return [(m.first, m.second.decode("utf-8", "replace")) for m in cpp_take_messages()]


# Numbers of objects, unique over all contexts.
cdef atomic[uint64_t] _numbers


def take_number():
    return _numbers.fetch_add(1) + 1


def allocation_count():
    return cpp_allocation_count() if allocations_are_counted() else None


cdef dict _property_dict(int index, CppDeviceProperties& p):
    cdef uint32_t version = p.core.apiVersion
    limits = p.core.limits
    return {
        "dev_index": index,
        "version_variant": version >> 29,
        "version_major": (version >> 22) & 0x7F,
        "version_minor": (version >> 12) & 0x3FF,
        "version_patch": version & 0xFFF,
        "driver_version": p.core.driverVersion,
        "vendor_id": p.core.vendorID,
        "device_id": p.core.deviceID,
        "device_type": p.core.deviceType,
        "device_name": (<bytes>p.core.deviceName).decode("utf-8", "replace"),
        "shader_buffer_float32_atomics": p.atomic_float.shaderBufferFloat32Atomics,
        "shader_buffer_float32_atomic_add": p.atomic_float.shaderBufferFloat32AtomicAdd,
        "timestamp_period": p.core.limits.timestampPeriod if p.core.limits.timestampComputeAndGraphics else 0.0,
        "float_64_support": p.features.shaderFloat64,
        "float_16_support": p.features12.shaderFloat16,
        "int_64_support": p.features.shaderInt64,
        "int_16_support": p.features.shaderInt16,
        "storage_buffer_16_bit_access": p.features11.storageBuffer16BitAccess,
        "uniform_and_storage_buffer_16_bit_access": p.features11.uniformAndStorageBuffer16BitAccess,
        "storage_push_constant_16": p.features11.storagePushConstant16,
        "storage_input_output_16": p.features11.storageInputOutput16,
        "max_workgroup_size": tuple([limits.maxComputeWorkGroupSize[i] for i in range(3)]),
        "max_workgroup_invocations": limits.maxComputeWorkGroupInvocations,
        "max_workgroup_count": tuple([limits.maxComputeWorkGroupCount[i] for i in range(3)]),
        "max_bound_descriptor_sets": limits.maxBoundDescriptorSets,
        "max_bound_storage_buffers": min(limits.maxPerStageDescriptorStorageBuffers,
                                         limits.maxDescriptorSetStorageBuffers),
        "max_push_constant_size": limits.maxPushConstantsSize,
        "max_storage_buffer_range": limits.maxStorageBufferRange,
        "max_uniform_buffer_range": limits.maxUniformBufferRange,
        "uniform_buffer_alignment": limits.minUniformBufferOffsetAlignment,
        "sub_group_size": p.subgroup.subgroupSize,
        "supported_stages": p.subgroup.supportedStages,
        "supported_operations": p.subgroup.supportedOperations,
        "quad_operations_in_all_stages": p.subgroup.quadOperationsInAllStages,
        "max_compute_shared_memory_size": limits.maxComputeSharedMemorySize,
        "queue_properties": [(q.queueCount, q.queueFlags) for q in p.queue_families],
        "scalar_block_layout": p.features12.scalarBlockLayout,
        "timeline_semaphores": p.features12.timelineSemaphore,
        "uuid": bytes([p.id.deviceUUID[i] for i in range(16)]),
        "storage_image_extended_formats": p.features.shaderStorageImageExtendedFormats,
        "sampler_mirror_clamp_to_edge": p.features12.samplerMirrorClampToEdge,
        "storage_buffer_8_bit_access": p.features12.storageBuffer8BitAccess,
        "missing": [text.decode("utf-8", "replace") for text in p.missing],
        "features": frozenset([feature.name.decode() for feature in features_of(p) if feature.value[0]]),
        "extensions": tuple([text.decode("utf-8", "replace") for text in p.extensions]),
        "cooperative_matrices": tuple([
            (m.m, m.n, m.k, m.a, m.b, m.c, m.result, m.saturating, m.scope, m.flexible, m.invocations)
            for m in p.matrix_products
        ]),
    }


def device_properties():
    cdef CppDeviceProperties properties
    cdef size_t i
    result = []
    cdef shared_ptr[CppInstance] instance = CppInstance.get()
    for i in range(instance.get().physical_devices().size()):
        properties = query_properties(instance.get().handle(), instance.get().physical_devices()[i])
        result.append(_property_dict(i, properties))
    return result


def foreign_properties(uint64_t instance, uint64_t physical_device):
    cdef VkPhysicalDevice physical = <VkPhysicalDevice><uintptr_t>physical_device
    cdef CppDeviceProperties properties
    cdef VkInstance instance_handle = <VkInstance><uintptr_t>instance
    CppInstance.borrow(instance_handle, physical, False)
    properties = query_properties(instance_handle, physical)
    return _property_dict(0, properties)


def known_features():
    cdef CppDeviceProperties none
    return [
        (feature.name.decode(), feature.required, feature.extension.decode() if feature.extension != NULL else None)
        for feature in features_of(none)
    ]


cdef vector[string] _to_strings(names):
    cdef vector[string] result
    for name in names:
        result.push_back(name.encode())
    return result


# ---- the compiler

FORK_PATIENCE_NS = EXIT_PATIENCE_NS = 1_000_000_000
cdef bint _hooks_registered = False


cdef int _register_thread_hooks() except -1:
    """Register hooks so that background calls interfere neither with process exit nor with forks."""
    global _hooks_registered
    if not _hooks_registered:
        _hooks_registered = True
        atexit.register(_finish_compiling)
        # The child of a fork does not have the thread, so locks that it held would stay locked.
        os.register_at_fork(before=_finish_compiling_before_fork, after_in_child=_forget_background)
    return 0


def _finish_compiling():
    cdef uint64_t patience_ns = EXIT_PATIENCE_NS
    cdef cbool finished
    with nogil:
        finished = cpp_finish_compiling(patience_ns)
    if not finished:
        end_process_quickly()


def _finish_compiling_before_fork():
    cdef uint64_t patience_ns = FORK_PATIENCE_NS
    with nogil:
        cpp_finish_compiling(patience_ns)


def _forget_background():
    forget_background()


def compile_glsl(str source not None, str path not None="", int vulkan_minor=2, str preamble not None="",
                 includes=(), texts={}, cbool debug=False):
    cdef string text = source.encode()
    cdef GlslOptions options
    options.path = path.encode("utf-8", "surrogateescape")
    options.vulkan_minor = vulkan_minor
    options.preamble = preamble.encode()
    options.debug = debug
    for place, name, quoted, target in includes:
        options.includes[CppDirective(place.encode(), name.encode(), quoted)] = target.encode()
    for name, content in texts.items():
        if not name or not name.isprintable() or '"' in name:
            raise ValueError(f"texts: {name!r} cannot be the name of an included file")
        options.texts[name.encode()] = content.encode()
    _register_thread_hooks()
    cdef shared_ptr[CppCompilation] compilation = CppCompilation.start(text, options)
    with nogil:
        compilation.get().wait()
    cdef const vector[uint32_t]* spirv = &compilation.get().spirv()
    return (<const char*>spirv.data())[: spirv.size() * 4]


cdef vector[uint32_t] _read_words(bytes spirv) except *:
    if len(spirv) % 4 != 0:
        raise ValueError(f"spirv: {len(spirv)} bytes are not a number of words")
    cdef vector[uint32_t] words
    words.resize(len(spirv) // 4)
    memcpy(words.data(), <const char*>spirv, len(spirv))
    return words


def disassemble_spirv(bytes spirv not None):
    cdef vector[uint32_t] words = _read_words(spirv)
    cdef string text
    with nogil:
        text = cpp_disassemble(words)
    return text.decode("utf-8", "replace")


def find_spirv_error(bytes spirv not None):
    cdef vector[uint32_t] words = _read_words(spirv)
    _register_thread_hooks()
    cdef shared_ptr[CppValidation] validation = CppValidation.start(words)
    with nogil:
        validation.get().wait()
    return validation.get().complaint().decode("utf-8", "replace") or None


def compiler_identity():
    return cpp_compiler_identity().decode()


def compile_count():
    return cpp_compile_count()


def prepare_compiler():
    _register_thread_hooks()
    cpp_prepare_compiler()

# ---- engine


cdef list _queue_tuples(vector[CppQueueHandle] queues):
    return [(queue.family, queue.index if queue.index != UNKNOWN_INDEX else None, <uintptr_t>queue.handle)
            for queue in queues]


cdef class Engine:
    cdef shared_ptr[CppEngine] ptr
    cdef list notes  # by ticket: what error messages are created from
    cdef object on_found
    cdef object samplers  # settings -> SamplerState: devices support only a few thousand samplers
    cdef dict shared  # address -> (weak reference to a Buffer, bytes) of memory that the host uses, too
    cdef object __weakref__

    def __init__(self, device_indices, queue_families, bint debug, bint force_staging, extensions=(),
                 uint64_t timeout_ns=0):
        cdef vector[uint32_t] devices = device_indices
        cdef vector[vector[uint32_t]] families = queue_families
        cdef vector[string] names = _to_strings(extensions)
        self.begin()
        try:
            with nogil:
                self.ptr.reset(new CppEngine(devices, families, names, debug, force_staging, timeout_ns))
            _engines.add(self)
        finally:
            _making.fetch_sub(1)

    @staticmethod
    def on_handles(uint64_t instance, uint64_t physical_device, uint64_t device, queues, extensions, features, bint debug,
                   bint force_staging, uint64_t timeout_ns=0):
        cdef CppForeignDevice foreign
        cdef CppForeignQueue queue
        cdef VkInstance instance_handle = <VkInstance><uintptr_t>instance
        cdef uint32_t index
        cdef uint64_t handle
        foreign.physical = <VkPhysicalDevice><uintptr_t>physical_device
        foreign.handle = <VkDevice><uintptr_t>device
        for queue.family, index, handle in queues:
            queue.index = index
            queue.handle = <VkQueue><uintptr_t>handle
            foreign.queues.push_back(queue)
        foreign.extensions = _to_strings(extensions)
        foreign.features = _to_strings(features)
        cdef Engine self = Engine.__new__(Engine)
        cdef shared_ptr[CppInstance] borrowed
        self.begin()
        try:
            with nogil:
                borrowed = CppInstance.borrow(instance_handle, foreign.physical, debug)
                self.ptr.reset(new CppEngine(borrowed, foreign, debug, force_staging, timeout_ns))
            _engines.add(self)
        finally:
            _making.fetch_sub(1)
        return self

    cdef int begin(self) except -1:
        """Begin to create the engine; _making counts it until it is done."""
        if self.ptr.get() != NULL:
            raise misuse_error("an engine is initialized once")
        self.samplers = weakref.WeakValueDictionary()
        self.shared = {}
        _making.fetch_add(1)
        if _ending:
            _making.fetch_sub(1)
            raise misuse_error("the process is ending, or was forked from one that uses Vulkan (use the spawn method)")
        return 0

    @property
    def handles(self):
        cdef CppEngine* engine = self.open()
        cdef const CppDevice* device
        cdef vector[vector[CppQueueHandle]] transfers
        cdef size_t i
        devices = []
        for i in range(engine.devices().size()):
            device = engine.devices()[i].get()
            transfers = device.transfer_queues()
            devices.append((<uintptr_t>device.physical(), <uintptr_t>device.handle(), _queue_tuples(device.queues()),
                            [_queue_tuples(queues) for queues in transfers]))
        return <uintptr_t>engine.instance().handle(), devices

    @property
    def device_properties(self):
        cdef CppEngine* engine = self.open()
        cdef CppDeviceProperties properties
        cdef size_t i
        result = []
        for i in range(engine.devices().size()):
            properties = engine.devices()[i].get().properties()
            result.append(_property_dict(i, properties))
        return result

    def __dealloc__(self):
        if self.ptr.get() != NULL and not self.ptr.get().closed():
            try:
                self.close()
            except KeyboardInterrupt:
                PyErr_SetInterrupt()  # nothing catches it here: raise it again when Python code runs

    cdef abandon(self):
        self.ptr.get().abandon()
        # Its destructor would wait for threads that this process does not have, so it never runs.
        new shared_ptr[CppEngine](self.ptr)

    cdef bint is_idle_within(self, uint64_t timeout_ns) except -1:
        """Whether all work ends in this time, or has failed."""
        cdef CppEngine* engine = self.ptr.get()
        cdef cbool done = True
        cdef uint64_t value
        cdef size_t slot
        if engine == NULL or engine.closed() or engine.lost():
            return True
        for slot in range(SLOTS_PER_QUEUE * engine.queue_count()):
            if engine.has_queue(slot):
                try:
                    value = engine.last_point(slot)
                    with nogil:
                        done = engine.wait_for_batches(slot, value, value, timeout_ns)
                except Exception:  # whatever it is, close() comes next
                    return True
            if not done:
                return False
        return True

    cdef CppEngine* open(self) except NULL:
        if self.ptr.get() == NULL:
            raise misuse_error("the engine was not created")
        self.ptr.get().check_open()
        return self.ptr.get()

    cdef int wait(self, size_t queue, uint64_t value, bint alone=False) except -1:
        """Wait for a queue's work up to a batch. Raise failures of that work or, with `alone`, of this batch."""
        cdef CppEngine* engine = self.open()
        mark_unrepeatable()
        with nogil:
            engine.wait(queue, value, FOREVER, alone)
        return 0

    cdef int raise_notes(self, size_t slot, uint64_t value) except -1:
        """Raise errors recorded by kernels up to a batch (FOREVER: all finished ones). Fast if there are none."""
        if self.ptr.get().has_unseen_notes():
            self.call_on_found(slot, value)
        return 0

    cdef int call_on_found(self, size_t slot, uint64_t value) except -1:
        cdef CppEngine* engine = self.ptr.get()
        callback = self.on_found
        if value == FOREVER:
            value = engine.completed(slot)
        if callback is not None:
            callback(self, slot, value)
        return 0

    def open_journal(self, on_found):
        cdef Buffer journal_buffer = Buffer.__new__(Buffer)
        journal_buffer.begin(self, "a buffer")
        journal_buffer.ptr = self.open().create_journal()
        journal_buffer.resource = journal_buffer.ptr
        self.notes = [None] * JOURNAL_TICKETS
        self.on_found = on_found
        return journal_buffer

    def take_ticket(self, note):
        cdef uint32_t ticket = self.open().take_ticket()
        if ticket != 0:
            self.notes[ticket] = note
        return ticket

    def stale_tickets(self):
        cdef CppEngine* engine = self.open()
        cdef int half
        with nogil:
            half = engine.stale_tickets()
        return half

    def renew_tickets(self, int half):
        self.open().journal().renew(half)

    def journal(self, size_t queue):
        cdef CppJournal* journal = self.ptr.get().journal()
        cdef cbool complete = self.ptr.get().is_journal_complete(queue)
        return complete, (<const char*>journal.words(queue))[: JOURNAL_WORDS * 4]

    def note_of(self, uint32_t ticket, size_t queue):
        cdef CppEngine* engine = self.ptr.get()
        cdef size_t slot
        slots = range(queue, SLOTS_PER_QUEUE * engine.queue_count(), engine.queue_count())
        return self.notes[ticket], {slot: engine.journal().point(ticket, slot) for slot in slots}

    def mark_notes_read(self, size_t queue, uint32_t notes):
        self.ptr.get().journal().mark_seen(queue, notes)

    def clear_standing_ticket(self, size_t queue, uint32_t ticket):
        if not JOURNAL_STANDING <= ticket < JOURNAL_WORDS or queue >= self.ptr.get().journal().queue_count():
            raise ValueError(f"ticket: {ticket} of queue {queue} is no standing ticket")
        self.ptr.get().journal().clear_standing(queue, ticket)

    def set_pending_errors(self, bint waiting):
        self.ptr.get().journal().set_waiting(waiting)

    @property
    def queue_count(self):
        return self.open().queue_count()

    @property
    def host_mapped(self):
        cdef CppEngine* engine = self.open()
        cdef size_t i
        for i in range(engine.devices().size()):
            if not engine.devices()[i].get().host_mapped():
                return False
        return True

    @property
    def imports_host_memory(self):
        cdef CppEngine* engine = self.open()
        # Memory is imported with the rest of its pages, which are known to be there.
        return bool(engine.devices().size() == 1 and engine.devices()[0].get().imports_pages()
                    and engine.devices()[0].get().import_alignment() <= <uint64_t>os.sysconf("SC_PAGE_SIZE"))

    @property
    def binding_alignment(self):
        return max(self.open().limits().storage_alignment, self.open().limits().uniform_alignment)

    @property
    def max_storage_range(self):
        return self.open().limits().storage_range

    def image_features(self, int format):
        if format < 0:
            raise ValueError(f"format: there is no VkFormat {format}")
        return self.open().image_features(format)

    @property
    def lost(self):
        return bool(self.ptr.get() != NULL and self.ptr.get().lost())

    @property
    def abandoned(self):
        return bool(self.ptr.get() != NULL and self.ptr.get().hung())

    @property
    def failures(self):
        return self.ptr.get().failures() if self.ptr.get() != NULL else 0

    def wait_idle(self, int queue=-1):
        cdef size_t q, slot, i
        cdef size_t count = self.open().queue_count()
        for q in _queue_range(self, queue):
            for i in range(SLOTS_PER_QUEUE):
                slot = q + i * count
                if self.open().has_queue(slot):
                    self.wait(slot, self.open().last_point(slot))
        for q in _queue_range(self, queue):
            self.raise_notes(q, FOREVER)

    def last_value(self, size_t queue):
        return self.open().last_value(queue)

    def wait_for(self, size_t queue, uint64_t value, bint block):
        cdef CppEngine* engine = self.open()
        cdef cbool done
        mark_unrepeatable()
        with nogil:
            done = engine.wait(queue, value, FOREVER if block else 0, False)
        if block:
            self.raise_notes(queue, value)
        return bool(done)

    def flush(self, size_t queue, uint64_t value):
        cdef CppEngine* engine = self.open()
        with nogil:
            engine.flush(queue, value)

    def wait_until(self, points, timeout, bint alone=False, bint tells=True):
        cdef CppEngine* engine = self.open()
        cdef double end = monotonic() + timeout if timeout is not None else 0
        cdef size_t slot
        cdef uint64_t value
        cdef uint64_t left_ns = FOREVER
        cdef cbool done
        mark_unrepeatable()
        for slot, value in points:
            if timeout is not None:
                left_ns = <uint64_t>(min(max(end - monotonic(), 0.0), MOST_SECONDS) * 1e9)
            with nogil:
                done = engine.wait(slot, value, left_ns, alone)
            if not done:
                return False
        if tells and timeout != 0:
            for slot, value in points:
                self.raise_notes(slot, value)
        return True

    @property
    def exports(self):
        return self.open().devices().front().get().exports()

    def take_freed_blocks(self):
        return [number for number in self.open().take_freed_blocks()]

    def export_timeline(self, size_t slot):
        return self.open().export_timeline(slot)

    def export_incoming(self, size_t number):
        return self.open().export_incoming(number)

    def submit_all(self, int queue):
        cdef CppEngine* engine = self.open()
        cdef size_t slot
        cdef uint64_t value
        mark_unrepeatable()
        points = []
        for slot in range(queue, SLOTS_PER_QUEUE * engine.queue_count(), engine.queue_count()):
            if engine.has_queue(slot):
                with nogil:
                    value = engine.submit_all(slot)
                points.append((slot, value))
        return points

    def wait_for_incoming(self, size_t queue, size_t number, uint64_t value):
        mark_unrepeatable()
        self.open().wait_for_incoming(queue, number, value)

    def work_points(self, int queue=-1):
        cdef vector[CppPoint] points
        queues = _queue_range(self, queue)
        points = self.open().work_points(queues[0], queues[-1] + 1)
        return _point_tuples(points)

    def follow(self, points, int queue=-1):
        cdef vector[CppPoint] native_points
        cdef CppPoint point
        for slot, value in points:
            point.slot, point.value = slot, value
            native_points.push_back(point)
        queues = _queue_range(self, queue)
        self.open().follow(queues[0], queues[-1] + 1, native_points)

    @property
    def transfer_queues(self):
        cdef size_t count = self.open().queue_count()
        cdef size_t slot
        return sum([bool(self.open().has_queue(slot)) for slot in range(count, SLOTS_PER_QUEUE * count)])

    def close(self):
        cdef CppEngine* engine = self.ptr.get()
        cdef size_t queue
        if engine != NULL:
            with nogil:
                engine.close(True)
            release_dropped_references()
            if not engine.lost() and engine.has_unseen_notes():
                for queue in range(engine.journal().queue_count()):
                    self.raise_notes(queue, FOREVER)

    def describe_work(self, int queue=-1):
        # Not open(): this describes a lost device.
        cdef CppEngine* engine = self.ptr.get()
        cdef size_t q, slot, i, count
        cdef string text
        if engine == NULL:
            raise misuse_error("the engine was not created")
        count = engine.queue_count()
        if queue != -1 and not 0 <= queue < <int>count:
            raise ValueError(f"queue {queue} does not exist: the context has {count}")
        parts = []
        for q in range(count) if queue == -1 else (queue,):
            for i in range(SLOTS_PER_QUEUE):
                slot = q + i * count
                if engine.has_queue(slot):
                    with nogil:
                        text = engine.describe_work(slot)
                    if not text.empty():
                        parts.append(f"queue {q}: " + text.decode("utf-8", "replace"))
        return "; ".join(parts)

    def statistics(self):
        cdef CppStatistics s = self.open().statistics()
        return {"commands": s.commands, "submits": s.submits, "barriers": s.barriers, "live_objects": s.live_objects,
                "waiting_frees": s.waiting_frees, "device_memory": s.device_memory,
                "pinned_blocks": s.pinned_blocks, "allocations": s.allocations, "idle_memory": s.idle_memory,
                "heap_memory": s.heap_memory, "memory_budget": s.memory_budget, "memory_usage": s.memory_usage}

    def set_barriers_enabled(self, bint enabled):
        self.open().set_barriers_enabled(enabled)


cdef _queue_range(Engine engine, int queue):
    """Return the queues for a queue index: -1 and -2 mean all of them."""
    cdef int count = <int>engine.open().queue_count()
    if queue in (-1, -2):
        return range(count)
    if not 0 <= queue < count:
        raise ValueError(f"queue {queue} does not exist: the context has {count}")
    return (queue,)


# Number of destroy() calls so far: command lists check their objects again when it changes.
cdef atomic[uint64_t] _destroyed


include "dlpack.pxi"
include "data.pxi"
include "commands.pxi"
include "guards.pxi"
include "launching.pxi"
include "repeating.pxi"
include "timing.pxi"
include "fft.pxi"
include "expressions.pxi"
include "expression_bounds.pxi"
include "operators.pxi"
