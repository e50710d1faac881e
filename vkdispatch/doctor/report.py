"""`vd.doctor()`: facts about this machine, and the text that shows them."""

import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Literal, overload

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process import Wait, show_wait
from vkdispatch.doctor import machine
from vkdispatch.doctor.advice import find_problems
from vkdispatch.doctor.machine import SECONDS, Facts, run_child

_WIDTH = 110
_KINDS = {0: "other", 1: "integrated GPU", 2: "discrete GPU", 3: "virtual GPU", 4: "CPU driver (no GPU)"}
# of the processes that use the engine
_VARIABLES = {"VKDISPATCH_BACKEND": "vulkan", "VK_LOADER_DEBUG": ""}

# What a device may have: its Vulkan feature, extension or attribute (any of them); what it gives; and how
# things are without it.
_FEATURES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("float64", ("shaderFloat64",), "kernels with float64 are refused"),
    ("float16", ("shaderFloat16",), "computed as float32"),
    ("bfloat16", ("shaderBFloat16Type",), "computed as float32"),
    ("int64", ("shaderInt64",), "computed in two halves, slowly; no buffers larger than a binding"),
    ("int16", ("shaderInt16",), "computed as int32"),
    ("16-bit buffers", ("storageBuffer16BitAccess",), "elements are packed in words, slower stores"),
    ("8-bit buffers", ("storageBuffer8BitAccess",), "elements are packed in words, slower stores"),
    ("int64 atomics", ("shaderBufferInt64Atomics",), "refused"),
    ("float32 atomic add", ("shaderBufferFloat32AtomicAdd",), "refused"),
    ("subgroup arithmetic", ("subgroup_arithmetic",), "done by ballots and shuffles, slower"),
    ("cooperative matrices", ("cooperativeMatrix",), "vd.matmul multiplies halves without matrix units"),
    ("buffer addresses", ("bufferDeviceAddress",), "buffers larger than a binding are refused"),
    ("sparse buffers", ("sparseBinding",), "a buffer is at most one allocation of the driver"),
    ("push descriptors", ("VK_KHR_push_descriptor",), "launches cost more"),
    ("host memory import", ("VK_EXT_external_memory_host",), "host memory is copied, not shared"),
    ("memory export", ("VK_KHR_external_semaphore_fd",), "no memory is shared with CUDA or other processes"),
    ("host query reset", ("hostQueryReset",), "no vd.profile()"),
    ("timestamps", ("timestamp_period",), "no vd.profile()"),
    (
        "calibrated timestamps",
        ("VK_EXT_calibrated_timestamps",),
        "profiles relate the clocks of host and device less exactly",
    ),
    ("memory budget", ("VK_EXT_memory_budget",), "free memory is not known"),
    (
        "fault reports",
        ("VK_EXT_device_fault", "VK_NV_device_diagnostic_checkpoints", "VK_AMD_buffer_marker"),
        "the error of a lost device tells less",
    ),
)


