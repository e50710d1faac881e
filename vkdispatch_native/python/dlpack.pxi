# Sharing memory with other libraries: DLPack capsules, memory lent to the host, and memory of the host.

cdef extern from "python/dlpack.hpp" namespace "vkd":
    atomic[cbool] process_is_ending
    shared_ptr[void] keep_object(PyObject* owner) except +raise_error
    void release_dropped_references()

cdef extern from "python/dlpack.hpp" namespace "vkd::dlpack":
    const uint32_t DLPACK_MAJOR "vkd::dlpack::kMajor"
    const uint32_t DLPACK_MINOR "vkd::dlpack::kMinor"
    ctypedef struct CppDataType "vkd::dlpack::DataType":
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct CppTensor "vkd::dlpack::Tensor":
        void* data
        int32_t device_type
        int32_t device_id
        int32_t axis_count
        CppDataType type
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    cdef cppclass CppTaken "vkd::dlpack::Taken":
        cbool take(PyObject* capsule)
        cbool known()
        cbool versioned()
        uint32_t major()
        uint32_t minor()
        uint64_t flags()
        const CppTensor& tensor()
        cbool empty()
        void release()
    const char* find_fault(const CppTensor& tensor)
    object make_capsule(PyObject* owner, const CppTensor& tensor, vector[int64_t] lengths, cbool versioned,
                        uint64_t flags) except +raise_error

DLPACK_VERSION = (DLPACK_MAJOR, DLPACK_MINOR)


def make_dlpack(owner, uint64_t address, device, dtype, shape, strides, *, uint64_t byte_offset=0, bint versioned=True,
                uint64_t flags=0):
    cdef CppTensor tensor
    cdef vector[int64_t] lengths
    cdef vector[int64_t] steps
    memset(&tensor, 0, sizeof(tensor))
    tensor.data = <void*><uintptr_t>address
    tensor.device_type, tensor.device_id = device
    tensor.type.code, tensor.type.bits, tensor.type.lanes = dtype
    lengths = shape
    steps = strides
    if lengths.size() != steps.size():
        raise ValueError("shape, strides: expected as many of one as of the other")
    tensor.axis_count = <int32_t>lengths.size()
    tensor.byte_offset = byte_offset
    lengths.insert(lengths.end(), steps.begin(), steps.end())
    return make_capsule(<PyObject*>owner, tensor, lengths, versioned, flags)


cdef class ForeignTensor:
    """A tensor taken from a DLPack capsule. Its deleter is called when this object is destroyed."""

    cdef CppTaken taken

    def __init__(self, capsule):
        if not self.taken.empty():
            raise misuse_error("a tensor is initialized once")
        if not self.taken.take(<PyObject*>capsule):
            raise ValueError("expected a DLPack capsule that nobody has taken yet")
        if not self.taken.known():
            version = self.version
            self.taken.release()
            raise BufferError(f"the tensor has DLPack version {version[0]}.{version[1]}, expected {DLPACK_MAJOR}.x")
        fault = find_fault(self.taken.tensor())
        if fault != NULL:
            self.taken.release()
            raise BufferError(fault.decode())

    def __dealloc__(self):
        self.taken.release()

    cdef const CppTensor* open(self) except NULL:
        if self.taken.empty():
            raise misuse_error("the tensor was released")
        return &self.taken.tensor()

    def release(self):
        self.taken.release()

    @property
    def version(self):
        return (self.taken.major(), self.taken.minor()) if self.taken.versioned() else None

    @property
    def flags(self):
        self.open()
        return self.taken.flags()

    @property
    def address(self):
        return <uintptr_t>self.open().data + self.open().byte_offset

    @property
    def device(self):
        return self.open().device_type, self.open().device_id

    @property
    def dtype(self):
        cdef const CppTensor* tensor = self.open()
        return tensor.type.code, tensor.type.bits, tensor.type.lanes

    @property
    def shape(self):
        cdef const CppTensor* tensor = self.open()
        return tuple([tensor.shape[axis] for axis in range(tensor.axis_count)])

    @property
    def strides(self):
        cdef const CppTensor* tensor = self.open()
        if tensor.strides == NULL:
            return None
        return tuple([tensor.strides[axis] for axis in range(tensor.axis_count)])


DEF MOST_SEARCHED = 1024  # shared memories among which find_shared looks for one that holds a range


