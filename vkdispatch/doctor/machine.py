"""What this machine has, as far as no driver has to be asked, and child processes that ask them."""

import glob
import json
import os
import platform
import sys
from typing import Any

from vkdispatch.base.process import VARIABLES
from vkdispatch.installation import find_distributions

# ---- Starts child processes, and tells how they end ------------------------------------------------------
#
# A driver that crashes or hangs ends its child alone.


Facts = dict[str, Any]

SECONDS = 60.0
"""How long a child may take, unless the caller says otherwise."""

_SAID = 12  # last lines of what a driver prints
# The child imports this very package, however the parent found it.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from vkdispatch.doctor.child import main; main(*sys.argv[2:])"
)


def run_child(task: str, argument: str = "", *, seconds: float, **environment: str) -> Facts:
    """Run a task of `child` in a process of its own, and return what it found out.

    Further keys of the result: `ended`, None or how the process ended before its time; `doing`, what it did
    last; and `said`, the last lines that it printed.
    """
    import subprocess
    import tempfile

    if not sys.executable:
        return {"ended": "this program has no Python interpreter to start", "doing": task, "said": []}
    path = json.dumps([entry or os.getcwd() for entry in sys.path])
    command = [sys.executable, "-c", _START, path, task, argument]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=log, env={**os.environ, **environment}
        ) as process:
            try:
                status: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                process.kill()
        output.seek(0)
        log.seek(0)
        facts: Facts = {"ended": None, "doing": task}
        for line in output.read().decode("utf-8", "replace").splitlines():
            try:
                facts.update(json.loads(line))
            except ValueError:  # the last line of a process that was ended
                continue
        said = log.read().decode("utf-8", "replace").strip().splitlines()
    facts["said"] = [line.rstrip() for line in said if line.strip()][-_SAID:]
    if status is None:
        facts["ended"] = f"did not end within {seconds:g} s"
    elif status:
        facts["ended"] = _explain_status(status)
    return facts


def _explain_status(status: int) -> str:
    import signal

    if status < 0:
        try:
            return f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            return f"crashed (signal {-status})"
    return f"ended with status {status:#x}" if status > 255 else f"ended with status {status}"


# ---- What this machine has, as far as no driver has to be asked ------------------------------------------
#
# System, packages, variables, manifests.


# Packages that vkdispatch uses or works with, where they are installed.
_PACKAGES = (
    *("numpy", "click", "platformdirs", "opt_einsum", "cuda-bindings", "cloudpickle", "dask", "distributed"),
    *("scipy", "matplotlib", "torch", "cupy", "jax", "ipython", "tqdm"),
)
# Variables of others that decide which drivers there are and how they work.
_PREFIXES = ("VK_", "MESA_", "LP_", "GALLIUM_", "DISABLE_LAYER", "RADV_", "ANV_", "TU_")
_NAMES = (
    *("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD"),
)
_LONGEST_VALUE = 160
_PREFIX = "VKDISPATCH_"
# Of tests and builds, which the package itself does not read.
_OF_TESTS = (
    *("VKDISPATCH_FAULT_LAYER", "VKDISPATCH_FIRST_PROGRAM", "VKDISPATCH_INTERPRET", "VKDISPATCH_PROGRAMS"),
    *("VKDISPATCH_RANDOM_KERNELS", "VKDISPATCH_RANDOM_SEED", "VKDISPATCH_SANITIZE"),
    "VKDISPATCH_TEST_PORTABLE",
)
_GPU_VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}
_DISPLAY, _ACCELERATOR = "0x03", "0x12"  # classes of PCI devices


def describe_packages() -> Facts:
    """Return the versions of vkdispatch, Python and other packages, and each vkdispatch there is."""
    import vkdispatch

    folder = os.path.dirname(os.path.abspath(vkdispatch.__file__ or ""))
    return {
        "version": vkdispatch.__version__,
        "folder": folder,
        "distributions": find_distributions(),
        "copies": _find_copies(folder),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: version for name in _PACKAGES if (version := _find_version(name))},
    }


