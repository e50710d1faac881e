"""What holds in every test: in debug mode, validation layer and hazard checker have nothing to say."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import vkdispatch_native as native
from vkdispatch.base import compute_plan as device_support
from vkdispatch.base.context import get_context, is_context_initialized, queue_wait_idle
from vkdispatch.base.contexts.current import destroy_context, find_current_context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError, UsageError
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.families import tuning as facts
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.traced.generation import SUBGROUP_BITS, check_features, find_lacks

_WARNING = 0x100


def _measure_machine() -> int:
    """Return the bytes of memory of this machine; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    except (AttributeError, OSError, ValueError):
        return 0


# Bytes that a process may have before its context ends, and that it may grow by before that happens again.
# Together the workers take a quarter of the memory of the machine, where that is more.
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_MAX_MEMORY, _GROWTH = max(5 << 28, _measure_machine() // (4 * _WORKERS)), 1 << 29
_memory_kept = 0
_INTERPRETED = os.environ.get("VKDISPATCH_INTERPRET") == "1"
_HOW = ", kernels are interpreted" if _INTERPRETED else ""

# The tests, and the processes that they start, share a disk cache of their own.
_CACHE = tempfile.TemporaryDirectory(prefix="vkdispatch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("VKDISPATCH_CACHE", _CACHE.name)

# A machine may be busy: no example fails for the time that it takes.
hypothesis.settings.register_profile(
    "vkdispatch", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("vkdispatch")

_call = ShaderFunction.__call__


def _interpret(self: ShaderFunction, *args: Any, graph: CommandGraph | None = None, **kwargs: Any) -> None:
    """Run a call by the interpreter; graphs, GLSL given as text and wrong calls go to the device as ever."""
    if graph is None and current.chosen is None and type(self) is ShaderFunction:
        context = get_context()
        # kernels that the device would refuse are refused
        description = self.shader_description
        check_features(self.name, description, context, find_lacks(description.kernel, context))
        size = context.device_infos[0].sub_group_size
        check = True if self.check is None else self.check
        try:
            self.interpret(*args, subgroup_size=size, check=check, **kwargs)
        except (ArgumentTypeError, ArgumentValueError, UnsupportedError):
            pass
        else:
            return
    _call(self, *args, graph=graph, **kwargs)


if _INTERPRETED:
    # what the tests say of devices then holds for the second executor
    ShaderFunction.__call__ = _interpret  # type: ignore[method-assign,assignment]


def _complaints() -> list[str]:
    return [text for severity, text in native.take_messages() if severity >= _WARNING]


def pytest_report_header() -> str:
    """Say which mode the tests run in: VKDISPATCH_DEBUG=1 validates, VKDISPATCH_INTERPRET=1 interprets."""
    return f"vkdispatch: debug mode {'on' if os.environ.get('VKDISPATCH_DEBUG') == '1' else 'off'}{_HOW}"


def _run_python(
    code: str | None, *arguments: str, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    begin = [sys.executable] if code is None else [sys.executable, "-c", code]
    return subprocess.run(
        [*begin, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs code in a fresh interpreter, as a user would.

    `run_python(code, *arguments, timeout=seconds, VARIABLE="value")`; with no code (None) the arguments are
    the interpreter's own, such as "-m", "vkdispatch".
    """
    return _run_python


@pytest.fixture(autouse=True, scope="module")
def freeze_old_objects() -> Iterator[None]:
    """Leave what earlier modules have made, such as compiled kernels, out of later collections.

    Tests that collect garbage would look through gigabytes of it each time.
    """
    gc.collect()
    gc.freeze()
    yield


@pytest.fixture(autouse=True, scope="module")
def end_large_context() -> Iterator[None]:
    """Let a module begin with a new context where the kernels of former ones take much memory."""
    global _memory_kept
    yield
    if _measure_memory() < max(_MAX_MEMORY, _memory_kept + _GROWTH):
        return
    gc.unfreeze()
    gc.collect()
    with contextlib.suppress(UsageError):  # a test of threads still uses it
        destroy_context()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc, which else keeps what LLVM freed
    if trim is not None:
        trim(0)
    gc.freeze()
    _memory_kept = _measure_memory()


def _measure_memory() -> int:
    """Return the bytes of this process that are in memory; 0 where Linux does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


@pytest.fixture(autouse=True, scope="module")
def keep_environment() -> Iterator[None]:
    """Undo what a module leaves in the environment; Dask's nannies set OMP_NUM_THREADS and its like."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


class _Patch(pytest.MonkeyPatch):
    """Changes what functions decide by, of which calls that were made before know nothing."""

    def setattr(self, *args: Any, **kwargs: Any) -> None:
        super().setattr(*args, **kwargs)
        _forget_calls()

    def setenv(self, *args: Any, **kwargs: Any) -> None:
        super().setenv(*args, **kwargs)
        _forget_calls()

    def undo(self) -> None:
        super().undo()
        _forget_calls()


def _forget_calls() -> None:
    current = find_current_context()
    if current is None:
        return
    current.calls.clear()
    known = current.kept.get(facts._FACTS_KEY)
    if known is not None and _values(known) != _values(facts._gather_facts(current)):
        del current.kept[facts._FACTS_KEY]


def _values(known: facts.DeviceFacts) -> list[Any]:
    return [getattr(known, name) for name in facts.DeviceFacts.__match_args__]


# What a device may lack, as error messages name it, and the attribute of devices that tells.
_LACKS = {
    **{what: attribute for attribute, what in device_support._FEATURES.values()},
    "double": "float_64_support",
    "complex128": "float_64_support",
    "8-bit integers": "storage_buffer_8_bit_access",
}


def _lack(error: UnsupportedError) -> str | None:
    """Return the line in which an error names what the device lacks, if it does lack it."""
    info = get_context().device_infos[0]
    line = str(error).splitlines()[0]
    if " has no " not in line and "with which the device does not compute" not in line:
        return None
    names = line.rpartition(" has no ")[2]
    features = re.findall(r"\b(?:shader|storage)[A-Z]\w+|\bcooperativeMatrix\w*", names)
    operations = re.findall(r"VK_SUBGROUP_FEATURE_(\w+)_BIT", names)
    if features or operations:
        has = {group.upper() for group, bit in SUBGROUP_BITS.items() if info.supported_operations & bit}
        return None if info.features.issuperset(features) and has.issuperset(operations) else line
    named = [attribute for name, attribute in _LACKS.items() if re.search(rf"\b{name}\b", names)]
    return None if all(getattr(info, attribute) for attribute in named) else line


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Under `make test-portable`, skip a test that needs a feature which the device lacks."""
    try:
        return (yield)
    except UnsupportedError as error:
        lack = _lack(error) if os.environ.get("VKDISPATCH_TEST_PORTABLE") == "1" else None
        if lack is None:
            raise
        pytest.skip(lack)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --one-in: the same few tests each time, of every folder."""
    parser.addoption(
        "--one-in", type=int, default=1, metavar="N", help="run one in N tests, chosen by their names"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that --one-in does not choose."""
    count: int = config.getoption("--one-in")
    chosen = {item for item in items if zlib.crc32(item.nodeid.encode()) % count == 0}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.fixture
def monkeypatch() -> Iterator[pytest.MonkeyPatch]:
    """Pytest's, after whose changes every call is planned anew."""
    patch = _Patch()
    yield patch
    patch.undo()


@pytest.fixture(autouse=True)
def _no_complaints() -> Iterator[None]:
    """Fail a test whose work makes the validation layer or the hazard checker speak."""
    yield
    if is_context_initialized():
        queue_wait_idle()
    if native.is_initialized():
        assert _complaints() == []


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Look once more when everything has ended: objects may be destroyed between tests."""
    if not native.is_initialized():
        return
    if is_context_initialized():
        queue_wait_idle()
    late = _complaints()
    if late:
        print("\nafter the last test:\n" + "\n".join(late))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
