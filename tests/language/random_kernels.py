"""Random kernels computed three ways: by the device, by the interpreter and by plain Python.

    python -m tests.language.random_kernels --count 1000 --seed 0 --jobs 2 --only reads

writes what differs, made smaller, and how many of each feature were right. Programs run in processes of their
own, so that a crash or a hang ends only one.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import re
import select
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError

from . import source_model
from .random_sources import FEATURES, write
from .source_tree import Buffer, Program, edits

TYPES: dict[str, DType] = {
    name: getattr(vc, name)
    for name in (
        "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "b8",
        "iv2", "iv3", "iv4", "uv2", "uv3", "uv4", "v2", "v3", "v4",
    )
}  # fmt: skip
HOST = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f32": np.float32, "b8": np.bool_, "iv": np.int32, "uv": np.uint32,
    "v": np.float32,
}  # fmt: skip
_LARGE = 400_000


@dataclass(frozen=True)
class Difference:
    """What went wrong, and how: `cause` is the same for programs that fail alike."""

    cause: str
    text: str


def array(buffer: Buffer) -> np.ndarray[Any, Any]:
    kind = buffer.kind if buffer.kind in HOST else buffer.kind.rstrip("234")
    return np.array(buffer.data, HOST[kind])


def expected(program: Program) -> list[list[Any]]:
    """What the buffers hold after plain Python has run the program."""
    return source_model.run(
        program.source(),
        [(buffer.kind, buffer.data) for buffer in program.buffers],
        [place for _, place in program.parameters],
        program.exec_size,
        program.local_size,
        wraps=program.edge is not None and program.edge.rule == "wraps",
    )


def build(program: Program) -> Any:
    """Trace the program as a kernel."""
    source = program.source()
    name = f"<program {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "random_kernel"}
    exec(compile(source, name, "exec"), namespace)
    try:
        return vd.shader(
            exec_size=program.exec_size,
            local_size=program.local_size,
            flags=vc.ShaderFlags.PYTHON_DIVISION,
            arg_type_annotations=[
                vc.Buff[TYPES[program.buffers[place].kind]] for _, place in program.parameters
            ],
        )(namespace["kernel"])
    finally:
        del linecache.cache[name]


def difference(program: Program, *, interpreter: bool = True, device: bool = True) -> Difference | None:
    """Compute a program in all ways; what differs, or None. Raises ModelError for a bad program."""
    edge = program.edge
    try:
        right = expected(program)
    except source_model.ModelError:
        if edge is None or edge.fits:
            raise
        right = []
    wanted = [array(Buffer(buffer.kind, data)) for buffer, data in zip(program.buffers, right, strict=False)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = build(program)
            text = str(kernel.get_src().code if hasattr(kernel.get_src(), "code") else kernel.get_src())
    except VkDispatchError as error:
        if edge is not None and not edge.fits:
            at_line = f":{len(program.source().splitlines())})" in str(error)
            return None if at_line else Difference("refused elsewhere", str(error))
        return Difference(f"refused: {type(error).__name__}: {_masked(str(error))}", str(error))
    except Exception as error:
        return Difference(
            f"raised: {type(error).__name__}: {_masked(str(error))}", f"{type(error).__name__}: {error}"
        )
    if edge is not None and not edge.fits and (edge.rule == "wraps" or not wanted):
        return Difference(f"accepted: a number that does not fit, {edge.form}", text)
    if len(text) > _LARGE:
        return Difference("large", f"{len(text)} characters of GLSL")
    ways: list[tuple[str, Callable[[Any, Program], list[np.ndarray[Any, Any]]]]] = []
    if interpreter:
        ways.append(("the interpreter", _interpret))
    if device:
        ways.append(("the device", _launch))
    wrong, told = [], []
    for way, compute in ways:
        try:
            found = compute(kernel, program)
        except Exception as error:
            wrong.append(f"{way} raised {type(error).__name__} {_masked(str(error))}")
            told.append(f"{way}: {type(error).__name__}: {error}")
            continue
        for place, (actual, right) in enumerate(zip(found, wanted, strict=True)):
            if not np.array_equal(actual, right):
                wrong.append(way)
                told.append(_where(way, place, actual, right))
                break
    if not wrong:
        return None
    return Difference("differ: " + " and ".join(wrong), "\n".join((*told, text)))


def _where(way: str, place: int, actual: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str:
    rows = np.unique(np.argwhere(actual != right)[:, 0])[:8]
    return f"{way}, buffer {place}, elements {rows.tolist()}: {actual[rows].tolist()}, right is {right[rows].tolist()}"


def _interpret(kernel: Any, program: Program) -> list[np.ndarray[Any, Any]]:
    arrays = [array(buffer) for buffer in program.buffers]
    size = vd.get_context().device_infos[0].sub_group_size
    kernel.interpret(*(arrays[place] for _, place in program.parameters), subgroup_size=size, races=True)
    return arrays


def _launch(kernel: Any, program: Program) -> list[np.ndarray[Any, Any]]:
    buffers = []
    for buffer in program.buffers:
        values = array(buffer)
        made: vd.Buffer[Any] = vd.Buffer((len(values),), TYPES[buffer.kind])
        made.write(values)
        buffers.append(made)
    kernel(*(buffers[place] for _, place in program.parameters))
    return [buffer.read(0) for buffer in buffers]


def _masked(text: str) -> str:
    """First line of a message without the names and numbers of a program."""
    first = text.split("\n")[0]
    first = re.sub(r"'[a-z]+(_too)?\d*'", "'N'", re.sub(r"\(<program.*?\)", "", first))
    return re.sub(r"-?\d+(\.\d+)?", "#", first)[:150]


def shrink(program: Program, cause: str, budget: float = 60.0, **ways: bool) -> Program:
    """Leave out what the failure does not need."""
    end = time.monotonic() + budget
    shorter = True
    while shorter and time.monotonic() < end:
        shorter = False
        for edit in edits(program):
            if time.monotonic() > end:
                break
            before = program.source()
            edit.do()
            if program.source() == before or not _fails(program, cause, **ways):
                edit.undo()
            else:
                shorter = True
    return program


def _fails(program: Program, cause: str, **ways: bool) -> bool:
    try:
        found = difference(program, **ways)
    except Exception:
        return False
    return found is not None and found.cause == cause


def supported(feature: str) -> bool:
    """Whether the default device has the types that programs of a feature use."""
    kinds = {
        "narrow": ("i8", "i16", "u16"),
        "wide": ("i64", "u64"),
        "edges": ("i8", "i16", "i64"),
        "floats": ("b8",),
    }
    info = vd.get_context().device_infos[0]
    has = {
        "i8": info.storage_buffer_8_bit_access, "b8": info.storage_buffer_8_bit_access,
        "i16": info.storage_buffer_16_bit_access and info.int_16_support,
        "u16": info.storage_buffer_16_bit_access and info.int_16_support,
        "i64": info.int_64_support, "u64": info.int_64_support,
    }  # fmt: skip
    return all(has[kind] for kind in kinds.get(feature, ()))


def features_of(seed: int, only: tuple[str, ...]) -> tuple[str, ...]:
    """Features of a seed: one for each number modulo their count, and every third program another one."""
    first = only[seed % len(only)]
    second = only[(seed // len(only)) % len(only)]
    return (first,) if seed // len(only) % 3 or second == first else (first, second)


def check(seed: int, features: tuple[str, ...], *, small: bool = True, **ways: bool) -> Difference | None:
    """Compute the program of a seed; what differs, with a small program that does so too, or None."""
    found = difference(write(seed, features), **ways)
    if found is None:
        return None
    program = shrink(write(seed, features), found.cause, **ways) if small else write(seed, features)
    again = difference(program, **ways) or found
    return Difference(found.cause, f"{program.description()}\n{again.text}")


# -- the command line ------------------------------------------------------------------------------------


def worker(interpreter: bool, device: bool, small: bool) -> None:
    """Run the programs whose seeds and features come in, one JSON line each; answer likewise."""
    for line in sys.stdin:
        seed, features = json.loads(line)
        answer: dict[str, Any] = {"seed": seed, "features": features, "cause": None, "text": ""}
        try:
            found = check(seed, tuple(features), small=small, interpreter=interpreter, device=device)
        except Exception as error:
            found = Difference(f"generator: {type(error).__name__}: {_masked(str(error))}", str(error))
        if found is not None:
            answer["cause"], answer["text"] = found.cause, found.text
        print(json.dumps(answer), flush=True)


class Worker:
    """A process that runs programs, one at a time."""

    def __init__(self, options: list[str]) -> None:
        self.options = options
        self.task: tuple[int, tuple[str, ...]] | None = None
        self.since = 0.0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.language.random_kernels", "--worker", *self.options]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def give(self, task: tuple[int, tuple[str, ...]]) -> None:
        self.task, self.since = task, time.monotonic()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Read the answer that is there, or tell of a crash."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert self.task is not None
        seed, features = self.task
        self.task = None
        if line:
            return dict(json.loads(line))
        status = self.process.wait()
        self.start()
        return {"seed": seed, "features": features, "cause": f"crash: exit status {status}", "text": ""}

    def give_up(self) -> dict[str, Any]:
        assert self.task is not None
        seed, features = self.task
        self.task = None
        self.process.kill()
        self.process.wait()
        self.start()
        return {"seed": seed, "features": features, "cause": "hang", "text": ""}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="with which to begin")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default=",".join(FEATURES), help="features, with commas between")
    parser.add_argument("--together", action="store_true", help="every program has all of these features")
    parser.add_argument("--no-interpreter", action="store_true")
    parser.add_argument("--no-device", action="store_true")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for a program")
    parser.add_argument("--examples", type=int, default=2, help="programs to show for each cause")
    parser.add_argument("--lines", type=int, default=100, help="lines of each to show")
    parser.add_argument("--show", action="store_true", help="only write the program of the seed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    only = tuple(given.only.split(","))
    if given.worker:
        worker(not given.no_interpreter, not given.no_device, not given.no_shrink)
        return 0
    if given.show:
        print(write(given.seed, only if given.together else features_of(given.seed, only)).description())
        return 0
    flags = [
        name
        for name in ("--no-interpreter", "--no-device", "--no-shrink")
        if getattr(given, name[2:].replace("-", "_"))
    ]
    return drive(given, only, flags)


def drive(given: argparse.Namespace, only: tuple[str, ...], flags: list[str]) -> int:
    """Give the seeds to workers and write down what they find."""
    tasks = [
        (seed, only if given.together else features_of(seed, only))
        for seed in range(given.seed + given.count - 1, given.seed - 1, -1)
    ]
    workers = [Worker(flags) for _ in range(given.jobs)]
    ran: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    causes: dict[str, list[dict[str, Any]]] = {}
    start = time.monotonic()
    while tasks or any(each.task for each in workers):
        for each in workers:
            if each.task is None and tasks:
                each.give(tasks.pop())
        busy = {each.process.stdout: each for each in workers if each.task}
        ready, _, _ = select.select(list(busy), [], [], 5)
        answers = [busy[pipe].answer() for pipe in ready]
        late = [each for each in workers if each.task and time.monotonic() - each.since > given.timeout]
        for answer in [*answers, *(each.give_up() for each in late)]:
            ran.update(answer["features"])
            if answer["cause"] is None:
                continue
            failed.update(answer["features"])
            known = causes.setdefault(answer["cause"], [])
            known.append(answer)
            if len(known) <= given.examples:
                text = answer["text"].splitlines()
                more = [f"... {len(text) - given.lines} more lines"] if len(text) > given.lines else []
                head = f"==== {answer['cause']}\nseed {answer['seed']}, {','.join(answer['features'])}"
                print("", head, *text[: given.lines], *more, sep="\n", flush=True)
    for each in workers:
        each.process.stdin.close()
        each.process.wait()
    seconds = time.monotonic() - start
    total = sum(len(each) for each in causes.values())
    print(
        f"\n{given.count} programs in {seconds:.0f} s, {60 * given.count / seconds:.0f} a minute; {total} differ"
    )
    print("  ".join(f"{name} {failed[name]}/{ran[name]}" for name in ran))
    for cause, each in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"{len(each):5}  {cause}   seeds {[one['seed'] for one in each][:6]}")
    return 1 if causes else 0


if __name__ == "__main__":
    sys.exit(main())
