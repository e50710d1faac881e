"""What the environment names: unusable drivers, libraries that are no loader, values that mean nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import vkdispatch as vd

RunPython = Callable[..., subprocess.CompletedProcess[str]]

START = """
import vkdispatch as vd
try: vd.get_context()
except vd.BackendUnavailableError as error: print(error)
"""
WORK = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
try:
    @vd.shader("data.size")
    def work(data: Buff[f32]):
        vc.print("here")
        data[vc.global_invocation_id().x] += 1
    data = vd.asbuffer(np.zeros(3, np.float32))
    work(data)
    assert (data.read(0) == 1).all()
    import vkdispatch.kompute as kp
    manager = kp.Manager()
    tensor = manager.tensor(np.zeros(3, np.float32))
    manager.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpSyncLocal([tensor])).eval()
except ValueError as error: print("refused", error)
"""


# -- drivers


def _manifest(folder: Path, library: str) -> str:
    path = folder / "driver.json"
    path.write_text(
        json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library, "api_version": "1.3.0"}})
    )
    return str(path)


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ("no file", "cannot be read"),
        ("no JSON", "is not JSON"),
        ("no manifest", "no ICD.library_path"),
        ("no library", "cannot be loaded"),
        ("no driver", "is no Vulkan driver"),
        ("empty folder", "holds no manifest"),
    ],
)
def test_broken_driver_manifest_is_named(
    run_python: RunPython, tmp_path: Path, variable: str, what: str, fault: str
) -> None:
    path = tmp_path / "driver.json"
    if what == "no JSON":
        path.write_text("driver = this")
    elif what == "no manifest":
        path.write_text("{}")
    elif what == "empty folder":
        path.mkdir()
    elif what != "no file":
        _manifest(tmp_path, "libm.so.6" if what == "no driver" else "./libnot_there.so")
    # The loader reads the first of them alone where both are set.
    others = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "")
    done = run_python(START, **{**others, variable: str(path)})
    assert done.returncode == 0, done.stderr
    assert "Vulkan cannot run" in done.stdout and fault in done.stdout
    assert (
        f"{variable}: " in done.stdout
        and repr(str(path)) in done.stdout
        and f"unset {variable}" in done.stdout
    )


def test_broken_additional_manifest_is_named(run_python: RunPython, tmp_path: Path) -> None:
    path = tmp_path / "driver.json"
    path.write_text("no JSON")
    done = run_python(START, VK_ADD_DRIVER_FILES=str(path))
    # Some loaders do without any driver then, others without this one.
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" or f"VK_ADD_DRIVER_FILES: {str(path)!r} is not JSON" in done.stdout


# -- loaders


