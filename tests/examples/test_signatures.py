"""Signatures of the reference name types as users write them."""

from __future__ import annotations

import pytest

from tests.examples.docs_modules import load_module

signatures = load_module("signatures")
BUFFER = "~vkdispatch.base.buffer.Buffer"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"(x: {BUFFER}[~typing.Any], n: int = 1)", "(x: ~vkdispatch.Buffer, n: int = 1)"),
        ("(x: ~typing.Any, y: ~typing.Any = None)", "(x, y=None)"),
        (
            "(f: ~collections.abc.Callable[[~typing.Any], int])",
            "(f: ~collections.abc.Callable[[~typing.Any], int])",
        ),
        ("(graph: CommandGraph | None = None)", "(graph: ~vkdispatch.CommandGraph | None = None)"),
        ("(ids: dict = <factory>)", "(ids: dict = ...)"),
    ],
)
def test_names_are_short(text: str, shown: str) -> None:
    assert signatures.shorten(text, signatures.public_names()) == shown


@pytest.mark.parametrize(
    ("function", "text", "shown"),
    [
        (
            "vkdispatch.numpy.sum",
            "(x: ~typing.Any, /, axis: ~typing.Any = None)",
            "(x: ArrayLike, /, axis: AxisLike | None = None)",
        ),
        (
            "vkdispatch.numpy.add",
            "(*operands: ~typing.Any, out: int)",
            "(x1: ArrayLike, x2: ArrayLike, /, out: int)",
        ),
        ("vkdispatch.numpy.einsum", "(*operands: ~typing.Any)", "(*operands: ~typing.Any)"),
        ("vkdispatch.codegen.pow", "(x: ~typing.Any, y: ~typing.Any)", "(x: Value, y: Value)"),
    ],
)
def test_parameters_tell_their_types(function: str, text: str, shown: str) -> None:
    assert signatures.name_types(text, function) == shown


def test_fields_of_records_tell_their_types() -> None:
    class Record:
        count: int
        names: tuple[str, ...]

    shown = signatures.name_fields("(count, names=(), other=1)", Record)
    assert shown == "(count: int, names: tuple[str, ...] = (), other=1)"
