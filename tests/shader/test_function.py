"""`@vd.shader` itself: signatures, source, builds that fail, maps; and random abuse of calls."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Var, f32, f64, i32, v3
from vkdispatch.shader.traced.generation import explain_log

RunPython = Callable[..., subprocess.CompletedProcess[str]]


def zeros(size: Any, host: Any = np.float32) -> vd.Buffer[Any]:
    return vd.asbuffer(np.zeros(size, host))


@vd.shader("data.size")
def increment(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


# -- decoration


def test_the_readme_example(run_python: RunPython) -> None:
    for spelling in ("abbreviations", "abreviations"):
        code = f"""
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.{spelling} import *

# @vd.shader(exec_size=lambda args: args.data.size)
@vd.shader("data.size")
def scale_inplace(data: Buff[f32], alpha: Const[f32]):
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] * alpha

arr = np.arange(16, dtype=np.float32)
buf = vd.asbuffer(arr)
scale_inplace(buf, 2.0)
out = buf.read(0)
print(out.tolist() == (arr * 2).tolist())
"""
        done = run_python(code)
        assert done.stdout.strip() == "True", done.stderr


def test_attributes() -> None:
    kernel = vd.shader("data.size", local_size=64)(_body)
    assert isinstance(kernel, vd.ShaderFunction)
    assert (kernel.name, kernel.exec_size, kernel.local_size, kernel.workgroups) == (
        "_body",
        "data.size",
        64,
        None,
    )
    assert not kernel.ready and kernel.plan is None and kernel.source is None and kernel.bounds is None
    kernel.build()
    plan = kernel.plan
    kernel.build()
    assert kernel.ready and plan is not None and kernel.plan is plan
    assert kernel.bounds is not None and kernel.bounds.local_size == (64, 1, 1)
    assert kernel.source is not None and "void main" in kernel.source
    assert kernel.shader_description.name == "_body"


def _body(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


def test_source(capsys: pytest.CaptureFixture[str]) -> None:
    source = increment.get_src()
    assert source and source.code == increment.source and source.local_size == (256, 1, 1)
    assert "local_size_x = 256" in source.code
    assert repr(increment) == repr(source)
    assert repr(source).startswith("// ======") and "increment" in repr(source).splitlines()[0]
    numbered = increment.get_src(line_numbers=True)
    assert numbered.code.splitlines()[0] == "   1: #version 450"
    vc.set_shader_print_line_numbers(True)
    try:
        assert increment.get_src().code == numbered.code
    finally:
        vc.set_shader_print_line_numbers(False)
    increment.print_src()
    assert source.code in capsys.readouterr().out


def test_source_without_building() -> None:
    kernel = vd.shader("data.size")(_body)
    assert "local_size_x = 256" in kernel.get_src(build=False).code
    assert not kernel.ready


def test_tracing_happens_once_at_the_definition() -> None:
    runs = []

    @vd.shader("data.size")
    def traced(data: Buff[f32]) -> None:
        runs.append(1)
        data[vc.global_invocation_id().x] = 1

    assert len(runs) == 1
    traced(zeros(3))
    traced(zeros(3))
    assert len(runs) == 1


def test_string_annotations() -> None:
    local_type = Buff[f32]
    namespace: dict[str, Any] = {"vd": vd, "vc": vc, "Buff": Buff, "Const": Const, "f32": f32}
    exec(
        "from __future__ import annotations\n"
        "@vd.shader('data.size')\n"
        "def kernel(data: Buff[f32], x: Const[f32] = 2.0):\n"
        "    data[vc.global_invocation_id().x] = x\n",
        namespace,
    )
    data = zeros(3)
    namespace["kernel"](data)
    assert (data.read(0) == 2).all()

    @vd.shader("data.size")
    def local(data: "local_type") -> None:  # noqa: UP037
        data[vc.global_invocation_id().x] = 3

    local(data)
    assert (data.read(0) == 3).all()


def test_a_kernel_may_name_what_comes_later() -> None:
    never = False

    @vd.shader("data.size")
    def named(data: Buff[f32]) -> None:
        if never:
            named(data)  # not there yet while the annotations, texts in this file, are evaluated
        data[vc.global_invocation_id().x] = 3

    data = zeros(4)
    named(data)
    assert (data.read(0) == 3).all()


def test_explicit_annotations() -> None:
    def body(*arguments: Any) -> None:
        arguments[0][vc.global_invocation_id().x] = arguments[1]

    data = zeros(3)
    kernel = vd.shader("param0.size", arg_type_annotations=[Buff[f32], Const[f32]])(body)
    kernel(data, 2.0)
    kernel(data, param1=2.0)
    assert (data.read(0) == 2).all()
    named = vd.shader(
        "out.size",
        arg_type_annotations=[Buff[f32], Const[f32]],
        arg_names=["out", "x"],
        arg_defaults=[None, 7.0],
    )(body)
    named(data)
    assert (data.read(0) == 7).all()


def test_bad_definitions() -> None:
    def missing(data) -> None:  # type: ignore[no-untyped-def]
        pass

    def bare(data: f32) -> None:  # type: ignore[valid-type]
        pass

    def host(data: int) -> None:
        pass

    def variadic(*data: Buff[f32]) -> None:
        pass

    def unknown(data: Nothing[f32]) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    def wrong_origin(data: list[int]) -> None:
        pass

    def alias(data: vd.Buffer[f32]) -> None:  # type: ignore[type-arg, valid-type]
        pass

    for function, error in (
        (missing, ValueError),
        (bare, TypeError),
        (host, TypeError),
        (variadic, ValueError),
        (unknown, TypeError),
        (wrong_origin, ValueError),
        (alias, ValueError),
    ):
        with pytest.raises(error, match="argument"):
            vd.shader(1)(function)
    with pytest.raises(TypeError, match="parentheses"):
        vd.shader(_body)
    with pytest.raises(TypeError, match="function"):
        vd.shader(1)(3)  # type: ignore[arg-type]
    for options in (
        {"arg_names": ["a"]},
        {"arg_defaults": [1]},
        {"arg_type_annotations": [Buff[f32]], "arg_names": ["a", "b"]},
        {"arg_type_annotations": [Buff[f32]], "arg_defaults": []},
        {"arg_type_annotations": [Buff[f32]], "arg_names": ["not a name"]},
    ):
        with pytest.raises(ValueError, match="arg_"):
            vd.shader(1, **options)(_body)  # type: ignore[arg-type]


def test_a_body_that_raises_leaves_tracing_clean() -> None:
    def broken(data: Buff[f32]) -> None:
        with vc.if_block(vc.global_invocation_id().x < 3):
            raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            vd.shader(1)(broken)
    data = zeros(3)
    vd.shader("data.size")(_body)(data)
    assert (data.read(0) == 1).all()


def test_a_python_if_on_a_gpu_value_names_the_line() -> None:
    def branch(data: Buff[f32]) -> None:
        if data[0] > 1:
            data[0] = 2

    with pytest.raises(ValueError, match=r"test_function\.py:\d+"):
        vd.shader(1, rewrite=False)(branch)


def test_make_shader_function() -> None:
    with vc.shader_context() as context:
        (data,) = context.declare_input_arguments([Buff[f32]], ["data"])
        data[vc.global_invocation_id().x] = 4
    kernel = vd.make_shader_function(
        context.get_description("four"), exec_count="data.size", local_size=(32, 1, 1)
    )
    buffer = zeros(5)
    kernel(buffer)
    assert (buffer.read(0) == 4).all()
    with pytest.raises(ValueError, match="not both"):
        vd.make_shader_function(context.get_description(), workgroups=1, exec_count=1)


# -- builds that fail


def _broken_kernel() -> vd.ShaderFunction:
    @vd.shader("data.size")
    def broken(data: Buff[f32]) -> None:
        data[0] = vc.str_to_dtype(vd.float32, "no_such_name")

    return broken


def test_a_failed_build_names_the_line_and_leaves_the_context_usable() -> None:
    kernel = _broken_kernel()
    data = zeros(3)
    for _ in range(2):
        with pytest.raises(vd.ShaderBuildError) as caught:
            kernel(data)
        error = caught.value
        assert isinstance(error, RuntimeError)
        assert "broken (test_function.py:" in str(error)
        place = str(error).partition("\n")[2]
        assert re.match(r"test_function\.py:\d+: 'no_such_name' : undeclared", place)
        assert 'data[0] = vc.str_to_dtype(vd.float32, "no_such_name")\n    ^^^^^^^\n' in place
        assert re.search(r"GLSL: .*data\[0\] = no_such_name;", place)
        assert error.compiler_log is not None and "no_such_name" in error.compiler_log
        assert "no_such_name" in str(error)
        assert isinstance(error.shader_source, vd.ShaderSource)
        assert "   1: #version 450" in error.shader_source.code
        assert error.__cause__ is not None
    with pytest.raises(vd.ShaderBuildError):
        kernel.get_src()
    assert "no_such_name" in kernel.get_src(build=False).code
    increment(data)
    assert (data.read(0) == 1).all()


def test_nothing_goes_to_stdout_when_a_build_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(vd.ShaderBuildError):
        _broken_kernel().build()
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


def test_unsupported_types_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(data: Any) -> None:
        data[0] = data[1]

    monkeypatch.setattr(vd.get_context().device_infos[0], "float_64_support", 0)
    kernel = vd.shader(1, arg_type_annotations=[Buff[vd.float64]])(body)
    with pytest.raises(vd.UnsupportedError, match="float64") as caught:
        kernel.build()
    assert "body (test_function.py:" in str(caught.value)
    assert vd.get_context().device_infos[0].device_name in str(caught.value)


def test_compiler_messages_lead_to_python() -> None:
    source = increment.get_src(build=False)
    line, text = next(each for each in enumerate(source.code.splitlines(), 1) if "+" in each[1])
    loc = source.python_line(line)
    assert loc is not None
    before, _, _ = source.with_line_directives().partition(text)
    begin = before.rindex("#line")
    number, name = re.match(r'#line (\d+) "(.*)"', before[begin:]).groups()  # type: ignore[union-attr]
    assert name == loc.file and int(number) + before[begin:].count("\n") - 1 == loc.line
    log = f"ERROR: {loc.file}:{loc.line}: 'x' : unknown\nERROR: GLSL:1: no\nERROR: 2 errors.\n\n"
    explained = explain_log(source, log)
    assert explained.startswith(f"test_function.py:{loc.line}: 'x' : unknown\n    ")
    assert f"    GLSL: {text.strip()}\n" in explained
    assert "line 1 of the GLSL: no\n    GLSL: #version 450\nERROR: 2 errors." in explained


# -- contexts that go


def test_kernels_survive_their_context(run_python: RunPython) -> None:
    code = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32], x: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + x
old = vd.asbuffer(np.zeros(4, np.float32))
graph = vd.CommandGraph()
add(old, 1.0, graph=graph); add(old, 1.0)
destroy_context()
uses = (lambda: add(old, 1.0), graph.submit, lambda: add(old, 1.0, graph=graph), lambda: old.read(0))
for use in uses:
    try: use()
    except RuntimeError as error: print("refused:", error)
new = vd.asbuffer(np.zeros(4, np.float32))
add(new, 2.0); add(new, 2.0)
assert (new.read(0) == 4).all()
try: add(new, 1.0, graph=graph)
except RuntimeError as error: print("refused:", error)
vd.default_graph(); add(new, 1.0, graph=vd.default_graph())
destroy_context()
newer = vd.asbuffer(np.zeros(4, np.float32))
add(newer, 1.0, graph=vd.default_graph())
assert (newer.read(0) == 1).all()
print("good")
"""
    done = run_python(code)
    assert done.stdout.splitlines()[-1:] == ["good"], done.stderr
    assert done.stdout.count("refused") == 5


