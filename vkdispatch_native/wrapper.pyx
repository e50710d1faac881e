# cython: language_level=3, binding=False, embedsignature=False, auto_pickle=False
"""The engine as Python sees it: argument conversion, errors and the GIL. See __init__.pyi for what each name does."""

import atexit
import os
import weakref

from cpython.buffer cimport PyBUF_CONTIG, PyBUF_CONTIG_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AsDouble
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "<cstddef>" namespace "std" nogil:
    cdef cppclass byte:
        pass

cdef extern from "bridge.hpp" namespace "vkd":
    int current_error(string& text)

# ---- errors

cdef object _error_types = (RuntimeError, RuntimeError, MemoryError, ValueError)


cdef int raise_error() except -1:
    cdef string text
    cdef int kind = current_error(text)
    message = text.decode("utf-8", "replace")
    if kind < 0:
        raise RuntimeError(message)
    raise _error_types[kind](message)


def set_error_types(vulkan, device_lost, out_of_memory):
    global _error_types
    _error_types = (vulkan, device_lost, out_of_memory, ValueError)


cdef extern from "libs/vulkan.hpp" nogil:
    ctypedef void* VkPhysicalDevice
    ctypedef struct VkPhysicalDeviceLimits:
        uint32_t maxComputeWorkGroupSize[3]
        uint32_t maxComputeWorkGroupInvocations
        uint32_t maxComputeWorkGroupCount[3]
        uint32_t maxBoundDescriptorSets
        uint32_t maxPushConstantsSize
        uint32_t maxStorageBufferRange
        uint32_t maxUniformBufferRange
        uint64_t minUniformBufferOffsetAlignment
        uint32_t maxComputeSharedMemorySize
    ctypedef struct VkPhysicalDeviceProperties:
        uint32_t apiVersion
        uint32_t driverVersion
        uint32_t vendorID
        uint32_t deviceID
        int deviceType
        char* deviceName
        VkPhysicalDeviceLimits limits
    ctypedef struct VkPhysicalDeviceSubgroupProperties:
        uint32_t subgroupSize
        uint32_t supportedStages
        uint32_t supportedOperations
        uint32_t quadOperationsInAllStages
    ctypedef struct VkPhysicalDeviceIDProperties:
        uint8_t deviceUUID[16]
    ctypedef struct VkPhysicalDeviceFeatures:
        uint32_t shaderStorageImageExtendedFormats
        uint32_t shaderFloat64
        uint32_t shaderInt64
        uint32_t shaderInt16
    ctypedef struct VkPhysicalDeviceVulkan11Features:
        uint32_t storageBuffer16BitAccess
        uint32_t uniformAndStorageBuffer16BitAccess
        uint32_t storagePushConstant16
        uint32_t storageInputOutput16
    ctypedef struct VkPhysicalDeviceVulkan12Features:
        uint32_t samplerMirrorClampToEdge
        uint32_t shaderFloat16
        uint32_t scalarBlockLayout
        uint32_t storageBuffer8BitAccess
        uint32_t timelineSemaphore
        uint32_t shaderInt8
        uint32_t uniformAndStorageBuffer8BitAccess
        uint32_t storagePushConstant8
        uint32_t shaderBufferInt64Atomics
        uint32_t shaderSharedInt64Atomics
        uint32_t shaderSubgroupExtendedTypes
    ctypedef struct VkPhysicalDeviceShaderAtomicFloatFeaturesEXT:
        uint32_t shaderBufferFloat32Atomics
        uint32_t shaderBufferFloat32AtomicAdd
        uint32_t shaderBufferFloat64Atomics
        uint32_t shaderBufferFloat64AtomicAdd
        uint32_t shaderSharedFloat32Atomics
        uint32_t shaderSharedFloat32AtomicAdd
        uint32_t shaderSharedFloat64Atomics
        uint32_t shaderSharedFloat64AtomicAdd
    ctypedef struct VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT:
        uint32_t shaderBufferFloat16Atomics
        uint32_t shaderBufferFloat16AtomicAdd
        uint32_t shaderBufferFloat16AtomicMinMax
        uint32_t shaderBufferFloat32AtomicMinMax
        uint32_t shaderBufferFloat64AtomicMinMax
        uint32_t shaderSharedFloat16Atomics
        uint32_t shaderSharedFloat16AtomicAdd
        uint32_t shaderSharedFloat16AtomicMinMax
        uint32_t shaderSharedFloat32AtomicMinMax
        uint32_t shaderSharedFloat64AtomicMinMax
    ctypedef struct VkSpecializationMapEntry:
        uint32_t constantID
        uint32_t offset
        size_t size
    ctypedef struct VkQueueFamilyProperties:
        uint32_t queueFlags
        uint32_t queueCount

cdef extern from "context/device.hpp" namespace "vkd" nogil:
    cdef cppclass CppDeviceProperties "vkd::DeviceProperties":
        VkPhysicalDeviceProperties core
        VkPhysicalDeviceSubgroupProperties subgroup
        VkPhysicalDeviceIDProperties id
        VkPhysicalDeviceFeatures features
        VkPhysicalDeviceVulkan11Features features11
        VkPhysicalDeviceVulkan12Features features12
        VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float
        VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2
        vector[VkQueueFamilyProperties] queue_families
        vector[string] missing
    CppDeviceProperties query_properties(VkPhysicalDevice) except +raise_error

cdef extern from "context/instance.hpp" namespace "vkd" nogil:
    cdef cppclass CppInstance "vkd::Instance":
        @staticmethod
        void create(cbool debug) except +raise_error
        @staticmethod
        void destroy()
        @staticmethod
        shared_ptr[CppInstance] get() except +raise_error
        @staticmethod
        cbool exists()
        cbool validation()
        const vector[VkPhysicalDevice]& physical_devices()
    vector[pair[int, string]] cpp_take_messages "vkd::take_messages"()

cdef extern from "libs/glslang.hpp" namespace "vkd" nogil:
    vector[uint32_t] cpp_compile_glsl "vkd::compile_glsl"(const string& source) except +raise_error

