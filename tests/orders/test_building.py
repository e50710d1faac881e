"""Builds: compiler messages and their lines, the choice of the compiler, and stored libraries."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.orders.here import missing, require
from tests.orders.tasks import HOST
from vkdispatch.base import process as logging
from vkdispatch.base.compilation import disk_cache
from vkdispatch.orders import Accel, Order, OrderBuildError, library

FINE = np.zeros(3)


def _error(
    text: str, *args: object, kind: str | list[str] | None = None, **options: object
) -> OrderBuildError:
    with pytest.raises(OrderBuildError) as caught:
        Accel(*args, Order(text), FINE, kind=kind, **options)  # type: ignore[arg-type]
    error = caught.value
    assert all(attempt.message in str(error).replace("\n    ", "\n") for attempt in error.attempts)
    return error


def _failure(text: str, *args: object, kind: str | list[str] | None = None, **options: object) -> str:
    return str(_error(text, *args, kind=kind, **options))


def test_messages_of_compilers_have_the_lines_of_the_order() -> None:
    text = """
    set_argnames("x", "y")
    [cpp, openmp_cpp, openacc_cpp, omptarget_cpp]
    #include <vector>
        int fine;
        y(0) = nothing_cpp;
    [fortran, openmp_fortran, openacc_fortran, omptarget_fortran]
        integer i

        y(1) = nothing_fortran
    """
    error = _error(text, FINE)
    assert sorted(attempt.model for attempt in error.attempts) == sorted(HOST)
    for attempt in error.attempts:
        said = attempt.message
        if missing(attempt.model):
            assert "no compiler" in said
        elif attempt.model.endswith("cpp"):
            assert "<order>:6:12: error: " in said
            assert "y(0) = nothing_cpp;" in said
        else:
            assert "<order>:10:" in said
            assert re.search(r"Symbol .nothing_fortran. at \(1\) has no IMPLICIT type", said)
        assert "accelpy.cpp" not in said
        assert "accelpy.F90" not in said
    models = [line.split(" ", 1)[0] for line in str(error).splitlines() if "(section of line " in line]
    assert sorted(models) == sorted(HOST)


def test_messages_name_the_file_of_an_order(tmp_path: Path) -> None:
    path = tmp_path / 'my "first".ord'
    path.write_text('set_argnames("x", "y")\n[cpp]\n#include <no_such_header>\ny(0) = x(0);\n')
    with pytest.raises(OrderBuildError, match=r'my "first".ord:3:10: fatal error: no_such_header') as caught:
        Accel(FINE, Order(path), FINE)
    attempt = caught.value.attempts[0]
    assert (attempt.model, attempt.line) == ("cpp", 2)


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("cpp", "x(0) = 1;", "read-only"),
        ("cpp", "y(0) = x(0, 0);", "as many indices as its array has dimensions"),
        ("cpp", "}", "error"),
        ("cpp", "{", "error"),
        ("cpp", 'y(0) = R"(', "error"),
        ("fortran", "x(1) = 1", "INTENT"),
        ("fortran", "y(1) = x(1, 1)", "Rank mismatch"),
        ("fortran", "end block", "Error"),
        ("fortran", "contains", "Error"),
        ("fortran", "y = 'text", "Error"),
        ("cuda", "x(0) = 1;", "<order>(3): error"),
        ("cuda", "y(0) = x(0, 0);", "as many indices as its array has dimensions"),
        # errors in the code around the body
        ("cpp", "}", "The messages name no line of the order"),
        ("fortran", "integer i\ndo i = 1, 3", "<order>:4:"),
        ("fortran", "call no_such_function()", "cannot be loaded: undefined symbol: no_such_function_"),
    ],
)
def test_errors_of_bodies(kind: str, body: str, said: str) -> None:
    require(kind)
    text = f'set_argnames("x", "y")\n[{kind}]\n{body}\n'
    assert said in _failure(text, FINE, kind=kind)


def test_reserved_argument_names_raise() -> None:
    text = 'set_argnames("{}", "{}")\n[cpp]\n[fortran]\n'
    assert "new is a keyword of C++" in _failure(text.format("new", "y"), FINE, kind="cpp")
    assert "Y and y have the same name in Fortran" in _failure(text.format("Y", "y"), FINE, kind="fortran")
    assert "_y is not valid in Fortran" in _failure(text.format("x", "_y"), FINE, kind="fortran")
    assert "is not valid in Fortran" in _failure(text.format("x" * 60, "y"), FINE, kind="fortran")
    # another language may accept the name
    accel = Accel(FINE, Order(text.format("Y", "y")), FINE)
    assert accel.model == "cpp"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("openmp_cpp", "#pragma omp fro"),
        ("omptarget_cpp", "  # pragma omp distribut parallel"),
        ("openacc_cpp", "#pragma acc lop"),
    ],
)
def test_directives_that_a_compiler_ignores_are_errors(kind: str, body: str) -> None:
    loop = "for (int i = 0; i < x.size; i++) y(i) = x(i);"
    said = _failure(f'set_argnames("x", "y")\n[{kind}]\n\n{body}\n{loop}\n', FINE, kind=kind)
    assert "<order>:4" in said
    assert " ".join(body.split()[-2:]) in said
    # directives of other models or compilers, and harmless ones, are not errors
    fine = f"#pragma unroll\n#pragma {'omp' if 'acc' in kind else 'acc'} nothing_of_ours\n{loop}\n"
    assert Accel(FINE, Order(f'set_argnames("x", "y")\n[{kind}, cpp]\n{fine}'), FINE, kind=kind).model == kind


def test_a_backslash_at_the_end_of_a_body() -> None:
    y = np.zeros(3)
    with Accel(Order('set_argnames((), "y")\n[cpp]\ny(0) = 1; \\\n'), y) as accel:
        accel.run()
    assert y[0] == 1


@pytest.mark.parametrize("kind", ["openmp_fortran", "omptarget_fortran"])
def test_arguments_with_names_of_functions(kind: str) -> None:
    require(kind)
    body = "distribute parallel do" if kind == "omptarget_fortran" else "do"
    text = f"""set_argnames(("min", "int"), "max")
