# The part of the C++ engine that the wrapper calls.

cdef extern from "libs/vulkan.hpp" nogil:
    ctypedef void* VkInstance
    ctypedef void* VkPhysicalDevice
    ctypedef void* VkDevice
    ctypedef void* VkBuffer
    ctypedef void* VkQueue
    ctypedef struct VkPhysicalDeviceLimits:
        uint32_t maxComputeWorkGroupSize[3]
        uint32_t maxComputeWorkGroupInvocations
        uint32_t maxComputeWorkGroupCount[3]
        uint32_t maxBoundDescriptorSets
        uint32_t maxPerStageDescriptorStorageBuffers
        uint32_t maxDescriptorSetStorageBuffers
        uint32_t maxPushConstantsSize
        uint32_t maxStorageBufferRange
        uint32_t maxUniformBufferRange
        uint64_t minUniformBufferOffsetAlignment
        uint32_t maxComputeSharedMemorySize
        uint32_t timestampComputeAndGraphics
        float timestampPeriod
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
        uint32_t bufferDeviceAddress
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
    cdef cppclass CppMatrixProduct "vkd::MatrixProduct":
        uint32_t m, n, k, a, b, c, result, saturating, scope, flexible, invocations
    cdef cppclass CppDeviceProperties "vkd::DeviceProperties":
        VkPhysicalDeviceProperties core
        VkPhysicalDeviceSubgroupProperties subgroup
        VkPhysicalDeviceIDProperties id
        VkPhysicalDeviceFeatures features
        VkPhysicalDeviceVulkan11Features features11
        VkPhysicalDeviceVulkan12Features features12
        VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float
        VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2
        vector[CppMatrixProduct] matrix_products
        vector[VkQueueFamilyProperties] queue_families
        vector[string] extensions
        vector[string] missing
    CppDeviceProperties query_properties(VkInstance, VkPhysicalDevice) except +raise_error
    const uint32_t UNKNOWN_INDEX "vkd::kUnknownIndex"
    cdef cppclass CppQueueHandle "vkd::QueueHandle":
        VkQueue handle
        uint32_t family
        uint32_t index
    cdef cppclass CppForeignQueue "vkd::ForeignDevice::Queue":
        uint32_t family
        uint32_t index
        VkQueue handle
    cdef cppclass CppForeignDevice "vkd::ForeignDevice":
        VkPhysicalDevice physical
        VkDevice handle
        vector[CppForeignQueue] queues
        vector[string] extensions
        vector[string] features
    cdef cppclass CppDevice "vkd::Device":
        cbool exports()
        VkPhysicalDevice physical()
        VkDevice handle()
        const CppDeviceProperties& properties()
        const vector[CppQueueHandle]& queues()
        const vector[vector[CppQueueHandle]]& transfer_queues()
        cbool borrowed()
        cbool host_mapped()
        cbool imports_pages()
        uint64_t import_alignment()

cdef extern from "context/features.hpp" namespace "vkd" nogil:
    cdef cppclass CppFeature "vkd::Feature":
        const char* name
        uint32_t* value
        const char* extension
        cbool required
    vector[CppFeature] features_of(CppDeviceProperties& properties)

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
        @staticmethod
        shared_ptr[CppInstance] borrow(VkInstance handle, VkPhysicalDevice physical, cbool debug) except +raise_error
        VkInstance handle()
        cbool validation()
        const vector[VkPhysicalDevice]& physical_devices()
    vector[pair[int, string]] cpp_take_messages "vkd::take_messages"()

cdef extern from "libs/allocations.hpp" namespace "vkd" nogil:
    uint64_t cpp_allocation_count "vkd::allocation_count"()
    cbool allocations_are_counted()

cdef extern from "libs/process_exit.hpp" namespace "vkd" nogil:
    void end_process_quickly()

cdef extern from "libs/background.hpp" namespace "vkd" nogil:
    cdef cppclass CppBackground "vkd::Background":
        void wait() except +raise_error
    void forget_background()