cdef extern from * nogil:
    """
    #include "objects/image.hpp"
    #include "objects/sampler.hpp"
    // Plain numbers for enumerations, which Cython would not convert by itself.
    inline vkd::ImageShape image_shape(int view_type, int format, uint32_t width, uint32_t height, uint32_t depth,
                                       uint32_t layers, uint32_t levels, bool storage) {
      return {static_cast<VkImageViewType>(view_type), static_cast<VkFormat>(format), {width, height, depth},
              layers, levels, storage};
    }
    inline vkd::SamplerSettings sampler_settings(uint32_t mag, uint32_t min, uint32_t mip, uint32_t address, float bias,
                                                 float min_lod, float max_lod, uint32_t border) {
      return {static_cast<VkFilter>(mag), static_cast<VkFilter>(min), static_cast<VkSamplerMipmapMode>(mip),
              static_cast<VkSamplerAddressMode>(address), bias, min_lod, max_lod, static_cast<VkBorderColor>(border)};
    }
    inline int view_type(const vkd::Image& image) { return image.shape().view_type; }
    inline int image_format(const vkd::Image& image) { return image.shape().format; }
    inline bool storable(const vkd::Image& image) { return image.shape().storage; }
    inline bool sampleable(const vkd::Image& image) { return image.sampled_view(0) != VK_NULL_HANDLE; }
    inline int numeric_kind(const vkd::Image& image) { return static_cast<int>(image.numeric()); }
    """
    ctypedef struct CppImageShape "vkd::ImageShape":
        uint32_t levels
    ctypedef struct CppSamplerSettings "vkd::SamplerSettings":
        pass
    cdef cppclass CppImage "vkd::Image":
        uint64_t last_use(size_t queue)
        uint64_t last_write(size_t queue)
        uint64_t level_size(uint32_t level)
        const CppImageShape& shape()
    cdef cppclass CppSampler "vkd::Sampler":
        pass
    CppImageShape image_shape(int view_type, int format, uint32_t width, uint32_t height, uint32_t depth,
                              uint32_t layers, uint32_t levels, cbool storage)
    CppSamplerSettings sampler_settings(uint32_t mag, uint32_t min, uint32_t mip, uint32_t address, float bias,
                                        float min_lod, float max_lod, uint32_t border)
    int view_type(const CppImage& image)
    int image_format(const CppImage& image)
    cbool storable(const CppImage& image)
    cbool sampleable(const CppImage& image)
    int numeric_kind(const CppImage& image)

cdef extern from "stages/command.hpp" namespace "vkd" nogil:
    cdef cppclass CppBuffer "vkd::Buffer":
        uint64_t size()
        uint64_t last_use(size_t queue)
        uint64_t last_write(size_t queue)
        const CppMemory& memory(size_t queue)
    cdef cppclass CppMemory "vkd::Memory":
        byte* mapped()
    cdef cppclass CppPlan "vkd::Plan":
        size_t binding_count()
        int type(uint32_t binding)
        cbool refuses(uint32_t binding, const CppImage& image)
        uint32_t push_constant_size()
    cdef cppclass CppSpecialization "vkd::Specialization":
        vector[VkSpecializationMapEntry] entries
        vector[byte] data
    cdef cppclass CppBinding "vkd::Binding":
        CppBuffer* buffer
        CppImage* image
        CppSampler* sampler
        uint64_t offset
        uint64_t range
        uint32_t index
        cbool reads
        cbool writes
    cdef cppclass CppGroups "vkd::Groups":
        uint32_t x
        uint32_t y
        uint32_t z
    cdef cppclass CppDispatch "vkd::Dispatch":
        CppPlan* plan
        CppGroups groups
        const CppBinding* bindings
        uint32_t binding_count
        const byte* arguments
        uint32_t argument_size
        int32_t uniform_binding

cdef extern from "engine.hpp" namespace "vkd" nogil:
    cdef cppclass CppCommandList "vkd::CommandList":
        size_t record(const CppDispatch& dispatch) except +raise_error
        size_t instance_size()
        size_t length()
    cdef cppclass CppStatistics "vkd::Statistics":
        uint64_t commands
        uint64_t submits
        uint64_t barriers
        uint64_t live_objects
        uint64_t waiting_frees
        uint64_t device_memory
    cdef cppclass CppLimits "vkd::Limits":
        uint64_t storage_range
        uint64_t uniform_range
        uint64_t storage_alignment
        uint64_t uniform_alignment
    cdef cppclass CppEngine "vkd::Engine":
        CppEngine(const vector[uint32_t]& devices, const vector[vector[uint32_t]]& families, cbool debug,
                  cbool force_staging) except +raise_error
        size_t queue_count()
        const CppLimits& limits()
        cbool lost()
        cbool closed()
        void check_open() except +raise_error
        CppBuffer* create_buffer(uint64_t size) except +raise_error
        CppImage* create_image(const CppImageShape& shape) except +raise_error
        CppSampler* create_sampler(const CppSamplerSettings& settings) except +raise_error
        uint32_t image_features(int format) except +raise_error
        CppPlan* create_plan(const vector[uint32_t]& spirv, const vector[int]& binding_types, uint32_t push_size,
                             const string& name, const string& entry_point,
                             const CppSpecialization& specialization) except +raise_error
        CppCommandList* create_command_list() except +raise_error
        void destroy(CppCommandList* commands)
        void retire(CppBuffer* buffer)
        void retire(CppImage* image)
        void retire(CppSampler* sampler)
        void retire(CppPlan* plan)
        cbool append(const CppDispatch& dispatch) except +raise_error
        void make_room() except +raise_error
        uint64_t last_value(size_t queue) except +raise_error
        cbool wait(size_t queue, uint64_t value, uint64_t timeout_ns) except +raise_error
        void flush(size_t queue, uint64_t value) except +raise_error
        size_t least_busy() except +raise_error
        void copy_between(CppBuffer& buffer, size_t first, size_t second) except +raise_error
        void upload(size_t queue, CppBuffer& buffer, uint64_t offset, const byte* data, uint64_t size) except +raise_error
        void download(size_t queue, CppBuffer& buffer, uint64_t offset, byte* data, uint64_t size) except +raise_error
        void upload(size_t queue, CppImage& image, uint32_t level, const byte* data, uint64_t size) except +raise_error
        void download(size_t queue, CppImage& image, uint32_t level, byte* data, uint64_t size) except +raise_error
        void submit(CppCommandList& commands, size_t first, size_t last, const byte* arguments, size_t size,
                    size_t count) except +raise_error
        void reset(CppCommandList& commands) except +raise_error
        void abandon()
        void close()
        CppStatistics statistics() except +raise_error
        void set_barriers_enabled(cbool enabled)

