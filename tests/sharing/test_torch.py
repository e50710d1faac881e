"""PyTorch on the CPU: tensors and buffers on one memory, tensors as arguments, kernels as operators."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, v3

from .arrays import add, double
from .hand_overs import KINDS

torch: Any = pytest.importorskip("torch")

NUMPY_LACKS = ("bfloat16", "complex32")


def make_tensor(name: str, count: int = 64) -> Any:
    """Return a tensor of a dtype with elements that differ from each other and are no zeros."""
    if name == "bool":
        return torch.arange(count) % 3 == 0
    return (torch.arange(count) + 1).to(getattr(torch, name))


def octets(tensor: Any) -> Any:
    """Return the bytes of a tensor, in its memory."""
    return tensor.reshape(-1).view(torch.uint8).numpy()


def kind_of(name: str) -> Any:
    return getattr(vd, "bool_" if name == "bool" else name)


@vd.shader("x.size")
def scale(x: Buff[f32], factor: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * factor


@vd.shader("out.size")
def shift(out: Buff[f32], x: Buff[f32], step: Const[i32] = 1) -> None:
    i = vc.global_invocation_id().x.to_dtype(i32)
    count = x.shape.w.to_dtype(i32)
    out[i] = x[(i + step + count) % count]


@vd.shader("x.size")
def square_bfloats(x: Buff[vd.bfloat16]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * x[i]


# ---- one memory


@pytest.mark.parametrize("name", KINDS)
def test_a_tensor_shows_the_memory_of_a_buffer(on_host: None, name: str) -> None:
    expected = make_tensor(name)
    buffer = vd.Buffer(64, kind_of(name))
    tensor = torch.from_dlpack(buffer)
    assert tensor.dtype == expected.dtype and tensor.data_ptr() == vd.share(buffer).address
    tensor.copy_(expected)
    host = octets(expected)
    np.testing.assert_array_equal(np.asarray(vd.share(buffer.view(vd.uint8))), host)
    buffer.view(vd.uint8).write(host[::-1].copy())
    np.testing.assert_array_equal(octets(tensor), host[::-1])


@pytest.mark.parametrize("name", KINDS)
def test_a_buffer_lies_in_the_memory_of_a_tensor(takes_host: None, name: str) -> None:
    tensor = make_tensor(name)
    buffer = vd.from_dlpack(tensor, copy=False)
    assert buffer.var_type is kind_of(name) and buffer.is_external and buffer.is_writable
    assert torch.from_dlpack(buffer).data_ptr() == tensor.data_ptr()
    copy = vd.from_dlpack(tensor, copy=True)
    before = octets(tensor.clone())
    octets(tensor)[:] = before[::-1]
    np.testing.assert_array_equal(np.asarray(vd.share(buffer.view(vd.uint8))), before[::-1])
    np.testing.assert_array_equal(np.asarray(vd.share(copy.view(vd.uint8))), before)
    if name in NUMPY_LACKS:
        with pytest.raises(TypeError, match=name):
            vnp.from_dlpack(tensor)
        return
    x = vnp.from_dlpack(tensor, copy=False)
    assert torch.from_dlpack(x).data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(x.numpy(), tensor.numpy())


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x[:, 1:, ::2],
        lambda x: x[:, :, 3],
        lambda x: x.swapaxes(0, 2),
        lambda x: x[1, 2, 3, ...],
        lambda x: x[:, :0],
        lambda x: x[None, :, 2:3, None],
    ],
)
def test_views_stay_views(takes_host: None, view: Any) -> None:
    whole = torch.arange(2 * 5 * 7, dtype=torch.float32).reshape(2, 5, 7)
    theirs = view(whole)
    x = vnp.from_dlpack(theirs, copy=False)
    np.testing.assert_array_equal(x.numpy(), theirs.numpy())
    x += 100
    own = vnp.arange(2 * 5 * 7, dtype=np.float32).reshape(2, 5, 7)
    tensor = torch.from_dlpack(view(own))
    assert tensor.shape == theirs.shape
    tensor += 100
    np.testing.assert_array_equal(own.numpy(), whole.numpy())


def test_expanded_tensors_are_read_only(takes_host: None) -> None:
    row = torch.arange(3, dtype=torch.float32)
    x = vnp.from_dlpack(row.expand(4, 3), copy=False)
    assert not x.flags.writeable and float(x.sum()) == 12
    row[0] = 10
    assert float(x.sum()) == 52


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1)])
def test_small_tensors(shape: Any) -> None:
    tensor = torch.ones(shape)
    for x in (vd.from_dlpack(tensor), vnp.from_dlpack(tensor)):
        assert x.shape == shape
        np.testing.assert_array_equal(np.asarray(x), tensor.numpy())


def test_vectors_have_axes_of_their_own(on_host: None) -> None:
    tensor = torch.from_dlpack(vd.Buffer((5,), vd.vec3))
    assert tensor.shape == (5, 3)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.ones(64, requires_grad=True), "detach"),
        (lambda: torch.ones(64, dtype=torch.complex64).conj(), "conjugate"),
        (lambda: torch.ones(64, dtype=torch.complex64).conj().imag, "resolve_neg"),
        (lambda: torch._efficientzerotensor(64), "no memory"),
        (lambda: torch.eye(4).to_sparse(), "strided"),
        (lambda: torch.ones(64, device="meta"), "meta"),
        (lambda: torch.zeros(64, dtype=torch.float8_e4m3fn), "float8_e4m3fn"),
    ],
)
def test_tensors_that_cannot_be_shared(make: Any, why: str) -> None:
    tensor = make()
    for take in (vd.from_dlpack, vd.share, vnp.from_dlpack, double):
        with pytest.raises(ValueError, match=why):
            take(tensor)


def test_a_copy_is_no_view(on_host: None) -> None:
    x = vnp.arange(4)
    copy = torch.from_dlpack(x, copy=True)
    copy += 9
    np.testing.assert_array_equal(x.numpy(), np.arange(4))


# ---- arguments


def test_kernels_write_tensors(takes_host: None) -> None:
    x, y = torch.zeros(64), torch.arange(64, dtype=torch.float32)
    for _ in range(5):
        y += 1
        add(x, y)
        double(x)
    expected = np.zeros(64)
    for turn in range(1, 6):
        expected = (expected + np.arange(64) + turn) * 2
    np.testing.assert_array_equal(x.numpy(), expected)
    with pytest.raises(ValueError, match=r"argument 'x': a torch.Tensor .*C order.*from_dlpack"):
        double(y[::2])
    with pytest.raises(ValueError, match=r"argument 'x': expected elements of float32"):
        double(torch.zeros(64, dtype=torch.int32))


def test_kernels_compute_bfloats_of_torch(takes_host: None) -> None:
    tensor = torch.randn(256, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    expected = tensor * tensor
    square_bfloats(tensor)
    assert torch.equal(tensor, expected)


def test_functions_and_transforms_take_tensors(takes_host: None) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(512, generator=generator)
    np.testing.assert_allclose(vd.sum(x).read(0), x.sum(), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(vd.sort(x).read(0), x.sort().values)
    np.testing.assert_allclose(vd.cumsum(x).read(0), x.cumsum(0), atol=1e-4)
    a, b = torch.randn(16, 32, generator=generator), torch.randn(32, 8, generator=generator)
    np.testing.assert_allclose(vd.matmul(a, b).read(0), a @ b, atol=1e-4)
    out = torch.zeros(512)
    vd.cumsum(x, out=out)
    np.testing.assert_allclose(out, x.cumsum(0), atol=1e-4)
    signal = torch.randn(8, 64, generator=generator).to(torch.complex64)
    spectrum = torch.fft.fft(signal)
    vd.fft.fft(signal)
    np.testing.assert_allclose(signal, spectrum, atol=1e-3)


def test_graphs_use_the_memory_of_tensors(takes_host: None) -> None:
    x, y = torch.zeros(64), torch.ones(64)
    graph = vd.CommandGraph()
    add(x, y, graph=graph)
    double(x, graph=graph)
    address = y.data_ptr()
    y.fill_(3)
    del y  # the graph keeps it
    gc.collect()
    others = [torch.zeros(64) for _ in range(8)]
    assert all(other.data_ptr() != address for other in others)
    for expected in (6, 18, 42):
        graph.submit()
        assert (x == expected).all()


def test_expressions_read_tensors(takes_host: None) -> None:
    tensor = torch.arange(64, dtype=torch.float32)
    x = vnp.from_dlpack(tensor, copy=False)
    result = torch.from_dlpack(vnp.sqrt(x) * 2 + x[::-1])
    np.testing.assert_allclose(result, tensor.sqrt() * 2 + tensor.flip(0), rtol=1e-6)


# ---- lifetimes


def test_tensors_outlive_buffers_and_buffers_outlive_tensors(takes_host: None) -> None:
    buffer = vd.asbuffer(np.arange(64, dtype=np.float32))
    view = torch.from_dlpack(buffer)[3:]
    buffer.destroy()
    tensor = torch.arange(64, dtype=torch.float32)
    kept = vd.from_dlpack(tensor, copy=False)
    del tensor, buffer
    gc.collect()
    others = [torch.full((64,), 9.0) for _ in range(8)]
    more = [vd.asbuffer(np.full(64, 9, np.float32)) for _ in range(8)]
    np.testing.assert_array_equal(view.numpy(), np.arange(3, 64))
    double(kept)
    np.testing.assert_array_equal(kept.read(0), 2 * np.arange(64))
    assert all((other == 9).all() for other in others)
    assert all((other.read(0) == 9).all() for other in more)


def test_another_thread_drops_tensors(on_host: None) -> None:
    buffer = vd.asbuffer(np.zeros(64, np.float32))
    tensors = [torch.from_dlpack(buffer)[i:] for i in range(8)]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert not buffer._native.lent


AT_EXIT = """
import os, threading
import numpy as np, torch
import vkdispatch as vd, vkdispatch.numpy as vnp
from tests.sharing.arrays import double
tensor = torch.ones(4096)
kept = [torch.from_dlpack(vd.asbuffer(np.ones(4, np.float32))), vd.from_dlpack(tensor, copy=False)]
kept += [torch.from_dlpack(vnp.ones(8) + 1)[2:], vnp.from_dlpack(tensor[::3], copy=False)]
cycle = [kept]; cycle.append(cycle)
child = os.fork()
if child == 0:
    ok = bool((tensor == 1).all()) and kept[0].tolist() == [1] * 4
    kept.clear()
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
def work():  # without PyTorch, which ends the process if a thread is in it at the end
    try:
        while True:
            view = np.from_dlpack(kept[1]); view[:] = 1; del view
    except (IndexError, RuntimeError):
        pass  # `kept` is empty, or the context was destroyed
