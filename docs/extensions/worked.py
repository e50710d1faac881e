"""Figures of worked examples, drawn when the pages are built, by the examples themselves.

`.. worked-example:: name` runs `make_figure` of `examples/name.py` and shows what it draws. What the examples
look at belongs to others, so neither it nor a picture of it is kept in the repository.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDER = "_made"  # of the figures, beside the pages


class WorkedExample(SphinxDirective):
    """Show the figure of an example, or say why there is none."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Draw the figure; raise an error if the example finds that something is wrong."""
        name = self.arguments[0]
        example = EXAMPLES / f"{name}.py"
        self.env.note_dependency(str(example))
        path = Path(self.env.srcdir) / FOLDER / f"{name}.png"
        try:
            correct = _load(example).make_figure(path)
        except (ImportError, RuntimeError) as error:
            return [nodes.paragraph("", f"(No figure here: {error})")]
        if not correct:
            raise ExtensionError(f"{example} finds its own outcome wrong")
        return [nodes.image(uri=f"/{FOLDER}/{name}.png", alt=f"What examples/{name}.py draws")]


def _load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise ExtensionError(f"no example {path}")
    # kernels look for their module by its name
    module = sys.modules[path.stem] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("worked-example", WorkedExample)
    return {"parallel_read_safe": True}