DEF SAMPLED_IMAGE = 1  # VK_DESCRIPTOR_TYPE_*, with its sampler
DEF STORAGE_IMAGE = 3
DEF UNIFORM_BUFFER = 6
DEF STORAGE_BUFFER = 7
DEF MAX_ARGUMENTS = 16384  # bytes: the uniform range that every device grants
DEF MAX_BINDINGS = 256
DEF SIGNAL_CHECK_NS = 50000000  # how long Ctrl-C may go unnoticed

# ---- instance

_engines = weakref.WeakSet()
cdef bint _ending = False


def _shutdown():
    global _ending
    _ending = True
    for reference in _engines.data.copy():
        engine = reference()
        if engine is not None:
            engine.close()
    CppInstance.destroy()


def initialize(bint debug):
    if CppInstance.exists():
        return
    CppInstance.create(debug)
    atexit.register(_shutdown)
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork():
    """Leave everything of Vulkan to the parent: its threads and locks did not come along."""
    global _ending
    _ending = True
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


cdef dict _optional(CppDeviceProperties& p):
    """Vulkan features that kernels may need beyond those with an attribute of their own."""
    return {
        "shaderInt8": p.features12.shaderInt8,
        "storageBuffer8BitAccess": p.features12.storageBuffer8BitAccess,
        "uniformAndStorageBuffer8BitAccess": p.features12.uniformAndStorageBuffer8BitAccess,
        "storagePushConstant8": p.features12.storagePushConstant8,
        "shaderBufferInt64Atomics": p.features12.shaderBufferInt64Atomics,
        "shaderSharedInt64Atomics": p.features12.shaderSharedInt64Atomics,
        "shaderSubgroupExtendedTypes": p.features12.shaderSubgroupExtendedTypes,
        "shaderBufferFloat32Atomics": p.atomic_float.shaderBufferFloat32Atomics,
        "shaderBufferFloat32AtomicAdd": p.atomic_float.shaderBufferFloat32AtomicAdd,
        "shaderBufferFloat64Atomics": p.atomic_float.shaderBufferFloat64Atomics,
        "shaderBufferFloat64AtomicAdd": p.atomic_float.shaderBufferFloat64AtomicAdd,
        "shaderSharedFloat32Atomics": p.atomic_float.shaderSharedFloat32Atomics,
        "shaderSharedFloat32AtomicAdd": p.atomic_float.shaderSharedFloat32AtomicAdd,
        "shaderSharedFloat64Atomics": p.atomic_float.shaderSharedFloat64Atomics,
        "shaderSharedFloat64AtomicAdd": p.atomic_float.shaderSharedFloat64AtomicAdd,
        "shaderBufferFloat16Atomics": p.atomic_float2.shaderBufferFloat16Atomics,
        "shaderBufferFloat16AtomicAdd": p.atomic_float2.shaderBufferFloat16AtomicAdd,
        "shaderBufferFloat16AtomicMinMax": p.atomic_float2.shaderBufferFloat16AtomicMinMax,
        "shaderBufferFloat32AtomicMinMax": p.atomic_float2.shaderBufferFloat32AtomicMinMax,
        "shaderBufferFloat64AtomicMinMax": p.atomic_float2.shaderBufferFloat64AtomicMinMax,
        "shaderSharedFloat16Atomics": p.atomic_float2.shaderSharedFloat16Atomics,
        "shaderSharedFloat16AtomicAdd": p.atomic_float2.shaderSharedFloat16AtomicAdd,
        "shaderSharedFloat16AtomicMinMax": p.atomic_float2.shaderSharedFloat16AtomicMinMax,
        "shaderSharedFloat32AtomicMinMax": p.atomic_float2.shaderSharedFloat32AtomicMinMax,
        "shaderSharedFloat64AtomicMinMax": p.atomic_float2.shaderSharedFloat64AtomicMinMax,
    }


cdef dict _properties(int index, CppDeviceProperties& p):
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
        "features": frozenset([name for name, has in _optional(p).items() if has]),
    }


def device_properties():
    cdef CppDeviceProperties properties
    cdef size_t i
    result = []
    cdef shared_ptr[CppInstance] instance = CppInstance.get()
    for i in range(instance.get().physical_devices().size()):
        properties = query_properties(instance.get().physical_devices()[i])
        result.append(_properties(i, properties))
    return result


def compile_glsl(str source not None):
    cdef string text = source.encode()
    cdef vector[uint32_t] spirv
    with nogil:
        spirv = cpp_compile_glsl(text)
    return (<const char*>spirv.data())[: spirv.size() * 4]

# ---- engine


cdef class Engine:
    cdef shared_ptr[CppEngine] ptr
    cdef object samplers  # settings -> SamplerState: devices grant a few thousand samplers only
    cdef object __weakref__

    def __init__(self, device_indices, queue_families, bint debug, bint force_staging):
        cdef vector[uint32_t] devices = device_indices
        cdef vector[vector[uint32_t]] families = queue_families
        if self.ptr.get() != NULL:
            raise RuntimeError("an engine is initialized once")
        if _ending:
            raise RuntimeError("the process is ending, or was forked from one that uses Vulkan (use the spawn method)")
        self.samplers = weakref.WeakValueDictionary()
        with nogil:
            self.ptr.reset(new CppEngine(devices, families, debug, force_staging))
        _engines.add(self)

    def __dealloc__(self):
        cdef CppEngine* engine = self.ptr.get()
        if engine != NULL and not engine.closed():
            with nogil:
                engine.close()

    cdef abandon(self):
        self.ptr.get().abandon()
        # Its destructor would wait for threads that this process does not have: it is never run.
        new shared_ptr[CppEngine](self.ptr)

    cdef CppEngine* open(self) except NULL:
        if self.ptr.get() == NULL:
            raise RuntimeError("the engine was not created")
        self.ptr.get().check_open()
        return self.ptr.get()

    cdef int wait(self, size_t queue, uint64_t value) except -1:
        cdef CppEngine* engine = self.open()
        cdef cbool done = False
        while not done:
            with nogil:
                done = engine.wait(queue, value, SIGNAL_CHECK_NS)
            PyErr_CheckSignals()
        return 0

    @property
    def queue_count(self):
        return self.open().queue_count()

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

    def wait_idle(self, int queue=-1):
        cdef size_t q
        for q in _queue_range(self, queue):
            self.wait(q, self.open().last_value(q))

    def last_value(self, size_t queue):
        return self.open().last_value(queue)

    def wait_for(self, size_t queue, uint64_t value, bint block):
        cdef CppEngine* engine = self.open()
        cdef cbool done
        if block:
            self.wait(queue, value)
            return True
        with nogil:
            done = engine.wait(queue, value, 0)
        return bool(done)

    def flush(self, size_t queue, uint64_t value):
        cdef CppEngine* engine = self.open()
        with nogil:
            engine.flush(queue, value)

    def close(self):
        cdef CppEngine* engine = self.ptr.get()
        if engine != NULL:
            with nogil:
                engine.close()

    def statistics(self):
        cdef CppStatistics s = self.open().statistics()
        return {"commands": s.commands, "submits": s.submits, "barriers": s.barriers, "live_objects": s.live_objects,
                "waiting_frees": s.waiting_frees, "device_memory": s.device_memory}

    def set_barriers_enabled(self, bint enabled):
        self.open().set_barriers_enabled(enabled)


