"""Devices, contexts, queues, logging, the command line: in this process and in fresh ones."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import vkdispatch as vd
from vkdispatch.base import devices as devices_module
from vkdispatch.base import init
from vkdispatch.base.context import (
    get_context,
    get_context_handle,
    is_context_initialized,
    make_context,
    queue_wait_idle,
)
from vkdispatch.base.contexts import selection
from vkdispatch.base.contexts.selection import default_device, find_device, select_queue_families
from vkdispatch.base.devices import DeviceInfo, by_preference
from vkdispatch.base.errors import BackendUnavailableError, UnsupportedError, VkDispatchError
from vkdispatch.base.init import get_devices
from vkdispatch.base.process import (
    LogLevel,
    log,
    log_error,
    log_info,
    log_verbose,
    log_warning,
    set_log_level,
)
from vkdispatch.cli import cli_entrypoint

RunPython = Callable[..., subprocess.CompletedProcess[str]]


# -- devices


def test_devices() -> None:
    devices = get_devices()
    assert devices
    for index, device in enumerate(devices):
        assert device.dev_index == device.sorted_index == index
        assert len(device.max_workgroup_size) == 3
        assert device.uuid is None or len(device.uuid) == 16
        assert device.timeline_semaphores in (0, 1)
        assert f"Device {index}: {device.device_name}" in repr(device)
        assert len(device.get_info_string(True)) > len(device.get_info_string())
        assert device.is_cpu() == (device.device_type == 4)


def _device(kind: int, name: str, **changes: Any) -> DeviceInfo:
    return replace(get_devices()[0], device_type=kind, device_name=name, missing=[], **changes)


def _with_devices(monkeypatch: pytest.MonkeyPatch, devices: list[DeviceInfo]) -> None:
    monkeypatch.setattr(selection, "get_devices", lambda: devices)


def test_order_of_preferred_devices() -> None:
    devices = [_device(kind, str(kind)) for kind in (4, 3, 1, 2, 0)]
    assert [devices[index].device_type for index in by_preference(devices)] == [2, 1, 3, 0, 4]
    devices[3].missing = ["timeline semaphores"]
    assert [devices[index].device_type for index in by_preference(devices)] == [1, 3, 0, 4]


def test_default_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VKDISPATCH_DEVICE", raising=False)
    cpu, integrated, discrete = _device(4, "soft pipe"), _device(1, "Iris"), _device(2, "NVIDIA H200")
    _with_devices(monkeypatch, [cpu])
    assert default_device() == 0
    _with_devices(monkeypatch, [cpu, integrated, discrete])
    assert default_device() == 2
    monkeypatch.setenv("VKDISPATCH_DEVICE", "iris")
    assert default_device() == 1
    monkeypatch.setenv("VKDISPATCH_DEVICE", "0")
    assert default_device() == 0
    monkeypatch.setenv("VKDISPATCH_DEVICE", "Radeon")
    with pytest.raises(ValueError, match=r"VKDISPATCH_DEVICE.*'Radeon'.*0: soft pipe; 1: Iris"):
        default_device()


def test_automatic_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = selection.choose_devices
    monkeypatch.delenv("VKDISPATCH_DEVICE", raising=False)
    _with_devices(monkeypatch, [_device(4, "cpu"), _device(2, "a"), _device(2, "b")])
    assert choose(None, False, True) == [1, 2]
    assert choose(None, True, True) == [1, 2, 0]
    assert choose(2, False, False) == [1, 2]
    for count in (0, 3, -1, True, "1"):
        with pytest.raises(ValueError, match="device_count"):
            choose(count, False, False)  # type: ignore[arg-type]
    monkeypatch.setenv("VKDISPATCH_DEVICE", "b")
    assert choose(1, False, False) == choose(None, True, True) == [2]
    with pytest.raises(ValueError, match=r"device_count.* 1 to 1 .*VKDISPATCH_DEVICE=b"):
        choose(2, False, False)
    _with_devices(monkeypatch, [])
    with pytest.raises(BackendUnavailableError, match="mesa-vulkan-drivers"):
        choose(None, False, False)


def test_a_device_that_lacks_something_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VKDISPATCH_DEVICE", raising=False)
    old = _device(2, "Old GPU")
    old.missing = ["timeline semaphores"]
    _with_devices(monkeypatch, [old])
    assert default_device() == 0
    with pytest.raises(UnsupportedError, match=r"Old GPU.*timeline semaphores"):
        selection.refuse_unusable([0])


def test_find_device_prefers_usable_ones() -> None:
    old, new = _device(2, "GPU one"), _device(2, "GPU two")
    old.missing = ["something"]
    assert find_device("gpu", [old, new]) == 1
    assert find_device("70 ti", [_device(2, "x"), _device(2, "RTX 70 Ti")]) == 1


@pytest.mark.parametrize("wanted", ["1", "2", "15", "-1", "+7"])
def test_a_number_is_an_index_of_a_device(wanted: str) -> None:
    """Never a digit of a name such as "LLVM 15.0.6"."""
    with pytest.raises(
        ValueError, match=rf"VKDISPATCH_DEVICE: .* 0 to 0 .*'{re.escape(wanted)}'.*0: llvmpipe \(LLVM"
    ):
        find_device(wanted, [_device(4, "llvmpipe (LLVM 15.0.6, 1+7-1 2)")])
    assert find_device("1", [_device(2, "GPU 1"), _device(2, "GPU 0")]) == 1


@pytest.mark.parametrize(
    ("queues", "nvidia", "one", "automatic", "four"),
    [
        ([(1, 7)], False, [0], [0], [0, 0, 0, 0]),
        ([(16, 15), (8, 14)], False, [1], [1, 0], [1, 0, 1, 0]),
        ([(16, 15), (2, 12), (8, 14)], True, [2], [2, 0, 2], [2, 0, 2, 2]),
        ([(1, 4), (1, 2), (1, 3)], False, [1], [1, 2], [1, 2, 1, 2]),
    ],
)
def test_select_queue_families(
    monkeypatch: pytest.MonkeyPatch,
    queues: list[tuple[int, int]],
    nvidia: bool,
    one: list[int],
    automatic: list[int],
    four: list[int],
) -> None:
    name = "NVIDIA X" if nvidia else "X"
    _with_devices(monkeypatch, [_device(2, name, queue_properties=queues)])
    assert select_queue_families(0, 1) == one
    assert select_queue_families(0) == automatic
    assert select_queue_families(0, 4) == four
    with pytest.raises(ValueError, match="queue_count"):
        select_queue_families(0, 0)
    with pytest.raises(ValueError, match="device_ids"):
        select_queue_families(5)


def test_no_compute_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_devices(monkeypatch, [_device(2, "blitter", queue_properties=[(1, 4)])])
    with pytest.raises(ValueError, match="blitter has no queue"):
        select_queue_families(0)


def test_device_info_is_plain_data() -> None:
    info = get_devices()[0]
    assert replace(info, device_name="NVIDIA H200").is_nvidia()
    assert replace(info, device_name="Apple M3").is_apple()
    assert "lacks: x" in replace(info, missing=["x"]).get_info_string()
    assert not replace(info, supported_stages=0).subgroup_enabled
    assert devices_module.CPU_DEVICE == 4


# -- the context


def test_context() -> None:
    context = get_context()
    assert context is get_context() is make_context(device_ids=99, queue_families=[[7]])
    assert is_context_initialized()
    assert isinstance(get_context_handle(), int)
    assert context.queue_count == sum(map(len, context.queue_families))
    assert context.usable and not context.closed
    assert context.max_workgroup_size[0] >= 128
    assert len(context.device_infos) == len(context.device_ids) == len(context.mapped_device_ids)
    assert isinstance(context.subgroup_arithmetic, bool)


def test_queue_wait_idle() -> None:
    queue_wait_idle()
    queue_wait_idle(0)
    queue_wait_idle(queue_index=0, context=get_context())
    for bad in (-1, 99, 1.5, "0", True):
        with pytest.raises(ValueError, match="queue_index"):
            queue_wait_idle(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("device_ids=99", "device_ids"),
        ("device_ids=[]", "device_ids"),
        ("device_ids=[0, 0]", "device_ids"),
        ("device_ids=['0']", "device_ids"),
        ("device_count=99", "device_count"),
        ("queue_families=[[0]]", "device_ids"),
        ("device_ids=0, queue_families=[[0], [0]]", "queue_families"),
        ("device_ids=0, queue_families=[[99]]", "queue_families"),
        ("device_ids=0, queue_families=[[]]", "queue_families"),
        ("device_ids=0, queue_counts=[1, 1]", "queue_counts"),
        ("device_ids=0, queue_counts=0", "queue_count"),
    ],
)
def test_invalid_context_arguments_are_refused(run_python: RunPython, arguments: str, text: str) -> None:
    done = run_python(
        "from vkdispatch.base.context import make_context, get_context\n"
        f"try: make_context({arguments})\n"
        "except ValueError as error: print(error)\n"
        "print(get_context().queue_count)"
    )
    assert done.returncode == 0, done.stderr
    assert text in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[-1] == "1"


@pytest.mark.parametrize(
    "arguments", ["", "device_ids=0", "device_ids=[0]", "use_cpu=True", "multi_queue=True", "queue_counts=1"]
)
def test_valid_context_arguments(run_python: RunPython, arguments: str) -> None:
    done = run_python(
        "import numpy as np\n"
        "from vkdispatch.base.context import make_context, queue_wait_idle\n"
        "from vkdispatch.base.buffer import asbuffer\n"
        f"context = make_context({arguments})\n"
        "buffer = asbuffer(np.arange(5, dtype=np.float32))\n"
        "assert buffer.read().shape == (context.queue_count, 5) and buffer.read()[-1].sum() == 10\n"
        "print('good')"
    )
    assert done.stdout.strip().endswith("good"), done.stderr


def test_destroyed_context(run_python: RunPython) -> None:
    done = run_python(
        "import numpy as np\n"
        "from vkdispatch.base.buffer import asbuffer\n"
        "from vkdispatch.base.context import destroy_context, get_context, stop_threads\n"
        "from vkdispatch.base.context import is_context_initialized\n"
        "old = asbuffer(np.zeros(3, np.float32)); first = get_context()\n"
        "destroy_context(); destroy_context()\n"
        "assert old.destroyed and first.closed and not is_context_initialized()\n"
        "try: old.read(0)\n"
        "except RuntimeError as error: print(error)\n"
        "new = asbuffer(np.ones(3, np.float32))\n"
        "assert get_context() is not first and new.read(0).sum() == 3\n"
        "stop_threads()\n"
        "print('good')"
    )
    assert done.stdout.strip().endswith("good"), done.stderr
    assert "destroyed" in done.stdout


def test_two_threads_make_one_context(run_python: RunPython) -> None:
    done = run_python(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from vkdispatch.base.context import get_context\n"
        "with ThreadPoolExecutor(8) as pool: made = list(pool.map(lambda _: get_context(), range(8)))\n"
        "assert len(set(map(id, made))) == 1\n"
        "print('good')"
    )
    assert done.stdout.strip().endswith("good"), done.stderr


def test_staging_can_be_forced(run_python: RunPython) -> None:
    done = run_python(
        "import numpy as np\n"
        "from vkdispatch.base.buffer import asbuffer\n"
        "values = np.random.default_rng(0).random(100_003, np.float32)\n"
        "buffer = asbuffer(values)\n"
        "assert not buffer._native.host_mapped and (buffer.read(0) == values).all()\n"
        "buffer.write(values[:7].tobytes())\n"
        "print('good')",
        VKDISPATCH_FORCE_STAGING="1",
    )
    assert done.stdout.strip().endswith("good"), done.stderr


def test_environment_picks_the_device(run_python: RunPython) -> None:
    code = "from vkdispatch.base.context import get_context\nprint(get_context().device_infos[0].device_name)"
    name = get_devices()[0].device_name
    for wanted in ("0", name[:6].upper()):
        done = run_python(code, VKDISPATCH_DEVICE=wanted)
        assert done.stdout.strip() == name, done.stderr
    done = run_python(code, VKDISPATCH_DEVICE="no such device")
    assert done.returncode != 0
    assert "ArgumentValueError" in done.stderr.splitlines()[-1] and name in done.stderr.splitlines()[-1]


def test_interpreter_exit_with_live_objects_is_silent(run_python: RunPython) -> None:
    done = run_python(
        "import numpy as np\n"
        "from vkdispatch.base.buffer import Buffer, asbuffer\n"
        "from vkdispatch.base import dtype\n"
        "kept = [asbuffer(np.zeros(1000, np.float32)) for _ in range(20)]\n"
        "class Cycle: pass\n"
        "cycle = Cycle(); cycle.me = cycle; cycle.buffer = Buffer(5, dtype.float32)\n",
        VKDISPATCH_DEBUG="1",
    )
    # A machine without the validation layer says so, and that is all that may be said.
    spoken = [line for line in done.stdout.splitlines() if "not installed" not in line]
    assert (done.returncode, spoken, done.stderr) == (0, [], "")


# -- no Vulkan


@pytest.mark.parametrize(
    "use", ["vd.get_devices()", "vd.get_context()", "vd.Buffer(3, vd.float32)", "vd.initialize()"]
)
def test_no_vulkan_driver(run_python: RunPython, use: str) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        f"try: {use}\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error.backend_name)\n"
        "    print(error)\n"
        "assert not vd.is_initialized()",
        VK_DRIVER_FILES="/nonexistent",
        VK_ICD_FILENAMES="/nonexistent",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("BackendUnavailableError vulkan")
    assert "mesa-vulkan-drivers" in done.stdout


def test_kernels_can_be_written_without_vulkan(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd, vkdispatch.codegen as vc\n"
        "@vd.shader('data.size', local_size=64)\n"
        "def double(data: vc.Buff[vc.f32]):\n"
        "    i = vc.global_invocation_id().x\n"
        "    data[i] = data[i] * 2\n"
        "print(double.get_src(build=False))\n"
        "assert not vd.is_initialized()",
        VK_DRIVER_FILES="/nonexistent",
        VK_ICD_FILENAMES="/nonexistent",
    )
    assert done.returncode == 0 and "void main" in done.stdout, done.stderr


# -- initialisation


def test_initialize() -> None:
    init.initialize()
    init.initialize(debug_mode=False, log_level=None)
    assert init.is_initialized()
    assert init.get_backend() == "vulkan"
    assert (init.is_vulkan(), init.is_cuda(), init.is_opencl(), init.is_dummy()) == (
        True,
        False,
        False,
        False,
    )
    init.initialize(backend=" Vulkan ")
    with pytest.raises(RuntimeError, match="already initialised"):
        init.initialize(backend="cuda")
    with pytest.raises(ValueError, match="backend"):
        init.initialize(backend="metal")
    with pytest.raises(ValueError, match="backend"):
        init.initialize(backend=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cuda", "opencl"])
def test_unavailable_backends(run_python: RunPython, name: str) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        f"try: vd.initialize(backend='{name}')\n"
        "except vd.BackendUnavailableError as e: print(e.backend_name, isinstance(e, ImportError))\n"
        "vd.initialize(); assert vd.is_vulkan()"
    )
    assert done.stdout.split() == [name, "True"], done.stderr


def test_backend_environment(run_python: RunPython) -> None:
    done = run_python("import vkdispatch as vd\nvd.initialize()", VKDISPATCH_BACKEND="bogus")
    assert "ArgumentValueError" in done.stderr and "bogus" in done.stderr


def test_import_initialises_nothing(run_python: RunPython) -> None:
    done = run_python(
        "import sys, vkdispatch as vd\n"
        "assert not vd.is_initialized() and not vd.is_context_initialized()\n"
        "print(vd.__version__, 'click' in sys.modules, 'scipy' in sys.modules)"
    )
    assert done.stdout.split() == [vd.__version__, "False", "False"], done.stderr


# -- logging


def test_logging(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        set_log_level(LogLevel.INFO)
        log_error("one")
        log_warning("two")
        log_info("three", end="!")
        log_verbose("four")
        log("five")
    finally:
        set_log_level(LogLevel.WARNING)
    log_info("six")
    out = capsys.readouterr().out
    assert "[ERROR " in out and "test_context.py:" in out
    assert [word for word in ("one", "two", "three!", "four", "five", "six") if word in out] == [
        "one",
        "two",
        "three!",
        "five",
    ]
    with pytest.raises(TypeError, match="level"):
        set_log_level(2)  # type: ignore[arg-type]


def test_cpu_driver_is_logged(run_python: RunPython) -> None:
    done = run_python("import vkdispatch as vd\nvd.initialize(log_level=vd.LogLevel.INFO)\nvd.get_context()")
    cpu = "CPU driver" in done.stdout
    assert "using device" in done.stdout
    assert cpu == get_devices()[default_device()].is_cpu()


# -- the command line


@pytest.fixture
def vdlist(run_python: RunPython) -> RunPython:
    """Return a function that runs `python -m vkdispatch`."""
    return functools.partial(run_python, None, "-m", "vkdispatch")


def test_vdlist(vdlist: RunPython) -> None:
    plain, verbose = vdlist(), vdlist("--verbose", "--vulkan")
    assert plain.returncode == verbose.returncode == 0, plain.stderr
    for device in get_devices():
        assert device.device_name in plain.stdout
    assert plain.stdout.count("by default") == 1
    assert "Vendor ID" in verbose.stdout and "Vendor ID" not in plain.stdout
    assert ("CPU driver" in plain.stdout) == any(device.is_cpu() for device in get_devices())


def test_vdlist_shows_how_exact_devices_are(vdlist: RunPython, tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    title = "Float32 Functions"
    unknown = vdlist("--no-measure", VKDISPATCH_CACHE=folder)
    assert unknown.returncode == 0 and title not in unknown.stdout
    plain = vdlist(VKDISPATCH_CACHE=folder)
    assert plain.returncode == 0 and not plain.stderr
    usable = sum(not device.missing for device in get_devices())
    assert plain.stdout.count(title) == usable
    assert (
        len(
            re.findall(
                r"\t\tsin: [0-9.e+]+, [0-9.e-]+ at most \(arguments from -3.1 to 3.1\)\n", plain.stdout
            )
        )
        == usable
    )
    for name in ("exp", "log", "pow", "sqrt", "division"):
        assert len(re.findall(rf"\t\t{name}: [0-9.e+]+", plain.stdout)) == usable
    assert "atan2" not in plain.stdout
    verbose = vdlist("--verbose", "--no-measure", VKDISPATCH_CACHE=folder)
    assert verbose.stdout.count("\t\tatan2: ") == usable  # as it was measured before


def test_vdlist_cache(vdlist: RunPython, tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    empty = vdlist("--cache", VKDISPATCH_CACHE=folder, VK_DRIVER_FILES="/nonexistent")
    assert empty.returncode == 0
    assert empty.stdout.splitlines()[0] == folder
    for kind, name in (("spirv", "a"), ("spirv", "b"), ("pipeline", "c")):
        (tmp_path / "cache" / kind).mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / kind / f"{name * 40}.vkd").write_bytes(bytes(1000))
    shown = vdlist("--cache", VKDISPATCH_CACHE=folder).stdout
    assert re.search(r"spirv +2 entries +2,000 bytes", shown)
    assert re.search(r"pipeline +1 entries +1,000 bytes", shown)
    assert re.search(r"total +3,000 bytes", shown)
    assert "Deleted 3 entries." in vdlist("--cache", "--clear", VKDISPATCH_CACHE=folder).stdout
    assert "Deleted 0 entries." in vdlist("--cache", "--clear", VKDISPATCH_CACHE=folder).stdout
    assert "off" in vdlist("--cache", VKDISPATCH_CACHE="off").stdout
    assert vdlist("--clear").returncode == 2


def test_vdlist_options(vdlist: RunPython) -> None:
    assert vd.__version__ in vdlist("--version").stdout
    assert vdlist("--cuda", "--vulkan").returncode == 2
    unavailable = vdlist("--cuda")
    assert unavailable.returncode == 1 and "cuda" in unavailable.stderr
    nothing = vdlist(VK_DRIVER_FILES="/nonexistent", VK_ICD_FILENAMES="/nonexistent")
    assert "mesa-vulkan-drivers" in nothing.stderr
    assert "Traceback" not in nothing.stderr
    wrong = vdlist(VKDISPATCH_DEVICE="bogus")
    assert "VKDISPATCH_DEVICE" in wrong.stderr and get_devices()[0].device_name in wrong.stdout


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--log_info"], "CPU driver|Device 0"),
        (["--debug"], "Device 0"),
        (["--vulkan", "--verbose"], "Vendor ID"),
    ],
)
def test_vdlist_levels(vdlist: RunPython, flags: list[str], said: str) -> None:
    done = vdlist(*flags)
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout)


@pytest.mark.parametrize("flag", ["--loader_debug", "--vulkan_loader_debug_logs", "--debug"])
def test_loader_messages_are_logged(vdlist: RunPython, flag: str) -> None:
    assert len(vdlist(flag).stderr.splitlines()) > len(vdlist().stderr.splitlines()) + 5


def test_vdlist_with_other_backends(vdlist: RunPython) -> None:
    for name in ("cuda", "opencl"):
        done = vdlist(VKDISPATCH_BACKEND=name)
        assert done.returncode == 1 and name in done.stderr and "Traceback" not in done.stderr
    assert "Dummy" in vdlist(VKDISPATCH_BACKEND="dummy").stdout
    done = vdlist("--opencl", "--cuda")
    assert done.returncode == 2 and "one backend" in done.stderr


def test_vdlist_marks_unavailable_backends_in_red() -> None:
    # In this process another backend is active, which is said the same way.
    done = CliRunner().invoke(cli_entrypoint, ["--cuda"], color=True)
    assert "already initialised" in str(done.exception) or "\x1b[31m" in done.output


def test_errors_share_a_base_class() -> None:
    for error in (BackendUnavailableError, UnsupportedError):
        assert issubclass(error, VkDispatchError)