def test_a_lost_device_ends_its_context_and_the_next_use_makes_a_new_one(run_python: RunPython) -> None:
    code = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1
old = vd.asbuffer(np.zeros(4, np.float32))
add(old)
context = vd.get_context()
class LostEngine:
    lost = True
    close = context._native.close
context._engine = LostEngine()
new = vd.asbuffer(np.zeros(4, np.float32))
assert vd.get_context() is not context and context.closed and old.destroyed
for use in (lambda: add(old), lambda: old.read(0), lambda: old.write(bytes(4))):
    try: use()
    except vd.DeviceLostError as error: print("lost:", error)
add(new); add(new)
assert (new.read(0) == 2).all()
print("good")
"""
    done = run_python(code)
    assert done.stdout.splitlines()[-1:] == ["good"], done.stdout + done.stderr
    assert done.stdout.count("lost:") == 3


def test_exit_with_work_in_flight_is_silent(run_python: RunPython) -> None:
    code = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1
data = vd.asbuffer(np.zeros(100000, np.float32))
graph = vd.CommandGraph()
for _ in range(50): add(data, graph=graph)
for _ in range(20): graph.submit()
for _ in range(500): add(data)
"""
    done = run_python(code, VKDISPATCH_DEBUG="1")
    # A machine without the validation layer says so, and that is all that may be said.
    spoken = [line for line in done.stdout.splitlines() if "not installed" not in line]
    assert (done.returncode, spoken, done.stderr) == (0, [], "")


