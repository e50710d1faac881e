"""`vd.doctor()` and `vkdispatch doctor`: what they find, on a good machine and on broken ones."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.process import VARIABLES
from vkdispatch.doctor import checks, machine, report
from vkdispatch.doctor.advice import find_problems
from vkdispatch.doctor.machine import run_child

RunPython = Callable[..., subprocess.CompletedProcess[str]]
Facts = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]


def _run(run_python: RunPython, *options: str, **environment: str) -> tuple[int, Facts]:
    """Return the exit status and the facts of `vkdispatch doctor --json`."""
    done = run_python(None, "-m", "vkdispatch", "doctor", "--json", "--no-measure", *options, **environment)
    assert done.stdout, done.stderr
    facts: Facts = json.loads(done.stdout)
    return done.returncode, facts


def _errors(facts: Facts) -> list[str]:
    return [problem["what"] for problem in facts["problems"] if problem["severity"] == "error"]


def _advice(facts: Facts) -> str:
    return "\n".join(step for problem in facts["problems"] for step in problem["advice"])


def _change(facts: Facts, **changes: Any) -> Facts:
    """Return a copy with other values: `system__wsl=True` changes facts["system"]["wsl"]."""
    changed = copy.deepcopy(facts)
    for path, value in changes.items():
        *places, name = path.split("__")
        part: Any = changed
        for place in places:
            part = part[int(place)] if place.isdigit() else part[place]
        part[name] = value
    changed["problems"] = find_problems(changed)
    return changed


@pytest.fixture(scope="module")
def healthy() -> Facts:
    """Return the facts of this machine."""
    found: Facts = vd.doctor(mode="dicts", measure=True)
    return found


# -- this machine


def test_facts_are_those_of_the_package(healthy: Facts) -> None:
    assert _errors(healthy) == [] and not report.is_broken(healthy)
    assert healthy["software"]["version"] == vd.__version__
    assert healthy["software"]["packages"]["numpy"] == np.__version__
    assert Path(healthy["vulkan"]["loader"]["path"]).name.startswith("libvulkan")
    devices = vd.get_devices()
    assert [device["name"] for device in healthy["devices"]] == [device.device_name for device in devices]
    for found, device in zip(healthy["devices"], devices, strict=True):
        assert found["limits"]["sub_group_size"] == device.sub_group_size
        assert found["limits"]["max_compute_shared_memory_size"] == device.max_compute_shared_memory_size
        assert ("float64" in found["has"]) == bool(device.float_64_support) != ("float64" in found["lacks"])
        assert ("cooperative matrices" in found["has"]) == bool(device.cooperative_matrices)
        assert found["heaps"] and all(heap["size"] > 1 << 20 for heap in found["heaps"])
    # every device was listed by a driver that was loaded alone
    alone = {name for driver in healthy["drivers"] for name in driver["devices"]}
    assert alone.issuperset(device.device_name for device in devices)


def test_devices_are_tried(healthy: Facts) -> None:
    for device in healthy["devices"]:
        trial = device["trial"]
        assert trial["checks"] >= 11 and trial["failures"] == {} and trial["ended"] is None
        assert trial["timing"]["first_call"] > 0 and trial["timing"]["later_call"] > 0
        assert all(trial["bandwidth"][way] > 1e6 for way in ("copy", "upload", "download"))


def test_cache_is_described(tmp_path: Path, healthy: Facts) -> None:
    (tmp_path / "spirv").mkdir()
    (tmp_path / "spirv" / f"{'a' * 40}.vkd").write_bytes(bytes(1000))
    cache = run_child("engine", seconds=60, VKDISPATCH_CACHE=str(tmp_path))["cache"]
    assert cache == {"folder": str(tmp_path), "entries": 1, "bytes": 1000, "writable": True}
    (tmp_path / "file").touch()
    engine = run_child("engine", seconds=60, VKDISPATCH_CACHE=str(tmp_path / "file"))
    assert not engine["cache"]["writable"]
    engine = run_child("engine", seconds=60, VKDISPATCH_CACHE="1")
    assert "expected a folder, or off, got '1'" in engine["cache"]["error"]
    assert "Correct or unset VKDISPATCH_CACHE." in _advice(_change(healthy, engine=engine))


def test_doctor_prints_a_screen_and_returns_nothing(
    capsys: pytest.CaptureFixture[str], healthy: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "gather_facts", lambda measure, seconds: healthy)
    result: object = vd.doctor()  # type: ignore[func-returns-value]
    assert result is None
    text = capsys.readouterr().out
    assert text.count("\n") < 60 and max(map(len, text.splitlines())) < 180
    for device in vd.get_devices():
        assert device.device_name in text
    assert re.search(r"\b(\d+) of \1 checks", text)  # how many depends on the device
    assert all(
        name in text for name in ("loader:", "driver:", "bandwidth: copy", "Disk cache: ", np.__version__)
    )


def test_command_prints_the_text_without_names(run_python: RunPython, tmp_path: Path) -> None:
    cache = tmp_path / "mustermann" / "cache"
    names = {"HOME": str(tmp_path / "house"), **dict.fromkeys(("LOGNAME", "USER"), "mustermann")}
    options = ("--no-measure", "--timeout", "100")
    done = run_python(
        None,
        "-m",
        "vkdispatch",
        "doctor",
        *options,
        VKDISPATCH_CACHE=str(cache),
        LP_X="/home/erika/y",
        **names,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    assert vd.get_devices()[0].device_name in done.stdout and "bandwidth" not in done.stdout
    assert f"Disk cache: {tmp_path}/~/cache, " in done.stdout and "LP_X=~/y" in done.stdout
    assert not re.search("mustermann|erika|house", done.stdout)


def test_options_of_the_command(run_python: RunPython) -> None:
    assert run_python(None, "-m", "vkdispatch", "doctor", "--timeout", "0").returncode == 2
    module, _, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "vkdispatch"
    ].partition(":")
    code = f"import sys; from {module} import {function}; sys.argv[1:] = ['doctor', '--help']; {function}()"
    assert "The exit status is 1 if something is broken." in run_python(code).stdout


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="mode: expected 'stdout' or 'dicts', got 'text'"):
        vd.doctor("text")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="more than 0, got 0"):
        vd.doctor(timeout=0)
    with pytest.raises(TypeError, match="expected seconds, got 'soon'"):
        vd.doctor(timeout="soon")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("/srv/erika/x", "~/x"),
        ("/srv/erika", "~"),
        ("/srv/erika2/x", "/srv/erika2/x"),
        ("/home/somebody/a:/Users/else/b", "~/a:~/b"),
        (r"C:\Users\somebody\a", r"~\a"),
        ("/scratch/mustermann/a", "/scratch/~/a"),
        ("/tmp/x-mustermann.d", "/tmp/x-~.d"),
        ("/opt/mustermanns", "/opt/mustermanns"),
        ("/usr/share/vulkan", "/usr/share/vulkan"),
    ],
)
def test_names_of_persons_are_replaced(monkeypatch: pytest.MonkeyPatch, text: str, cleaned: str) -> None:
    monkeypatch.setenv("HOME", "/srv/erika")
    monkeypatch.setenv("LOGNAME", "mustermann")
    facts = {"a": [{"b": text, "c": 1}], "d": text, "e": None}
    assert report._remove_names(facts) == {"a": [{"b": cleaned, "c": 1}], "d": cleaned, "e": None}


# -- broken machines


def test_no_driver(run_python: RunPython) -> None:
    status, facts = _run(
        run_python, **dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/nonexistent/driver.json")
    )
    assert status == 1 and facts["devices"] == [] and facts["vulkan"]["loader"]["version"]
    assert facts["drivers"][0]["fault"] == "cannot be read (No such file or directory)"
    assert any("finds no device" in error for error in _errors(facts))
    assert "Unset VK_DRIVER_FILES and VK_ICD_FILENAMES" in _advice(facts) and "lavapipe" in _advice(facts)


def test_no_loader(run_python: RunPython, tmp_path: Path) -> None:
    for name in ("libvulkan.so.1", "libvulkan.so"):
        (tmp_path / name).write_text("no library")
    code = "import sys, vkdispatch as vd; vd.doctor(measure=False); print(vd.doctor('dicts')['vulkan'])"
    done = run_python(code, LD_LIBRARY_PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "loader: none that works: no Vulkan loader could be loaded" in done.stdout
    assert "error: There is no Vulkan loader that works" in done.stdout and "'devices': []" in done.stdout
    assert re.search(r"- (sudo \w+ \w+ (lib)?vulkan|.*vulkan-loader)", done.stdout)


# A driver around another one: `FAULT` is what its first dispatch does.
DRIVER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void (*Function)(void);
typedef Function (*Find)(void*, const char*);
static Find real_find, real_device_find;
static void dispatch(void* commands, uint32_t x, uint32_t y, uint32_t z) { FAULT; }
static Function device_find(void* device, const char* name) {
    return strcmp(name, "vkCmdDispatch") ? real_device_find(device, name) : (Function)dispatch;
}
Function vk_icdGetInstanceProcAddr(void* instance, const char* name) {
    Function found = real_find(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr")) return found;
    real_device_find = (Find)found;
    return (Function)device_find;
}
int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
    void* driver = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    typedef int (*Negotiate)(uint32_t*);
    Negotiate negotiate = (Negotiate)dlsym(driver, "vk_icdNegotiateLoaderICDInterfaceVersion");
    real_find = (Find)dlsym(driver, "vk_icdGetInstanceProcAddr");
    if (*version > 4) *version = 4; /* what is added later asks for more functions */
    return negotiate(version);
}
__attribute__((constructor)) static void begin(void) { AT_LOAD; }
"""


