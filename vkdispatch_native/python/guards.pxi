# Guards notice that something which a kernel read while it was traced has another value by now.

cdef enum WatchKind:
    ENTRY_WATCH, FIELD_WATCH, ATTRIBUTE_WATCH, LIST_WATCH, DICT_WATCH, SET_WATCH, ARRAY_WATCH

# Compared by identity, except for arrays. The objects are kept alive by the snapshot.
cdef struct Watch:
    WatchKind kind
    PyObject* owner
    PyObject* key  # of an entry, or the name of an attribute
    PyObject* value  # NULL: none; of a container: its items; of an array: its bytes, shape and dtype
    size_t offset  # of a field


cdef inline PyObject* _or_null(object value):
    if value is NO_VALUE:
        return NULL
    return <PyObject*>value


class _NoValue:
    """What a name that is not bound has in place of a value."""


NO_VALUE = _NoValue()

# Where cells and functions store what can be assigned to, by attribute: comparing pointers there takes a tenth of the
# time of reading the attribute. Not in the stable ABI, so an example tells; what is not found is read as an attribute.
cdef dict _field_offsets = {}


cdef size_t _find_field(object example, object value) except? 0:
    """Return the offset of the only pointer to a value in an object, or 0."""
    cdef size_t first = object.__basicsize__
    cdef size_t last = type(example).__basicsize__
    cdef size_t found = 0
    while first + sizeof(void*) <= last:
        if (<PyObject**>(<char*><PyObject*>example + first))[0] == <PyObject*>value:
            if found:
                return 0
            found = first
        first += sizeof(void*)
    return found


def _find_fields():
    marker = object()
    cell = types.CellType(marker)
    function = eval("lambda a=0, *, b=0: a")
    for example, name in ((cell, "cell_contents"), (function, "__code__"), (function, "__defaults__"),
                          (function, "__kwdefaults__")):
        offset = _find_field(example, getattr(example, name))
        if offset:
            _field_offsets[type(example), name] = offset


_find_fields()

# Where dicts have a number that every change renews, or 0: while it stays, no entry need be compared. Not in the stable
# ABI, and not in every Python, so it is tried out.
cdef size_t _version_offset = 0


cdef inline uint64_t _version_at(PyObject* owner, size_t offset) noexcept:
    return (<uint64_t*>(<char*>owner + offset))[0]


def _find_versions():
    global _version_offset
    cdef size_t offset = 3 * sizeof(void*)  # behind the header and the count of entries
    cdef dict tried = {"name": 1000}
    cdef int i
    if <size_t>dict.__basicsize__ < offset + sizeof(uint64_t):
        return
    seen = {_version_at(<PyObject*>tried, offset)}
    for i in range(300):
        if i % 3 == 0:
            tried["name"] = i
        elif i % 3 == 1:
            tried["other"] = i
        else:
            del tried["other"]
        version = _version_at(<PyObject*>tried, offset)
        if version in seen or tried["name"] < 0 or version != _version_at(<PyObject*>tried, offset):
            return
        seen.add(version)
    _version_offset = offset


_find_versions()


