"""Waits that take long show on a terminal, and nowhere else.

The tests hold a wait until they have seen its line.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import vkdispatch as vd

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

IS_CPU = vd.get_devices()[0].is_cpu()
RunPython = Callable[..., subprocess.CompletedProcess[str]]

# `hold()` lasts until the test sends a line, and `slow` gives the functions of a module such a wait.
BEGIN = """
import sys
from vkdispatch.base import process as progress
from vkdispatch.base.process import show_wait
progress._LONG = progress._STEP = 0.01
def hold(): sys.stdin.readline()
class Slow:
    def __init__(self, real, *names): self.__dict__.update(real=real, names=names)
    def __getattr__(self, name):
        if name in self.names: hold()
        return getattr(self.real, name)
"""
SHADER = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
import vkdispatch.base.compute_plan, vkdispatch.base.compilation.compiler
@vd.shader("x.size")
def double(x: Buff[f32]):
    i = vc.global_invocation_id().x
    x[i] = x[i] * 2
data = vd.asbuffer(np.ones(5, np.float32))
"""
PLAN = """
module = vkdispatch.base.compute_plan
module.native = Slow(module.native, "Plan")
double(data)
assert (data.read(0) == 2).all()
"""
GLSL = """
module = vkdispatch.base.compilation.compiler
module.native = Slow(module.native, "compile_glsl")
double(data)
"""
COPIES = """
import vkdispatch.base.memory.transfers as transfers
transfers.LARGE = 1 << 20
big = vd.Buffer((300_000,), vd.float32)
other = vd.asbuffer(np.zeros(300_000, np.float32))
real = big._native
big._native = Slow(real, "write")
values = np.arange(300_000, dtype=np.float32)
{write}
big._native = Slow(real, "read_into")
assert (big.read(0) == values).all()
big._native = real
"""
FIRST_RUN = """
double(data)
data._native = Slow(data._native, "read_into")
assert (data.read(0) == 2).all()
"""
TUNE = """
from vkdispatch.shader import launching as tuning
real = tuning.Timing
def slow_timing(context):
    tuning.Timing = real
    hold()
    return real(context)
tuning.Timing = slow_timing
assert double.autotune(data) in (32, 64, 128, 256, 512, 1024)
"""
ORDER = """
import vkdispatch.orders.compilers as compilers
real = compilers.run_program
def slow_run(*args):
    hold()
    return real(*args)
compilers.run_program = slow_run
class Compiler: title = "somecc"; command = ("true",)
compilers.make_command = lambda *args: ["true"]
source = type("Source", (), dict(suffix=".c", text="", label="a.c", order=""))
try: compilers.compile_library(Compiler, [], source)
except compilers.BuildFailure: pass
"""


class Terminal:
    """A Python process whose standard error output is a terminal."""

    def __init__(self, code: str, **environment: str) -> None:
        self._reader, writer = pty.openpty()
        termios.tcsetwinsize(writer, (24, 80))
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            env={**os.environ, "VKDISPATCH_CACHE": "off", **environment},
        )
        os.close(writer)
        self.shown = ""

    def read_until(self, words: str) -> None:
        """Wait until the terminal shows some words."""
        while words not in self.shown:
            part = self._read()
            assert part, f"the process has ended without {words!r}: {self.shown!r}"

    def _read(self) -> str:
        ready, _, _ = select.select([self._reader], [], [], 60)
        assert ready, f"nothing happens any more; shown so far: {self.shown!r}"
        try:
            part = os.read(self._reader, 4096).decode()
        except OSError:  # the other end is closed
            part = ""
        self.shown += part
        return part

    def go_on(self) -> None:
        """End the wait that the process is in."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.shown = ""

    def finish(self) -> str:
        """Return the standard output, when the process has ended well; `shown` is then all of the rest."""
        while self._read():
            pass
        output, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.shown
        return str(output)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        os.close(self._reader)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Return a function that starts a process on a terminal."""
    started: list[Terminal] = []

    def start(code: str, **environment: str) -> Terminal:
        started.append(Terminal(code, **environment))
        return started[-1]

    yield start
    for each in started:
        each.close()


