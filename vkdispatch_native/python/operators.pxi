# Operators of arrays: what is known goes from an array to an expression without Python. The rest is the package's.

cdef dict _loops = {}  # by name and kinds of operands
cdef object _array_type = None  # `vkdispatch.numpy.Array`
cdef object _operate = None  # computes what is not known


cdef class ArrayBase:
    cdef public object _value  # a view, or an expression
    cdef object __weakref__


def serve_operators(type array_type not None, dict loops not None, operate not None):
    global _array_type, _loops, _operate
    _array_type, _loops, _operate = array_type, loops, operate


cdef object _array_of(value):
    cdef ArrayBase made = ArrayBase.__new__(_array_type)
    made._value = value
    return made


def array_of(value not None):
    return _array_of(value)


cdef object _value_of(ArrayBase array):
    cdef object value = array._value
    if type(value) is Node and (<Node>value).result is not None:
        array._value = value = (<Node>value).result
    return value


def value_of(ArrayBase array not None):
    return _value_of(array)


cdef Node _apply_known(str name, tuple operands):
    """Return the node of a function, or None. Operands are arrays, expressions, views and numbers."""
    cdef tuple shape = None
    cdef int64_t size = 1
    cdef Loop loop
    cdef Py_ssize_t i, count = len(operands)
    cdef list key = [name], values = []
    for each in operands:
        if isinstance(each, ArrayBase):
            each = _value_of(<ArrayBase>each)
        if type(each) is Node and (<Node>each).result is not None:
            each = (<Node>each).result
        if type(each) is View:
            key.append((<View>each).num)
            if shape is None:
                shape, size = (<View>each).shape, (<View>each).size
            elif shape is not (<View>each).shape and shape != (<View>each).shape:
                return None
        elif type(each) is Node:
            key.append((<Node>each).num)
            if shape is None:
                shape, size = (<Node>each).shape, (<Node>each).size
            elif shape is not (<Node>each).shape and shape != (<Node>each).shape:
                return None
        else:
            key.append(type(each))
        values.append(each)
    found = _loops.get(tuple(key))
    if found is None or shape is None:
        return None
    loop = <Loop>found
    for i in range(count):
        each = values[i]
        if type(each) is not View and type(each) is not Node:
            each = None if name == "power" else _number_as(each, loop.codes[i])
            if each is None:
                return None
            values[i] = each
    return _make_node(loop, tuple(values), shape, size)


def apply_known(str name not None, tuple operands not None):
    return _apply_known(name, operands)


def operate_known(str name not None, tuple operands not None):
    cdef Node node = _apply_known(name, operands)
    return None if node is None else _array_of(node)


def operate(str name not None, *operands):
    cdef Node node = _apply_known(name, operands)
    return _operate(name, *operands) if node is None else _array_of(node)


def known_part(ArrayBase array not None, index):
    cdef View view
    value = _value_of(array)
    if type(value) is not View:
        return None
    view = basic_view(<View>value, index)
    return None if view is None or not view.shape else _array_of(view)


cdef object _whole_buffer(ArrayBase array):
    """Return the buffer whose elements an array is; the array if there is none, or it is read-only."""
    cdef Storage storage
    value = _value_of(array)
    if type(value) is not View or not (<View>value).is_whole:
        return array
    storage = (<View>value).storage
    buffer = storage.buffer
    if storage.is_read_only or buffer.shape != (<View>value).shape:
        return array
    if storage.watched is None or storage.readers:
        storage.share()
    return buffer


cdef tuple _with_buffers(tuple arguments):
    """Return the arguments of a launch with buffers for arrays that are whole buffers."""
    return tuple([_whole_buffer(<ArrayBase>each) if isinstance(each, ArrayBase) else each for each in arguments])
