"""The child processes of the doctor: each runs one task, and prints what it finds as lines of JSON.

What a process has found stays known when a driver ends it: each line is written at once.
"""

import json
import os
from collections.abc import Callable
from typing import Any

_CACHE = "VKDISPATCH_CACHE"

Say = Callable[..., None]


def main(task: str, argument: str) -> None:
    """Run a task: "loader", "engine", or or "device", perhaps with "measure"."""
    _forbid_core_files()
    # What drivers and warnings print to the standard output goes elsewhere.
    output = os.dup(1)
    os.dup2(2, 1)

    def say(**facts: Any) -> None:
        os.write(output, json.dumps(facts).encode() + b"\n")

    {"loader": _ask_loader, "engine": _ask_engine, "device": _try_device}[task](say, argument)


def _forbid_core_files() -> None:
    """Have a crash leave no file behind."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _ask_loader(say: Say, manifest: str) -> None:
    """Ask the loader for its devices, without the engine. A manifest is that of the only driver to load."""
    from vkdispatch.base.devices import find_fault
    from vkdispatch.doctor import vulkan

    if manifest:
        say(doing="loading the library that it names")
        say(fault=find_fault(manifest))
    say(doing="loading the Vulkan loader")
    try:
        loader = vulkan.open_loader()
        say(loader=vulkan.describe_loader(loader), doing="asking for devices")
        say(devices=vulkan.list_devices(loader))
    except vulkan.LoaderError as error:
        say(error=str(error))


def _ask_engine(say: Say, _: str) -> None:
    """Import vkdispatch with all that it needs, and list the devices as it sees them."""
    say(doing="importing vkdispatch")
    try:
        from vkdispatch.base.host_numpy import is_absent
        from vkdispatch.base.native_module import native

        if is_absent(native):
            say(native_error="the native module vkdispatch_native is not installed")
        else:
            say(native=native.__file__, compiler=native.compiler_identity())
    except Exception as error:  # the native module of another version may lack anything
        say(native_error=f"{type(error).__name__}: {error}")
    try:
        import numpy  # noqa: F401  its import is what may fail
    except ImportError as error:
        say(numpy_error=str(error))
    say(doing="looking at the disk cache")
    try:
        say(cache=_describe_cache())
    except Exception as error:
        say(cache={"error": str(error)})
    say(doing="loading Vulkan and listing its devices")
    try:
        from vkdispatch.base.contexts.selection import default_device
        from vkdispatch.base.devices import DeviceInfo
        from vkdispatch.base.init import get_devices

        names = [name for name in DeviceInfo.__match_args__ if name != "cooperative_matrices"]
        say(
            devices=[
                {
                    **{name: _plain(getattr(device, name)) for name in names},
                    "subgroup_arithmetic": device.subgroup_arithmetic,
                    "cooperative_matrices": len(device.cooperative_matrices),
                }
                for device in get_devices()
            ]
        )
        say(default=default_device())
    except Exception as error:
        say(error=str(error))


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return sorted(value) if isinstance(value, frozenset) else value


def _describe_cache() -> dict[str, Any]:
    from vkdispatch.base.compilation import disk_cache

    folder = disk_cache.folder()
    if folder is None:
        return {"folder": None}
    usage = disk_cache.entries()
    token = os.urandom(8)
    disk_cache.store("measured", "doctor", token)
    return {
        "folder": str(folder),
        "entries": sum(kind.count for kind in usage.values()),
        "bytes": sum(kind.size for kind in usage.values()),
        "writable": disk_cache.load("measured", "doctor") == token,
    }


def _try_device(say: Say, argument: str) -> None:
    """Run kernels on a device, check what they compute, and time it and copies."""
    say(doing="making a context")
    try:
        from vkdispatch.base.context import get_context
        from vkdispatch.doctor import checks

        # The first call is timed without what earlier runs have compiled.
        kept = os.environ.get(_CACHE)
        os.environ[_CACHE] = "off"
        context = get_context()
        say(doing="running a first kernel")
        say(timing=checks.time_kernel())
        if argument == "measure":
            say(doing="measuring the bandwidth")
            say(bandwidth=checks.measure_bandwidth(context))
        if kept is None:
            del os.environ[_CACHE]
        else:
            os.environ[_CACHE] = kept
        failures: dict[str, str] = {}
        names = checks.names_of(context.device_infos[0])
        for name in names:
            say(doing=f"checking {name}")
            fault = checks.find_fault(name)
            if fault:
                failures[name] = fault
        say(checks=len(names), failures=failures)
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}")