def _library(folder: Path, source: str) -> dict[str, str]:
    """Build a libvulkan.so.1; return the environment in which it is found before the system's."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    file = folder / "loader.c"
    file.write_text(source)
    command = [compiler, "-shared", "-fPIC", str(file), "-o", str(folder / "libvulkan.so.1")]
    subprocess.run(command, check=True, timeout=300)
    paths = filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")])
    return {"LD_LIBRARY_PATH": os.pathsep.join(paths)}


LOADER = r"""
#include <stdint.h>
#include <string.h>
typedef void (*Function)(void);
static int create(const void* info, const void* allocator, void** instance) {
    static uintptr_t memory[64];
    memory[0] = 0x01CDC0DE; /* what a loader's dispatchable object begins with */
    *instance = HANDLE;
    return RESULT;
}
static int version(uint32_t* number) { *number = 0x403000; return 0; }
static int none(uint32_t* count, void* layers) { *count = 0; return 0; }
static int devices(void* instance, uint32_t* count, void* found) { *count = 0; return DEVICES; }
static int nothing(void) { return 0; }
Function vkGetInstanceProcAddr(void* instance, const char* name) {
    if (!strcmp(name, "vkCreateInstance")) return CREATE;
    if (!strcmp(name, "vkEnumerateInstanceVersion")) return (Function)version;
    if (!strncmp(name, "vkEnumerateInstance", 19)) return (Function)none;
    if (!strcmp(name, "vkEnumeratePhysicalDevices")) return (Function)devices;
    return FUNCTIONS;
}
"""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (None, "libvulkan.so.1 is not a Vulkan loader: it lacks vkGetInstanceProcAddr"),
        ({"CREATE": "0"}, "libvulkan.so.1 is not a Vulkan loader: it lacks vkCreateInstance"),
        ({"RESULT": "-3"}, "vkCreateInstance failed: VK_ERROR_INITIALIZATION_FAILED"),
        ({"RESULT": "-12345"}, "vkCreateInstance failed"),
        ({"RESULT": "-1"}, "VK_ERROR_OUT_OF_HOST_MEMORY"),
        ({"HANDLE": "0"}, "vkCreateInstance returned no instance"),
        ({"FUNCTIONS": "0"}, "it lacks vkDestroyInstance"),
        ({"DEVICES": "-3"}, "vkEnumeratePhysicalDevices failed"),
        ({}, "the loader found no device"),
    ],
)
@pytest.mark.parametrize("debug", ["0", "1"])
def test_unusable_loaders_are_reported(
    run_python: RunPython, tmp_path: Path, changes: dict[str, str] | None, words: str, debug: str
) -> None:
    good = {"HANDLE": "memory", "RESULT": "0", "CREATE": "(Function)create", "FUNCTIONS": "(Function)nothing"}
    values = {**good, "DEVICES": "0", **(changes or {})}
    defines = "".join(f"#define {name} {value}\n" for name, value in values.items())
    environment = _library(tmp_path, "" if changes is None else defines + LOADER)
    done = run_python(START + "print(vd.get_backend())", VKDISPATCH_DEBUG=debug, **environment)
    assert done.returncode == 0, done.stderr
    assert "Vulkan cannot run on this machine" in done.stdout and words in done.stdout
    assert done.stdout.endswith("vulkan\n")


def test_invalid_loader_is_reported(run_python: RunPython, tmp_path: Path) -> None:
    for name in ("libvulkan.so.1", "libvulkan.so"):
        (tmp_path / name).write_text(
            "this is no library, whatever it is called, and it is long enough to be one"
        )
    done = run_python(START, LD_LIBRARY_PATH=str(tmp_path))
    assert "no Vulkan loader could be loaded" in done.stdout, done
    assert str(tmp_path / "libvulkan.so.1") in done.stdout


# -- our own variables


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("VKDISPATCH_DEVICE", "999"),
        ("VKDISPATCH_DEVICE", "no such device"),
        ("VKDISPATCH_DEVICE", "0123456789abcdef0123456789abcdef"),
        ("VKDISPATCH_DEBUG", "bogus"),
        ("VKDISPATCH_BACKEND", "bogus"),
        ("VKDISPATCH_BACKEND", "cuda"),
        ("VKDISPATCH_CACHE", "1"),
        ("VKDISPATCH_CHECK", "everything"),
        ("VKDISPATCH_CHECKPOINTS", "perhaps"),
        ("VKDISPATCH_FORCE_STAGING", "2"),
        ("VKDISPATCH_FORCE_VARIANT", "wide,fat"),
        ("VKDISPATCH_FORCE_TRANSFER_QUEUE", "3"),
        ("VKDISPATCH_KOMPUTE_MERGE", "perhaps"),
        ("VKDISPATCH_NO_CALIBRATION", "yes"),
        ("VKDISPATCH_NO_EXPORT", "yes"),
        ("VKDISPATCH_NO_HOST_IMPORT", "yes"),
        ("VKDISPATCH_NO_PUSH_DESCRIPTORS", "yes"),
        ("VKDISPATCH_PRINT_BUFFER", "\N{SUPERSCRIPT TWO}"),
    ],
)
def test_invalid_values_of_variables_are_refused(run_python: RunPython, variable: str, value: str) -> None:
    code = WORK.replace("except ValueError", "except (ValueError, vd.BackendUnavailableError)")
    done = run_python(code, **{"VKDISPATCH_DEVICE": "", "VKDISPATCH_CHECK": "", variable: value})
    assert done.returncode == 0, done.stderr
    assert f"refused {variable}: " in done.stdout and repr(value.split(",")[-1]) in done.stdout


def test_a_device_is_chosen_by_its_uuid(run_python: RunPython) -> None:
    number = vd.get_context().device_ids[0]
    uuid = vd.get_devices()[number].uuid
    assert uuid is not None
    text = uuid.hex().upper()
    with_dashes = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    for value in (text, with_dashes):
        done = run_python(START + "print(vd.get_context().device_ids)", VKDISPATCH_DEVICE=value)
        assert done.stdout == f"[{number}]\n", done.stderr


@pytest.mark.parametrize("value", ["0", "off", "False", "no", "", " 1 ", "on", "TRUE", "yes"])
def test_boolean_variables(run_python: RunPython, value: str) -> None:
    names = ("VKDISPATCH_DEBUG", "VKDISPATCH_FORCE_STAGING", "VKDISPATCH_KOMPUTE_MERGE")
    code = """
import sys
from vkdispatch.base.process import read_switch
print([read_switch(name) for name in sys.argv[1:]], read_switch("VKDISPATCH_UNKNOWN", True))
"""
    done = run_python(code, *names, **dict.fromkeys(names, value))
    on = value.strip().lower() in ("1", "on", "true", "yes")
    assert done.stdout == f"{[on] * 3} True\n", done.stderr


@pytest.mark.parametrize("value", ["llvmpipe", "NVIDIA", "7", "0"])
def test_dummy_backend_refuses_a_device_choice(run_python: RunPython, value: str) -> None:
    done = run_python(
        START + "print(vd.get_context().device_infos[0].device_name)",
        VKDISPATCH_BACKEND="dummy",
        VKDISPATCH_DEVICE=value,
    )
    assert (done.returncode, "Dummy" in done.stdout) == (0, True), done.stderr