def _make_driver(folder: Path, healthy: Facts, fault: str = "", at_load: str = "") -> str:
    """Return the manifest of a driver that does as the default device's, but for its dispatches."""
    name = healthy["devices"][healthy["engine"]["default"]]["name"]
    if "llvmpipe" not in name:
        pytest.skip("the wrapper is one of llvmpipe's driver")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    real = next(Path(driver["manifest"]) for driver in healthy["drivers"] if name in driver["devices"])
    library = json.loads(real.read_text())["ICD"]["library_path"]
    place = str(real.parent / library) if "/" in library else library
    source = folder / "driver.c"
    source.write_text(DRIVER)
    command = [compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(folder / "libdriver.so"), "-ldl"]
    defines = [f'-DLIBRARY="{place}"', f"-DFAULT={fault}", f"-DAT_LOAD={at_load}"]
    subprocess.run([*command, *defines], check=True, timeout=300)
    manifest = folder / "driver.json"
    manifest.write_text(
        json.dumps(
            {
                "file_format_version": "1.0.0",
                "ICD": {"library_path": "./libdriver.so", "api_version": "1.3.0"},
            }
        )
    )
    return str(manifest)


def _choose(*manifests: str) -> dict[str, str]:
    return dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), os.pathsep.join(manifests))


