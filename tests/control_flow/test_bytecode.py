"""Functions that bytecode tells all about, and sources found by their own lines."""

import ast
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.control_flow import source
from vkdispatch.control_flow.source import find_calls


def helper(x: Any) -> Any:
    return x + 1


def straight(data: Any, x: Any) -> Any:
    tid = vc.global_invocation_id().x
    data[tid] += vc.sqrt(x) * 2 - data[tid].to_register()
    y = z = (helper)(x, *[])
    return y - z


def plain(data: Any, x: Any) -> Any:
    tid = vc.global_invocation_id().x
    data[tid] += vc.max(x, helper(x)) * 2 - data[tid + 1].to_register()
    first, second = data.shape.x, -x
    data[tid], data.y[first] = second, f"{x} {data!r}"


def in_place(x: Any) -> Any:
    x += 1
    return x


def swapped(data: Any) -> None:
    data[0], data[1] = data[1], data[0]


def unpacked(data: Any, pair: Any) -> None:
    data[0], data[1] = pair


def component_of_a_local(data: Any) -> None:
    v = data[0]
    v.x = 1


def element_of_a_local(data: Any) -> None:
    v = data[0] * 2
    v[0] = 1


def component_of_an_argument(v: Any) -> None:
    v.x += 1


def element_in_a_list(data: Any) -> None:
    vectors = [data[0], data[1]]
    vectors[0].x = 1


NEEDING_SOURCE = [component_of_a_local, element_of_a_local, component_of_an_argument, element_in_a_list]


def component_of_an_element(data: Any) -> None:
    shared = vc.shared_buffer(vd.vec2, 4)
    data[0].x = 1
    data[1][0] += 2
    shared[2].y = 3
    shared[0] = data[2]


def branch(data: Any) -> None:
    if data:
        data[0] = 1


def choice(x: Any) -> Any:
    return x and 1


def loop(data: Any) -> None:
    for k in range(3):
        data[k] = k


def lists(data: Any) -> Any:
    return [each + 1 for each in data]


def local_call(f: Any, x: Any) -> Any:
    return f(x)


def value_called(table: Any) -> Any:
    return TABLE[0](table)


def method_chain(x: Any) -> Any:
    return vc.abs(x).to_dtype(vd.int32)


TABLE = [helper]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (helper, set()),
        (local_call, {("f",)}),
        (value_called, {()}),
        (swapped, set()),
        (unpacked, set()),
        (component_of_an_element, {("vc", "shared_buffer")}),
        (method_chain, {("vc", "abs"), ("", "to_dtype")}),
    ],
)
def test_calls_found_in_bytecode(function: types.FunctionType, calls: set[tuple[str, ...]]) -> None:
    assert find_calls(function.__code__) == calls


@pytest.mark.parametrize("function", [straight, in_place, branch, choice, loop, lists, *NEEDING_SOURCE])
def test_functions_that_need_their_source(function: types.FunctionType) -> None:
    # `straight` calls with a star
    assert find_calls(function.__code__) is None


def run(function: Callable[..., None]) -> str:
    """Trace a kernel without its source being there to read."""
    return vd.shader(exec_size=4)(function).get_src(build=False, line_numbers=False).code


def test_kernel_without_control_flow_needs_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the source was read")

    monkeypatch.setattr("vkdispatch.control_flow.replacement.find_source", refuse)

    def kernel(data: vc.Buff[vd.float32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = vc.sqrt(data[tid]) * 2 + 1

    assert "sqrt(buf0.data[gid_x]) * 2.0f + 1.0f" in run(kernel)

    def calls(data: vc.Buff[vd.float32]) -> None:
        data[0] = helper(data[0])

    with pytest.raises(AssertionError, match="was read"):
        run(calls)


def functions_of(text: str, file: str) -> list[types.CodeType]:
    pending, found = [compile(text, file, "exec")], []
    while pending:
        code = pending.pop()
        inner = [value for value in code.co_consts if isinstance(value, types.CodeType)]
        pending += inner
        found += [each for each in inner if not each.co_name.startswith("<") and each.co_flags & 2]
    return found


TEXT = textwrap.dedent('''
    import math
    class Outer:
        @staticmethod
        @pytest.mark.skip(
            "why"
        )
        def method(self, x):
            """Text
        of two lines."""
            def inner(y):
                return self.__hidden + y + math.sqrt(x)
            class Inner:
                def deep(self):
                    return self.__hidden
            return (inner(
                x,
            ))
    def lines(x):
        if x:
            return 1
        else:
            # nothing
            pass
    def é(x): return [y for y in x]
''')


def test_function_parsed_alone_equals_its_part_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "made.py"
    file.write_text(TEXT, encoding="utf-8")
    module = {"__name__": "made", "math": __import__("math")}
    codes = functions_of(TEXT, str(file))
    assert {code.co_name for code in codes} == {"method", "inner", "deep", "lines", "é"}
    alone = [source._find_by_lines(code, TEXT.splitlines(keepends=True), module) for code in codes]
    monkeypatch.setattr(source, "_find_by_lines", lambda *_: None)
    for code, found in zip(codes, alone, strict=True):
        expected = source.find_source(code, module)
        assert found is not None, code.co_name
        assert expected is not None, code.co_name
        assert found.class_name == expected.class_name
        assert ast.dump(found.node, include_attributes=True) == ast.dump(
            expected.node, include_attributes=True
        )


def test_source_lines_that_do_not_match_the_bytecode_are_refused() -> None:
    (code,) = functions_of("def f(x):\n    return x + 1\n", "nowhere.py")
    assert source._find_by_lines(code, ["def f(x):\n", "    return x + 2\n"], {}) is None
    assert source._find_by_lines(code, ["def f(x):\n"], {}) is None
    assert source._find_by_lines(code, ["x = 1\n", "    return x + 1\n"], {}) is None