[{kind}]
integer i
!$omp {body}
do i = 1, 3
    max(i) = min(i) + int(i)
end do
"""
    y = np.zeros(3)
    with Accel(np.arange(3.0), np.ones(3), Order(text), y, kind=kind) as accel:
        accel.run(2)
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_unsupported_arguments_in_fortran() -> None:
    text = "[fortran]\n[cpp]\n"
    assert "accelpy_in0 has the dtype float16" in _failure(text, np.float16(1), kind="fortran")
    many = np.zeros((1,) * 16)
    assert "accelpy_in0 has 16 dimensions" in _failure(text, many, kind="fortran")
    assert Accel(many, Order(text), FINE).model == "cpp"


def test_skipped_sections_with_errors_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[cpp]\naccelpy_out0(0) = 1;\n[openmp_cpp]\nnothing\n[hip: compile='no-such-compiler']\nnothing\n"
    accel = Accel(Order(text), FINE)
    assert accel.model == "cpp"
    assert [attempt.model for attempt in accel.attempts] == ["hip", "openmp_cpp"]
    told = capsys.readouterr().out
    assert "<order>: openmp_cpp is skipped because of errors" in told
    # a missing compiler is not an error of the order
    assert "hip is left out" not in told
    logging.set_log_level(logging.LogLevel.INFO)
    try:
        Accel(Order(text), FINE)
    finally:
        logging.set_log_level(logging.LogLevel.WARNING)
    told = capsys.readouterr().out
    assert "hip cannot be built: " in told
    assert f"cpp, by {accel._program.description}" in told


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def _counting(folder: Path) -> tuple[str, Callable[[], int]]:
    """Return a compiler that counts its compilations, and a function that returns the count."""
    log = folder / "log"
    real = shutil.which("g++")
    script = _script(folder / "counting-g++", f'[ "$1" = --version ] || echo >>"{log}"\nexec {real} "$@"')
    return script, lambda: log.read_text().count("\n") if log.exists() else 0


def test_a_library_is_built_once_for_dtypes_and_ranks(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    compiler, count = _counting(tmp_path)
    text = 'set_argnames("x", "y")\n[cpp]\nfor (int i = 0; i < x.size; i++) y(i) = x(i);\n'

    def make(dtype: str, size: int, *, words: str = "", body: str = "") -> None:
        x, y = np.arange(size).astype(dtype), np.zeros(size, dtype)
        with Accel(x, Order(text + body), y, compile=compiler + words) as accel:
            accel.run()
        np.testing.assert_array_equal(x, y)

    make("f8", 5)
    assert count() == 2  # with the self-test
    make("f8", 17)
    make("f8", 0)
    make("d", 3)
    assert count() == 2
    make("f4", 5)
    assert count() == 3
    make("f4", 5, body="// other\n")
    assert count() == 4
    make("f4", 5, words=" -O1")
    assert count() == 6
    assert disk_cache.entries()["orders"].count >= 6
    # another process uses the stored libraries
    code = f"""
import numpy as np
from vkdispatch.orders import Accel, Order
y = np.zeros(9)
accel = Accel(np.ones(9), Order({text!r}), y, compile={compiler!r})
accel.run(); accel.stop()
assert y.sum() == 9
"""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert count() == 6
    # a process without a cache builds them again
    done = run_python(code, VKDISPATCH_CACHE="off")
    assert (done.returncode, done.stderr) == (0, "")
    assert count() == 8


def test_concurrent_builds_in_several_processes(tmp_path: Path) -> None:
    code = """
