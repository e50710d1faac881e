"""The documentation's extensions of Sphinx."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_module(name: str) -> ModuleType:
    """Return an extension, newly executed."""
    folder = DOCS / "extensions"
    specification = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(folder))
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
