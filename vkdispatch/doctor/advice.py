"""Problems, as they follow from the facts, and what to do about each."""

from collections.abc import Iterator
from typing import Any

from vkdispatch.installation import DISTRIBUTION, is_ours, write_repair

Facts = dict[str, Any]
Problem = dict[str, Any]

_SLOW_CALL = 3.0  # seconds of a kernel's first call
_LITTLE_MEMORY = 256 << 20
_NVIDIA = 0x10DE
_VENDORS = {"NVIDIA": _NVIDIA, "AMD": 0x1002, "Intel": 0x8086}
_CPU = 4

# By family of distributions: how packages are installed, and those with the loader and with Mesa's drivers.
_COLUMNS = ("command", "loader", "AMD", "Intel", "CPU")
_MESA = "mesa-vulkan-drivers"
_PACKAGES = {
    "debian": ("sudo apt install", "libvulkan1", _MESA, _MESA, _MESA),
    "fedora": ("sudo dnf install", "vulkan-loader", _MESA, _MESA, _MESA),
    "arch": ("sudo pacman -S", "vulkan-icd-loader", "vulkan-radeon", "vulkan-intel", "vulkan-swrast"),
    "suse": ("sudo zypper install", "libvulkan1", "libvulkan_radeon", "libvulkan_intel", "libvulkan_lvp"),
    "alpine": ("sudo apk add", "vulkan-loader", "mesa-vulkan-ati", "mesa-vulkan-intel", "mesa-vulkan-swrast"),
}
_ALIASES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse"}

# The variable that all loaders read, and the first loader that reads each of the others.
_OLD_VARIABLE = "VK_ICD_FILENAMES"
_LOADER_VARIABLES = {
    "VK_DRIVER_FILES": (1, 3, 207),
    "VK_ADD_DRIVER_FILES": (1, 3, 207),
    "VK_LOADER_DRIVERS_SELECT": (1, 3, 234),
    "VK_LOADER_DRIVERS_DISABLE": (1, 3, 234),
}


def find_problems(facts: Facts) -> list[Problem]:
    """Return the problems, errors first.

    Each has a `severity` ("error": something is broken; or "warning"), `what`, and `advice`, a list of steps.
    """
    checks = (_check_software, _check_environment, _check_loader, _check_devices, _check_cache)
    problems = (problem for check in checks for problem in check(facts))
    return sorted(problems, key=lambda problem: problem["severity"])


def _error(what: str, *advice: str) -> Problem:
    return {"severity": "error", "what": what, "advice": list(advice)}


def _warning(what: str, *advice: str) -> Problem:
    return {**_error(what, *advice), "severity": "warning"}


# -- software


def _check_software(facts: Facts) -> Iterator[Problem]:
    software, engine = facts["software"], facts["engine"]
    owners = software["distributions"]
    others = [owner for owner in owners if not is_ours(owner["name"])]
    named = "; ".join(f"{owner['name']} {owner['version']} in {owner['folder']}" for owner in owners)
    repair = write_repair([owner["name"] for owner in owners])
    if len(owners) > 1:
        yield _warning(
            f"{len(owners)} installed distributions bring a package called vkdispatch: {named}. Files of one "
            "may have replaced files of the other.",
            f"Keep one of them. This project's is {DISTRIBUTION}: {repair}",
        )
    elif others:
        yield _warning(
            f"The package that is imported is version {software['version']}, in {software['folder']}. The "
            f"distribution that is installed is another project's: {named}.",
            f"This project's is {DISTRIBUTION}. To have it alone: {repair}",
        )
    if software["copies"]:
        yield _warning(
            f"Python also finds vkdispatch in {', '.join(software['copies'])}. It imports the one in "
            f"{software['folder']}, which comes first in sys.path.",
            "If that is the wrong one, look at PYTHONPATH and at the folder that you start Python in.",
        )
    if engine.get("native_error"):
        yield _error(
            f"The native module cannot be imported: {engine['native_error']}.",
            "Install a wheel for this Python and platform, or build it: pip install . in the sources of "
            "vkdispatch.",
        )
    if engine.get("numpy_error"):
        yield _error(f"NumPy cannot be imported: {engine['numpy_error']}.", "Install it: pip install numpy")


