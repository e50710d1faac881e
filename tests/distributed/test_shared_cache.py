"""The disk cache of workers: several processes fill it at once, and some are killed while they write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# argv: the part of a store at which the process kills itself ("" for never), and the number of that store.
WORKER = """
import os, signal, sys
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation.disk_cache import PrivateFolder
from vkdispatch.codegen.abbreviations import Buff, Const, f32

part, number = sys.argv[1], int(sys.argv[2])
stores = []

def die(here):
    if here == part and len(stores) > number:
        os.kill(os.getpid(), signal.SIGKILL)

def write(self, name, parts):
    stores.append(name)
    head, data = parts
    file = open(self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb", buffering=0)
    with file:
        die("begin")
        file.write(head)
        file.write(data[: len(data) // 2])
        die("half")
        file.write(data[len(data) // 2 :])
    die("written")

def replace(self, name, by):
    old(self, name, by)
    die("replaced")

if part:
    old = PrivateFolder.replace
    PrivateFolder.write, PrivateFolder.replace = write, replace

missed = []

def load(kind, key):
    data = original(kind, key)
    if data is None:
        missed.append(kind)
    return data

original, disk_cache.load = disk_cache.load, load

def make(factor):
    @vd.shader("data.size")
    def scale(data: Buff[f32], amount: Const[f32]):
        i = vc.global_invocation_id().x
        data[i] = data[i] * factor + amount
    return scale

values = np.arange(100, dtype=np.float32)
sys.stdin.readline()
for factor in range(1, 9):
    data = vd.asbuffer(values)
    make(factor)(data, 0.5)
    assert (data.read(0) == values * np.float32(factor) + np.float32(0.5)).all(), factor
print(missed.count("spirv"))
"""

DEATHS = [("begin", 0), ("half", 1), ("written", 2), ("replaced", 3)]


def start(cache: Path, part: str = "", number: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, part, str(number)],
        env={**os.environ, "VKDISPATCH_CACHE": str(cache)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate("go\n", timeout=300)
    assert process.returncode in (0, -9), errors
    return process.returncode, output


@pytest.mark.skipif(os.name != "posix", reason="processes kill themselves by a signal")
def test_workers_fill_one_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    killed = [start(cache, *death) for death in DEATHS[:2]]
    living = [start(cache) for _ in range(2)]
    for process in (*killed, *living):
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    # these cannot finish without a store, unless the others have stored everything by then
    for process in killed:
        finish(process)
    for process in living:
        assert finish(process)[0] == 0
    # one that finds all of it compiles nothing
    assert finish(start(cache)) == (0, "0\n")


@pytest.mark.skipif(os.name != "posix", reason="processes kill themselves by a signal")
def test_a_worker_killed_at_any_point_of_a_store(tmp_path: Path) -> None:
    for part, number in DEATHS:
        cache = tmp_path / f"{part}{number}"
        assert finish(start(cache, part, number))[0] == -9
        status, missed = finish(start(cache))
        assert status == 0
        # what was whole is found: every store but the one of its death
        whole = number + (part == "replaced")
        assert len(list(cache.glob("*/*.vkd"))) >= whole
        assert int(missed) > 0
