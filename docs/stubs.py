"""Writes the stubs of packages whose names are lazy, which type checkers and editors read.

The names are those of the tables in their `__init__.py`. `python docs/stubs.py` writes the files; `--check`
ends with an error if one is out of date.
"""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp

_HEAD = '''"""GPU kernels as typed Python functions: the public names, for type checkers and editors.

`docs/stubs.py` writes this file.
"""
'''


_NUMPY_HEAD = '''"""NumPy's way of computing on Vulkan devices: the names, for type checkers and editors.

`docs/stubs.py` writes this file.
"""
'''
_LINALG_HEAD = '''"""Linear algebra: the names, for type checkers and editors.

`docs/stubs.py` writes this file.
"""
'''
_NUMPY_TAIL = """
__array_api_version__: str
bool = bool_
"""


def write_package() -> str:
    """Return the text of the stub of `vkdispatch`."""
    lines = [_HEAD]
    homes = {"vkdispatch": " ".join(vd._MODULES)} | {
        f"vkdispatch.{home}": vd._NAMES[home] for home in vd._NAMES
    }
    for home, names in homes.items():
        # `import name as name` makes a public name of those that `__all__` leaves out
        aliases = (name if name in vd.__all__ else f"{name} as {name}" for name in names.split())
        lines.append(f"from {home} import {', '.join(aliases)}")
    return "\n".join([*lines, "__version__: str", f"__all__ = {vd.__all__!r}"])


def write_numpy() -> str:
    """Return the text of the stub of `vkdispatch.numpy`."""
    homes = {"vkdispatch.numpy": " ".join(vnp._SUBMODULES)}
    for home, names in (*vnp._NAMES.items(), *vnp._CORE.items()):
        homes[f"vkdispatch.numpy.{home}"] = f"{homes.get(f'vkdispatch.numpy.{home}', '')} {names}"
    for module in (math, np):
        own = [
            name for name in vars(vnp) if name != "bool" and hasattr(module, name) and name not in vnp._PUBLIC
        ]
        theirs = [name for name in own if getattr(vnp, name) is getattr(module, name) and name[0] != "_"]
        homes[module.__name__] = " ".join(
            name for name in theirs if name not in homes.get("math", "").split()
        )
    imports = [
        f"from {home} import {', '.join(f'{name} as {name}' for name in names.split())}"
        for home, names in homes.items()
    ]
    return "\n".join([_NUMPY_HEAD, *imports, _NUMPY_TAIL])


def write_linalg() -> str:
    """Return the text of the stub of `vkdispatch.numpy.linalg`."""
    imports = [
        f"from vkdispatch.numpy.{home} import {', '.join(f'{name} as {name}' for name in names.split())}"
        for home, names in vnp.linalg._NAMES.items()
    ]
    return "\n".join([_LINALG_HEAD, *imports, f"__all__ = {vnp.linalg.__all__!r}"])


def format_stub(text: str, stub: Path) -> str:
    """Return a text as the formatters leave it."""
    for command in (["check", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", f"--stdin-filename={stub}", "-"]
        text = subprocess.run(ruff, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    for package, write in ((vd, write_package), (vnp, write_numpy), (vnp.linalg, write_linalg)):
        stub = Path(package.__file__).with_suffix(".pyi")
        text = format_stub(write(), stub)
        if "--check" not in sys.argv:
            stub.write_text(text)
        elif stub.read_text() != text:
            raise SystemExit(f"{stub} is out of date: run `make format`")