cdef _queue_range(Engine engine, int queue):
    """The queues meant by a queue index: -1 or -2 for all of them."""
    cdef int count = <int>engine.open().queue_count()
    if queue in (-1, -2):
        return range(count)
    if not 0 <= queue < count:
        raise ValueError(f"queue {queue} does not exist: the context has {count}")
    return (queue,)


cdef uint64_t _destroyed = 0  # explicit destroy() calls so far: command lists look again when it moved
cdef uint64_t _deallocated = 0  # buffers, images and samplers that went away by themselves

# ---- buffers


cdef class HostMemory:
    """Contiguous host memory, held for the length of a call."""

    cdef Py_buffer view

    def __cinit__(self, source, bint writable):
        PyObject_GetBuffer(source, &self.view, PyBUF_CONTIG if writable else PyBUF_CONTIG_RO)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef class Buffer:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep  # the garbage collector may take `engine` first
    cdef CppBuffer* ptr
    cdef int users  # threads inside a transfer without the GIL: destroy() waits for the last of them
    cdef bint doomed

    def __init__(self, Engine engine not None, uint64_t size):
        cdef CppEngine* e = engine.open()
        if self.ptr != NULL:
            raise RuntimeError("a buffer is initialized once")
        if size == 0:
            raise ValueError("a buffer needs at least one byte")
        self.engine = engine
        self.keep = engine.ptr
        with nogil:
            self.ptr = e.create_buffer(size)

    def __dealloc__(self):
        global _deallocated
        if self.ptr != NULL:
            _deallocated += 1
            self.keep.get().retire(self.ptr)

    cdef CppBuffer* open(self) except NULL:
        if self.ptr == NULL or self.doomed:
            raise RuntimeError("the buffer was destroyed")
        self.engine.open()
        return self.ptr

    cdef int leave(self) except -1:
        self.users -= 1
        if self.doomed and self.users == 0:
            self.keep.get().retire(self.ptr)
            self.ptr = NULL
        return 0

    @property
    def size(self):
        return self.open().size()

    @property
    def host_mapped(self):
        return self.open().memory(0).mapped() != NULL

    def write(self, int queue, data, uint64_t offset=0):
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        queues = _queue_range(self.engine, queue)
        cdef HostMemory host
        self.users += 1
        try:
            host = HostMemory(data, False)
            if offset > buffer.size() or <uint64_t>host.view.len > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} do not fit a buffer of {buffer.size()} bytes")
            for q in queues:
                if buffer.memory(q).mapped() != NULL:
                    self.engine.wait(q, buffer.last_use(q))
                with nogil:
                    engine.upload(q, buffer[0], offset, <const byte*>host.view.buf, host.view.len)
        finally:
            self.leave()

    def read_into(self, int queue, out, uint64_t offset=0):
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        cdef HostMemory host
        self.users += 1
        try:
            host = HostMemory(out, True)
            if offset > buffer.size() or <uint64_t>host.view.len > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} reach beyond a buffer of {buffer.size()} bytes")
            self.engine.wait(q, buffer.last_write(q))
            with nogil:
                engine.download(q, buffer[0], offset, <byte*>host.view.buf, host.view.len)
        finally:
            self.leave()

    def copy_between(self, int source, int target):
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t first, second
        (first,) = _queue_range(self.engine, source) if source >= 0 else (0,)
        (second,) = _queue_range(self.engine, target) if target >= 0 else (0,)
        self.users += 1
        try:
            with nogil:
                engine.copy_between(buffer[0], first, second)
        finally:
            self.leave()

    def last_write(self, int queue):
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        return self.open().last_write(q)

    def destroy(self):
        global _destroyed
        if self.ptr != NULL and not self.doomed:
            _destroyed += 1
            self.doomed = True
            self.users += 1
            self.leave()

# ---- images


cdef class Image:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep
    cdef CppImage* ptr
    cdef int users
    cdef bint doomed

    def __init__(self, Engine engine not None, int view_type, int format, extent, uint32_t layers, uint32_t levels,
                 bint storage):
        cdef CppEngine* e = engine.open()
        cdef uint32_t width, height, depth
        cdef CppImageShape shape
        if self.ptr != NULL:
            raise RuntimeError("an image is initialized once")
        if view_type not in (0, 1, 2, 5):
            raise ValueError(f"view_type: expected 0 (1D), 1 (2D), 2 (3D) or 5 (2D array), got {view_type}")
        if format < 0:
            raise ValueError(f"format: there is no VkFormat {format}")
        width, height, depth = extent
        shape = image_shape(view_type, format, width, height, depth, layers, levels, storage)
        self.engine = engine
        self.keep = engine.ptr
        with nogil:
            self.ptr = e.create_image(shape)

    def __dealloc__(self):
        global _deallocated
        if self.ptr != NULL:
            _deallocated += 1
            self.keep.get().retire(self.ptr)

    cdef CppImage* open(self) except NULL:
        if self.ptr == NULL or self.doomed:
            raise RuntimeError("the image was destroyed")
        self.engine.open()
        return self.ptr

    cdef int leave(self) except -1:
        self.users -= 1
        if self.doomed and self.users == 0:
            self.keep.get().retire(self.ptr)
            self.ptr = NULL
        return 0

    @property
    def sampleable(self):
        return sampleable(self.open()[0])

    @property
    def storable(self):
        return storable(self.open()[0])

    def write(self, int queue, data, uint32_t level=0):
        cdef CppImage* image = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        queues = _queue_range(self.engine, queue)
        cdef HostMemory host
        self.users += 1
        try:
            host = HostMemory(data, False)
            for q in queues:
                with nogil:
                    engine.upload(q, image[0], level, <const byte*>host.view.buf, host.view.len)
        finally:
            self.leave()

    def read_into(self, int queue, out, uint32_t level=0):
        cdef CppImage* image = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        cdef HostMemory host
        self.users += 1
        try:
            host = HostMemory(out, True)
            self.engine.wait(q, image.last_write(q))
            with nogil:
                engine.download(q, image[0], level, <byte*>host.view.buf, host.view.len)
        finally:
            self.leave()

    def destroy(self):
        global _destroyed
        if self.ptr != NULL and not self.doomed:
            _destroyed += 1
            self.doomed = True
            self.users += 1
            self.leave()


