"""`kp.Shader`, the compiler of Kompute 0.7."""

from typing import Any

import pytest

import vkdispatch.kompute as kp

from .kernels import ADD_ONE

COUNTED = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] += float(ADDED) * SCALE(2.0); }
"""


def result(manager: kp.Manager, spirv: bytes) -> float:
    """Run a shader on one element with the initial value 10."""
    tensor = manager.tensor([10], kp.host)
    manager.sequence().eval(kp.OpAlgoDispatch(manager.algorithm([tensor], spirv)))
    return float(tensor.data()[0])


def test_text_to_spirv(manager: kp.Manager) -> None:
    spirv = kp.Shader.compile_source(ADD_ONE)
    assert isinstance(spirv, bytes) and spirv == kp.compile_glsl(ADD_ONE)
    assert result(manager, spirv) == 11
    assert kp.Shader.compile_source(source=ADD_ONE, entryPoint="main", definitions=[]) == spirv
    assert kp.Shader.compile_sources([ADD_ONE]) == spirv


@pytest.mark.parametrize("version", ["#version 450\n", "\n // GLSL\n  #  version 450 core\n"])
def test_definitions(manager: kp.Manager, version: str) -> None:
    source = COUNTED.replace("#version 450\n", version)
    given: list[Any] = [("ADDED", "3"), ["SCALE(x)", "((x) * 5.0)"]]
    assert result(manager, kp.Shader.compile_source(source, "main", given)) == 40
    assert result(manager, kp.Shader.compile_source(source, definitions=(pair for pair in given))) == 40
    flagged = ADD_ONE.replace("+= 1.0", "+= 1.0\n#ifdef TWICE\n+ 1.0\n#endif\n")
    assert result(manager, kp.Shader.compile_source(flagged)) == 11
    assert result(manager, kp.Shader.compile_source(flagged, definitions=[("TWICE", "")])) == 12


def test_messages_have_the_lines_of_the_source() -> None:
    broken = COUNTED + "\nmistake;\n"
    for definitions in ([], [("ADDED", "1"), ("SCALE(x)", "x")]):
        with pytest.raises(RuntimeError, match=r"(?s)'shader' does not compile.*0:6: "):
            kp.Shader.compile_source(
                broken.replace("float(ADDED) * SCALE(2.0)", "1.0"), definitions=definitions
            )


@pytest.mark.parametrize("beside", ["", "void main() { a[0] = 0.0; }\n"], ids=["alone", "beside main"])
@pytest.mark.parametrize("keyword", ["entry_point", "entryPoint"])
def test_entry_points(manager: kp.Manager, beside: str, keyword: str) -> None:
    source = ADD_ONE.replace("main()", "compute()") + beside
    named: dict[str, Any] = {keyword: "compute"}
    assert result(manager, kp.Shader.compile_source(source, **named)) == 11
    assert result(manager, kp.Shader.compile_sources([source], [], **named)) == 11
    defined = ADD_ONE.replace("main()", "ENTRY()") + beside
    assert (
        result(manager, kp.Shader.compile_source(defined, definitions=[("ENTRY", "compute")], **named)) == 11
    )
    with pytest.raises(RuntimeError, match="does not compile"):
        kp.Shader.compile_source(ADD_ONE, **named)


def test_several_sources(manager: kp.Manager) -> None:
    head, tail = ADD_ONE.split("void main")
    sources = [head, "float more() { return ADDED; }", f"void main{tail.replace('1.0', 'more()')}"]
    files = ["head.comp", "more.comp", "main.comp"]
    for names in ([], files):
        assert result(manager, kp.Shader.compile_sources(sources, names, "main", [("ADDED", "4.0")])) == 14
    with pytest.raises(RuntimeError, match=r"(?s)'head.comp, more.comp, main.comp' does not.*1:1: 'ADDED'"):
        kp.Shader.compile_sources(sources, files=files)


def test_invalid_arguments_raise() -> None:
    compile_source: Any = kp.Shader.compile_source
    compile_sources: Any = kp.Shader.compile_sources
    for call, error, message in (
        (lambda: compile_source(3), TypeError, "sources: expected texts, got int"),
        (lambda: compile_source(ADD_ONE, 3), TypeError, "entry_point: expected the name of a function"),
        (
            lambda: compile_source(ADD_ONE, "a b"),
            RuntimeError,
            "entry_point: expected the name of a function",
        ),
        (lambda: compile_source(ADD_ONE, other=1), TypeError, "no argument 'other'"),
        (lambda: compile_source(ADD_ONE, definitions="AB"), TypeError, "definitions: expected pairs"),
        (lambda: compile_source(ADD_ONE, definitions=["AB"]), TypeError, "definitions: expected pairs"),
        (lambda: compile_source(ADD_ONE, definitions=[("A", 1)]), TypeError, "definitions: expected pairs"),
        (
            lambda: compile_source(ADD_ONE, definitions=[("1A", "")]),
            RuntimeError,
            "definitions: expected the",
        ),
        (
            lambda: compile_source(ADD_ONE, definitions=[("A", "1\n2")]),
            RuntimeError,
            "definitions: expected the",
        ),
        (lambda: compile_sources(ADD_ONE), TypeError, "sources: expected a list of texts"),
        (lambda: compile_sources([]), RuntimeError, "files: 0 names for 0 sources"),
        (lambda: compile_sources([ADD_ONE], ["a", "b"]), RuntimeError, "files: 2 names for 1 sources"),
        (lambda: compile_sources([ADD_ONE], [1]), TypeError, "files: expected texts"),
    ):
        with pytest.raises(error, match=message):  # type: ignore[call-overload]
            call()
