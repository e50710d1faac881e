"""What vkdispatch.numpy gives, and that type checkers and the array API standard see the same."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.numpy as vnp


def test_stub_and_namespace_name_the_same() -> None:
    stub = ast.parse(Path(vnp.__file__).with_suffix(".pyi").read_text())
    homes: dict[str, str | None] = {}
    submodules: list[str] = []
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module == "vkdispatch.numpy":
            submodules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            homes |= {alias.asname or alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Assign):
            homes |= {ast.unparse(target): None for target in node.targets}
        elif isinstance(node, ast.AnnAssign):
            homes[ast.unparse(node.target)] = None
    own = {name: f"vkdispatch.numpy.{home}" for name, home in vnp._PUBLIC.items()}
    assert {name: home for name, home in homes.items() if name in own} == own
    assert sorted(submodules) == sorted(vnp._SUBMODULES)
    assert {*homes, *submodules} - {"__array_api_version__", "__array_namespace_info__"} == set(vnp.__all__)


def test_stub_and_linalg_name_the_same() -> None:
    stub = ast.parse(Path(vnp.linalg.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    assert homes == {
        name: f"vkdispatch.numpy.{home}"
        for home, names in vnp.linalg._NAMES.items()
        for name in names.split()
    }


def test_names_have_one_home() -> None:
    listed = [name for names in vnp._NAMES.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    # what this package, the class Array and the helpers of modules need is not the namespace's
    assert not {"np", "Any", "math", "get_items", "call_ufunc", "finish", "parse_axis"} & set(dir(vnp))


def test_functions_with_a_name_of_numpys_are_public() -> None:
    # a function that the table of names forgets is nowhere in the namespace
    models = [(module, getattr(np, module, np)) for module in (*vnp._NAMES, *vnp._SUBMODULES)]
    for module, model in [*models, *((module, np.linalg) for module in vnp.linalg._NAMES)]:
        home = import_module(f"vkdispatch.numpy.{module}")
        public = {*getattr(home, "__all__", ()), *vnp._NAMES.get(module, "").split(), *vnp.linalg.__all__}
        for name, value in vars(home).items():
            is_own = getattr(value, "__module__", None) == home.__name__ and not name.startswith("_")
            if is_own and callable(getattr(model, name, None)):
                assert name in public or (module, name) == HELPER, (module, name)


# A function that is not what NumPy calls so.
HELPER = ("basics.elementwise", "choose")


@pytest.mark.parametrize("module", [vnp, vnp.linalg, vnp.fft, vnp.special])
def test_names_are_there(module: Any) -> None:
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert hasattr(module, name), name
        assert name in dir(module)


def test_functions_have_docstrings() -> None:
    for module in (vnp, vnp.linalg, vnp.fft, vnp.special):
        for name in module.__all__:
            if callable(getattr(module, name)):
                assert getattr(module, name).__doc__, name


def test_arrays_are_reached_by_the_package() -> None:
    assert vd.numpy is vnp
    assert vd.Array is vnp.Array is vnp.ndarray
    assert "Array" in vd.__all__
    # a star import leaves `import numpy` alone
    assert "numpy" not in vd.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(vnp, "nothing")  # noqa: B009
    with pytest.raises(AttributeError, match="has no attribute '__nothing__'"):
        getattr(vnp, "__nothing__")  # noqa: B009
    with pytest.raises(TypeError, match=r"vnp\.asarray"):
        vd.Array(2, np.float64, np.zeros(2))  # type: ignore[arg-type]


def test_arrays_load_when_they_are_asked_for(run_python: Any) -> None:
    done = run_python(
        "import sys, vkdispatch as vd\n"
        "vd.Buffer, vd.shader\n"
        "print([name for name in sys.modules if name.startswith('vkdispatch.numpy')])\n"
        "from vkdispatch.numpy import *\n"
        "print(sum(arange(4)), Array is vd.Array)"
    )
    assert (done.stdout, done.stderr) == ("[]\n6 True\n", "")
