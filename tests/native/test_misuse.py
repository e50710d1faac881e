"""No misuse of the engine's objects from Python may crash the process."""

from __future__ import annotations

import copy
import gc
import os
import struct
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import AFFINE, AFFINE_UNIFORM, SPIN, Array, affine_launcher

Run = Callable[[str], subprocess.CompletedProcess[str]]

BUFFER = native.BufferSlot(binding=0)
FACTOR = native.ScalarSlot(offset=12, code="f")


def launcher(engine: native.Engine, plan: native.Plan, **changes: object) -> native.Launcher:
    """Return a launcher of `AFFINE` with changed arguments."""
    given = {
        "engine": engine,
        "plan": plan,
        "slots": [BUFFER, FACTOR],
        "argument_size": 16,
        "uniform_binding": -1,
        "exec_offset": 0,
        "groups_offset": -1,
        "local_size": (64, 1, 1),
        "max_groups": (65535,) * 3,
        "pack": None,
    }
    return native.Launcher(*(given | changes).values())


@pytest.mark.parametrize("owner", [native.Buffer, native.Plan, native.CommandList])
def test_garbage_in_a_cycle(engine: native.Engine, owner: type) -> None:
    class Cyclic(owner):  # type: ignore[misc]
        pass

    spirv = native.compile_glsl(AFFINE)
    arguments = {native.Buffer: (64,), native.Plan: (spirv, [1], 16, "affine"), native.CommandList: ()}
    for _ in range(50):
        kept = Cyclic(engine, *arguments[owner])
        kept.itself = kept
    del kept
    gc.collect()
    engine.wait_idle()


def test_objects_are_initialized_once(engine: native.Engine) -> None:
    buffer = native.Buffer(engine, 64)
    plan, launch = affine_launcher(engine)
    commands = native.CommandList(engine)
    for again in (
        lambda: engine.__init__([first_device()], [[0]], False, False),  # type: ignore[misc]
        lambda: buffer.__init__(engine, 64),  # type: ignore[misc]
        lambda: plan.__init__(engine, native.compile_glsl(AFFINE), [1], 16, "affine"),  # type: ignore[misc]
        lambda: commands.__init__(engine),  # type: ignore[misc]
        lambda: launch.__init__(  # type: ignore[misc]
            engine, plan, [BUFFER, FACTOR], 16, -1, 0, -1, (64, 1, 1), (65535,) * 3, None
        ),
    ):
        with pytest.raises(RuntimeError, match="once"):
            again()


