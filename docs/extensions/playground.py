"""Put beside the playground what it needs: the Python files of the package, and Pyodide if there is a copy.

PYODIDE is the folder of Pyodide's npm package. Without it the page loads Pyodide from a public server.
"""

import os
import shutil
import zipfile
from pathlib import Path

from sphinx.application import Sphinx

PACKAGE = Path(__file__).resolve().parents[2] / "vkdispatch"


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write the files for a site in HTML."""
    if error is not None or app.builder.format != "html":
        return
    write_beside(Path(app.outdir) / "_static")


def write_beside(folder: Path) -> None:
    """Write the files into a folder."""
    with zipfile.ZipFile(folder / "vkdispatch.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.rglob("*.py")):
            archive.write(path, path.relative_to(PACKAGE.parent))
    runtime = os.environ.get("PYODIDE")
    if runtime:
        shutil.copytree(runtime, folder / "pyodide", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True}