def _try_driver(manifest: str, seconds: float, healthy: Facts) -> tuple[Facts, Facts]:
    """Return what the doctor finds on the device of a driver, and its facts with that."""
    trial = run_child("device", seconds=seconds, VKDISPATCH_DEVICE="0", **_choose(manifest))
    return trial, _change(healthy, devices__0__trial=trial)


def test_driver_that_gives_wrong_numbers(tmp_path: Path, healthy: Facts) -> None:
    trial, facts = _try_driver(_make_driver(tmp_path, healthy, fault="(void)0"), 100, healthy)
    assert {"float32", "integers", "shared memory", "atomics"} <= trial["failures"].keys()
    words = r"\d+ of 10000 elements are wrong; the first, at \[\d+\], is "
    assert re.match(words, trial["failures"]["integers"])
    assert any("gives wrong results (integers)" in error for error in _errors(facts))
    assert "wrong: float32, integers" in report.format_facts(facts)


def test_driver_that_crashes_in_use(tmp_path: Path, healthy: Facts) -> None:
    trial, facts = _try_driver(_make_driver(tmp_path, healthy, fault="abort()"), 100, healthy)
    assert trial["ended"] == "crashed (SIGABRT)" and trial["doing"] == "running a first kernel"
    assert any("crashed (SIGABRT), while running a first kernel" in error for error in _errors(facts))
    assert "failed: running a first kernel: crashed (SIGABRT)" in report.format_facts(facts)