@pytest.mark.parametrize("watched", [False, True])
def test_objects_that_were_never_initialized(engine: native.Engine, watched: bool) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    if watched:
        array._native.watch()  # so that calls look for what waits to read a buffer
    bare = {
        kind: kind.__new__(kind) for kind in (native.Engine, native.Buffer, native.Plan, native.CommandList)
    }
    plan, _ = affine_launcher(engine)
    for use in (
        lambda: native.Buffer(bare[native.Engine], 4),
        lambda: bare[native.Engine].wait_idle(),
        lambda: bare[native.Buffer].read_into(0, np.zeros(4)),
        lambda: bare[native.CommandList].submit(0, b"", 1),
        lambda: native.CommandList(engine).record(
            plan, [(bare[native.Buffer], 0, 0, 0, True, True)], (1, 1, 1), 16
        ),
        lambda: native.CommandList(engine).record(bare[native.Plan], [], (1, 1, 1), 0),
        lambda: native.Launcher.__new__(native.Launcher).launch((array, 1.0), 4, False),
        lambda: launcher(engine, bare[native.Plan]),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            use()


@pytest.mark.parametrize(
    "changes",
    [
        {"slots": [BUFFER, BUFFER, FACTOR]},
        {"slots": [FACTOR]},
        {"slots": [native.BufferSlot(binding=1), FACTOR]},
        {"slots": [BUFFER, native.ScalarSlot(offset=13, code="f")]},
        {"slots": [BUFFER, native.ValueSlot(offset=12, size=8)]},
        {"slots": [native.ImageSlot(binding=0, view_type=1, format=100), FACTOR]},
        {"slots": []},
        {"argument_size": 12},
        {"argument_size": 128},
        {"argument_size": 1 << 20},
        {"exec_offset": 8},
        {"exec_offset": 2**31 - 1},
        {"groups_offset": 2**31 - 1},
        {"uniform_binding": 0},
        {"uniform_binding": 7},
        {"local_size": (0, 1, 1)},
        {"max_groups": (0, 0, 0)},
    ],
)
def test_launcher_arguments(engine: native.Engine, changes: dict[str, object]) -> None:
    plan, _ = affine_launcher(engine)
    with pytest.raises(ValueError):
        launcher(engine, plan, **changes)


@pytest.mark.parametrize("slot", [("buffer", 0, -1, True, True), None, 3, native.ArgumentSlot()])
def test_invalid_slot_types(engine: native.Engine, slot: object) -> None:
    plan, _ = affine_launcher(engine)
    with pytest.raises(TypeError, match="slots: expected a BufferSlot, "):
        launcher(engine, plan, slots=[slot, FACTOR])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: native.ScalarSlot(offset=0, code="x"), ValueError),
        (lambda: native.ScalarSlot(offset=0, code="fd"), ValueError),
        (lambda: native.ScalarSlot(offset=0, code=None), TypeError),  # type: ignore[arg-type]
        (lambda: native.ScalarSlot(offset=-1, code="f"), OverflowError),
        (lambda: native.ValueSlot(offset=0, size=-1), OverflowError),
        (lambda: native.BufferSlot(binding=-1), OverflowError),
        (lambda: native.BufferSlot(binding="0"), TypeError),  # type: ignore[arg-type]
        (lambda: native.BufferSlot(), TypeError),  # type: ignore[call-arg]
        (lambda: native.BufferSlot(0), TypeError),  # type: ignore[misc, call-arg]
        (lambda: native.BufferSlot(binding=0, write=True), TypeError),  # type: ignore[call-arg]
        (lambda: native.BufferSlot.__new__(native.BufferSlot), TypeError),
        (lambda: native.ImageSlot(binding=0, view_type=0), TypeError),  # type: ignore[call-arg]
    ],
)
def test_invalid_slots(make: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_a_launcher_keeps_the_types_of_its_slots_alive(engine: native.Engine) -> None:
    class Kind:
        pass

    plan, _ = affine_launcher(engine)
    kind, twin = Kind(), Kind()
    alive = [weakref.ref(kind), weakref.ref(twin)]
    slots = (native.BufferSlot(binding=0, element=kind, twin=twin) for _ in range(1))
    launch = launcher(engine, plan, slots=(slot for part in (slots, [FACTOR]) for slot in part))
    array: Any = Array(engine, np.zeros(64, np.float32))
    for its, taken in ((kind, True), (twin, True), (Kind(), False)):
        array.var_type = its
        assert launch.launch((array, 1.0), 64, False) == taken
    del kind, twin, its, array.var_type
    gc.collect()
    assert None not in [each() for each in alive]
    del launch
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_objects_of_another_engine(engine: native.Engine) -> None:
    other = native.Engine([first_device()], [[0]], True, False)
    foreign, _ = affine_launcher(other)
    plan, launch = affine_launcher(engine)
    with pytest.raises(ValueError, match="another context"):
        launcher(engine, foreign)
    array = Array(other, np.zeros(4, np.float32))
    assert launch.launch((array, 1.0), 4, False) is False
    for arguments in (
        (plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16),
        (foreign, [], (1, 1, 1), 0),
    ):
        with pytest.raises(ValueError, match="another context"):
            native.CommandList(engine).record(*arguments)
    other.close()


def test_images_and_uniform_buffers_are_distinguished(engine: native.Engine) -> None:
    buffer = native.Buffer(engine, 4096)
    uniform = native.Plan(engine, native.compile_glsl(AFFINE_UNIFORM), [3, 1], 0, "affine")
    commands = native.CommandList(engine)
    storage = (buffer, 1, 0, 0, True, True)
    with pytest.raises(ValueError, match="uniform_binding"):
        commands.record(uniform, [(buffer, 0, 0, 0, True, False)], (1, 1, 1), 16, 1)
    with pytest.raises(ValueError, match="argument_size"):
        commands.record(uniform, [storage], (1, 1, 1), 0, 0)
    with pytest.raises(ValueError, match="multiple"):
        commands.record(uniform, [storage, (buffer, 0, 1, 16, True, False)], (1, 1, 1), 0)
    with pytest.raises(TypeError, match="None"):
        commands.record(uniform, [(None, 1, 0, 0, True, True)], (1, 1, 1), 16, 0)


BLOCKS = """#version 450
layout(push_constant) uniform P { float p; };
layout(binding = 0) buffer Data { float data[]; };
layout(binding = 1) uniform A { float a; };
layout(binding = 2) uniform B { vec4 b[4]; };
void main() { data[0] = p + a + b[3].w; }
"""


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ([(0, 16, 16)], "binding 0 of the plan is not a uniform buffer"),
        ([(3, 16, 16)], "binding 3 of the plan is not a uniform buffer"),
        ([(1, 16, 16), (1, 32, 16)], "binding 1 is given twice"),
        ([(1, 0, 16)], "binding 1 has no bytes after the push constants"),
        ([(1, 16, 0)], "binding 1 has no bytes"),
        ([(1, 16384, 16)], "binding 1 lies beyond the 16384 bytes"),
        ([(1, 2**32 - 16, 16)], "binding 1 lies beyond"),
    ],
)
def test_invalid_uniform_blocks(engine: native.Engine, blocks: list[tuple[int, int, int]], text: str) -> None:
    spirv = native.compile_glsl(BLOCKS)
    with pytest.raises(ValueError, match=text):
        native.Plan(engine, spirv, [1, 3, 3], 4, "blocks", uniform_blocks=blocks)


