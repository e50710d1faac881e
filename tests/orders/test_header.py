"""The text of orders: headers, preambles, sections, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
from vkdispatch.orders import Order
from vkdispatch.orders.order import MODELS

models = st.lists(st.sampled_from(MODELS), min_size=1, max_size=4, unique=True)
words = st.text(alphabet="ab]\"'#[:,\n\\é", max_size=5)
values = st.recursive(
    st.one_of(st.booleans(), st.integers(-99, 99), words, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=2), st.tuples(inner)
    ),
    max_leaves=5,
)
options = st.dictionaries(st.sampled_from(["alpha", "beta", "local_size", "_x1"]), values, max_size=3)
# separators of tokens, which change nothing
gaps = st.sampled_from(["", " ", "  ", "\n", "\n  ", " # ], [: = note\n", "\n\n\t", "\\\n "])


@settings(derandomize=True, deadline=None)
@given(data=st.data())
def test_headers_in_any_layout(data: st.DataObject) -> None:
    named, given_options = data.draw(models), data.draw(options)
    body = data.draw(st.sampled_from(["", "int x;\n", "  [1]\n# [\n y(i) = 0;\n"]))
    words = ["[", *", ".join(named).split(" ")]
    if given_options or data.draw(st.booleans()):
        words.append(":")
        words += [f"{name}={value!r}," for name, value in given_options.items()]
    words.append("]")
    header = "".join(word + data.draw(gaps) for word in words[:-1]) + "]"
    order = Order(f"k = 3\n{header} # a note\n{body}[cpp]\n")
    section = order.sections[0]
    assert section.models == tuple(named)
    assert section.options == given_options
    assert section.body == body
    assert section.line == 2
    assert section.body_line == 3 + header.count("\n")
    assert order.sections[1].body == ""


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet="[]():,=#\"'\\ \n\tabcp+{}é$\0", max_size=40))
def test_invalid_texts_raise_only_value_error(text: str) -> None:
    for whole in (f"[{text}", f"[cpp: {text}]\n", f"{text}\n[cpp]\n"):
        try:
            Order(whole)
        except (vd.ArgumentValueError, vd.ArgumentTypeError) as error:
            assert "<order>" in str(error) or "set_argnames" in str(error)


def test_the_preamble_defines_names() -> None:
    order = Order("""
        # a note
        set_argnames(("a", "b"), "c")
        count = max(2, 3) ** 2
        names = [str(i) for i in range(2)]
        [cpp: enable=count > 8, compile=["g++ -O" + str(count // 9), "g++"]]
            one
        [fortran, openmp_fortran: enable=False]
            two
    """)
    assert order.inputs == ("a", "b")
    assert order.outputs == ("c",)
    assert order.names == {"count": 9, "names": ["0", "1"]}
    first, second = order.sections
    assert (first.models, first.enabled, first.compile) == (("cpp",), True, ("g++ -O1", "g++"))
    assert first.options == {}
    assert (second.models, second.enabled) == (("fortran", "openmp_fortran"), False)
    assert first.body.strip() == "one"
    assert (first.line, first.body_line, second.line) == (6, 7, 8)


def test_orders_from_text_files_and_orders(tmp_path: Path) -> None:
    text = 'set_argnames("a", "b")\r\n[cpp]\r\nb() = a();\r\n'
    path = tmp_path / "copy.ord"
    path.write_bytes(text.encode())
    for source in (str(path), path):
        order = Order(source)
        assert order.path == str(path)
        assert order.sections[0].body == "b() = a();\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # as written by editors on Windows
    assert Order(path).inputs == ("a",)
    again = Order(Order(path))
    assert (again.path, again.inputs) == (str(path), ("a",))
    assert Order("[cpp]").sections[0].body == ""
    assert Order(text).sections[0].body == "b() = a();\n"
    assert "copy.ord" in repr(order)
    assert "cpp" in repr(order)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no section"),
        (" [cpp]\nx", "no section"),
        ("[]\n", "<order>:1: this header names no model"),
        ("\n[cpp\nint x;\n", "<order>:2: this header does not end"),
        ("[cpp,,fortran]\n", "expected the name of a model, got ','"),
        ("[cpp fortran]\n", "expected a comma, a colon or \\], got 'fortran'"),
        ("[cpp, cpp]\n", "cpp is named twice"),
        ("[cpp: 3]\n", "an option without a name"),
        ("[cpp: **{}]\n", "[*][*] among the options"),
        ("[cpp: a=]\n", "<order>:1: the options are not valid Python"),
        ("[cpp: a=1, a=2]\n", "<order>:1: the option a occurs twice"),
        ("[cpp: a=(1]\n", "<order>:1: expected [)], got ]"),
        ("[cpp] int x;\n", "'int x;' after the header's ]"),
        ("[[nodiscard]]\n", "expected the name of a model"),
        ("[cpu]\n", "no model 'cpu'; did you mean cpp?"),
        ("\n\n[zzzzzz]\n", "<order>:3: there is no model 'zzzzzz'; there are cuda, hip"),
        ("[cpp: enable=nothing]\n", "<order>:1: the option enable failed: NameError"),
        ("[cpp: enable='no']\n", "enable: expected True or False, got 'no'"),
        ("[cpp: compile=3]\n", "compile: expected a compiler command"),
        ("[cpp: compile=[]]\n", "compile: expected a command"),
        ("[cpp: compile='\"']\n", "<order>:1: compile: .* [Nn]o closing quotation"),
        ("a = 1\nb = 1 / 0\n[cpp]\n", "<order>:2: the preamble failed: ZeroDivisionError"),
        ("a = 1\nb =\n[cpp]\n", "<order>:2: the preamble failed: SyntaxError"),
        ("import os\n[cpp]\n", "<order>:1: the preamble failed: ImportError"),
        ("set_argnames(1, 'b')\n[cpp]\n", "inputs: expected a name or a tuple"),
        (
            "set_argnames('b')\n[cpp]\n",
            r"<order>:1: the preamble failed: TypeError: set_argnames\(\) missing",
        ),
        ("[cpp: compile='\"']\n", "<order>:1: compile: .* is not a valid command: no closing quotation"),
        ("set_argnames('a b', ())\n[cpp]\n", "inputs: expected a name .* 'a b'"),
        ("set_argnames('ä', ())\n[cpp]\n", "inputs: expected a name .* 'ä'"),
        ("set_argnames('a', 'a')\n[cpp]\n", "'a' occurs twice"),
        ("set_argnames('accelpy_x', 'a')\n[cpp]\n", "'accelpy_x' is reserved"),
    ],
)
def test_errors_have_their_line(text: str, said: str) -> None:
    with pytest.raises((vd.ArgumentValueError, vd.ArgumentTypeError), match=said):
        Order(text)


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        (3, TypeError, "source: expected the text"),
        (None, TypeError, "source: expected the text"),
        (b"[cpp]\n", TypeError, "source: expected the text"),
        ("", ValueError, "is neither a file"),
        ("nowhere.ord", ValueError, "'nowhere.ord' is neither a file"),
        (Path("nowhere.ord"), FileNotFoundError, "nowhere.ord"),
        ("a\0b", ValueError, "is neither a file"),
    ],
)
def test_invalid_sources_raise(source: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        Order(source)


def test_a_binary_file_raises(tmp_path: Path) -> None:
    path = tmp_path / "x.ord"
    path.write_bytes(b"[cpp]\n\xff\xfe\n")
    with pytest.raises(vd.ArgumentValueError, match="not UTF-8 text"):
        Order(path)
