"""The modules beside the documentation's pages."""

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_module(name: str) -> ModuleType:
    """Return a module of the folder of the documentation, newly executed."""
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
