"""Sphinx extension: formulas are written as MathML, so that pages need neither scripts nor a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _write(translator: Any, node: nodes.math | nodes.math_block) -> None:
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    translator.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(_write, None), block_renderers=(_write, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