@overload
def doctor(mode: Literal["stdout"] = "stdout", *, measure: bool = True, timeout: float = SECONDS) -> None: ...
@overload
def doctor(mode: Literal["dicts"], *, measure: bool = True, timeout: float = SECONDS) -> dict[str, Any]: ...
def doctor(mode: str = "stdout", *, measure: bool = True, timeout: float = SECONDS) -> dict[str, Any] | None:
    """Examine this machine, print what there is, whether it works, and what to do about each problem.

    It looks for the Vulkan loader and the drivers, lists the devices and what they lack, runs kernels on each
    device, compares their results with those of NumPy, and times them. It works without a loader, a driver
    or the native module. Each driver and device is tried in a process of its own, so that a driver that
    crashes is reported and does no harm. The text contains no user names and no home folders: it can be
    pasted into an issue. The command `vkdispatch doctor` prints the same.

    Parameters
    ----------
    mode
        "stdout" prints the text. "dicts" returns the facts instead, as `numpy.show_config` does.
    measure
        Whether to measure the bandwidth of copies, on the device and from and to the host.
    timeout
        Seconds that a driver or device may take before it counts as hanging.

    Returns
    -------
    dict or None
        With "dicts": the keys `software`, `system`, `hardware`, `environment`, `vulkan`, `drivers`, `engine`,
        `devices` and `problems`, with values that `json.dumps` takes. A problem has a `severity` ("error":
        something is broken; or "warning"), `what`, and `advice`, a list of steps.

    Raises
    ------
    ValueError
        `mode` is another word, or `timeout` is not greater than 0.
    TypeError
        `timeout` is not a number.

    Examples
    --------
    >>> facts = vd.doctor("dicts", measure=False)
    >>> sorted(facts)[:3]
    ['devices', 'drivers', 'engine']
    """
    if mode not in ("stdout", "dicts"):
        raise ArgumentValueError(f"mode: expected 'stdout' or 'dicts', got {mode!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise ArgumentTypeError(f"timeout: expected seconds, got {timeout!r}")
    if not timeout > 0:
        raise ArgumentValueError(f"timeout: expected seconds, more than 0, got {timeout!r}")
    facts = gather_facts(bool(measure), min(float(timeout), 1e6))
    if mode == "dicts":
        return facts
    print(format_facts(facts))
    return None


def is_broken(facts: Facts) -> bool:
    """Whether a problem is an error."""
    return any(problem["severity"] == "error" for problem in facts["problems"])


# -- facts


def gather_facts(measure: bool, seconds: float) -> Facts:
    """Return all facts and the problems, without user names."""
    with show_wait("looking at this machine") as wait:
        facts = _gather(measure, seconds, wait)
    facts["problems"] = find_problems(facts)
    cleaned: Facts = _remove_names(facts)
    return cleaned


def _gather(measure: bool, seconds: float, wait: Wait) -> Facts:
    facts: Facts = {
        "software": machine.describe_packages(),
        "system": machine.describe_system(),
        "hardware": machine.describe_hardware(),
        "environment": machine.describe_environment(),
    }
    known: Facts = {"loader": None, "devices": [], "error": None}
    facts["vulkan"] = known | run_child("loader", seconds=seconds)
    facts["drivers"] = []
    for manifest in machine.find_manifests():
        wait.what = f"loading the driver of {os.path.basename(manifest)}"
        facts["drivers"].append(_try_driver(manifest, seconds))
    wait.what = "listing the devices"
    facts["engine"] = run_child("engine", seconds=seconds, **_VARIABLES)
    facts["devices"] = [
        _describe_device(index, device, facts["vulkan"]["devices"])
        for index, device in enumerate(facts["engine"].pop("devices", []))
    ]
    for device in facts["devices"]:
        if not device["missing"]:
            wait.what = f"running kernels on device {device['index']}"
            chosen = {**_VARIABLES, "VKDISPATCH_DEVICE": str(device["index"])}
            task = "measure" if measure else ""
            device["trial"] = run_child("device", task, seconds=seconds, **chosen)
    return facts


def _try_driver(manifest: str, seconds: float) -> Facts:
    """Load one driver alone."""
    chosen = {
        **dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), manifest),
        **dict.fromkeys(("VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"), ""),
    }
    facts = run_child("loader", manifest, seconds=seconds, **chosen)
    return {
        "manifest": manifest,
        "devices": [device["name"] for device in facts.get("devices", [])],
        **{key: facts.get(key) for key in ("fault", "error", "ended", "doing", "said")},
    }


def _describe_device(index: int, device: Facts, others: list[Facts]) -> Facts:
    """Return what matters of a device, with what the loader told of it."""
    twin = others[index] if index < len(others) and others[index]["name"] == device["device_name"] else {}
    has = {
        *device["features"],
        *device["extensions"],
        *(name for name in ("subgroup_arithmetic", "timestamp_period") if device[name]),
    }
    return {
        "index": index,
        "name": device["device_name"],
        "device_type": device["device_type"],
        "vendor_id": device["vendor_id"],
        "vulkan": ".".join(str(device[f"version_{part}"]) for part in ("major", "minor", "patch")),
        "driver": twin.get("driver"),
        "heaps": twin.get("heaps", []),
        "missing": device["missing"],
        "has": [name for name, keys, _ in _FEATURES if has.intersection(keys)],
        "lacks": {name: without for name, keys, without in _FEATURES if not has.intersection(keys)},
        "limits": {
            name: device[name]
            for name in (
                *("max_workgroup_size", "max_workgroup_invocations", "max_compute_shared_memory_size"),
                *("sub_group_size", "max_storage_buffer_range", "max_bound_storage_buffers"),
                "max_push_constant_size",
            )
        },
        "queues": sum(count for count, flags in device["queue_properties"] if flags & 0x2),
        "trial": {"ended": None},
    }