def _check_environment(facts: Facts) -> Iterator[Problem]:
    variables = facts["environment"]
    for name, likely in variables["unknown"].items():
        meant = f"Did you mean {likely}?" if likely else "Unset it."
        yield _warning(f"The variable {name} is set, but vkdispatch has no such variable.", meant)
    backend = variables["set"].get("VKDISPATCH_BACKEND", "").strip().lower()
    if backend == "dummy":
        yield _warning(
            "VKDISPATCH_BACKEND=dummy: kernels are traced, but do not run. The doctor uses Vulkan anyway.",
            "Unset VKDISPATCH_BACKEND to run kernels.",
        )
    elif backend not in ("", "vulkan"):
        yield _error(f"VKDISPATCH_BACKEND={backend}: there is no such backend.", "Unset VKDISPATCH_BACKEND.")
    slow = [
        name
        for name in ("VKDISPATCH_DEBUG", "VKDISPATCH_CHECK", "VKDISPATCH_FORCE_STAGING")
        if variables["set"].get(name, "").strip().lower() not in ("", "0", "off", "no", "false")
    ]
    if slow:
        yield _warning(f"{' and '.join(slow)} slows everything down.", f"Unset {' and '.join(slow)}.")


# -- loader and drivers


def _check_loader(facts: Facts) -> Iterator[Problem]:
    vulkan = facts["vulkan"]
    if vulkan["loader"] is None:
        yield _error(
            f"There is no Vulkan loader that works: {vulkan['error'] or vulkan['ended']}.",
            *_install_loader(facts["system"]),
        )
        return
    yield from _check_loader_variables(facts["environment"]["set"], vulkan["loader"]["version"])
    for driver in facts["drivers"]:
        yield from _check_driver(driver, bool(vulkan["devices"]))
    if vulkan["ended"]:
        guilty = [driver["manifest"] for driver in facts["drivers"] if driver["ended"]]
        yield _error(
            f"The process that asked the Vulkan loader for devices {vulkan['ended']}, while "
            f"{vulkan['doing']}. Every program that uses Vulkan will do the same.",
            *(map(_disable_driver, guilty) if guilty else [_suspect_layers(vulkan)]),
        )
    elif not vulkan["devices"]:
        reason = f" ({vulkan['error']})" if vulkan["error"] else ""
        yield _error(f"The Vulkan loader finds no device{reason}.", *_explain_absence(facts))


def _check_loader_variables(variables: Facts, version: str) -> Iterator[Problem]:
    """Yield a warning for each variable that a loader of this version does not know."""
    has = tuple(int(part) for part in version.split("."))
    for name, since in _LOADER_VARIABLES.items():
        if variables.get(name) and has < since and not variables.get(_OLD_VARIABLE):
            yield _warning(
                f"{name} is set, but the Vulkan loader {version} does not read it.",
                f"Set {_OLD_VARIABLE}, or install loader {'.'.join(map(str, since))} or newer.",
            )


def _check_driver(driver: Facts, others_work: bool) -> Iterator[Problem]:
    if driver["ended"]:
        yield _error(
            f"The driver of {driver['manifest']} {driver['ended']}, while {driver['doing']}.",
            "Update or reinstall the driver.",
            _disable_driver(driver["manifest"]),
        )
    elif driver["fault"] and "wrong ELF class" not in driver["fault"]:  # a driver for 32-bit programs
        problem = _warning if others_work else _error
        yield problem(
            f"The driver's manifest {driver['manifest']} {driver['fault']}.",
            "Reinstall the driver, or delete the manifest; or unset the variable that names it "
            "(VK_DRIVER_FILES, VK_ICD_FILENAMES, VK_ADD_DRIVER_FILES).",
        )


def _disable_driver(manifest: str) -> str:
    name = manifest.replace("\\", "/").rpartition("/")[2]
    return f"To do without the driver: VK_LOADER_DRIVERS_DISABLE={name} (loaders from 1.3.234 on)"


def _suspect_layers(vulkan: Facts) -> str:
    layers = ", ".join(vulkan["loader"]["layers"])
    return f"A layer may be the cause: try VK_LOADER_LAYERS_DISABLE='*' (installed: {layers or 'none'})."


def _find_command(system: Facts, package: str) -> str | None:
    """Return the command that installs the package of a column, or None for an unknown distribution."""
    for name in system["family"]:
        family = _ALIASES.get(name, name.partition("-")[0])
        if family in _PACKAGES:
            columns = dict(zip(_COLUMNS, _PACKAGES[family], strict=True))
            return f"{columns['command']} {columns[package]}"
    return None