import numpy as np
from vkdispatch.orders import Accel, Order
y = np.zeros(9)
accel = Accel(Order("[cpp]\\nfor (int i = 0; i < 9; i++) accelpy_out0(i) = i;\\n"), y)
accel.run(); accel.stop()
assert y.tolist() == list(range(9))
"""
    environment = {**os.environ, "VKDISPATCH_CACHE": str(tmp_path)}
    made = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
    assert [process.wait(120) for process in made] == [0, 0]


def test_damaged_libraries_are_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    compiler, count = _counting(tmp_path / "bin")
    for expected in (2, 4):
        monkeypatch.setattr(library, "_loaded", {})
        monkeypatch.setattr(library, "_tested", set())
        with Accel(Order("[cpp]\naccelpy_out0(0) = 4;\n"), FINE, compile=compiler) as accel:
            accel.run()
        assert FINE[0] == 4
        assert count() == expected
        for path in (tmp_path / "cache" / "orders").iterdir():
            path.write_bytes(path.read_bytes()[:-7])


def test_compilers_are_tried_in_order(tmp_path: Path) -> None:
    text = "[cpp]\naccelpy_out0(0) = VALUE;\n"
    broken = _script(tmp_path / "broken", '[ "$1" = --version ] || { echo "it is broken" >&2; exit 3; }')
    silent = _script(tmp_path / "silent", "exit 0")
    # compiles, but the result copies nothing
    change = "sed -i 's/y(i) = x(i)/{}/' accelpy.cpp 2>/dev/null; exec g++ \"$@\""
    wrong = _script(tmp_path / "wrong", change.format("y(i) = 5"))
    dying = _script(tmp_path / "dying", change.format("std::abort()"))
    with Accel(Order(text), FINE, compile=[broken, silent, "g++ -DVALUE=11"]) as accel:
        accel.run()
    assert FINE[0] == 11
    for command, said in (
        (broken, "it is broken"),
        (silent, "no library from"),
        (wrong, "its self-test failed: the copy of an array differs from the array"),
        (dying, "its self-test failed: exit status -6"),
        ("no-such-compiler -O1", "compile: there is no program no-such-compiler here"),
    ):
        assert said in _failure(text, kind="cpp", compile=command)
    # the choice of a header, and that of the call, which has precedence
    chosen = "[cpp: compile='g++ -DVALUE=12']\naccelpy_out0(0) = VALUE;\n"
    for words, value in ((None, 12), ("g++ -DVALUE=13", 13)):
        with Accel(Order(chosen), FINE, compile=words) as accel:
            accel.run()
        assert FINE[0] == value


def test_a_vendor_stands_for_its_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """[cpp, openmp_cpp]
    accelpy_out0(0) = VALUE;
[fortran, openmp_fortran]
    accelpy_out0(1) = VALUE