cdef int _note_shared(Engine engine, Buffer memory, uint64_t address) except -1:
    cdef dict shared = engine.shared
    cdef Py_ssize_t count = len(shared)
    if count >= 64 and count & (count - 1) == 0:
        for known, (reference, _) in list(shared.items()):
            if reference() is None:
                shared.pop(known, None)
    shared[address] = weakref_ref(memory), memory.ptr.size()
    return 0


def find_shared(Engine engine not None, uint64_t first, uint64_t end):
    cdef Buffer memory
    cdef uint64_t address, size
    found = engine.shared.get(first)
    candidates = [] if found is None else [(first, found)]
    if len(engine.shared) <= MOST_SEARCHED:
        candidates += list(engine.shared.items())
    for address, (reference, size) in candidates:
        memory = reference()
        if memory is None or memory.destroy_requested.load() or not memory.is_lent():
            continue
        if address <= first and end <= address + size:
            return memory, first - address
    return None


cdef class Loan:
    """Memory of a buffer that the host uses. It lasts as long as this object, whatever happens to the buffer."""

    cdef Buffer buffer  # does not go back to the pool
    cdef object __weakref__
    cdef shared_ptr[CppLoan] loan

    def __dealloc__(self):
        if _forked:
            new shared_ptr[CppLoan](self.loan)  # the memory belongs to the parent: never freed

    cdef byte* data(self) except NULL:
        if self.loan.get() == NULL:
            raise misuse_error("memory is lent by a buffer")
        return self.loan.get().memory.get().mapped()

    @property
    def address(self):
        return <uintptr_t>self.data()

    @property
    def size(self):
        self.data()
        return self.loan.get().memory.get().size()


cdef class HostView:
    """Elements in memory of the host, for Python's buffer protocol. `strides` are in bytes."""

    cdef readonly object owner
    cdef readonly uint64_t address
    cdef readonly uint64_t item_size
    cdef readonly str format
    cdef readonly tuple shape
    cdef readonly tuple strides
    cdef readonly bint read_only
    cdef bytes format_text
    cdef vector[Py_ssize_t] lengths  # shape, then strides

    def __init__(self, owner, uint64_t address, str format, uint64_t item_size, tuple shape, tuple strides,
                 bint read_only=False):
        if self.owner is not None:
            raise misuse_error("a view is initialized once")
        if len(shape) != len(strides):
            raise ValueError("shape, strides: expected as many of one as of the other")
        self.lengths = shape + strides
        self.address, self.item_size, self.format = address, item_size, format
        self.shape, self.strides, self.read_only = shape, strides, read_only
        self.format_text = format.encode()
        self.owner = owner

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef int axes = <int>len(self.shape or ())
        cdef Py_ssize_t count = 1
        cdef Py_ssize_t step = 1
        cdef bint in_order = True
        cdef int axis
        if self.owner is None:
            raise BufferError("the view was not made")
        if not self.format_text:
            raise BufferError("Python's buffer protocol has no format for these elements; use DLPack")
        if flags & PyBUF_WRITABLE and self.read_only:
            raise BufferError("the memory is read-only")
        for axis in range(axes):
            count *= self.lengths[axis]
        for axis in reversed(range(axes)):
            if self.lengths[axis] > 1 and self.lengths[axes + axis] != step * <Py_ssize_t>self.item_size:
                in_order = False
            step *= self.lengths[axis]
        if not in_order and count > 0 and flags & PyBUF_STRIDES != PyBUF_STRIDES:
            raise BufferError("the elements do not lie one behind the other; request strides")
        if not in_order and count > 0 and flags & PyBUF_C_CONTIGUOUS == PyBUF_C_CONTIGUOUS:
            raise BufferError("the elements do not lie one behind the other, in C order")
        if axes > 1 and flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS:
            raise BufferError("the elements do not lie in Fortran order")
        view.buf = <void*><uintptr_t>self.address
        view.obj = self
        view.len = count * <Py_ssize_t>self.item_size
        view.readonly = self.read_only
        view.itemsize = <Py_ssize_t>self.item_size
        view.format = <char*>self.format_text if flags & PyBUF_FORMAT else NULL
        view.ndim = axes
        view.shape = self.lengths.data() if flags & PyBUF_ND else NULL
        view.strides = self.lengths.data() + axes if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL
