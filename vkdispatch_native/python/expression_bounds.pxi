# How large expressions are, and what memory they keep: asked at each operation on large arrays. The lock of
# evaluation is held, as a walk has references that are not counted.

cdef uint64_t _walk = 0  # the number of the last walk, which marks what it has seen


cdef tuple _count_distinct(tuple operands):
    """Return the number of nodes of an expression with these operands, and of the views that it reads."""
    global _walk
    cdef vector[PyObject*] waiting, views
    cdef int64_t nodes = 1
    cdef Node node
    cdef View view
    cdef size_t i
    cdef bint is_known
    _walk += 1
    for each in operands:
        waiting.push_back(<PyObject*>each)
    while not waiting.empty():
        value = <object>waiting.back()
        waiting.pop_back()
        if type(value) is Node:
            node = <Node>value
            if node.result is None:
                if node.mark != _walk:
                    node.mark = _walk
                    nodes += 1
                    for each in node.operands:
                        waiting.push_back(<PyObject*>each)
                continue
            value = node.result
        if type(value) is View and (<View>value).mark != _walk:
            view = <View>value
            view.mark = _walk
            is_known = False
            for i in range(views.size()):
                if _is_same_view(<View><object>views[i], view):
                    is_known = True
                    break
            if not is_known:
                views.push_back(<PyObject*>view)
    return nodes, <int64_t>views.size()


def count_distinct(tuple operands not None):
    with _serving["lock"]:
        return _count_distinct(operands)


cdef int64_t _count_dropped(Node root) except -1:
    """Return the bytes of memory that an expression alone keeps."""
    global _walk
    cdef vector[PyObject*] waiting, found, storages
    cdef PyObject* number
    cdef Node node
    cdef View view
    cdef Storage storage
    cdef int64_t dropped = 0
    cdef size_t i
    _walk += 1
    root.mark = _walk
    waiting.push_back(<PyObject*>root)
    while not waiting.empty():
        operands = (<Node><object>waiting.back()).operands
        waiting.pop_back()
        for each in operands:
            number = <PyObject*>each
            if type(each) is View:
                view = <View>each
                if view.mark != _walk:
                    view.mark, view.uses = _walk, 0
                    found.push_back(number)
                view.uses += 1
            elif type(each) is Node:
                node = <Node>each
                if node.mark != _walk:
                    node.mark, node.uses = _walk, 0
                    if node.result is None:
                        waiting.push_back(number)
                    else:
                        found.push_back(number)
                node.uses += 1
    each = operands = node = view = None  # they would count as references
    for i in range(found.size()):
        number = found[i]
        if type(<object>number) is Node:
            node = <Node><object>number
            view = node.result
            # one reference is that of `node`, and for the result, those of its node and of `view`
            if Py_REFCNT(number) - 1 != node.uses or view.mark == _walk or Py_REFCNT(<PyObject*>view) > 2:
                continue
        else:
            view = <View><object>number
            if Py_REFCNT(number) - 1 != view.uses:
                continue
        storage = view.storage
        if storage.mark != _walk:
            storage.mark, storage.uses = _walk, 0
            storages.push_back(<PyObject*>storage)
        storage.uses += 1
    node = view = storage = None
    for i in range(storages.size()):
        number = storages[i]
        storage = <Storage><object>number
        if storage.watched is None and Py_REFCNT(number) - 1 == storage.uses:
            dropped += storage.nbytes
    return dropped
