# Expressions of arrays: most of what an element-wise operation costs on the host happens here.
# vkdispatch.numpy.core says what expressions mean, and computes them.

cdef extern from *:
    Py_ssize_t Py_REFCNT(PyObject*)
    int PySlice_Unpack(object, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t*, Py_ssize_t*, Py_ssize_t)

cdef dict _serving = {}  # the functions of `serve_expressions`
cdef object _get_frame = sys._getframe
cdef object _sharing = allocate_lock()
cdef str _package = ""  # frames of files below it are no lines of programs
# Where the code of the program that made the last expression lies, and that of the package which it called.
cdef uintptr_t _user_code = 0, _own_code = 0
cdef int64_t _most_nodes = 0, _most_reads = 0, _most_held = 0
cdef int64_t MOST_USUAL = 1 << 30  # bytes
cdef int64_t _CHEAP = 3  # nodes: to compute so many again from one array takes about as long as to read them
cdef int64_t MOST_COUNTED = 1 << 50  # bytes; sums of it do not overflow
cdef int64_t MOST_COUNT = 1 << 58  # the bytes of as many complex128 do not overflow
cdef int64_t MOST_NARROW = 1 << 31  # elements: kernels for more are others

MOST_ELEMENTS = MOST_COUNT
INDEX = object()
READ, NUMBER, PLACE = "read", "number", "place"


def serve_expressions(*, str package not None, **functions):
    global _package
    _package = package
    _serving.update(functions)


def bound_expressions(int64_t nodes, int64_t reads, int64_t held):
    global _most_nodes, _most_reads, _most_held
    before = _most_nodes, _most_reads, _most_held
    _most_nodes, _most_reads, _most_held = nodes, reads, held
    return before


@cython.final
cdef class Storage:
    cdef readonly object context, var_type
    cdef readonly Buffer memory
    cdef readonly int64_t size, nbytes
    cdef public list readers
    cdef public object watched
    cdef uint64_t mark  # of the last walk that has seen it, which found so many uses
    cdef int64_t uses
    cdef object lender  # the thread that has lent the memory; None for none, -1 for several
    cdef public bint is_immediate, is_read_only
    cdef object own_buffer
    cdef object __weakref__

    def __init__(self, buffer, *, bint is_shared=False):
        self.own_buffer = buffer
        self.memory = buffer._native
        self.context, self.var_type = buffer.context, buffer.var_type
        self.size, self.nbytes = buffer.size, buffer.mem_size
        self.readers = []
        if is_shared:
            self.share()

    @staticmethod
    def allocate(size, var_type, context):
        return _allocate(_parse_count(size), var_type, context, None)

    @staticmethod
    def over(Buffer memory not None, var_type, context, int64_t size):
        cdef Storage storage = Storage.__new__(Storage)
        storage.memory, storage.context, storage.var_type = memory, context, var_type
        storage.size, storage.nbytes = size, size * <int64_t>var_type.item_size
        storage.readers = []
        return storage

    @property
    def buffer(self):
        if self.own_buffer is None:
            with _sharing:
                if self.own_buffer is None:
                    self.own_buffer = _serving["wrap"](self.context, self.memory, (self.size,), self.var_type)
        return self.own_buffer

    @property
    def is_shared(self):
        return self.watched is not None

    def share(self):
        cdef Buffer memory = self.memory
        with _sharing:
            known = memory.readers
            if known is None:
                memory.readers = self.readers
            elif known is not self.readers:
                known += self.readers
                self.readers = known
            self.is_immediate = memory.shared
            self.watched = memory
        if self.readers:
            memory.watch()

    def lend(self):
        own = thread_number()
        if self.lender is None:
            self.lender = own
        elif self.lender != own:
            self.lender = -1

    def move(self):
        cdef Storage other
        if self.lender is None or self.lender == thread_number():
            return
        # beside the storage and its buffer, functions that got the memory refer to it until they have run
        if Py_REFCNT(<PyObject*>self.memory) > 2 or (
            self.own_buffer is not None and Py_REFCNT(<PyObject*>self.own_buffer) > 1
        ):
            other = Storage.allocate(self.size, self.var_type, self.context)
            with _sharing:
                if self.watched is None:
                    other.memory.copy_from(self.memory)
                    self.memory, self.own_buffer = other.memory, other.own_buffer
        self.lender = None


cdef Storage _allocate(int64_t size, var_type, context, Engine engine):
    """Return new memory of a context; its engine is known if it is not None."""
    cdef int64_t nbytes = size * <int64_t>var_type.item_size
    cdef Buffer memory
    if not 0 < nbytes < MOST_USUAL:
        return Storage(_serving["allocate"]((size,), var_type, context))
    try:
        memory = Buffer(context._native if engine is None else engine, nbytes, False, True)
    except Exception:
        return Storage(_serving["allocate"]((size,), var_type, context))  # or it raises what users understand
    memory.mark(False)
    return Storage.over(memory, var_type, context, size)