cdef class SamplerState:
    """A VkSampler, shared by all samplers of the same settings."""

    cdef shared_ptr[CppEngine] keep
    cdef CppSampler* ptr
    cdef object __weakref__

    def __dealloc__(self):
        global _deallocated
        if self.ptr != NULL:
            _deallocated += 1
            self.keep.get().retire(self.ptr)


cdef class Sampler:
    cdef Engine engine
    cdef Image image
    cdef SamplerState state

    def __init__(self, Image image not None, uint32_t mag_filter, uint32_t min_filter, uint32_t mip_filter,
                 uint32_t address_mode, float mip_lod_bias, float min_lod, float max_lod, uint32_t border_color):
        cdef CppSamplerSettings settings
        cdef SamplerState state
        cdef CppEngine* e
        if self.state is not None:
            raise RuntimeError("a sampler is initialized once")
        if max(mag_filter, min_filter, mip_filter, address_mode, border_color) > 255:
            raise ValueError("a filter, address mode or border colour is unknown")
        if not sampleable(image.open()[0]):
            raise ValueError("the device cannot sample images of this format")
        e = image.engine.open()
        key = (mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod, border_color)
        state = image.engine.samplers.get(key)
        if state is None:
            settings = sampler_settings(mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod,
                                        border_color)
            state = SamplerState.__new__(SamplerState)
            state.keep = image.engine.ptr
            state.ptr = e.create_sampler(settings)
            image.engine.samplers[key] = state
        self.engine = image.engine
        self.image = image
        self.state = state

    cdef int open(self) except -1:
        if self.state is None or self.image is None:
            raise RuntimeError("the sampler was not created")
        self.image.open()
        return 0

# ---- plans


