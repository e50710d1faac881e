"""A read is a value: names hold what Python read, and only stores to elements and registers change memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, SImg2, c64, f32, i16, i32, m2, m4, v2, v3, v4

from .running import buffer_of, filled, same

SIZES = [1, 7, 64, 257]


def run(function: Callable[..., Any], count: int, branches: bool) -> tuple[list[int], list[int]]:
    """Buffers p and q after `function(i, p, q)` for each i, with or without control flow of the GPU."""

    @vd.shader("p.size")
    def kernel(p: Buff[i32], q: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        function(i, p, q)

    @vd.shader("p.size")
    def branching(p: Buff[i32], q: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        if i >= 0:
            function(i, p, q)

    p, q = np.arange(count, dtype=np.int32) * 3 + 1, np.arange(count, dtype=np.int32) * 5 - 9
    first, second = vd.asbuffer(p), vd.asbuffer(q)
    chosen = branching if branches else kernel
    chosen(first, second)
    assert chosen.interpret(p, q) is None
    found = first.read(0).tolist(), second.read(0).tolist()
    assert found == (p.tolist(), q.tolist())
    return found


def augmented_name(i: Any, p: Any, q: Any) -> None:
    d = p[i]
    d += 1000
    q[i] = d


def chained_names(i: Any, p: Any, q: Any) -> None:
    a = b = p[i]
    a -= 4
    c = a
    c *= 2
    q[i] = a + b * 10 + c * 100


def old_value(i: Any, p: Any, q: Any) -> None:
    old = p[i]
    p[i] = q[i]
    q[i] = old


def old_expression(i: Any, p: Any, q: Any) -> None:
    total = p[i] * 2 + q[i]
    p[i] += total
    q[i] = total - p[i]


def exchange(i: Any, p: Any, q: Any) -> None:
    p[i], q[i] = q[i], p[i]


def index_that_changes(i: Any, p: Any, q: Any) -> None:
    p[i] = i
    k = p[i]
    value = q[k]
    p[i] = 0
    q[i] = value + k


def helper_that_stores(i: Any, p: Any, q: Any) -> None:
    def advance() -> Any:
        p[i] = p[i] * 7 + 1
        return p[i]

    q[i] = p[i] + advance() * 10 + p[i]
    p[i] += advance()


def update_keeps_the_order(i: Any, p: Any, q: Any) -> None:
    q[i] -= p[i]
    q[i] *= q[i]
    p[i] -= q[i]


def values_in_containers(i: Any, p: Any, q: Any) -> None:
    held = [p[i], q[i]]
    pair = (p[i] + 1, i)
    named = {"p": p[i]}
    p[i] = -1
    q[i] = held[0] + held[1] * 3 + pair[0] * 5 + named["p"] * 7


def read_in_a_choice(i: Any, p: Any, q: Any) -> None:
    chosen = p[i] if q[i] > 20 else q[i]
    both = p[i] > 10 and q[i] > 10
    p[i] = 11
    q[i] = chosen * 2 + (1 if both else 0)


def read_before_a_loop(i: Any, p: Any, q: Any) -> None:
    start = p[i]
    n = 0
    while n < 5:
        p[i] += start
        n += 1
    q[i] = start


def read_in_a_condition(i: Any, p: Any, q: Any) -> None:
    p[i] = 0
    while p[i] < 10:
        p[i] += 3
        q[i] += p[i]


PROGRAMS = [
    augmented_name,
    chained_names,
    old_value,
    old_expression,
    exchange,
    index_that_changes,
    helper_that_stores,
    update_keeps_the_order,
    values_in_containers,
    read_in_a_choice,
    read_before_a_loop,
    read_in_a_condition,
]


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("function", PROGRAMS)
def test_same_as_python(function: Callable[..., Any], count: int, branches: bool) -> None:
    p, q = [k * 3 + 1 for k in range(count)], [k * 5 - 9 for k in range(count)]
    for i in range(count):
        function(i, p, q)
    assert run(function, count, branches) == (p, q)


def test_one_buffer_for_two_arguments() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[i32], q: Buff[i32], r: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        old = p[i]
        q[i] = 5
        r[i] = old

    p, r = vd.asbuffer(np.arange(70, dtype=np.int32)), vd.Buffer((70,), i32)
    kernel(p, p, r)
    assert r.read(0).tolist() == list(range(70))


def test_elements_of_fewer_bits() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[i16], q: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        d = p[i]
        d += q[i]
        q[i] = d
        p[i] += 1

    p, q = np.arange(70, dtype=np.int16), np.full(70, 100_000, np.int32)
    first, second = vd.asbuffer(p), vd.asbuffer(q)
    kernel(first, second)
    assert first.read(0).tolist() == (p + 1).tolist()
    assert second.read(0).tolist() == (p + q).tolist()


def test_shared_memory_is_read_when_python_reads_it() -> None:
    @vd.shader("out.size", local_size=64)
    def kernel(out: Buff[i32]) -> None:
        tile = vc.shared_buffer(i32, 64)
        k = vc.local_invocation_id().x
        tile[k] = k.to_dtype(i32)
        vc.barrier()
        mirrored = tile[63 - k]
        vc.barrier()
        tile[k] = -1
        vc.barrier()
        out[vc.global_invocation_id().x] = mirrored * 100 + tile[63 - k]

    out = vd.Buffer((128,), i32)
    kernel(out)
    assert out.read(0).tolist() == [(63 - k % 64) * 100 - 1 for k in range(128)]


def test_texels_are_read_when_python_reads_them() -> None:
    @vd.shader((4, 4))
    def kernel(img: SImg2[f32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id()
        old = img[i.x, i.y]
        img[i.x, i.y] = old + 10
        out[i.y * 4 + i.x] = old

    image, out = vd.Image2D((4, 4), vd.float32, 1), vd.Buffer((16,), f32)
    image.write(np.arange(16, dtype=np.float32).reshape(4, 4))
    kernel(image, out)
    assert out.read(0).tolist() == list(range(16))


def test_explicit_registers_are_written() -> None:
    @vd.shader(1)
    def kernel(out: Buff[f32]) -> None:
        r = vc.new_float_register(1)
        double = r * 2
        same = r
        r += 4
        out[0], out[1], out[2] = double, r, same
        with vc.if_block(r > 0):
            r *= 3
        out[3] = r

    out = vd.Buffer((4,), f32)
    kernel(out)
    assert out.read(0).tolist() == [2, 5, 5, 15]


def test_result_of_an_atomic_is_a_value() -> None:
    def change(u: Any) -> Any:
        u += 1
        return u

    @vd.shader("p.size")
    def kernel(p: Buff[i32], out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        before = vc.atomic_add(p[i], 5)
        same = before
        before += 10
        if i < 1000:
            out[i] = change(same) * 100 + before * 10 + same

    p, out = vd.asbuffer(np.arange(7, dtype=np.int32)), vd.Buffer((7,), i32)
    kernel(p, out)
    assert out.read(0).tolist() == [(k + 1) * 100 + (k + 10) * 10 + k for k in range(7)]


def test_negated_magnitudes_are_compared_as_numbers() -> None:
    @vd.shader("x.size")
    def kernel(x: Buff[i32], out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        out[i] = 1 if -abs(x[i]) <= -11 else 2

    data = np.arange(-64, 64, dtype=np.int32)
    out = vd.Buffer((128,), i32)
    kernel(vd.asbuffer(data), out)
    assert out.read(0).tolist() == np.where(-abs(data) <= -11, 1, 2).tolist()


# ---- vectors ----------------------------------------------------------------------------------------


def vector_kernel(change: Callable[..., Any], branches: bool) -> tuple[np.ndarray, np.ndarray]:
    @vd.shader("p.size")
    def plain(p: Buff[v4], out: Buff[v4]) -> None:
        change(vc.global_invocation_id().x, p, out)

    @vd.shader("p.size")
    def branching(p: Buff[v4], out: Buff[v4]) -> None:
        i = vc.global_invocation_id().x
        if i < 1000:
            change(i, p, out)

    data = np.arange(4 * 70, dtype=np.float32).reshape(70, 4)
    p, out = vd.Buffer((70,), v4), vd.Buffer((70,), v4)
    p.write(data)
    (branching if branches else plain)(p, out)
    return p.read(0), out.read(0)


def local_component(i: Any, p: Any, out: Any) -> None:
    v = p[i]
    v.x = -1
    v[1] = v.x - 1
    v.zw = v.wz
    out[i] = v


def shared_by_names(i: Any, p: Any, out: Any) -> None:
    v = p[i]
    w = v
    w.x = -1
    before = w.y
    v.y = -2
    v.z += 1
    w.w = before
    out[i] = v


def shared_with_a_helper(i: Any, p: Any, out: Any) -> None:
    def change(u: Any, by: Any) -> None:
        u.x += by
        u.y = by

    v = p[i] * 1
    change(v, 5)
    out[i] = v


def changed_by_a_helper_in_a_branch(i: Any, p: Any, out: Any) -> None:
    def change(u: Any, by: Any) -> None:
        u.x += by
        u.y = by

    v = p[i]
    w = v
    if i >= 0:
        change(v, 5)
    out[i] = w


def held_by_a_list(i: Any, p: Any, out: Any) -> None:
    vectors = [p[i], p[i]]
    vectors[0].x = 5
    vectors[1].y += 7
    out[i] = vectors[0] + vectors[1]


def written_through(i: Any, p: Any, out: Any) -> None:
    old = p[i]
    p[i].x = 5
    p[i].y += 7
    p[i][2] = 9
    out[i] = old


def computed(i: Any, p: Any, out: Any) -> None:
    v = p[i] + p[i]
    v.x = 3
    out[i] = v


def one(value: list[float], **changes: float) -> list[float]:
    return [changes.get(name, old) for name, old in zip("xyzw", value, strict=True)]


VECTORS = [
    (local_component, lambda v: v, lambda v: [-1, -2, v[3], v[2]]),
    (shared_by_names, lambda v: v, lambda v: [-1, -2, v[2] + 1, v[1]]),
    (shared_with_a_helper, lambda v: v, lambda v: [v[0] + 5, 5, v[2], v[3]]),
    (changed_by_a_helper_in_a_branch, lambda v: v, lambda v: [v[0] + 5, 5, v[2], v[3]]),
    (held_by_a_list, lambda v: v, lambda v: [5 + v[0], 2 * v[1] + 7, 2 * v[2], 2 * v[3]]),
    (written_through, lambda v: [5, v[1] + 7, 9, v[3]], lambda v: v),
    (computed, lambda v: v, lambda v: [3, 2 * v[1], 2 * v[2], 2 * v[3]]),
]


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize(("change", "memory", "value"), VECTORS)
def test_components(change: Any, memory: Any, value: Any, branches: bool) -> None:
    data = np.arange(4 * 70, dtype=np.float32).reshape(70, 4)
    p, out = vector_kernel(change, branches)
    assert p.tolist() == [memory(row) for row in data.tolist()]
    assert out.tolist() == [value(row) for row in data.tolist()]


def test_component_of_a_value_chosen_by_the_gpu() -> None:
    @vd.shader("p.size")
    def kernel(p: Buff[v2], out: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        v = p[i]
        if i % 2 == 0:
            v = v * 10
            v.y += 1
        v.x = -1
        for _ in range(vc.global_invocation_id().x % 3):
            v.y += 1
        out[i] = v

    p, out = vd.Buffer((70,), v2), vd.Buffer((70,), v2)
    data = np.arange(140, dtype=np.float32).reshape(70, 2)
    p.write(data)
    kernel(p, out)
    y = [row[1] * 10 + 1 if i % 2 == 0 else row[1] for i, row in enumerate(data.tolist())]
    assert out.read(0).tolist() == [[-1, value + i % 3] for i, value in enumerate(y)]
    assert p.read(0).tolist() == data.tolist()


def test_a_vector_argument_can_be_changed_locally() -> None:
    @vd.shader(1)
    def kernel(out: Buff[v2], a: Const[v2]) -> None:
        a.x = 7
        out[0] = a

    out = vd.Buffer((1,), v2)
    kernel(out, (1, 2))
    assert out.read(0).tolist() == [[7, 2]]


def test_parts_of_complex_numbers_are_local() -> None:
    @vd.shader("z.size")
    def kernel(z: Buff[vd.complex64], out: Buff[vd.complex64]) -> None:
        i = vc.global_invocation_id().x
        value = z[i]
        value.real = 3
        out[i] = value
        z[i].imag = 4

    data = (np.arange(5) * (1 + 2j)).astype(np.complex64)
    z, out = vd.asbuffer(data), vd.Buffer((5,), vd.complex64)
    kernel(z, out)
    assert z.read(0).tolist() == (data.real + 4j).tolist()
    assert out.read(0).tolist() == (3 + 1j * data.imag).tolist()


# ---- warnings, and the rules of 0.1.0 -----------------------------------------------------------------


@pytest.mark.parametrize("branches", [False, True])
def test_unused_update_of_a_copy_warns(branches: bool) -> None:
    def kernel(p: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if not branches or p[i] > 0:
            d = p[i]
            d += 1000

    with pytest.warns(vd.KernelWarning, match=r"(?s)buffer\[i\] \+= x.*test_reads\.py.*d \+= 1000"):
        vd.shader("p.size")(kernel)


@pytest.mark.parametrize("function", PROGRAMS)
def test_used_updates_do_not_warn(function: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(function, 5, False)
        run(function, 5, True)


def test_names_refer_to_elements_without_the_rewrite() -> None:
    @vd.shader("p.size", rewrite=False)
    def kernel(p: Buff[i32], q: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        d = p[i]
        d += 1000
        q[i] = d
        p[i] = 3
        q[i] += d

    p, q = vd.asbuffer(np.arange(5, dtype=np.int32)), vd.Buffer((5,), i32)
    kernel(p, q)
    assert p.read(0).tolist() == [3] * 5
    assert q.read(0).tolist() == [1003 + k for k in range(5)]


def test_a_component_of_a_name_without_source() -> None:
    text = "def kernel(p):\n    {}\n    p[0].y = 3"
    for line, refused in (("v = p[0]; v.x = 2", True), ("p[0].x = 2", False)):
        found: dict[str, Any] = {}
        exec(text.format(line), found)
        found["kernel"].__annotations__ = {"p": Buff[v2]}
        if refused:
            with pytest.raises(ValueError, match="source of 'kernel' was not found"):
                vd.shader(1)(found["kernel"])
        else:
            p = vd.Buffer((1,), v2)
            p.write(np.zeros((1, 2), np.float32))
            vd.shader(1)(found["kernel"])(p)
            assert p.read(0).tolist() == [[2, 3]]


# ---- name[:] = value -----------------------------------------------------------------------------


def by_name(a: Any, b: Any, i: Any, new: Any) -> None:
    element = a[i]
    element[:] = new
    b[i] = element


def by_two_names(a: Any, b: Any, i: Any, new: Any) -> None:
    first = a[i]
    second = first
    second[:] = new
    b[i] = first


def by_part_of_a_list(a: Any, b: Any, i: Any, new: Any) -> None:
    elements = [b[i], a[i]]
    elements[1][:] = new
    b[i] = elements[1]


def by_part_of_a_tuple(a: Any, b: Any, i: Any, new: Any) -> None:
    elements = (b[i], a[i])
    elements[1][:] = new
    b[i] = elements[1]


def by_key(a: Any, b: Any, i: Any, new: Any) -> None:
    elements = {"here": a[i]}
    elements["here"][:] = new
    b[i] = elements["here"]


def by_loop_target(a: Any, b: Any, i: Any, new: Any) -> None:
    for element in (a[i], b[i]):
        element[:] = new


def store_to(element: Any, value: Any) -> None:
    element[:] = value


def store_to_all(elements: Any, value: Any) -> None:
    for element in elements:
        element[:] = value


def by_argument(a: Any, b: Any, i: Any, new: Any) -> None:
    store_to(a[i], new)
    store_to_all([b[i]], new)


def by_a_list_of_a_name_on_the_gpu(a: Any, b: Any, i: Any, new: Any) -> None:
    if i == 1000:
        b[i] = a[i]
    element = a[i]
    store_to_all([element], new + new)
    element[:] -= new
    b[i] = element


def by_argument_with_a_name(a: Any, b: Any, i: Any, new: Any) -> None:
    element = a[i]
    store_to(element, new)
    b[i] = element


def in_a_branch(a: Any, b: Any, i: Any, new: Any) -> None:
    element = a[i]
    if i >= 0:
        element[:] = new
    b[i] = element


def in_a_loop(a: Any, b: Any, i: Any, new: Any) -> None:
    element = a[i]
    for _ in vc.range(i + 2):
        element[:] = new
    b[i] = element


def in_steps(a: Any, b: Any, i: Any, new: Any) -> None:
    element = a[i]
    element[:] = new + new
    element[:] -= new
    b[i] = element


def of_shared_memory(a: Any, b: Any, i: Any, new: Any) -> None:
    shared = vc.shared_buffer(new.var_type, 64)
    element = shared[i]
    element[:] = new
    a[i] = shared[i]
    b[i] = element


WAYS = (
    *(by_name, by_two_names, by_part_of_a_list, by_part_of_a_tuple, by_key, by_loop_target, by_argument),
    *(by_argument_with_a_name, by_a_list_of_a_name_on_the_gpu, in_a_branch, in_a_loop, in_steps),
    *(of_shared_memory,),
)


@pytest.mark.parametrize("kind", [f32, i32, c64, v2, v3, v4, m2, m4], ids=lambda kind: kind.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_assignment_to_all_of_a_name_stores_to_the_element(way: Callable[..., None], kind: Any) -> None:
    def kernel(a: Any, b: Any, source: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        way(a, b, i, source[i].to_register())

    made = vd.shader(7, arg_type_annotations=[Buff[kind]] * 3)(kernel)
    new = filled(7, kind, 3).read(0)
    new[:] = np.arange(new.size).reshape(new.shape)
    a, b = filled(7, kind, 1), filled(7, kind, 2)
    made(a, b, buffer_of(kind, new))
    same(a.read(0), new)
    same(b.read(0), new)
    twins = np.ones_like(new), np.ones_like(new)
    made.interpret(*twins, new)
    same(twins[0], new)
    same(twins[1], new)


@pytest.mark.parametrize("rewrite", [True, False])
def test_assignment_to_all_of_a_part(rewrite: bool) -> None:
    @vd.shader(3, rewrite=rewrite)
    def kernel(a: Buff[v4], c: Buff[c64], m: Buff[m2]) -> None:
        i = vc.global_invocation_id().x
        a[i].zx[:] = vc.to_vec2(1, 2)
        part = a[i].wy
        part[:] = part + vc.to_vec2(3, 4)
        real = c[i].real
        real[:] = 5
        column = m[i][1]
        column[:] = vc.to_vec2(6, 7)

    a, c, m = filled(3, v4, 10), filled(3, c64, 10), filled(3, m2, 10)
    kernel(a, c, m)
    assert a.read(0).tolist() == [[2, 14, 1, 13]] * 3 and c.read(0).tolist() == [5] * 3
    same(m.read(0), [[[10, 10], [6, 7]]] * 3)


def test_assignment_to_all_and_to_parts_of_a_name() -> None:
    @vd.shader(3)
    def kernel(a: Buff[v2], b: Buff[v2], c: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        element = a[i]
        element.x = 5
        element[:] = element * 2
        element.y = 7
        b[i] = element
        changed = c[i]
        changed.x = 8
        changed[:] = changed

    a, b, c = (filled(3, v2, 1) for _ in "abc")
    kernel(a, b, c)
    assert c.read(0).tolist() == [[8, 1]] * 3
    assert a.read(0).tolist() == [[10, 2]] * 3 and b.read(0).tolist() == [[10, 7]] * 3


def test_atomics_of_a_name_that_is_assigned_to() -> None:
    @vd.shader(3)
    def kernel(a: Buff[i32]) -> None:
        element = a[vc.global_invocation_id().x]
        element[:] = 4
        vc.atomic_add(element, 3)

    a = filled(3, i32, 1)
    kernel(a)
    assert a.read(0).tolist() == [7, 7, 7]


@pytest.mark.parametrize("kind", [f32, c64, v2], ids=lambda kind: kind.name)
def test_a_name_that_stores_reads_when_it_is_used(kind: Any) -> None:
    def kernel(a: Any, b: Any) -> None:
        i = vc.global_invocation_id().x
        element = a[i]
        element[:] = element + 4
        doubled = element * 2
        a[i] = a[i] * 0
        b[i] = doubled + element
        first, second = a[i + 3], a[i + 6]
        first[:], second[:] = second, first

    made = vd.shader(3, arg_type_annotations=[Buff[kind]] * 2)(kernel)
    host = filled(9, kind).read(0)
    host[:] = np.arange(9).reshape(9, *[1] * (host.ndim - 1))
    a, b = buffer_of(kind, host), filled(3, kind)
    made(a, b)
    same(b.read(0), (host[:3] + 4) * 2)
    same(a.read(0), np.concatenate([host[:3] * 0, host[6:], host[3:6]]))
