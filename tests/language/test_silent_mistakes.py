"""Mistakes that Python and the device allow, and that compute something else: they warn."""

from __future__ import annotations

import dataclasses
import inspect
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, m3, v3

from .running import filled


def test_text_of_a_value_that_is_not_printed_by_the_kernel() -> None:
    with pytest.warns(vd.KernelWarning, match=r"vc\.print shows values") as caught:

        @vd.shader("x.size")
        def show(x: Buff[f32]) -> None:
            i = vc.global_invocation_id().x
            vc.print(f"printed {x[i]}")
            print(f"traced {x[i]}")

    assert len(caught) == 1 and "traced" in str(caught[0].message)


def lacks_sequence(x: Buff[f32]) -> None:
    x[vc.global_invocation_id().x] = vc.random.Philox(7).normal()


def has_sequence(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = vc.random.Philox(7, i).normal() + vc.random.Philox(7, sequence=0).uniform()


def has_seeds(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = vc.random.Philox(7 + i).normal() + vc.random.Philox(7, offset=100 * i).uniform()


@pytest.mark.parametrize(
    ("body", "sizes", "count"),
    [
        (lacks_sequence, {"exec_size": "x.size"}, 1),
        (lacks_sequence, {"workgroups": 1, "local_size": 64}, 1),
        (lacks_sequence, {"exec_size": 1}, 0),
        (has_sequence, {"exec_size": "x.size"}, 0),
        (has_seeds, {"exec_size": "x.size"}, 0),
    ],
)
def test_equal_random_numbers(body: Callable[..., None], sizes: dict[str, Any], count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(**sizes)(body)
    assert ["sequence=vc.global_invocation_id().x" in str(one.message) for one in caught] == [True] * count


def test_exceptions_that_only_python_raises() -> None:
    def divide(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        try:
            x[i] = 1 / x[i]
        except (ValueError, ZeroDivisionError):
            x[i] = 0

    def decide(x: Buff[f32]) -> None:
        try:
            scale = 1 / len([])
        except ZeroDivisionError:
            scale = 2.0
        x[vc.global_invocation_id().x] = scale

    with pytest.warns(vd.KernelWarning, match="except ZeroDivisionError: .* test them by an `if`"):
        vd.shader("x.size")(divide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = vd.shader("x.size")(decide)
    x = vd.Buffer(3, vd.float32)
    kernel(x)
    assert x.read(0).tolist() == [2, 2, 2]


def test_rows_of_invocations_that_are_counted_along_one_axis() -> None:
    def body(x: Buff[f32]) -> None:
        here = vc.global_invocation_id()
        x[here.y, here.x] = 1

    with pytest.warns(vd.KernelWarning, match=r"exec_size 'x.size' .* y is 0.*'x.shape\[::-1\]'"):
        vd.shader("x.size")(body)


def test_recursion_of_the_device_has_a_short_traceback() -> None:
    def factorial(n: Any) -> Any:
        return 1 if n < 2 else n * factorial(n - 1)

    def body(x: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if x[i] > 0:
            x[i] = factorial(x[i])

    with pytest.raises(vd.UsageError, match="use a loop") as caught:
        vd.shader("x.size")(body)
    assert len(traceback.extract_tb(caught.value.__traceback__)) < 10


# ---- stores that reach nothing -------------------------------------------------------------------


@dataclasses.dataclass
class Body:
    position: v3
    mass: f32


def gid() -> Any:
    return vc.global_invocation_id().x


def set_x(v: Any) -> Any:
    v.x = 1
    return v


class Holder:
    element: Any


def part_of_an_argument(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    c.y = a[gid()].x  # lost


def part_of_an_argument_that_reads_itself(
    a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]
) -> None:
    for k in range(a.size):
        c[gid()] = vc.min(c[gid()], a[k][gid()])  # lost


def column_of_an_argument(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    m[0][1] = 3.0  # lost
    a[gid()] = c


def part_of_an_element(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    element = a[gid()]
    c = element + 1
    element.x = c.x  # lost
    a[gid()].y = c.y


def swizzle_of_an_element(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    element = a[gid()]
    element.xy = vc.to_vec2(1, 2)  # lost


def augmented_part_of_an_element(
    a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]
) -> None:
    element = a[gid()]
    element[0] += 2.0  # lost
    element.y *= element.x  # lost


def parts_of_a_complex_number(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    element = z[gid()]
    element.real = 1.0  # lost
    element.imag = element.real  # lost


def part_of_a_result(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    total = a[gid()] + c
    a[gid()] = total
    total.z = 3.0  # lost


def all_of_a_result(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    unit = vc.normalize(a[gid()])
    unit[:] = c  # lost


def field_of_a_structure(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
    body = p[gid()]
    a[gid()] = body.position
    body.mass = 3.0  # lost
    body.position.x = 1.0  # lost


def part_of_an_element_in_a_list(
    a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]
) -> None:
    elements = [a[0], a[1]]
    elements[1].x = 3.0  # lost
    a[0] = elements[0]
    held = Holder()
    held.element = a[0]
    held.element.y = 1.0  # lost


def part_of_an_element_in_a_branch(
    a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]
) -> None:
    element = a[gid()]
    if element.x > 1:
        a[gid()] = element
    else:
        element.y = 1.0  # lost
    for k in vc.range(gid()):
        other = a[k]
        a[0] = other
        other.x = 2.0  # lost


LOST = (
    *(part_of_an_argument, part_of_an_argument_that_reads_itself, column_of_an_argument),
    *(part_of_an_element, swizzle_of_an_element, augmented_part_of_an_element, parts_of_a_complex_number),
    *(part_of_a_result, all_of_a_result, field_of_a_structure, part_of_an_element_in_a_list),
    *(part_of_an_element_in_a_branch,),
)


@pytest.mark.parametrize("body", LOST, ids=lambda body: body.__name__)
def test_changes_that_nothing_reads(body: Callable[..., None]) -> None:
    lines, start = inspect.getsourcelines(body)
    marked = [start + i for i, line in enumerate(lines) if "# lost" in line]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader("a.size")(body)
    assert [one.category for one in caught] == [vd.KernelWarning] * len(marked)
    assert sorted(one.lineno for one in caught) == marked
    assert all("nothing reads afterwards" in str(one.message) for one in caught)


def test_changes_that_nothing_reads_say_what_to_write() -> None:
    for body, text in ((part_of_an_argument, "argument 'c'"), (part_of_an_element, r"name\[:\] = value")):
        with pytest.warns(vd.KernelWarning, match=text):
            vd.shader("a.size")(body)


def test_changes_that_something_reads_do_not_warn() -> None:
    def kernel(a: Buff[v3], c: Const[v3], m: Const[m3], p: Buff[Body], z: Buff[c64]) -> None:
        i = gid()
        c.x = 2
        a[i] = c + set_x(a[i])
        set_x(a[i])
        element = a[i]
        element.z = 5
        if element.x > 1:
            element.y = 3
        a[i].x = element.y
        last = a[i]
        for k in vc.range(i):
            # read in the next round
            a[k] = last
            last.x = vc.to_float(k)
        found = vc.to_vec3(0, 0, 0)
        while found.x < 3:
            found.x += 1
        body = p[i]
        body.mass = 3
        p[i].position = body.position
        parts = z[i]
        parts.real = 1.0
        vc.print(parts)
        tail = m[1]
        tail.x = 1
        assert tail.y > 0
        named = a[i].to_register()
        named.x = 4
        shown = a[i]
        shown.y = 1
        vc.get_builder().append_contents(f"{shown.name}.x = 2.0;")
        whole = a[i]
        whole.y = 2
        whole[:] = whole

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vd.shader("a.size")(kernel)


def test_places_that_are_no_names_are_refused() -> None:
    def of_a_sum(a: Buff[v3]) -> None:
        (a[0] + a[1]).x = 1

    def of_a_result(a: Buff[v3]) -> None:
        vc.normalize(a[0])[0] = 1

    for body in (of_a_sum, of_a_result):
        with pytest.raises(ValueError, match="cannot be assigned to"):
            vd.shader(1)(body)


def test_parts_of_names_store_without_the_rewrite() -> None:
    def kernel(a: Buff[v3], z: Buff[c64]) -> None:
        element, number = a[gid()], z[gid()]
        element.y = 3
        element[2] = 4
        number.real = 5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = vd.shader(2, rewrite=False)(kernel)
    a, z = filled(2, v3, 1), filled(2, c64, 1)
    made(a, z)
    assert a.read(0).tolist() == [[1, 3, 4]] * 2 and z.read(0).tolist() == [5, 5]
