"""Parameters that a docstring describes together are one item of the reference."""

from __future__ import annotations

import pytest

from tests.examples.docs_modules import load_module

pytest.importorskip("sphinx")


def test_fields_with_one_text_are_merged() -> None:
    lines = [
        ":param x: As of `mean`.",
        "    Or so.",
        ":param axis: As of `mean`.",
        "    Or so.",
        ":param n: 3",
        "",
        "End.",
    ]
    expected = [":param x,axis: As of `mean`.", "    Or so.", ":param n: 3", "", "End."]
    assert load_module("merged_parameters").merge(lines) == expected