@cython.final
cdef class _Snapshot:
    cdef vector[Watch] entries
    cdef vector[Watch] watches  # all others
    cdef vector[uint64_t] versions  # of the dicts of the entries when they were last compared
    cdef vector[PyObject*] dicts
    cdef list kept

    cdef int add(self, WatchKind kind, object owner, object key, PyObject* value, size_t offset=0) except -1:
        cdef Watch watch
        watch.kind, watch.owner, watch.key = kind, <PyObject*>owner, <PyObject*>key
        watch.value, watch.offset = value, offset
        self.kept.append((owner, key))
        if kind != ENTRY_WATCH:
            self.watches.push_back(watch)
            return 0
        self.entries.push_back(watch)
        if _version_offset and (self.dicts.empty() or self.dicts.back() != watch.owner):
            self.dicts.push_back(watch.owner)
            self.versions.push_back(0)  # not compared yet
        return 0

    cdef bint holds_entries(self) except -1:
        cdef Watch* watch
        cdef size_t i
        cdef bint is_known = not self.dicts.empty()
        for i in range(self.dicts.size()):
            if _version_at(self.dicts[i], _version_offset) != self.versions[i]:
                is_known = False
                break
        if is_known:
            return True
        for i in range(self.entries.size()):
            watch = &self.entries[i]
            if PyDict_GetItemWithError(<object>watch.owner, <object>watch.key) != watch.value:
                return False
        for i in range(self.dicts.size()):
            self.versions[i] = _version_at(self.dicts[i], _version_offset)
        return True

    cdef bint holds(self) except -1:
        cdef Watch* watch
        cdef size_t i
        if not self.holds_entries():
            return False
        for i in range(self.watches.size()):
            watch = &self.watches[i]
            if watch.kind == FIELD_WATCH:
                if (<PyObject**>(<char*>watch.owner + watch.offset))[0] != watch.value:
                    return False
            elif not _is_unchanged(watch):
                return False
        return True


cdef bint _is_unchanged(Watch* watch) except -1:
    cdef PyObject* key = NULL
    cdef PyObject* value = NULL
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t number = 0
    owner = <object>watch.owner
    if watch.kind == ATTRIBUTE_WATCH:
        try:
            found = getattr(owner, <str>watch.key)
        except Exception:  # of an empty cell, too
            found = NO_VALUE
        return _or_null(found) == watch.value
    expected = <object>watch.value
    if watch.kind == ARRAY_WATCH:
        return (owner.tobytes(), owner.shape, owner.dtype) == expected
    items = <tuple>expected
    if watch.kind == LIST_WATCH:
        if len(<list>owner) != len(items):
            return False
        for number in range(len(items)):
            if <PyObject*>(<list>owner)[number] != <PyObject*>items[number]:
                return False
    elif watch.kind == DICT_WATCH:
        if 2 * len(<dict>owner) != len(items):
            return False
        while PyDict_Next(owner, &position, &key, &value):
            if key != <PyObject*>items[number] or value != <PyObject*>items[number + 1]:
                return False
            number += 2
    else:
        if len(owner) != len(items):
            return False
        for item in owner:
            if <PyObject*>item != <PyObject*>items[number]:
                return False
            number += 1
    return True


@cython.final
cdef class Guard:
    cdef _Snapshot snapshot
    cdef object __weakref__

    def __init__(self, entries=(), attributes=(), containers=(), arrays=()):
        self.snapshot = _take_snapshot(entries, attributes, containers, arrays)

    def adopt(self, Guard other not None):
        self.snapshot = other.snapshot

    def holds(self):
        return self.snapshot.holds()

    def __len__(self):
        return self.snapshot.entries.size() + self.snapshot.watches.size()


cdef _Snapshot _take_snapshot(entries, attributes, containers, arrays):
    cdef _Snapshot made = _Snapshot.__new__(_Snapshot)
    made.kept = [entries, attributes, containers, arrays]
    for owner, key, value in entries:
        if not isinstance(owner, dict):
            raise TypeError(f"entries: expected a dict, got {owner!r}")
        made.kept.append(value)
        made.add(ENTRY_WATCH, owner, key, _or_null(value))
    for owner, name, value in attributes:
        made.kept.append(value)
        offset = _field_offsets.get((type(owner), name), 0)
        if offset:
            if value is None and name != "cell_contents":
                value = NO_VALUE  # a function without such values
            made.add(FIELD_WATCH, owner, name, _or_null(value), offset)
        else:
            made.add(ATTRIBUTE_WATCH, owner, name, _or_null(value))
    for owner, value in containers:
        items = tuple(value)
        made.kept.append(items)
        kind = LIST_WATCH if isinstance(owner, list) else DICT_WATCH if isinstance(owner, dict) else SET_WATCH
        made.add(kind, owner, None, <PyObject*>items)
    for owner, value in arrays:
        made.kept.append(value)
        made.add(ARRAY_WATCH, owner, None, <PyObject*>value)
    return made
