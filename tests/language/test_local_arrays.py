"""Arrays of one invocation: against plain Python and NumPy, on the device and in the interpreter."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    b8,
    c64,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    m2,
    u8,
    u32,
    v2,
    v3,
)
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.shader import building

from .running import host, need

FORMS = ["", "coarse", "addressed", "wide", "addressed,wide", "folded", "checked"]


def gid() -> Any:
    return vc.global_invocation_id().x


def run(
    body: Callable[..., Any], *arrays: np.ndarray, check: Any = None, size: Any = None
) -> list[np.ndarray]:
    """Run a kernel on a device and in the interpreter, which must agree; return what the arrays then hold."""
    kernel = vd.shader(size or arrays[0].size, check=check)(body)
    verify(kernel.shader_description.kernel)
    kinds = [info.dtype for info in kernel.shader_description.shader_arg_infos]
    rows = [array.reshape(len(array), -1) for array in arrays]
    buffers = [vd.asbuffer(array).view(kind) for array, kind in zip(rows, kinds, strict=True)]
    kernel(*buffers)
    found = [buffer.read(0).reshape(array.shape) for buffer, array in zip(buffers, arrays, strict=True)]
    hosts = [array.copy() for array in arrays]
    kernel.interpret(*hosts)
    for device, interpreted in zip(found, hosts, strict=True):
        np.testing.assert_array_equal(device, interpreted)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_sorting(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    def kernel(x: Buff[f32], out: Buff[f32]) -> None:
        i = gid()
        values = vc.local_array(f32, 8)
        for k in range(8):
            values[k] = x[i * 8 + k]
        for k in vc.range(1, 8):
            value = values[k]
            place = k
            while place > 0 and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
        for k, value in enumerate(values):
            out[i * 8 + k] = value

    x = np.random.default_rng(1).random((100, 8), np.float32)
    check = "bounds,nan,loops=100" if form == "checked" else False
    _, out = run(kernel, x.reshape(-1), np.zeros(800, np.float32), size=100, check=check)
    np.testing.assert_array_equal(out.reshape(100, 8), np.sort(x, axis=1))


@pytest.mark.parametrize(
    "kind", [b8, i16, i32, u32, i64, f16, f32, f64, c64, v2, v3, m2], ids=lambda k: k.name
)
def test_every_element_type(kind: DType) -> None:
    need(kind)

    def kernel(x: Buff[kind], out: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = gid()
        a = vc.local_array(kind, 5)
        out[i] = a[i % 5]
        for k in range(5):
            a[k] = x[(i + k) % 7]
        a[i % 5] = x[i]
        out[i + 7] = a[0]
        out[i + 14] = a[(i + 2) % 5]

    rng = np.random.default_rng(3)
    shape = (7, *kind.true_numpy_shape)
    x = (rng.random(shape) * 100 - 50).astype(host(kind))
    if kind is c64:
        x = (x + 1j * rng.random(shape)).astype(np.complex64)
    if kind is b8:
        x = rng.random(shape) > 0.5
    _, out = run(kernel, x, np.ones((21, *shape[1:]), x.dtype), size=7)
    expected = np.zeros_like(out)
    for i in range(7):
        a = [x[(i + k) % 7] for k in range(5)]
        a[i % 5] = x[i]
        expected[i + 7], expected[i + 14] = a[0], a[(i + 2) % 5]
    np.testing.assert_array_equal(out, expected)


def test_reads_are_values() -> None:
    def kernel(out: Buff[f32]) -> None:
        i = gid()
        a = vc.local_array(f32, 4)
        a[i % 4] = 1
        first = a[i % 4]
        a[i % 4] += 10
        second = a[i % 4]
        a[i % 4] = 100
        first += 0.5
        out[i] = first + second * 1000
        a[0], a[1] = 7, 8
        a[0], a[1] = a[1], a[0]
        out[i] += a[0] * 100 + a[-1] * 0 + a[-3] * 10

    (out,) = run(kernel, np.zeros(6, np.float32))
    np.testing.assert_array_equal(out, np.full(6, 1.5 + 11000 + 800 + 70))


@pytest.mark.parametrize("rewrite", [True, False])
def test_two_names_refer_to_one_array(rewrite: bool) -> None:
    def squares(values: Any, count: int) -> Any:
        for k in range(count):
            values[k] = k * k
        return values[count - 1]

    @vd.shader(1, rewrite=rewrite)
    def kernel(out: Buff[f32]) -> None:
        a = vc.local_array(f32, 5)
        b = a
        last = squares(b, 5)
        c = a[:]
        c[0] = 50
        d = vc.local_array(f32, 5)
        d[:] = [4, 3, last, 1, a[2]]
        a[:] = d
        d[0] = -1
        for k in range(5):
            out[k] = a[k]
            out[5 + k] = b[k]
            out[10 + k] = c[k]
        out[15] = sum(d)
        out[16] = len(a)
        out[17] = vc.max(a[0], a[2])

    out = vd.asbuffer(np.zeros(18, np.float32))
    kernel(out)
    a = [4, 3, 16, 1, 4]
    assert out.read(0).tolist() == [*a, *a, 50, 1, 4, 9, 16, 23, 5, 16]


@pytest.mark.parametrize("count", [1, 16, 17, 300])
def test_filling(count: int) -> None:
    def kernel(out: Buff[f32], x: Buff[f32]) -> None:
        i = gid()
        a = vc.local_array(f32, count)
        out[i] = a[i]
        a[:] = x[i]
        a[0] += 1
        a[:] = a[0] * 2
        out[count + i] = a[i]
        if i > 2:
            a[:] = 5
        out[2 * count + i] = a[count - 1]

    x = np.arange(count, dtype=np.float32)
    out, _ = run(kernel, np.ones(3 * count, np.float32), x, size=count)
    expected = [np.zeros(count), 2 * (x + 1), np.where(x > 2, 5, 2 * (x + 1))]
    np.testing.assert_array_equal(out, np.concatenate(expected))


def test_array_in_a_loop_is_new_in_each_round() -> None:
    def kernel(out: Buff[i32]) -> None:
        i = gid().to_dtype(vd.int32)
        total = 0
        for k in vc.range(6):
            a = vc.local_array(i32, 3)
            a[k % 3] += 1
            total = total * 4 + a[0] + a[1] + a[2]
        once = vc.local_array(i32, 3)
        n = i
        while n > 0:
            once[n % 3] += 1
            n -= 1
        out[i] = total
        out[i + 7] = once[0] * 100 + once[1] * 10 + once[2]

    (out,) = run(kernel, np.zeros(14, np.int32), size=7)
    assert out[:7].tolist() == [sum(4**k for k in range(6))] * 7
    counts = [[sum(n % 3 == r for n in range(1, i + 1)) for r in range(3)] for i in range(7)]
    assert out[7:].tolist() == [a * 100 + b * 10 + c for a, b, c in counts]


def test_in_branches_and_conditions() -> None:
    def kernel(x: Buff[f32], out: Buff[f32]) -> None:
        i = gid()
        stack = vc.local_array(f32, 8)
        top = 0
        with vc.scope_block():
            inside = vc.local_array(f32, 2)
            inside[1] = 3
        for k in vc.range(12):
            value = x[(i + k) % 12]
            if value > 0 and top < 8:
                stack[top] = value
                top += 1
            elif top > 0 and stack[top - 1] > 5:
                top -= 1
                stack[top] = -stack[top]
        found = 0.0
        for value in stack:
            found = found * 2 + value
        out[i] = found if stack[7] == 0 else stack[7]
        out[i] += inside[1]

    x = np.random.default_rng(5).integers(-9, 9, 12).astype(np.float32)
    _, out = run(kernel, x, np.zeros(12, np.float32))
    for i in range(12):
        stack, top = [0.0] * 8, 0
        for k in range(12):
            value = float(x[(i + k) % 12])
            if value > 0 and top < 8:
                stack[top] = value
                top += 1
            elif top > 0 and stack[top - 1] > 5:
                top -= 1
                stack[top] = -stack[top]
        found = 0.0
        for value in stack:
            found = found * 2 + value
        assert out[i] == (found if stack[7] == 0 else stack[7]) + 3


def test_components_of_elements() -> None:
    def kernel(out: Buff[v3], waves: Buff[c64]) -> None:
        i = gid()
        a = vc.local_array(v3, 4)
        a[:] = vc.to_vec3(1, 2, 3)
        a[i % 4].y = 7
        a[i % 4].x += 1
        a[2].zx = a[2].xz
        out[i] = a[2]
        w = vc.local_array(c64, 2)
        w[1] = 1 + 2j
        w[1] *= w[1]
        w[i % 2].imag += 3
        waves[i] = w[1]

    out, waves = run(kernel, np.zeros((6, 3), np.float32), np.zeros(6, np.complex64), size=6)
    for i in range(6):
        element = [1.0, 2.0, 3.0] if i % 4 != 2 else [2.0, 7.0, 3.0]
        assert out[i].tolist() == element[::-1]
        assert waves[i] == (1 + 2j) ** 2 + (3j if i % 2 else 0)


def test_kernels_of_a_graph_are_joined() -> None:
    @vd.shader("x.size")
    def first(x: Buff[f32]) -> None:
        i = gid()
        a = vc.local_array(f32, 3)
        a[i % 3] = x[i]
        x[i] = a[0] + a[1] * 2 + a[2] * 3

    @vd.shader("x.size")
    def second(x: Buff[f32]) -> None:
        i = gid()
        a = vc.local_array(f32, 3)
        a[1] = x[i]
        x[i] = a[i % 3] + 1

    values = np.arange(1, 100, dtype=np.float32)
    x = vd.asbuffer(values)
    graph = vd.CommandGraph()
    first(x, graph=graph)
    second(x, graph=graph)
    graph.optimize()
    graph.submit()
    place = np.arange(99) % 3
    expected = np.where(place == 1, values * (place + 1), 0) + 1
    np.testing.assert_array_equal(x.read(0), expected)


def test_indices_are_checked() -> None:
    @vd.shader(1, check="bounds")
    def read(out: Buff[f32], at: Const[i32]) -> None:
        a = vc.local_array(f32, 4, var_name="table")
        out[0] = a[at]

    @vd.shader(1, check="bounds")
    def write(out: Buff[f32], at: Const[i32]) -> None:
        a = vc.local_array(f32, 4, var_name="table")
        a[at] = 1
        out[0] = a[3]

    out = vd.asbuffer(np.ones(1, np.float32))
    for kernel in (read, write):
        kernel(out, 3)
        for launch in (kernel, kernel.interpret):
            for at in (4, -1):
                with pytest.raises(
                    IndexError, match=rf"index {at}\b.* is out of bounds for local array 'table' of"
                ):
                    launch(out, at)


def test_names_in_the_generated_code() -> None:
    @vd.shader(1)
    def kernel(out: Buff[f32]) -> None:
        a = vc.local_array(f32, 3, var_name="a")
        b = vc.new_float_register(2, var_name="a_zero")
        a[0] = b
        out[0] = a[0] + a[1]

    out = vd.asbuffer(np.ones(1, np.float32))
    kernel(out)
    assert out.read(0)[0] == 2
    assert "float[3] a = " in str(kernel.get_src())


def test_arrays_outlive_scopes_but_not_blocks() -> None:
    def kernel(out: Buff[f32]) -> None:
        with vc.if_block(gid() > 2):
            a = vc.local_array(f32, 3)
        out[0] = a[0]

    with pytest.raises(RuntimeError, match="does not exist here"):
        vd.shader(1)(kernel)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: vc.local_array(f32, 4)[4],
        IndexError,
        "index 4 is out of range for a local array of 4 elements",
    ),
    (lambda: vc.local_array(f32, 4)[-5], IndexError, "index -5 is out of range"),
    (lambda: vc.local_array(f32, 4)[1.5], TypeError, "must be an integer"),
    (lambda: vc.local_array(f32, 4)[True], TypeError, "must be an integer"),
    (
        lambda: vc.local_array(f32, 4)[vc.new_float_register()],
        TypeError,
        "must be an integer scalar, got float32",
    ),
    (lambda: vc.local_array(f32, 4)[1:3], ValueError, "the only valid slice"),
    (lambda: vc.local_array(f32, 4).__setitem__(slice(1, 3), 1), ValueError, "the only valid slice"),
    (lambda: vc.local_array(f32, 4).__setitem__(slice(None), [1, 2]), ValueError, "takes no 2 values"),
    (lambda: vc.local_array(i32, 4).__setitem__(0, 1.5), ValueError, "cannot store the float 1.5 in int32"),
    (
        lambda: vc.local_array(i32, 4).__setitem__(slice(None), vc.local_array(f32, 4)),
        ValueError,
        "takes no array",
    ),
    (lambda: vc.local_array(f32, 0), ValueError, "expected 1 to 65536 elements, got 0"),
    (lambda: vc.local_array(f32, 1 << 20), ValueError, "expected 1 to 65536 elements"),
    (lambda: vc.local_array(f32, vc.new_int_register()), TypeError, "must be an int of Python's"),
    (lambda: vc.local_array(u8, 4), ValueError, "kernels compute with uint32"),
    (lambda: vc.local_array(float, 4), TypeError, "expected a dtype"),
    (
        lambda: vc.new_float_register().__setitem__(slice(None), vc.local_array(f32, 4)),
        TypeError,
        "<local array",
    ),
    (lambda: vc.atomic_add(vc.local_array(i32, 4)[0], 1), TypeError, "atomic"),
]


@pytest.mark.parametrize(("use", "error", "message"), REFUSED)
def test_wrong_arguments_are_refused(use: Callable[[], Any], error: type[Exception], message: str) -> None:
    with vc.shader_context(), pytest.raises(error, match=message) as caught:
        use()
    assert "test_local_arrays.py:" in str(caught.value)


def test_arrays_cannot_be_used_in_another_kernel() -> None:
    with pytest.raises(RuntimeError, match="while a kernel is traced"):
        vc.local_array(f32, 4)


# ---- several axes --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_several_axes(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(form.split(",")) - {"", "checked"})

    def kernel(x: Buff[f32], out: Buff[f32]) -> None:
        i = gid()
        a = vc.local_array(f32, (3, 4))
        b = vc.local_array(f32, (4, 2), "b")
        product = vc.local_array(f32, (3, 2))
        for r in range(3):
            for k in range(4):
                a[r, k] = x[(i + r * 4 + k) % 11]
        for k in vc.range(4):
            for c in vc.range(2):
                b[k][c] = x[(i * 2 + k + c) % 11]
        for r in vc.range(3):
            for c in vc.range(2):
                for k in vc.range(4):
                    product[r, c] += a[r, k] * b[k, c]
        product[i % 3][:] = product[(i + 1) % 3]
        row = product[-1]
        row[1] += 100
        copied = product[:]
        copied[2, 1] = 0
        total = 0.0
        for line in product:
            for value in line:
                total = total * 3 + value
        place = vc.to_ivec2(i % 3, 1)
        out[i] = total + copied[2, 1] + product[place] * 1000 + len(a) + a.size + a.shape[1]

    x = np.random.default_rng(1).integers(-3, 4, 11).astype(np.float32)
    check = "bounds" if form == "checked" else False
    _, out = run(kernel, x, np.zeros(11, np.float32), size=11, check=check)
    for i in range(11):
        a = np.array([[x[(i + r * 4 + k) % 11] for k in range(4)] for r in range(3)])
        b = np.array([[x[(i * 2 + k + c) % 11] for c in range(2)] for k in range(4)])
        product = a @ b
        product[i % 3] = product[(i + 1) % 3]
        product[2, 1] += 100
        total = 0.0
        for value in product.flat:
            total = total * 3 + value
        assert out[i] == total + product[i % 3, 1] * 1000 + 3 + 12 + 4


@pytest.mark.parametrize("kind", [b8, i16, i64, f16, f64, c64, v3, m2], ids=lambda k: k.name)
def test_axes_of_every_element_type(kind: DType) -> None:
    need(kind)

    def kernel(x: Buff[kind], out: Buff[kind]) -> None:  # type: ignore[valid-type]
        i = gid()
        a = vc.local_array(kind, (2, 3))
        for k in range(6):
            a[k // 3, k % 3] = x[(i + k) % 7]
        a[i % 2][:] = x[i]
        a[0, 2] = a[1, i % 3]
        out[i] = a[0, i % 3]

    rng = np.random.default_rng(3)
    shape = (7, *kind.true_numpy_shape)
    x = (rng.random(shape) * 100 - 50).astype(host(kind))
    if kind is b8:
        x = rng.random(shape) > 0.5
    _, out = run(kernel, x, np.ones_like(x), size=7)
    for i in range(7):
        a = [[x[(i + 3 * r + c) % 7] for c in range(3)] for r in range(2)]
        a[i % 2] = [x[i]] * 3
        a[0][2] = a[1][i % 3]
        np.testing.assert_array_equal(out[i], a[0][i % 3])


AXES: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda a: a[2, 0], IndexError, "index 2 is out of range for axis 0 of a local array of 2 elements"),
    (lambda a: a[0, -4], IndexError, "index -4 is out of range for axis 1"),
    (lambda a: a[0][3], IndexError, "index 3 is out of range for a local array of 3 elements"),
    (lambda a: a[0, 0, 0], ValueError, "takes up to 2 indices, got 3"),
    (lambda a: a[()], ValueError, "takes up to 2 indices, got 0"),
    (lambda a: a.__setitem__(slice(None), [1, 2]), TypeError, "cannot|takes|expected"),
    (lambda a: a.__setitem__(0, [1, 2]), ValueError, "of 3 elements takes no 2 values"),
    (lambda a: a.__setitem__(0, vc.local_array(f32, 2)), ValueError, "takes no array of"),
]


@pytest.mark.parametrize(("use", "error", "message"), AXES)
def test_wrong_axes_are_refused(use: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with vc.shader_context(), pytest.raises(error, match=message):
        use(vc.local_array(f32, (2, 3)))
