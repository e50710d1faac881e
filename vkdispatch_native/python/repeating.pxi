# Repeated calls of functions on arrays: recorded once, then appended to the queues by one native call.
#
# While a function runs for the first time, a CallRecorder records what it appends to the queues, and the buffers it
# creates and drops. The result is a BoundCall, which repeats this with other buffers as arguments.

cdef extern from *:
    """
    static thread_local PyObject* vkd_call_recorder = nullptr;
    """
    PyObject* call_recorder "vkd_call_recorder"  # the CallRecorder active in this thread, or NULL

cdef extern from "<stdlib.h>" nogil:
    char* getenv(const char* name)

DEF MOST_BOUND_CALLS = 1024  # per context; the least recently used ones are dropped first
DEF MOST_CONSTANT_BYTES = 1 << 16  # that a call writes from the host
DEF MOST_TRIES = 4  # recordings of a call that turned out not to be repeatable
DEF SEEN_ONCE = 0  # in place of a call of a function of arrays, which is recorded when it comes again
DEF READING = 1  # Arrays are arguments; expressions with numbers are left to the function
DEF COMPUTING = 2  # small ones are computed first
DEF COMPUTED_FIRST = -2  # in place of a call that computes the expressions among its arguments
DEF BY_NUMBERS = -1  # in place of a call that depends on the numbers in its maps: they are part of its key

cdef enum StepKind:
    CREATE_STEP, LAUNCH_STEP, COPY_STEP, NO_STEP

cdef struct Step:
    StepKind kind
    size_t slot  # created, or target of a copy
    size_t source  # source of a copy
    uint64_t size
    cbool renewable
    cbool steady
    CppPlan* plan
    CppGroups groups
    size_t first_binding
    uint32_t binding_count
    size_t first_argument
    uint32_t argument_size
    int32_t uniform_binding


cdef struct Patch:
    size_t offset  # in the arguments of all launches
    char code  # struct format character
    size_t number  # of the parameter


class Parameter(int):
    """A number that differs between equal calls. It is passed to kernels unchanged."""


class RealParameter(float):
    """The same for real numbers: those that maps have as arguments."""


cdef class Turns:
    """Interchangeable buffers: successive calls use them in turn."""

    cdef list buffers  # weak references, since each buffer refers to this object
    cdef size_t last

    cdef Buffer next(self, Buffer fallback):
        self.last = (self.last + 1) % len(self.buffers)
        found = self.buffers[self.last]()
        return fallback if found is None else <Buffer>found


def take_turns(buffers):
    cdef Turns turns = Turns.__new__(Turns)
    cdef Buffer buffer
    turns.buffers = [weakref.ref(buffer) for buffer in buffers]
    for buffer in buffers:
        buffer.turns = turns


