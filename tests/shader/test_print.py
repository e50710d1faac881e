"""Printing from kernels: values as Python shows them, in a reproducible order, none lost without a word."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Var,
    c64,
    c128,
    dv2,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    iv3,
    m2,
    m4,
    u16,
    u32,
    u64,
    uv4,
    v2,
    v3,
    v4,
)


def _supports(kind: Any) -> bool:
    info = vd.get_context().device_infos[0]
    needed = {2: info.storage_buffer_16_bit_access and info.int_16_support, 8: info.int_64_support}
    floats = {f64: info.float_64_support, f16: info.float_16_support, c128: info.float_64_support}
    return bool(floats.get(kind, needed.get(getattr(kind, "item_size", 4), 1)))


_VALUES: list[tuple[Any, Any, str]] = [
    (f32, np.float32(0.1), "0.1"),
    (f32, np.float32(1e20), "1e+20"),
    (f32, np.float32(-2), "-2.0"),
    (f32, np.float32(np.inf), "inf"),
    (f64, 0.1, "0.1"),
    (f64, 1 / 3, str(1 / 3)),
    (f16, np.float16(0.1), "0.1"),
    (i16, -7, "-7"),
    (u16, 65535, "65535"),
    (i32, -(1 << 31), str(-(1 << 31))),
    (u32, (1 << 32) - 1, str((1 << 32) - 1)),
    (i64, -(1 << 62) - 5, str(-(1 << 62) - 5)),
    (u64, (1 << 64) - 2, str((1 << 64) - 2)),
    (v2, (0.5, 0.1), "(0.5, 0.1)"),
    (iv3, (1, -2, 3), "(1, -2, 3)"),
    (uv4, (1, 2, 3, 4), "(1, 2, 3, 4)"),
    (dv2, (0.1, -3.0), "(0.1, -3.0)"),
    (c64, np.complex64(1 + 0.1j), "(1+0.1j)"),
    (c64, np.complex64(-2j), str(np.complex64(-2j))),
    (c64, np.complex64(2j), "2j"),
    (c128, 0.1 - 1e-20j, str(0.1 - 1e-20j)),
    (m2, [[1, 2], [3, 4]], "((1.0, 2.0), (3.0, 4.0))"),
]


@pytest.mark.parametrize(("kind", "value", "text"), _VALUES)
def test_each_dtype_is_shown_as_by_python(kind: Any, value: Any, text: str, capsys: Any) -> None:
    if not _supports(kind):
        pytest.skip(f"the device has no {kind.name}")

    def body(x: Any, out: Any) -> None:
        vc.print(x)
        vc.printf("%s", x)
        vc.printf("{}", x)
        vc.print(f"<{x}>")

    run = vd.shader(1, local_size=1, arg_type_annotations=[Const[kind], Buff[f32]])(body)
    run(value, vd.Buffer(1, f32))
    assert capsys.readouterr().out == f"{text}\n{text}\n{text}\n<{text}>\n"


def test_truth_values_and_python_objects(capsys: Any) -> None:
    @vd.shader(1)
    def kernel(x: Const[i32]) -> None:
        vc.print(x > 1, x < 1, "{text}", 3, None, [1, 2], sep="|", end="!\n")
        vc.print()
        vc.print(x, x, separator=", ")
        vc.print("100%", x, end="")

    kernel(2)
    assert capsys.readouterr().out == "True|False|{text}|3|None|[1, 2]!\n\n2, 2\n100% 2"


def test_format_specifications(capsys: Any) -> None:
    @vd.shader(1)
    def kernel(x: Const[f32], i: Const[i32], v: Const[v3], c: Const[c64]) -> None:
        vc.print(f"i={i:>5} x={x:.3f} v={v:.1f} {{}} {i:x}|", f"{c:.2f}")
        vc.printf(f"{x:8.2e}")
        vc.print(f"{x=:.1f}")
        vc.printf("{:.2f} and {:04d}", x, i)
        vc.printf("{1} {0} 50%", x, i)

    kernel(0.1, 26, (1, 2, 3), 1 + 2j)
    assert capsys.readouterr().out == (
        "i=   26 x=0.100 v=(1.0, 2.0, 3.0) {} 1a| 1.00+2.00j\n1.00e-01\nx=0.1\n0.10 and 0026\n26 0.1 50%\n"
    )


def test_percent_formats(capsys: Any) -> None:
    @vd.shader(1)
    def kernel(x: Const[f32], i: Const[i32], u: Const[u32], v: Const[v2]) -> None:
        vc.printf("%d %5.2f|%-6d|%+d %x %u %%", i, x, i, i, u, u)
        vc.printf("%ld %llu %hd %lf\n", i, u, i, x)
        vc.printf("%f %f", v)
        vc.printf("%s %d", v, 7)
        vc.printf("%v2f / %.1f", v, x)
        vc.printf("%u %f", "gl_GlobalInvocationID.x + 3u", "PC.x * 2")
        vc.printf("no values, 100%%")

    kernel(2.5, 12, 255, (1, 2))
    assert capsys.readouterr().out.splitlines() == [
        "12  2.50|12    |+12 ff 255 %",
        "12 255 12 2.500000",
        "1.000000 2.000000",
        "(1.0, 2.0) 7",
        "1.000000, 2.000000 / 2.5",
        "3 5.000000",
        "no values, 100%",
    ]


def test_order_is_that_of_invocations_then_of_the_program(capsys: Any) -> None:
    @vd.shader(local_size=(4, 2, 2))
    def kernel(out: Buff[u32]) -> None:
        gid = vc.global_invocation_id()
        vc.print("first", gid)
        with vc.if_block(gid.x == 1):
            vc.print("one")
        n = vc.new_uint_register(0)
        with vc.while_block(n < gid.y):
            n += 1
            vc.print("round", n)

    kernel(vd.Buffer(1, u32), exec_size=(6, 3, 3))
    expected = []
    for z in range(3):
        for y in range(3):
            for x in range(6):
                expected.append(f"first ({x}, {y}, {z})")
                expected += ["one"] if x == 1 else []
                expected += [f"round {n + 1}" for n in range(y)]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_full_ring_says_what_is_missing(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("VKDISPATCH_PRINT_BUFFER", "1000")

    @vd.shader(local_size=32)
    def kernel(out: Buff[u32]) -> None:
        vc.print("number", vc.global_invocation_id().x)

    def lines(count: int) -> list[str]:
        kernel(vd.Buffer(1, u32), exec_size=count)
        return capsys.readouterr().out.splitlines()

    # a message takes 6 words of the 250
    assert lines(41) == [f"number {i}" for i in range(41)]
    shown = lines(1000)
    assert len(shown) == 42
    assert all(re.fullmatch(r"number \d+", line) for line in shown[:41])
    assert "959 more messages" in shown[-1]
    assert "VKDISPATCH_PRINT_BUFFER" in shown[-1]
    assert lines(5) == [f"number {i}" for i in range(5)]


def test_messages_of_unequal_length_fill_a_ring(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("VKDISPATCH_PRINT_BUFFER", "400")

    @vd.shader(local_size=1)
    def kernel(v: Const[v4]) -> None:
        i = vc.global_invocation_id().x
        with vc.if_block(i % 2 == 0):
            vc.print("long", v, v)
        with vc.else_block():
            vc.print("short")

    kernel((1, 2, 3, 4), exec_size=64)
    out = capsys.readouterr().out.splitlines()
    lost = int(re.findall(r"(\d+) more messages", out[-1])[0])
    assert len(out) - 1 + lost == 64
    assert len(out) > 5


@pytest.mark.parametrize("size", ["x", "-4", "3", str(1 << 40)])
def test_a_bad_ring_size_is_refused(size: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("VKDISPATCH_PRINT_BUFFER", size)

    @vd.shader(1)
    def kernel(x: Const[f32]) -> None:
        vc.print(x)

    with pytest.raises(ValueError, match="VKDISPATCH_PRINT_BUFFER"):
        kernel(1)


def test_graphs_print_every_run_in_order(capsys: Any) -> None:
    @vd.shader(2, local_size=1)
    def first(x: Var[f32]) -> None:
        vc.print("first", vc.global_invocation_id().x, x)

    @vd.shader(2, local_size=1)
    def second(n: Const[i32], out: Buff[f32]) -> None:
        vc.print("second", vc.global_invocation_id().x, n)

    @vd.shader(1)
    def silent(out: Buff[f32]) -> None:
        out[0] += 1

    out = vd.asbuffer(np.zeros(1, np.float32))
    graph = vd.CommandGraph()
    first(graph.bind_var("x"), graph=graph)
    silent(out, graph=graph)
    second(7, out, graph=graph)
    second(8, out, graph=graph)
    graph.set_var("x", [0.5, 1.5, 2.5])
    for _ in range(2):
        graph.submit(3)
        expected = []
        for run in range(3):
            expected += [f"first {i} {run + 0.5}" for i in range(2)]
            expected += [f"second {i} 7" for i in range(2)] + [f"second {i} 8" for i in range(2)]
        assert capsys.readouterr().out.splitlines() == expected
    assert out.read(0)[0] == 6
    graph.reset()
    silent(out, graph=graph)
    graph.submit()
    assert capsys.readouterr().out == ""


def test_default_and_global_graphs(capsys: Any) -> None:
    @vd.shader(1)
    def kernel(n: Const[i32]) -> None:
        vc.print(n)

    for n in range(3):
        kernel(n, graph=vd.default_graph())
        assert capsys.readouterr().out == f"{n}\n"
    graph = vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        kernel(5)
    finally:
        vd.set_global_graph(None)
    assert capsys.readouterr().out == ""
    graph.submit_any()
    assert capsys.readouterr().out == "5\n"


def test_threads_do_not_mix_messages(capsys: Any) -> None:
    @vd.shader(16, local_size=4)
    def kernel(n: Const[i32]) -> None:
        vc.print("from", n, "a message of some length", vc.global_invocation_id().x)

    def work(number: int) -> None:
        for _ in range(5):
            kernel(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4 * 5 * 16
    for start in range(0, len(out), 16):
        number = out[start].split()[1]
        expected = [f"from {number} a message of some length {i}" for i in range(16)]
        assert out[start : start + 16] == expected


def test_no_printf_leaves_prints_out(capsys: Any) -> None:
    @vd.shader(4, flags=vc.ShaderFlags.NO_PRINTF, check=False)
    def kernel(out: Buff[f32]) -> None:
        vc.print("no", out[0])
        vc.printf("%f", out[0])
        out[vc.global_invocation_id().x] = 1

    out = vd.asbuffer(np.zeros(4, np.float32))
    kernel(out)
    assert out.read(0).tolist() == [1] * 4
    assert capsys.readouterr().out == ""
    assert "diagnostics" not in kernel.get_src().code


def test_what_is_printed_is_what_was_there(capsys: Any) -> None:
    @vd.shader(1)
    def kernel(out: Buff[i32]) -> None:
        vc.print(out[0])
        out[0] += 5
        vc.print(out[0])

    out = vd.asbuffer(np.array([3], np.int32))
    kernel(out)
    kernel(out)
    assert capsys.readouterr().out.split() == ["3", "8", "8", "13"]


def test_an_interrupted_call_leaves_nothing_behind(capsys: Any, monkeypatch: Any) -> None:
    @vd.shader(1)
    def kernel(n: Const[i32]) -> None:
        vc.print("number", n)

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    kernel(1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("vkdispatch.execution_pipeline.diagnostics.Diagnostics._collect", interrupted)
        kernel(2)
    kernel(3)
    assert capsys.readouterr().out == "number 1\nnumber 3\n"


def test_large_argument_blocks(capsys: Any) -> None:
    # arguments beyond the push constants move to a uniform block, and the bindings with them
    @vd.shader(1)
    def kernel(a: Const[m4], b: Const[m4], out: Buff[f32]) -> None:
        out[0] = a[0][0] + b[3][3]
        vc.print(out[0])

    out = vd.Buffer(1, f32)
    kernel(np.full((4, 4), 2), np.full((4, 4), 3), out)
    assert capsys.readouterr().out == "5.0\n"


def test_texts_among_the_values_are_texts(capsys: Any) -> None:
    texts = ("1+1", "50% {x} %d", "q\"'\\", "*/ é😀 //", "a\nb", "", "gl_GlobalInvocationID.x")
    percent, braces = "%s|%12s|%-4s|%.3s|%r|%.1f %%\n", "{} {:>9} {!r} {{}} {:.1f}\n"

    @vd.shader(1)
    def kernel(x: Const[f32], v: Const[v2]) -> None:
        for text in texts:
            vc.comment(text + "\0\\")
            vc.printf(percent, text, text, text, text, text, x)
            vc.printf(braces, text, text, text, x)
            vc.printf("{2:.1f} {0} {1}", text, "{}", x)
        vc.printf("%s %.1f %.1f %c%c", "v", v, "%", 98)

    kernel(2.5, (1, 2))
    expected = ""
    for text in texts:
        expected += percent % (text, text, text, text, text, 2.5)
        expected += braces.format(text, text, text, 2.5) + f"2.5 {text} {{}}\n"
    assert capsys.readouterr().out == expected + "v 1.0 2.0 %b\n"


def test_mistakes_are_errors_at_their_line() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda x, v: vc.printf("%d %d", x), ValueError, "2 conversions, got 1"),
        (lambda x, v: vc.printf("%d", v), ValueError, r"1 conversions?, got 1|real number"),
        (lambda x, v: vc.printf("%d %f %f", v, x), ValueError, "real number|3"),
        (lambda x, v: vc.printf("%y", x), ValueError, "no conversion"),
        (lambda x, v: vc.printf("{} {}", x), ValueError, "does not format"),
        (lambda x, v: vc.printf("%x", x), ValueError, "does not format"),
        (lambda x, v: vc.printf(3), TypeError, "format"),
        (lambda x, v: vc.printf("%f", [1]), TypeError, "printf"),
        (lambda x, v: vc.printf(f"{x} %d", x), ValueError, "no further"),
        (lambda x, v: vc.print(f"{x:d}"), ValueError, "'d'"),
        (lambda x, v: vc.print(x, sep=3), TypeError, "sep"),
        (lambda x, v: vc.print(x, end=None), TypeError, "end"),
        (lambda x, v: x.to_register(f"name_{x}"), TypeError, "var_name"),
        (lambda x, v: vc.comment(f"about {x}"), TypeError, "comment"),
        (lambda x, v: vc.printf("%f", f"{x} + 1"), TypeError, "raw GLSL"),
        (lambda x, v: vc.printf("%s", f"{x} + 1"), TypeError, "f-string"),
        (lambda x, v: vc.printf("{} {}", 3, f"{x}"), TypeError, "f-string"),
        (lambda x, v: vc.printf("%s", "a", "b"), ValueError, "1 conversions, got 2"),
        (lambda x, v: vc.printf("%s %s", "a"), ValueError, "2 conversions, got 1"),
        (lambda x, v: vc.printf("%c", "ab"), ValueError, "char"),
        (lambda x, v: vc.printf("{:d}", "a"), ValueError, "'d'"),
        (lambda x, v: vc.printf("{} {}", "a"), ValueError, "does not format"),
        (lambda x, v: vc.printf("{}", x, "a"), ValueError, "value 2 of 2"),
        (lambda x, v: vc.printf("plain", x), ValueError, "value 1 of 1"),
        (lambda x, v: vc.printf("{1}", x, v), ValueError, "value 1 of 2"),
        (lambda x, v: f"{x:.2f}", RuntimeError, "f-string"),
        (lambda x, v: vc.print(f"{x=}"), ValueError, "repr of a GPU value"),
        (lambda x, v: vc.print("v", f"{v!r}"), ValueError, "repr of a GPU value"),
        (lambda x, v: vc.print(f"{x}"[3:]), TypeError, "print"),
    ]
    for body, error, text in cases:
        with pytest.raises(error, match=text) as caught:
            vd.shader(1, arg_type_annotations=[Const[f32], Const[v3]], arg_names=["x", "v"])(body)
        assert isinstance(caught.value, vd.VkDispatchError), text
        assert "test_print.py" in str(caught.value), text


def test_f_strings_outside_kernels_and_prints_are_plain_text(capsys: Any) -> None:
    kept: list[Any] = []

    @vd.shader(1)
    def kernel(x: Const[f32], out: Buff[f32]) -> None:
        kept.append(x)
        print(f"traced {out}")
        out[0] = x

    assert f"{kept[0]:>20}".strip() == repr(kept[0])
    assert "traced" in capsys.readouterr().out
