# Plans and command lists.

# ---- plans


cdef class Plan:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep
    cdef CppPlan* ptr

    def __init__(self, Engine engine not None, bytes spirv not None, binding_types, uint32_t push_constant_size,
                 str name not None, str entry_point not None="main", specialization=(), cached=(),
                 str place not None="", uniform_blocks=()):
        engine.open()
        cdef CppPlanRequest request
        cdef CppUniformBlock block
        cdef vector[CppUniformBlock] blocks
        cdef string where = place.encode("utf-8", "replace")
        cdef VkSpecializationMapEntry constant
        request.binding_types = binding_types
        request.push_constant_size = push_constant_size
        request.name = name.encode()
        request.entry_point = entry_point.encode()
        request.cached = cached
        if self.ptr != NULL:
            raise misuse_error("a plan is initialized once")
        if len(spirv) < 20 or len(spirv) % 4 != 0 or spirv[:4] not in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03"):
            raise ValueError("spirv: the bytes are not a SPIR-V module")
        request.spirv.resize(len(spirv) // 4)
        memcpy(request.spirv.data(), <const char*>spirv, len(spirv))
        for number, value in specialization:
            if len(value) not in (1, 2, 4, 8):
                raise ValueError(f"specialization: constant {number} has {len(value)} bytes, expected 1, 2, 4 or 8")
            constant.constantID = number
            constant.offset = <uint32_t>request.specialization.data.size()
            constant.size = len(value)
            request.specialization.data.resize(constant.offset + constant.size)
            memcpy(&request.specialization.data[constant.offset], <const char*><bytes>value, constant.size)
            request.specialization.entries.push_back(constant)
        for block.binding, block.offset, block.size in uniform_blocks:
            if <uint64_t>block.offset + block.size > MAX_ARGUMENTS:
                raise ValueError(f"uniform_blocks: binding {block.binding} lies beyond the {MAX_ARGUMENTS} bytes "
                                 "available for arguments")
            blocks.push_back(block)
        self.engine = engine
        self.keep = engine.ptr
        _register_thread_hooks()
        cdef shared_ptr[CppPlanCreation] creation = CppPlanCreation.start(engine.ptr, request)
        with nogil:
            creation.get().wait()
        self.ptr = creation.get().take()
        self.ptr.set_place(where)
        self.ptr.set_uniform_blocks(blocks)

    def __dealloc__(self):
        if self.ptr != NULL:
            self.keep.get().retire(self.ptr)

    cdef CppPlan* open(self) except NULL:
        if self.ptr == NULL:
            raise misuse_error("the compute plan was destroyed")
        self.engine.open()
        return self.ptr

    @property
    def id(self):
        return self.open().id()

    def new_cache_data(self):
        return list(self.open().new_cache_data())

    def destroy(self):
        cdef CppPlan* plan
        with cython.critical_section(self):
            plan = self.ptr
            self.ptr = NULL
        if plan != NULL:
            _destroyed.fetch_add(1)
            self.keep.get().retire(plan)

# ---- command lists


cdef int _check_range(const CppLimits& limits, int kind, index, uint64_t offset, uint64_t size) except -1:
    """Raise ValueError if Vulkan does not allow to bind these bytes."""
    if kind not in (STORAGE_BUFFER, UNIFORM_BUFFER):
        what = "a storage image" if kind == STORAGE_IMAGE else "a sampler"
        raise ValueError(f"binding {index}: the plan expects {what}, got a buffer")
    cdef uint64_t most = limits.storage_range if kind == STORAGE_BUFFER else limits.uniform_range
    cdef uint64_t alignment = limits.storage_alignment if kind == STORAGE_BUFFER else limits.uniform_alignment
    if size > most:
        raise ValueError(f"binding {index}: {size} bytes exceed the {most} that a kernel on this device can access")
    if offset % alignment != 0:
        raise ValueError(f"binding {index}: the offset {offset} is not a multiple of {alignment}, which this device "
                         "requires")
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
        if writes:
            buffer.require_writable()
        if offset >= b.buffer.size() or size > b.buffer.size() - offset:
            raise ValueError(f"binding {index}: bytes {offset} to {offset + size} exceed the buffer's size of "
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
            raise ValueError(f"binding {index}: the plan does not expect a sampler")
    elif isinstance(resource, Image):
        image = <Image>resource
        b.image = image.open()
        owner = image.engine
        if plan.type(index) != STORAGE_IMAGE:
            raise ValueError(f"binding {index}: the plan does not expect a storage image")
        if not storable(b.image[0]):
            raise ValueError(f"binding {index}: the image does not support stores")
    else:
        raise TypeError(f"binding {index}: expected a buffer, an image or a sampler, got {type(resource).__name__}")
    if owner is not engine:
        raise ValueError(f"binding {index}: the resource belongs to another context")
    if b.image != NULL and plan.refuses(b.index, b.image[0]):
        raise ValueError(f"binding {index}: the shader declares an image with other axes or texels")
    return 0


cdef int _bind_blocks(CppPlan* plan, set bound) except -1:
    """Add the bindings of the plan's uniform blocks to the bound ones."""
    cdef size_t i
    for i in range(plan.uniform_blocks().size()):
        if plan.uniform_blocks()[i].binding in bound:
            raise ValueError(f"binding {plan.uniform_blocks()[i].binding}: the plan binds a uniform block of each "
                             "launch there")
        bound.add(plan.uniform_blocks()[i].binding)
    return 0


cdef int _check_arguments(CppPlan* plan, uint32_t size, int uniform_binding) except -1:
    """Raise ValueError unless the plan accepts `size` bytes of arguments this way."""
    if not plan.uniform_blocks().empty():
        if uniform_binding >= 0:
            raise ValueError(f"uniform_binding: {uniform_binding}; the plan defines the bindings of its uniform blocks")
        if size != plan.argument_size():
            raise ValueError(f"argument_size: {size} bytes; the plan's push constants and uniform blocks "
                             f"take {plan.argument_size()}")
    elif uniform_binding < 0:
        if size > plan.push_constant_size() or size % 4 != 0:
            raise ValueError(f"argument_size: {size} bytes do not fit the plan's "
                             f"{plan.push_constant_size()} bytes of push constants")
    elif <size_t>uniform_binding >= plan.binding_count() or plan.type(uniform_binding) != UNIFORM_BUFFER:
        raise ValueError(f"uniform_binding: the plan has no uniform buffer at {uniform_binding}")
    elif not 0 < size <= MAX_ARGUMENTS:
        raise ValueError(f"argument_size: {size} bytes, expected 1 to {MAX_ARGUMENTS}")
    return 0


cdef enum CommandKind:
    COPY, IMAGE_COPY, IMAGE_PAIR, BARRIER, TIMESTAMP


cdef class CommandList:
    cdef Engine engine
    cdef shared_ptr[CppEngine] keep
    cdef CppCommandList* ptr
    cdef dict objects  # id -> Buffer, Image, Sampler or Plan used by the recorded commands
    cdef uint64_t checked  # the value of _destroyed when they were last found alive
    cdef int users
    cdef atomic[int] destroy_requested

    def __init__(self, Engine engine not None):
        if self.ptr != NULL:
            raise misuse_error("a command list is initialized once")
        self.engine = engine
        self.keep = engine.ptr
        self.objects = {}
        self.ptr = engine.open().create_command_list()

    def __dealloc__(self):
        if self.ptr != NULL:
            self.keep.get().destroy(self.ptr)

    cdef CppCommandList* open(self) except NULL:
        if self.ptr == NULL or self.destroy_requested.load():
            raise misuse_error("the command list was destroyed")
        self.engine.open()
        return self.ptr

    cdef int enter(self) except -1:
        """Keep the list's native objects alive until leave()."""
        mark_unrepeatable()
        with cython.critical_section(self):
            self.open()
            self.users += 1
        return 0

    cdef int leave(self) except -1:
        cdef CppCommandList* commands = NULL
        with cython.critical_section(self):
            self.users -= 1
            if self.destroy_requested.load() and self.users == 0:
                commands = self.ptr
                self.ptr = NULL
        if commands != NULL:
            self.keep.get().destroy(commands)
            self.objects = {}
        return 0

    cdef int check_alive(self) except -1:
        cdef uint64_t destroyed = _destroyed.load()
        cdef dict seen
        cdef list objects
        with cython.critical_section(self):
            if self.checked == destroyed:
                return 0
            seen = self.objects
            objects = list(seen.values())
        self.check_each(objects)
        with cython.critical_section(self):
            if self.objects is seen and len(seen) == len(objects):  # nothing was recorded meanwhile
                self.checked = destroyed
        return 0

    cdef int check_each(self, list objects) except -1:
        for item in objects:
            if isinstance(item, Buffer):
                (<Buffer>item).open()
            elif isinstance(item, Image):
                (<Image>item).open()
            elif isinstance(item, Sampler):
                (<Sampler>item).open()
            elif isinstance(item, Plan):
                (<Plan>item).open()
        return 0

    cdef int settle(self) except -1:
        """Compute what waits to read buffers that the commands may write. Recording refused what is read-only."""
        cdef list objects
        self.open()
        if _watched.load() == 0:
            return 0
        with cython.critical_section(self):
            objects = list(self.objects.values())
        for item in objects:
            if isinstance(item, Buffer):
                (<Buffer>item).settle_readers()
        return 0

    cdef int keep_objects(self, list objects) except -1:
        for item in objects:
            self.objects[id(item)] = item
        self.checked = UNCHECKED
        return 0

    cdef int record_dispatch(self, const CppDispatch& dispatch, list objects, size_t* offset) except -1:
        """Append a dispatch and keep its objects alive. Return 0 if wait_until_free() must be called first."""
        cdef bint done
        with cython.critical_section(self):
            done = self.open().try_record(dispatch, offset[0])
            if done:
                self.keep_objects(objects)
        return done

    cdef CppBuffer* buffer_of(self, object item, str name, bint writes=False) except NULL:
        """Return the native buffer of one side of a copy."""
        cdef Buffer buffer
        cdef HostBlock block
        if isinstance(item, Buffer):
            buffer = <Buffer>item
            buffer.open()
            if writes:
                buffer.require_writable()
            if buffer.engine is not self.engine:
                raise ValueError(f"{name}: it belongs to another context")
            return buffer.ptr
        if isinstance(item, HostBlock):
            block = <HostBlock>item
            if block.ptr != NULL and block.keep.get() != self.keep.get():
                raise ValueError(f"{name}: it belongs to another context")
            return block.as_buffer()
        raise TypeError(f"{name}: expected a Buffer or a HostBlock, got {type(item).__name__}")

    cdef CppImage* image_of(self, Image image, str name) except NULL:
        image.open()
        if image.engine is not self.engine:
            raise ValueError(f"{name}: it belongs to another context")
        return image.ptr

    cdef CppCommand command(self, int kind, tuple arguments) except *:
        cdef uint64_t first, second, size
        if kind == COPY:
            source, first, target, second, size = arguments
            return list_copy(self.buffer_of(source, "source")[0], first, self.buffer_of(target, "target", True)[0], second,
                             size)
        if kind == IMAGE_COPY:
            image, other, first, to_image = arguments
            return list_copy(self.image_of(image, "image")[0], self.buffer_of(other, "other", not to_image)[0], first,
                             <bint>to_image)
        if kind == IMAGE_PAIR:
            source, target = arguments
            return list_copy(self.image_of(source, "source")[0], self.image_of(target, "target")[0])
        if kind == TIMESTAMP:
            return list_timestamp()
        return list_barrier()

    cdef int append(self, int kind, tuple arguments) except -1:
        """Append a command other than a dispatch."""
        cdef CppEngine* engine
        cdef CppCommand command
        cdef size_t offset = 0
        cdef unsigned int hold
        cdef bint done = False
        while not done:
            self.open()
            engine = self.engine.open()
            # Another thread may destroy objects that were found alive.
            hold = engine.begin_hold()
            try:
                command = self.command(kind, arguments)
                with cython.critical_section(self):
                    done = self.open().try_record(command, offset)
                    if done:
                        self.keep_objects([item for item in arguments if isinstance(item, (Data, HostBlock))])
            finally:
                engine.end_hold(hold)
            if not done:
                self.wait_until_free()
        return 0

    def record_copy(self, source, uint64_t source_offset, target, uint64_t target_offset, uint64_t size):
        self.append(COPY, (source, source_offset, target, target_offset, size))

    def record_image_copy(self, Image image not None, other, uint64_t offset, bint to_image):
        self.append(IMAGE_COPY, (image, other, offset, to_image))

    def record_image_to_image(self, Image source not None, Image target not None):
        self.append(IMAGE_PAIR, (source, target))

    def record_barrier(self):
        self.append(BARRIER, ())

    def record_timestamp(self):
        if not self.engine_of().has_timestamps():
            raise ValueError("the queues of this device have no timestamps")
        self.append(TIMESTAMP, ())

    cdef CppEngine* engine_of(self) except NULL:
        self.open()
        return self.engine.open()

    def timestamps(self, size_t queue):
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef vector[uint64_t] ticks
        _queue_range(self.engine, queue)
        self.enter()
        try:
            with nogil:
                ticks = engine.timestamps(commands[0], queue)
        finally:
            self.leave()
        return ticks

    @property
    def instance_size(self):
        return self.open().instance_size()

    @property
    def length(self):
        return self.open().length()

    @property
    def object_count(self):
        return len(self.objects)

    def forget_objects(self, Py_ssize_t count):
        with cython.critical_section(self):
            dropped = self.objects
            self.objects = dict(list(dropped.items())[:count])
            self.checked = UNCHECKED

    cdef int wait_until_free(self) except -1:
        cdef CppCommandList* commands = self.open()
        self.enter()
        try:
            with nogil:
                commands.wait_until_free()
        finally:
            self.leave()
        return 0

    def record(self, Plan plan not None, bindings, groups, uint32_t argument_size, int uniform_binding=-1):
        cdef size_t offset = 0
        cdef bint done = False
        cdef unsigned int hold
        cdef CppEngine* engine
        self.open()
        engine = self.engine.open()
        bindings = list(bindings)
        while not done:
            hold = engine.begin_hold()
            try:
                done = self.try_record(plan, bindings, groups, argument_size, uniform_binding, &offset)
            finally:
                engine.end_hold(hold)
            if not done:
                self.wait_until_free()
        return offset

    cdef bint try_record(self, Plan plan, list bindings, groups, uint32_t argument_size, int uniform_binding,
                         size_t* offset) except -1:
        cdef vector[CppBinding] recorded
        cdef vector[byte] zeros
        cdef CppBinding b
        cdef CppDispatch dispatch
        cdef uint32_t x, y, z
        cdef CppPlan* p = plan.open()
        self.open()
        if plan.engine is not self.engine:
            raise ValueError("plan: it belongs to another context")
        bound = set()
        for item in bindings:
            _bind(self.engine, p, item, &b)
            if b.index in bound:
                raise ValueError(f"binding {b.index}: it is bound twice")
            recorded.push_back(b)
            bound.add(b.index)
        if uniform_binding >= 0:
            if uniform_binding in bound:
                raise ValueError(f"uniform_binding: {uniform_binding} is already bound")
            bound.add(uniform_binding)
        _bind_blocks(p, bound)
        expected = set(range(p.binding_count()))
        if bound != expected:
            raise ValueError(f"the plan's bindings are {sorted(expected)}, got {sorted(bound)}")
        _check_arguments(p, argument_size, uniform_binding)
        x, y, z = groups
        dispatch.plan = p
        dispatch.groups.x, dispatch.groups.y, dispatch.groups.z = x, y, z
        dispatch.bindings = recorded.data()
        dispatch.binding_count = <uint32_t>recorded.size()
        dispatch.arguments = NULL
        dispatch.argument_size = argument_size
        dispatch.uniform_binding = uniform_binding
        plan.open()
        return self.record_dispatch(dispatch, [plan, *[item[0] for item in bindings]], offset)

    def reset(self):
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        self.enter()
        try:
            # Commands recorded from here on are kept separately: they may precede the reset, or stay after it.
            with cython.critical_section(self):
                old_objects = self.objects
                self.objects = {}
            with nogil:
                engine.reset(commands[0])
            old_objects = None
        finally:
            self.leave()

    def rearrange(self, order):
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef vector[size_t] indices = order
        cdef vector[pair[size_t, size_t]] arguments
        self.enter()
        try:
            with nogil:
                arguments = engine.rearrange(commands[0], indices)
        finally:
            self.leave()
        return arguments

    def submit(self, int queue, data, size_t instance_count):
        self.settle()
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t first, last
        queues = (engine.least_busy(),) if queue == -1 else _queue_range(self.engine, queue)
        first, last = queues[0], queues[-1] + 1
        cdef HostMemory host
        cdef unsigned int hold
        cdef uint64_t value
        self.enter()
        try:
            host = HostMemory(data, False)
            hold = engine.begin_hold()
            try:
                self.check_alive()
                with nogil:
                    value = engine.submit(commands[0], first, last, <const byte*>host.view.buf, host.view.len,
                                          instance_count)
            finally:
                engine.end_hold(hold)
        finally:
            self.leave()
        return value

    def evaluate(self, int queue, data, timeout_ns):
        self.settle()
        cdef CppCommandList* commands = self.open()
        cdef CppEngine* engine = self.engine.open()
        cdef size_t q
        cdef cbool done = False
        cdef HostMemory host
        cdef unsigned int hold
        cdef bint limited = timeout_ns is not None
        cdef uint64_t limit = timeout_ns if limited else FOREVER
        cdef uint64_t before = 0
        cdef uint64_t value = 0
        cdef uint64_t passed = 0
        cdef uint64_t first_ns = min(<uint64_t>FIRST_WAIT_NS, limit)
        cdef int64_t begin = host_now() if limited else 0
        if queue == -1:
            q = engine.least_busy()
        elif 0 <= queue and <size_t>queue < engine.queue_count():
            q = queue
        else:
            raise ValueError(f"queue: expected -1 or the index of one of {engine.queue_count()} queues, got {queue}")
        self.enter()
        try:
            host = HostMemory(data, False)
            hold = engine.begin_hold()
            try:
                self.check_alive()
                with nogil:
                    done = engine.evaluate(commands[0], q, <const byte*>host.view.buf, host.view.len, first_ns, before,
                                           value)
            finally:
                engine.end_hold(hold)
            if not done:
                if limited:
                    passed = host_now() - begin
                    limit -= min(limit, passed)
                with nogil:
                    done = engine.wait_for_batches(q, before, value, limit)
        finally:
            self.leave()
        if done:
            self.engine.raise_notes(q, value)
        return bool(done)

    def destroy(self):
        cdef bint mine = False
        with cython.critical_section(self):
            if self.ptr != NULL and not self.destroy_requested.load():
                mine = True
                self.destroy_requested.store(1)
                self.users += 1
        if mine:
            self.leave()