cdef extern from "libs/glslang.hpp" namespace "vkd" nogil:
    cdef cppclass CppDirective "vkd::GlslOptions::Directive":
        CppDirective(string file, string name, cbool quoted) except +raise_error
    cdef cppclass GlslOptions "vkd::GlslOptions":
        string path
        int vulkan_minor
        string preamble
        cbool debug
        cppmap[CppDirective, string] includes
        cppmap[string, string] texts
    cdef cppclass CppCompilation "vkd::Compilation"(CppBackground):
        @staticmethod
        shared_ptr[CppCompilation] start(string source, GlslOptions options) except +raise_error
        const vector[uint32_t]& spirv() except +raise_error
    string cpp_compiler_identity "vkd::compiler_identity"() except +raise_error
    uint64_t cpp_compile_count "vkd::compile_count"()
    void cpp_prepare_compiler "vkd::prepare_compiler"()
    cbool cpp_finish_compiling "vkd::finish_compiling"(uint64_t patience_ns)

cdef extern from "libs/spirv_tools.hpp" namespace "vkd" nogil:
    cdef cppclass CppValidation "vkd::Validation"(CppBackground):
        @staticmethod
        shared_ptr[CppValidation] start(vector[uint32_t] words) except +raise_error
        void wait() except +raise_error
        const string& complaint() except +raise_error
    string cpp_disassemble "vkd::disassemble"(vector[uint32_t] words) except +raise_error

cdef extern from *:
    """
    #include "libs/vkfft.hpp"
    // Arrays and callbacks, which Cython has no words for.
    inline void set_fft_axis(vkd::FftRequest& request, uint32_t axis, uint64_t size, bool omitted, bool padded,
                             uint64_t left, uint64_t right, uint64_t input_stride) {
      request.size.at(axis) = size;
      request.omitted.at(axis) = omitted;
      request.padded.at(axis) = padded;
      request.pad_left.at(axis) = left;
      request.pad_right.at(axis) = right;
      request.input_strides.at(axis) = input_stride;
    }
    inline void set_fft_groups(vkd::FftDevice& device, uint32_t axis, uint32_t count, uint32_t size) {
      device.group_counts.at(axis) = count;
      device.group_sizes.at(axis) = size;
    }
    inline uint32_t fft_groups(const vkd::FftPass& pass, uint32_t axis) { return pass.groups.at(axis); }
    inline vkd::FftProgram plan_fft_with(const vkd::FftRequest& request, const vkd::FftDevice& device,
                                         bool (*run)(void*, vkd::FftProgram*), void* context) {
      return vkd::plan_fft(request, device, [=](vkd::FftProgram& program) {
        if (!run(context, &program)) {
          throw vkd::Error(vkd::ErrorKind::vulkan, "VkFFT's tables could not be computed");
        }
      });
    }
    """
    const uint32_t FFT_AXES "vkd::kFftAxes"
    cdef cppclass CppFftDevice "vkd::FftDevice":
        uint32_t vendor, most_invocations, shared_memory
    cdef cppclass CppFftRequest "vkd::FftRequest":
        uint32_t axes
        cbool pad_frequency, real, normalize, forward, inverse, conjugate
        int precision
        uint64_t batches, buffer_size, input_size, kernel_size, features
    cdef cppclass CppFftKernel "vkd::FftKernel":
        string source
        uint32_t binding_count, push_constant_size
    cdef cppclass CppFftPass "vkd::FftPass":
        size_t kernel
        vector[size_t] buffers
        vector[byte] push_constants
    cdef cppclass CppFftBuffer "vkd::FftBuffer":
        uint64_t size
        vector[byte] contents
    cdef cppclass CppFftProgram "vkd::FftProgram":
        vector[CppFftKernel] kernels
        vector[CppFftBuffer] buffers
        vector[CppFftPass] forward
        vector[CppFftPass] inverse
    void set_fft_axis(CppFftRequest& request, uint32_t axis, uint64_t size, cbool omitted, cbool padded, uint64_t left,
                      uint64_t right, uint64_t input_stride) except +raise_error
    void set_fft_groups(CppFftDevice& device, uint32_t axis, uint32_t count, uint32_t size) except +raise_error
    uint32_t fft_groups(const CppFftPass& step, uint32_t axis) except +raise_error
    CppFftProgram plan_fft_with(const CppFftRequest& request, const CppFftDevice& device,
                                cbool (*run)(void*, CppFftProgram*) noexcept nogil,
                                void* context) except +raise_error nogil
    int cpp_vkfft_version "vkd::vkfft_version"()