cdef class BoundCall:
    """The recorded steps of a call, on buffers by slot. The first slots are the arguments, each memory once."""

    cdef vector[Step] steps
    cdef vector[CppBinding] bindings
    cdef vector[size_t] binding_slots
    cdef vector[byte] arguments
    cdef vector[Patch] patches
    cdef size_t argument_count
    cdef size_t slot_count
    cdef list fixed  # (slot, Buffer): buffers of the context, such as counters
    cdef list plans
    cdef tuple results  # slots of the new buffers that are returned
    cdef object finish
    cdef list sources  # functions for the parameters beyond those of the call

    cdef bint find_buffers(self, list natives, vector[CppBuffer*]& buffers) except -1:
        """Fill in the buffers. Return False if something that the call uses was destroyed."""
        cdef Buffer buffer
        cdef size_t slot
        for slot in range(self.argument_count):
            buffer = <Buffer>natives[slot]
            if buffer.ptr == NULL or buffer.destroy_requested.load():
                return False
            buffers[slot] = buffer.ptr
        for slot, buffer in self.fixed:
            if buffer.turns is not None:
                buffer = buffer.turns.next(buffer)
            if buffer.ptr == NULL or buffer.destroy_requested.load() or (anywhere_poisoned() and buffer.ptr.poisoned()):
                return False
            buffers[slot] = buffer.ptr
        for plan in self.plans:
            if (<Plan>plan).ptr == NULL:
                return False
        return True

    cdef int skip_creation(self, size_t slot) except -1:
        """Use an existing buffer for this slot instead of creating one."""
        cdef size_t i
        for i in range(self.steps.size()):
            if self.steps[i].kind == CREATE_STEP and self.steps[i].slot == slot:
                self.steps[i].kind = NO_STEP
        return 0

    cdef int insert_copy(self, size_t slot, size_t source) except -1:
        """Initialize a new buffer with a copy of another one."""
        cdef vector[Step] steps
        cdef Step copy
        for i in range(self.steps.size()):
            steps.push_back(self.steps[i])
            if self.steps[i].kind == CREATE_STEP and self.steps[i].slot == slot:
                memset(&copy, 0, sizeof(copy))
                copy.kind = COPY_STEP
                copy.slot = slot
                copy.source = source
                steps.push_back(copy)
        self.steps = steps
        return 0

    cdef int settle(self, list natives) except -1:
        """Compute what waits to read the arguments that the call writes."""
        cdef size_t i, slot
        if _watched.load() == 0:
            return 0
        for i in range(self.bindings.size()):
            slot = self.binding_slots[i]
            if self.bindings[i].writes and slot < self.argument_count:
                (<Buffer>natives[slot]).settle()
        for i in range(self.steps.size()):
            slot = self.steps[i].slot
            if self.steps[i].kind == COPY_STEP and slot < self.argument_count:
                (<Buffer>natives[slot]).settle()
        return 0

    cdef list run(self, Engine owner, list natives, tuple parameters):
        """Run the call on these Buffers and parameters. Return the new Buffers; None if a resource was destroyed."""
        cdef CppEngine* engine = owner.open()
        cdef vector[CppBuffer*] buffers
        cdef vector[CppBuffer*] created
        cdef vector[CppBinding] bindings
        cdef vector[byte] arguments
        cdef const byte* block = self.arguments.data()
        cdef CppDispatch dispatch
        cdef Step* step
        cdef Patch* patch
        cdef CppBuffer* buffer
        cdef size_t i, j
        cdef size_t last = engine.queue_count()
        cdef bint alone = last == 1
        cdef cbool crowded = False
        cdef unsigned int hold
        cdef list results
        buffers.resize(self.slot_count)
        created.resize(self.slot_count)
        bindings = self.bindings
        if not self.patches.empty():
            arguments = self.arguments
            block = arguments.data()
            for i in range(self.patches.size()):
                patch = &self.patches[i]
                if not _pack_scalar(patch.code, <char*>&arguments[patch.offset], parameters[patch.number]):
                    return None
        try:
            # Before the hold: when memory is short, dropped buffers are freed only while there is no hold.
            for i in range(self.steps.size()):
                step = &self.steps[i]
                if step.kind == CREATE_STEP:
                    buffer = engine.reuse_buffer(step.size, True)
                    if buffer == NULL:
                        with nogil:
                            buffer = engine.create_buffer(step.size, False, True)
                    buffers[step.slot] = created[step.slot] = buffer
                    if step.renewable:
                        buffer.set_renewable()
                    if step.steady:
                        buffer.set_steady()
            hold = engine.begin_hold()
            try:
                if not self.find_buffers(natives, buffers):
                    return None
                for i in range(self.steps.size()):
                    step = &self.steps[i]
                    if step.kind == LAUNCH_STEP:
                        for j in range(step.first_binding, step.first_binding + step.binding_count):
                            bindings[j].buffer = buffers[self.binding_slots[j]]
                        dispatch.plan = step.plan
                        dispatch.groups = step.groups
                        dispatch.bindings = bindings.data() + step.first_binding
                        dispatch.binding_count = step.binding_count
                        dispatch.arguments = block + step.first_argument
                        dispatch.argument_size = step.argument_size
                        dispatch.uniform_binding = step.uniform_binding
                        if alone:
                            crowded |= engine.append(dispatch, 0, 1)
                        else:
                            with nogil:
                                crowded |= engine.append(dispatch, 0, last)
                    elif step.kind == COPY_STEP:
                        with nogil:
                            crowded |= engine.copy(buffers[step.slot][0], buffers[step.source][0], 0, last)
            finally:
                engine.end_hold(hold)
            results = []
            for slot in self.results:
                results.append(_wrap(owner, created[<size_t>slot]))
                created[<size_t>slot] = NULL
        finally:
            for i in range(created.size()):
                if created[i] != NULL:
                    engine.retire(created[i])
        if crowded:
            with nogil:
                engine.make_room()
        return results


