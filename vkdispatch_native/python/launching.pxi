# The launcher: turns the arguments of a Python call into one appended dispatch.

# ---- launching

cdef enum SlotKind:
    NO_SLOT, BUFFER_SLOT, SAMPLER_SLOT, IMAGE_SLOT, SCALAR_SLOT, VALUE_SLOT

cdef struct Slot:
    SlotKind kind
    uint32_t offset  # in the argument block; for a buffer: of its shape, if the kernel takes it
    cbool has_shape
    cbool planar  # the kernel indexes it by two axes: its shape must not have a third
    uint32_t size
    uint64_t least, most  # size limits of a buffer in bytes; most 0: none
    cbool uniform  # a buffer whose first `least` bytes are bound as a uniform block
    cbool addressed  # a buffer that is not bound: its address is written to address_offset
    uint32_t address_offset
    cbool has_length
    uint32_t length_offset  # offset of a buffer's size in bytes, as uint64
    cbool in_words  # the kernel accesses elements as 32-bit words: the last word is bound completely
    PyObject* element  # the required var_type of a buffer, or `twin`; NULL: any
    PyObject* twin
    char code  # struct format character of a scalar
    uint32_t binding
    cbool reads
    cbool writes
    int view_type  # for an image
    int kind_or_format  # for a sampled image: vkd::Numeric; for a storage image: VkFormat


# Slots are immutable. Launchers copy the struct and keep the object alive for the pointers in it.
cdef class ArgumentSlot:
    cdef Slot slot


@cython.final
cdef class BufferSlot(ArgumentSlot):
    cdef object element, twin

    def __cinit__(self, *, uint32_t binding, int shape_offset=-1, bint reads=True, bint writes=True,
                  bint planar=False, uint64_t most_bytes=0, int address_offset=-1, int length_offset=-1,
                  bint in_words=False, element=None, twin=None, uint64_t least_bytes=0, bint uniform=False):
        if uniform and (least_bytes == 0 or writes or address_offset >= 0 or length_offset >= 0 or in_words):
            raise ValueError("uniform: expected least_bytes, and a slot that is bound and only read")
        self.slot.kind = BUFFER_SLOT
        self.slot.binding = binding
        self.slot.has_shape, self.slot.offset = shape_offset >= 0, max(shape_offset, 0)
        self.slot.reads, self.slot.writes, self.slot.planar = reads, writes, planar
        self.slot.least, self.slot.most, self.slot.uniform = least_bytes, most_bytes, uniform
        self.slot.addressed, self.slot.address_offset = address_offset >= 0, max(address_offset, 0)
        self.slot.has_length, self.slot.length_offset = length_offset >= 0, max(length_offset, 0)
        self.slot.in_words = in_words
        self.element, self.twin = element, twin
        if element is not None:
            self.slot.element, self.slot.twin = <PyObject*>element, <PyObject*>twin


@cython.final
cdef class SamplerSlot(ArgumentSlot):
    def __cinit__(self, *, uint32_t binding, int view_type, int texels, bint reads=True):
        self.slot.kind = SAMPLER_SLOT
        self.slot.binding, self.slot.view_type, self.slot.kind_or_format = binding, view_type, texels
        self.slot.reads = reads


@cython.final
cdef class ImageSlot(ArgumentSlot):
    def __cinit__(self, *, uint32_t binding, int view_type, int format, bint reads=True, bint writes=True):
        self.slot.kind = IMAGE_SLOT
        self.slot.binding, self.slot.view_type, self.slot.kind_or_format = binding, view_type, format
        self.slot.reads, self.slot.writes = reads, writes


cdef dict _SCALAR_SIZES = {"h": 2, "H": 2, "f": 4, "i": 4, "I": 4, "d": 8, "q": 8, "Q": 8}


@cython.final
cdef class ScalarSlot(ArgumentSlot):
    def __cinit__(self, *, uint32_t offset, str code not None):
        if code not in _SCALAR_SIZES:
            raise ValueError(f"code: expected one of {', '.join(_SCALAR_SIZES)}, got {code!r}")
        self.slot.kind = SCALAR_SLOT
        self.slot.offset, self.slot.size, self.slot.code = offset, _SCALAR_SIZES[code], ord(code)


