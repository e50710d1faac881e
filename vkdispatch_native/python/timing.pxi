# Timed commands as plain tuples.

# ---- timing


def clocks_are_read_by_submits(Engine engine not None):
    return engine.open().clocks_are_read_by_submits()


def start_timing(Engine engine not None):
    cdef CppEngine* e = engine.open()
    cdef vector[uint64_t] before
    with nogil:
        before = e.start_timing()
    return list(before)


def stop_timing(Engine engine not None):
    # Not open(): a profile may end after its context.
    cdef CppEngine* e = engine.ptr.get()
    if e != NULL:
        with nogil:
            e.stop_timing()


def timings(Engine engine not None, since):
    cdef CppEngine* e = engine.open()
    cdef vector[uint64_t] values = since
    cdef CppTimings found
    cdef CppTimedCommand* c
    cdef size_t i
    with nogil:
        found = e.timings(values)
    commands = []
    for i in range(found.commands.size()):
        c = &found.commands[i]
        commands.append((
            <int>c.kind,
            c.slot % e.queue_count(),
            c.slot >= e.queue_count(),
            c.plan,
            c.name.decode("utf-8", "replace"),
            (c.groups.x, c.groups.y, c.groups.z),
            c.bytes,
            (<const char*>c.arguments.data())[: c.arguments.size()],
            [(r.binding, r.address, r.texel, r.bytes) for r in c.resources],
            c.begin,
            c.end,
        ))
    count = e.queue_count()
    submits = [(s.slot % count, s.slot >= count, s.commands, s.begin, s.end) for s in found.submits]
    return commands, submits, [(s.begin, s.end) for s in found.waits]


def host_clock():
    return host_now()