cdef int64_t _count_elements(tuple shape) except -1:
    cdef int64_t size = 1, length
    try:
        for item in shape:
            length = item
            if length > MOST_COUNT or (length and size > MOST_COUNT // length):
                raise OverflowError
            size *= length
    except OverflowError:
        raise _serving["oversized"](f"shape: {shape} has more elements than any memory") from None
    return size


cdef int64_t _parse_count(object size) except -1:
    cdef int64_t count
    try:
        count = size
    except OverflowError:
        count = MOST_COUNT + 1
    return count if count <= MOST_COUNT else _count_elements((size,))


def c_strides(tuple shape not None):
    cdef Py_ssize_t axis, rank = len(shape)
    cdef int64_t step = 1
    cdef list strides
    if rank == 1:
        return (1,)
    strides = [1] * rank
    for axis in range(rank - 1, -1, -1):
        strides[axis] = step
        step *= max(<int64_t>shape[axis], 1)  # as of arrays without elements in PyTorch
    return tuple(strides)


def is_c_order(tuple shape not None, tuple strides not None):
    cdef int64_t step = 1, length
    cdef Py_ssize_t axis
    cdef bint is_even = True
    for axis in range(len(shape) - 1, -1, -1):
        length = shape[axis]
        if length == 0:
            return True
        if length != 1:
            is_even = is_even and <int64_t>strides[axis] == step
            step *= length
    return is_even


@cython.final
cdef class View:
    cdef readonly Storage storage
    cdef readonly tuple shape, strides
    cdef readonly object dtype
    cdef readonly int64_t offset, size
    cdef readonly bint is_contiguous
    cdef readonly int num
    cdef uint64_t mark
    cdef int64_t uses

    def __init__(self, Storage storage not None, tuple shape not None, dtype not None, int64_t offset=0,
                 tuple strides=None):
        self.storage, self.shape, self.dtype, self.num, self.offset = storage, shape, dtype, dtype.num, offset
        self.size = _count_elements(shape)
        self.strides = c_strides(shape) if strides is None else strides
        self.is_contiguous = strides is None or is_c_order(shape, strides)

    @property
    def is_whole(self):
        return self.is_contiguous and self.offset == 0 and self.size == self.storage.size


cdef bint _is_same_view(View first, View second):
    return first is second or (
        first.storage is second.storage
        and first.size == second.size
        and first.offset == second.offset
        and first.num == second.num
        and first.shape == second.shape
        and first.strides == second.strides
    )


def basic_view(View view not None, index):
    cdef tuple entries = <tuple>index if type(index) is tuple else (index,)
    cdef tuple lengths = view.shape, steps = view.strides
    cdef Py_ssize_t ndim = len(lengths), used = 0, axis = 0, start, stop, step, count
    cdef int64_t offset = view.offset, stride, place
    cdef bint is_open = True
    for each in entries:
        if type(each) is int or type(each) is slice:
            used += 1
        elif each is Ellipsis and is_open:
            is_open = False
        elif each is not None:
            return None
    if used > ndim:
        return None
    if is_open:
        entries += (Ellipsis,)
    shape, strides = [], []
    for each in entries:
        if each is None:
            shape.append(1)
            strides.append(0)
            continue
        if each is Ellipsis:
            shape += lengths[axis : axis + ndim - used]
            strides += steps[axis : axis + ndim - used]
            axis += ndim - used
            continue
        count, stride = lengths[axis], steps[axis]
        axis += 1
        try:
            if type(each) is slice:
                PySlice_Unpack(each, &start, &stop, &step)
                count = PySlice_AdjustIndices(count, &start, &stop, step)
                if count:
                    offset += start * stride
                shape.append(count)
                strides.append(stride * step if count > 1 else stride)
                continue
            place = each
        except (OverflowError, TypeError, ValueError):
            return None
        if not -count <= place < count:
            return None
        offset += (place + count if place < 0 else place) * stride
    return View(view.storage, tuple(shape), view.dtype, offset, tuple(strides))


def is_same_view(View first not None, View second not None):
    return _is_same_view(first, second)


@cython.final
cdef class Loop:
    cdef readonly object operation, dtype
    cdef readonly tuple kinds
    cdef tuple numbers  # the steps of numbers as operands
    cdef bytes codes  # of `kinds`: struct format characters of those that `_number_as` knows, else " "
    cdef int num

    def __init__(self, operation, tuple kinds not None, dtype):
        self.operation, self.kinds, self.dtype, self.num = operation, kinds, dtype, dtype.num
        self.numbers = tuple([(NUMBER, kind.num) for kind in kinds])
        self.codes = b"".join(
            [
                {"f4": b"f", "f8": b"d", "i1": b"b", "i2": b"h", "i4": b"i", "i8": b"q", "u1": b"B", "u2": b"H",
                 "u4": b"I"}.get(f"{kind.kind}{kind.itemsize}", b" ")
                for kind in kinds
            ]
        )


cdef object _number_as(object value, char code):
    """Return a Python number as an operand of a dtype, or None for what the checking path has to look at."""
    cdef double real
    cdef float single
    cdef int64_t whole, low, high
    if type(value) is float:
        if code == b"d":
            return value
        if code == b"f":
            real = PyFloat_AsDouble(value)
            single = <float>real
            return None if isinf(single) and not isinf(real) else <double>single
        return None
    if type(value) is not int:
        return None
    try:
        whole = value
    except OverflowError:
        return None
    if code == b"d" or code == b"f":
        return <double>whole if -16777216 <= whole <= 16777216 else None
    if code == b"q":
        return value
    low, high = 0, 0
    if code == b"i":
        low, high = -2147483648, 2147483647
    elif code == b"I":
        high = 4294967295
    elif code == b"h":
        low, high = -32768, 32767
    elif code == b"H":
        high = 65535
    elif code == b"b":
        low, high = -128, 127
    elif code == b"B":
        high = 255
    return value if high and low <= whole <= high else None


@cython.final
cdef class Node:
    cdef public Loop loop
    cdef public tuple operands
    cdef readonly tuple shape
    cdef readonly object dtype
    cdef readonly int num
    cdef readonly int64_t size
    cdef public View result
    cdef public object failure
    cdef public list readers
    cdef public int64_t count, reads, held
    cdef bint was_read  # a function has computed it where it read it
    cdef uint64_t mark
    cdef int64_t uses
    cdef object code
    cdef int place
    cdef object __weakref__

    @property
    def is_dear(self):
        return self.was_read and (self.reads > 1 or self.count > _CHEAP)

    @property
    def line(self):
        for start, end, line in self.code.co_lines():
            if start <= self.place < end and line is not None:
                return self.code.co_filename, line
        return self.code.co_filename, self.code.co_firstlineno


cdef int _note_line(Node node) except -1:
    """Note where the program made an expression."""
    global _own_code, _user_code
    try:
        frame = _get_frame(1)
    except ValueError:  # C called a function of the package
        frame = _get_frame(0)
    code = frame.f_code
    while <uintptr_t><PyObject*>code != _user_code:
        if <uintptr_t><PyObject*>code != _own_code and not code.co_filename.startswith(_package):
            break
        outer = frame.f_back
        if outer is None:
            break
        _own_code = <uintptr_t><PyObject*>code
        frame, code = outer, outer.f_code
    _user_code = <uintptr_t><PyObject*>code
    node.code, node.place = code, frame.f_lasti
    return 0


cdef int _add_reader(list readers, object waiting) except -1:
    cdef Py_ssize_t length
    readers.append(waiting)
    length = len(readers)
    if length > 64 and not length & (length - 1):
        _serving["trim"](readers)
    return 0


cdef int _wait_to_read(Storage storage, Node node, object waiting) except -1:
    """Note that an expression reads a memory: it is computed before that is written."""
    _add_reader(storage.readers, waiting)
    if storage.watched is not None:
        (<Buffer>storage.watched).watch()
        if storage.is_immediate or storage.memory.is_lent():
            _serving["evaluate"](node)
    return 0


def wait_to_read(Storage storage not None, Node node not None):
    _wait_to_read(storage, node, weakref_ref(node))


cdef Node _make_node(Loop loop, tuple operands, tuple shape, int64_t size):
    cdef int64_t count = 1, reads = 0, held = 0, dropped
    cdef Node node
    for each in operands:
        if each is operands[0] and count + reads > 1:
            continue  # the same one again, as in x * x
        if type(each) is Node:
            node = <Node>each
            count += node.count
            reads += node.reads
            held += node.held
        elif type(each) is View:
            reads += 1
            held += (<View>each).storage.nbytes
    held = min(held, MOST_COUNTED)
    if count > _most_nodes or reads > _most_reads:
        with _serving["lock"]:
            count, reads = _count_distinct(operands)
        if count > _most_nodes or reads > _most_reads:
            count, reads, held = _serving["shrink"](operands, held, _most_nodes, _most_reads)
    node = Node.__new__(Node)
    node.loop, node.operands, node.shape, node.size = loop, operands, shape, size
    node.dtype, node.num = loop.dtype, loop.num
    node.readers = []
    node.count, node.reads, node.held = count, reads, held
    _note_line(node)
    waiting = weakref_ref(node)
    for each in operands:
        if type(each) is View:
            _wait_to_read((<View>each).storage, node, waiting)
        elif type(each) is Node:
            if (<Node>each).result is None:
                _add_reader((<Node>each).readers, waiting)
            else:
                _wait_to_read((<Node>each).result.storage, node, waiting)
    if held > _most_held and node.result is None:
        with _serving["lock"]:
            dropped = _count_dropped(node)
        if dropped > _most_held + size * <int64_t>loop.dtype.itemsize:
            _serving["evaluate"](node)
    return node


def make_node(Loop loop not None, tuple operands not None, tuple shape not None, size):
    return _make_node(loop, operands, shape, _parse_count(size))


cdef list _reads = [(READ, slot) for slot in range(64)]


@cython.final
cdef class Program:
    cdef readonly list steps, kinds, numbers
    cdef public list views
    cdef public tuple shape
    cdef readonly int64_t size
    cdef public bint is_plain
    cdef readonly dict places
    cdef list positions  # of the steps that read views
    cdef bint is_read

    def __init__(self, root, bint is_read=False):
        self.is_read = is_read
        self.steps, self.views, self.kinds, self.numbers, self.positions = [], [], [], [], []
        self.places = {}
        self.is_plain = True
        if type(root) is View:
            self.shape, self.size = (<View>root).shape, (<View>root).size
            self.add_view(<View>root)
        else:
            self.shape, self.size = (<Node?>root).shape, (<Node>root).size
            self.add(<Node>root)

    cdef Py_ssize_t add(self, Node node) except -1:
        """Add the steps of an expression; return the position of the last one."""
        cdef Py_ssize_t at = 0, position
        cdef list step
        cdef Loop loop = node.loop
        if node.result is not None:
            return self.add_view(node.result)
        if node.failure is not None:
            raise node.failure.with_traceback(None)
        if node.shape != self.shape:
            return self.add_view(<View?>_serving["show"](node))
        if self.is_read:
            if node.is_dear:  # else a loop that reads its expression in each round would compute ever more
                return self.add_view(<View?>_serving["show"](node))
            node.was_read = True
        step = [loop]
        for each in node.operands:
            if type(each) is View:
                position = self.add_view(<View>each)
            elif type(each) is Node:
                known = self.places.get(<uintptr_t><PyObject*>each)
                position = self.add(<Node>each) if known is None else known
            else:
                position = len(self.steps)
                if each is INDEX:
                    self.steps.append((PLACE, loop.kinds[at].num))
                else:
                    self.numbers.append(each)
                    self.steps.append(loop.numbers[at])
            step.append(position)
            at += 1
        position = len(self.steps)
        self.steps.append(tuple(step))
        self.places[<uintptr_t><PyObject*>node] = position
        return position

    cdef Py_ssize_t add_view(self, View view) except -1:
        cdef Py_ssize_t slot, position = len(self.steps)
        for slot in range(len(self.views)):
            if _is_same_view(<View>self.views[slot], view):
                return self.positions[slot]
        if not view.is_contiguous or view.offset != 0 or view.shape != self.shape:
            self.is_plain = False
        slot = len(self.views)
        self.steps.append(_reads[slot] if slot < 64 else (READ, slot))
        self.positions.append(position)
        self.kinds.append(view.num)
        self.views.append(view)
        return position


cdef View _compute_plain(Program program, dtype):
    cdef Storage result, source
    cdef list arguments
    if not program.is_plain or not program.views or not 0 < program.size < MOST_NARROW:
        return None
    found = (<dict>_serving["kernels"]).get((tuple(program.steps), tuple(program.kinds)))
    if found is None:
        return None
    kernel, var_type = found
    launch = kernel.find_launch()
    if launch is None:
        return None
    source = (<View>program.views[0]).storage
    result = _allocate(program.size, var_type, source.context, source.memory.engine)
    arguments = [result.memory]
    for view in program.views:
        arguments.append((<View>view).storage.memory)
    arguments += program.numbers
    try:
        is_launched = launch(tuple(arguments), program.size, False, -2)
    except Exception:
        return None  # the checking path says why
    return View(result, program.shape, dtype) if is_launched else None


def compute_plain(Program program not None, dtype):
    return _compute_plain(program, dtype)


def evaluate_known(value):
    cdef Node node
    cdef View view
    if type(value) is View:
        return value
    node = <Node?>value
    if node.result is not None:
        return node.result
    if node.failure is not None or node.loop.operation in _serving["parts"]:
        return None
    if _serving["graphs"].chosen is not None or _serving["profiles"]:
        return None
    with _serving["lock"]:
        if node.result is None:
            try:
                view = _compute_plain(Program(node), node.dtype)
            except Exception:
                return None  # the checking path tells which operation it was
            if view is None:
                return None
            view.storage.readers = node.readers
            node.result, node.operands = view, ()
            node.count, node.reads, node.held = 1, 1, node.size * <int64_t>node.dtype.itemsize
    return node.result