def test_invalid_items_of_uniform_blocks(engine: native.Engine) -> None:
    spirv = native.compile_glsl(BLOCKS)
    for blocks, error in (
        ([(1, 16)], ValueError),
        ([(1, -16, 16)], OverflowError),
        ([(1, 16, "16")], TypeError),
        (5, TypeError),
        ([5], TypeError),
    ):
        with pytest.raises(error):
            native.Plan(engine, spirv, [1, 3, 3], 4, "blocks", uniform_blocks=blocks)  # type: ignore[arg-type]


def test_launches_of_plans_with_uniform_blocks(engine: native.Engine) -> None:
    spirv = native.compile_glsl(BLOCKS)
    plan = native.Plan(engine, spirv, [1, 3, 3], 4, "blocks", uniform_blocks=[(2, 32, 64), (1, 16, 16)])
    data, table = Array(engine, np.zeros(1, np.float32)), Array(engine, np.arange(16, dtype=np.float32))
    slots = [BUFFER, *(native.ScalarSlot(offset=offset, code="f") for offset in (0, 16, 92))]
    given: dict[str, Any] = {"slots": slots, "argument_size": 96, "exec_offset": -1}
    assert launcher(engine, plan, **given).launch((data, 1.0, 2.0, 3.0), 1, True)
    assert data.read().tolist() == [6]
    for changes, text in (
        ({"argument_size": 92}, "take 96"),
        ({"argument_size": 112}, "take 96"),
        ({"uniform_binding": 1}, "the plan defines the bindings of its uniform blocks"),
        ({"slots": [*slots, native.BufferSlot(binding=1, writes=False)]}, "binding 1 is bound twice"),
        ({"slots": slots[1:]}, r"they bind \[1, 2\], the plan has 3"),
    ):
        with pytest.raises(ValueError, match=text):
            launcher(engine, plan, **given | changes)
    commands = native.CommandList(engine)
    bindings = [(data._native, 0, 0, 0, True, True), (table._native, 1, 0, 0, True, False)]
    for bound, size, uniform, text in (
        (bindings, 96, -1, "binding 1: the plan binds a uniform block of each launch there"),
        (bindings[:1], 4, -1, "take 96"),
        (bindings[:1], 96, 1, "binding 1: the plan binds"),
        ([], 96, -1, r"got \[1, 2\]"),
    ):
        with pytest.raises(ValueError, match=text):
            commands.record(plan, bound, (1, 1, 1), size, uniform)
    assert commands.record(plan, bindings[:1], (1, 1, 1), 96) == 0
    arguments = np.zeros(24, np.float32)
    arguments[[0, 4, 23]] = 10, 20, 30
    commands.submit(0, arguments.tobytes(), 1)
    assert data.read().tolist() == [60]
    # with a buffer bound at one of the two
    mixed = native.Plan(engine, spirv, [1, 3, 3], 4, "blocks", uniform_blocks=[(1, 16, 16)])
    uniform = native.BufferSlot(binding=2, writes=False, uniform=True, least_bytes=64)
    given = {"slots": [*slots[:3], uniform], "argument_size": 32, "exec_offset": -1}
    made = launcher(engine, mixed, **given)
    assert made.launch((data, 1.0, 2.0, table), 1, True)
    assert data.read().tolist() == [18]
    assert not made.launch((data, 1.0, 2.0, data), 1, True)  # too small
    for wrong, text in (
        (native.BufferSlot(binding=2, writes=False), "binding 2 of the plan is of another type"),
        (native.BufferSlot(binding=2, writes=False, uniform=True, least_bytes=1 << 40), "the device.s limit"),
    ):
        with pytest.raises(ValueError, match=text):
            launcher(engine, mixed, **given | {"slots": [*slots[:3], wrong]})


