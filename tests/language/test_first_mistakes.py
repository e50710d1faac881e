"""What users of NumPy, GLSL and CUDA write first, and is refused: the error says what to write instead."""

from __future__ import annotations

import dataclasses
import math
import random
import time
import typing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, u8, v3


def first_element(x: Any) -> None:
    x[-1] = 1


def rows_and_columns(x: Any) -> None:
    x[0][1] = 1


def length_of_buffer(x: Any) -> None:
    x[0] = len(x)


def method_of_vector(x: Any) -> None:
    x[0] = vc.to_vec3(1, 2, 3).length()


def size_on_the_device(x: Any) -> None:
    vc.shared_buffer(f32, x.size)


def red_of_a_color(x: Any) -> None:
    x[0] = vc.to_vec3(1, 2, 3).r


def imaginary_unit(x: Any) -> None:
    x[0] = (1j * x[0]).real


def shape_as_in_numpy(x: Any) -> None:
    rows, columns = x.shape
    x[rows, columns] = 1


def too_few_names(x: Any) -> None:
    a, b = vc.to_vec3(1, 2, 3)
    x[0] = a + b


def inverse_sine_of_numpy(x: Any) -> None:
    x[0] = np.arcsin(x[0])


def sine_of_arrays(x: Any) -> None:
    x[0] = vnp.sin(x[0])


def number_of_numpy(x: Any) -> None:
    x[0] = np.float32(x[1])


def sum_of_numpy(x: Any) -> None:
    x[0] = np.sum(x)


def method_of_buffer(x: Any) -> None:
    x[0] = x.sum()


MISTAKES: list[tuple[Callable[[Any], None], str]] = [
    (first_element, r"buf\[buf.size - 1\] is the last element"),
    (rows_and_columns, r"buf\[i, j\]"),
    (length_of_buffer, r"use .size or .shape"),
    (method_of_vector, r"vc.length\(v\)"),
    (size_on_the_device, "shared_buffer: size must be a Python int"),
    (shape_as_in_numpy, r"got 2 names; .*rows, columns = x.shape.x, x.shape.y"),
    (too_few_names, r"vec3 has 3 components, got 2 names "),
    (red_of_a_color, "components are .x, .y, .z and .w"),
    (inverse_sine_of_numpy, r"instead: vc.asin \(test_first_mistakes.py"),
    (sine_of_arrays, r"functions of vc, such as vc.sin \(test_first_mistakes.py"),
    (number_of_numpy, r"float32 cannot take a GPU value.*\(test_first_mistakes.py"),
    (sum_of_numpy, r"call vd.sum\(x\) and its like before the kernel \(test_first_mistakes.py"),
    (method_of_buffer, r"vd.sum\(x\), vd.max\(x\) and their like are called outside"),
    (imaginary_unit, r"convert the value with vc.to_complex64"),
]


@pytest.mark.parametrize(("body", "advice"), MISTAKES, ids=[body.__name__ for body, _ in MISTAKES])
def test_kernel(body: Callable[[Any], None], advice: str) -> None:
    with pytest.raises(vd.VkDispatchError, match=advice):
        vd.shader(1, arg_type_annotations=[Buff[f32]])(body)


def test_memory_that_is_no_argument() -> None:
    for memory in (vd.Buffer(3, vd.float32), vnp.zeros(3, dtype=vnp.float32)):

        def read(x: Any, memory: Any = memory) -> None:
            x[0] = memory[x.size]

        def write(x: Any, memory: Any = memory) -> None:
            memory[x.size] = 1

        for body in (read, write):
            with pytest.raises(TypeError, match=r"add a parameter such as `x: Buff\[f32\]`"):
                vd.shader(1, arg_type_annotations=[Buff[f32]], arg_names=["x"])(lambda x, body=body: body(x))


def test_a_function_that_is_not_called() -> None:
    def body(x: Any) -> None:
        x[vc.global_invocation_id.x] = 1  # type: ignore[attr-defined]

    with pytest.raises(AttributeError) as caught:
        vd.shader(1, arg_type_annotations=[Buff[f32]])(body)
    assert caught.value.__notes__[0].endswith("write vc.global_invocation_id().x")


def test_atomic_of_a_buffer_and_an_index() -> None:
    def body(x: Any) -> None:
        vc.atomic_add(x, 0, 1.0)  # type: ignore[call-arg]

    with pytest.raises(TypeError) as caught:
        vd.shader(1, arg_type_annotations=[Buff[f32]])(body)
    assert caught.value.__notes__[0].endswith("write vc.atomic_add(buf[i], value)")