"""
    monkeypatch.setenv("CXX", "no-such-compiler")
    for kind in ("cpp", "openmp_cpp", "fortran", "openmp_fortran"):
        require(kind)
        for compile_, value in (
            ("gnu -DVALUE=2", 2),
            (["gnu {default} -O1 -DVALUE=3"], 3),
            # missing compilers are skipped
            (["cray -DVALUE=4", "gnu -DVALUE=5"], 5),
        ):
            with Accel(Order(text), FINE, kind=kind, compile=compile_) as accel:  # type: ignore[arg-type]
                accel.run()
            assert FINE[0] == value
            assert accel._program.description.startswith("gfortran" if "fortran" in kind else "g++")
    # in a section's header too
    chosen = "[cpp: compile='gnu -DVALUE=12']\naccelpy_out0(0) = VALUE;\n"
    with Accel(Order(chosen), FINE) as accel:
        accel.run()
    assert FINE[0] == 12
    # a path is always a program
    _script(tmp_path / "gnu", f'exec {shutil.which("g++")} -DVALUE=14 "$@"')
    with Accel(Order(text), FINE, kind="cpp", compile=str(tmp_path / "gnu")) as accel:
        accel.run()
    assert FINE[0] == 14


# Options of vendors, and their equivalents for g++ and gfortran.
_WORDS = {"-eZ": "-cpp", "-fpp": "-cpp", "-qsuffix=cpp=F90": "-cpp", "omp,noacc": "-fopenmp", "-h": ""}
_WORDS |= {
    "-ffree": "-ffree-form",
    "-free": "-ffree-form",
    "-qfree=f90": "-ffree-form",
    "-qsmp=omp": "-fopenmp",
}
_WORDS |= {"-qpic": "-fPIC", "-qmkshrobj": "-shared", "-qopenmp": "-fopenmp", "-mp": "-fopenmp"}


@pytest.mark.parametrize(
    ("vendor", "kind", "name", "version", "told"),
    [
        ("cray", "fortran", "ftn", "Cray Fortran : Version 15.0.1", "-eZ -ffree -fPIC -shared"),
        ("cray", "openmp_fortran", "crayftn", "Cray Fortran : Version 15.0.1", "-h omp,noacc"),
        (
            "ibm",
            "openmp_fortran",
            "xlf2003_r",
            "IBM XL Fortran for Linux, V16.1.1",
            "-qpic -qmkshrobj -qsmp=omp",
        ),
        ("intel", "fortran", "ifx", "ifx (IFX) 2024.1.0, Intel Corporation", "-fpp -free"),
        ("cray", "cpp", "CC", "Cray clang version 15.0.1", "-fPIC"),
        ("amd", "openmp_cpp", "clang++", "AMD clang version 17.0.0", "-fopenmp"),
        ("ibm", "cpp", "ibm-clang++_r", "IBM Open XL C/C++ 17.1.1, clang version 15.0.0", "-fPIC"),
        ("nvidia", "openmp_cpp", "nvc++", "nvc++ 24.5-1, NVIDIA Compilers and Tools", "-mp"),
        ("pgi", "cpp", "pgc++", "pgc++ 20.4-0, PGI Compilers and Tools", "-fPIC"),
        ("intel", "openmp_cpp", "icpc", "icpc (ICC) 2021.4.0, Intel Corporation", "-qopenmp"),
    ],
)
def test_compilers_of_vendors(
    vendor: str,
    kind: str,
    name: str,
    version: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each vendor's compiler is a script that calls g++ or gfortran and stores its options."""
    require(kind)
    fortran = kind.endswith("fortran")
    real = f"{shutil.which('gfortran')} -ffree-line-length-none" if fortran else shutil.which("g++")
    cases = "".join(f'{word}) words="$words {ours}";;\n' for word, ours in _WORDS.items())
    _script(
        tmp_path / name,
        f"""[ "$1" = --version ] && {{ echo "{version}"; exit 0; }}
echo "$@" >"{tmp_path}/told"
words=
for word in "$@"; do
case "$word" in {cases}*) words="$words $word";; esac
done
exec {real} $words""",
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    body = "accelpy_out0(1) = 5" if fortran else "accelpy_out0(0) = 5;"
    FINE[0] = 0
    with Accel(Order(f"[{kind}]\n{body}\n"), FINE, compile=f"{vendor} -DSAID") as accel:
        accel.run()
    assert FINE[0] == 5
    assert name in accel._program.description
    assert {*told.split(), "-DSAID"} <= set((tmp_path / "told").read_text().split())


def test_vendors_without_a_compiler_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = "[cpp, fortran, hip, cuda, glsl]\n"
    for kind, command, said in (
        ("cpp", "cray", "compile: there is no program CC, crayCC here"),
        (
            "fortran",
            ["ibm -O2", "pgi"],
            "compile: there is no program xlf2008_r, .*, pgfortran, nvfortran here",
        ),
        ("hip", "gnu", "compile: gnu has no compiler for HIP"),
        (
            "cuda",
            ["intel", "cray"],
            "intel has no compiler for CUDA\n *compile: cray has no compiler for CUDA",
        ),
        ("glsl", "gnu", "compile: gnu was named, but this model has a built-in compiler"),
    ):
        assert re.search(said, _failure(text, kind=kind, compile=command))
    _script(tmp_path / "CC", "echo something else")
    assert "something else) is not a compiler of cray" in _failure(text, kind="cpp", compile="cray")


def test_a_compiler_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ -DVALUE=21")
    with Accel(Order("[cpp]\naccelpy_out0(0) = VALUE;\n"), FINE) as accel:
        accel.run()
    assert FINE[0] == 21
    # a missing compiler is skipped
    monkeypatch.setenv("CXX", "no-such-compiler")
    Accel(Order("[cpp]\naccelpy_out0(0) = 2;\n"), FINE)


def test_missing_compilers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CXX", "FC", "CUDACXX", "HIPCXX", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH"):
        monkeypatch.delenv(variable, raising=False)
    said = _failure("[cpp, fortran, openacc_cpp, hip]\n")
    assert "cpp (section of line 1): no compiler found: looked for g++, clang++" in said
    assert "on PATH and for CXX; install Debian's package g++" in said
    assert "fortran (section of line 1): no compiler found: looked for gfortran" in said
    assert (
        "hip (section of line 1): no compiler found: looked for hipcc on PATH and for HIPCXX; install" in said
    )


def test_a_compiler_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkdispatch.orders.compilers.TIMEOUT_SECONDS", 0.2)
    slow = _script(tmp_path / "slow", '[ "$1" = --version ] && exec g++ --version\nexec sleep 20')
    assert "no result after 0.2 s" in _failure("[cpp]\n", compile=slow)