cdef Buffer _wrap(Engine engine, CppBuffer* native):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.engine = engine
    buffer.keep = engine.ptr
    buffer.ptr = native
    buffer.resource = native
    return buffer


cdef class CallRecorder:
    """Records one call of a function, in the thread that entered it."""

    cdef Engine engine
    cdef dict calls  # of the context
    cdef object key
    cdef BoundCall call
    cdef dict slots  # Buffer -> slot, except for those created in the call, which store their slot
    cdef list created_buffers  # weak references by slot; None: not created in the call
    cdef dict constants  # slot -> Buffer: created in the call, and written from the host
    cdef size_t argument_count
    cdef tuple parameters  # of the call
    cdef bint has_numbers  # whether numbers in maps are among them
    cdef bint takes_arrays
    cdef list nodes  # expressions among the arguments that were not computed, with their programs
    cdef readonly tuple args  # for the function, with parameters in place of numbers
    cdef readonly dict kwargs
    cdef bint unrepeatable
    cdef readonly list arguments  # the buffers among the arguments, in order, with repetitions

    def __enter__(self):
        global call_recorder
        call_recorder = <PyObject*>self
        return self

    def __exit__(self, *_):
        global call_recorder
        call_recorder = NULL

    cdef size_t slot_of(self, Buffer buffer) except? 0xFFFFFFFF:
        cdef size_t slot
        if buffer.recorder is self:
            return buffer.recorded_slot
        found = self.slots.get(buffer)
        if found is not None:
            return found
        slot = len(self.created_buffers)
        self.created_buffers.append(None)
        self.slots[buffer] = slot
        self.call.fixed.append((slot, buffer))
        return slot

    cdef Step* add(self, StepKind kind, size_t slot) except NULL:
        cdef Step step
        memset(&step, 0, sizeof(step))
        step.kind = kind
        step.slot = slot
        self.call.steps.push_back(step)
        return &self.call.steps.back()

    cdef int note_created(self, Buffer buffer, uint64_t size, bint shared) except -1:
        cdef size_t slot = len(self.created_buffers)
        if shared or buffer.engine is not self.engine:
            self.unrepeatable = True
            return 0
        self.created_buffers.append(weakref.ref(buffer))
        buffer.recorder = self
        buffer.recorded_slot = slot
        self.add(CREATE_STEP, slot).size = size
        return 0

    cdef int note_mark(self, Buffer buffer, bint steady) except -1:
        cdef Step* step
        cdef size_t i
        for i in range(self.call.steps.size()):
            step = &self.call.steps[i]
            if step.kind == CREATE_STEP and step.slot == buffer.recorded_slot:
                if steady:
                    step.steady = True
                else:
                    step.renewable = True
        return 0

    cdef int note_launch(self, Launcher launcher, tuple arguments, const CppDispatch& dispatch, int queue) except -1:
        cdef Step* step
        cdef Patch patch
        cdef size_t i
        cdef uint32_t count = 0
        if launcher.engine is not self.engine or queue != -2:
            self.unrepeatable = True
            return 0
        slots = []
        for i in range(launcher.slots.size()):
            if launcher.slots[i].kind == BUFFER_SLOT:
                slots.append(self.slot_of(_memory_of(arguments[i])))
            elif launcher.slots[i].kind in (SAMPLER_SLOT, IMAGE_SLOT):
                self.unrepeatable = True
                return 0
            elif launcher.slots[i].kind == SCALAR_SLOT and type(arguments[i]) in (Parameter, RealParameter):
                patch.offset = self.call.arguments.size() + launcher.slots[i].offset
                patch.code = launcher.slots[i].code
                patch.number = arguments[i].number
                self.call.patches.push_back(patch)
        step = self.add(LAUNCH_STEP, 0)
        step.plan = dispatch.plan
        step.groups = dispatch.groups
        step.first_binding = self.call.bindings.size()
        step.binding_count = dispatch.binding_count
        step.first_argument = self.call.arguments.size()
        step.argument_size = dispatch.argument_size
        step.uniform_binding = dispatch.uniform_binding
        for count in range(dispatch.binding_count):
            self.call.bindings.push_back(dispatch.bindings[count])
            self.call.binding_slots.push_back(slots[count])
        self.call.arguments.insert(self.call.arguments.end(), dispatch.arguments,
                                   dispatch.arguments + dispatch.argument_size)
        if launcher.plan not in self.call.plans:
            self.call.plans.append(launcher.plan)
        return 0

    cdef int note_write(self, Buffer buffer, int queue) except -1:
        """The bytes follow from the key of the call, so they are the same each time and stay on the device."""
        if buffer.recorder is self and queue in (-1, -2) and buffer.ptr.size() <= MOST_CONSTANT_BYTES:
            self.constants[buffer.recorded_slot] = buffer
        else:
            self.unrepeatable = True
        return 0

    cdef bint has_all_parameters(self) except -1:
        """Whether every parameter was passed to a kernel unchanged."""
        cdef set numbers = set()
        cdef size_t i
        for i in range(self.call.patches.size()):
            numbers.add(self.call.patches[i].number)
        return len(numbers) == len(self.parameters)

    cdef bint keep_constants(self, list returned) except -1:
        """Keep the buffers written by the host. Return False unless the device only reads them."""
        cdef BoundCall call = self.call
        cdef size_t i, slot, other
        cdef Step* step
        cdef Buffer buffer, copy
        for i in range(call.steps.size()):
            step = &call.steps[i]
            if step.kind == COPY_STEP and step.slot in self.constants:
                return False
        for i in range(call.bindings.size()):
            if call.bindings[i].writes and call.binding_slots[i] in self.constants:
                return False
        for slot, buffer in self.constants.items():
            if buffer.ptr == NULL or buffer.destroy_requested.load():
                return False
            if slot not in returned:
                call.fixed.append((slot, buffer))
                call.skip_creation(slot)
                continue
            # the caller may change what is returned
            copy = Buffer(self.engine, buffer.ptr.size())
            copy.copy_from(buffer)
            other = len(self.created_buffers)
            self.created_buffers.append(None)
            call.fixed.append((other, copy))
            call.insert_copy(slot, other)
        return True

    cdef int note_copy(self, Buffer target, Buffer source, int queue) except -1:
        if queue not in (-1, -2) or target.engine is not self.engine:
            self.unrepeatable = True
            return 0
        self.add(COPY_STEP, self.slot_of(target)).source = self.slot_of(source)
        return 0

    def keep(self, results, finish):
        """Bind the call, which returns the native Buffers `results`. Return False if it is not repeatable.

        `finish(context, arguments, new buffers)` creates the function's result from them; None: it cannot be made
        again.
        """
        cdef BoundCall call = self.call
        cdef size_t slot, i
        cdef Buffer buffer
        cdef list returned = []
        if finish is None:
            self.unrepeatable = True
        if not self.unrepeatable:
            for buffer in results:
                if buffer.recorder is not self or buffer.recorded_slot in returned:
                    self.unrepeatable = True
                    break
                returned.append(buffer.recorded_slot)
        if self.unrepeatable or not self.has_all_parameters() or not self.keep_constants(returned):
            # the first call of a kernel converts numbers, which later ones get unchanged
            tries = _count_tries(self.calls, self.key) + 1
            if tries == MOST_TRIES and self.has_numbers and not self.unrepeatable:
                tries = BY_NUMBERS
            _store_call(self.calls, self.key, tries)
            return False
        if self.takes_arrays and not self.reads_what_the_key_tells():
            return self.refuse()
        for slot in range(len(self.created_buffers)):
            buffer = None if self.created_buffers[slot] is None else self.created_buffers[slot]()
            if buffer is None or buffer.destroy_requested.load() or slot in returned or slot in self.constants:
                continue
            if self.takes_arrays:
                return self.refuse()  # it may hold the values of an expression that the program has, too
            # it outlives the call, so the context owns it
            call.skip_creation(slot)
            call.fixed.append((slot, buffer))
        call.argument_count = self.argument_count
        call.slot_count = len(self.created_buffers)
        call.results = tuple(returned)
        call.finish = finish
        _store_call(self.calls, self.key, call)
        return True

    cdef bint reads_what_the_key_tells(self) except -1:
        """Whether neither the call nor another thread has computed or moved what the arguments read."""
        for item in self.arguments:
            if self.slots.get(_memory_in(item), self.argument_count) >= self.argument_count:
                return False
        return _are_as_before(self.nodes)

    cdef bint refuse(self) except -1:
        """Have equal calls compute the expressions among the arguments first, or else try again."""
        _store_call(self.calls, self.key, COMPUTED_FIRST if self.nodes else _count_tries(self.calls, self.key) + 1)
        return False

    def drop(self):
        """Drop all references: new buffers keep the recorder alive."""
        self.calls = self.key = self.call = self.slots = self.created_buffers = None
        self.arguments = self.constants = self.parameters = self.args = self.kwargs = self.nodes = None


