"""Sections that a directive makes of lines of reStructuredText."""

from collections.abc import Iterable

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def parse_sections(
    directive: SphinxDirective, sections: Iterable[tuple[str, list[str]]], source: str
) -> list[nodes.Node]:
    """Return a node for each section, of its title and lines. `source` is the file that messages name."""
    # the page changes with the code, not with its own text
    directive.env.note_reread()
    found: list[nodes.Node] = []
    for title, lines in sections:
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title(title, title)
        directive.state.nested_parse(StringList(lines, source=source), 0, section)
        found.append(section)
    return found
