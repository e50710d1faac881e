"""What becomes of kernels that print or are checked: a legal program, with no more than was asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import vkdispatch.codegen as vc
from tests.codegen.tracing import compile_glsl, trace
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import Buff, Const, c64, c128, f16, f32, f64, i16, i32, i64, m2, u32, v3
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.forms import Variant
from vkdispatch.compiler.glsl.writer import write_kernel
from vkdispatch.compiler.ir import ShaderFlags
from vkdispatch.compiler.passes.diagnostics import (
    BRACES,
    PERCENT,
    BoundsSite,
    Checks,
    FormatError,
    LoopSite,
    NanSite,
    PrintSite,
    check_format,
    host_value,
    message_text,
    parse_checks,
    parse_format,
    value_of_words,
    word_count,
)
from vkdispatch.compiler.passes.instrument import Instrumented, instrument

_ALL = Checks(bounds=True, nan=True, loops=True)


def _instrumented(body: Callable[..., Any], annotations: Any, checks: Checks = _ALL) -> Instrumented:
    description = trace(body, annotations)
    outcome = instrument(description.kernel, checks)
    assert outcome is not None
    verify(outcome.kernel)
    for folded in (False, True):
        observed = replace(description, kernel=outcome.kernel)
        compile_glsl(observed.make_source(32, 1, 1, Variant(folded)))
    return outcome


def _code(outcome: Instrumented) -> str:
    return "\n".join(write_kernel(outcome.kernel).body)


def test_kernel_without_checked_operations_is_unchanged() -> None:
    def body(x: Any, out: Any) -> None:
        out[0] = x

    kernel = trace(body, [Const[f32], Buff[f32]]).kernel
    assert instrument(kernel, Checks()) is None
    assert instrument(kernel, Checks(loops=True)) is None
    assert instrument(trace(lambda x: None, [Const[f32]]).kernel, _ALL) is None

    def quiet(x: Any) -> None:
        vc.print(x)

    assert instrument(trace(quiet, [Const[f32]], flags=ShaderFlags.NO_PRINTF).kernel, Checks()) is None


def test_every_kind_of_statement() -> None:
    def body(data: Any, index: Any, n: Any, x: Any) -> None:
        i = vc.global_invocation_id().x
        tile = vc.shared_buffer(f32, 32)
        tile[i] = data[index[i]]
        vc.barrier()
        with vc.scope_block(comment="a block"):
            v = vc.new_vec3_register(1, 2, 3)
            v[n] = data[i]
            v[index[i]] += tile[3]
            data[i] *= v[index[0]]
        with vc.if_block(data[i] > 0):
            vc.return_statement()
        with vc.else_if_block(vc.all(i < 5, data[i + 1] > 0, data[i + 2] > 0)):
            data[i] = vc.sqrt(data[i])
        with vc.else_block():
            vc.comment("nothing")
        recorder = vc.get_builder()
        counter = recorder.open_for(index[0].expr, index[1].expr, (n + 1).expr)
        data[vc.ShaderVariable(counter)] = 1
        recorder.next_round()
        recorder.close()
        recorder.open_switch(index[i].expr)
        recorder.open_case((1, 2))
        data[7] = 1
        recorder.close()
        recorder.open_default()
        vc.atomic_add(index[i], 1)
        recorder.close()
        recorder.close()
        with vc.while_block(data[i] < x):
            data[i] += x
            with vc.if_block(data[i] > 10):
                recorder.leave_loop()
        vc.print(data[i], x)

    outcome = _instrumented(body, [Buff[f32], Buff[i32], Const[i32], Const[f32]])
    kinds = {type(site) for site in outcome.sites}
    assert kinds == {BoundsSite, NanSite, LoopSite, PrintSite}
    assert outcome.prints
    assert outcome.kernel.resources[-1].label == "diagnostics"
    assert outcome.kernel.arguments[-1].name == outcome.launch == "launch_number"


def test_equal_indices_are_checked_once() -> None:
    def body(data: Any, out: Any, n: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = data[i] + data[i] * data[i]
        with vc.if_block(data[i] > 0):
            out[i] = data[i]
        k = vc.new_uint_register(0)
        out[i] = data[k] + data[k]
        k += 1
        out[i] = data[k]

    outcome = _instrumented(body, [Buff[f32], Buff[f32], Const[i32]], Checks(bounds=True))
    assert [site.what for site in outcome.sites if isinstance(site, BoundsSite)] == [
        "buffer 'param1'",
        "buffer 'param0'",
        "buffer 'param0'",
        "buffer 'param0'",
    ]


def test_indices_in_bounds_by_type_are_not_checked() -> None:
    def body(out: Any, m: Any) -> None:
        tile = vc.shared_buffer(f32, 4)
        tile[3] = m[1][0]
        v = vc.new_vec3_register(1, 2, 3)
        v[2] = tile[0] + v.x
        out[0] = v[0]

    outcome = _instrumented(body, [Buff[f32], Const[m2]], Checks(bounds=True))
    assert [site.what for site in outcome.sites if isinstance(site, BoundsSite)] == ["buffer 'param0'"]


def test_reports_are_written_before_every_return() -> None:
    def body(out: Any) -> None:
        i = vc.global_invocation_id().x
        out[i + 1] = 1
        with vc.if_block(i > 3):
            vc.return_statement()
        vc.if_statement(i > 2, "return;")
        out[i] = 1

    code = _code(_instrumented(body, [Buff[f32]], Checks(bounds=True)))
    assert code.count("atomicAdd") == 3
    for part in code.split("return;")[1:-1]:
        assert "atomicAdd" in part


def test_stores_are_guarded_and_reads_go_to_element_0() -> None:
    def body(out: Any, data: Any, n: Any) -> None:
        out[n] = data[n]
        out[n + 1] += 1
        vc.atomic_add(data[n], 1)

    outcome = _instrumented(body, [Buff[i32], Buff[i32], Const[u32]], Checks(bounds=True))
    code = re.sub(r"\s+", " ", _code(outcome))
    assert re.search(r"if \((check\d+)\) \{ buf0\.data\[PC\.param2\] = buf1\.data\[check\d+ \? ", code)
    assert re.search(r"if \(check\d+\) \{ buf0\.data\[t\d+\] \+= 1; \}", code)
    assert re.search(r"if \(check\d+\) \{ int check\d+ = atomicAdd\(buf1\.data\[PC\.param2\], 1\);", code)


def test_lengths_and_stores_do_not_count_as_reads() -> None:
    def body(out: Any) -> None:
        out[vc.global_invocation_id().x] = 1

    description = trace(body, [Buff[f32]])
    outcome = instrument(description.kernel, Checks(bounds=True))
    assert outcome is not None
    observed = replace(description, kernel=outcome.kernel)
    assert observed.binding_access == [(False, True), (True, True)]


def test_names_do_not_clash() -> None:
    def body(launch_number: Any, launch_number_: Any, out: Any) -> None:
        check0 = vc.new_float_register(1, var_name="check0")
        check5 = vc.shared_buffer(f32, 4, "check5")
        check5[0] = check0
        out[vc.global_invocation_id().x] = launch_number + launch_number_ + check5[0]

    annotations = [Const[f32], Const[f32], Buff[f32]]
    description = trace(body, annotations, ["launch_number", "launch_number_", "out"])
    outcome = instrument(description.kernel, _ALL)
    assert outcome is not None
    assert outcome.launch == "launch_number_1"
    verify(outcome.kernel)
    compile_glsl("\n".join(("#version 450", *_source(outcome).splitlines()[1:])))


def _source(outcome: Instrumented) -> str:
    return write_kernel(outcome.kernel).source((32, 1, 1))[0]


def _calls(work: Callable[[], object]) -> int:
    """Return how many calls of Python functions `work` takes."""
    count = 0

    def note(frame: Any, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_shared_expressions_do_not_multiply() -> None:
    def calls(rounds: int, steps: int) -> int:
        def body(data: Any, out: Any) -> None:
            i = vc.global_invocation_id().x
            value = data[i]
            for _ in range(rounds):
                value = value * 0.5 + value
            out[i] = value
            deep = data[i]
            for step in range(1, steps):
                deep = deep + data[(i + step) % 8]
            out[i] = deep

        kernel = trace(body, [Buff[f32], Buff[f32]]).kernel
        return _calls(lambda: instrument(kernel, Checks(bounds=True)))

    calls(5, 5)  # what is done once
    few = calls(8, 1500)
    # twice as much of each, where paths through the shared ones would be 256 times as many
    assert 0 < few < calls(16, 3000) < 3 * few


def test_nan_checks_of_every_type() -> None:
    kinds = [f16, f32, f64, c64, c128, v3, m2]

    def body(*args: Any) -> None:
        for value, out in zip(args[: len(kinds)], args[len(kinds) :], strict=True):
            register = value.to_register()
            out[0] = register

    outcome = _instrumented(body, [*[Const[kind] for kind in kinds], *[Buff[kind] for kind in kinds]])
    assert sum(isinstance(site, NanSite) for site in outcome.sites) == 2 * len(kinds)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Checks()),
        (False, Checks()),
        ("", Checks()),
        ("0", Checks()),
        (True, Checks(bounds=True, loops=True, asserts=True)),
        ("1", Checks(bounds=True, loops=True, asserts=True)),
        ("asserts, nan", Checks(nan=True, asserts=True)),
        (" bounds , nan", Checks(bounds=True, nan=True)),
        ({"loops"}, Checks(loops=True)),
        (["loops=7", "bounds"], Checks(bounds=True, loops=True, rounds=7)),
    ],
)
def test_accepted_values_of_check(given: Any, expected: Checks) -> None:
    assert parse_checks(given) == expected
    assert bool(expected) == bool(given and given != "0")


@pytest.mark.parametrize("given", ["on", "bounds=2", "loops=", "loops=0", "loops=4294967296", [1], 3])
def test_wrong_values_of_check_are_refused(given: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="option: expected a bool"):
        parse_checks(given, "option")


def test_values_are_decoded_from_words() -> None:
    def back(kind: Any, value: Any, stored: Any) -> Any:
        words = np.array(value, stored).reshape(-1).view(np.uint32)
        assert len(words) == word_count(kind)
        return value_of_words(kind, words)

    assert back(u32, 1 << 31, np.uint32) == 1 << 31
    assert back(i32, -5, np.int32) == back(i16, -5, np.int32) == -5
    assert back(i64, -(1 << 40), np.int64) == -(1 << 40)
    assert back(f64, 1 / 3, np.float64) == 1 / 3
    assert str(back(f16, np.float16(1 / 3), np.float32)) == str(np.float16(1 / 3))
    assert back(dt.bool_, 1, np.uint32) is True
    assert str(back(v3, [1, 2, 0.1], np.float32)) == "(1.0, 2.0, 0.1)"
    assert back(m2, [1, 2, 3, 4], np.float32) == ((1, 2), (3, 4))
    assert back(c128, [1, -2], np.float64) == 1 - 2j


@pytest.mark.parametrize("real", [0.0, -0.0, 1.5, np.nan, np.inf, -3.0, 1e-30])
@pytest.mark.parametrize("imag", [0.0, -0.0, 2.0, -np.inf, 0.1])
def test_complex_numbers_are_formatted_as_in_python(real: float, imag: float) -> None:
    assert str(host_value(c128, [real, imag])) == str(complex(real, imag))
    narrow = np.complex64(complex(real, imag))
    assert str(host_value(c64, [narrow.real, narrow.imag])) == str(narrow)


def test_formats() -> None:
    assert parse_format("%5.1lf%% %u") == ("%5.1f%% %d", PERCENT, ["f", "u"])
    assert parse_format("%v3f") == ("%f, %f, %f", PERCENT, ["f", "f", "f"])
    assert parse_format("{} {{}}") == ("{} {{}}", BRACES, [])
    for bad in ("%", "%y", "%d %", "50% of %d%", "%*d"):
        with pytest.raises(FormatError):
            parse_format(bad)
    for bad, style, kinds in (
        ("%d", PERCENT, []),
        ("%d", PERCENT, [v3]),
        ("%d", PERCENT, [u32, u32]),
        ("{} {}", BRACES, [u32]),
        ("{:d}", BRACES, [f32]),
        ("{name}", BRACES, [f32]),
        ("{", BRACES, []),
    ):
        with pytest.raises(FormatError):
            check_format(bad, style, kinds)
    # what only the device could tell is shown, and no exception
    assert "cannot show" in message_text("%c", PERCENT, [-1])
