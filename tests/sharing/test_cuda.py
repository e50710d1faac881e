"""Memory and order shared with CUDA: PyTorch and CuPy on an NVIDIA GPU. Skipped elsewhere."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from tests.sharing.arrays import add, double
from vkdispatch.base.sharing.cuda_link import can_link
from vkdispatch.codegen.abbreviations import Buff, Const, f32

KINDS = (
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


@vd.shader("x.size")
def scale(x: Buff[f32], factor: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * factor


@pytest.fixture
def torch() -> Iterator[Any]:
    found: Any = pytest.importorskip("torch")
    pytest.importorskip("cuda.bindings.driver")
    if not can_link(vd.get_context()) or not found.cuda.is_available():
        pytest.skip("no device that CUDA knows too")
    yield found
    found.cuda.synchronize()


@pytest.fixture
def cupy(torch: Any) -> Any:
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_the_same_memory(torch: Any, kind: str) -> None:
    host = np.arange(33).astype(kind)
    buffer = vd.asbuffer(host)
    tensor = torch.from_dlpack(buffer)
    assert tensor.is_cuda
    assert np.array_equal(tensor.cpu().numpy(), host)
    assert np.array_equal(vd.from_dlpack(tensor, copy=False).read(0), host)
    assert np.array_equal(vnp.from_dlpack(tensor).numpy(), host)
    tensor += 1
    torch.cuda.synchronize()
    assert np.array_equal(buffer.read(0), host + 1)


def test_strides_and_offsets(torch: Any) -> None:
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = vnp.asarray(host)
    for index in (..., 1, (slice(None), 1), (slice(None), slice(None, None, 2), slice(1, None))):
        assert np.array_equal(torch.from_dlpack(x[index]).cpu().numpy(), host[index])
    assert np.array_equal(torch.from_dlpack(x.T).cpu().numpy(), host.T)
    assert np.array_equal(torch.from_dlpack(x * 2 + 1).cpu().numpy(), host * 2 + 1)


def test_tensors_on_memory_of_buffers_are_arguments(torch: Any) -> None:
    tensor = torch.from_dlpack(vd.asbuffer(np.zeros(1000, np.float32)))
    for _ in range(50):
        tensor += 1
        double(tensor)
        scale(tensor, factor=0.5)
        add(tensor, y=tensor)
        tensor *= 0.5
    assert (tensor == 50).all().item()
    assert float(vd.sum(tensor)) == 50_000


def test_memory_of_cuda_is_refused_as_an_argument_and_copied_by_from_dlpack(torch: Any) -> None:
    tensor = torch.arange(1 << 18, device="cuda", dtype=torch.float32)
    with pytest.raises(ValueError, match=r"'x': a torch.Tensor .*copy it, with vd.from_dlpack"):
        double(tensor)
    with pytest.raises(ValueError, match="copy: False"):
        vd.from_dlpack(tensor, copy=False)
    copy = vd.from_dlpack(tensor)
    tensor.zero_()
    assert np.array_equal(copy.read(0), np.arange(1 << 18))
    assert np.array_equal((vnp.from_dlpack(copy) + 1).numpy(), np.arange(1 << 18) + 1)
    with pytest.raises(ValueError, match="contiguous"):
        vd.from_dlpack(torch.ones((4, 4), device="cuda")[:, ::2])


def test_tensors_of_the_pool_are_arguments(torch: Any) -> None:
    pool = vd.cuda.torch_pool()
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.full((n,), 2.0, device="cuda") for n in (1, 1000, 1 << 20)]
        octets = torch.arange(100, device="cuda", dtype=torch.uint8)
    for tensor in tensors:  # the small ones lie in one block
        double(tensor)
        add(tensor, y=tensor)
        assert (tensor == 8).all().item()
    double(tensors[2][1024:2048])
    assert tensors[2].sum().item() == 8 * (1 << 20) + 8 * 1024
    with pytest.raises(ValueError, match="not a multiple of"):
        double(tensors[2][1:])
    x = vnp.from_dlpack(tensors[2][3:1003:2])
    with vd.cuda.stream():
        x += 1
    assert tensors[2][:10].tolist() == [8, 8, 8, 9, 8, 9, 8, 9, 8, 9]
    assert vnp.from_dlpack(octets[5:33], copy=False).tolist() == list(range(5, 33))
    assert vd.from_dlpack(octets[:33], copy=False).read(0).tolist() == list(range(33))


def test_waiting_for_streams(torch: Any) -> None:
    buffer = vd.asbuffer(np.zeros(1000, np.float32))
    for step in range(1, 4):
        first, second, done = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
        with torch.cuda.stream(first):
            tensor = torch.from_dlpack(buffer)
            torch.cuda._sleep(200_000_000)
            tensor.fill_(step)
            del tensor
            done.record(first)
        with torch.cuda.stream(second):  # without work of the context between
            copy = torch.from_dlpack(buffer).clone()
        vd.queue_wait_idle()
        assert done.query()
        assert (copy == step).all()


def test_arrays_of_cupy(cupy: Any) -> None:
    buffer = vd.asbuffer(np.arange(1000, dtype=np.float32))
    array = cupy.from_dlpack(buffer)
    array += 1
    double(array)
    assert np.array_equal(cupy.asnumpy(array), (np.arange(1000) + 1) * 2)
    other = cupy.asarray(buffer)  # by __cuda_array_interface__
    assert other.data.ptr == array.data.ptr == buffer.cuda_ptr
    assert np.array_equal(cupy.asnumpy(other), (np.arange(1000) + 1) * 2)
    with vd.cuda.stream():
        double(vd.from_cuda_array(other))
        assert vd.from_cuda_array(other[64:80]).shape == (16,)
        assert vd.from_cuda_array(other[:0]).shape == (0,)
    assert np.array_equal(cupy.asnumpy(array), (np.arange(1000) + 1) * 4)
    with pytest.raises(ValueError, match="var_type"):
        vd.from_cuda_array(other, vd.int32)
    part = vnp.asarray(np.arange(24, dtype=np.float32).reshape(4, 6))[::2, 1:]
    assert np.array_equal(cupy.asnumpy(cupy.asarray(part)), part.numpy())
    own = cupy.arange(100, dtype=cupy.float32)
    with pytest.raises(BufferError, match="memory is CUDA's own"):
        vd.from_cuda_array(own)
    assert np.array_equal(vd.from_dlpack(own).read(0), np.arange(100))


def test_managed_memory_of_cupy(cupy: Any) -> None:
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        array = cupy.zeros(1 << 22, dtype=cupy.float32)
        for _ in range(20):
            array += 1
    assert (vd.from_dlpack(array).read(0) == 20).all()


def test_arrays_of_cupy_of_the_allocator(cupy: Any) -> None:
    with cupy.cuda.using_allocator(vd.cuda.cupy_allocator()):
        array = cupy.full(1 << 16, 3, dtype=cupy.float32)
    double(array)
    assert (cupy.asnumpy(array) == 6).all()


def test_a_stream_in_a_block_is_in_order(torch: Any) -> None:
    buffer = vd.asbuffer(np.zeros(1 << 20, np.float32))
    tensor = torch.from_dlpack(buffer)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(100):
            tensor += 1
            with vd.cuda.stream():
                double(buffer)
            with vd.cuda.stream(side):
                scale(buffer, 0.5)
    side.synchronize()
    assert (tensor == 100).all().item()


def test_many_hand_overs_of_random_work_without_a_wait(torch: Any) -> None:
    random = np.random.default_rng(1)
    buffer = vd.asbuffer(np.zeros(1 << 12, np.float32))
    tensor = torch.from_dlpack(buffer)
    wanted = np.float32(0)
    for _ in range(2000):
        step, amount = random.integers(4), np.float32(random.integers(1, 4))
        if step == 0:
            tensor += float(amount)
            wanted += amount
        elif step == 1:
            scale(tensor, 0.5)
            wanted *= np.float32(0.5)
        elif step == 2:
            with vd.cuda.stream():
                scale(buffer, 2.0)
                scale(buffer, 0.25)
            wanted *= np.float32(0.5)
        else:
            tensor *= 0.5
            wanted *= np.float32(0.5)
    assert (tensor == float(wanted)).all().item()


def test_memory_outlives_its_buffer_and_does_not_grow(torch: Any) -> None:
    def use() -> None:
        buffer = vd.asbuffer(np.full(1 << 18, 3, np.float32))
        tensor = torch.from_dlpack(buffer)
        del buffer
        gc.collect()
        tensor += 1
        other = vd.asbuffer(np.zeros(1 << 18, np.float32))  # must not lie there
        assert (tensor == 4).all().item()
        del other, tensor

    for _ in range(20):
        use()
    before = vd.get_context()._native.statistics()["device_memory"]
    for _ in range(300):
        use()
    assert vd.get_context()._native.statistics()["device_memory"] - before < 16 << 20


def test_expressions_see_what_they_were_made_of(torch: Any) -> None:
    x = vnp.asarray(np.ones(1000, np.float32))
    tensor = torch.from_dlpack(x)
    with vd.cuda.stream():
        y = x + 1
    tensor += 5
    torch.cuda.synchronize()
    assert (y.numpy() == 2).all()
    assert (x.numpy() == 6).all()


def test_tensors_are_dropped_by_any_thread(torch: Any) -> None:
    tensors = [torch.from_dlpack(vd.asbuffer(np.zeros(1000, np.float32))) for _ in range(50)]
    for tensor in tensors:
        tensor += 1
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert float(vd.sum(vd.asbuffer(np.ones(1000, np.float32)))) == 1000


def test_captures_are_refused(torch: Any) -> None:
    tensor = torch.from_dlpack(vd.asbuffer(np.ones(1000, np.float32)))
    other = torch.zeros(10, device="cuda")
    graph = torch.cuda.CUDAGraph()
    double(tensor)
    with torch.cuda.graph(graph):
        other += 1
        with pytest.raises(RuntimeError, match="CUDA graph"):
            double(tensor)
        del tensor  # taken back after the capture
    graph.replay()
    assert (other == 1).all().item()
    assert float(vd.sum(vd.asbuffer(np.ones(1000, np.float32)))) == 1000


def test_operators_are_left_out_of_cuda_graphs(torch: Any) -> None:
    operator = vd.torch.kernel_op(scale, "vkdispatch_tests::scale_apart")

    @torch.compile(fullgraph=True, mode="reduce-overhead")
    def both(x: Any) -> Any:
        y = x * 2
        operator(y, 4.0)
        return y + 1

    for value in range(5):
        assert (both(torch.full((256,), float(value), device="cuda")) == 8 * value + 1).all().item()


def test_a_stream_in_each_thread(torch: Any) -> None:
    wrong: list[int] = []

    def work() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            tensor = torch.from_dlpack(vd.asbuffer(np.zeros(1 << 20, np.float32)))
            for step in range(100):
                tensor.fill_(float(step))
                double(tensor)
                if step % 10 == 9 and not (tensor == 2 * step).all().item():
                    wrong.append(step)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture
def contexts(torch: Any) -> Iterator[list[vd.Context]]:
    devices = [number for number, info in enumerate(vd.get_devices()) if not info.is_cpu()]
    made = [vd.Context([device], [[0]]) for device in devices[: torch.cuda.device_count()]]
    if len(made) < 2:
        pytest.skip("one GPU")
    yield made
    for context in made:
        context.close()


def test_devices_that_are_not_current(torch: Any, contexts: list[vd.Context]) -> None:
    for context in contexts:
        with vd.use_context(context):
            tensor = torch.from_dlpack(vd.asbuffer(np.ones(1000, np.float32)))
            for _ in range(20):
                tensor += 1
                scale(tensor, 0.5)
            assert (tensor == 1).all().item()
        own = torch.arange(1000, device=tensor.device, dtype=torch.float32)
        copy = vd.from_dlpack(own, device=context)  # while another context is current
        assert copy.context is context
        assert np.array_equal(copy.read(0), np.arange(1000))
        side = torch.cuda.Stream(device=tensor.device)
        with vd.cuda.stream(side, context=context):
            pass
        wrong = contexts[0] if context is not contexts[0] else contexts[1]
        with (
            pytest.raises(ValueError, match="does not belong to CUDA's device"),
            vd.use_context(wrong),
            vd.cuda.stream(side),
        ):
            pass
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("size", [3, 100_003, (48 << 20) + 5])  # CUDA's copies are made in parts of 16 MiB
def test_copies_between_devices(contexts: list[vd.Context], size: int) -> None:
    host = np.arange(size, dtype=np.uint8)
    strided = np.arange(240, dtype=np.float32).reshape(6, 8, 5)
    for source in contexts:
        buffer = vd.asbuffer(host, context=source)
        with vd.use_context(source):
            x = vnp.asarray(strided)
        for target in contexts:
            if target is not source:
                copy = vd.Buffer(host.shape, vd.uint8, context=target)
                vd.copyto(copy, buffer)
                assert np.array_equal(copy.read(0), host)
                moved = x[:, ::-1, 1:].to_device(target)
                assert np.array_equal(moved.numpy(), strided[:, ::-1, 1:])


def test_copies_between_devices_are_in_the_order_of_their_work(contexts: list[vd.Context]) -> None:
    buffers = [vd.Buffer((9 << 20,), vd.float32, context=context) for context in contexts]
    buffers[0].write(np.ones(9 << 20, np.float32))
    for step in range(20):  # from device to device, without a wait on the host
        here, there = (buffers[number % len(buffers)] for number in (step, step + 1))
        with vd.use_context(here.context):
            scale(here, 0.125)
            for _ in range(4):
                scale(here, 2.0)
        vd.copyto(there, here)
        with vd.use_context(here.context):
            scale(here, 0.0)  # after the copy has read it
    assert (buffers[20 % len(buffers)].read(0) == 2.0**20).all()


def test_streams_that_are_none_are_refused(torch: Any) -> None:
    buffer = vd.asbuffer(np.zeros(4, np.float32))
    for wrong in ("a", 1.5j):
        with pytest.raises(TypeError, match="stream"):
            buffer.__dlpack__(stream=wrong)
    for number in (-2, 0):
        with pytest.raises(ValueError, match="stream"):
            buffer.__dlpack__(stream=number)
    assert buffer.__dlpack_device__()[0] == 2
    assert np.array_equal(np.from_dlpack(buffer, device="cpu"), np.zeros(4))


def test_an_operator_of_pytorch(torch: Any) -> None:
    operator = vd.torch.kernel_op(scale, "vkdispatch_tests::scale")
    tensor = torch.ones(1000, device="cuda")
    operator(tensor, 3.0)
    assert (tensor == 3).all().item()
    torch.library.opcheck(operator, (torch.ones(64, device="cuda"), 2.0))

    @torch.compile(fullgraph=True)
    def both(x: Any) -> Any:
        y = x * 2
        operator(y, 4.0)
        return y + 1

    assert (both(torch.ones(256, device="cuda")) == 9).all().item()


def test_arrays_of_jax(torch: Any) -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    buffer = vd.asbuffer(np.arange(64, dtype=np.float32))
    array = jax.dlpack.from_dlpack(buffer)
    assert np.array_equal(np.asarray(array + 1), np.arange(64) + 1)
    assert array.unsafe_buffer_pointer() == buffer.cuda_ptr
    with pytest.raises(ValueError, match="read only"):
        double(array)
    with pytest.raises(ValueError, match="read only"):
        vd.fft.fft(vd.from_dlpack(jax.dlpack.from_dlpack(vd.asbuffer(np.ones(64, np.complex64)))))
    assert float(vd.sum(array).read(0)) == 64 * 63 / 2
    own = jax.block_until_ready(jax.numpy.arange(64, dtype=jax.numpy.float32) * 2)
    assert np.array_equal(vd.from_dlpack(own).read(0), np.arange(64) * 2)
    with pytest.raises(ValueError, match=r"read|copy"):
        double(own)
