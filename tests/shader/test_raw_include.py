"""What kernels given as GLSL include, from texts and folders, and macros that are defined for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.compilation import includes
from vkdispatch.base.untrusted import compiler as untrusted
from vkdispatch.codegen.abbreviations import Buff, f32

MAIN = """#version 450
layout(local_size_x = 32) in;
#include "lib/scale.glsl"
layout(binding = 0) buffer Data { float data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = scale(data[i]);
}
"""
TEXTS = {
    "lib/scale.glsl": '#include "factor.glsl"\n#include <common.glsl>\n'
    "float scale(float x) { return FACTOR * x + SHIFT; }",
    "lib/factor.glsl": "#define FACTOR 3\n",
    "common.glsl": "#define SHIFT 1\n",
}


def written(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(source: str, include: Any, **options: Any) -> list[float]:
    """Return what a kernel makes of 0, 1, ... 36."""
    kernel = vd.glsl_kernel(source, {"data": Buff[f32]}, "data.size", include=include, **options)
    data = vd.asbuffer(np.arange(37, dtype=np.float32))
    kernel(data)
    values: list[float] = data.read(0).tolist()
    return values


def expected(factor: float, shift: float) -> list[float]:
    return (np.arange(37) * factor + shift).tolist()  # type: ignore[no-any-return]


@pytest.fixture(params=[False, True], ids=["trusted", "untrusted"])
def options(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    yield {"untrusted": request.param}


def test_texts_and_folders(tmp_path: Path, options: dict[str, Any]) -> None:
    assert run(MAIN, TEXTS, **options) == expected(3, 1)
    folder = written(tmp_path / "a", TEXTS)
    for given in (folder, str(folder), [folder], [{}, folder]):
        assert run(MAIN, given, **options) == expected(3, 1)
    # What comes first counts, a file's own neighbours before all else.
    other = {"common.glsl": "#define SHIFT 5\n", "factor.glsl": "#error wrong\n"}
    assert run(MAIN, [other, folder], **options) == expected(3, 5)
    assert run(MAIN, (folder, other), **options) == expected(3, 1)
    assert run(MAIN, [written(tmp_path / "b", other), TEXTS], **options) == expected(3, 5)


def test_the_cache_knows_what_is_included(tmp_path: Path) -> None:
    folder = written(tmp_path, TEXTS)
    assert run(MAIN, folder) == expected(3, 1)
    (folder / "lib/factor.glsl").write_text("#define FACTOR 7\n")
    assert run(MAIN, folder) == expected(7, 1)
    before = native.compile_count()
    assert run(MAIN, folder) == expected(7, 1)
    assert native.compile_count() == before
    assert run(MAIN, folder, defines={"UNUSED": 1}) == expected(7, 1)
    assert native.compile_count() == before + 1


def test_what_is_no_directive_is_not_missed(options: dict[str, Any]) -> None:
    source = MAIN.replace(
        "#include",
        """// #include "gone"
/* #include "gone"
*/
#if 0
#include "gone"
#endif
#ifdef NEVER
#include <gone>
#endif
#include""",
    )
    assert run(source, TEXTS, **options) == expected(3, 1)
    spaced = MAIN.replace('#include "lib', '#  include /* odd */ "./lib/../lib')
    assert run(spaced, TEXTS, **options) == expected(3, 1)
    own = MAIN.replace("layout(local", "#extension GL_GOOGLE_include_directive : require\nlayout(local")
    assert run(own, TEXTS, **options) == expected(3, 1)


def test_files_that_include_each_other() -> None:
    guarded = {
        "lib/scale.glsl": "#ifndef A\n#define A\n#include <b>\n"
        "float scale(float x) { return twice(x); }\n#endif",
        "b": '#ifndef B\n#define B\n#include "lib/scale.glsl"\n'
        "float twice(float x) { return 2 * x; }\n#endif",
    }
    assert run(MAIN, guarded) == expected(2, 0)
    for body in ("", "float scale(float x) { return x; }"):
        cycle = {"lib/scale.glsl": f"{body}\n#include <b>\n", "b": f'\n\n#include "lib/scale.glsl"\n{body}'}
        with pytest.raises(vd.ShaderBuildError) as caught:
            run(MAIN, cycle)
        message = str(caught.value)
        assert (
            "line 3 of b: files that include each other: lib/scale.glsl, which includes b, which" in message
        )
        assert message.count("ERROR") <= 2
    with pytest.raises(
        vd.ShaderBuildError, match=r"line 1 of lib/scale\.glsl: files that include each other"
    ):
        run(MAIN, {"lib/scale.glsl": '#include "scale.glsl"'})


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (
            None,
            r"line 3 of the source: #include 'lib/scale.glsl': there is no such file; pass its text or its",
        ),
        ({"x": ""}, r"#include 'lib/scale.glsl': there is no such file; searched the texts 'x'$"),
        ([{"x": ""}, {}], r"searched the texts 'x' and the texts \(none\)$"),
        (
            {"lib/scale.glsl": "\n\n#include <gone>\n"},
            "line 3 of lib/scale.glsl: #include 'gone': there is no such file; searched the texts",
        ),
        (
            {"lib/scale.glsl": "float scale(float x) {\n  return y; }"},
            "ERROR: lib/scale.glsl:2: 'y' : undeclared",
        ),
        ({"lib/scale.glsl": "#error why"}, "ERROR: lib/scale.glsl:1: '#error' : why"),
    ],
)
def test_errors_of_what_is_included(texts: Any, text: str, options: dict[str, Any]) -> None:
    with pytest.raises(vd.ShaderBuildError, match=text):
        run(MAIN, texts, **options)


