"""`vd.explain`: kernels and calls, what they become, and the page that shows it."""

from __future__ import annotations

import re
import struct
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
import vkdispatch_native as native
from vkdispatch.base.compilation.compiler import SpirvLine, compile_glsl, compile_with_lines, disassemble
from vkdispatch.codegen.abbreviations import Buff, Const, f32
from vkdispatch.shader import building

GLSL = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { float data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] *= FACTOR;
}
"""
VOID = frozenset(("meta", "br", "link", "img"))


class Page(HTMLParser):
    """A page: its elements are closed in order; what it names, links to, and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.lines: list[dict[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.names.append(given["id"])
        if "href" in given:
            self.links.append(given["href"])
        self.loaded += [value for key, value in attrs if key in ("src", "srcset", "data", "action")]
        if given.get("class") == "line":
            self.lines.append({**given, "text": ""})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "span" in self.open and self.lines:
            self.lines[-1]["text"] += data

    def find(self, column: str) -> list[dict[str, str]]:
        return [line for line in self.lines if f"-{column}-" in line["id"]]


def read_page(explanation: vd.Explanation, path: Path) -> Page:
    """Save a page and read it: it is whole, links to itself only, and each link leads somewhere."""
    explanation.save(path)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(set(page.names)) == len(page.names)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.names)
    assert page.loaded == [] and "url(" not in text and "@import" not in text and "fetch(" not in text
    assert "prefers-color-scheme: dark" in text
    return page


@pytest.fixture
def halve() -> vd.ShaderFunction:
    @vd.shader("x.size")
    def halve(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        half = x[i] / 2
        x[i] = vc.sin(half)

    return halve


def test_a_kernel(halve: vd.ShaderFunction, tmp_path: Path) -> None:
    explanation = vd.explain(halve)
    (kernel,) = explanation.kernels
    assert kernel.name == "halve" and "test_explain.py:" in str(kernel.place)
    assert kernel.glsl.code == halve.get_src(line_numbers=False).code
    assert [version.name for version in kernel.programs] == ["trace"]
    assert "x[global_invocation_id.x] = sin(x[global_invocation_id.x] / 2.0)" in str(explanation)
    assert kernel.glsl.code.rstrip() in str(explanation)
    for stage in ("trace", "passes", "GLSL", "SPIR-V", "pipeline"):
        assert re.search(rf"\b{stage} \d+\.\d+ ms", kernel.form)
    # the sine of the Python line is one instruction of the module
    line = halve._kernel.program.description.kernel.body[-1].loc.line  # type: ignore[union-attr]
    sines = [spirv for spirv in kernel.spirv if " Sin " in spirv.text]
    assert len(sines) == 1 and sines[0].line is not None
    assert kernel.glsl.python_line(sines[0].line).line == line  # type: ignore[union-attr]
    assert "sin(buf0.data[gid_x]" in kernel.glsl.code.splitlines()[sines[0].line - 1]
    page = read_page(explanation, tmp_path / "page.html")
    (shown,) = [line for line in page.find("spirv") if " Sin " in line["text"]]
    same = [other for other in page.lines if other.get("data-python") == shown["data-python"]]
    columns = {re.split(r"-\d", other["id"].split("-", 1)[1])[0] for other in same}
    assert columns == {"python", "program", "glsl", "spirv"}
    (python,) = [other for other in same if "-python-" in other["id"]]
    assert python["text"] == f"{line}        x[i] = vc.sin(half)"


def test_each_pass_shows_what_it_changed(tmp_path: Path) -> None:
    @vd.shader("x.size", check="bounds")
    def shift(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        vc.print("at", i)
        x[i + 1] = 1.0

    explanation = vd.explain(shift)
    (kernel,) = explanation.kernels
    before, after = kernel.programs[:2]
    assert after.name == "checks" and "diagnostics" not in before.text and "diagnostics" in after.text
    assert "+buffer diagnostics: uint32" in str(explanation)
    assert "the pass 'checks'" in str(explanation)
    assert shift.source == kernel.glsl.code
    text = explanation.html
    assert text.count('<pre class="diff">') == len(kernel.programs) - 1
    assert '<span class="plus">+buffer diagnostics: uint32</span>' in text
    read_page(explanation, tmp_path / "page.html")


def test_forms_that_calls_have_built(monkeypatch: pytest.MonkeyPatch) -> None:
    @vd.shader()
    def fill(x: Buff[f32], value: Const[f32]) -> None:
        x[vc.global_invocation_id().x] = value

    x = vd.Buffer(64, vd.float32)
    fill(x, 1.0, exec_size=64)
    fill(x, 2.0, workgroups=1)
    sizes = {source.glsl.local_size for source in vd.explain(fill).kernels}
    assert sizes == {size for size, _ in fill._built}


@pytest.mark.parametrize("forced", [(), ("packed",), ("addressed",), ("wide",), ("coarse",), ("blocks",)])
def test_the_form_that_the_driver_got(monkeypatch: pytest.MonkeyPatch, forced: tuple[str, ...]) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(forced))

    @vd.shader("x.size")
    def kernel(x: Buff[vd.int8], y: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        x[i] = x[i] + 1
        y[i] = vc.sin(y[i])

    kernel(vd.Buffer(4096, vd.int8), vd.Buffer(4096, vd.float32))
    explained = vd.explain(kernel).kernels
    built = kernel._built.values()
    assert [each.glsl.code for each in explained] == [each.plan.shader_source for each in built]
    assert len({each.glsl.code for each in explained}) == len(explained)
    if forced in (("wide",), ("coarse",), ("blocks",)):
        assert any(version.name == forced[0] for each in explained for version in each.programs)


def test_a_function_on_buffers(tmp_path: Path) -> None:
    x = vd.asbuffer(np.arange(300_000, dtype=np.float32))
    with vd.profile() as profile:
        vd.sum(x)
    expected = [vd.sum(x).read(0)]
    explanation = vd.explain(vd.sum, x)
    assert vd.sum(x).read(0) == expected
    count = sum(len(kernel.launches) for kernel in explanation.kernels)
    assert f"sum launched {count} kernel" in explanation.plan
    assert explanation.kernels[0].name.startswith("sum_")
    for kernel in explanation.kernels:
        assert kernel.glsl.code.startswith("#version") and kernel.spirv
        assert f"workgroups {kernel.launches[0]}" in explanation.plan
    launches = {kernel.name: len(kernel.launches) for kernel in explanation.kernels}
    assert launches == {row.name: row.calls for row in profile.rows()}
    # a repeated call launches kernels that were built before
    again = vd.explain(vd.sum, x)
    assert [k.glsl.code for k in again.kernels] == [k.glsl.code for k in explanation.kernels]
    read_page(again, tmp_path / "page.html")


def test_a_call_of_ones_own_and_one_that_launches_nothing(halve: vd.ShaderFunction) -> None:
    x = vd.asbuffer(np.ones(8, np.float32))

    def program(times: int, *, buffer: Any) -> None:
        for _ in range(times):
            halve(buffer)

    explanation = vd.explain(program, 3, buffer=x)
    (kernel,) = explanation.kernels
    assert kernel.launches == ((1, 1, 1),) * 3 and kernel.name == "halve"
    assert vd.explain(halve, x).kernels[0].launches == ((1, 1, 1),)
    nothing = vd.explain(program, 0, buffer=x)
    assert nothing.kernels == () and str(nothing) == "program launched nothing"


def test_a_kernel_that_is_gone_when_the_call_ends() -> None:
    def program(buffer: Any) -> None:
        @vd.shader("x.size")
        def passing(x: Buff[f32]) -> None:
            x[vc.global_invocation_id().x] = 7.0

        passing(buffer)

    (kernel,) = vd.explain(program, vd.Buffer(8, vd.float32)).kernels
    assert kernel.name == "passing" and "7.0f" in kernel.glsl.code


def test_an_error_of_the_call_is_the_callers(halve: vd.ShaderFunction) -> None:
    with pytest.raises(TypeError, match="argument 'x'"):
        vd.explain(halve, 3)
    assert vd.explain(halve).kernels  # nothing is left behind


def test_an_array_and_a_function_of_arrays(tmp_path: Path) -> None:
    host = np.linspace(0, 1, 2000, dtype=np.float32)
    x = vnp.asarray(host)
    y = vnp.sqrt(x) * 3 + 1
    line = sys._getframe().f_lineno - 1
    told = vnp.explain(y)
    explanation = vd.explain(y)
    assert explanation.plan == told and told.startswith("1 kernel:")
    (kernel,) = explanation.kernels
    assert "sqrt(" in kernel.glsl.code and kernel.launches
    assert str(kernel.place) == f"test_explain.py:{line}"
    assert np.allclose(np.asarray(y), np.sqrt(host) * 3 + 1)
    assert vnp.explain(y).startswith("nothing will run")
    assert vd.explain(y).kernels == ()
    sums = vd.explain(vnp.cumsum, x)
    assert sums.kernels and all(part.glsl.code for part in sums.kernels)
    read_page(explanation, tmp_path / "page.html")


def test_glsl_and_spirv(tmp_path: Path) -> None:
    text = GLSL.replace("FACTOR", "2.0")
    glsl = vd.glsl_kernel(text, [("data", Buff[f32])], "data.size", name="scale")
    (kernel,) = vd.explain(glsl).kernels
    assert kernel.programs == () and kernel.glsl.code == text
    (product,) = [line for line in kernel.spirv if "OpFMul" in line.text]
    assert product.line == 6
    page = read_page(vd.explain(glsl), tmp_path / "glsl.html")
    assert page.find("python") == [] and page.find("program") == []
    # with macros the text alone gives another module, so that its lines are not those of the module
    defined = vd.glsl_kernel(GLSL, [("data", Buff[f32])], "data.size", defines={"FACTOR": 2.0})
    (other,) = vd.explain(defined).kernels
    assert [line.line for line in other.spirv if "OpFMul" in line.text] == [None]
    module = vd.spirv_kernel(compile_glsl(text, "scale"), [("data", Buff[f32])], "data.size")
    (last,) = vd.explain(module).kernels
    assert any("OpFMul" in line.text for line in last.spirv)
    assert any(line.text.strip() == "OpFunctionEnd" for line in last.spirv)
    read_page(vd.explain(module), tmp_path / "spirv.html")


def test_disassembly() -> None:
    text = GLSL.replace("FACTOR", "2.0")
    code = np.frombuffer(compile_with_lines(text), np.uint32)
    kinds: list[int] = []  # of all instructions, by their own lengths
    at = 5
    while at < len(code):
        kinds.append(int(code[at]) & 0xFFFF)
        at += int(code[at]) >> 16
    lines = disassemble(code.tobytes())
    left_out = (2, 3, 5, 6, 7, 8, 317, 330)  # about the source, names and lines
    assert len(lines) == len([kind for kind in kinds if kind not in left_out])
    assert {8, 5, 3} <= set(kinds)  # there are lines, names and the source
    assert {line.line for line in lines if "OpStore" in line.text} == {5, 6}
    assert lines[0] == SpirvLine("               OpCapability Shader", None)
    for broken in (code[:4], code[:-3], np.arange(20, dtype=np.uint32)):
        with pytest.raises(ValueError):
            disassemble(broken.tobytes())
    with pytest.raises(ValueError, match="3 bytes are not a number of words"):
        native.disassemble_spirv(b"abc")


def test_bfloat16_in_modules() -> None:
    """SPIRV-Tools does not know the type; a float16 stands for it."""
    capability, kind = (2 << 16 | 17, 5116), (4 << 16 | 22, 1, 16, 0)
    header = (0x07230203, 0x00010500, 0, 2, 0)
    text = native.disassemble_spirv(struct.pack("<11I", *header, *capability, *kind))
    assert text.split() == ["OpCapability", "Float16", "%half", "=", "OpTypeFloat", "16"]


def test_texts_are_no_markup(tmp_path: Path) -> None:
    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        vc.comment("</pre><script>alert(1)</script> & more")
        x[vc.global_invocation_id().x] = 1.0

    explanation = vd.explain(kernel)
    assert explanation.html.count("<script>") == 1
    read_page(explanation, tmp_path / "page.html")
    shown = explanation._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count('"') == 4
    assert repr(explanation) == str(explanation)


@pytest.mark.parametrize("subject", [3, "vd.sum", None, np.ones(3), float, vd])
def test_what_is_no_kernel(subject: Any) -> None:
    with pytest.raises(TypeError, match="subject: expected a kernel, a function"):
        vd.explain(subject)


def test_kernels_whose_calls_size_shared_memory() -> None:
    @vd.shader(workgroups=1)
    def kernel(x: Buff[f32], n: Const[vd.uint32]) -> None:
        tile = vc.shared_buffer(f32, n, "tile")
        tile[vc.local_invocation_id().x] = x[0]
        vc.barrier()
        x[0] = tile[0]

    (unbuilt,) = vd.explain(kernel).kernels
    assert "shared tile: float32[n]" in unbuilt.programs[0].text
    assert "not built" in unbuilt.form
    kernel(vd.asbuffer(np.ones(4, np.float32)), 2048)
    (built,) = vd.explain(kernel).kernels
    assert "tile[2048]" in built.glsl.code and "shared=(2048,)" in built.form


def test_without_a_device(run_python: Any) -> None:
    code = """
import vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32
vd.initialize(backend="dummy")
@vd.shader("x.size")
def kernel(x: Buff[f32]) -> None:
    x[vc.global_invocation_id().x] = 1.0
(explained,) = vd.explain(kernel).kernels
print("void main()" in explained.glsl.code, len(explained.spirv) > 10, explained.form)
"""
    done = run_python(code)
    assert done.stdout == "True True workgroups of (256, 1, 1); not built here\n", done.stderr