@cython.final
cdef class ValueSlot(ArgumentSlot):
    def __cinit__(self, *, uint32_t offset, uint32_t size):
        self.slot.kind = VALUE_SLOT
        self.slot.offset, self.slot.size = offset, size


cdef uint64_t _end_of(const Slot& slot) noexcept:
    """Return the end of the slot's bytes in the argument block."""
    cdef uint64_t end = <uint64_t>slot.offset + slot.size
    if slot.addressed:
        end = max(end, <uint64_t>slot.address_offset + 8)
    if slot.has_length:
        end = max(end, <uint64_t>slot.length_offset + 8)
    return end


cdef uint32_t _descriptor_of(const Slot& slot) noexcept:
    """Return the VkDescriptorType of a slot's binding."""
    if slot.kind == BUFFER_SLOT:
        return UNIFORM_BUFFER if slot.uniform else STORAGE_BUFFER
    return SAMPLED_IMAGE if slot.kind == SAMPLER_SLOT else STORAGE_IMAGE


cdef bint _pack_scalar(char code, char* target, object value):
    """Pack a value. Return False for unusual values, which are left to the checking path."""
    cdef double real
    cdef float single
    cdef int64_t signed
    cdef uint64_t unsigned
    try:
        if code == b"f":
            real = PyFloat_AsDouble(value)
            single = <float>real
            if isinf(single) and not isinf(real):
                return False
            if fabs(real) > 16777216.0 and not PyFloat_Check(value):
                return False  # perhaps an int that float32 cannot represent
            memcpy(target, &single, 4)
        elif code == b"d":
            real = PyFloat_AsDouble(value)
            if fabs(real) > 9007199254740992.0 and not PyFloat_Check(value):
                return False
            memcpy(target, &real, 8)
        elif code in (b"i", b"h", b"q"):
            signed = PyNumber_Index(value)  # an assignment would truncate a float
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
            unsigned = PyNumber_Index(value)
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


cdef bint _is_coarse(const uint64_t* sizes, uint64_t width, uint64_t least, bint wide,
                     uint64_t step) noexcept nogil:
    cdef uint64_t surplus = (width - sizes[0] % width) % width
    # leave a margin, so that ids of surplus invocations do not wrap around
    if least == 0 or sizes[0] % step != 0 or (sizes[0] > 0xFFFF0000u and not wide):
        return False
    return least == 1 or (sizes[0] * sizes[1] * sizes[2] >= least and surplus * 8 <= sizes[0])


def is_coarse(extent, uint64_t width, uint64_t least, bint wide=False, uint64_t step=1):
    cdef uint64_t sizes[3]
    sizes[0], sizes[1], sizes[2] = extent
    if width == 0:
        raise ValueError("width: expected a positive int")
    if step == 0:
        raise ValueError("step: expected a positive int")
    return bool(_is_coarse(sizes, width, least, wide, step))


cdef Buffer _memory_of(object argument):
    """Return the memory of a buffer argument, or None. Callers that know the dtype pass the memory itself."""
    if type(argument) is Buffer:
        return <Buffer>argument
    native = getattr(argument, "_native", None)
    return <Buffer>native if isinstance(native, Buffer) else None


cdef extern from *:
    """
    static inline PyObject* referent_of(PyObject* reference) {
    #ifdef Py_LIMITED_API
      PyObject* found = PyWeakref_GetObject(reference);
      return Py_NewRef(found != NULL ? found : Py_None);
    #else  // without the GIL
      PyObject* found = NULL;
      return PyWeakref_GetRef(reference, &found) == 1 ? found : Py_NewRef(Py_None);
    #endif
    }
    """
    object referent_of(object reference)