def test_invalid_slots_of_uniform_buffers() -> None:
    for options in (
        {"least_bytes": 0, "writes": False},
        {"least_bytes": 16},
        {"least_bytes": 16, "in_words": True},
    ):
        with pytest.raises(ValueError, match="uniform: expected least_bytes"):
            native.BufferSlot(binding=0, uniform=True, **options)  # type: ignore[arg-type]


def test_invalid_includes() -> None:
    source = '#version 450\n#include "a"\nvoid main() {}\n'
    extension = "#extension GL_GOOGLE_include_directive : enable\n"

    def compile_with(includes: Any = (), texts: Any = None, preamble: Any = extension) -> bytes:
        return native.compile_glsl(source, preamble=preamble, includes=includes, texts=texts or {})

    assert compile_with([("", "a", True, "name")], {"name": "\n"})
    for includes, texts, error, text in (
        ([("", "a", True, "why there is none")], {}, ValueError, "why there is none for header name: a"),
        ([("", "b", True, "name")], {"name": "\n"}, ValueError, "file not found for header name: a"),
        ([], {}, ValueError, "#include"),
        ([("", "a", True)], {}, ValueError, "unpack"),
        ([("", "a", True, None)], {}, AttributeError, "encode"),
        ([("", "a", True, "\ud800")], {}, ValueError, "surrogates"),
        ([("", "a", True, "x")], {'x"': "\n"}, ValueError, "cannot be the name of an included file"),
        ([("", "a", True, "")], {"": "\n"}, ValueError, "cannot be the name of an included file"),
        (5, {}, TypeError, "iter"),
    ):
        with pytest.raises(error, match=text):
            compile_with(includes, texts)
    with pytest.raises(TypeError):
        compile_with(preamble=None)
    with pytest.raises(ValueError, match="#include"):
        compile_with(preamble="")