def test_driver_that_hangs(tmp_path: Path, healthy: Facts) -> None:
    trial, facts = _try_driver(_make_driver(tmp_path, healthy, fault="for (;;) sleep(1)"), 3, healthy)
    assert trial["ended"] == "did not end within 3 s"
    assert any("did not end within 3 s" in error for error in _errors(facts))


def test_driver_that_crashes_when_it_is_loaded(run_python: RunPython, tmp_path: Path, healthy: Facts) -> None:
    good = next(driver["manifest"] for driver in healthy["drivers"] if driver["devices"])
    manifest = _make_driver(tmp_path, healthy, at_load="abort()")
    status, facts = _run(run_python, **_choose(good, manifest))
    assert status == 1
    states = {driver["manifest"]: driver for driver in facts["drivers"]}
    assert states[good]["ended"] is None and states[good]["devices"]
    assert states[manifest]["ended"] == "crashed (SIGABRT)"
    assert facts["vulkan"]["ended"] == "crashed (SIGABRT)"
    assert "VK_LOADER_DRIVERS_DISABLE=driver.json" in _advice(facts)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("numpy", "NumPy cannot be imported: it is broken"),
        ("vkdispatch_native", "The native module cannot be imported: ImportError: it is broken"),
    ],
)
def test_broken_packages(run_python: RunPython, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise ImportError('it is broken')")
    done = run_python(
        f"import json, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import vkdispatch as vd; print(json.dumps(vd.doctor('dicts', measure=False)))"
    )
    assert done.returncode == 0, done.stderr
    assert any(words in error for error in _errors(json.loads(done.stdout)))


def test_another_package_of_the_same_name(run_python: RunPython, tmp_path: Path, healthy: Facts) -> None:
    (tmp_path / "vkdispatch").mkdir()
    (tmp_path / "vkdispatch" / "__init__.py").touch()
    information = tmp_path / "somebodys_vkdispatch-9.8.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-vkdispatch\nVersion: 9.8\n")
    (information / "top_level.txt").write_text("vkdispatch\n")
    done = run_python(
        f"import json, sys; sys.path.append({str(tmp_path)!r})\n"
        "from vkdispatch.doctor.machine import describe_packages; print(json.dumps(describe_packages()))"
    )
    facts = _change(healthy, software=json.loads(done.stdout))
    assert not report.is_broken(facts)
    said = " ".join(problem["what"] for problem in facts["problems"])
    assert f"somebodys-vkdispatch 9.8 in {tmp_path}" in said
    assert str(tmp_path / "vkdispatch") in said
    assert "pip uninstall -y somebodys-vkdispatch " in _advice(facts)


def test_distributions_of_two_projects(healthy: Facts) -> None:
    ours, theirs = (
        {"name": name, "version": version, "folder": "/site"}
        for name, version in (("vkdispatch-gpu", vd.__version__), ("vkdispatch-core", "0.1.0"))
    )
    repair = "pip uninstall -y vkdispatch-core vkdispatch-gpu && pip install vkdispatch-gpu"
    alone = _change(healthy, software__distributions=[ours])
    assert "pip uninstall" not in _advice(alone)
    both = _change(healthy, software__distributions=[ours, theirs])
    assert repair in _advice(both)
    assert any("vkdispatch-core 0.1.0 in /site" in problem["what"] for problem in both["problems"])
    other = _change(healthy, software__distributions=[theirs])
    assert repair in _advice(other)
    assert any("another project's: vkdispatch-core 0.1.0" in problem["what"] for problem in other["problems"])


def test_variables_that_mean_nothing(monkeypatch: pytest.MonkeyPatch, healthy: Facts) -> None:
    for name in ("VKDISPATCH_DEVISE", "VKDISPATCH_XYZZY", "VKDISPATCH_TIMEOUT"):
        monkeypatch.setenv(name, "100")
    variables = machine.describe_environment()
    assert variables["unknown"] == {"VKDISPATCH_DEVISE": "VKDISPATCH_DEVICE", "VKDISPATCH_XYZZY": None}
    assert variables["set"]["VKDISPATCH_TIMEOUT"] == "100"
    assert "Did you mean VKDISPATCH_DEVICE?" in _advice(_change(healthy, environment=variables))