cdef int _store_call(dict calls, object key, object call) except -1:
    while len(calls) >= MOST_BOUND_CALLS and key not in calls:
        try:
            calls.pop(next(iter(calls)), None)
        except (StopIteration, RuntimeError):  # another thread was faster
            break
    calls[key] = call
    return 0


cdef int _count_tries(dict calls, object key) except -1:
    found = calls.get(key)
    return found if type(found) is int else 0


cdef inline int mark_unrepeatable() except -1:
    """Mark the call that this thread records as not repeatable."""
    if call_recorder != NULL:
        (<CallRecorder>call_recorder).unrepeatable = True
    return 0


def repeated_parameter(make):
    cdef CallRecorder recorder
    if call_recorder == NULL:
        return make()
    recorder = <CallRecorder>call_recorder
    parameter = Parameter(make())
    parameter.number = len(recorder.parameters)
    recorder.parameters += (parameter,)
    recorder.call.sources.append(make)
    return parameter


def forbid_repeating():
    mark_unrepeatable()


cdef object _buffer_type = None
cdef tuple _buffer_types = ()
cdef tuple _array_types = ()  # they have arguments of their own
cdef tuple _map_types = ()  # what they read may change, and with it their version
cdef frozenset _plain_types = frozenset()


def set_repeated_types(buffers, arrays, maps, plain):
    global _buffer_type, _buffer_types, _array_types, _map_types, _plain_types
    _map_types = tuple(maps)
    _buffer_types = tuple(buffers)
    _buffer_type = _buffer_types[0]
    _array_types = tuple(arrays)
    _plain_types = frozenset(plain)


