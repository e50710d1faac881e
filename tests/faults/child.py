"""What a process of the sweep does: run a workload while calls fail, and see that all is well afterwards.

    python -m tests.faults.sweep --one '{"workload": "eager", "fault": {"function": "vkQueueSubmit", "result": -1}}'

has such a process do one case: it needs the environment of `building.layer_environment`.
"""  # noqa: E501

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.context import is_context_initialized

from .layer_control import Fault, Layer
from .trial import Item, Trial
from .workloads import WORKLOADS, Workload

ABSORBED, RAISED, UNREACHED, FAILED = "absorbed", "raised", "unreached", "FAILED"


@dataclass
class Case:
    """A workload and what is to fail in it.

    Attributes
    ----------
    closing
        Whether calls go on to fail while the context is closed.
    fresh
        Whether the process must not have loaded Vulkan before.
    """

    workload: str
    fault: Fault
    closing: bool = False
    fresh: bool = False

    @classmethod
    def of(cls, entries: dict[str, Any]) -> Case:
        """Return the case of what `json` made of one."""
        return cls(**{**entries, "fault": Fault(**entries["fault"])})


@dataclass
class Outcome:
    """What came of a case: failures by kind, which must not be, and the errors that were raised."""

    verdict: str
    failures: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class _Overheard:
    """Exceptions that nobody could catch: of threads, and of what is called when objects go."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        threading.excepthook = self._in_thread
        sys.unraisablehook = self._unraisable

    def _in_thread(self, arguments: threading.ExceptHookArgs) -> None:
        self._add("a thread", arguments.exc_value)

    def _unraisable(self, arguments: Any) -> None:
        self._add(f"{arguments.object!r}", arguments.exc_value)

    def _add(self, where: str, error: BaseException | None) -> None:
        if error is not None:
            self.texts.append(f"{where}: {''.join(traceback.format_exception(error)[-3:])}")

    def take(self) -> list[str]:
        """Return what was heard since the last call."""
        texts, self.texts = self.texts, []
        return texts


_overheard = _Overheard()


@contextlib.contextmanager
def _environment(workload: Workload) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in workload.environment}
    os.environ.update(workload.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def count(layer: Layer, name: str) -> dict[str, dict[str, int]]:
    """Return how often a workload calls each function, at least, as far as that is not chance.

    "fresh": in a process that has just begun; "run": later, until the context is closed; "all": with that.
    """
    workload = WORKLOADS[name]
    counts: dict[str, dict[str, int]] = {}
    with _environment(workload):
        for attempt in range(3):
            before = layer.calls()
            trial, context = Trial(), vd.make_context(**workload.context)
            workload.run(trial)
            ran = layer.calls()
            if trial.errors or trial.faults:
                raise AssertionError(f"{name} fails by itself: {trial.errors} {trial.faults}")
            trial.items.clear()
            gc.collect()
            context.close()
            ended = layer.calls()
            for key, after in (("run", ran), ("all", ended)) if attempt else (("fresh", ran),):
                found = {function: after[function] - before[function] for function in before}
                least = counts.setdefault(key, found)
                counts[key] = {function: min(number, least[function]) for function, number in found.items()}
    return counts


class Run:
    """One case, as it goes."""

    def __init__(self, layer: Layer, case: Case) -> None:
        self.layer, self.case = layer, case
        self.workload = WORKLOADS[case.workload]
        self.failures: list[tuple[str, str]] = []
        self.errors: list[str] = []
        self.contexts: list[vd.Context] = []
        self.lost = False

    def go(self) -> Outcome:
        """Run it all."""
        gc.collect()
        self.layer.problems()
        _overheard.take()
        self.before = self.layer.live()
        with _environment(self.workload):
            self.layer.arm(self.case.fault)
            works = self._run_under_fault()
            reached = self.layer.made > 0
            if not self.case.closing:
                self.layer.disarm()
                if works:
                    self._recover()
            self._close_all()
            reached = reached or self.layer.made > 0
            self.layer.disarm()
            self._look("after the context was closed")
            if reached and (self.lost or not works or self.case.closing):
                self._new_context()
        verdict = (
            FAILED if self.failures else UNREACHED if not reached else RAISED if self.errors else ABSORBED
        )
        return Outcome(verdict, self.failures, self.errors[:8])

    def _take(self, trial: Trial, when: str) -> None:
        self.failures += [(f"{kind}{when}", text) for kind, text in trial.faults]

    def _run_under_fault(self) -> bool:
        """Return whether there is a context that should work afterwards."""
        context = self._make("under the fault")
        if context is None:
            return False
        self.trial = Trial()
        self.workload.run(self.trial)
        self._take(self.trial, "")
        self.errors += self.trial.errors
        # A device that stays lost may not have told the engine yet.
        self.lost = not context.usable or (self.case.fault.sticky and self.layer.made > 0)
        return not self.lost

    def _make(self, when: str) -> vd.Context | None:
        try:
            context = vd.make_context(**self.workload.context)
        except vd.VkDispatchError as error:
            self.errors.append(f"make_context: {type(error).__name__}: {error}")
            return None
        except Exception as error:
            self.failures.append((f"foreign in make_context {when}", f"{type(error).__name__}: {error}"))
            return None
        self.contexts.append(context)
        return context

    def _recover(self) -> None:
        """Whatever failed belonged to data of before: written anew it works, and new data does at once."""
        _drain()
        again = Trial()
        _rewrite_all(again, self.trial.items)
        self.trial.items.clear()
        again.items.clear()
        gc.collect()
        _drain()  # data that nobody has any more end when the device is done with them
        self.workload.run(again)
        again.items.clear()
        self._take(again, " in the same context later")
        self.failures += [("raises in the same context later", text) for text in again.errors[:3]]

    def _close_all(self) -> None:
        if hasattr(self, "trial"):
            self.trial.items.clear()
        gc.collect()
        if is_context_initialized():
            with contextlib.suppress(vd.VkDispatchError):
                self.contexts.append(vd.get_context())
        for context in self.contexts:
            try:
                context.close()
            except vd.VkDispatchError as error:
                self.errors.append(f"close: {type(error).__name__}: {error}")
            except Exception as error:
                self.failures.append(("foreign in close", f"{type(error).__name__}: {error}"))

    def _look(self, when: str) -> None:
        abandoned = any(getattr(context._engine, "abandoned", False) for context in self.contexts)
        self.contexts.clear()
        gc.collect()
        live = self.layer.live()
        names = sorted({*live, *self.before} - {"vkCreateInstance", "vkCreateDebugUtilsMessengerEXT"})
        left = {name: live.get(name, 0) - self.before.get(name, 0) for name in names}
        left = {name: number for name, number in left.items() if number}
        if left and not abandoned:
            self.failures.append(("leak", f"{left} {when}"))
        self.before = live
        self.failures += [("misuse", text) for text in self.layer.problems()]
        self.failures += [("foreign, uncaught", text) for text in _overheard.take()]
        messages = [text for severity, text in native.take_messages()] if native.is_initialized() else []
        self.failures += [("validation", text) for text in messages]

    def _new_context(self) -> None:
        context = self._make("later")
        if context is None:
            self.failures.append(("no new context", self.errors[-1]))
            return
        again = Trial()
        self.workload.run(again)
        again.items.clear()
        self._take(again, " in a new context")
        self.failures += [("raises in a new context", text) for text in again.errors[:3]]
        self._close_all()
        self._look("after the new context was closed")


def _drain() -> None:
    """Wait for all work; whoever waits is told of what failed."""
    for _ in range(2):
        with contextlib.suppress(vd.VkDispatchError):
            vd.queue_wait_idle()


def _rewrite_all(trial: Trial, items: list[Item]) -> None:
    for item in items:
        if isinstance(item.value, vd.Buffer | vd.Image) and not item.value.destroyed:
            _rewrite(trial, item)


def _rewrite(trial: Trial, item: Item) -> None:
    """Write data of before wholly; what is read then is what was written, whatever had happened to it."""
    target = Item(f"{item.name} written anew", item.value)
    if isinstance(item.value, vd.Image):
        texels = np.ones(item.value.array_shape, np.float32)
        trial.do(lambda image: image.write(texels), target, anew=[target])
        read, truth = (lambda image: image.read()), texels
    else:
        data = bytes(range(1, 9)) * (item.value.mem_size // 8 + 1)
        data = data[: item.value.mem_size]
        trial.do(lambda buffer: buffer.write(data), target, anew=[target])
        read, truth = _bytes, np.frombuffer(data, np.uint8)
    for _ in range(2):
        trial.check(target, read, truth)


def _bytes(buffer: Any) -> Any:
    return np.frombuffer(np.ascontiguousarray(buffer.read(0)).tobytes(), np.uint8)


def run_code(layer: Layer, code: str) -> Outcome:
    """Run code of a test, to which `layer` is given.

    Nothing may be left over when its context was closed, unless it sets `given_up`.
    """
    before = layer.live()
    layer.problems()
    failures = []
    namespace: dict[str, Any] = {"layer": layer}
    try:
        exec(code, namespace)
    except BaseException as error:  # pytest's are no Exception
        failures.append(("raised", "".join(traceback.format_exception(error))))
    layer.disarm()
    given_up = namespace.get("given_up", False)
    namespace.clear()
    gc.collect()
    if is_context_initialized():
        with contextlib.suppress(vd.VkDispatchError):
            vd.get_context().close()
    gc.collect()
    if not failures and not given_up and layer.live() != before:
        failures.append(("leak", f"{layer.live()} in place of {before}"))
    failures += [("misuse", text) for text in layer.problems()]
    failures += [("foreign, uncaught", text) for text in _overheard.take()]
    return Outcome(FAILED if failures else ABSORBED, failures)


def answer_tasks() -> None:
    """Do what comes in, one JSON line each; answer likewise."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what others print is not for who reads the answers
    layer = Layer()
    for line in sys.stdin:
        task = json.loads(line)
        if "count" in task:
            print(json.dumps(count(layer, task["count"])), file=answers, flush=True)
            continue
        if not task.get("fresh"):
            vd.get_devices()
        outcome = run_code(layer, task["code"]) if "code" in task else Run(layer, Case.of(task)).go()
        answer = {"verdict": outcome.verdict, "failures": outcome.failures, "errors": outcome.errors}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    answer_tasks()
