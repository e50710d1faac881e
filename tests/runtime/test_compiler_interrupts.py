"""Ctrl-C while a compiler works: the wait ends, the compiler goes on by itself, and disturbs nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]

# Compiles for seconds: text that is twice as long with each macro.
BOMB = """
def bomb(doublings):
    lines = ["#version 450", "layout(binding = 0) buffer B { float b[]; };", "#define A0 b[0] += 1.0;"]
    lines += [f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, doublings + 1)]
    return "\\n".join([*lines, "void main() { A%d }" % doublings])
"""
INTERRUPTED = (
    BOMB
    + """
import os, signal, sys, threading, time
import vkdispatch_native as native

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
SMALL = "#version 450\\nvoid main() {}"

def threads(name="vkd compiler"):
    \"\"\"Count the threads that compile, which go by this name.\"\"\"
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                found += file.read().strip() == name
        except OSError:
            pass  # it has ended meanwhile
    return found

def interrupted(call):
    \"\"\"Interrupt a call once its thread runs; print how many compile after the wait for it.\"\"\"
    def interrupt():
        while threads() <= before and not done:
            time.sleep(0.0005)
        if not done:
            os.kill(os.getpid(), signal.SIGINT)
    before, done = threads(), []
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        call()
        done.append(1)
        print("not interrupted")
    except KeyboardInterrupt:
        watcher.join()
        print(threads())
    watcher.join()

good = native.compile_glsl(SMALL)
while threads():  # it is called idle soon
    time.sleep(0.001)
"""
)
COMPILE = "interrupted(lambda: native.compile_glsl(bomb({doublings})))\n"
PIPELINE = """
import vkdispatch as vd

lines = ["#version 450", "layout(binding = 0) buffer B { float b[]; };", "void main() { float x = b[1];"]
lines += [f"if (x > {i}.5) x = sin(x * {i}.25 + b[{i % 60}]); else b[{i % 50}] = x;" for i in range(3000)]
code = native.compile_glsl("\\n".join([*lines, "b[0] = x; }"]))
engine = vd.get_context()._native
interrupted(lambda: native.Plan(engine, code, [1], 0, "long"))
small = native.Plan(engine, native.compile_glsl("#version 450\\nvoid main() {}"), [], 0, "small")
print("made")
"""


def check(done: subprocess.CompletedProcess[str], status: int, *lines: str) -> None:
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (list(lines), "", status)


def test_the_wait_for_a_compile_ends(run_python: RunPython) -> None:
    then = COMPILE.format(doublings=17)
    then += "print(native.compile_glsl(SMALL) == good)\n"
    # the compiler comes to its end, and its thread with it
    then += "while threads() or threads('vkd idle'): time.sleep(0.01)\n"
    check(run_python(INTERRUPTED + then), 0, "1", "True")


def test_the_process_ends_while_it_compiles(run_python: RunPython) -> None:
    then = COMPILE.format(doublings=21) + "sys.stdout.write('last words\\n'); sys.exit(7)"
    check(run_python(INTERRUPTED + then), 7, "1", "last words")


def test_a_fork_while_it_compiles(run_python: RunPython) -> None:
    then = COMPILE.format(doublings=20) + (
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    print(len(os.listdir('/proc/self/task')), native.compile_glsl(SMALL) == good)\n"
        "    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    # Python 3.12 warns of forks where there are threads.
    check(run_python(INTERRUPTED + then, PYTHONWARNINGS="ignore"), 0, "1", "1 True", "3")


def test_many_interrupts_leave_nothing_behind(run_python: RunPython) -> None:
    then = f"for _ in range(10): {COMPILE.format(doublings=14)}"
    then += "while threads() or threads('vkd idle'): time.sleep(0.01)\nprint('none')"
    done = run_python(INTERRUPTED + then)
    assert done.stderr == ""
    assert done.stdout.endswith("none\n")
    assert done.returncode == 0


def test_an_error_still_comes_from_the_compiler(run_python: RunPython) -> None:
    then = "try: native.compile_glsl('nonsense')\nexcept ValueError as error: print('ERROR' in str(error))"
    check(run_python(INTERRUPTED + then), 0, "True")


@pytest.mark.parametrize("end", ["", "engine.close()\nprint('closed')"], ids=["exit", "close"])
def test_the_wait_for_a_pipeline_ends(end: str, run_python: RunPython) -> None:
    # SwiftShader compiles it for long
    done = run_python(INTERRUPTED + PIPELINE + end, timeout=600)
    assert done.stderr == ""
    if done.stdout.startswith("not interrupted"):
        pytest.skip("the driver compiles at the first dispatch only")
    check(done, 0, "1", "made", *(["closed"] if end else []))