cdef int64_t _bits_of(double number):
    cdef int64_t bits
    memcpy(&bits, &number, 8)
    return bits


# Elements of an expression with numbers that is computed to be the argument of a repeated call.
cdef int64_t MOST_COMPUTED = 1 << 18


cdef Buffer _memory_in(object item):
    """Return the memory of an argument: of a buffer, or of the view of an array."""
    return (<View>item).storage.memory if type(item) is View else <Buffer>item._native


cdef bint _append_memory(Buffer memory, object item, list key, list buffers) except -1:
    """Append an argument to `buffers`, and to the key which earlier one has the same memory. Return False if
    memories overlap."""
    cdef Buffer other
    for i in range(len(buffers)):
        other = _memory_in(buffers[i])
        if other is memory:
            key.append(i)
            break
        if (memory.may_overlap or other.may_overlap) and memory.overlaps(other):
            return False  # the function has to look at it
    buffers.append(item)
    return True


cdef bint _append_view(View view, list key, list buffers) except -1:
    cdef Storage storage = view.storage
    if not view.size:
        return False
    key += (view.num, view.shape, view.strides, view.offset, storage.size, storage.is_read_only)
    return _append_memory(storage.memory, view, key, buffers)


cdef bint _are_as_before(list nodes) except -1:
    """Whether expressions are still not computed, nor parts of them."""
    cdef Program program, before
    for node, before in nodes:
        if (<Node>node).result is not None:
            return False
        program = Program(node)
        if program.steps != before.steps or len(program.views) != len(before.views):
            return False
        for view, other in zip(program.views, before.views):
            if (<View>view).storage.memory is not (<View>other).storage.memory:
                return False
    return True


