"""What holds in every test: in debug mode, validation layer and hazard checker have nothing to say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import vkdispatch_native as native
from vkdispatch.base.context import is_context_initialized, queue_wait_idle

_WARNING = 0x100


def _complaints() -> list[str]:
    return [text for severity, text in native.take_messages() if severity >= _WARNING]


def pytest_report_header() -> str:
    """Say which mode the tests run in."""
    return f"vkdispatch: debug mode {'on' if os.environ.get('VKDISPATCH_DEBUG') == '1' else 'off'}"


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
