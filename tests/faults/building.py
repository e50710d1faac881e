"""The layer of the tests, compiled when it is needed, and the environment in which the loader uses it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SOURCE = Path(__file__).with_name("layer") / "fault_layer.cpp"
_MANIFEST = Path(__file__).with_name("layer") / "VkLayer_vkdispatch_faults.json"
_LIBRARY = "libVkLayer_vkdispatch_faults.so"
_NAME = "VK_LAYER_VKDISPATCH_faults"
_FLAGS = ["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"]


def build() -> Path:
    """Return the folder of the layer and its manifest, made when the source has changed.

    Raises RuntimeError where the Vulkan headers or a compiler are missing.
    """
    fetch_deps = _fetch_deps()
    command = [*fetch_deps.compiler(), *_FLAGS]
    parts = [*command, fetch_deps.compiler_identity(), _SOURCE.read_text(), _MANIFEST.read_text()]
    folder = ROOT / "build" / "faults" / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    if (folder / _LIBRARY).is_file():
        return folder
    with fetch_deps.locked(folder.with_suffix(".lock")):
        if not (folder / _LIBRARY).is_file():
            headers = ["-isystem", str(prefix() / "include")]
            folder.mkdir(parents=True, exist_ok=True)
            partial = folder / f"{_LIBRARY}.partial"
            done = subprocess.run(
                [*command, *headers, str(_SOURCE), "-o", str(partial)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"the layer does not compile:\n{done.stderr}")
            shutil.copy(_MANIFEST, folder)
            partial.rename(folder / _LIBRARY)
    return folder


def prefix() -> Path:
    """Return the folder of what the native module is built from.

    Raises RuntimeError where it cannot be had.
    """
    fetch_deps = _fetch_deps()
    try:
        return Path(fetch_deps.prepare())
    except fetch_deps.DepsError as error:
        raise RuntimeError(str(error)) from error


def _fetch_deps() -> Any:  # a script, in a folder that is no package
    sys.path.insert(0, str(ROOT / "deps"))
    try:
        import fetch_deps
    finally:
        sys.path.pop(0)
    return fetch_deps


def layer_library(folder: Path) -> Path:
    """Return the path of the layer's library."""
    return folder / _LIBRARY


def layer_environment(folder: Path) -> dict[str, str]:
    """Return the variables with which a process has the layer in each of its instances."""
    added = [str(folder), *filter(None, [os.environ.get("VK_ADD_LAYER_PATH")])]
    layers = [*filter(None, [os.environ.get("VK_INSTANCE_LAYERS")]), _NAME]
    environment = {"VK_ADD_LAYER_PATH": ":".join(added), "VK_INSTANCE_LAYERS": ":".join(layers)}
    if os.environ.get("VK_LAYER_PATH"):  # which hides the other one from some loaders
        environment["VK_LAYER_PATH"] = f"{os.environ['VK_LAYER_PATH']}:{folder}"
    return {**environment, "VKDISPATCH_FAULT_LAYER": str(layer_library(folder))}


if __name__ == "__main__":
    print(build())
