# Buffers, images and samplers.


cdef class HostMemory:
    """Contiguous host memory, held during a call."""

    cdef Py_buffer view

    def __cinit__(self, source, bint writable):
        PyObject_GetBuffer(source, &self.view, PyBUF_CONTIG if writable else PyBUF_CONTIG_RO)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef class Data:
    """A buffer or image. One thread may destroy it while others copy to or from it."""

    cdef Engine engine
    cdef shared_ptr[CppEngine] keep  # the garbage collector may take `engine` first
    cdef CppResource* resource
    cdef int users  # threads in a transfer: the last one performs a requested destruction
    cdef atomic[int] destroy_requested

    def __dealloc__(self):
        cdef CppEngine* engine = self.keep.get()
        cdef CppResource* resource = self.resource
        if resource != NULL and not engine.recycle(resource):
            with nogil:  # freeing much memory takes time
                engine.retire(resource)
        release_dropped_references()

    cdef int begin(self, Engine engine, noun) except -1:
        if self.engine is not None:
            raise misuse_error(f"{noun} is initialized once")
        self.engine = engine
        self.keep = engine.ptr
        return 0

    cdef int check_alive(self, noun) except -1:
        if self.resource == NULL or self.destroy_requested.load():
            raise misuse_error(f"the {noun} was destroyed; make a new one")
        self.engine.open()
        return 0

    cdef int enter(self, noun) except -1:
        """Keep the native object alive until leave(), for a transfer."""
        with cython.critical_section(self):
            self.check_alive(noun)
            self.users += 1
        return 0

    cdef int leave(self) except -1:
        cdef CppEngine* engine = self.keep.get()
        cdef CppResource* resource = NULL
        with cython.critical_section(self):
            self.users -= 1
            if self.destroy_requested.load() and self.users == 0:
                resource = self.resource
                self.resource = NULL
        if resource != NULL and not engine.recycle(resource):
            with nogil:
                engine.retire(resource)
            release_dropped_references()
        return 0

    def destroy(self):
        cdef bint mine = False
        with cython.critical_section(self):
            if self.resource != NULL and not self.destroy_requested.load():
                mine = True
                self.destroy_requested.store(1)
                self.users += 1
        if mine:
            _destroyed.fetch_add(1)  # after `destroy_requested`, before the destruction: a holder sees one of the two
            self.leave()

# ---- pinned memory


cdef class HostBlock:
    """Pinned host memory; arrays are views of it."""

    cdef shared_ptr[CppEngine] keep
    cdef CppPinned* ptr
    cdef CppBuffer* buffer  # a view of the block for command lists, created on first use
    cdef object engine  # a weak reference, so that arrays do not keep an engine open

    def __init__(self, Engine engine not None, int queue, uint64_t size, str kind not None="upload"):
        cdef CppEngine* e = engine.open()
        cdef size_t q
        cdef MemoryUse use = HOST if kind == "host" else DEVICE_HOST if kind == "device_host" else DOWNLOAD
        if self.ptr != NULL:
            raise misuse_error("a block of host memory is initialized once")
        if size == 0:
            raise ValueError("size: a block needs at least one byte")
        if kind not in ("upload", "host", "device_host"):
            raise ValueError(f"kind: expected 'upload', 'host' or 'device_host', got {kind!r}")
        (q,) = _queue_range(engine, queue) if queue >= 0 else (0,)
        with nogil:
            self.ptr = e.create_pinned(q, size, use)
        self.keep = engine.ptr
        self.engine = weakref.ref(engine)

    def __dealloc__(self):
        cdef CppEngine* engine = self.keep.get()
        cdef CppPinned* block = self.ptr
        cdef CppBuffer* buffer = self.buffer
        if buffer != NULL:
            engine.retire(buffer)
        if block != NULL:
            with nogil:  # freeing much memory takes time
                engine.retire(block)

    cdef CppBuffer* as_buffer(self) except NULL:
        cdef CppEngine* engine = self.keep.get()
        if self.ptr == NULL:
            raise misuse_error("the block of host memory was not created")
        with cython.critical_section(self):
            if self.buffer == NULL:
                self.buffer = engine.create_buffer_over(self.ptr[0])
        return self.buffer

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.ptr == NULL:
            raise BufferError("the block of host memory was not created")
        PyBuffer_FillInfo(view, self, <void*>self.ptr.data(), <Py_ssize_t>self.ptr.size(), 0, flags)


