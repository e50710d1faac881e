"""The calls of `trials`: functions on arrays, transforms, kernels and sequences, with their arrays."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import vkdispatch as vd
from vkdispatch.families.tuning import plan_anew
from vkdispatch.shader.building import UNCOARSENED

_program = import_module("vkdispatch.shader.traced.program")


def _do_nothing() -> None:
    """Reset nothing."""


class Work(NamedTuple):
    """A call on arrays that are ready.

    Attributes
    ----------
    call, without
        The call, and another one that has no such form; None where planning makes the difference.
    reset
        Gives arrays that the call changes their first values.
    is_recorded
        Whether a graph can record it.
    """

    call: Callable[[], Any]
    without: Callable[[], Any] | None = None
    reset: Callable[[], object] = _do_nothing
    is_recorded: bool = True


class Case(NamedTuple):
    """A call by its text, and what makes it ready."""

    text: str
    make: Callable[[], Work]


@contextlib.contextmanager
def patch_attributes(module: Any, **attributes: Any) -> Iterator[None]:
    """Replace attributes of a module or a class for a while."""
    before = {name: getattr(module, name) for name in attributes}
    for name, value in attributes.items():
        setattr(module, name, value)
    plan_anew()
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
        plan_anew()


# ---- Calls -----------------------------------------------------------------------------------------------


def _values(shape: tuple[int, ...], kind: Any = np.float32) -> Any:
    rng = np.random.default_rng(0)
    kind = np.dtype(kind)
    if kind.kind in "iu":
        most = min(np.iinfo(kind).max, 1 << 40)
        return rng.integers(0, most, shape).astype(kind)
    if kind.kind == "c":
        return rng.standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0].astype(kind)
    return rng.standard_normal(shape, np.float32).astype(kind, copy=False)


def _text(shape: tuple[int, ...], kind: Any) -> str:
    return "x".join(map(str, shape)) + ("" if kind is np.float32 else f" {np.dtype(kind).name}")


def on(function: str, *shape: int, kind: Any = np.float32, **options: Any) -> Case:
    """Return a call of a function of one array."""
    shown = "".join(f", {name}={value}" for name, value in options.items())

    def make() -> Work:
        x = vd.asbuffer(_values(shape, kind))
        return Work(partial(getattr(vd, function), x, **options))

    return Case(f"{function}({_text(shape, kind)}{shown})", make)


def product(a: tuple[int, ...], b: tuple[int, ...], kind: Any = np.float32, **options: Any) -> Case:
    """Return a call of `vd.matmul`."""

    def make() -> Work:
        # small numbers, so that sums of halves stay finite
        left, right = (vd.asbuffer((_values(shape) / 8).astype(kind)) for shape in (a, b))
        return Work(lambda: vd.matmul(left, right, **options))

    shown = "".join(f", {name}" for name in options)
    return Case(f"matmul({_text(a, np.float32)} @ {_text(b, kind)}{shown})", make)


def transform(function: str, *shape: int, kind: Any = np.complex64, **options: Any) -> Case:
    """Return a transform in place. Repeated transforms keep the size of the values, except for `irfft`."""
    is_real = function in ("rfft", "irfft")

    def make() -> Work:
        host = _values(shape, np.float32 if is_real else kind)
        buffer: Any = vd.asrfftbuffer(host) if is_real else vd.asbuffer(host)
        call = getattr(vd.fft, function)

        def reset() -> None:
            (buffer.write_real if is_real else buffer.write)(host)
            if function == "irfft":
                vd.fft.rfft(buffer, norm="ortho")

        def run() -> Any:
            call(buffer, norm="ortho", **options)
            return _Spectrum(buffer)

        return Work(run, reset=reset)

    return Case(f"{function}({_text(shape, kind if kind is not np.complex64 else np.float32)})", make)


class _Spectrum:
    """What a transform left in a buffer."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def read(self, index: int) -> Any:
        """Return it on the host."""
        read = getattr(self._buffer, "read_fourier", self._buffer.read)
        return read(index)