cdef extern from "objects/resource.hpp" namespace "vkd" nogil:
    const size_t SLOTS_PER_QUEUE "vkd::kSlotsPerQueue"
    cdef cppclass CppResource "vkd::Resource":
        uint64_t last_use(size_t queue)
        uint64_t last_write(size_t queue)

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
    inline vkd::BorrowedImage borrowed_image(uint64_t handle, uint32_t layout, uint32_t usage) {
      return {(VkImage)handle, static_cast<VkImageLayout>(layout), usage};
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
    cdef cppclass CppImage "vkd::Image"(CppResource):
        uint64_t level_size(uint32_t level)
        cbool shared()
        const CppImageShape& shape()
    cdef cppclass CppSampler "vkd::Sampler"(CppResource):
        pass
    ctypedef struct CppBorrowedImage "vkd::BorrowedImage":
        pass
    CppBorrowedImage borrowed_image(uint64_t handle, uint32_t layout, uint32_t usage)
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
    cdef cppclass CppBuffer "vkd::Buffer"(CppResource):
        uint64_t size()
        cbool shared()
        void set_renewable()
        void set_steady()
        void announce()
        cbool poisoned()
        cbool take_announcement()
        const CppMemory& memory(size_t queue)
        CppSharing& sharing()
        cbool imported()
    cdef cppclass CppSharing "vkd::Sharing":
        cbool any()
        cbool ordered()
    cdef cppclass CppMemory "vkd::Memory":
        byte* mapped()
        uint64_t address()
        uint64_t size()
    cdef cppclass CppLoan "vkd::Loan":
        shared_ptr[CppMemory] memory
    cdef cppclass CppUniformBlock "vkd::UniformBlock":
        uint32_t binding
        uint32_t offset
        uint32_t size
    cdef cppclass CppPlan "vkd::Plan"(CppResource):
        size_t binding_count()
        int type(uint32_t binding)
        cbool refuses(uint32_t binding, const CppImage& image)
        void set_place(string place) except +raise_error
        void set_uniform_blocks(vector[CppUniformBlock] blocks) except +raise_error
        const vector[CppUniformBlock]& uniform_blocks()
        uint32_t argument_size()
        uint32_t push_constant_size()
        uint64_t id()
        const vector[string]& new_cache_data()
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
        cbool addressed
        uint32_t address_offset
        cbool renews
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

cdef extern from "objects/poison.hpp" namespace "vkd" nogil:
    cbool anywhere_poisoned "vkd::Poison::anywhere"()

cdef extern from "objects/pinned.hpp" namespace "vkd" nogil:
    cdef cppclass CppPinned "vkd::Pinned"(CppResource):
        byte* data()
        uint64_t size()
    ctypedef enum MemoryUse "vkd::MemoryUse":
        UPLOAD "vkd::MemoryUse::upload"
        DOWNLOAD "vkd::MemoryUse::download"
        HOST "vkd::MemoryUse::host"
        DEVICE_HOST "vkd::MemoryUse::device_host"

cdef extern from "libs/pages.hpp" namespace "vkd" nogil:
    cdef cppclass CppPages "vkd::Pages":
        byte* data
        size_t size
    CppPages take_pages(size_t size) except +MemoryError
    void give_back_pages "vkd::give_back"(const CppPages& pages)
    size_t cpp_spare_pages "vkd::spare_pages"()

cdef extern from "libs/interrupts.hpp" namespace "vkd" nogil:
    const uint64_t FOREVER "vkd::kForever"
    void set_signal_check(cbool (*)() noexcept)

cdef extern from "libs/copy.hpp" namespace "vkd" nogil:
    void copy_bytes(byte* target, const byte* source, size_t size)

cdef extern from "stages/timing.hpp" namespace "vkd" nogil:
    ctypedef struct CppTimedResource "vkd::TimedResource":
        int64_t binding
        int64_t address
        uint32_t texel
        uint64_t bytes
    cdef cppclass CppTimedCommand "vkd::TimedCommand":
        int kind
        size_t slot
        uint64_t plan
        string name
        CppGroups groups
        uint64_t bytes
        vector[byte] arguments
        vector[CppTimedResource] resources
        int64_t begin
        int64_t end
    ctypedef struct CppTimedSubmit "vkd::TimedSubmit":
        size_t slot
        size_t commands
        int64_t begin
        int64_t end
    int64_t host_now()

cdef extern from "engine.hpp" namespace "vkd" nogil:
    cdef cppclass CppPoint "vkd::Point":
        size_t slot
        uint64_t value
    cdef cppclass CppReading "vkd::Reading":
        uint64_t value
    cdef cppclass CppTimings "vkd::Timings":
        vector[CppTimedCommand] commands
        vector[CppTimedSubmit] submits
        vector[CppTimedSubmit] waits
    cdef cppclass CppCommand "vkd::Command":
        pass
    CppCommand list_copy(CppBuffer& source, uint64_t source_offset, CppBuffer& target, uint64_t target_offset,
                         uint64_t size) except +raise_error
    CppCommand list_copy(CppImage& image, CppBuffer& other, uint64_t offset, cbool to_image) except +raise_error
    CppCommand list_copy(CppImage& source, CppImage& target) except +raise_error
    CppCommand list_barrier()
    CppCommand list_timestamp()
    cdef cppclass CppCommandList "vkd::CommandList":
        cbool try_record(const CppDispatch& dispatch, size_t& offset) except +raise_error
        cbool try_record(const CppCommand& command, size_t& offset) except +raise_error
        void wait_until_free()
        size_t instance_size()
        size_t length()
    cdef cppclass CppJournal "vkd::Journal":
        size_t queue_count()
        cbool has_unseen()
        void set_waiting(cbool waiting)
        void mark_seen(size_t queue, uint32_t notes)
        void clear_standing(size_t queue, uint32_t ticket)
        const uint32_t* words(size_t queue)
        uint64_t point(uint32_t ticket, size_t slot)
        void renew(int half)
    cdef size_t JOURNAL_WORDS "vkd::Journal::kWords"
    cdef size_t JOURNAL_TICKETS "vkd::Journal::kTickets"
    cdef size_t JOURNAL_STANDING "vkd::Journal::kStanding"
    cdef cppclass CppStatistics "vkd::Statistics":
        uint64_t commands
        uint64_t submits
        uint64_t barriers
        uint64_t live_objects
        uint64_t waiting_frees
        uint64_t device_memory
        uint64_t pinned_blocks
        uint64_t allocations
        uint64_t idle_memory
        uint64_t heap_memory
        uint64_t memory_budget
        uint64_t memory_usage
    cdef cppclass CppLimits "vkd::Limits":
        uint64_t storage_range
        uint64_t uniform_range
        uint64_t storage_alignment
        uint64_t uniform_alignment
    cdef cppclass CppBlock "vkd::Memory::Block":
        uint64_t offset, size
        cbool dedicated
    cdef cppclass CppEngine "vkd::Engine":
        CppEngine(const vector[uint32_t]& devices, const vector[vector[uint32_t]]& families,
                  const vector[string]& extensions, cbool debug, cbool force_staging,
                  uint64_t timeout_ns) except +raise_error
        CppEngine(const shared_ptr[CppInstance]& instance, const CppForeignDevice& device, cbool debug,
                  cbool force_staging, uint64_t timeout_ns) except +raise_error
        const CppInstance& instance()
        const vector[shared_ptr[CppDevice]]& devices()
        size_t queue_count()
        const CppLimits& limits()
        cbool lost()
        cbool closed()
        void check_open() except +raise_error
        CppBuffer* create_buffer(uint64_t size, cbool shared) except +raise_error
        CppBuffer* create_buffer(uint64_t size, cbool shared, cbool for_device) except +raise_error
        CppBuffer* reuse_buffer(uint64_t size, cbool for_device) except +raise_error
        CppBuffer* create_buffer_over(CppPinned& block) except +raise_error
        CppBuffer* create_journal() except +raise_error
        CppBuffer* import_buffer(byte* data, uint64_t size, cbool ordered, shared_ptr[void] owner) except +raise_error
        CppBuffer* create_part(CppBuffer& whole, uint64_t offset, uint64_t size) except +raise_error
        CppBuffer* borrow_buffer(VkBuffer handle, uint64_t size, shared_ptr[void] owner) except +raise_error
        shared_ptr[CppLoan] lend(size_t queue, CppBuffer& buffer, cbool ordered) except +raise_error
        shared_ptr[CppLoan] keep(CppBuffer& buffer) except +raise_error
        CppJournal* journal()
        cbool has_unseen_notes()
        uint32_t take_ticket() except +raise_error
        int stale_tickets() except +raise_error
        uint64_t completed(size_t slot) except +raise_error
        cbool is_journal_complete(size_t queue) except +raise_error
        CppImage* create_image(const CppImageShape& shape, cbool shared) except +raise_error
        CppImage* borrow_image(const CppImageShape& shape, const CppBorrowedImage& theirs, shared_ptr[void] owner
                               ) except +raise_error
        CppSampler* create_sampler(const CppSamplerSettings& settings) except +raise_error
        uint32_t image_features(int format) except +raise_error
        CppCommandList* create_command_list() except +raise_error
        void destroy(CppCommandList* commands)
        unsigned int begin_hold()
        void end_hold(unsigned int number)
        cbool recycle(CppResource* resource)
        void retire(CppResource* resource)
        void retire(CppPinned* pinned)
        CppPinned* create_pinned(size_t queue, uint64_t size, MemoryUse use) except +raise_error
        cbool append(const CppDispatch& dispatch, size_t first, size_t last) except +raise_error
        void make_room() except +raise_error
        uint64_t last_value(size_t queue) except +raise_error
        uint64_t last_point(size_t queue) except +raise_error
        cbool wait(size_t queue, uint64_t value, uint64_t timeout_ns, cbool alone) except +raise_error
        void wait_until(size_t queue, uint64_t value) except +raise_error
        void check_poison(const CppBuffer& buffer, size_t queue) except +raise_error
        cbool wait_for_batches(size_t queue, uint64_t before, uint64_t last, uint64_t timeout_ns) except +raise_error
        void flush(size_t queue, uint64_t value) except +raise_error
        cbool has_queue(size_t slot)
        CppBlock block_of(CppBuffer& buffer, uint64_t* number) except +raise_error
        int export_block(CppBuffer& buffer) except +raise_error
        vector[uint64_t] take_freed_blocks() except +raise_error
        int export_timeline(size_t slot) except +raise_error
        int export_incoming(size_t number) except +raise_error
        uint64_t submit_all(size_t slot) except +raise_error
        void wait_for_incoming(size_t queue, size_t number, uint64_t value) except +raise_error
        vector[CppPoint] work_points(size_t first, size_t last) except +raise_error
        void follow(size_t first, size_t last, const vector[CppPoint]& points) except +raise_error
        string describe_work(size_t slot) except +raise_error
        size_t least_busy() except +raise_error
        cbool copy(CppBuffer& target, CppBuffer& source, size_t first, size_t last) except +raise_error
        void copy_between(CppBuffer& buffer, size_t first, size_t second) except +raise_error
        uint64_t upload(size_t queue, CppBuffer& buffer, uint64_t offset, const byte* data,
                        uint64_t size) except +raise_error
        void download(size_t queue, CppBuffer& buffer, uint64_t offset, byte* data, uint64_t size) except +raise_error
        CppReading begin_download(size_t queue, CppBuffer& buffer, uint64_t offset, byte* data,
                                  uint64_t size) except +raise_error
        void finish_download(size_t queue, const CppReading& reading, byte* data) except +raise_error
        void drop_download(size_t queue, const CppReading& reading)
        CppPoint start_upload(size_t queue, CppBuffer& buffer, uint64_t offset, const byte* data,
                              uint64_t size) except +raise_error
        CppPoint start_download(size_t queue, CppBuffer& buffer, uint64_t offset, byte* data,
                                uint64_t size) except +raise_error
        cbool is_pinned(size_t queue, const byte* data, uint64_t size) except +raise_error
        void upload(size_t queue, CppImage& image, uint32_t level, const byte* data, uint64_t size) except +raise_error
        void download(size_t queue, CppImage& image, uint32_t level, byte* data, uint64_t size) except +raise_error
        uint64_t submit(CppCommandList& commands, size_t first, size_t last, const byte* arguments, size_t size,
                        size_t count) except +raise_error
        cbool evaluate(CppCommandList& commands, size_t queue, const byte* arguments, size_t size, uint64_t timeout_ns,
                       uint64_t& before, uint64_t& value) except +raise_error
        cbool has_timestamps()
        vector[uint64_t] timestamps(CppCommandList& commands, size_t queue) except +raise_error
        void reset(CppCommandList& commands) except +raise_error
        vector[pair[size_t, size_t]] rearrange(CppCommandList& commands, const vector[size_t]& order) except +raise_error
        void abandon()
        void close(cbool interruptible) except +raise_error
        cbool hung()
        uint64_t failures()
        CppStatistics statistics() except +raise_error
        cbool clocks_are_read_by_submits() except +raise_error
        vector[uint64_t] start_timing() except +raise_error
        CppTimings timings(const vector[uint64_t]& since) except +raise_error
        void stop_timing()
        void set_barriers_enabled(cbool enabled)

cdef extern from "python/plan_creation.hpp" namespace "vkd" nogil:
    cdef cppclass CppPlanRequest "vkd::PlanCreation::Request":
        vector[uint32_t] spirv
        vector[int] binding_types
        uint32_t push_constant_size
        string name
        string entry_point
        CppSpecialization specialization
        vector[string] cached
    cdef cppclass CppPlanCreation "vkd::PlanCreation"(CppBackground):
        @staticmethod
        shared_ptr[CppPlanCreation] start(shared_ptr[CppEngine] engine, CppPlanRequest request) except +raise_error
        CppPlan* take() except +raise_error
        @staticmethod
        int running()

DEF SAMPLED_IMAGE = 1  # VK_DESCRIPTOR_TYPE_*, combined with a sampler
DEF STORAGE_IMAGE = 3
DEF UNIFORM_BUFFER = 6
DEF STORAGE_BUFFER = 7
DEF MAX_ARGUMENTS = 16384  # bytes: the uniform buffer range that every device supports
DEF MAX_BINDINGS = 256
DEF UNCHECKED = 0xFFFFFFFFFFFFFFFF  # never a value of _destroyed
DEF MAX_WIDE_SIZE = 0xFFFFFFFFFFFF  # invocations along an axis with 64-bit ids
DEF MOST_PINNED = 268435456  # bytes that write_async pins at once: devices can only pin a few GiB
DEF FIRST_WAIT_NS = 50000000  # while the list's objects are held
DEF MOST_SECONDS = 1e9
