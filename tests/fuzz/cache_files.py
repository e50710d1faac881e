"""The disk cache's files and folders broken at random: `python -m tests.fuzz.cache_files --count 10000`.

After each mutation a program runs: kernels, a choice of autotune, a measured bandwidth, an order. Its results
have to be right, whatever the files say; nothing may be handed out that was not stored under that key, and
nothing outside of the folder may change. Anything else ends the worker, which counts as a crash.
"""

from __future__ import annotations

import functools
import os
import random
import resource
import shutil
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.orders.here import missing
from vkdispatch.base import compute_plan
from vkdispatch.base.compilation import compiler, disk_cache
from vkdispatch.codegen.abbreviations import Buff, Const, f32
from vkdispatch.orders import Accel, Order, compilers, library
from vkdispatch.shader import launching as autotune
from vkdispatch.shader.measurement import devices as bandwidth

from .driving import main

_SIZE = 64  # workgroups, as autotune is made to have found
_SPEED = 1e9  # bytes per second, as a copy is made to have been measured
_MEMORY = 1 << 29  # bytes that all of the attempts together may take
_PIPELINE = bytes(2000)  # of no driver: some, as llvmpipe, give nothing to be kept
# It makes what it was asked for before at once.
_COMPILER = """#!/bin/sh
[ "$1" = --version ] && { echo "Free Software Foundation"; exit; }
known="$(dirname "$0")/$(cksum <accelpy.cpp | tr ' ' -).so"
[ -e "$known" ] || { g++ "$@" && cp accelpy.so "$known.$$" && mv "$known.$$" "$known"; } || exit 1
cp "$known" accelpy.so
"""


class World:
    """A cache that a program has filled, a copy of it, and things outside that have to stay as they are."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vkdispatch-fuzz-", ignore_cleanup_errors=True)
        self.place = Path(self._folder.name)
        self.root = self.place / "cache"
        self.aside = self.place / "aside"
        self.outside = self.place / "outside"
        self.stored: dict[tuple[str, str], set[bytes]] = {}
        self.found = self.asked = 0
        self.orders = missing("cpp") is None
        self.compiler = self.place / "compiler"
        self.compiler.write_text(_COMPILER)
        self.compiler.chmod(0o700)
        os.environ["VKDISPATCH_CACHE"] = str(self.root)
        self._watch()
        self.run()
        self.files = {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        kinds = {path.parent.name for path in self.files}
        assert kinds >= {"spirv", "pipeline", "program", "measured", *(["orders"] if self.orders else [])}
        self.memory = _most_memory()
        # an entry that is right, and anything else, where links may lead
        self.treasure = {"entry.vkd": next(iter(self.files.values())), "letter": b"dear"}

    def _watch(self) -> None:
        """Have all that is handed out compared with what was stored."""
        load, store = disk_cache.load, disk_cache.store

        def watched_load(kind: str, key: str) -> bytes | None:
            data = load(kind, key)
            self.asked += 1
            if data is not None:
                self.found += 1
                assert data in self.stored.get((kind, key), ()), f"{kind}: {len(data)} bytes never stored"
            return data

        def watched_store(kind: str, key: str, data: bytes) -> None:
            self.stored.setdefault((kind, key), set()).add(data)
            store(kind, key, data)

        disk_cache.load, disk_cache.store = watched_load, watched_store
        bandwidth._measure_bandwidth = lambda *_: _SPEED
        load_pipelines = compute_plan.load_pipelines

        def filling_load(keys: Sequence[str]) -> list[bytes]:
            found = load_pipelines(keys)
            compiler.store_pipelines(keys, [b"" if data else _PIPELINE for data in found])
            return found

        compute_plan.load_pipelines = filling_load

    def run(self) -> None:
        """Run the program as a new process would: what it keeps in memory is forgotten."""
        self.asked = self.found = 0
        context = vd.get_context()
        compiler._program_noted = False
        compiler.prepare_for_context()

        @vd.shader("data.size")
        def scale(data: Buff[f32], by: Const[f32]) -> None:
            i = vc.global_invocation_id().x
            data[i] = data[i] * by + i.to_dtype(f32)

        data = vd.asbuffer(np.arange(100, dtype=np.float32))
        scale(data, 3.0)
        assert data.read(0).tolist() == [4.0 * i for i in range(100)]
        assert scale.shader_description is not None
        choice = autotune.load_size(context, scale.shader_description, (100, 1, 1))
        assert choice in (None, _SIZE)
        if choice is None:
            autotune.store_size(context, scale.shader_description, (100, 1, 1), _SIZE)
        bandwidth._measured_bandwidth.clear()
        assert bandwidth.measure_copy_bandwidth(context, 0) == _SPEED
        if self.orders:
            self._run_order()
        usage = disk_cache.entries()
        assert all(kind.count >= 0 for kind in usage.values())

    def _run_order(self) -> None:
        library._loaded.clear()
        library._tested.clear()
        compilers._versions.clear()
        for value in (4, 5):
            result = np.zeros(3)
            order = Order(f"[cpp]\naccelpy_out0(0) = {value};\n")
            with Accel(order, result, compile=str(self.compiler)) as accel:
                accel.run()
            assert result.tolist() == [value, 0, 0]

    def restore(self) -> None:
        """Make everything as it was."""
        for path in (self.root, self.aside, self.outside):
            _remove(path)
        self.aside.mkdir(0o700)
        self.outside.mkdir(0o700)
        for name, content in self.treasure.items():
            (self.outside / name).write_bytes(content)
        self.root.mkdir(0o700)
        for path, content in self.files.items():
            path.parent.mkdir(0o700, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o600)

    def check_outside(self) -> None:
        """Raise AssertionError where something outside has changed, or a file was read that is too large."""
        assert _most_memory() < self.memory + _MEMORY
        assert {path.name: path.read_bytes() for path in self.outside.iterdir()} == self.treasure


def _most_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            if not (Path(folder) / name).is_symlink():
                (Path(folder) / name).chmod(0o700)
    shutil.rmtree(path)


Mutation = Callable[[random.Random, World, Path], object]


def _is_plain(path: Path) -> bool:
    """Whether a path is still a file of our own; to open other things may wait, or break what is outside."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20


