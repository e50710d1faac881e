"""What a program pays before its first result, in fresh processes: import, context, first kernel.

Whatever the drivers keep on disk is off; what is measured warm is the library's own cache.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.timing import Trial

Milliseconds = dict[str, float]

PROGRAM = Path(__file__).resolve().with_name("first_result.py")
NO_CACHES = {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0", "CUDA_CACHE_DISABLE": "1"}


def run_program(library: str, environment: dict[str, str]) -> Milliseconds:
    """Run the program once, with this Python and module path; raises RuntimeError if it fails or is wrong."""
    command = [sys.executable, str(PROGRAM), library]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = os.environ.get("PYTHONPATH", "")
    if os.environ.get("BENCHMARKS_LIBRARY") == "checkout":
        paths = f"{Path(__file__).resolve().parents[1]}{os.pathsep}{paths}"
    done = subprocess.run(
        command,
        env={**inherited, **NO_CACHES, **environment, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not result.pop("correct"):
        raise RuntimeError(f"{' '.join(command)} computed something wrong")
    return result


def measure(library: str, folder: Path) -> Milliseconds:
    """Return the times of a cold start; of vkdispatch also `first_kernel_warm_ms`, with a warm disk cache.

    `folder` keeps compiled Python and the disk cache from one time to the next. Until it has both, times mean
    nothing.
    """
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "pyc")}
    with tempfile.TemporaryDirectory() as empty:
        cold = run_program(library, {**compiled, "VKDISPATCH_CACHE": "off", "CUPY_CACHE_DIR": empty})
    cache = folder / "cache"
    if library != "vkdispatch":
        return cold
    cache.mkdir(exist_ok=True)
    warm = run_program(library, {**compiled, "VKDISPATCH_CACHE": str(cache)})
    # a version without a disk cache leaves nothing there
    return {**cold, "first_kernel_warm_ms": warm["first_kernel_ms"]} if any(cache.iterdir()) else cold


def trial(library: str) -> Trial:
    """Return the case, with everything that is kept on disk in place."""
    kept = tempfile.TemporaryDirectory()
    measure(library, Path(kept.name))

    def round_of_one() -> Milliseconds:
        return measure(library, Path(kept.name))

    return Trial(round_of_one, lambda: True, 1)