def convolution(*shape: int) -> Case:
    """Return a convolution of planes in place; the spectrum of its kernel has the absolute value 1."""

    def make() -> Work:
        host, phases = _values(shape, np.complex64), _values(shape, np.complex64)
        buffer, kernel = vd.asbuffer(host), vd.asbuffer((phases / np.abs(phases)).astype(np.complex64))

        def run() -> Any:
            vd.fft.convolve2D(buffer, kernel)
            return _Spectrum(buffer)

        return Work(run, reset=lambda: buffer.write(host))

    return Case(f"convolve2D({_text(shape, np.float32)})", make)


def taking(rows: int, length: int, taken: int, function: str = "take") -> Case:
    """Return a call that takes elements of rows."""

    def make() -> Work:
        shape = (taken,) if function == "take" else (rows, taken)
        places = np.random.default_rng(1).integers(0, length, shape).astype(np.int32)
        x, indices = vd.asbuffer(_values((rows, length))), vd.asbuffer(places)
        return Work(lambda: getattr(vd, function)(x, indices, axis=1, mode="wrap"))

    return Case(f"{function}({rows}x{length}, {taken} of a row)", make)


def stacking(planes: int, length: int, kind: Any) -> Case:
    """Return a call that interleaves arrays."""

    def make() -> Work:
        arrays = [vd.asbuffer(_values((length,), kind)) for _ in range(planes)]
        return Work(lambda: vd.stack(arrays, axis=1))

    return Case(f"stack({planes} of {length} {np.dtype(kind).name}, axis=1)", make)


def choosing(size: int, kind: Any = np.float32) -> Case:
    """Return a call of `vd.where`."""

    def make() -> Work:
        mask = vd.asbuffer(_values((size,)) > 0)
        x, y = (vd.asbuffer(_values((size,), kind)) for _ in range(2))
        return Work(lambda: vd.where(mask, x, y))

    return Case(f"where({size} {np.dtype(kind).name})", make)


def counting(size: int, bins: int, *, weighed: bool = False) -> Case:
    """Return a call of `vd.bincount`."""

    def make() -> Work:
        x = vd.asbuffer(np.random.default_rng(0).integers(0, bins, size).astype(np.int32))
        weights = vd.asbuffer(_values((size,))) if weighed else None
        return Work(lambda: vd.bincount(x, weights=weights, minlength=bins, size=bins))

    return Case(f"bincount({size}, {bins} bins{', weighed' if weighed else ''})", make)


def keeping(count: int, one_of: int, function: str = "compact", *, waits: bool = False) -> Case:
    """Return a call that keeps one of so many elements, or their indices; without a size, it waits."""

    def make() -> Work:
        mask = vd.asbuffer(np.random.default_rng(0).integers(0, one_of, count, np.int32) == 0)
        x = vd.asbuffer(_values((count,)))
        arrays = (mask,) if function == "nonzero" else (x, mask)
        size = None if waits else count // one_of // 2
        return Work(lambda: getattr(vd, function)(*arrays, size=size), is_recorded=not waits)

    return Case(f"{function}({count}, one of {one_of}{'' if waits else ', size'})", make)


def drawing(size: int) -> Case:
    """Return a call that draws numbers, whose streams begin within a block; draws differ, as they go on."""

    def make() -> Work:
        generator: Any = vd.random.Generator(1)
        generator.random(size=size + 1, dtype=np.float32)

        def call() -> Any:
            generator.random(size=size, dtype=np.float32)
            return ()

        return Work(call, is_recorded=False)

    return Case(f"random({size}), from an odd place", make)


