"""Finding the cause of a lost device, with a layer that provides the required extensions on any device."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .gates import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).with_name("diagnosis")
NAME = "VkLayer_vkdispatch_diagnosis"

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]
Diagnose = Callable[..., dict[str, str]]

BEGIN = """
import atexit
import ctypes
import os

import numpy as np

import vkdispatch
import vkdispatch_native as native
from tests.native.conftest import first_device
from tests.native.gates import Gate
from tests.native.test_describe_work import Kernels

layer = ctypes.CDLL(os.environ["DIAGNOSIS_LAYER"])
layer.diagnosis_enabled.restype = layer.diagnosis_misuse.restype = ctypes.c_char_p

def start() -> None:
    global engine, kernels, gate
    engine = native.Engine([first_device()], [[0]], False, False)
    kernels = Kernels(engine, 4, "heat.py:12")
    gate = Gate(engine)
    engine.wait_idle()

def lose() -> str:
    "Lose the device; return what the error says of it."
    layer.diagnosis_lose(1)
    try:
        engine.wait_for(0, engine.last_value(0), True)
    except vkdispatch.DeviceLostError as error:
        text = str(error)
    layer.diagnosis_lose(0)
    call, failed, rest = text.partition(" failed: VK_ERROR_DEVICE_LOST (-4)")
    assert call.startswith("the device was lost: vk") and failed, text
    return rest

def end() -> None:
    gate.open()
    engine.close()

start()
atexit.register(lambda: gate.open())  # nothing waits for it if an assertion fails
"""


END = """
end()
print("misuse:", layer.diagnosis_misuse().decode())
print("enabled:", layer.diagnosis_enabled().decode())
"""


def _fetch_deps():  # type: ignore[no-untyped-def]  # a script, in a folder that is no package
    sys.path.insert(0, str(ROOT / "deps"))
    try:
        import fetch_deps
    finally:
        sys.path.pop(0)
    return fetch_deps


@pytest.fixture(scope="session")
def layer() -> Path:
    """Return the folder of the layer, rebuilt if its source has changed."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the layer is built for Linux")
    manifest, source = SOURCES / f"{NAME}.json", SOURCES / "layer.cpp"
    text = manifest.read_bytes() + source.read_bytes()
    folder = ROOT / "build" / "diagnosis" / hashlib.sha256(text).hexdigest()[:16]
    library = folder / f"lib{NAME}.so"
    fetch_deps = _fetch_deps()
    try:
        headers = fetch_deps.prepare() / "include"
        compiler = fetch_deps.compiler()
    except fetch_deps.DepsError as error:
        pytest.skip(str(error))
    folder.mkdir(parents=True, exist_ok=True)
    with fetch_deps.locked(folder.with_suffix(".lock")):
        if not library.is_file():
            partial = folder / "partial.so"
            flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-isystem", str(headers)]
            subprocess.run([*compiler, *flags, str(source), "-o", str(partial)], check=True)
            (folder / manifest.name).write_bytes(manifest.read_bytes())
            partial.rename(library)
    return folder


@pytest.fixture
def diagnose(layer: Path, run_python: RunPython) -> Diagnose:
    """Return `diagnose(code, gives, **environment)`: what the code prints, "name: text" in each line."""

    def run(code: str, gives: str, **environment: str) -> dict[str, str]:
        variables = {
            **ENVIRONMENT,
            "VK_ADD_LAYER_PATH": str(layer),
            "VK_INSTANCE_LAYERS": "VK_LAYER_VKDISPATCH_diagnosis",
            "DIAGNOSIS_LAYER": str(layer / f"lib{NAME}.so"),
            "DIAGNOSIS": gives,
            "VKDISPATCH_DEBUG": "",
            "VKDISPATCH_CHECKPOINTS": "",
            **environment,
        }
        if os.environ.get("VK_LAYER_PATH"):  # some loaders then ignore the other variable
            variables["VK_LAYER_PATH"] = f"{os.environ['VK_LAYER_PATH']}:{layer}"
        done = run_python(BEGIN + code + END, **variables)
        assert done.returncode == 0, done.stderr
        lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        assert lines.pop("misuse") == "", lines
        return lines

    return run


FAULT = (
    "; the driver says: page fault, invalid write to address 0x12345000 to 0x12345fff, "
    "invalid read of address 0xabc, MMU (code 0x7, data 0xff)"
)
HINT = "; VKDISPATCH_CHECKPOINTS=1 finds out which kernel it was"
PENDING = "not finished: a launch of 'hold', 2 launches of 'k0' (heat.py:12), a launch of 'k1' (heat.py:12)"
LAUNCHES = """
gate.hold()
kernels.launch(0, 1, 0)
engine.flush(0, engine.last_value(0))
"""


@pytest.mark.parametrize(
    ("gives", "setting", "more", "enabled"),
    [
        ("", "", "", ""),
        ("nvidia", "", HINT, ""),
        ("amd,fault", "", FAULT + HINT, "VK_EXT_device_fault,deviceFault,"),
        ("nvidia,fault", "off", HINT, ""),
        ("fault", "1", FAULT, "VK_EXT_device_fault,deviceFault,"),
    ],
)
def test_device_without_checkpoints(
    diagnose: Diagnose, gives: str, setting: str, more: str, enabled: str
) -> None:
    lines = diagnose(LAUNCHES + "print('text:', lose())", gives, VKDISPATCH_CHECKPOINTS=setting)
    assert lines == {"text": f"; queue 0: {PENDING}{more}", "enabled": enabled}