def test_lines_of_the_source_stay_what_they_are() -> None:
    with pytest.raises(vd.ShaderBuildError, match="ERROR: 0:7: 'oops' : undeclared identifier"):
        run(MAIN.replace("scale(data[i])", "oops"), TEXTS, defines={"A": 1})


def test_untrusted_code_stays_in_the_folder(tmp_path: Path) -> None:
    folder = written(tmp_path / "inside", {"lib/scale.glsl": "float scale(float x) { return SECRET * x; }\n"})
    secret = written(tmp_path, {"secret": "#define SECRET 2\n"}) / "secret"
    (folder / "link").symlink_to(secret)
    for name in ("../secret", str(secret), "lib/../../secret", "link"):
        source = MAIN.replace("#include", f"#include <{name}>\n#include")
        assert run(source, folder) == expected(2, 0)
        with pytest.raises(vd.ShaderBuildError, match="there is no such file; searched the folder"):
            run(source, folder, untrusted=True)


def test_bad_includes(tmp_path: Path) -> None:
    for given, error, text in (
        (5, TypeError, "include: expected texts by name, a folder, or a list of these, got int 5"),
        ("nowhere/at/all", ValueError, "include: there is no folder 'nowhere/at/all'"),
        ({"a": b"x"}, TypeError, "include: 'a': expected GLSL text, got bytes"),
        ({"": "x"}, ValueError, "include: expected the name of a file, got ''"),
        ({'a"b': "x"}, ValueError, "include: expected the name of a file"),
        ([TEXTS, 1.5], TypeError, "include: expected"),
    ):
        with pytest.raises(error, match=text):
            run(MAIN, given)
    folder = written(tmp_path, TEXTS)
    (folder / "common.glsl").write_bytes(b"\xff\xfe")
    with pytest.raises(
        vd.ShaderBuildError, match=r"'common.glsl': .*common.glsl cannot be read: 'utf-8' codec"
    ):
        run(MAIN, folder)


def test_too_much(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setattr(includes, "_MAX_INCLUDED", 100)
    with pytest.raises(vd.ShaderBuildError, match="the GLSL of 'big' includes more than"):
        run(MAIN, {"lib/scale.glsl": "\n" * 101}, name="big", **options)
    monkeypatch.undo()
    # each line includes the one before twice: 2**30 lines
    texts = {f"f{n}": f"#include <f{n - 1}>\n#include <f{n - 1}>\n" for n in range(1, 30)} | {
        "f0": "\n" * 1000
    }
    limit = f"more than (64 MiB|{untrusted.SECONDS} s)"
    with pytest.raises(vd.ShaderBuildError, match=limit):
        run(MAIN, {"lib/scale.glsl": "#include <f29>\n", **texts}, **options)


# -- macros

DEFINED = """#version 450
#ifdef WIDE
layout(local_size_x = WIDE) in;
#endif
#ifndef FLAG
#error no FLAG
#endif
layout(binding = 0) buffer Data { float data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = FACTOR * data[i] SHIFT;
}
"""


def test_macros(options: dict[str, Any]) -> None:
    defines = {"WIDE": np.int32(64), "FLAG": None, "FACTOR": 0.25, "SHIFT": "+ 5"}
    assert run(DEFINED, None, defines=defines, **options) == expected(0.25, 5)
    kernel = vd.glsl_kernel(DEFINED, {"data": Buff[f32]}, defines=defines, **options)
    assert kernel.interface.local_size == (64, 1, 1)
    defines = {"FLAG": False, "FACTOR": True, "SHIFT": ""}
    assert run(DEFINED, None, defines=defines, **options) == expected(1, 0)
    texts = {"lib/scale.glsl": "float scale(float x) { return X * x; }"}
    assert run(MAIN, texts, defines={"X": -2}, **options) == expected(-2, 0)


def test_bad_macros() -> None:
    for given, error, text in (
        ([1], TypeError, "defines: expected a dictionary"),
        ({"a b": 1}, ValueError, "defines: 'a b' cannot be the name of a macro"),
        ({"GL_X": 1}, ValueError, "'GL_X' cannot"),
        ({"A__B": 1}, ValueError, "'A__B' cannot"),
        ({5: 1}, ValueError, "5 cannot be"),
        ({"A": float("nan")}, ValueError, "defines: A: expected a finite number"),
        ({"A": "1\n#define B"}, ValueError, "one line of text"),
        ({"A": "1\\"}, ValueError, "one line of text"),
        ({"A": [1]}, ValueError, "defines: A: expected"),
    ):
        with pytest.raises(error, match=text):
            vd.glsl_kernel(DEFINED, {"data": Buff[f32]}, defines=given)