# -- maps


def test_maps() -> None:
    @vd.map
    def square(x: Const[f32]) -> vd.float32:  # type: ignore[valid-type]
        return x * x

    @vd.map
    def store(out: Buff[f32], x: Const[f32]) -> None:
        out[vc.global_invocation_id().x] = x

    assert isinstance(square, vd.MappingFunction)
    assert square.return_type is vd.float32 and store.return_type is None
    assert square.buffer_types == [Const[f32]]
    assert square == vd.map(square.mapping_function) and hash(square) == hash(square) and square == square

    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Const[f32]) -> None:
        assert store.callback(out, square.callback(x) + 1) is None

    out = zeros(3)
    kernel(out, 3.0)
    assert (out.read(0) == 10).all()
    again = vd.map(lambda x: x, return_type=vd.float32, input_types=[Const[f32]])
    assert again.return_type is vd.float32 and again.buffer_types == [Const[f32]]


def test_bad_maps() -> None:
    def missing(x) -> None:  # type: ignore[no-untyped-def]
        pass

    def text(x: str) -> None:
        pass

    def odd(x: Const[f32]) -> int:
        return 3

    with pytest.raises(ValueError, match="annotation"):
        vd.map(missing)
    for function in (text, odd, 3):
        with pytest.raises(TypeError):
            vd.map(function)  # type: ignore[arg-type]

    @vd.map
    def nothing(x: Const[f32]) -> vd.float32:  # type: ignore[valid-type]
        pass

    with pytest.raises(ValueError, match="must return"):

        @vd.shader(1)
        def kernel(x: Const[f32]) -> None:
            nothing.callback(x)