def test_sizes_that_overflow(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
    for data, count in ((b"", 2**60), (bytes(16), 2**63), (b"", 1), (bytes(32), 1), (bytes(15), 1)):
        with pytest.raises((ValueError, OverflowError)):
            commands.submit(0, data, count)


def test_python_code_inside_a_call(engine: native.Engine) -> None:
    plan, launch = affine_launcher(engine)
    commands = native.CommandList(engine)
    array = Array(engine, np.zeros(8, np.float32))

    class Drops:
        def __float__(self) -> float:
            array._native = None
            gc.collect()
            return 1.0

    class Destroys:
        def __float__(self) -> float:
            commands.destroy()
            return 1.0

    for _ in range(50):
        array._native = native.Buffer(engine, 1 << 16)
        launch.launch((array, Drops()), 8, False)  # the buffer stays alive during the call
        array._native = native.Buffer(engine, 1 << 16)
        commands.record(plan, [(array._native, 0, 0, 0, True, True)], (1, 1, 1), 16)
        launch.record(commands, (array, Drops()), 8, False)
    array._native = native.Buffer(engine, 1 << 16)
    with pytest.raises(RuntimeError, match="destroyed"):
        launch.record(commands, (array, Destroys()), 8, False)
    engine.wait_idle()


@pytest.mark.parametrize("kind", ["engine", "buffer", "plan", "commands", "launcher"])
def test_nothing_is_copied_or_pickled(engine: native.Engine, kind: str) -> None:
    plan, launch = affine_launcher(engine)
    objects = {
        "engine": engine,
        "buffer": native.Buffer(engine, 4),
        "plan": plan,
        "commands": native.CommandList(engine),
        "launcher": launch,
    }
    with pytest.raises(TypeError):
        copy.copy(objects[kind])


def test_freed_without_a_further_call(engine: native.Engine) -> None:
    _, launch = affine_launcher(engine)
    engine.wait_idle()
    for _ in range(10):
        array = Array(engine, np.zeros(64, np.float32))
        launch.launch((array, 1.0), 64, False)
        del array
        deadline = time.monotonic() + 100
        while engine.statistics()["waiting_frees"] and time.monotonic() < deadline:
            time.sleep(0.001)
        assert engine.statistics()["waiting_frees"] == 0


def test_freeing_while_closing() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    plan = native.Plan(engine, native.compile_glsl(SPIN), [1], 4, "spin")
    slots = [BUFFER, native.ScalarSlot(offset=0, code="I")]
    launch = native.Launcher(engine, plan, slots, 4, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)
    arrays = [Array(engine, np.zeros(64, np.uint32)) for _ in range(20)]
    for _ in range(20):
        for array in arrays:
            launch.launch((array, 20_000), 64, False)
    closing = threading.Thread(target=engine.close)
    closing.start()
    del array
    while arrays:
        arrays.pop()
        time.sleep(0.001)
    closing.join()
    assert native.take_messages() == []


def test_very_long_sources() -> None:
    body = "data[0] = " + " + ".join(["PC.factor"] * 50_000) + ";"
    assert native.compile_glsl(AFFINE.replace("uint i", body + " uint i"))
    with pytest.raises(ValueError, match="characters"):
        native.compile_glsl(AFFINE + " " * (5 << 20))


@pytest.fixture
def run(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> Run:
    """Return a function that runs a program with an engine in a separate process."""
    begin = f"""
import gc, os, struct, sys, threading, time
import numpy as np
import vkdispatch
import vkdispatch_native as native
from vkdispatch.base.init import initialize
initialize()
SPIRV = {native.compile_glsl(AFFINE)!r}
def make(): return native.Engine([{first_device()}], [[0]], False, False)
"""
    return lambda code: run_python(begin + code)


@pytest.mark.parametrize("milliseconds", [0, 7, 40])
def test_exit_while_a_daemon_thread_works(run: Run, milliseconds: int) -> None:
    done = run(
        f"""
def work():
    while True:
        engine = make()
        for _ in range(3): native.Plan(engine, SPIRV, [1], 16, "x")
        engine.close()
# Python 3.11 aborts where a daemon thread writes to stderr as the interpreter ends
threading.excepthook = lambda report: None
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1 + {milliseconds} / 1000)
print("exits")
"""
    )
    assert (done.returncode, done.stdout) == (0, "exits\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_raises_and_exits(run: Run) -> None:
    done = run(
        """
engine = make()
buffer = native.Buffer(engine, 64)
child = os.fork()
if child == 0:
    for use in (engine.wait_idle, lambda: native.Buffer(engine, 4), make):
        try: use()
        except RuntimeError as error: print("spawn" in str(error), flush=True)
    del buffer, engine
    gc.collect()
    os._exit(3)  # as multiprocessing does; NVIDIA's driver crashes in its own exit handlers here
_, status = os.waitpid(child, 0)
engine.wait_idle()
print(os.waitstatus_to_exitcode(status))
"""
    )
    assert (done.returncode, done.stdout) == (0, "True\nTrue\nTrue\n3\n"), done.stderr


def test_submitting_while_another_thread_records(engine: native.Engine) -> None:
    array = Array(engine, np.zeros(4, np.float32))
    plan, _ = affine_launcher(engine)
    commands = native.CommandList(engine)
    binding = [(array._native, 0, 0, 0, True, True)]
    done = threading.Event()

    def record() -> None:
        while not done.is_set() and commands.length < 5000:
            commands.record(plan, binding, (1, 1, 1), 16)

    thread = threading.Thread(target=record)
    thread.start()
    one = struct.pack("3If", 4, 1, 1, 1.0)
    for _ in range(20):
        try:
            commands.submit(0, one * commands.length, 1)
        except ValueError as error:
            assert "instances" in str(error)
    done.set()
    thread.join()
    engine.wait_idle()