cdef class HostPages:
    """Ordinary memory for one large array, in huge pages. It is reused after the array is destroyed."""

    cdef CppPages pages
    cdef size_t size

    def __init__(self, size_t size):
        if self.pages.data != NULL:
            raise misuse_error("host pages are initialized once")
        if size == 0:
            raise ValueError("size: an array needs at least one byte")
        with nogil:
            self.pages = take_pages(size)
        self.size = size

    def __dealloc__(self):
        cdef CppPages pages = self.pages
        if pages.data != NULL:
            with nogil:
                give_back_pages(pages)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.pages.data == NULL:
            raise BufferError("the host pages were not created")
        PyBuffer_FillInfo(view, self, <void*>self.pages.data, <Py_ssize_t>self.size, 0, flags)


def spare_pages():
    return cpp_spare_pages()


cdef object _point_tuples(vector[CppPoint]& points):
    return [(point.slot, point.value) for point in points]


# ---- buffers

# How many buffers are watched, so that submitting a command list need not look at each of its buffers.
cdef atomic[int] _watched
cdef object _settle = None  # computes what waits to read a Buffer


def settle_with(function):
    global _settle
    _settle = function


cdef class Buffer(Data):
    cdef CppBuffer* ptr
    cdef public object readers  # what waits to read it, as `settle_with` understands it
    cdef object refusal  # raises the error of whoever is about to write it; None: it may be written
    cdef atomic[int] watched  # whether something waits to read it, which a write has to settle first
    cdef CallRecorder recorder  # of the call that created it
    cdef size_t recorded_slot
    cdef Turns turns  # of calls that are repeated; None: they use this buffer
    cdef Buffer whole  # what this is a part of
    cdef uint64_t first  # its first byte there
    cdef readonly bint may_overlap
    cdef object __weakref__

    def __init__(self, Engine engine not None, uint64_t size, bint shared=False, bint for_device=False):
        cdef CppEngine* e = engine.open()
        if size == 0:
            raise ValueError("a buffer needs at least one byte")
        self.begin(engine, "a buffer")
        if not shared:
            self.ptr = e.reuse_buffer(size, for_device)
        if self.ptr == NULL:
            with nogil:
                self.ptr = e.create_buffer(size, shared, for_device)
        self.resource = self.ptr
        if call_recorder != NULL:
            (<CallRecorder>call_recorder).note_created(self, size, shared)

    @staticmethod
    def over(HostBlock block not None):
        cdef Buffer buffer = Buffer.__new__(Buffer)
        cdef Engine engine
        cdef CppEngine* e
        if block.ptr == NULL:
            raise misuse_error("the block of host memory was not created")
        engine = block.engine()
        if engine is None:
            raise misuse_error("the context was closed; make a new one")
        e = engine.open()
        buffer.begin(engine, "a buffer")
        with nogil:
            buffer.ptr = e.create_buffer_over(block.ptr[0])
            buffer.resource = buffer.ptr
        return buffer

    def __dealloc__(self):
        if self.watched.load():
            _watched.fetch_sub(1)

    cdef CppBuffer* open(self) except NULL:
        self.check_alive("buffer")
        return self.ptr

    def watch(self):
        if not self.watched.exchange(1):
            _watched.fetch_add(1)

    def unwatch(self):
        if self.refusal is None and self.watched.exchange(0):
            _watched.fetch_sub(1)

    def refuse_writes(self, function):
        self.refusal = function
        self.watch()

    def settle(self):
        if not self.watched.load():
            return
        self.require_writable()
        if _settle is not None:
            _settle(self)

    @property
    def size(self):
        self.enter("buffer")
        try:
            return self.ptr.size()
        finally:
            self.leave()

    @property
    def shared(self):
        self.enter("buffer")
        try:
            return self.ptr.shared()
        finally:
            self.leave()

    @staticmethod
    def over_host(Engine engine not None, uint64_t address, uint64_t size, owner, bint ordered=True):
        cdef Buffer buffer = Buffer.__new__(Buffer)
        cdef CppEngine* e = engine.open()
        cdef shared_ptr[void] kept
        mark_unrepeatable()
        release_dropped_references()
        if address == 0 or size == 0:
            raise ValueError("a buffer needs at least one byte")
        buffer.begin(engine, "a buffer")
        kept = keep_object(<PyObject*>owner)
        with nogil:
            buffer.ptr = e.import_buffer(<byte*><uintptr_t>address, size, ordered, kept)
            buffer.resource = buffer.ptr
        buffer.may_overlap = True
        _note_shared(engine, buffer, address)
        return buffer

    @staticmethod
    def over_handle(Engine engine not None, uint64_t handle, uint64_t size, owner):
        cdef Buffer buffer = Buffer.__new__(Buffer)
        cdef CppEngine* e = engine.open()
        cdef shared_ptr[void] kept
        mark_unrepeatable()
        release_dropped_references()
        if handle == 0 or size == 0:
            raise ValueError("a buffer needs a handle and at least one byte")
        buffer.begin(engine, "a buffer")
        kept = keep_object(<PyObject*>owner)
        buffer.ptr = e.borrow_buffer(<VkBuffer><uintptr_t>handle, size, kept)
        buffer.resource = buffer.ptr
        buffer.may_overlap = True
        return buffer

    def part(self, uint64_t offset, uint64_t size):
        cdef Buffer buffer = Buffer.__new__(Buffer)
        cdef Engine engine
        mark_unrepeatable()
        self.settle_readers()
        self.enter("buffer")
        try:
            engine = self.engine
            if size == 0 or offset > self.ptr.size() or size > self.ptr.size() - offset:
                raise ValueError("a part of a buffer lies within it")
            buffer.begin(engine, "a buffer")
            buffer.ptr = engine.open().create_part(self.ptr[0], offset, size)
            buffer.resource = buffer.ptr
            buffer.whole = self if self.whole is None else self.whole
            buffer.first = self.first + offset
            buffer.may_overlap = True
            if self.refusal is not None:
                buffer.refuse_writes(self.refusal)
        finally:
            self.leave()
        return buffer

    def lend(self, size_t queue=0, bint ordered=True):
        cdef CppEngine* engine
        cdef Loan loan = Loan.__new__(Loan)
        mark_unrepeatable()
        self.settle_readers()
        self.enter("buffer")
        try:
            engine = self.engine.open()
            _queue_range(self.engine, <int>queue)
            with nogil:
                loan.loan = engine.lend(queue, self.ptr[0], ordered)
        finally:
            self.leave()
        if loan.loan.get() == NULL:
            return None
        loan.buffer = self
        _note_shared(self.engine, self, <uintptr_t>loan.data())
        return loan

    cdef int settle_readers(self) except -1:
        """Compute what waits to read the buffer, without a check of whether it may be written."""
        if self.watched.load() and self.readers is not None and _settle is not None:
            _settle(self)
        return 0

    cdef int require_writable(self) except -1:
        """Raise the error of whoever is about to write memory that must not be written."""
        if self.refusal is not None:
            self.refusal()
        return 0

    @property
    def read_only(self):
        return self.refusal is not None

    cdef bint is_lent(self):
        return self.ptr != NULL and self.ptr.sharing().any()

    @property
    def lent(self):
        return bool(self.is_lent())

    @property
    def imported(self):
        return self.ptr != NULL and self.ptr.imported()

    def lend_on_device(self):
        cdef Loan loan = Loan.__new__(Loan)
        mark_unrepeatable()
        self.settle_readers()
        self.enter("buffer")
        try:
            loan.loan = self.engine.open().keep(self.ptr[0])
        finally:
            self.leave()
        loan.buffer = self
        return loan

    def block(self):
        cdef CppBlock block
        cdef uint64_t number = 0
        mark_unrepeatable()
        self.enter("buffer")
        try:
            block = self.engine.open().block_of(self.ptr[0], &number)
        finally:
            self.leave()
        return (number, block.size, block.offset, block.dedicated) if number else None

    def export_block(self):
        self.enter("buffer")
        try:
            return self.engine.open().export_block(self.ptr[0])
        finally:
            self.leave()

    @property
    def memory_handle(self):
        return <uintptr_t><PyObject*>(self if self.whole is None else self.whole)

    def overlaps(self, Buffer other not None):
        self.enter("buffer")
        try:
            other.enter("buffer")
            try:
                return _overlap(self, other)
            finally:
                other.leave()
        finally:
            self.leave()

    @property
    def host_mapped(self):
        self.enter("buffer")
        try:
            return self.ptr.memory(0).mapped() != NULL
        finally:
            self.leave()

    def write(self, int queue, data, uint64_t offset=0):
        self.settle()
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef uint64_t value
        if call_recorder != NULL:
            (<CallRecorder>call_recorder).note_write(self, queue)
        queues = _queue_range(self.engine, queue)
        cdef HostMemory host
        self.enter("buffer")
        try:
            host = HostMemory(data, False)
            if offset > buffer.size() or <uint64_t>host.view.len > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} do not fit a buffer of {buffer.size()} bytes")
            for q in queues[:1] if buffer.shared() else queues:
                with nogil:
                    value = engine.upload(q, buffer[0], offset, <const byte*>host.view.buf, host.view.len)
                if value != 0:
                    self.engine.wait(q, value, True)
            if buffer.shared() and len(queues) > 1:
                self.engine.follow(self.engine.work_points(queues[0]))
        finally:
            self.leave()

    def read_into(self, int queue, out, uint64_t offset=0, bint tells=True):
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef CppReading reading
        cdef cbool done = False
        cdef byte* target
        cdef uint64_t size
        mark_unrepeatable()
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        cdef HostMemory host
        self.enter("buffer")
        try:
            host = HostMemory(out, True)
            target = <byte*>host.view.buf
            size = host.view.len
            if offset > buffer.size() or size > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} exceed a buffer of {buffer.size()} bytes")
            # Append the copy now, after the work it needs, so that there is only one wait.
            with nogil:
                reading = engine.begin_download(q, buffer[0], offset, target, size)
            if reading.value == 0:
                with nogil:
                    engine.download(q, buffer[0], offset, target, size)
                if tells:
                    self.engine.raise_notes(q, FOREVER)
                return
            try:
                with nogil:
                    engine.wait_until(q, reading.value)
                    engine.finish_download(q, reading, target)
                done = True
            finally:
                if not done:
                    engine.drop_download(q, reading)
            if tells:
                self.engine.raise_notes(q, reading.value)
        finally:
            self.leave()

    def write_async(self, int queue, data, uint64_t offset=0):
        self.settle()
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef vector[CppPoint] points
        cdef CppPinned* block = NULL
        cdef const byte* source
        cdef uint64_t done, size
        mark_unrepeatable()
        queues = _queue_range(self.engine, queue)
        cdef HostMemory host
        self.enter("buffer")
        try:
            host = HostMemory(data, False)
            if offset > buffer.size() or <uint64_t>host.view.len > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} do not fit a buffer of {buffer.size()} bytes")
            if host.view.len == 0:
                return []
            for q in queues[:1] if buffer.shared() else queues:
                source = <const byte*>host.view.buf
                if engine.is_pinned(q, source, host.view.len):
                    points.push_back(engine.start_upload(q, buffer[0], offset, source, host.view.len))
                    continue
                done = 0
                while done < <uint64_t>host.view.len:
                    size = min(<uint64_t>host.view.len - done, <uint64_t>MOST_PINNED)
                    with nogil:
                        block = engine.create_pinned(q, size, UPLOAD)
                        copy_bytes(block.data(), source + done, size)
                    try:
                        points.push_back(engine.start_upload(q, buffer[0], offset + done, block.data(), size))
                    finally:
                        engine.retire(block)
                    done += size
            if buffer.shared() and len(queues) > 1:
                self.engine.follow(_point_tuples(points))
            self.finish_lent(points)
        finally:
            self.leave()
        return _point_tuples(points)

    def read_async(self, int queue, out, uint64_t offset=0):
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef CppPoint point
        cdef vector[CppPoint] points
        mark_unrepeatable()
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        cdef HostMemory host
        self.enter("buffer")
        try:
            host = HostMemory(out, True)
            if offset > buffer.size() or <uint64_t>host.view.len > buffer.size() - offset:
                raise ValueError(f"{host.view.len} bytes at offset {offset} exceed a buffer of {buffer.size()} bytes")
            if host.view.len == 0:
                return []
            if not engine.is_pinned(q, <const byte*>host.view.buf, host.view.len):
                raise ValueError("out: expected memory that is pinned for the queue's device; create the array with "
                                 "vd.empty_pinned")
            point = engine.start_download(q, buffer[0], offset, <byte*>host.view.buf, host.view.len)
            points.push_back(point)
            self.finish_lent(points)
        finally:
            self.leave()
        return [(point.slot, point.value)]

    cdef int finish_lent(self, vector[CppPoint] points) except -1:
        """Wait for copies of memory that the host uses."""
        cdef CppEngine* engine = self.engine.open()
        cdef size_t i
        if self.ptr.sharing().ordered():
            for i in range(points.size()):
                with nogil:
                    engine.wait_until(points[i].slot, points[i].value)
        return 0

    def copy_between(self, int source, int target):
        self.settle()
        cdef CppBuffer* buffer = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t first, second
        mark_unrepeatable()
        (first,) = _queue_range(self.engine, source) if source >= 0 else (0,)
        (second,) = _queue_range(self.engine, target) if target >= 0 else (0,)
        self.enter("buffer")
        try:
            with nogil:
                engine.copy_between(buffer[0], first, second)
        finally:
            self.leave()

    def copy_from(self, Buffer source not None, int queue=-1):
        cdef CppEngine* engine
        cdef size_t first, last
        cdef cbool crowded
        self.settle()
        self.enter("buffer")
        try:
            source.enter("buffer")
            try:
                engine = self.engine.open()
                if source.engine is not self.engine:
                    raise ValueError("source: it belongs to another engine")
                if source.ptr.size() != self.ptr.size():
                    raise ValueError(f"source: {source.ptr.size()} bytes cannot fill a buffer of {self.ptr.size()} bytes")
                queues = _queue_range(self.engine, queue)
                first, last = queues[0], queues[-1] + 1
                if call_recorder != NULL:
                    (<CallRecorder>call_recorder).note_copy(self, source, queue)
                with nogil:
                    crowded = engine.copy(self.ptr[0], source.ptr[0], first, last)
                    if crowded:
                        engine.make_room()
            finally:
                source.leave()
        finally:
            self.leave()

    def mark(self, bint steady):
        if call_recorder != NULL and self.recorder is <CallRecorder>call_recorder:
            self.recorder.note_mark(self, steady)
        if steady:
            self.open().set_steady()
        else:
            self.open().set_renewable()

    def announce(self):
        self.open().announce()

    @property
    def poisoned(self):
        return bool(anywhere_poisoned() and self.open().poisoned())

    def check(self, int queue):
        cdef CppEngine* engine = self.engine.open()
        (q,) = _queue_range(self.engine, queue)
        self.enter("buffer")
        try:
            engine.check_poison(self.ptr[0], <size_t>q)
        finally:
            self.leave()

    def last_write(self, int queue):
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef vector[CppPoint] points
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        self.enter("buffer")
        try:
            points = engine.work_points(q, q + 1)
            return [(point.slot, self.ptr.last_write(point.slot)) for point in points]
        finally:
            self.leave()

