"""The reference of the kernel language, made from the code: what each function takes, gives and becomes.

Every function of `vkdispatch.codegen.functions` and `.execution` is called on a value of every type, in a
trace of its own. What it refuses is left out; the GLSL that it records is shown. `.. kernel-language::` puts
it all on a page.
"""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sections import parse_sections
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError

SECTIONS = {
    "functions.arithmetic": "Numbers",
    "functions.trigonometry": "Powers, exponentials, angles, and functions beyond GLSL",
    "functions.bits": "Bits and packing",
    "functions.vectors": "Vectors, matrices and conversions",
    "functions.complex_numbers": "Complex numbers",
    "execution.registers": "Registers and shared memory",
    "execution.control_flow": "Control flow",
    "execution.invocation": "Built-in values, barriers and atomics",
    "functions.index_raveling": "Indices",
    "execution.subgroups": "Subgroups",
    "execution.printing": "Printing",
}
KINDS: tuple[DType, ...] = (
    *(dt.bool_, dt.int16, dt.uint16, dt.int32, dt.uint32, dt.int64, dt.uint64),
    *(dt.float16, dt.float32, dt.float64, dt.complex32, dt.complex64, dt.complex128),
    *(dt.ihvec2, dt.ihvec3, dt.ihvec4, dt.uhvec2, dt.uhvec3, dt.uhvec4, dt.ivec2, dt.ivec3, dt.ivec4),
    *(dt.uvec2, dt.uvec3, dt.uvec4, dt.hvec2, dt.hvec3, dt.hvec4, dt.vec2, dt.vec3, dt.vec4),
    *(dt.dvec2, dt.dvec3, dt.dvec4, dt.mat2, dt.mat3, dt.mat4),
)
# What parameters of these names are given, whatever the type of the others.
_FIXED: dict[str, DType | int] = {
    "angle": dt.float32,
    "ballot": dt.uvec4,
    "bits": dt.int32,
    "condition": dt.bool_,
    "delta": dt.uint32,
    "exponent": dt.int32,
    "lane": dt.uint32,
    "mask": dt.uint32,
    "offset": dt.int32,
    "ratio": dt.float32,
    "size": 4,
}
_LONGEST = 100
_DECLARED = re.compile(r"\w+ \w+ = ([^\n]*);")
_CALLED = re.compile(r"\b([A-Za-z]\w*)\(")
_TYPE_OF_SIZE = re.compile(r"\b([a-z0-9]*(?:vec|mat))[234]\b")

Values = Callable[[str, DType], vc.ShaderVariable]
Example = Callable[[Any, Values], Any]


def _inside(block: Callable[..., AbstractContextManager[Any]], *args: Any) -> None:
    with block(*args):
        vc.comment("...", preceding_new_line=False)


def _after_if(f: Callable[..., AbstractContextManager[Any]], value: Values, *args: Any) -> None:
    _inside(vc.if_block, value("a", dt.bool_))
    _inside(f, *args)


def _in_loop(f: Callable[[], None], value: Values) -> None:
    with vc.while_block(value("a", dt.bool_)):
        f()


def _in_switch(f: Callable[..., AbstractContextManager[Any]], value: Values, *args: Any) -> None:
    with vc.switch_block(value("x", dt.int32)):
        _inside(f, *args)


def _switch(f: Callable[..., AbstractContextManager[Any]], x: vc.ShaderVariable) -> None:
    with f(x):
        _inside(vc.case_block, 1, 2)
        _inside(vc.default_block)


def _by_hand(f: Callable[..., Any], *args: Any) -> None:
    f(*args)
    vc.comment("...", preceding_new_line=False)
    vc.end()


def _branch_by_hand(f: Callable[..., Any], value: Values, *args: Any) -> None:
    vc.if_statement(value("a", dt.bool_))
    vc.comment("...", preceding_new_line=False)
    _by_hand(f, *args)


def _of_table(f: Callable[..., Any], value: Values) -> vc.ShaderVariable:
    import numpy as np  # the one function that needs it

    return f(np.ones((4, 5), np.float32))[1, 2]


def _conditions(value: Values) -> tuple[vc.ShaderVariable, vc.ShaderVariable]:
    return value("a", dt.bool_), value("b", dt.bool_)