cdef bint _append_array(ArrayBase array, list key, list buffers, list nodes, bint computes) except -1:
    """Append what distinguishes calls with an array, and to `nodes` its expression if it is not computed."""
    cdef Program program
    cdef Node node
    value = _value_of(array)
    if type(value) is Node:
        node = <Node>value
        if node.size and not node.is_dear:
            program = Program(node)
            if any([(<View>view).storage.watched is not None for view in program.views]):
                return False  # others may write what it reads
            if program.numbers and (not computes or node.size > MOST_COMPUTED):
                return False  # they would distinguish calls; the functions on buffers take them as parameters
            if program.views and not program.numbers:
                key += (Node, node.num, node.shape, len(program.views), *program.steps)
                for view in program.views:
                    if not _append_view(<View>view, key, buffers):
                        return False
                nodes.append((node, program))
                return True
        # it has numbers, or reads nothing, or a function would compute it anyway
        _serving["evaluate"](node)
        value = _value_of(array)
    key.append(ArrayBase)
    return _append_view(<View?>value, key, buffers)


cdef bint _append_key(object value, list key, list buffers, list numbers, list nodes, int takes_arrays) except -1:
    """Append what distinguishes calls with this value. Return False for unsupported values.

    Real numbers among the arguments of maps are appended to `numbers` instead, and expressions of arrays also to
    `nodes`.
    """
    kind = type(value)
    if kind is _buffer_type or kind in _buffer_types:
        if type(value._native) is not Buffer:
            return False
        key.append(kind)
        key.append(value.shape)
        key.append(value.var_type)
        key.append(value.is_writable)
        key.append(value._order)
        if not value.size or value.destroyed:
            return False
        return _append_memory(<Buffer>value._native, value, key, buffers)
    if takes_arrays:
        if isinstance(value, ArrayBase):
            return _append_array(<ArrayBase>value, key, buffers, nodes, takes_arrays == COMPUTING)
        if kind is slice:
            key.append(kind)
            return _append_key((value.start, value.stop, value.step), key, buffers, numbers, nodes, 0)
        if value is Ellipsis:
            key.append(value)
            return True
    if value is None or kind is str:
        key.append(value)
        return True
    if kind is bool or kind is int:
        key.append(kind)
        key.append(value)
        return True
    if kind is float:
        key.append(kind)
        key.append(_bits_of(value))
        return True
    if kind is complex:
        key += (kind, _bits_of(value.real), _bits_of(value.imag))
        return True
    if kind is tuple or kind is list:
        key.append(kind)
        key.append(len(value))
        for item in value:
            if not _append_key(item, key, buffers, numbers, nodes, takes_arrays):
                return False
        return True
    if isinstance(value, type):
        key.append(value)
        return True
    if kind in _array_types:
        key.append(kind)
        key.append(value.mapping.version)
        key.append(value.shape)  # which buffers that are indexed by the map itself do not tell
        key.append(len(value.arguments))
        for item in value.arguments:
            if type(item) is float:
                key.append(float)
                numbers.append(item)
            elif not _append_key(item, key, buffers, numbers, nodes, takes_arrays):
                return False
        return True
    if kind in _plain_types:
        key.append(value)
        return True
    if kind in _map_types:
        key.append(value.version)
        return True
    return False