# By the marks that the device has reached and passed, counted from that of the gate's launch.
RUNNING = {
    (0, 0): "it was running 'hold', launch 1 of 4; ",
    (2, 2): "it was running 'k1' (heat.py:12), launch 3 of 4; ",
    (3, 3): "it was running 'k0' (heat.py:12), launch 4 of 4; ",
    (2, 1): "it was running a launch of 'k0' (heat.py:12), a launch of 'k1' (heat.py:12); ",
    # The last mark belongs to a batch that has ended: nothing of this batch has begun.
    (-1, -1): "",
    (1, -1): "it was running a launch of 'hold', a launch of 'k0' (heat.py:12); ",
}


def test_nvidia_checkpoints(diagnose: Diagnose) -> None:
    code = f"""
end()
for begun, passed in {[*RUNNING, (None, None)]}:
    start()
    kernels.launch(2)
    engine.wait_idle()
    begin = layer.diagnosis_marks() + 1
    gate.hold()
    kernels.launch(0, 1, 0)
    engine.flush(0, engine.last_value(0))
    layer.diagnosis_reach(*([0, 0] if begun is None else [begin + begun, begin + passed]))
    print(f"{{begun}} {{passed}}:", lose())
    end()
"""
    lines = diagnose(code, "nvidia,fault", VKDISPATCH_CHECKPOINTS="1")
    wanted = "VK_NV_device_diagnostic_checkpoints,VK_EXT_device_fault,deviceFault,"
    assert set(lines.pop("enabled").split(",")) == set(wanted.split(","))
    assert lines.pop("None None") == f"; queue 0: {PENDING}{FAULT}"
    assert lines == {
        f"{begun} {passed}": f"; queue 0: {running}{PENDING}{FAULT}"
        for (begun, passed), running in RUNNING.items()
    }


def test_debug_mode_leaves_marks(diagnose: Diagnose) -> None:
    code = LAUNCHES + "layer.diagnosis_reach(*[layer.diagnosis_marks()] * 2)\nprint('text:', lose())"
    lines = diagnose(code, "nvidia", VKDISPATCH_DEBUG="1")
    assert lines["text"] == f"; queue 0: it was running 'k0' (heat.py:12), launch 4 of 4; {PENDING}"


# The layer writes AMD's marks when the device reaches them, so these are real.
def test_amd_buffer_markers(diagnose: Diagnose) -> None:
    code = """
import time

kernels.launch(3)
gate.hold()
kernels.launch(0, 1, 0)
engine.flush(0, engine.last_value(0))
while "running 'hold'" not in engine.describe_work():  # it may not have begun
    time.sleep(0.001)
print("before:", engine.describe_work())
print("text:", lose())
"""
    lines = diagnose(code, "amd", VKDISPATCH_CHECKPOINTS="yes")
    assert lines["enabled"] == "VK_AMD_buffer_marker,"
    assert lines["text"] == "; " + lines["before"]
    assert lines["text"].endswith(PENDING.removeprefix("not finished: "))
    assert "it was running 'hold', launch " in lines["text"]


def test_marks_of_replays(diagnose: Diagnose) -> None:
    code = """
import struct

commands = native.CommandList(engine)
kernels.record(commands, 2, 3, 2)
arguments = struct.pack("3If", 64, 1, 1, 1.0) * 3
for _ in range(2):
    commands.submit(0, arguments, 1)
    engine.wait_idle()  # streamed, then recorded
marks = layer.diagnosis_marks()
gate.hold()
commands.submit(0, arguments, 1)
kernels.launch(1)
engine.flush(0, engine.last_value(0))
layer.diagnosis_reach(marks - 1, marks - 1)
print("marks:", layer.diagnosis_marks() - marks)
print("text:", lose())
"""
    lines = diagnose(code, "nvidia", VKDISPATCH_CHECKPOINTS="1")
    assert lines["marks"] == "2", "the segment keeps the marks that it was recorded with"
    assert lines["text"].startswith("; queue 0: it was running 'k3' (heat.py:12), launch 3 of 5; not")


def test_the_error_names_work_of_other_queues(diagnose: Diagnose) -> None:
    code = """
end()
engine = native.Engine([first_device()], [[0, 0]], False, False)
kernels = Kernels(engine, 2, "heat.py:12")
gate = Gate(engine)
engine.wait_idle()
gate.hold()
layer.diagnosis_lose(1)
assert kernels.launchers[1].launch((kernels.array, 2.0), 64, False, 1)
try:
    engine.wait_for(1, engine.last_value(1), True)
except vkdispatch.DeviceLostError as error:
    print("text:", error)
print("asked:", engine.describe_work())  # the same text as in the error
layer.diagnosis_lose(0)
"""
    lines = diagnose(code, "")
    assert (
        "; queue 0: not finished: a launch of 'hold'; queue 1: not finished: a launch of 'k1'"
        in lines["text"]
    )
    assert lines["asked"] in lines["text"]