# How to call what does not take values of one type.
EXAMPLES: dict[str, Example] = {
    "all": lambda f, v: f(*_conditions(v)),
    "any": lambda f, v: f(*_conditions(v)),
    "break_statement": _in_loop,
    "case_block": lambda f, v: _in_switch(f, v, 1, 2),
    "comment": lambda f, v: f("text"),
    "constant_array": _of_table,
    "continue_statement": _in_loop,
    "default_block": _in_switch,
    "else_block": _after_if,
    "else_if_all": lambda f, v: _branch_by_hand(f, v, *_conditions(v)),
    "else_if_any": lambda f, v: _branch_by_hand(f, v, *_conditions(v)),
    "else_if_block": lambda f, v: _after_if(f, v, v("b", dt.bool_)),
    "else_if_statement": lambda f, v: _branch_by_hand(f, v, v("b", dt.bool_)),
    "else_statement": _branch_by_hand,
    "end": lambda f, v: (vc.if_statement(v("a", dt.bool_)), f())[-1],
    "for_block": lambda f, v: _inside(f, v("start", dt.int32), v("stop", dt.int32)),
    "for_statement": lambda f, v: _by_hand(f, v("stop", dt.uint32)),
    "if_all": lambda f, v: _by_hand(f, *_conditions(v)),
    "if_any": lambda f, v: _by_hand(f, *_conditions(v)),
    "if_block": lambda f, v: _inside(f, v("a", dt.bool_)),
    "if_statement": lambda f, v: _by_hand(f, v("a", dt.bool_)),
    "local_array": lambda f, v: f(dt.float32, 4)[v("i", dt.uint32)],
    "logical_and": lambda f, v: f(*_conditions(v)),
    "logical_or": lambda f, v: f(*_conditions(v)),
    "new_register": lambda f, v: f(dt.vec2, v("x", dt.float32), 1),
    "new_scope": lambda f, v: _by_hand(f),
    "print": lambda f, v: f("x is", v("x", dt.float32)),
    "printf": lambda f, v: f("x is %f", v("x", dt.float32)),
    "ravel_index": lambda f, v: f(v("index", dt.uint32), (4, 5)),
    "reinterpret": lambda f, v: f(dt.uint32, v("x", dt.float32)),
    "return_statement": lambda f, v: f(),
    "scope_block": lambda f, v: _inside(f),
    "shared_buffer": lambda f, v: f(dt.float32, (4, 5))[1, 2],
    "str_to_dtype": lambda f, v: f(dt.float32, "gl_GlobalInvocationID.x * 0.5"),
    "subgroup_quad_broadcast": lambda f, v: f(v("x", dt.float32), 2),
    "switch_block": lambda f, v: _switch(f, v("x", dt.int32)),
    "to_dtype": lambda f, v: f(dt.ivec2, v("x", dt.vec2)),
    "unravel_index": lambda f, v: f(v("index", dt.uvec2), (4, 5)),
    "while_block": lambda f, v: _inside(f, v("a", dt.bool_)),
    "while_statement": lambda f, v: _by_hand(f, v("a", dt.bool_)),
}


@dataclass(frozen=True)
class Row:
    """What a function makes of a value of type `kind`; None where it takes no such value.

    `results` are the types it gives, none for a statement.
    """

    kind: DType | None
    results: tuple[DType, ...]
    glsl: str


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """Title, introduction and public functions of each module of the language."""
    for module_name, title in SECTIONS.items():
        module = importlib.import_module(f"vkdispatch.codegen.{module_name}")
        names = [name for name in vc.__all__ if _home(name, module_name, vars(module))]
        yield title, inspect.getdoc(module) or "", names


def _home(name: str, module_name: str, members: dict[str, Any]) -> bool:
    value = getattr(vc, name)
    # `range` is for the `for` statement of plain Python, which no single call shows
    if name == "range" or members.get(name) is not value or isinstance(value, type):
        return False
    # functions made by a maker elsewhere count for the module that names them
    defined = value.__module__.removeprefix("vkdispatch.codegen.")
    return defined in (module_name, "functions.elementwise")


@dataclass
class Trace:
    """One call of a function, recorded."""

    context: vc.ShaderContext
    result: Any


def _named(name: str, kind: DType) -> vc.ShaderVariable:
    """Take a name as a value, as a reader would write it."""
    return vc.str_to_dtype(kind, name, lexical_unit=True)


def trace(name: str, kind: DType | None, value: Values = _named) -> Trace:
    """Call a function on values of a type, or as its example says. Raises VkDispatchError if it refuses."""
    function = getattr(vc, name)
    with vc.shader_context() as context:
        if name in EXAMPLES:
            result = EXAMPLES[name](function, value)
        else:
            result = function(*_arguments(function, kind, value, context))
        values = result if isinstance(result, tuple) else (result,)
        if value is not _named:
            for each in values:
                if isinstance(each, vc.ShaderVariable):
                    each.to_register()
        return Trace(context, result)


