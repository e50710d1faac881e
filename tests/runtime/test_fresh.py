"""Large results of reads: memory in huge pages that goes from one array to the next, never to two at once."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.context import destroy_context
from vkdispatch.base.memory.data import Array, fresh_array

HUGE = 2 << 20
LARGE = 4 << 20  # bytes from which an array has memory of this kind
MOST = 4  # spares


@pytest.fixture(autouse=True)
def no_spares() -> Iterator[None]:
    """Begin and end without memory that is kept."""
    vd.get_context()
    destroy_context()
    yield
    vd.get_context()
    destroy_context()
    assert native.spare_pages() == 0


def address(array: Array) -> int:
    start: int = array.ctypes.data
    return start


def fresh(size: int) -> Array:
    return fresh_array((size,), np.dtype(np.uint8))


def test_small_results_are_plain_numpy_arrays() -> None:
    array = fresh(LARGE - 1)
    assert array.flags.owndata
    del array
    assert native.spare_pages() == 0
    assert fresh(0).size == 0


@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 3 * HUGE - 1])
def test_large_arrays(size: int) -> None:
    array = fresh(size)
    assert address(array) % HUGE == 0
    assert array.flags.writeable and array.flags.c_contiguous and array.size == size
    array[:] = 7
    assert array.sum() == 7 * size
    del array
    assert native.spare_pages() == -(-size // HUGE) * HUGE


def test_taken_over() -> None:
    array = fresh(LARGE)
    first = address(array)
    other = fresh(LARGE)
    assert address(other) != first
    del array
    assert address(fresh(LARGE)) == first  # and again, as it is gone at once
    assert native.spare_pages() == LARGE
    assert address(fresh(2 * LARGE)) != first
    kept = fresh(LARGE)
    assert address(kept) == first
    assert native.spare_pages() == 2 * LARGE


def test_views_keep_the_memory_alive() -> None:
    array = fresh(LARGE)
    array[:] = 3
    view = array[5:9].reshape(2, 2)
    del array
    gc.collect()
    other = fresh(LARGE)
    other[:] = 4
    assert (view == 3).all() and native.spare_pages() == 0


def test_few_blocks_are_cached() -> None:
    arrays = [fresh(LARGE) for _ in range(MOST + 3)]
    assert len({address(array) for array in arrays}) == MOST + 3
    del arrays
    assert native.spare_pages() == MOST * LARGE
    large = [fresh(3 * LARGE) for _ in range(MOST)]
    del large
    assert native.spare_pages() == MOST * 3 * LARGE  # the last ones are kept


def test_allocation_larger_than_memory() -> None:
    for size in (1 << 62, 1 << 50):
        with pytest.raises(MemoryError):
            fresh(size)
    with pytest.raises(ValueError, match="at least one byte"):
        native.HostPages(0)
    pages = native.HostPages(5)
    assert len(memoryview(pages)) == 5
    with pytest.raises(RuntimeError, match="once"):
        pages.__init__(5)  # type: ignore[misc]
    with pytest.raises(BufferError):
        memoryview(native.HostPages.__new__(native.HostPages))


def test_reads() -> None:
    """Results are as they were, whatever is done with those before."""
    values = np.arange(LARGE // 4 + 11, dtype=np.float32)
    buffer = vd.asbuffer(values)
    result = buffer.read(0)
    assert address(result) % HUGE == 0
    np.testing.assert_array_equal(result, values)
    again = pickle.loads(pickle.dumps(result))
    result *= 2
    np.testing.assert_array_equal(buffer.read(0), values)
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(result, values * 2)
    assert np.require(result, requirements=["O"]).flags.owndata
    np.testing.assert_array_equal(buffer.read(), values[np.newaxis])
    half = vd.Buffer((LARGE // 2 + 5,), vd.bfloat16)
    half.write(np.ones(half.shape, np.float32))
    assert (half.read(0) == 1).all() and half.read(0).dtype == np.float32


def test_arrays_outlive_the_context() -> None:
    values = np.arange(LARGE // 4, dtype=np.float32)
    buffer = vd.asbuffer(values)
    kept, dropped = buffer.read(0), buffer.read(0)
    del dropped
    assert native.spare_pages() == LARGE
    destroy_context()
    assert native.spare_pages() == 0
    np.testing.assert_array_equal(kept, values)
    vd.get_context()


def test_images() -> None:
    image = vd.Image2D((1024, 1024), vd.float32)
    values = np.random.default_rng(1).random((1024, 1024)).astype(np.float32)
    image.write(values)
    np.testing.assert_array_equal(image.read(0), values)


def test_threads() -> None:
    wrong = []

    def work(seed: int) -> None:
        for i in range(30):
            array = fresh(LARGE + HUGE * (i % 2))
            array[:: 1 << 16] = seed
            if not (array[:: 1 << 16] == seed).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and native.spare_pages() <= MOST * (LARGE + HUGE)


def test_forks() -> None:
    """A child has its own copy, of what is kept, too."""
    array, spare = fresh(LARGE), fresh(LARGE)
    array[:] = 1
    del spare
    child = os.fork()
    if child == 0:
        same = bool((array == 1).all())
        array[:] = 2
        other = fresh(LARGE)
        other[:] = 3
        os._exit(0 if same and (array == 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1).all()