cdef class Launcher:
    cdef Engine engine
    cdef Plan plan
    cdef vector[Slot] slots
    cdef tuple slot_objects  # keeps objects alive that slots point to
    cdef uint32_t argument_size
    cdef int32_t uniform_binding
    cdef int exec_offset
    cdef int groups_offset
    cdef cbool wide
    cdef uint32_t local_size[3]
    cdef uint64_t max_groups[3]
    cdef uint64_t coarse_width, coarse_least, coarse_step
    cdef bint coarse
    cdef object pack
    cdef object weak_guard  # refers to the guard of what the kernel was traced from; None: nothing that can change

    def __init__(self, Engine engine not None, Plan plan not None, slots, uint32_t argument_size,
                 int uniform_binding, int exec_offset, int groups_offset, local_size, max_groups, pack,
                 uint64_t coarse_width=1, uint64_t coarse_least=0, bint coarse=False, bint wide=False,
                 uint64_t coarse_step=1):
        cdef Slot slot
        cdef vector[Slot] bound_slots
        cdef int axis
        cdef int resources = 0
        cdef tuple slot_objects = tuple(slots)
        cdef int64_t farthest = max(exec_offset + (12 if wide and exec_offset >= 0 else 0), groups_offset)
        if self.engine is not None:
            raise misuse_error("a launcher is initialized once")
        if plan.engine is not engine:
            raise ValueError("plan: it belongs to another context")
        if argument_size > MAX_ARGUMENTS:
            raise ValueError(f"the arguments take {argument_size} bytes; the limit is {MAX_ARGUMENTS}")
        _check_arguments(plan.open(), argument_size, uniform_binding)
        if plan.open().binding_count() > MAX_BINDINGS:
            raise ValueError(f"{plan.open().binding_count()} bound buffers and images exceed the limit of "
                             f"{MAX_BINDINGS}")
        bound = {uniform_binding} if uniform_binding >= 0 else set()
        _bind_blocks(plan.open(), bound)
        kinds = {}  # binding -> VK_DESCRIPTOR_TYPE_*
        for item in slot_objects:
            if not isinstance(item, ArgumentSlot) or (<ArgumentSlot>item).slot.kind == NO_SLOT:
                raise TypeError(f"slots: expected a BufferSlot, SamplerSlot, ImageSlot, ScalarSlot or ValueSlot, got "
                                f"{item!r}")
            slot = (<ArgumentSlot>item).slot
            if slot.has_shape:
                slot.size = 32 if wide else 16
            if _end_of(slot) > argument_size:
                raise ValueError("slots: a slot lies beyond the argument block")
            if slot.kind in (BUFFER_SLOT, SAMPLER_SLOT, IMAGE_SLOT):
                resources += 1
                if not slot.addressed:
                    if slot.binding in bound:
                        raise ValueError(f"slots: binding {slot.binding} is bound twice")
                    bound.add(slot.binding)
                    kinds[slot.binding] = _descriptor_of(slot)
            if slot.uniform and slot.least > engine.open().limits().uniform_range:
                raise ValueError(f"slots: a uniform block of {slot.least} bytes; the device's limit is "
                                 f"{engine.open().limits().uniform_range}")
            bound_slots.push_back(slot)
        if resources > MAX_BINDINGS:
            raise ValueError(f"slots: {resources} buffers and images exceed the limit of {MAX_BINDINGS}")
        if bound != set(range(plan.open().binding_count())):
            raise ValueError(f"slots: they bind {sorted(bound)}, the plan has {plan.open().binding_count()} bindings")
        for binding, kind in kinds.items():
            if plan.open().type(binding) != kind:
                raise ValueError(f"slots: binding {binding} of the plan is of another type")
        if farthest >= 0 and farthest + 12 > <int64_t>argument_size:
            raise ValueError("exec_offset, groups_offset: beyond the argument block")
        for axis in range(3):
            self.local_size[axis] = local_size[axis]
            self.max_groups[axis] = max_groups[axis]
            if self.local_size[axis] == 0 or self.max_groups[axis] == 0:
                raise ValueError("local_size, max_groups: expected positive ints")
        self.slots = bound_slots
        self.slot_objects = slot_objects
        self.engine = engine
        self.plan = plan
        self.argument_size = argument_size
        self.uniform_binding = uniform_binding
        self.exec_offset = exec_offset
        self.groups_offset = groups_offset
        self.wide = wide
        self.pack = pack
        self.coarse_width = coarse_width
        self.coarse_least = coarse_least
        self.coarse = coarse
        self.coarse_step = coarse_step
        if coarse_width == 0 or coarse_step == 0:
            raise ValueError("coarse_width, coarse_step: expected positive ints")

    cdef bint grid(self, object limit, bint limit_is_groups, char* block, CppGroups* groups):
        """Set the workgroups for a launch limit, and write the limit into the argument block."""
        cdef uint64_t sizes[3]
        cdef uint64_t counts[3]
        cdef uint32_t bounds[3]
        cdef uint32_t true_counts[3]
        cdef uint64_t total, y
        cdef uint64_t most = MAX_WIDE_SIZE if self.wide else 0xFFFFFFFFu
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
            if sizes[axis] == 0 or sizes[axis] > most:
                return False
        if (not limit_is_groups and _is_coarse(sizes, self.coarse_width, self.coarse_least, self.wide,
                                               self.coarse_step)) != self.coarse:
            return False
        for axis in range(3):
            if limit_is_groups:
                counts[axis] = sizes[axis]
                if counts[axis] > 0xFFFFFFFFu:
                    return False
                sizes[axis] *= self.local_size[axis]
                if sizes[axis] > most:
                    return False
            else:
                counts[axis] = (sizes[axis] + self.local_size[axis] - 1) // self.local_size[axis]
                if counts[axis] > 0xFFFFFFFFu:
                    return False
            bounds[axis] = <uint32_t>sizes[axis]
            true_counts[axis] = <uint32_t>counts[axis]
        if self.exec_offset >= 0 and self.wide:
            memcpy(block + self.exec_offset, sizes, 24)
        elif self.exec_offset >= 0:
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
        """Fill in the binding of a sampler or storage image. Return False if it does not match the slot."""
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
        if image.engine is not self.engine or image.ptr == NULL or image.destroy_requested.load():
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
        """Fill in the dispatch, and `resources` unless None. Return False if an argument has an unexpected type."""
        cdef size_t i
        cdef Slot* slot
        cdef uint32_t count = 0
        cdef int64_t shape[4]
        cdef int32_t short_shape[4]
        cdef int axis
        cdef uint64_t length
        cdef CppBinding* b
        cdef Buffer buffer
        cdef bytes packed
        if self.engine is None:
            raise misuse_error("the launcher was not initialized")
        cdef CppEngine* engine = self.engine.open()
        if <size_t>len(arguments) != self.slots.size():
            return False
        memset(block, 0, self.argument_size)
        for i in range(self.slots.size()):
            slot = &self.slots[i]
            argument = arguments[i]
            if slot.kind == BUFFER_SLOT:
                buffer = _memory_of(argument)
                if buffer is None or (slot.has_shape and argument is buffer):
                    return False
                if buffer.engine is not self.engine or buffer.ptr == NULL or buffer.destroy_requested.load():
                    return False
                if slot.writes and buffer.watched.load():
                    return False  # the checking path settles it
                if slot.element != NULL and argument is not buffer:
                    kind = argument.var_type
                    if <PyObject*>kind != slot.element and <PyObject*>kind != slot.twin:
                        return False
                length = buffer.ptr.size()
                if length < slot.least or (slot.most > 0 and length > slot.most):
                    return False
                if slot.uniform:
                    length = slot.least
                elif not slot.addressed and length > engine.limits().storage_range:
                    return False
                if slot.addressed and buffer.ptr.memory(0).address() == 0:
                    return False
                if resources is not None:
                    resources.append(buffer)
                b = &bindings[count]
                count += 1
                memset(b, 0, sizeof(b[0]))
                b.buffer = buffer.ptr
                b.range = (length + 3) & ~(<uint64_t>3) if slot.in_words else length
                b.index = slot.binding
                b.reads = slot.reads
                b.writes = slot.writes
                if slot.writes:
                    b.renews = buffer.ptr.take_announcement() and not slot.reads
                if slot.element != NULL:
                    for axis in range(<int>i):
                        # one memory as two types, which a kernel assumes not to overlap
                        if (self.slots[axis].element != NULL and self.slots[axis].element != slot.element
                                and (slot.writes or self.slots[axis].writes)
                                and _overlap(_memory_of(arguments[axis]), buffer)):
                            return False
                b.addressed = slot.addressed
                b.address_offset = slot.address_offset
                if slot.has_length:
                    memcpy(block + slot.length_offset, &length, 8)
                if slot.has_shape:
                    shape[0], shape[1], shape[2], shape[3] = argument.shader_shape
                    # more axes than three are one axis in kernels, which two indices would take for rows
                    if slot.planar and (shape[2] != 1 or len(argument.shape) > 3):
                        return False
                    if self.wide:
                        memcpy(block + slot.offset, shape, 32)
                    else:
                        for axis in range(4):
                            if shape[axis] != <int32_t>shape[axis]:
                                return False
                            short_shape[axis] = <int32_t>shape[axis]
                        memcpy(block + slot.offset, short_shape, 16)
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

    # Contexts hold launchers, and a guard holds what the kernel reads, which may lead to the kernel: contexts would keep
    # such kernels alive.
    @property
    def guard(self):
        return None if self.weak_guard is None else self.weak_guard()

    @guard.setter
    def guard(self, Guard guard):
        self.weak_guard = None if guard is None else weakref.ref(guard)

    cdef bint is_stale(self) except -1:
        if self.weak_guard is None:
            return False
        guard = referent_of(self.weak_guard)
        return guard is None or not (<Guard>guard).snapshot.holds()

    def launch(self, tuple arguments not None, limit, bint limit_is_groups, int queue=-2):
        cdef char block[MAX_ARGUMENTS]
        cdef CppBinding bindings[MAX_BINDINGS]
        cdef CppDispatch dispatch
        cdef size_t first, last
        cdef CppEngine* engine
        cdef unsigned int hold
        cdef cbool crowded
        if self.engine is None:
            raise misuse_error("the launcher was not initialized")
        if self.is_stale():
            return False
        for argument in arguments:
            if isinstance(argument, ArrayBase):
                arguments = _with_buffers(arguments)
                break
        engine = self.engine.open()
        first, last = 0, engine.queue_count()
        if queue != -2:
            first = engine.least_busy() if queue == -1 else _queue_range(self.engine, queue)[0]
            last = first + 1
        # Packing values may run any Python code, and other threads may run at any time. Both may destroy a buffer
        # that was found alive.
        hold = engine.begin_hold()
        try:
            if not self.prepare(arguments, limit, limit_is_groups, block, bindings, &dispatch, None):
                return False
            if call_recorder != NULL:
                (<CallRecorder>call_recorder).note_launch(self, arguments, dispatch, queue)
            if engine.queue_count() == 1:
                crowded = engine.append(dispatch, first, last)
            else:  # a thread that shares memory between queues may hold the lock while it waits for the GIL
                with nogil:
                    crowded = engine.append(dispatch, first, last)
        finally:
            engine.end_hold(hold)
        if crowded:
            with nogil:
                engine.make_room()
        return True

    def record(self, CommandList commands not None, tuple arguments not None, limit, bint limit_is_groups):
        cdef char block[MAX_ARGUMENTS]
        cdef CppBinding bindings[MAX_BINDINGS]
        cdef CppDispatch dispatch
        cdef CppEngine* engine
        cdef list resources
        cdef size_t offset = 0
        cdef unsigned int hold
        cdef bint done = False
        commands.open()
        mark_unrepeatable()
        if commands.engine is not self.engine or self.is_stale():
            return None
        engine = self.engine.open()
        while not done:
            resources = [self.plan]
            hold = engine.begin_hold()
            try:
                if not self.prepare(arguments, limit, limit_is_groups, block, bindings, &dispatch, resources):
                    return None
                done = commands.record_dispatch(dispatch, resources, &offset)
            finally:
                engine.end_hold(hold)
            if not done:
                commands.wait_until_free()
        return offset, (<const char*>block)[: self.argument_size]
