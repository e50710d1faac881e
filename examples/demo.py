"""What `make demo` shows: the device, the kernel of the README, a photograph that is denoised, and pictures.

Exits with 1 if anything that was computed is wrong.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import photo
import pictures

from vkdispatch.cli import cli_entrypoint

SCALE_INPLACE = Path(__file__).with_name("scale_inplace.py")
# The module of short type names; the second spelling is the one in older documents.
SPELLINGS = ("vkdispatch.codegen.abbreviations", "vkdispatch.codegen.abreviations")


def section(number: int, title: str) -> None:
    """Print a heading as wide as the terminal, at most 100 columns."""
    width = min(shutil.get_terminal_size().columns, 100)
    print(f"\n--- {number}. {title} ".ljust(width, "-"), flush=True)


def show_devices() -> None:
    """Print what `vdlist` prints."""
    cli_entrypoint(args=[], standalone_mode=False)


def run_scale_inplace(abbreviations: str) -> dict[str, Any]:
    """Run the README's program with its types imported from a module; return its variables."""
    source = SCALE_INPLACE.read_text().replace(SPELLINGS[1], abbreviations)
    variables: dict[str, Any] = {"__name__": "scale_inplace"}
    exec(compile(source, str(SCALE_INPLACE), "exec"), variables)
    return variables


def show_scale_inplace() -> bool:
    """Run it with both spellings, print the GLSL; return whether the results are right."""
    correct = True
    for spelling in SPELLINGS:
        print(f"from {spelling} import *")
        variables = run_scale_inplace(spelling)
        correct &= np.array_equal(variables["out"], np.arange(16, dtype=np.float32) * 2)
    print("\nThe GLSL it became:\n")
    print(variables["scale_inplace"].get_src())
    return correct


def main() -> int:
    """Show everything; return the exit status."""
    section(1, "Devices (vdlist)")
    show_devices()
    section(2, f"A kernel of two lines (examples/{SCALE_INPLACE.name})")
    scaled = show_scale_inplace()
    section(3, "Denoising a photograph (examples/photo.py)")
    status = photo.main(Path("demo_output") / "photo.png")
    section(4, "Six pictures of the gallery (examples/pictures.py)")
    pictures.main(Path("demo_output") / "pictures.png")
    if not scaled:
        print("FAILED: scale_inplace gave a wrong result", file=sys.stderr)
    return status or int(not scaled)


if __name__ == "__main__":
    sys.exit(main())
