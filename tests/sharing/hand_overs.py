"""Many hand-overs of memory between vkdispatch and another library, with random work on both sides.

    python -m tests.sharing.hand_overs --count 10000 --libraries numpy,torch,jax --seed 0
    python -m tests.sharing.hand_overs --count 10000 --libraries torch,cupy,jax --cuda

Each round begins with random elements in the memory of one side. Then steps in random order change them in
kernels, expressions and functions of vkdispatch, or by operations of the library, on the memory itself or in
new memory, and the other side goes on with what it is handed. NumPy computes the same. Values are compared at
the end of a round only: with ``--cuda`` on an NVIDIA GPU, where CUDA knows the memory of buffers, no step of
a round waits on the host, except JAX's. Nothing may grow: objects, device memory, the memory of the process.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections import Counter
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.base.sharing.cuda_link import can_link
from vkdispatch.codegen.abbreviations import Buff

Array = np.ndarray[Any, Any]

# By the name of a dtype in all libraries: the dtype of its components, and how many there are.
KINDS = {
    **{name: (name, 1) for name in ("bool", "int8", "int16", "int32", "int64")},
    **{name: (name, 1) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: (name, 1) for name in ("float16", "bfloat16", "float32", "float64")},
    "complex32": ("float16", 2),
    "complex64": ("float32", 2),
    "complex128": ("float64", 2),
}
OPERATIONS = ("increment", "negate")


def kind_of(name: str) -> Any:
    """Return the dtype of vkdispatch with this name."""
    return getattr(vd, "bool_" if name == "bool" else name)


# ---- the libraries


class NumPy:
    """How a library makes, changes and shows arrays. `components` are NumPy arrays of the dtype's parts."""

    name = "numpy"
    kinds: tuple[str, ...] = tuple(kind for kind in KINDS if kind not in ("bfloat16", "complex32"))
    is_immutable = False
    growth = 24 << 20  # bytes that the process may grow without a leak, by pools of allocators

    def make(self, name: str, components: Array) -> Any:
        """Return a new array of elements."""
        return components.copy().view(name)

    def take(self, ours: Any) -> Any:
        """Return an array on the memory of a buffer or an Array."""
        return np.from_dlpack(ours)

    def show(self, x: Any, name: str) -> Array:
        """Return the components."""
        return np.array(x).view(KINDS[name][0])

    def change(self, x: Any, operation: str, name: str, *, in_place: bool) -> Any:
        """Return changed elements, of the same array or of a new one."""
        if operation == "increment":
            new = x ^ True if name == "bool" else x + x.dtype.type(one_of(name))
        else:
            new = x ^ True if name == "bool" else -x
        if not in_place:
            return new
        x[...] = new
        return x

    def every_other(self, x: Any) -> Any:
        """Return a view of every other element."""
        return x[::2]


def one_of(name: str) -> Any:
    """Return the number whose components are 1."""
    return 1 + 1j if KINDS[name][1] == 2 else 1


class Torch(NumPy):
    """PyTorch, on the CPU or on a GPU."""

    name = "torch"
    kinds = tuple(KINDS)

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, device
        self.pool: Any = vd.cuda.torch_pool() if device == "cuda" else None

    def _part(self, name: str) -> Any:
        return getattr(self.torch, KINDS[name][0])

    def make(self, name: str, components: Array) -> Any:
        if name == "bfloat16":
            found = self.torch.from_numpy(components.astype(np.float32)).bfloat16()
        else:
            found = self.torch.from_numpy(components.copy())
        found = found.view(getattr(self.torch, name))
        if self.pool is None:
            return found
        with self.torch.cuda.use_mem_pool(self.pool):
            return found.cuda()

    def take(self, ours: Any) -> Any:
        return self.torch.from_dlpack(ours)

    def show(self, x: Any, name: str) -> Array:
        parts = x.cpu().view(self._part(name))
        found: Array = parts.float().numpy() if name == "bfloat16" else parts.numpy().copy()
        return found

    def change(self, x: Any, operation: str, name: str, *, in_place: bool) -> Any:
        parts = x.view(self._part(name))  # PyTorch lacks arithmetic for some dtypes
        if name.startswith("uint"):
            parts = parts.view(getattr(self.torch, name.removeprefix("u")))
        if not in_place:
            parts = self._clone(parts)
        if name == "bool":
            parts.logical_not_()
        elif operation == "increment":
            parts.add_(1)
        else:
            parts.neg_()
        return x if in_place else parts.view(x.dtype)

    def _clone(self, x: Any) -> Any:
        if self.pool is None:
            return x.clone()
        with self.torch.cuda.use_mem_pool(self.pool):
            return x.clone()