def searching(length: int, wanted: int, *, by_order: bool = False) -> Case:
    """Return a call of `vd.searchsorted`, with a sorted table, or with the order of another one."""

    def make() -> Work:
        host = _values((length,))
        order = vd.asbuffer(np.argsort(host).astype(np.int32)) if by_order else None
        table, x = vd.asbuffer(host if by_order else np.sort(host)), vd.asbuffer(_values((wanted,)))
        return Work(lambda: vd.searchsorted(table, x, sorter=order))

    return Case(f"searchsorted({length}, {wanted} values{', sorter' if by_order else ''})", make)


def _make_axpy(size: int, kind: Any) -> Work:
    import vkdispatch.codegen as vc

    x, y = (vd.asbuffer(_values((size,), kind)) for _ in range(2))
    annotation: Any = vc.Buff[x.var_type]  # type: ignore[name-defined]

    def make_call(variants: Any) -> Callable[[], Any]:
        @vd.shader("y.size")
        def axpy(y: annotation, x: annotation) -> None:
            i = vc.global_invocation_id().x
            y[i] = y[i] * 0.5 + x[i]

        with variants():
            axpy(y, x)  # decides for this kernel

        def call() -> Any:
            axpy(y, x)
            return y

        return call

    zeros = np.zeros(size, kind)
    calls = (
        make_call(nullcontext),
        make_call(lambda: patch_attributes(_program, choose_coarsening=lambda *_: UNCOARSENED)),
    )
    return Work(calls[0], calls[1], lambda: y.write(zeros))


_SHADERS = {
    "adds": "uint i = gl_GlobalInvocationID.x; a[i] += 1.0;",
    "steps": "uint i = gl_GlobalInvocationID.x; float v = a[i]; a[i] = v + 0.01 * (sin(v) - v * v * v);",
}


def _make_sequence(name: str, size: int, times: int) -> Work:
    import vkdispatch.kompute as kp

    head = (
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer A { float a[]; };\n"
    )
    spirv = kp.Shader.compile_source(f"{head}void main() {{ {_SHADERS[name]} }}")
    manager = kp.Manager()
    sequences, tensors = [], []
    for merged in "1", "0":
        tensor = manager.tensor(np.linspace(0, 1, size, dtype=np.float32))
        manager.sequence().eval(kp.OpTensorSyncDevice([tensor]))
        algorithm = manager.algorithm([tensor], spirv, (size // 64, 1, 1))
        os.environ["VKDISPATCH_KOMPUTE_MERGE"] = merged
        sequence = manager.sequence()
        for _ in range(times):
            sequence.record(kp.OpAlgoDispatch(algorithm))
        # sequences are merged after a thousand dispatches
        for _ in range(2000 // times + 2):
            sequence.eval()
        sequences.append(sequence)
        tensors.append(tensor)

    def make_call(number: int) -> Callable[[], Any]:
        def call() -> Any:
            os.environ["VKDISPATCH_KOMPUTE_MERGE"] = "10"[number]
            sequences[number].eval()
            return _Tensor(manager, tensors[number])

        return call

    return Work(make_call(0), make_call(1), is_recorded=False)


class _Tensor:
    """A tensor of Kompute as a result."""

    def __init__(self, manager: Any, tensor: Any) -> None:
        self._manager, self._tensor = manager, tensor

    def read(self, _: int) -> Any:
        """Return its values."""
        import vkdispatch.kompute as kp

        self._manager.sequence().eval(kp.OpTensorSyncLocal([self._tensor]))
        return self._tensor.data().copy()


SEQUENCES = (("adds", 1024, 100), ("adds", 1 << 16, 100), ("steps", 1024, 100), ("steps", 1 << 14, 100))


def sequence(name: str, size: int, times: int) -> Case:
    """Return a sequence of Kompute that is evaluated again and again."""
    text = f"sequence of {times} that {name}, {size} floats"
    return Case(text, partial(_make_sequence, name, size, times))


def axpy(size: int, kind: Any) -> Case:
    """Return a call of a kernel of a user."""
    return Case(f"y = y / 2 + x ({_text((size,), kind)})", partial(_make_axpy, size, kind))