# ---- images

DEF STORAGE_USAGE = 0x8  # VK_IMAGE_USAGE_STORAGE_BIT


cdef bint _overlap(Buffer one, Buffer other) except -1:
    """Whether two buffers have a byte of memory in common. Neither is destroyed meanwhile."""
    cdef uint64_t place, other_place
    if one is other:
        return True
    if not (one.may_overlap or other.may_overlap):
        return False
    if (one if one.whole is None else one.whole) is (other if other.whole is None else other.whole):
        place, other_place = one.first, other.first
    else:
        place = <uintptr_t>one.ptr.memory(0).mapped()
        other_place = <uintptr_t>other.ptr.memory(0).mapped()
        if place == 0 or other_place == 0:
            return False
    return place < other_place + other.ptr.size() and other_place < place + one.ptr.size()


cdef CppImageShape _image_shape(int view_type, int format, extent, uint32_t layers, uint32_t levels, bint storage) except *:
    cdef uint32_t width, height, depth
    if view_type not in (0, 1, 2, 5):
        raise ValueError(f"view_type: expected 0 (1D), 1 (2D), 2 (3D) or 5 (2D array), got {view_type}")
    if format < 0:
        raise ValueError(f"format: there is no VkFormat {format}")
    width, height, depth = extent
    return image_shape(view_type, format, width, height, depth, layers, levels, storage)