threading.Thread(target=work, daemon=True).start()
double(tensor)
{close}
print("done")
"""


@pytest.mark.parametrize("close", ["", "vd.get_context().close()", "vd.get_context().close(); kept.clear()"])
def test_the_interpreter_ends_with_live_tensors(takes_host: None, run_python: Any, close: str) -> None:
    done = run_python(AT_EXIT.replace("{close}", close))
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert not done.stderr or "Warning" in done.stderr


# ---- operators

operator = vd.torch.kernel_op(scale, "vkdispatch_host_tests::scale")
shifted = vd.torch.kernel_op(shift, "vkdispatch_host_tests::shift")


def test_operators_pass_the_checks_of_pytorch() -> None:
    torch.library.opcheck(operator, (torch.ones(64), 2.0))
    torch.library.opcheck(shifted, (torch.ones(64), torch.arange(64.0)))
    torch.library.opcheck(shifted, (torch.ones(64), torch.arange(64.0), 3))


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x[64:], lambda x: x[1:65], lambda x: x[::2], lambda x: x.reshape(8, 16).T]
)
def test_operators_change_tensors_in_place(view: Any) -> None:
    whole, expected = torch.arange(128.0), torch.arange(128.0)
    operator(view(whole), 3.0)
    view(expected).mul_(3)
    assert torch.equal(whole, expected)
    out = torch.zeros(64)
    shifted(out, view(whole).reshape(-1)[:64].clone(), -1)
    assert torch.equal(out, view(whole).reshape(-1)[:64].roll(1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_operators_are_compiled(dynamic: bool) -> None:
    def compute(x: Any) -> Any:
        y = x * 2
        operator(y, 4.0)
        return y + 1

    compiled = torch.compile(compute, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for count in (64, 96, 5):
        x = torch.arange(float(count))
        assert torch.equal(compiled(x), x * 8 + 1)


def test_operators_refuse_tensors_that_require_gradients() -> None:
    weight = torch.ones(64, requires_grad=True)

    def compute(x: Any) -> Any:
        y = x * 2
        operator(y, 4.0)
        return y.sum()

    with pytest.raises(ValueError, match=r"'x': .*detach"):
        compute(weight)
    with pytest.raises(Exception, match="detach"):
        torch.compile(compute, backend="aot_eager", fullgraph=True)(weight)
    operator(weight.detach(), 5.0)
    assert (weight == 5).all()


@vd.shader("x.size")
def lengthen(x: Buff[v3], y: Buff[v3]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] + y[i] * 2


@vd.shader("x.size")
def square(x: Buff[c64]) -> None:
    i = vc.global_invocation_id().x
    x[i] = x[i] * x[i]


lengthened = vd.torch.kernel_op(lengthen, "vkdispatch_host_tests::lengthen")
squared = vd.torch.kernel_op(square, "vkdispatch_host_tests::square")


def test_operators_take_vectors_as_last_axes() -> None:
    y = torch.arange(192.0)
    torch.library.opcheck(lengthened, (torch.ones(64, 3), y.reshape(64, 3)))
    for view in (lambda x: x.reshape(64, 3), lambda x: x.reshape(3, 64).T, lambda x: x.reshape(64, 3)[1:33]):
        x = torch.ones(192)
        lengthened(view(x), view(y))
        assert torch.equal(view(x), 1 + 2 * view(y))
    with pytest.raises(ValueError, match="expected elements of vec3"):
        lengthened(torch.ones(64, 4), torch.ones(64, 4))


def test_operators_take_tensors_that_pytorch_conjugates_as_it_reads() -> None:
    whole = torch.arange(64) + torch.arange(64).flip(0) * 1j
    expected = (whole.conj() ** 2).resolve_conj()
    squared(whole.conj())
    assert torch.equal(whole.conj().resolve_conj(), expected)
    parts = torch.ones(64, dtype=torch.complex64).conj()
    parts.imag.add_(3)
    operator(parts.imag, 2.0)
    assert (parts.imag == 6).all()


def test_operators_refuse_copies_that_share_elements() -> None:
    whole = torch.arange(129.0)
    with pytest.raises(vd.OverlapError, match=r"'out'.*'x'.*clone"):
        shifted(whole[1:65], whole[33:97])
    assert torch.equal(whole, torch.arange(129.0))
    shifted(whole[::2][:64], whole[1::2])  # these lie between each other
    assert torch.equal(whole[:128:2], torch.arange(1.0, 129.0, 2).roll(-1))
    operator(whole[1:65], 0.0)
    assert not whole[1:65].any() and whole[65] == 65


def test_operators_that_pytorch_cannot_name() -> None:
    for name in ("scale", "a::b::c", "a:b", ""):
        with pytest.raises(ValueError, match=r"name: expected \"namespace::name\""):
            vd.torch.kernel_op(scale, name)

    def clip(x: Buff[f32], most: Const[f32] = float("inf")) -> None:
        x[vc.global_invocation_id().x] = most

    with pytest.raises(NotImplementedError, match="default inf for 'most'"):
        vd.torch.kernel_op(vd.shader("x.size")(clip))
