"""Tables of the documentation, made of the programs: `python -m tests.compatibility.tables` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.compatibility import accelpy, kompute, vkdispatch_010
from tests.compatibility.programs import Collection

DOCS = Path(__file__).resolve().parents[2] / "docs"
SYSTEMS = {"vkdispatch": vkdispatch_010.PROGRAMS, "kompute": kompute.PROGRAMS, "accelpy": accelpy.PROGRAMS}


def table(programs: Collection) -> str:
    """Return the programs as a table in reStructuredText."""
    lines = [
        f"The tests run these {len(programs.programs)} programs:",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 55 45",
        "",
        "   * - Program",
        "     - Differences",
    ]
    for program in programs.programs:
        differs = program.differs or "none"
        lines += [f"   * - {program.what}", f"     - {differs[0].upper()}{differs[1:]}"]
    return "\n".join(lines) + "\n"


def path(system: str) -> Path:
    """Return the file of a system's table."""
    folder = "reference/orders" if system == "accelpy" else "coming_from"
    return DOCS / folder / f"programs-{system}.inc"


if __name__ == "__main__":
    for name, collection in SYSTEMS.items():
        path(name).write_text(table(collection))