def _install_loader(system: Facts) -> list[str]:
    if system["platform"] == "win32":
        return ["Install the GPU vendor's driver: it brings the loader, vulkan-1.dll."]
    if system["platform"] == "darwin":
        return ["brew install vulkan-loader molten-vk, or install the Vulkan SDK of LunarG."]
    command = _find_command(system, "loader") or (
        "Install the Vulkan loader: libvulkan1 (Debian), vulkan-loader (Fedora), vulkan-icd-loader (Arch)"
    )
    return [command, *_install_cpu_driver(system)]


def _install_mesa(system: Facts, vendor: str) -> str:
    return _find_command(system, vendor) or (
        "install Mesa's Vulkan drivers: mesa-vulkan-drivers (Debian, Ubuntu, Fedora), "
        "vulkan-radeon, vulkan-intel or vulkan-swrast (Arch)"
    )


def _install_cpu_driver(system: Facts) -> list[str]:
    if system["platform"] in ("win32", "darwin"):
        return []
    return [f"Without a GPU, Mesa's CPU driver (lavapipe) runs kernels: {_install_mesa(system, 'CPU')}"]


def _explain_absence(facts: Facts) -> Iterator[str]:
    """Yield what to do where the loader works and has no device."""
    working = [driver for driver in facts["drivers"] if driver["devices"]]
    if working:  # one manifest that cannot be read stops some loaders
        names = ", ".join(driver["manifest"] for driver in working)
        yield f"Tried alone, these drivers have devices: {names}. Repair or remove the others."
        return
    variables = facts["environment"]["set"]
    first, *others = _LOADER_VARIABLES
    named = [name for name in (first, _OLD_VARIABLE, *others) if variables.get(name)]
    if named:
        yield f"Unset {' and '.join(named)}, to load all drivers that are installed."
    yield from _explain_gpus(facts)
    yield from _install_cpu_driver(facts["system"])
    yield "VK_LOADER_DEBUG=error,driver shows what the loader does with each driver."


def _explain_gpus(facts: Facts) -> Iterator[str]:
    """Yield what to do where a GPU is no device of Vulkan."""
    system, hardware = facts["system"], facts["hardware"]
    present = {gpu["vendor"] for gpu in hardware["gpus"]}
    has_nvidia = "NVIDIA" in present or hardware["nvidia_module"]
    if system["platform"] == "win32":
        yield "Install the GPU vendor's driver."
    if system["platform"] == "darwin":
        yield "brew install molten-vk"
    if system["wsl"]:
        yield (
            "In WSL the vendors' Linux drivers do not work. Mesa's dzn driver reaches the GPU through "
            "Windows: it is in mesa-vulkan-drivers of some distributions (dzn_icd.*.json) and needs /dev/dxg"
            + ("." if hardware["dxg"] else ", which is missing: run wsl --update.")
        )
        return
    if system["container"] and (has_nvidia or not hardware["nodes"]):
        yield (
            "In a container, NVIDIA: start it with --gpus all -e "
            "NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility (now: "
            f"{facts['environment']['set'].get('NVIDIA_DRIVER_CAPABILITIES', 'not set')}). Without "
            "'graphics' the Vulkan driver is not mounted. The image needs libvulkan1, libxext6 and libegl1."
        )
        yield "In a container, AMD and Intel: use --device /dev/dri; the image needs Mesa's drivers."
    elif has_nvidia:
        if hardware["nvidia_module"]:
            yield (
                "NVIDIA's kernel module is loaded, so its Vulkan driver is missing: install the package with "
                "libGLX_nvidia.so.0 and nvidia_icd.json (Debian: nvidia-vulkan-icd; Ubuntu: "
                "libnvidia-gl-<version of the driver>; Fedora: xorg-x11-drv-nvidia; Arch: nvidia-utils). "
                "Drivers for computing only (CUDA's 'compute' packages) lack it."
            )
        else:
            yield (
                "NVIDIA's kernel module is not loaded: install NVIDIA's driver (Debian: nvidia-driver; "
                "Ubuntu: ubuntu-drivers install; Fedora: akmod-nvidia; Arch: nvidia), then restart."
            )
    for vendor in sorted(present - {"NVIDIA"}):
        yield f"{vendor}'s driver is Mesa's: {_install_mesa(system, vendor)}"
    locked = [node["path"] for node in hardware["nodes"] if not node["usable"]]
    if locked:
        yield (
            f"You may not open {', '.join(locked)}: sudo usermod -aG render $USER (older systems: video), "
            "then log in again. In a container: --group-add with the number of the host's group."
        )