class CuPy(NumPy):
    """CuPy, which allocates from a context."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        cupy.cuda.set_allocator(vd.cuda.cupy_allocator())

    def make(self, name: str, components: Array) -> Any:
        return self.cupy.asarray(components).view(name)

    def take(self, ours: Any) -> Any:
        return self.cupy.from_dlpack(ours)

    def show(self, x: Any, name: str) -> Array:
        return super().show(self.cupy.asnumpy(x), name)


class Jax(NumPy):
    """JAX, on the CPU or a GPU. Its arrays never change."""

    name = "jax"
    kinds = tuple(kind for kind in KINDS if kind != "complex32")
    is_immutable = True
    growth = 128 << 20  # it keeps what it has compiled, for each dtype and shape

    def __init__(self, *, cuda: bool) -> None:
        import jax

        if not cuda:
            jax.config.update("jax_default_device", jax.devices("cpu")[0])
        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def make(self, name: str, components: Array) -> Any:
        if name == "bfloat16":
            return self.jax.numpy.asarray(components.astype(np.float32)).astype("bfloat16")
        return self.jax.numpy.array(components.copy().view(name))  # it reads the memory later

    def take(self, ours: Any) -> Any:
        return self.jax.dlpack.from_dlpack(ours)

    def show(self, x: Any, name: str) -> Array:
        if name == "bfloat16":
            return np.asarray(x.astype("float32"))
        return super().show(np.asarray(x), name)

    def change(self, x: Any, operation: str, name: str, *, in_place: bool) -> Any:
        # JAX has no streams to order work by
        return self.jax.block_until_ready(super().change(x, operation, name, in_place=False))


def open_library(name: str, *, cuda: bool) -> NumPy:
    """Return a library by its name. Raises ImportError if it is not installed."""
    if name == "numpy":
        return NumPy()
    if name == "torch":
        return Torch("cuda" if cuda else "cpu")
    return CuPy() if name == "cupy" else Jax(cuda=cuda)


# ---- our side


@cache
def kernel_of(name: str, operation: str, is_copy: bool) -> Any:
    """Return a kernel that changes components of a dtype in place, or from a buffer to another one."""
    kind = kind_of(name)

    def change(value: Any) -> Any:
        if name == "bool":
            return value.to_dtype(vd.int32) == 0
        return value + 1 if operation == "increment" else -value

    def in_place(x: Any) -> None:
        i = vc.global_invocation_id().x
        x[i] = change(x[i])

    def into(out: Any, x: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = change(x[i])

    if is_copy:
        types, names = [Buff[kind], Buff[kind]], ["out", "x"]
        return vd.shader("out.size", arg_type_annotations=types, arg_names=names)(into)
    return vd.shader("x.size", arg_type_annotations=[Buff[kind]], arg_names=["x"])(in_place)


def parts_of(buffer: Any, name: str) -> Any:
    """Return a buffer of the components of elements."""
    part, count = KINDS[name]
    return buffer if count == 1 else buffer.view(kind_of(part))


def change_truth(components: Array, operation: str, name: str) -> None:
    """Change components in place."""
    if name == "bool":
        np.logical_not(components, out=components)
    elif operation == "increment":
        components += 1
    else:
        np.negative(components, out=components)


# What a step does with the array that the other library has; some change its memory.
IN_PLACE = ("kernel", "buffer", "share", "array", "graph", "half", "theirs")
INTO_NEW = ("new", "copy", "expression", "their new")


class Round:
    """Elements that two libraries change in turn."""

    def __init__(self, source: random.Random, library: NumPy, *, cuda: bool) -> None:
        self.random, self.library, self.cuda = source, library, cuda
        self.name = source.choice(library.kinds)
        part, count = KINDS[self.name]
        length = source.choice((4, 8, 64, 260, 1000, 4096, 1 << 16))
        values = np.random.default_rng(source.randrange(1 << 30)).integers(0, 30, length * count)
        kind = np.float32 if part == "bfloat16" else np.dtype(part)
        self.truth: Array = (values % 2 == 1) if part == "bool" else values.astype(kind)
        self.steps: list[str] = []
        if source.random() < 0.5:
            self.theirs = library.make(self.name, self.truth)
        else:
            self.theirs = library.take(self._make_buffer())

    def _make_buffer(self) -> Any:
        buffer = vd.Buffer(self.truth.size // KINDS[self.name][1], kind_of(self.name))
        parts_of(buffer, self.name).write(self.truth)
        return buffer

    def step(self) -> None:
        """Change the elements in one of the ways, and compute the truth."""
        ways = list(INTO_NEW if self.library.is_immutable else IN_PLACE + INTO_NEW)
        if self.name in ("bfloat16", "complex32"):  # Arrays do not have these dtypes
            ways = [way for way in ways if way not in ("array", "half", "expression")]
        if KINDS[self.name][1] == 2:  # kernels take the elements as they are
            ways = [way for way in ways if way not in ("kernel", "graph")]
        if self.cuda:
            ways = [way for way in ways if way not in ("share", "half")]
            self._move()
        way, operation = self.random.choice(ways), self.random.choice(OPERATIONS)
        if operation == "negate" and self.name.startswith("uint"):
            operation = "increment"
        self.steps.append(f"{operation} by {way}")
        change_truth(self.truth[::2] if way == "half" else self.truth, operation, self.name)
        getattr(self, "_" + way.replace(" ", "_"))(operation)

    def _move(self) -> None:
        """Copy elements on the GPU that do not begin where a buffer begins: CUDA's own, or a pool's."""
        try:
            vd.from_dlpack(self.theirs, copy=False)
        except BufferError:
            self.theirs = self.library.take(vd.from_dlpack(self.theirs, copy=True))

    def _in_order(self) -> Any:
        """Order work on memory that was taken before, for libraries that have streams."""
        return vd.cuda.stream() if self.cuda else nullcontext()

    def _kernel(self, operation: str) -> None:
        kernel_of(self.name, operation, False)(self.theirs)

    def _buffer(self, operation: str) -> None:
        buffer = vd.from_dlpack(self.theirs, copy=False)
        with self._in_order():
            self._change(buffer, operation)

    def _share(self, operation: str) -> None:
        self._change(vd.share(self.theirs), operation)

    def _graph(self, operation: str) -> None:
        graph = vd.CommandGraph()
        kernel_of(self.name, operation, False)(self.theirs, graph=graph)
        with self._in_order():
            graph.submit()

    def _change(self, buffer: Any, operation: str) -> None:
        kernel_of(KINDS[self.name][0], operation, False)(parts_of(buffer, self.name))

    def _array(self, operation: str) -> None:
        x = vnp.from_dlpack(self.theirs, copy=False)
        with self._in_order():
            self._change_array(x, operation)

    def _half(self, operation: str) -> None:
        if KINDS[self.name][1] == 2:  # every other component of the truth: the real parts
            x = vnp.from_dlpack(self.theirs, copy=False)
            x.real = x.real + 1 if operation == "increment" else -x.real
        else:
            half = self.library.every_other(self.theirs)
            try:
                x = vnp.from_dlpack(half, copy=False)
            except BufferError:  # small elements do not end with a word
                self.library.change(half, operation, self.name, in_place=True)
            else:
                self._change_array(x, operation)

    def _change_array(self, x: Any, operation: str) -> None:
        if self.name == "bool":
            x ^= True
        elif operation == "increment":
            x += one_of(self.name)
        else:
            x *= -1

    def _theirs(self, operation: str) -> None:
        self.theirs = self.library.change(self.theirs, operation, self.name, in_place=True)

    def _their_new(self, operation: str) -> None:
        self.theirs = self.library.change(self.theirs, operation, self.name, in_place=False)

    def _new(self, operation: str) -> None:
        out = self._empty()
        source = self.theirs if KINDS[self.name][1] == 1 else vd.from_dlpack(self.theirs)
        kernel_of(KINDS[self.name][0], operation, True)(parts_of(out, self.name), parts_of(source, self.name))
        self.theirs = self.library.take(out)

    def _empty(self) -> Any:
        return vd.Buffer(self.truth.size // KINDS[self.name][1], kind_of(self.name))

    def _copy(self, operation: str) -> None:
        copy = vd.from_dlpack(self.theirs, copy=True)
        self._change(copy, operation)
        self.theirs = self.library.take(copy)

    def _expression(self, operation: str) -> None:
        x = vnp.from_dlpack(self.theirs)
        if operation == "increment":
            y = x ^ True if self.name == "bool" else x + one_of(self.name)
        else:
            y = x ^ True if self.name == "bool" else -x
        self.theirs = self.library.take(y)

    def check(self) -> None:
        """Compare what both sides see with the truth."""
        found = self.library.show(self.theirs, self.name)
        if not np.array_equal(found, self.truth):
            wrong = np.flatnonzero(found != self.truth)
            raise AssertionError(
                f"{self.library.name}, {self.truth.size} parts of {self.name}, {len(wrong)} wrong from "
                f"{wrong[0]} on: {found[wrong[:4]]}, expected {self.truth[wrong[:4]]} after {self.steps}"
            )


# ---- the command


def measure() -> dict[str, int]:
    """Return what must not grow, once everything is dropped that may be."""
    for _ in range(3):
        gc.collect()
        vd.queue_wait_idle()
    statistics = vd.get_context()._native.statistics()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 if sys.platform == "linux" else 0
    memory = statistics["device_memory"] + statistics["idle_memory"]
    return {"objects": statistics["live_objects"], "device_memory": memory, "resident": resident}


def hand_over(
    library: NumPy, count: int, seed: int, *, cuda: bool = False, on_progress: Any = None
) -> Counter[str]:
    """Make this many hand-overs in rounds. Return how many there were of each way and dtype.

    Raises AssertionError for wrong values.
    """
    source = random.Random(seed)
    done: Counter[str] = Counter()
    while done["all"] < count:
        current = Round(source, library, cuda=cuda)
        for _ in range(source.randrange(1, 60 if cuda else 9)):
            current.step()
        current.check()
        done.update(step.partition(" by ")[2] for step in current.steps)
        done.update({current.name: len(current.steps), "all": len(current.steps)})
        if on_progress is not None:
            on_progress(done["all"])
    return done


def main() -> None:
    """Run the command line."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--count", type=int, default=10_000, help="hand-overs with each library")
    parser.add_argument("--libraries", default="numpy", help="numpy, torch, jax, cupy, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cuda", action="store_true", help="arrays on the GPU that the context computes on")
    options = parser.parse_args()
    if options.cuda and not can_link(vd.get_context()):
        parser.error("--cuda: CUDA does not know the device of the context")
    failed = False
    for name in options.libraries.split(","):
        library = open_library(name, cuda=options.cuda)
        # kernels are compiled, and pools are filled
        hand_over(library, options.count, options.seed + 1, cuda=options.cuda)
        before, start = measure(), time.perf_counter()
        done = hand_over(library, options.count, options.seed, cuda=options.cuda)
        seconds, after = time.perf_counter() - start, measure()
        print(f"{name}: {done['all']} hand-overs in {seconds:.1f} s, all values right")
        print("  " + ", ".join(f"{key} {number}" for key, number in sorted(done.items()) if key != "all"))
        print("  grown: " + ", ".join(f"{key} {after[key] - before[key]:+}" for key in before))
        failed |= after["objects"] > before["objects"] + 16  # kernels that had not been needed before
        failed |= any(after[key] > before[key] + library.growth for key in ("resident", "device_memory"))
    sys.exit("memory has grown" if failed else 0)


if __name__ == "__main__":
    main()
