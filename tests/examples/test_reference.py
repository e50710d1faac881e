"""The reference is complete, and the GLSL that it shows for every function and type compiles."""

from __future__ import annotations

import re

import pytest

import vkdispatch.codegen as vc
import vkdispatch_native as native
from tests.examples.docs_modules import load_module
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.compiler.analyses.verify import verify

pytest.importorskip("docutils")
pytest.importorskip("sphinx")


reference = load_module("reference")
NAMES = [name for _, _, names in reference.sections() for name in names]


def test_every_function_is_listed_once() -> None:
    assert len(NAMES) == len(set(NAMES)) > 250
    functions = {name for name in vc.__all__ if re.match("(to|new|subgroup|atomic|pack|bit|if|else)_", name)}
    assert functions <= set(NAMES)
    for name in NAMES:
        assert getattr(vc, name).__doc__, name


def _register(name: str, kind: DType) -> vc.ShaderVariable:
    """Declare a value, so that the whole kernel compiles."""
    if kind is dt.bool_:
        return vc.new_int_register(0, var_name=name) > 0
    return vc.new_register(kind, var_name=name)


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_reference_compile(name: str) -> None:
    rows = reference.rows(name)
    assert rows, "it takes no type at all"
    assert reference.table(name)
    # what differs in the size of vectors alone is compiled once
    for row in {reference.unsized(row): row for row in rows}.values():
        description = reference.trace(name, row.kind, _register).context.get_description()
        verify(description.kernel)
        native.compile_glsl(description.make_source(64, 1, 1))
