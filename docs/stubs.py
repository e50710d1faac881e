"""Writes `vkdispatch/__init__.pyi`, which type checkers and editors read, from the names in `__init__.py`.

`python docs/stubs.py` writes the file; `--check` ends with an error if it is out of date.
"""

import subprocess
import sys
from pathlib import Path

import vkdispatch as vd

STUB = Path(vd.__file__).with_suffix(".pyi")
_HEAD = '''"""GPU kernels as typed Python functions: the public names, for type checkers and editors.

`docs/stubs.py` writes this file.
"""
'''


def write_stub() -> str:
    """Return the text of the stub."""
    lines = [_HEAD]
    homes = {"vkdispatch": " ".join(vd._MODULES)} | {
        f"vkdispatch.{home}": vd._NAMES[home] for home in vd._NAMES
    }
    for home, names in homes.items():
        # `import name as name` makes a public name of those that `__all__` leaves out
        aliases = (name if name in vd.__all__ else f"{name} as {name}" for name in names.split())
        lines.append(f"from {home} import {', '.join(aliases)}")
    lines += ["__version__: str", f"__all__ = {vd.__all__!r}"]
    text = "\n".join(lines)
    for command in (["check", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", f"--stdin-filename={STUB}", "-"]
        text = subprocess.run(ruff, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    if "--check" not in sys.argv:
        STUB.write_text(write_stub())
    elif STUB.read_text() != write_stub():
        raise SystemExit(f"{STUB} is out of date: run `make format`")