def _find_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _find_copies(folder: str) -> list[str]:
    """Return the other folders called vkdispatch that Python would import if the first one were not there."""
    paths = (os.path.join(entry or os.getcwd(), "vkdispatch") for entry in sys.path)
    folders = {os.path.realpath(path) for path in paths if os.path.isfile(os.path.join(path, "__init__.py"))}
    return sorted(folders - {os.path.realpath(folder)})


def describe_system() -> Facts:
    """Return the operating system, the kind of container, memory and processors."""
    facts: Facts = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "platform": sys.platform,
        "distribution": None,
        "family": [],
        "container": _find_container(),
        "wsl": "microsoft" in platform.release().lower(),
        "processors": os.cpu_count(),
    }
    try:
        release = platform.freedesktop_os_release()
    except (OSError, AttributeError):
        return facts
    facts["distribution"] = release.get("PRETTY_NAME") or release.get("NAME")
    facts["family"] = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return facts


def _find_container() -> str | None:
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if os.path.exists("/.dockerenv"):
        return "docker"
    return "kubernetes" if "KUBERNETES_SERVICE_HOST" in os.environ else None


def describe_hardware() -> Facts:
    """Return the GPUs on the PCI bus, the render nodes with whether they can be opened, NVIDIA's module."""
    gpus = []
    for path in sorted(glob.glob("/sys/bus/pci/devices/*")):
        kind = _read(f"{path}/class")
        vendor = _read(f"{path}/vendor").removeprefix("0x")
        if vendor in _GPU_VENDORS and kind.startswith((_DISPLAY, _ACCELERATOR)):
            driver = f"{path}/driver"
            gpus.append(
                {
                    "vendor": _GPU_VENDORS[vendor],
                    "id": f"{vendor}:{_read(f'{path}/device').removeprefix('0x')}",
                    "module": os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else None,
                }
            )
    nodes = sorted(glob.glob("/dev/dri/renderD*"))
    version = _read("/proc/driver/nvidia/version")
    return {
        "gpus": gpus,
        "nodes": [{"path": node, "usable": os.access(node, os.R_OK | os.W_OK)} for node in nodes],
        "nvidia_module": version.splitlines()[0].partition(":")[2].strip() if version else None,
        "nvidia_nodes": bool(glob.glob("/dev/nvidia[0-9]*")),
        "dxg": os.path.exists("/dev/dxg"),
    }


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def describe_environment() -> Facts:
    """Return the relevant variables that are set, and unknown VKDISPATCH names with similar known ones."""
    from difflib import get_close_matches

    known = {*VARIABLES, *_OF_TESTS}
    words = [name.removeprefix(_PREFIX) for name in VARIABLES]
    ours = [name for name in os.environ if name.startswith("VKDISPATCH")]
    theirs = [name for name in os.environ if name.startswith(_PREFIXES) or name in _NAMES]
    return {
        "set": {name: os.environ[name][:_LONGEST_VALUE] for name in (*sorted(ours), *sorted(theirs))},
        "unknown": {
            # without what all of them begin with, and which makes them alike
            name: next(
                (f"{_PREFIX}{word}" for word in get_close_matches(name[len(_PREFIX) :], words, 1)), None
            )
            for name in sorted(ours)
            if name not in known
        },
    }


def find_manifests() -> list[str]:
    """Return the manifests of drivers that the loader reads, in its order. On Windows: none are known."""
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    added = os.environ.get("VK_ADD_DRIVER_FILES", "")
    # nothing is added to the chosen ones
    places = chosen.split(os.pathsep) if chosen else [*added.split(os.pathsep), *_standard_folders()]
    manifests: list[str] = []
    for place in filter(None, places):
        folder = glob.escape(place)
        manifests += sorted(glob.glob(f"{folder}/*.json")) if os.path.isdir(place) else [place]
    return list(dict.fromkeys(manifests))


def _standard_folders() -> list[str]:
    if sys.platform == "win32":
        return []
    home = os.path.expanduser("~")
    bases = [
        os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config",
        *(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share",
        *(os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
    ]
    if sys.platform == "darwin":
        bases += ["/opt/homebrew/etc", "/opt/homebrew/share", "/usr/local/etc"]
    folders = (os.path.join(base, "vulkan", "icd.d") for base in bases if base)
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