def test_known_variables_are_those_that_the_sources_read() -> None:
    """Say which names to add to `vkdispatch.base.process.VARIABLES`, or to take away."""
    files = [*(ROOT / "vkdispatch").rglob("*.py"), *(ROOT / "vkdispatch_native").rglob("*.[cp]*")]
    texts = [file.read_text() for file in files if file.name not in ("machine.py", "environment.py")]
    found = {name for text in texts for name in re.findall(r"VKDISPATCH_[A-Z_]*[A-Z]\b", text)}
    assert found == set(VARIABLES)
    assert not set(machine._OF_TESTS) & found


# -- advice


@pytest.fixture
def absent(healthy: Facts) -> Facts:
    """Return the facts of a machine with a loader, without a GPU and a driver, outside of containers."""
    return _change(
        healthy,
        vulkan__devices=[],
        vulkan__error="vkCreateInstance failed",
        drivers=[],
        devices=[],
        system__container=None,
        system__wsl=False,
        system__platform="linux",
        system__family=["debian"],
        environment__set={},
        hardware__gpus=[],
        hardware__nodes=[],
        hardware__nvidia_module=None,
    )


NVIDIA = {"vendor": "NVIDIA", "id": "10de:2330", "module": "nvidia"}
AMD = {"vendor": "AMD", "id": "1002:74a1", "module": "amdgpu"}


@pytest.mark.parametrize(
    ("family", "command"),
    [
        (["debian"], "sudo apt install mesa-vulkan-drivers"),
        (["linuxmint", "ubuntu", "debian"], "sudo apt install mesa-vulkan-drivers"),
        (["rocky", "rhel", "centos", "fedora"], "sudo dnf install mesa-vulkan-drivers"),
        (["arch"], "sudo pacman -S vulkan-swrast"),
        (["opensuse-tumbleweed", "opensuse", "suse"], "sudo zypper install libvulkan_lvp"),
        (["alpine"], "sudo apk add mesa-vulkan-swrast"),
        (["nixos"], "mesa-vulkan-drivers (Debian"),
    ],
)
def test_commands_of_distributions(absent: Facts, family: list[str], command: str) -> None:
    assert command in _advice(_change(absent, system__family=family))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hardware__gpus": [NVIDIA], "hardware__nvidia_module": "x 580.65"}, "nvidia_icd.json"),
        ({"hardware__gpus": [{**NVIDIA, "module": None}]}, "kernel module is not loaded"),
        (
            {
                "hardware__gpus": [NVIDIA],
                "system__container": "docker",
                "environment__set": {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            },
            "NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility (now: compute,utility)",
        ),
        ({"hardware__gpus": [AMD], "system__family": ["arch"]}, "sudo pacman -S vulkan-radeon"),
        ({"hardware__nodes": [{"path": "/dev/dri/renderD128", "usable": False}]}, "usermod -aG render $USER"),
        ({"system__wsl": True, "hardware__dxg": False}, "dzn driver"),
        ({"system__platform": "darwin"}, "molten-vk"),
        ({"system__platform": "win32"}, "Install the GPU vendor's driver"),
        ({"environment__set": {"VK_LOADER_DRIVERS_DISABLE": "*"}}, "Unset VK_LOADER_DRIVERS_DISABLE"),
        ({"environment__set": {"VK_ADD_DRIVER_FILES": "x.json"}}, "Unset VK_ADD_DRIVER_FILES"),
    ],
)
def test_advice_where_there_is_no_device(absent: Facts, changes: Facts, words: str) -> None:
    assert words not in _advice(_change(absent))
    changed = _change(absent, **changes)
    assert words in _advice(changed) and _errors(changed)