# Names of accounts that tell nothing of a person, and words that paths contain anyway.
_NOBODY = {
    *("root", "user", "ubuntu", "debian", "admin", "runner"),
    *("vkdispatch", "vulkan", "python", "lib", "usr"),
}


def _remove_names(value: Any) -> Any:
    """Return the facts with `~` for home folders and the user's name."""
    import getpass

    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user of a container may have no name
        name = ""
    patterns = [r"(?:/home|/Users|[A-Za-z]:\\+Users)[/\\]+[^/\\\s'\":;]+"]
    home = os.path.expanduser("~")
    if home not in ("/", "~", ""):
        patterns.insert(0, rf"{re.escape(home)}(?![\w.-])")
    if len(name) > 2 and name.lower() not in _NOBODY:
        patterns.append(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    pattern = re.compile("|".join(patterns))

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            return pattern.sub("~", part)
        if isinstance(part, dict):
            return {key: clean(item) for key, item in part.items()}
        return [clean(item) for item in part] if isinstance(part, list) else part

    return clean(value)


# -- text


def format_facts(facts: Facts) -> str:
    """Return the facts as text of about a screen."""
    sections = [
        *_format_software(facts),
        *_format_vulkan(facts),
        *_format_devices(facts),
        *_format_cache(facts["engine"].get("cache")),
        *_format_environment(facts["environment"]["set"]),
        *_format_problems(facts["problems"]),
    ]
    return "\n".join(sections)


def _wrap(label: str, text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=f"  {label}", subsequent_indent="    ", break_on_hyphens=False
    )


def _format_software(facts: Facts) -> Iterator[str]:
    software, system, engine = facts["software"], facts["system"], facts["engine"]
    native = engine.get("native")
    yield f"vkdispatch {software['version']}"
    yield _wrap("package: ", software["folder"])
    compiler = " ".join(engine.get("compiler", "").split()[:2])
    yield _wrap(
        "native module: ", f"{native} ({compiler})" if native else engine.get("native_error", "unknown")
    )
    inside = [
        *([f"in {system['container']}"] if system["container"] else []),
        *(["WSL"] if system["wsl"] else []),
    ]
    yield _wrap("system: ", ", ".join(filter(None, (system["system"], system["distribution"], *inside))))
    packages = (f"{name} {version}" for name, version in software["packages"].items())
    yield _wrap("Python: ", ", ".join((software["python"], *packages)))
    hardware = facts["hardware"]
    gpus = [f"{gpu['vendor']} {gpu['id']} (module: {gpu['module'] or 'none'})" for gpu in hardware["gpus"]]
    if hardware["nvidia_module"]:
        gpus.append(hardware["nvidia_module"])
    gpus += [f"{node['path']}{'' if node['usable'] else ' (no permission)'}" for node in hardware["nodes"]]
    yield _wrap("GPUs: ", ", ".join(gpus) or "none found on the PCI bus")


def _format_vulkan(facts: Facts) -> Iterator[str]:
    vulkan = facts["vulkan"]
    loader = vulkan["loader"]
    yield ""
    yield "Vulkan"
    if loader is None:
        yield _wrap("loader: ", f"none that works: {vulkan['error'] or vulkan['ended']}")
    else:
        yield _wrap("loader: ", f"{loader['version']}, {loader['path']}")
        yield _wrap("layers: ", ", ".join(loader["layers"]) or "none")
    for driver in facts["drivers"]:
        state = driver["ended"] or driver["fault"] or ", ".join(driver["devices"]) or "no device"
        yield _wrap("driver: ", f"{driver['manifest']}: {state}")
        if driver["ended"]:
            yield from (f"      | {line[:_WIDTH]}" for line in driver["said"][-3:])
    if not facts["drivers"]:
        yield "  driver: no manifest (*.json) was found"


def _format_devices(facts: Facts) -> Iterator[str]:
    shown: list[Facts] = []
    for device in facts["devices"]:
        default = " (default)" if device["index"] == facts["engine"].get("default") else ""
        yield ""
        yield f"Device {device['index']}{default}: {device['name']}"
        kind = _KINDS.get(device["device_type"], "unknown")
        yield _wrap("type: ", f"{kind}, Vulkan {device['vulkan']}, driver {device['driver'] or 'unknown'}")
        yield _wrap("memory: ", _format_heaps(device["heaps"]))
        compared = ("limits", "has", "lacks", "queues")
        twin = next((other for other in shown if all(other[key] == device[key] for key in compared)), None)
        if twin is not None:
            yield f"  limits and features: as device {twin['index']}"
        else:
            shown.append(device)
            yield _wrap("limits: ", _format_limits(device["limits"], device["queues"]))
            yield _wrap("has: ", ", ".join(device["has"]))
            if device["lacks"]:
                lacks = (f"{name} ({without})" for name, without in device["lacks"].items())
                yield _wrap("lacks: ", ", ".join(lacks))
        yield from _format_trial(device)


def _format_heaps(heaps: list[Facts]) -> str:
    parts = []
    for heap in heaps:
        free = "" if heap["free"] is None else f", {_format_size(heap['free'])} free"
        parts.append(
            f"{_format_size(heap['size'])} {'of the device' if heap['device_local'] else 'of the host'}{free}"
        )
    return "; ".join(parts) or "unknown"


def _format_limits(limits: Facts, queues: int) -> str:
    parts = (
        f"workgroup {' x '.join(map(str, limits['max_workgroup_size']))}",
        f"{limits['max_workgroup_invocations']} invocations in all",
        f"subgroup {limits['sub_group_size']}",
        f"shared memory {_format_size(limits['max_compute_shared_memory_size'])}",
        f"buffer of a binding {_format_size(limits['max_storage_buffer_range'])}",
        f"{limits['max_bound_storage_buffers']} buffers a kernel",
        f"push constants {limits['max_push_constant_size']} bytes",
        f"compute queues {queues}",
    )
    return ", ".join(parts)


def _format_trial(device: Facts) -> Iterator[str]:
    trial = device["trial"]
    if device["missing"]:
        yield _wrap("cannot be used: ", f"it lacks {', '.join(device['missing'])}")
        return
    timing, bandwidth = trial.get("timing"), trial.get("bandwidth")
    if timing:
        yield (
            f"  kernel: first call {timing['first_call'] * 1e3:.1f} ms with all compiling, then "
            f"{timing['later_call'] * 1e6:.1f} us a call"
        )
    if bandwidth:
        rates = (
            f"{name} not measured (no memory)" if rate is None else f"{name} {rate / 1e9:.1f} GB/s"
            for name, rate in bandwidth.items()
        )
        yield _wrap("bandwidth: ", ", ".join(rates))
    if "checks" in trial:
        wrong = ", ".join(trial["failures"])
        right = trial["checks"] - len(trial["failures"])
        yield _wrap(
            "results: ",
            f"{right} of {trial['checks']} checks are right{f'; wrong: {wrong}' if wrong else ''}",
        )
    state = trial["ended"] or trial.get("error")
    if state:
        yield _wrap("failed: ", f"{trial['doing']}: {state}")
        yield from (f"      | {line[:_WIDTH]}" for line in trial["said"][-3:])


def _format_cache(cache: Facts | None) -> Iterator[str]:
    yield ""
    if cache is None or cache.get("error"):
        yield f"Disk cache: {'unknown' if cache is None else cache['error']}"
    elif cache["folder"] is None:
        yield "Disk cache: off"
    else:
        state = "writable" if cache["writable"] else "not writable"
        size = f"{cache['entries']} entries, {_format_size(cache['bytes'])}"
        yield f"Disk cache: {cache['folder']}, {size}, {state}"


def _format_environment(variables: Facts) -> Iterator[str]:
    yield ""
    yield "Environment" if variables else "Environment: no variable of vkdispatch or Vulkan is set"
    for name, value in variables.items():
        yield f"  {name}={value}"


def _format_problems(problems: list[Facts]) -> Iterator[str]:
    yield ""
    yield "Problems" if problems else "No problems found."
    for number, problem in enumerate(problems, 1):
        yield _wrap(f"{number}. {problem['severity']}: ", problem["what"])
        for step in problem["advice"]:
            yield textwrap.fill(
                step, _WIDTH, initial_indent="     - ", subsequent_indent="       ", break_on_hyphens=False
            )


def _format_size(size: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            number = size / (1 << shift)
            return (
                f"{number:.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}"
            )
    return f"{size} bytes"