# -- devices


def _check_devices(facts: Facts) -> Iterator[Problem]:
    engine, devices = facts["engine"], facts["devices"]
    if not facts["vulkan"]["devices"] or engine.get("native_error"):
        return
    if engine["ended"]:
        yield _error(
            f"The process that loaded vkdispatch {engine['ended']}, while {engine['doing']}.",
            "Please report this with the whole text of the doctor.",
        )
        return
    if engine.get("error"):
        yield _error(f"vkdispatch cannot use the devices: {engine['error']}")
    for device in devices:
        yield from _check_device(device, device["index"] == engine.get("default"))
    if devices and all(device["missing"] for device in devices):
        yield _error("No device has what vkdispatch needs.", *_install_cpu_driver(facts["system"]))
    used = {device["vendor_id"] for device in devices}
    idle = sorted({gpu["vendor"] for gpu in facts["hardware"]["gpus"] if _VENDORS[gpu["vendor"]] not in used})
    if idle and all(device["device_type"] == _CPU for device in devices):
        yield _warning(
            f"This machine has a GPU ({', '.join(idle)}), but kernels run on the processor: the GPU is no "
            "device of Vulkan.",
            *_explain_gpus(facts),
        )


def _check_device(device: Facts, is_default: bool) -> Iterator[Problem]:
    who = f"Device {device['index']} ({device['name']})"
    newer = "Update the driver."
    otherwise = "Until then, choose another device with VKDISPATCH_DEVICE."
    if device["missing"]:
        yield (_error if is_default else _warning)(
            f"{who} cannot be used: it lacks {', '.join(device['missing'])}.", newer, otherwise
        )
        return
    trial = device["trial"]
    if trial["ended"]:
        yield _error(f"{who}: the process {trial['ended']}, while {trial['doing']}.", newer, otherwise)
    elif trial.get("error"):
        yield _error(f"{who}: {trial['doing']} failed: {trial['error']}", *_explain_failure(trial["error"]))
    for name, fault in trial.get("failures", {}).items():
        yield _error(
            f"{who} gives wrong results ({name}): {fault}.",
            newer,
            otherwise,
            "If the driver is the newest, please report this with the whole text of the doctor.",
        )
    timing = trial.get("timing")
    if timing and timing["first_call"] > _SLOW_CALL:
        yield _warning(
            f"{who}: the first call of a small kernel takes {timing['first_call']:.1f} s.",
            "The driver's compiler is slow, or the machine is busy. Compiled kernels are kept in the disk "
            "cache, so later runs of a program start faster.",
        )
    free = [heap["free"] for heap in device["heaps"] if heap["device_local"] and heap["free"] is not None]
    if free and max(free) < _LITTLE_MEMORY:
        yield _warning(
            f"{who} has only {max(free) >> 20} MiB of free memory.",
            "Other programs hold the rest: end them (NVIDIA: nvidia-smi lists them).",
        )


def _explain_failure(error: str) -> list[str]:
    if "MemoryError" in error:
        return ["Other programs may hold the memory of the device: end them (NVIDIA: nvidia-smi lists them)."]
    if "VKDISPATCH_" in error:
        return ["Correct or unset the variable."]
    return ["Update the driver.", "Please report this with the whole text of the doctor."]


# -- cache


def _check_cache(facts: Facts) -> Iterator[Problem]:
    cache = facts["engine"].get("cache")
    if cache is None:
        return
    if cache.get("error"):
        yield _error(f"The disk cache cannot be used: {cache['error']}", "Correct or unset VKDISPATCH_CACHE.")
    elif cache["folder"] is None:
        yield _warning(
            "The disk cache is off, or there is no home folder: each program compiles its kernels anew.",
            "Unset VKDISPATCH_CACHE, or let it name a folder that only you can write to.",
        )
    elif not cache["writable"]:
        yield _warning(
            f"Nothing can be kept in the disk cache, {cache['folder']}: programs compile their kernels anew.",
            "Let VKDISPATCH_CACHE name a folder that you, and nobody else, can write to.",
        )
