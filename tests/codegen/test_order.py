"""The passes of a kernel: their order, their names, and the steps that they leave."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import Buff, f32
from vkdispatch.compiler import ir
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.glsl.writer import write_kernel
from vkdispatch.compiler.ir.text import ProgramWriter
from vkdispatch.compiler.passes import order
from vkdispatch.compiler.passes.bounds import guard_effects
from vkdispatch.compiler.passes.coarsen import coarsen
from vkdispatch.compiler.passes.order import list_versions, make_form
from vkdispatch.compiler.passes.widen import widen


def kernel_with_barriers() -> ir.Kernel:
    @vd.shader("x.size")
    def flip(x: Buff[f32]) -> None:
        tile = vc.shared_buffer(f32, 256, "tile")
        i = vc.local_invocation_id().x
        tile[i] = x[vc.global_invocation_id().x]
        vc.barrier()
        x[vc.global_invocation_id().x] = tile[255 - i]

    return flip.shader_description.kernel


def kernel_of_elements() -> ir.Kernel:
    @vd.shader("x.size")
    def double(x: Buff[f32]) -> None:
        x[vc.global_invocation_id().x] *= 2

    return double.shader_description.kernel


def names_of(kernel: ir.Kernel) -> list[str]:
    return [step.name for step in order.list_steps(kernel)]


@pytest.mark.parametrize(
    ("make", "variant", "names"),
    [
        (kernel_of_elements, Variant(), []),
        (kernel_of_elements, Variant(coarse=4), ["coarse"]),
        (kernel_of_elements, Variant(coarse=8, blocks=True), ["blocks"]),
        (kernel_of_elements, Variant(coarse=8, blocks=True, addressed=True, wide=True), ["coarse", "wide"]),
        (kernel_with_barriers, Variant(), ["barriers"]),
        (kernel_with_barriers, Variant(addressed=True, wide=True), ["barriers", "wide"]),
    ],
)
def test_steps_lead_from_the_trace_to_what_is_written(make: Any, variant: Variant, names: list[str]) -> None:
    kernel = make()
    with order.keep_steps():
        form = make_form(kernel, variant)
    assert names_of(form) == names
    if names:
        assert order.list_steps(form)[0].before is kernel
    else:
        assert form is kernel
    # passes run again on what they made change nothing but the address of the buffers, and the writer agrees
    whole = write_kernel(kernel, variant)
    assert whole.body == write_kernel(replace(kernel), variant).body
    versions = list_versions(form)
    assert [version.name for version in versions] == ["trace", *names]
    for before, after in itertools.pairwise(versions):
        assert after.about == order.PASSES[after.name]
        changed = after.difference(before)
        assert any(line.startswith("+") for line in changed)
        kept = [line[1:] for line in changed if line[0] == " "]
        assert all(any(line.text == text for line in before.lines) for text in kept)


def test_passes_are_composed_with_one_test_of_the_limit() -> None:
    """A coarse program tests the limit itself, as does a guarded one; a wide one only where nothing did."""
    kernel, guarded = kernel_of_elements(), kernel_with_barriers()
    variant = Variant(addressed=True, wide=True)
    forms = [
        (make_form(kernel, replace(variant, coarse=4)), widen(coarsen(kernel, 4), bounded=False)),
        (make_form(kernel, variant), widen(kernel, bounded=True)),
        (make_form(guarded, variant), widen(guard_effects(guarded), bounded=False)),
    ]
    for form, composed in forms:
        lines = [[line.text for line in ProgramWriter().write(program)] for program in (form, composed)]
        assert lines[0] == lines[1]
        assert not order.is_bounded_outside(form, variant)
    assert order.is_bounded_outside(kernel, Variant())
    assert not order.is_bounded_outside(make_form(guarded, Variant()), Variant())


def test_steps_are_kept_only_while_somebody_asks() -> None:
    form = make_form(kernel_with_barriers(), Variant())
    assert order.list_steps(form) == []


def test_checks_are_a_step_of_the_program() -> None:
    with order.keep_steps():

        @vd.shader("x.size", check="bounds")
        def kernel(x: Buff[f32]) -> None:
            x[vc.global_invocation_id().x + 1] = 0.0

    program = kernel._kernel.program
    assert program.source is not None and program.kernel is not None
    assert names_of(program.kernel) == ["checks"]
    assert order.list_steps(program.kernel)[0].before is program.source.kernel


def test_passes_take_the_time_that_they_take() -> None:
    begin = order.count_seconds()
    make_form(kernel_with_barriers(), Variant())
    assert 0 < order.count_seconds() - begin < 60


def test_every_pass_has_a_name_and_a_description() -> None:
    named: set[str] = set()
    for path in Path(vd.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "run" and len(node.args) > 2:
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    named.add(name.value)
    assert named == set(order.PASSES)