def test_atomic_of_a_narrow_element() -> None:
    with pytest.raises(TypeError, match="elements of uint8 have no atomics; use a buffer of uint32"):

        @vd.shader("x.size")
        def count(x: Buff[u8]) -> None:
            vc.atomic_add(x[0], 1)


def test_a_graph_without_calls_warns() -> None:
    @vd.shader("x.size")
    def increment(x: Buff[f32]) -> None:
        x[vc.global_invocation_id().x] += 1

    x, graph = vd.asbuffer(np.zeros(3, np.float32)), vd.CommandGraph()
    increment(x)
    with pytest.warns(RuntimeWarning, match="recorded by graph="):
        graph.submit(5)
    increment(x, graph=graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.submit(5)
        vd.CommandGraph(reset_on_submit=True).submit()
    assert x.read(0).tolist() == [6, 6, 6]


def test_random_numbers_of_the_host() -> None:
    own = np.random.default_rng(1)

    def body(x: Any) -> None:
        x[0] = random.random()  # 1
        x[1] = np.random.rand()  # 2
        x[2] = own.normal() + math.sqrt(2)  # 3
        x[3] = time.perf_counter()  # 4

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(1, arg_type_annotations=[Buff[f32]])(body)
    assert [str(each.message).splitlines()[1][-1] for each in caught] == ["1", "2", "3", "4"]
    assert ["vc.random.Philox" in str(each.message) for each in caught] == [True, True, True, False]


def test_names_for_all_components() -> None:
    @vd.shader(1)
    def kernel(x: Buff[f32]) -> None:
        a, b, c = vc.to_vec3(1, 2, 3)
        first, *others = vc.to_vec2(4, 5)
        _, _, _, size = x.shape
        x[0], x[1], x[2] = a + b + c, first + 10 * others[0], size.to_dtype(f32)

    x = vd.Buffer(3, vd.float32)
    kernel(x)
    assert x.read(0).tolist() == [6, 54, 3]


def test_components_in_a_tuple() -> None:
    def body(x: Any) -> None:
        x[0] = (1, 2, 3)

    with pytest.raises(TypeError, match=r"vc.to_vec3\(...\) makes a vec3"):
        vd.shader(1, arg_type_annotations=[Buff[v3]])(body)


class Undecorated:
    position: vd.vec2


@dataclasses.dataclass
class Decorated:
    position: vd.vec2


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        (float, r"annotate numbers as Const\[vd.float32\]"),
        (np.int64, r"annotate numbers as Const\[vd.int64\]"),
        (np.ndarray, r"annotate arrays as Buff\[f32\]"),
        (Buff[float], "write vd.float32"),
        (Buff[np.bool_], "write vd.bool_"),
        (str, "got <class 'str'>"),
        (Buff[Undecorated], r"Buff\[...\] needs a dtype.*; @dataclass makes a structure of Undecorated"),
        (Const[Decorated], r"Const\[...\] needs a dtype.*; a dataclass is an argument by itself"),
    ],
)
def test_annotation(annotation: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        vd.shader(1, arg_type_annotations=[annotation])(lambda x: None)


def test_dtype_of_a_buffer() -> None:
    for kind, name in ((float, "float32"), (int, "int32"), (bool, "bool_"), (complex, "complex64")):
        with pytest.raises(TypeError, match=f"; write vd.{name}$"):
            vd.Buffer(3, kind)  # type: ignore[call-overload]


def test_memory_is_reinterpreted_only_as_elements_of_its_size() -> None:
    @vd.shader("x.size")
    def clear(x: Buff[f32]) -> None:
        x[vc.global_invocation_id().x] = 0

    with pytest.raises(TypeError) as caught:
        clear(vd.Buffer(3, vd.float64))  # type: ignore[arg-type]
    assert "vd.asbuffer(data, vd.float32), an Array by x.astype(vnp.float32)" in str(caught.value)
    assert ".view" not in str(caught.value)
    with pytest.raises(TypeError, match=r"\.view\(vd.float32\)"):
        clear(vd.Buffer(3, vd.uint32))  # type: ignore[arg-type]


@dataclasses.dataclass
class Ray:
    origin: f32
    slope: f32


class NamedRay(typing.NamedTuple):
    origin: Any
    slope: Any


def test_objects_that_a_loop_of_the_device_replaces() -> None:
    def march(x: Buff[f32], ray: Any, rounds: Any) -> None:
        for _ in range(rounds):
            ray = type(ray)(ray.origin + ray.slope, ray.slope / 2)
        x[0] = ray.origin

    with pytest.raises(TypeError, match="tuples and named tuples of them can be kept"):

        @vd.shader(1)
        def of_dataclass(x: Buff[f32], rounds: Const[i32]) -> None:
            march(x, Ray(x[0], x[0]), rounds)

    @vd.shader(1)
    def of_named_tuple(x: Buff[f32], rounds: Const[i32]) -> None:
        march(x, NamedRay(x[0], x[0]), rounds)

    x = vd.asbuffer(np.ones(1, np.float32))
    of_named_tuple(x, 3)
    assert x.read(0)[0] == 1 + 1 + 0.5 + 0.25


def test_powers_of_minus_one() -> None:
    @vd.shader("x.size")
    def alternate(x: Buff[f32], z: Buff[c64]) -> None:
        i = vc.global_invocation_id().x
        x[i] = (-1) ** i + (-2.0) ** i.to_dtype(i32)
        z[i] = z[i] * (-1) ** i

    x, z = vd.Buffer(6, vd.float32), vd.asbuffer(np.full(6, 1j, np.complex64))
    alternate(x, z)
    signs = (-1.0) ** np.arange(6)
    np.testing.assert_allclose(x.read(0), signs + (-2.0) ** np.arange(6), rtol=1e-6)
    np.testing.assert_array_equal(z.read(0), 1j * signs)


@pytest.mark.parametrize(
    ("size", "wrong", "advice"),
    [
        ("x.shape", False, ""),
        ("x.shape[::-1]", True, "'x.shape', or x[gid.y, gid.x]"),
        ("(x.shape[1], x.shape[0])", True, "'x.shape', or x[gid.y, gid.x]"),
        ("out.shape[::-1]", False, ""),
        ("out.shape", True, "'out.shape[::-1]', or out[gid.x, gid.y]"),
        ("x.shape[::-1] if x.size else 1", False, ""),
    ],
)
def test_size_and_indices_of_a_matrix(size: str, wrong: bool, advice: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @vd.shader(size)
        def transpose(x: Buff[f32], out: Buff[f32]) -> None:
            here = vc.global_invocation_id()
            out[here.y.to_dtype(i32), here.x] = x[here.x, here.y]

    assert len(caught) == wrong
    if wrong:
        assert advice in str(caught[0].message) and "out[here.y.to_dtype(i32), here.x]" in str(
            caught[0].message
        )


def fill_matrix(x: Buff[f32]) -> None:
    here = vc.global_invocation_id()
    x[here.y, here.x] = 1


def fill_all(x: Buff[f32]) -> None:
    x[vc.global_invocation_id().x] = 1


def fill_rows_of_groups(x: Buff[f32]) -> None:
    x[vc.workgroup_id().y, vc.global_invocation_id().x] = 1


@pytest.mark.parametrize(
    ("body", "size", "advice"),
    [
        (fill_matrix, "x.size", "y is 0 in all invocations"),
        (fill_all, "x.shape[::-1]", "Write exec_size 'x.size'"),
        (fill_matrix, "x.shape[::-1]", None),
        (fill_all, "x.size", None),
        (fill_rows_of_groups, "x.shape[::-1]", None),
    ],
)
def test_size_and_axes_of_the_id(body: Callable[..., None], size: str, advice: str | None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(size)(body)
    assert [str(each.message) for each in caught if advice is None] == []
    assert advice is None or (len(caught) == 1 and advice in str(caught[0].message))


def add_all(out: Buff[f32], x: Buff[f32]) -> None:
    out[0] += x[vc.global_invocation_id().x]


def subtract_all_at_argument(out: Buff[f32], x: Buff[f32], at: Const[i32]) -> None:
    value = x[vc.global_invocation_id().x]
    out[at] = out[at] - value


def add_in_unrolled_loop(out: Buff[f32], x: Buff[f32]) -> None:
    for k in range(3):
        out[1] += k * x[vc.global_invocation_id().x]


def add_atomically(out: Buff[f32], x: Buff[f32]) -> None:
    vc.atomic_add(out[0], x[vc.global_invocation_id().x])


def add_by_one_invocation(out: Buff[f32], x: Buff[f32]) -> None:
    if vc.global_invocation_id().x == 0:
        out[0] += x[0]


def add_after_return(out: Buff[f32], x: Buff[f32]) -> None:
    if vc.global_invocation_id().x > 0:
        return
    out[0] += x[0]


def add_to_own(out: Buff[f32], x: Buff[f32]) -> None:
    out[vc.global_invocation_id().x] += x[0]


def add_without_id(out: Buff[f32], x: Buff[f32]) -> None:
    out[0] += x[0]


def add_above_limit(out: Buff[f32], x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    if i >= x.size - 1:
        return
    if x[i] > 3:
        out[0] += 1


ALL = {"exec_size": "x.size"}


@pytest.mark.parametrize(
    ("body", "sizes", "count"),
    [
        (add_all, ALL, 1),
        (add_all, {"workgroups": 1, "local_size": 64}, 1),
        (subtract_all_at_argument, ALL, 1),
        (add_in_unrolled_loop, ALL, 1),
        (add_above_limit, ALL, 1),
        (add_all, {"exec_size": 1}, 0),
        (add_all, {"workgroups": 1, "local_size": 1}, 0),
        (add_atomically, ALL, 0),
        (add_by_one_invocation, ALL, 0),
        (add_after_return, ALL, 0),
        (add_to_own, ALL, 0),
        (add_without_id, ALL, 0),
    ],
)
def test_sum_of_all_invocations(body: Callable[..., None], sizes: dict[str, Any], count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(**sizes)(body)
    assert ["vc.atomic_add(buffer[0], value)" in str(one.message) for one in caught] == [True] * count


def count_labels(counts: Buff[f32], x: Buff[f32], labels: Buff[i32]) -> None:
    counts[labels[vc.global_invocation_id().x]] += 1


def add_to_nearest(counts: Buff[f32], x: Buff[f32], labels: Buff[i32]) -> None:
    i, nearest = vc.global_invocation_id().x, 0
    for k in range(labels.size):
        if x[i] > x[k]:
            nearest = k
    counts[nearest] = counts[nearest] + x[i]


def count_in_own_row(counts: Buff[f32], x: Buff[f32], labels: Buff[i32]) -> None:
    i = vc.global_invocation_id().x
    counts[i, labels[i]] += 1
    for k in range(i, x.size, 64):
        counts[k] += 1


def count_by_one_invocation(counts: Buff[f32], x: Buff[f32], labels: Buff[i32]) -> None:
    if vc.global_invocation_id().x == 0:
        for k in range(x.size):
            counts[labels[k]] += 1


def append(counts: Buff[f32], x: Buff[f32], labels: Buff[i32]) -> None:
    i = vc.global_invocation_id().x
    counts[vc.atomic_add(labels[0], 1)] += x[i]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (count_labels, 1),
        (add_to_nearest, 1),
        (count_in_own_row, 0),
        (count_by_one_invocation, 0),
        (append, 0),
    ],
)
def test_sums_at_an_index_that_was_read(body: Callable[..., None], count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader("x.size")(body)
    assert ["vc.atomic_add(buffer[index], value)" in str(one.message) for one in caught] == [True] * count


def test_print_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(vd.KernelWarning, match=r"vc\.print shows values") as caught:

        @vd.shader("x.size")
        def show(x: Buff[f32]) -> None:
            print("traced")
            print(x[vc.global_invocation_id().x])

    assert len(caught) == 1 and "print(x[vc" in str(caught[0].message)
    assert capsys.readouterr().out.startswith("traced\n<float32 ")


def test_barriers_that_only_some_reach() -> None:
    def body(x: Any) -> None:
        i, lane = vc.global_invocation_id().x, vc.local_invocation_id().x
        if vc.workgroup_id().x == 0 and x.size > 3:
            vc.barrier()  # the same for the workgroup
        for start in range(0, x.size, 64):
            vc.barrier()
            x[i] = start
        if lane < 32:
            vc.barrier()  # 1
        for _ in range(i):
            vc.barrier()  # 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(1, arg_type_annotations=[Buff[i32]], local_size=64)(body)
    assert [str(each.message).strip().splitlines()[-2].strip() for each in caught] == [
        "vc.barrier()  # 1",
        "vc.barrier()  # 2",
    ]
    assert all("depends on its position" in str(each.message) for each in caught)
