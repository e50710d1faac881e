"""The documentation's extensions of Sphinx."""

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_module(name: str) -> ModuleType:
    """Return an extension, newly executed."""
    specification = importlib.util.spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
