"""Reasons why the Vulkan loader found no driver: faults in its environment variables."""

import ctypes
import glob
import json
import os
from collections.abc import Iterator

# VK_DRIVER_FILES takes precedence over VK_ICD_FILENAMES, the only one that old loaders know. Both replace
# the installed drivers; the last variable adds to them.
_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES")
_FILTERS = ("VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE")
_ENTRY_POINTS = (
    "vk_icdGetInstanceProcAddr",
    "vk_icdNegotiateLoaderICDInterfaceVersion",
    "vkGetInstanceProcAddr",
)


def explain_variables() -> str:
    """Return what is wrong with the manifests that the loader's variables name, and how to fix it.

    The text starts with a space; it is empty if no variable is set. The libraries of the manifests are
    loaded, which the loader has done before.
    """
    faults = {name: list(_find_faults(os.environ.get(name, ""))) for name in _VARIABLES}
    said = [f"{name}: {fault}" for name in _VARIABLES for fault in faults[name]]
    if said:
        wrong = " and ".join(name for name in _VARIABLES if faults[name])
        hint = "Name a driver's manifest, such as one of /usr/share/vulkan/icd.d"
        return f" {'. '.join(said)}. {hint}, or unset {wrong}."
    named = [f"{name}={os.environ[name]!r}" for name in (*_VARIABLES, *_FILTERS) if os.environ.get(name)]
    if named:
        return f" {' and '.join(named)} may hide the drivers that are installed."
    return ""


def explain_limits() -> str:
    """Return how the address space of this process is limited, which drivers may exceed.

    The text starts with a space; it is empty without such a limit.
    """
    try:
        import resource
    except ImportError:  # there is none on Windows
        return ""
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if memory == resource.RLIM_INFINITY:
        return ""
    return f" The limit of {memory >> 20} MiB of address space (ulimit -v) may be too low."


def _find_faults(value: str) -> Iterator[str]:
    for path in filter(None, value.split(os.pathsep)):
        manifests = glob.glob(os.path.join(glob.escape(path), "*.json")) if os.path.isdir(path) else [path]
        if not manifests:
            yield f"the folder {path!r} holds no manifest (*.json)"
        for manifest in sorted(manifests):
            fault = find_fault(manifest)
            if fault:
                yield f"{manifest!r} {fault}"


def find_fault(manifest: str) -> str | None:
    """Return what is wrong with the manifest of a driver, or None. Its library is loaded."""
    try:
        with open(manifest, "rb") as file:
            content = json.load(file)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except ValueError:
        return "is not JSON"
    try:
        library = content["ICD"]["library_path"]
    except (KeyError, TypeError):
        library = None
    if not isinstance(library, str):
        return "is no driver's manifest: it has no ICD.library_path"
    # A name without a slash is searched for like any library.
    place = os.path.join(os.path.dirname(os.path.abspath(manifest)), library) if "/" in library else library
    try:
        loaded = ctypes.CDLL(place)
    except OSError as error:
        return f"names a library that cannot be loaded ({error})"
    if not any(hasattr(loaded, name) for name in _ENTRY_POINTS):
        return f"names the library {library!r}, which is no Vulkan driver"
    return None