def _screen(text: str) -> str:
    """Return the last line that a terminal shows, after what was erased."""
    return text.rpartition("\n")[2].rpartition("\x1b[K")[2]


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (SHADER + PLAN, ["compiling kernel 'double'"]),
        (SHADER + GLSL, ["compiling kernel 'double'"]),
        (
            SHADER + COPIES.replace("{write}", "big.write(values)"),
            ["copying 1.1 GiB to the device", "copying 1.1 GiB from the device"],
        ),
        (
            SHADER + COPIES.replace("{write}", "big.write_range(values, 0)"),
            ["copying 1.1 GiB to the device", "copying 1.1 GiB from the device"],
        ),
        pytest.param(
            SHADER + FIRST_RUN,
            ["waiting for kernels that run for the first time"],
            marks=pytest.mark.skipif(not IS_CPU, reason="drivers of GPUs compile earlier"),
        ),
        (SHADER + TUNE, ["workgroup sizes"]),
        (ORDER, ["compiling an order with somecc"]),
    ],
)
def test_long_waits_are_shown_and_erased(
    terminal: Callable[..., Terminal], code: str, lines: list[str]
) -> None:
    process = terminal(code)
    for line in lines:
        process.read_until(line)
        assert process.shown.startswith("\r\x1b[K") and "\n" not in process.shown
        process.read_until(" s")
        process.go_on()
    process.finish()
    assert _screen(process.shown) == ""


def test_waits_in_a_row_count_as_one(terminal: Callable[..., Terminal]) -> None:
    code = """
progress._LONG, progress._STEP = 0.5, 0.2
for number in range(100_000):
    with show_wait(f"compiling number {number}"):
        import time; time.sleep(0.01)
    if select.select([sys.stdin], [], [], 0)[0]: break
"""
    process = terminal("import select\n" + code)
    process.read_until("compiling number")  # none of which takes half a second
    process.go_on()
    process.finish()


def test_line_fits_the_terminal(terminal: Callable[..., Terminal]) -> None:
    process = terminal("with show_wait('x' * 1000): hold()")
    process.read_until("xxx")
    process.go_on()
    process.finish()
    assert all(len(part) < 80 for part in process.shown.split("\r\x1b[K"))


def test_lines_leave_bars_of_the_program_alone(terminal: Callable[..., Terminal]) -> None:
    pytest.importorskip("tqdm")
    process = terminal(
        "from tqdm import tqdm\n"
        "with tqdm(total=3, desc='mine') as bar:\n"
        "    with show_wait('compiling'): hold()\n"
        "    bar.update(3)\n"
    )
    process.read_until("vkdispatch: compiling")
    process.go_on()
    process.finish()
    assert "mine: 100%" in process.shown


def test_a_forked_process_shows_its_own(terminal: Callable[..., Terminal]) -> None:
    process = terminal(
        "import os\n"
        "with show_wait('parent'):\n"
        "    hold()\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        with show_wait('child'): hold()\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
    )
    process.read_until("parent")
    process.go_on()
    process.read_until("child")
    process.go_on()
    process.finish()


QUIET = """
import threading
with show_wait("compiling"):
    print(threading.active_count(), progress._waits)
"""


@pytest.mark.parametrize("value", ["0", "off"])
def test_the_variable_turns_lines_off(terminal: Callable[..., Terminal], value: str) -> None:
    process = terminal(QUIET, VKDISPATCH_PROGRESS=value)
    assert (process.finish(), process.shown) == ("1 []\n", "")


def test_nothing_is_shown_without_a_terminal(run_python: RunPython) -> None:
    for code in (QUIET, "sys.stderr = None" + QUIET, "sys.stderr.close()" + QUIET):
        done = run_python(BEGIN + code)
        assert (done.stdout, done.stderr) == ("1 []\n", "")


def test_an_invalid_value_is_refused(terminal: Callable[..., Terminal]) -> None:
    process = terminal(
        "try: show_wait('x').__enter__()\nexcept ValueError as error: print(error)",
        VKDISPATCH_PROGRESS="perhaps",
    )
    assert process.finish() == "VKDISPATCH_PROGRESS: expected 1 or 0, got 'perhaps'\n"


def test_exceptions_pass(terminal: Callable[..., Terminal]) -> None:
    code = """
try:
    with show_wait('x'): hold(); raise KeyError(1)
except KeyError: print('caught', progress._waits)
"""
    process = terminal(code)
    process.read_until("x ...")
    process.go_on()
    assert process.finish() == "caught []\n"
    assert _screen(process.shown) == ""
