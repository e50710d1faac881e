"""What buffers look like: NumPy's text of a few elements, dtype, shape and device."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

RunPython = Callable[..., CompletedProcess[str]]


def device() -> str:
    return vd.get_context().device_infos[0].device_name


def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return where counts of the elements that are read will be."""
    counts: list[int] = []
    read = vd.Buffer._read

    def counted(self: Any, start: int, elements: Any, *rest: Any) -> Any:
        counts.append(int(np.prod(elements)))
        return read(self, start, elements, *rest)

    monkeypatch.setattr(vd.Buffer, "_read", counted)
    return counts


@pytest.mark.parametrize("shape", [(), (1,), (6,), (7,), (1000,), (6, 6), (7, 3), (3, 7), (1024, 64), (0, 3)])
@pytest.mark.parametrize("host", [np.float32, np.int64, np.complex64, np.bool_])
def test_text_of_values_agrees_with_numpy(
    shape: tuple[int, ...], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = (np.random.default_rng(1).random(shape) * 1000).astype(host)
    buffer = vd.asbuffer(np.asarray(array))
    expected = np.array2string(array, separator=", ", prefix="Buffer(", threshold=0, edgeitems=3)
    counts = fetched(monkeypatch)
    text = repr(buffer)
    assert sum(counts) <= 36
    assert text.startswith(f"Buffer({expected},")
    kind = f"vd.{buffer.var_type.__name__}"
    assert text.endswith(f"shape={shape}, dtype={kind}, device={device()!r})")
    assert str(buffer) == text


@pytest.mark.parametrize("shape", [(20, 20, 20), (5, 4, 3), (4, 100, 1), (2, 2, 5000)])
@pytest.mark.parametrize("tail", [(), (2,), (3, 3)])
def test_three_axes(shape: tuple[int, ...], tail: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[tuple[int, ...], Any] = {(): vd.float32, (2,): vd.vec2, (3, 3): vd.mat3}
    array = np.random.default_rng(1).random((*shape, *tail)).astype(np.float32)
    buffer: Any = vd.Buffer(shape, kinds[tail])
    buffer.write(array)
    expected = np.array2string(array, separator=", ", prefix="Buffer(", threshold=0, edgeitems=2)
    counts = fetched(monkeypatch)
    assert repr(buffer).startswith(f"Buffer({expected},\n       shape={shape}, dtype=vd.")
    assert sum(counts) <= 64


def test_other_dtypes() -> None:
    array = np.array([(1, (2, 3)), (4, (5, 6))], [("x", "i4"), ("v", "f4", 2)])
    assert repr(vd.asbuffer(array)).startswith("Buffer([(1, [2., 3.]), (4, [5., 6.])]")
    buffer = vd.Buffer(2, vd.bfloat16)
    buffer.write(np.array([1.5, -2], np.float32))
    assert repr(buffer).startswith("Buffer([ 1.5, -2. ]")
    signal = vd.asrfftbuffer(np.ones((2, 5), np.float32))
    assert repr(signal).startswith("RFFTBuffer([[1.+1.j, 1.+1.j, 1.+0.j],\n            [")
    assert "real_shape=(2, 5), shape=(2, 3), dtype=vd.complex64" in repr(signal)


def test_numpy_print_options_apply() -> None:
    buffer = vd.asbuffer(np.array([1 / 3, 2 / 3], np.float64))
    with np.printoptions(precision=2):
        assert repr(buffer).startswith("Buffer([0.33, 0.67]")


def test_text_of_unreadable_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = vd.asbuffer(np.ones((2, 3), np.float32))
    facts = f"shape=(2, 3), dtype=vd.float32, device={device()!r})"

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(vd.Buffer, "_read", fails)
        assert repr(buffer).split(",", 1)[0] == "Buffer(<MemoryError when read>"
    buffer.destroy()
    assert repr(buffer).startswith("Buffer(<destroyed>,") and repr(buffer).endswith(facts)


def test_text_while_tracing() -> None:
    buffer = vd.asbuffer(np.ones(2, np.float32))
    texts = []

    @vd.shader(4)
    def kernel(out: vd.codegen.Buffer[vd.float32]) -> None:
        texts.append(repr(buffer))
        out[0] = 1

    kernel(vd.Buffer(1, vd.float32))
    assert texts and all(text.startswith("Buffer([1., 1.]") for text in texts)


def test_text_after_the_context_and_of_queues(run_python: RunPython) -> None:
    result = run_python(
        """
import numpy as np
import vkdispatch as vd
context = vd.make_context(queue_counts=2)
buffer = vd.asbuffer(np.ones(2, np.float32))
assert repr(buffer).startswith("Buffer([1., 1.]") and repr(buffer).endswith(", queues=2)")
context.close()
print(repr(buffer))
"""
    )
    assert result.returncode == 0, result.stderr
    assert "Buffer(<destroyed>" in result.stdout