# -- abuse


@vd.shader()
def _victim(a: Buff[f32], b: Buff[i32], x: Const[f32], v: Const[v3], n: Var[i32] = 3) -> None:
    a[0] = x + v.x
    b[0] = n


class Odd:
    """An object whose every attribute is a surprise."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.value


_A, _B = zeros(8), zeros(8, np.int32)
_GRAPH = vd.CommandGraph()
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-5, 5)
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.sampled_from(
        [_A, _B, _GRAPH, vd, f32, len, object(), Odd(3), Odd(None), Odd(_A), vd.Buffer, _GRAPH.bind_var("n")]
    )
    | st.sampled_from(
        [
            np.float32(1),
            np.int64(-7),
            np.zeros(3),
            np.zeros((2, 2)),
            np.array("x"),
            np.array(None),
            np.ma.masked,
        ]
    )
)
_ANYTHING = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner, inner), max_leaves=6
)


def victims() -> tuple[Any, Any]:
    """Return two good buffers: the module's, unless another test has destroyed their context."""
    global _A, _B
    if _A.context is not vd.get_context():
        _A, _B = zeros(8), zeros(8, np.int32)
    return _A, _B


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    args=st.lists(_ANYTHING, max_size=6),
    named=st.dictionaries(st.sampled_from(["a", "b", "x", "v", "n", "graph", "q"]), _ANYTHING, max_size=3),
    size=st.dictionaries(
        st.sampled_from(["exec_size", "workgroups"]), st.integers(-1, 4) | _ANYTHING, max_size=2
    ),
    good=st.booleans(),
)
def test_random_abuse(args: list[Any], named: dict[str, Any], size: dict[str, Any], good: bool) -> None:
    if good:
        args = [*victims(), *args]
    huge = any(isinstance(value, int) and abs(value) > 1000 for value in size.values())
    if huge or any(isinstance(value, (tuple, np.ndarray, np.generic)) for value in size.values()):
        size = {"exec_size": 1}
    try:
        _victim(*args, **{**named, **size})
    except vd.VkDispatchError:
        pass
    except Exception as error:
        # What a computed launch size raises is the caller's own.
        assert any("while computing" in note for note in getattr(error, "__notes__", []))
    _victim(*victims(), 1.0, (1, 2, 3), exec_size=1)
    vd.queue_wait_idle()


def test_after_the_abuse_all_is_well() -> None:
    a, b = victims()
    _victim(a, b, 1.0, (1, 2, 3), 9, exec_size=1)
    assert a.read(0)[0] == 2 and b.read(0)[0] == 9
    assert f64 is vd.float64


def test_more_shared_memory_than_there_is() -> None:
    @vd.shader(4)
    def hoard(data: Buff[f32]) -> None:
        shared = vc.shared_buffer(f32, 1 << 20)
        shared[0] = data[0]
        data[0] = shared[0]

    with pytest.raises(ValueError, match=r"hoard.*shared buffers take 4194304 bytes"):
        hoard(vd.asbuffer(np.zeros(4, np.float32)))


def test_a_kernel_inside_a_kernel_is_refused() -> None:
    def outer(data: Buff[f32]) -> None:
        increment(data)

    with pytest.raises(RuntimeError, match="cannot call another one"):
        vd.shader(1)(outer)