def test_a_manifest_that_stops_the_loader(absent: Facts) -> None:
    parts = {"error": None, "ended": None, "doing": None, "said": []}
    broken = parts | {"manifest": "a.json", "fault": "is not JSON", "devices": []}
    working = parts | {"manifest": "b.json", "fault": None, "devices": ["a GPU"]}
    advice = _advice(_change(absent, drivers=[broken, working]))
    assert "these drivers have devices: b.json" in advice and "apt install" not in advice


def test_variables_that_an_old_loader_does_not_read(healthy: Facts) -> None:
    loader = healthy["vulkan"]["loader"]
    for version, words in (("1.2.162", ["VK_ICD_FILENAMES"]), ("1.3.207", []), ("1.3.239", [])):
        changed = _change(
            healthy,
            vulkan__loader=loader | {"version": version},
            environment__set={"VK_DRIVER_FILES": "a.json"},
        )
        found = [each["advice"] for each in find_problems(changed) if "does not read it" in each["what"]]
        assert [word for word in words if word not in str(found)] == [] and len(found) == len(words)


def test_a_gpu_that_is_not_used_is_a_warning(healthy: Facts) -> None:
    kinds: Facts = {f"devices__{i}__device_type": 4 for i in range(len(healthy["devices"]))}
    kinds |= {f"devices__{i}__vendor_id": 0x10005 for i in range(len(healthy["devices"]))}
    changed = _change(healthy, hardware__gpus=[AMD], **kinds)
    assert _errors(changed) == []
    assert any("GPU (AMD), but kernels run on the processor" in each["what"] for each in changed["problems"])


@pytest.mark.parametrize(
    ("changes", "words", "is_error"),
    [
        ({"devices__0__trial__timing": {"first_call": 9.0, "later_call": 1e-5}}, "takes 9.0 s", False),
        (
            {"devices__0__heaps": [{"size": 8 << 30, "device_local": True, "free": 5 << 20}]},
            "only 5 MiB of free memory",
            False,
        ),
        ({"devices__0__missing": ["timelineSemaphore"]}, "it lacks timelineSemaphore", True),
        ({"devices__0__trial__error": "OutOfDeviceMemoryError: no room"}, "failed: OutOfDevice", True),
        ({"engine__cache__writable": False}, "Nothing can be kept in the disk cache", False),
        ({"engine__cache__folder": None}, "The disk cache is off", False),
        ({"engine__ended": "crashed (SIGSEGV)"}, "loaded vkdispatch crashed (SIGSEGV)", True),
        ({"environment__set": {"VKDISPATCH_DEBUG": "1"}}, "slows everything down", False),
        ({"environment__set": {"VKDISPATCH_BACKEND": "dummy"}}, "do not run", False),
        ({"environment__set": {"VKDISPATCH_BACKEND": "cuda"}}, "no such backend", True),
    ],
)
def test_problems_of_devices_and_settings(healthy: Facts, changes: Facts, words: str, is_error: bool) -> None:
    changed = _change(healthy, **changes)
    found = [problem for problem in changed["problems"] if words in problem["what"]]
    assert [problem["severity"] for problem in found] == ["error" if is_error else "warning"]
    assert report.is_broken(changed) == is_error
    assert re.sub(r"\s+", " ", found[0]["what"]) in re.sub(r"\s+", " ", report.format_facts(changed))


# -- results


def test_results_are_compared() -> None:
    ones = np.ones(3, np.float32)
    assert checks.compare(ones, ones + np.float32(1e-6)) is None
    assert "2 of 3 elements are wrong; the first, at [0]" in str(
        checks.compare(np.array([np.nan, 1, 2], np.float32), ones)
    )
    assert "at [1], is 4, expected 5" in str(checks.compare(np.array([3, 4]), np.array([3, 5])))
    assert "shape (2,), expected (3,)" in str(checks.compare(np.ones(2), np.ones(3)))


def test_a_check_that_raises_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise MemoryError("no room")

    monkeypatch.setitem(checks._CHECKS, "float32", fail)
    assert checks.find_fault("float32") == "MemoryError: no room"


def test_importing_the_doctor_brings_little(run_python: RunPython) -> None:
    done = run_python(
        "import sys, vkdispatch as vd; vd.doctor\n"
        "heavy = ('numpy', 'vkdispatch.codegen', 'vkdispatch_native')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", ""), sys.version