def _arguments(function: Any, kind: DType | None, value: Values, context: vc.ShaderContext) -> Iterator[Any]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            continue
        name = parameter.name
        fixed = _FIXED.get(name, kind)
        if name == "args" and kind is None:
            return
        if name == "mem":
            assert kind is not None
            (buffer,) = context.declare_input_arguments([vc.Buff[kind]])
            yield buffer[value("i", dt.uint32)]
        elif isinstance(fixed, int):
            yield fixed
        else:
            assert fixed is not None
            yield value("x" if name == "args" else name, fixed)


@functools.cache
def rows(name: str) -> tuple[Row, ...]:
    """Return what a function makes of each type that it takes."""
    found = []
    for kind in _kinds(name):
        try:
            traced = trace(name, kind)
        except VkDispatchError:
            if kind is None:
                raise
            continue
        values = traced.result if isinstance(traced.result, tuple) else (traced.result,)
        values = tuple(value for value in values if isinstance(value, vc.ShaderVariable))
        found.append(Row(kind, tuple(value.var_type for value in values), _glsl(traced, values)))
    return tuple(found)


def _kinds(name: str) -> tuple[DType | None, ...]:
    """Types to try, or None once where a function does not depend on one."""
    if name in EXAMPLES:
        return (None,)
    parameters = inspect.signature(getattr(vc, name)).parameters.values()
    free = [p.name for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    if name.endswith("_register"):
        return (None,)
    return KINDS if any(each not in _FIXED for each in free) else (None,)


def _glsl(traced: Trace, values: tuple[vc.ShaderVariable, ...]) -> str:
    recorded = traced.context.builder.contents.strip("\n")
    texts = [value.name for value in values]
    lines = [line.removeprefix("    ") for line in recorded.splitlines()]
    alone = _DECLARED.fullmatch(recorded.strip())
    if alone and len(values) == 1:
        # the value itself, without the register that holds it
        return alone[1]
    return "\n".join(lines or texts)


def table(name: str) -> list[str]:
    """Lines of reStructuredText: what a function takes, gives and becomes."""
    every = rows(name)
    if len(every) == 1 and every[0].kind is None:
        return _plain(every[0])
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - takes", "     - gives", "     - GLSL"]
    for (gives, parts), kinds in _alike(every).items():
        lines += [f"   * - {', '.join(kinds)}", f"     - {gives}"]
        lines += [f"     - | {parts[0]}", *(f"       | {part}" for part in parts[1:])]
    return [*lines, ""]


def _plain(row: Row) -> list[str]:
    gives = [f"Gives {', '.join(kind.name for kind in row.results)}.", ""] if row.results else []
    return [*gives, ".. code-block:: c", "", *(f"   {line}" for line in row.glsl.splitlines()), ""]


def _alike(every: tuple[Row, ...]) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Types by what becomes of them; vectors and matrices of all sizes count as one where they are alike."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in every:
        assert row.kind is not None
        glsl, results = unsized(row)
        gives = ", ".join(results) or "nothing"
        name = _TYPE_OF_SIZE.sub(r"\1N", row.kind.name)
        if set(results) == {name}:
            gives = ", ".join(["the same"] * len(results))
        kinds = found.setdefault((gives, tuple(_shortened(glsl))), [])
        if name not in kinds:
            kinds.append(name)
    return found


def unsized(row: Row) -> tuple[str, tuple[str, ...]]:
    """GLSL and results of a row, with N for the size of vectors and matrices."""
    results = tuple(_TYPE_OF_SIZE.sub(r"\1N", kind.name) for kind in row.results)
    return _TYPE_OF_SIZE.sub(r"\1N", row.glsl), results


def _shortened(glsl: str) -> list[str]:
    """Lines as the table shows them: of a long expression only the functions that it is made of."""
    lines = glsl.splitlines()
    if all(len(line) <= _LONGEST for line in lines) and len(lines) <= 4:
        return [f"``{line}``" for line in lines]
    types = {kind.glsl_type for kind in KINDS} | {_TYPE_OF_SIZE.sub(r"\1N", kind.glsl_type) for kind in KINDS}
    called = sorted(set(_CALLED.findall(glsl)) - types)
    return [f"made of {', '.join(f'``{name}``' for name in called)}" if called else "made of operators"]


class KernelLanguage(SphinxDirective):
    """`.. kernel-language::`: all sections of the reference."""

    def run(self) -> list[nodes.Node]:
        """Return a section node for each module of the language."""
        return parse_sections(self, map(_write_section, sections()), __file__)


def _write_section(section: tuple[str, str, list[str]]) -> tuple[str, list[str]]:
    title, introduction, names = section
    lines = [*introduction.splitlines(), ""]
    for name in names:
        lines += [f".. autofunction:: vkdispatch.codegen.{name}", "", *table(name)]
    return title, lines


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("kernel-language", KernelLanguage)
    return {"parallel_read_safe": True}