cdef class Image(Data):
    cdef CppImage* ptr

    def __init__(self, Engine engine not None, int view_type, int format, extent, uint32_t layers, uint32_t levels,
                 bint storage, bint shared=False):
        cdef CppEngine* e = engine.open()
        cdef CppImageShape shape = _image_shape(view_type, format, extent, layers, levels, storage)
        self.begin(engine, "an image")
        with nogil:
            self.ptr = e.create_image(shape, shared)
            self.resource = self.ptr

    @staticmethod
    def over_handle(Engine engine not None, uint64_t handle, int view_type, int format, extent, uint32_t layers,
                    uint32_t levels, uint32_t layout, uint32_t usage, owner):
        cdef Image image = Image.__new__(Image)
        cdef CppEngine* e = engine.open()
        cdef CppImageShape shape = _image_shape(view_type, format, extent, layers, levels, usage & STORAGE_USAGE != 0)
        cdef shared_ptr[void] kept
        mark_unrepeatable()
        release_dropped_references()
        if handle == 0:
            raise ValueError("an image needs a handle")
        image.begin(engine, "an image")
        kept = keep_object(<PyObject*>owner)
        with nogil:
            image.ptr = e.borrow_image(shape, borrowed_image(handle, layout, usage), kept)
            image.resource = image.ptr
        return image

    cdef CppImage* open(self) except NULL:
        self.check_alive("image")
        return self.ptr

    @property
    def sampleable(self):
        self.enter("image")
        try:
            return sampleable(self.ptr[0])
        finally:
            self.leave()

    @property
    def storable(self):
        self.enter("image")
        try:
            return storable(self.ptr[0])
        finally:
            self.leave()

    def write(self, int queue, data, uint32_t level=0):
        cdef CppImage* image = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        queues = _queue_range(self.engine, queue)
        cdef HostMemory host
        self.enter("image")
        try:
            host = HostMemory(data, False)
            for q in queues[:1] if image.shared() else queues:
                with nogil:
                    engine.upload(q, image[0], level, <const byte*>host.view.buf, host.view.len)
            if image.shared() and len(queues) > 1:
                self.engine.follow(self.engine.work_points(queues[0]))
        finally:
            self.leave()

    def read_into(self, int queue, out, uint32_t level=0):
        cdef CppImage* image = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        (q,) = _queue_range(self.engine, queue) if queue >= 0 else (0,)
        cdef HostMemory host
        self.enter("image")
        try:
            host = HostMemory(out, True)
            with nogil:
                engine.download(q, image[0], level, <byte*>host.view.buf, host.view.len)
            self.engine.raise_notes(q, FOREVER)
        finally:
            self.leave()


cdef class SamplerState:
    """A VkSampler, shared by all samplers with the same settings."""

    cdef shared_ptr[CppEngine] keep
    cdef CppSampler* ptr
    cdef object __weakref__

    def __dealloc__(self):
        if self.ptr != NULL:
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
            raise misuse_error("a sampler is initialized once")
        if max(mag_filter, min_filter, mip_filter, address_mode, border_color) > 255:
            raise ValueError("a filter, address mode or border colour is unknown")
        if not image.sampleable:
            raise ValueError("the device does not support sampling images of this format")
        e = image.engine.open()
        key = (mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod, border_color)
        state = image.engine.samplers.get(key)
        if state is None:
            settings = sampler_settings(mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod,
                                        border_color)
            state = SamplerState.__new__(SamplerState)
            state.keep = image.engine.ptr
            with nogil:
                state.ptr = e.create_sampler(settings)
            image.engine.samplers[key] = state
        self.engine = image.engine
        self.image = image
        self.state = state

    cdef int open(self) except -1:
        if self.state is None or self.image is None:
            raise misuse_error("the sampler was not created")
        self.image.open()
        return 0