cdef class Plan:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep
    cdef CppPlan* ptr

    def __init__(self, Engine engine not None, bytes spirv not None, binding_types, uint32_t push_constant_size,
                 str name not None, str entry_point not None="main", specialization=()):
        cdef CppEngine* e = engine.open()
        cdef vector[int] types = binding_types
        cdef string text = name.encode()
        cdef string entry = entry_point.encode()
        cdef CppSpecialization constants
        cdef VkSpecializationMapEntry constant
        cdef vector[uint32_t] words
        if self.ptr != NULL:
            raise RuntimeError("a plan is initialized once")
        if len(spirv) < 20 or len(spirv) % 4 != 0 or spirv[:4] not in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03"):
            raise ValueError("spirv: these bytes are no SPIR-V module")
        words.resize(len(spirv) // 4)
        memcpy(words.data(), <const char*>spirv, len(spirv))
        for number, value in specialization:
            if len(value) not in (1, 2, 4, 8):
                raise ValueError(f"specialization: constant {number} takes {len(value)} bytes, 1, 2, 4 or 8 are possible")
            constant.constantID = number
            constant.offset = <uint32_t>constants.data.size()
            constant.size = len(value)
            constants.data.resize(constant.offset + constant.size)
            memcpy(&constants.data[constant.offset], <const char*><bytes>value, constant.size)
            constants.entries.push_back(constant)
        self.engine = engine
        self.keep = engine.ptr
        with nogil:
            self.ptr = e.create_plan(words, types, push_constant_size, text, entry, constants)

    def __dealloc__(self):
        if self.ptr != NULL:
            self.keep.get().retire(self.ptr)

    cdef CppPlan* open(self) except NULL:
        if self.ptr == NULL:
            raise RuntimeError("the compute plan was destroyed")
        self.engine.open()
        return self.ptr

    def destroy(self):
        global _destroyed
        if self.ptr != NULL:
            _destroyed += 1
            self.keep.get().retire(self.ptr)
            self.ptr = NULL

# ---- command lists


cdef int _check_range(const CppLimits& limits, int kind, index, uint64_t offset, uint64_t size) except -1:
    """Raise ValueError where Vulkan gives no meaning to binding these bytes."""
    if kind not in (STORAGE_BUFFER, UNIFORM_BUFFER):
        what = "a storage image" if kind == STORAGE_IMAGE else "a sampler"
        raise ValueError(f"binding {index}: the plan wants {what} there, a buffer was given")
    cdef uint64_t most = limits.storage_range if kind == STORAGE_BUFFER else limits.uniform_range
    cdef uint64_t alignment = limits.storage_alignment if kind == STORAGE_BUFFER else limits.uniform_alignment
    if size > most:
        raise ValueError(f"binding {index}: {size} bytes are more than the {most} that a kernel on this device reaches")
    if offset % alignment != 0:
        raise ValueError(f"binding {index}: the offset {offset} is no multiple of {alignment}, as this device needs")
    return 0


cdef int _bind(Engine engine, CppPlan* plan, item, CppBinding* b) except -1:
    """Fill in a binding of (buffer, image or sampler; index; offset; range; reads; writes)."""
    cdef uint64_t offset, size
    cdef Buffer buffer
    cdef Image image
    cdef Sampler sampler
    resource, index, offset, size, reads, writes = item
    if not 0 <= index < plan.binding_count():
        raise ValueError(f"binding {index}: the plan has no such binding")
    memset(b, 0, sizeof(b[0]))
    b.index, b.reads, b.writes = index, reads, writes
    if isinstance(resource, Buffer):
        buffer = <Buffer>resource
        b.buffer = buffer.open()
        owner = buffer.engine
        if offset >= b.buffer.size() or size > b.buffer.size() - offset:
            raise ValueError(f"binding {index}: bytes {offset} to {offset + size} reach beyond the buffer's "
                             f"{b.buffer.size()}")
        b.offset = offset
        b.range = size if size > 0 else b.buffer.size() - offset
        _check_range(engine.open().limits(), plan.type(index), index, b.offset, b.range)
    elif isinstance(resource, Sampler):
        sampler = <Sampler>resource
        sampler.open()
        b.image = sampler.image.open()
        b.sampler = sampler.state.ptr
        owner = sampler.engine
        b.writes = False
        if plan.type(index) != SAMPLED_IMAGE:
            raise ValueError(f"binding {index}: the plan wants no sampler there")
    elif isinstance(resource, Image):
        image = <Image>resource
        b.image = image.open()
        owner = image.engine
        if plan.type(index) != STORAGE_IMAGE:
            raise ValueError(f"binding {index}: the plan wants no storage image there")
        if not storable(b.image[0]):
            raise ValueError(f"binding {index}: the image cannot be stored to")
    else:
        raise TypeError(f"binding {index}: expected a buffer, an image or a sampler, got {type(resource).__name__}")
    if owner is not engine:
        raise ValueError(f"binding {index}: what is bound belongs to another context")
    if b.image != NULL and plan.refuses(b.index, b.image[0]):
        raise ValueError(f"binding {index}: the shader declares an image of other axes or texels there")
    return 0


cdef int _check_arguments(CppPlan* plan, uint32_t size, int uniform_binding) except -1:
    """Raise ValueError unless a plan can take `size` bytes of arguments where they are to travel."""
    if uniform_binding < 0:
        if size > plan.push_constant_size() or size % 4 != 0:
            raise ValueError(f"argument_size: {size} bytes of arguments do not fit the plan's "
                             f"{plan.push_constant_size()} of push constants")
    elif <size_t>uniform_binding >= plan.binding_count() or plan.type(uniform_binding) != UNIFORM_BUFFER:
        raise ValueError(f"uniform_binding: the plan has no uniform buffer at {uniform_binding}")
    elif not 0 < size <= MAX_ARGUMENTS:
        raise ValueError(f"argument_size: {size} bytes of arguments, 1 to {MAX_ARGUMENTS} are possible")
    return 0


cdef class CommandList:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep
    cdef CppCommandList* ptr
    cdef dict objects  # id -> Buffer, Image, Sampler or Plan that the recorded commands point at
    cdef uint64_t checked  # the value of _destroyed when they were last found alive
    cdef int users
    cdef bint doomed

    def __init__(self, Engine engine not None):
        if self.ptr != NULL:
            raise RuntimeError("a command list is initialized once")
        self.engine = engine
        self.keep = engine.ptr
        self.objects = {}
        self.ptr = engine.open().create_command_list()

    def __dealloc__(self):
        if self.ptr != NULL:
            self.keep.get().destroy(self.ptr)

    cdef CppCommandList* open(self) except NULL:
        if self.ptr == NULL or self.doomed:
            raise RuntimeError("the command list was destroyed")
        self.engine.open()
        return self.ptr

    cdef int leave(self) except -1:
        self.users -= 1
        if self.doomed and self.users == 0:
            self.keep.get().destroy(self.ptr)
            self.ptr = NULL
            self.objects = {}
        return 0

    cdef int check_alive(self) except -1:
        if self.checked == _destroyed:
            return 0
        for item in self.objects.values():
            if isinstance(item, Buffer):
                (<Buffer>item).open()
            elif isinstance(item, Image):
                (<Image>item).open()
            elif isinstance(item, Sampler):
                (<Sampler>item).open()
            else:
                (<Plan>item).open()
        self.checked = _destroyed
        return 0

    @property
    def instance_size(self):
        return self.open().instance_size()

    @property
    def length(self):
        return self.open().length()

    def record(self, Plan plan not None, bindings, groups, uint32_t argument_size, int uniform_binding=-1):
        cdef vector[CppBinding] recorded
        cdef vector[byte] zeros
        cdef CppBinding b
        cdef CppDispatch dispatch
        cdef uint32_t x, y, z
        cdef CppPlan* p = plan.open()
        self.open()
        if plan.engine is not self.engine:
            raise ValueError("plan: it belongs to another context")
        bindings = list(bindings)
        bound = set()
        for item in bindings:
            _bind(self.engine, p, item, &b)
            if b.index in bound:
                raise ValueError(f"binding {b.index}: it is bound twice")
            recorded.push_back(b)
            bound.add(b.index)
        if uniform_binding >= 0:
            if uniform_binding in bound:
                raise ValueError(f"uniform_binding: {uniform_binding} is bound already")
            bound.add(uniform_binding)
        expected = set(range(p.binding_count()))
        if bound != expected:
            raise ValueError(f"the plan's bindings are {sorted(expected)}, bound are {sorted(bound)}")
        _check_arguments(p, argument_size, uniform_binding)
        x, y, z = groups
        dispatch.plan = p
        dispatch.groups.x, dispatch.groups.y, dispatch.groups.z = x, y, z
        dispatch.bindings = recorded.data()
        dispatch.binding_count = <uint32_t>recorded.size()
        dispatch.arguments = NULL
        dispatch.argument_size = argument_size
        dispatch.uniform_binding = uniform_binding
        self.objects[id(plan)] = plan
        for item in bindings:
            self.objects[id(item[0])] = item[0]
        plan.open()
        return self.open().record(dispatch)

    def reset(self):
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        self.users += 1
        try:
            with nogil:
                engine.reset(commands[0])
        finally:
            self.leave()
        self.objects = {}

    def submit(self, int queue, data, size_t instance_count):
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t first, last
        queues = (engine.least_busy(),) if queue == -1 else _queue_range(self.engine, queue)
        first, last = queues[0], queues[-1] + 1
        cdef HostMemory host
        self.users += 1
        try:
            host = HostMemory(data, False)
            self.check_alive()
            with nogil:
                engine.submit(commands[0], first, last, <const byte*>host.view.buf, host.view.len, instance_count)
        finally:
            self.leave()

    def destroy(self):
        if self.ptr != NULL and not self.doomed:
            self.doomed = True
            self.users += 1
            self.leave()

# ---- launching

cdef enum SlotKind:
    BUFFER_SLOT, SAMPLER_SLOT, IMAGE_SLOT, SCALAR_SLOT, VALUE_SLOT

cdef struct Slot:
    SlotKind kind
    uint32_t offset  # in the argument block; of a buffer: its shape's, if it has one
    cbool has_shape
    cbool planar  # the kernel indexes it by two axes: its shape must have no third
    uint32_t size
    char code  # struct format character of a scalar
    uint32_t binding
    cbool reads
    cbool writes
    int view_type  # of an image
    int kind_or_format  # of a sampled image: vkd::Numeric; of a storage image: VkFormat


cdef bint _pack_scalar(char code, char* target, object value):
    """Whether the value could be packed; anything out of the ordinary is left to the checking path."""
    cdef double real
    cdef float single
    cdef int64_t signed
    cdef uint64_t unsigned
    try:
        if code == b"f":
            single = <float>PyFloat_AsDouble(value)
            memcpy(target, &single, 4)
        elif code == b"d":
            real = PyFloat_AsDouble(value)
            memcpy(target, &real, 8)
        elif code in (b"i", b"h", b"q"):
            signed = value
            if code == b"i":
                if signed != <int32_t>signed:
                    return False
                memcpy(target, &signed, 4)
            elif code == b"h":
                if signed != <int16_t>signed:
                    return False
                memcpy(target, &signed, 2)
            else:
                memcpy(target, &signed, 8)
        else:
            unsigned = value
            if code == b"I":
                if unsigned != <uint32_t>unsigned:
                    return False
                memcpy(target, &unsigned, 4)
            elif code == b"H":
                if unsigned != <uint16_t>unsigned:
                    return False
                memcpy(target, &unsigned, 2)
            else:
                memcpy(target, &unsigned, 8)
    except Exception:
        return False
    return True


cdef class Launcher:
    cdef Engine engine
    cdef Plan plan
    cdef vector[Slot] slots
    cdef uint32_t argument_size
    cdef int32_t uniform_binding
    cdef int exec_offset
    cdef int groups_offset
    cdef uint32_t local_size[3]
    cdef uint64_t max_groups[3]
    cdef object pack

    def __init__(self, Engine engine not None, Plan plan not None, slots, uint32_t argument_size,
                 int uniform_binding, int exec_offset, int groups_offset, local_size, max_groups, pack):
        cdef Slot slot
        cdef vector[Slot] bound_slots
        cdef int axis
        cdef int64_t farthest = max(exec_offset, groups_offset)
        if self.engine is not None:
            raise RuntimeError("a launcher is initialized once")
        if plan.engine is not engine:
            raise ValueError("plan: it belongs to another context")
        if argument_size > MAX_ARGUMENTS:
            raise ValueError(f"the arguments take {argument_size} bytes, {MAX_ARGUMENTS} are possible")
        _check_arguments(plan.open(), argument_size, uniform_binding)
        if plan.open().binding_count() > MAX_BINDINGS:
            raise ValueError(f"{plan.open().binding_count()} bound buffers and images are more than {MAX_BINDINGS}")
        bound = {uniform_binding} if uniform_binding >= 0 else set()
        kinds = {}  # binding -> VK_DESCRIPTOR_TYPE_*
        for item in slots:
            memset(&slot, 0, sizeof(slot))
            if item[0] == "buffer":
                slot.kind = BUFFER_SLOT
                slot.binding = item[1]
                slot.has_shape = item[2] >= 0
                slot.offset = item[2] if item[2] >= 0 else 0
                slot.size = 16 if item[2] >= 0 else 0
                slot.reads = item[3]
                slot.writes = item[4]
                slot.planar = len(item) > 5 and item[5]
                if int(item[1]) in bound:
                    raise ValueError(f"slots: binding {item[1]} is bound twice")
                bound.add(int(item[1]))
            elif item[0] in ("sampler", "image"):
                slot.kind = SAMPLER_SLOT if item[0] == "sampler" else IMAGE_SLOT
                slot.binding = item[1]
                slot.view_type = item[2]
                slot.kind_or_format = item[3]
                slot.reads = item[4]
                slot.writes = item[5] and slot.kind == IMAGE_SLOT
                if int(item[1]) in bound:
                    raise ValueError(f"slots: binding {item[1]} is bound twice")
                bound.add(int(item[1]))
            elif item[0] == "scalar":
                slot.kind = SCALAR_SLOT
                slot.offset = item[1]
                slot.code = ord(item[2])
                if item[2] not in "fdihqIHQ":
                    raise ValueError(f"slots: unknown scalar code {item[2]!r}")
                slot.size = {"h": 2, "H": 2, "d": 8, "q": 8, "Q": 8}.get(item[2], 4)
            elif item[0] == "value":
                slot.kind = VALUE_SLOT
                slot.offset = item[1]
                slot.size = item[2]
            else:
                raise ValueError(f"slots: unknown kind {item[0]!r}")
            if <uint64_t>slot.offset + slot.size > argument_size:
                raise ValueError("slots: a slot lies beyond the argument block")
            bound_slots.push_back(slot)
            if slot.kind in (BUFFER_SLOT, SAMPLER_SLOT, IMAGE_SLOT):
                kinds[int(item[1])] = {BUFFER_SLOT: STORAGE_BUFFER, SAMPLER_SLOT: SAMPLED_IMAGE}.get(
                    slot.kind, STORAGE_IMAGE)
        if bound != set(range(plan.open().binding_count())):
            raise ValueError(f"slots: they bind {sorted(bound)}, the plan has {plan.open().binding_count()} bindings")
        for binding, kind in kinds.items():
            if plan.open().type(binding) != kind:
                raise ValueError(f"slots: binding {binding} of the plan is of another kind")
        if farthest >= 0 and farthest + 12 > <int64_t>argument_size:
            raise ValueError("exec_offset, groups_offset: beyond the argument block")
        for axis in range(3):
            self.local_size[axis] = local_size[axis]
            self.max_groups[axis] = max_groups[axis]
            if self.local_size[axis] == 0 or self.max_groups[axis] == 0:
                raise ValueError("local_size, max_groups: expected positive ints")
        self.slots = bound_slots
        self.engine = engine
        self.plan = plan
        self.argument_size = argument_size
        self.uniform_binding = uniform_binding
        self.exec_offset = exec_offset
        self.groups_offset = groups_offset
        self.pack = pack

    cdef bint grid(self, object limit, bint limit_is_groups, char* block, CppGroups* groups):
        """The workgroups for a launch limit; also writes the limit into the argument block."""
        cdef uint64_t sizes[3]
        cdef uint64_t counts[3]
        cdef uint32_t bounds[3]
        cdef uint32_t true_counts[3]
        cdef uint64_t total, y
        cdef int axis = 0
        sizes[0] = sizes[1] = sizes[2] = 1
        try:
            if isinstance(limit, tuple):
                if not 1 <= len(limit) <= 3:
                    return False
                for item in limit:
                    sizes[axis] = PyNumber_Index(item)
                    axis += 1
            else:
                sizes[0] = PyNumber_Index(limit)
        except Exception:
            return False
        for axis in range(3):
            if sizes[axis] == 0 or sizes[axis] > 0xFFFFFFFFu:
                return False
            if limit_is_groups:
                counts[axis] = sizes[axis]
                sizes[axis] *= self.local_size[axis]
                if sizes[axis] > 0xFFFFFFFFu:
                    return False
            else:
                counts[axis] = (sizes[axis] + self.local_size[axis] - 1) // self.local_size[axis]
            bounds[axis] = <uint32_t>sizes[axis]
            true_counts[axis] = <uint32_t>counts[axis]
        if self.exec_offset >= 0:
            memcpy(block + self.exec_offset, bounds, 12)
        if self.groups_offset >= 0:
            memcpy(block + self.groups_offset, true_counts, 12)
            total = counts[0] * counts[1]
            if total > 0xFFFF0000u or total * counts[2] > 0xFFFF0000u:
                return False
            total *= counts[2]
            y = (total + self.max_groups[0] - 1) // self.max_groups[0]
            counts[1] = y
            counts[0] = (total + y - 1) // y
            counts[2] = 1
        if counts[0] > self.max_groups[0] or counts[1] > self.max_groups[1] or counts[2] > self.max_groups[2]:
            return False
        groups.x, groups.y, groups.z = <uint32_t>counts[0], <uint32_t>counts[1], <uint32_t>counts[2]
        return True

    cdef bint put_image(self, Slot* slot, object native, CppBinding* b) except -1:
        """Fill in the binding of a sampler or storage image; false when it is not what the slot wants."""
        cdef Sampler sampler
        cdef Image image
        memset(b, 0, sizeof(b[0]))
        if slot.kind == SAMPLER_SLOT:
            if not isinstance(native, Sampler):
                return False
            sampler = <Sampler>native
            if sampler.state is None or sampler.image is None:
                return False
            image = sampler.image
            b.sampler = sampler.state.ptr
        else:
            if not isinstance(native, Image):
                return False
            image = <Image>native
        if image.engine is not self.engine or image.ptr == NULL or image.doomed:
            return False
        if self.plan.open().refuses(slot.binding, image.ptr[0]):
            return False
        if view_type(image.ptr[0]) != slot.view_type:
            return False
        if slot.kind == SAMPLER_SLOT:
            if numeric_kind(image.ptr[0]) != slot.kind_or_format:
                return False
        elif image_format(image.ptr[0]) != slot.kind_or_format or not storable(image.ptr[0]):
            return False
        b.image = image.ptr
        b.index, b.reads, b.writes = slot.binding, slot.reads, slot.writes
        return True

    cdef bint prepare(self, tuple arguments, object limit, bint limit_is_groups, char* block, CppBinding* bindings,
                      CppDispatch* dispatch, list resources) except -1:
        """Fill in the dispatch, and `resources` unless None; false when an argument is not of the expected kind."""
        cdef size_t i
        cdef Slot* slot
        cdef uint32_t count = 0
        cdef int32_t shape[4]
        cdef CppBinding* b
        cdef Buffer buffer
        cdef bytes packed
        if self.engine is None:
            raise RuntimeError("the launcher was not initialized")
        cdef CppEngine* engine = self.engine.open()
        if <size_t>len(arguments) != self.slots.size():
            return False
        memset(block, 0, self.argument_size)
        for i in range(self.slots.size()):
            slot = &self.slots[i]
            argument = arguments[i]
            if slot.kind == BUFFER_SLOT:
                native = getattr(argument, "_native", None)
                if not isinstance(native, Buffer):
                    return False
                buffer = <Buffer>native
                if buffer.engine is not self.engine or buffer.ptr == NULL or buffer.doomed:
                    return False
                if buffer.ptr.size() > engine.limits().storage_range:
                    return False
                if resources is not None:
                    resources.append(buffer)
                b = &bindings[count]
                count += 1
                memset(b, 0, sizeof(b[0]))
                b.buffer = buffer.ptr
                b.range = buffer.ptr.size()
                b.index = slot.binding
                b.reads = slot.reads
                b.writes = slot.writes
                if slot.has_shape:
                    shape[0], shape[1], shape[2], shape[3] = argument.shader_shape
                    if slot.planar and shape[2] != 1:
                        return False
                    memcpy(block + slot.offset, shape, 16)
            elif slot.kind == SAMPLER_SLOT or slot.kind == IMAGE_SLOT:
                native = getattr(argument, "_native", None)
                if not self.put_image(slot, native, &bindings[count]):
                    return False
                count += 1
                if resources is not None:
                    resources.append(native)
            elif slot.kind == SCALAR_SLOT:
                if not _pack_scalar(slot.code, block + slot.offset, argument):
                    return False
            else:
                packed = self.pack(i, argument)
                if <uint32_t>len(packed) != slot.size:
                    return False
                memcpy(block + slot.offset, <const char*>packed, slot.size)
        if not self.grid(limit, limit_is_groups, block, &dispatch.groups):
            return False
        dispatch.plan = self.plan.open()
        dispatch.bindings = bindings
        dispatch.binding_count = count
        dispatch.arguments = <const byte*>block
        dispatch.argument_size = self.argument_size
        dispatch.uniform_binding = self.uniform_binding
        return True

    def launch(self, tuple arguments not None, limit, bint limit_is_groups):
        cdef char block[MAX_ARGUMENTS]
        cdef CppBinding bindings[MAX_BINDINGS]
        cdef CppDispatch dispatch
        cdef uint64_t destroyed = _destroyed
        cdef uint64_t deallocated = _deallocated
        cdef CppEngine* engine
        if not self.prepare(arguments, limit, limit_is_groups, block, bindings, &dispatch, None):
            return False
        # Other Python code may have run while values were packed, and taken away a buffer that was found before.
        if _destroyed != destroyed or _deallocated != deallocated:
            return False
        engine = self.engine.open()
        if engine.append(dispatch):
            with nogil:
                engine.make_room()
        return True

    def record(self, CommandList commands not None, tuple arguments not None, limit, bint limit_is_groups):
        cdef char block[MAX_ARGUMENTS]
        cdef CppBinding bindings[MAX_BINDINGS]
        cdef CppDispatch dispatch
        cdef list resources = []
        cdef uint64_t destroyed = _destroyed
        commands.open()
        if commands.engine is not self.engine:
            return None
        if not self.prepare(arguments, limit, limit_is_groups, block, bindings, &dispatch, resources) or _destroyed != destroyed:
            return None
        offset = commands.open().record(dispatch)
        commands.objects[id(self.plan)] = self.plan
        for resource in resources:
            commands.objects[id(resource)] = resource
        return offset, (<const char*>block)[: self.argument_size]