def _rewrite(change: Callable[[random.Random, bytearray], bytes | bytearray]) -> Mutation:
    """Return a mutation of a file's content."""

    def mutate(generator: random.Random, world: World, path: Path) -> None:
        if _is_plain(path):
            path.write_bytes(change(generator, bytearray(path.read_bytes())))

    return mutate


def _flip(generator: random.Random, content: bytearray) -> bytearray:
    for _ in range(generator.choice((1, 1, 2, 20)) if content else 0):
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    return content


def _cut(generator: random.Random, content: bytearray) -> bytes:
    return content[: generator.randrange(len(content) + 1)]


def _splice(generator: random.Random, content: bytearray) -> bytes:
    start, end = (generator.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:]


def _lengthen(generator: random.Random, content: bytearray) -> bytes:
    return content + generator.randbytes(generator.choice((1, 16, 5000)))


def _refill(generator: random.Random, content: bytearray) -> bytes:
    head = generator.choice((0, 19, 35))
    return content[:head] + generator.randbytes(len(content[head:]))


def _other(generator: random.Random, world: World, path: Path) -> Path:
    return generator.choice([other for other in world.files if other != path])


def _swap(generator: random.Random, world: World, path: Path) -> None:
    other = _other(generator, world, path)
    path.rename(world.aside / "swapped")
    other.rename(path)
    (world.aside / "swapped").rename(other)


def _borrow(generator: random.Random, world: World, path: Path) -> None:
    other = _other(generator, world, path)
    if _is_plain(path) and _is_plain(other):
        path.write_bytes(other.read_bytes())


def _oversize(generator: random.Random, world: World, path: Path) -> None:
    if _is_plain(path):
        os.truncate(path, generator.choice((1 << 25, (1 << 25) + 36, 1 << 30)))  # a hole


def _in_place(make: Callable[[random.Random, World, Path], object]) -> Mutation:
    """Return a mutation that puts something else in the place of a file or folder, which goes aside."""

    def mutate(generator: random.Random, world: World, path: Path) -> None:
        path.rename(world.aside / f"{generator.getrandbits(64):x}")
        make(generator, world, path)

    return mutate


def _link_aside(generator: random.Random, world: World, path: Path) -> None:
    """Link to what the path was, which is right but for that."""
    newest = max(world.aside.iterdir(), key=lambda item: item.lstat().st_ctime_ns)
    path.symlink_to(newest)