cdef object _with_parameters(object value, object parameters):
    """Return an argument with the next parameters in place of the numbers that `_append_key` finds."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([_with_parameters(item, parameters) for item in value])
    if kind not in _array_types:
        return value
    copied = kind.__new__(kind)
    for name in kind.__slots__:
        if name != "__weakref__":
            setattr(copied, name, getattr(value, name))
    copied.arguments = tuple(
        [next(parameters) if type(item) is float else _with_parameters(item, parameters) for item in value.arguments]
    )
    return copied


def repeat(function, tuple args not None, dict kwargs not None, tuple parameters not None=(), context=None,
           settings=None, bint computes=True):
    if settings is None:
        return _repeat(function, args, kwargs, parameters, context, None, 0)
    with _serving["lock"]:  # another thread may compute an expression, or write what it reads
        return _repeat(function, args, kwargs, parameters, context, settings, COMPUTING if computes else READING)


cdef object _repeat(function, tuple args, dict kwargs, tuple parameters, context, settings, int takes_arrays):
    cdef list key = [function]
    cdef list nodes = []
    cdef list buffers = []
    cdef list numbers = []
    cdef list natives
    cdef Engine engine
    cdef Buffer buffer
    cdef BoundCall call
    cdef CallRecorder recorder
    cdef dict calls
    cdef const char* checks
    if call_recorder != NULL:
        return None
    if takes_arrays:
        key.append(settings)
    for item in args:
        if not _append_key(item, key, buffers, numbers, nodes, takes_arrays):
            return None
    key.append(len(args))  # separates positional and keyword arguments
    for name, item in kwargs.items():
        key.append(name)
        if not _append_key(item, key, buffers, numbers, nodes, takes_arrays):
            return None
    if len(nodes) > 1 and not _are_as_before(nodes):  # one of them was computed as a part of another
        return None
    if buffers:
        first = buffers[0]
        context = (<View>first).storage.context if type(first) is View else first.context
    elif context is None:
        return None
    engine = context._native
    natives = []
    for item in buffers:
        buffer = _memory_in(item)
        if buffer.engine is not engine or buffer.ptr == NULL:
            return None
        if buffer not in natives:
            natives.append(buffer)
    if engine.ptr.get().closed() or engine.ptr.get().lost():
        return None
    checks = getenv(b"VKDISPATCH_CHECK")
    if checks != NULL and checks[0] != 0 and checks[0] != b"0":
        return None
    calls = context.calls
    found_key = tuple(key)
    found = calls.get(found_key)
    if numbers and type(found) is int and found == BY_NUMBERS:
        found_key += tuple([_bits_of(number) for number in numbers])
        found = calls.get(found_key)
        numbers = []
    if type(found) is int and found == COMPUTED_FIRST:
        for node, _ in nodes:
            _serving["evaluate"](node)
        return _repeat(function, args, kwargs, parameters, context, settings, takes_arrays)
    if type(found) is BoundCall:
        for node, _ in nodes:
            (<Node>node).was_read = True
        call = <BoundCall>found
        parameters += tuple(numbers)
        for make in call.sources:
            parameters += (make(),)
        call.settle(natives)
        results = call.run(engine, natives, parameters)
        if results is not None:
            if len(calls) > MOST_BOUND_CALLS // 2:  # keep recently used calls
                calls[found_key] = calls.pop(found_key, call)
            return (call.finish(context, buffers, results),)
        calls.pop(found_key, None)
        return None
    if found is None and takes_arrays:
        _store_call(calls, found_key, SEEN_ONCE)
        return None
    if found is not None and found >= MOST_TRIES:
        return None
    recorder = _make_recorder(engine, calls, found_key, buffers, natives, parameters + tuple(numbers))
    if numbers:
        made = iter(recorder.parameters[len(parameters):])
        args = _with_parameters(args, made)
        kwargs = {name: _with_parameters(item, made) for name, item in kwargs.items()}
    recorder.has_numbers = bool(numbers)
    recorder.takes_arrays, recorder.nodes = takes_arrays, nodes
    recorder.args = args + recorder.parameters[:len(parameters)]
    recorder.kwargs = kwargs
    return recorder


cdef CallRecorder _make_recorder(Engine engine, dict calls, object key, list buffers, list natives,
                                 tuple parameters):
    cdef CallRecorder recorder = CallRecorder.__new__(CallRecorder)
    cdef list patched = []
    for number, value in enumerate(parameters):
        parameter = RealParameter(value) if type(value) is float else Parameter(value)
        parameter.number = number
        patched.append(parameter)
    recorder.parameters = tuple(patched)
    recorder.engine = engine
    recorder.calls = calls
    recorder.key = key
    recorder.arguments = buffers
    recorder.argument_count = len(natives)
    recorder.slots = {native: slot for slot, native in enumerate(natives)}
    recorder.created_buffers = [None] * len(natives)
    recorder.constants = {}
    recorder.call = BoundCall.__new__(BoundCall)
    recorder.call.fixed = []
    recorder.call.plans = []
    recorder.call.sources = []
    return recorder

