"""The documentation's extensions of Sphinx."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_module(name: str) -> ModuleType:
    """Return an extension, newly executed. Skips the test or module where Sphinx is not installed."""
    folder = DOCS / "extensions"
    specification = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(folder))
    try:
        specification.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("docutils", "sphinx"):
            raise
        pytest.skip(f"the documentation's extensions need {error.name}", allow_module_level=True)
    finally:
        sys.path.remove(str(folder))
    return module