def _link(generator: random.Random, world: World, path: Path) -> None:
    places = [world.outside / "entry.vkd", world.outside / "letter", Path("/dev/zero"), Path("nowhere"), path]
    # Of folders one that is fine; but the first may be a link: it is the user who names it.
    kinds = {file.parent for file in world.files} - {world.root}
    path.symlink_to(world.outside if path in kinds else generator.choice(places))


def _folder(generator: random.Random, world: World, path: Path) -> None:
    path.mkdir()
    if generator.random() < 0.5:
        (path / "full").write_bytes(b"x")


def _socket(generator: random.Random, world: World, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, suppress(OSError):  # its path may be too long
        made.bind(str(path))


def _change_mode(generator: random.Random, world: World, path: Path) -> None:
    if not path.is_symlink():
        path.chmod(generator.choice((0, 0o400, 0o500, 0o666, 0o777, 0o722, 0o1777, 0o4755)))


def _hard_link(generator: random.Random, world: World, path: Path) -> None:
    path.hardlink_to(_other(generator, world, path))


def _litter(generator: random.Random, world: World, path: Path) -> None:
    folder = path if path.is_dir() else path.parent
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    for _ in range(generator.choice((1, 30))):
        name = f"{generator.getrandbits(160):040x}{generator.choice(('.vkd', '-0.vkd~', '', '.vkd.vkd'))}"
        (folder / name).write_bytes(generator.randbytes(generator.randrange(60)))


_REPLACEMENTS = (
    _in_place(lambda *_: None),
    _in_place(_link_aside),
    _in_place(_link),
    _in_place(_folder),
    _in_place(_socket),
    _in_place(lambda generator, world, path: os.mkfifo(path)),
    _in_place(lambda generator, world, path: path.write_bytes(generator.randbytes(40))),
    _change_mode,
    _litter,
)
_OF_FILES = (
    *(_rewrite(change) for change in (_flip, _flip, _flip, _cut, _cut, _splice, _lengthen, _refill)),
    *(_swap, _borrow, _oversize, _oversize, _in_place(_hard_link)),
    *_REPLACEMENTS,
)


def _mutate(generator: random.Random, world: World) -> None:
    """Break something; what another mutation has broken before may be in the way."""
    files = list(world.files)
    place = generator.random()
    if place < 0.8:
        path, mutations = generator.choice(files), _OF_FILES
    elif place < 0.98:
        path, mutations = generator.choice(files).parent, _REPLACEMENTS
    else:
        path, mutations = world.root, _REPLACEMENTS
    with suppress(OSError):
        generator.choice(mutations)(generator, world, path)


@contextmanager
def _busy(generator: random.Random, world: World) -> Iterator[None]:
    """Have another thread go on breaking things."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(0.001):
            _mutate(generator, world)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@functools.cache
def _world() -> World:
    return World()


def attempt(seed: int) -> str:
    """Run the program on a broken cache, and once more; say how much of it was used."""
    world, generator = _world(), random.Random(seed)
    world.restore()
    if seed % 8 == 0:
        with _busy(generator, world):
            world.run()
    else:
        # a few broken entries, or most of them
        for _ in range(generator.choice((1, 2, 4, 12))):
            _mutate(generator, world)
        world.run()
    verdict = "all found" if world.found == world.asked else "some found" if world.found else "none found"
    world.run()
    world.check_outside()
    if generator.random() < 0.1:
        disk_cache.clear()
        world.check_outside()
    world.restore()
    return verdict


def show(seed: int) -> str:
    """List what the mutant of a seed looks like, unless things are broken while the program runs."""
    world, generator = _world(), random.Random(seed)
    world.restore()
    for _ in range(generator.choice((1, 2, 4, 12))):
        _mutate(generator, world)
    lines: list[Any] = []
    for path in [world.root, *sorted(world.root.rglob("*"))]:
        status = path.lstat()
        changed = (
            stat.S_ISREG(status.st_mode) and path.read_bytes()[:1000] != world.files.get(path, b"")[:1000]
        )
        lines.append(f"{stat.filemode(status.st_mode)} {status.st_size:>14} {path}{' changed' * changed}")
    return "\n".join(lines)


if __name__ == "__main__":
    main("tests.fuzz.cache_files", __doc__, attempt, show)
