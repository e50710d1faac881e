"""Processes that do tasks of random programs and calls, so that a crash or a hang ends only one."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

_PATIENCE = 60  # seconds in which a process that has nothing more to do must end


class Worker:
    """A process that does one task at a time: it reads tasks as lines of JSON, and answers each with a line.

    Subclasses say what comes of a task: what `record` of `drive` takes.

    Attributes
    ----------
    task
        What it does, or None.
    since
        When it began, by `time.monotonic`.
    output
        What its answers are read from.
    """

    # Tasks of one process, so that what it leaks, and what it breaks, is seen with it; None: any number.
    most: int | None = None
    # What ends a process that hangs.
    ending = signal.SIGKILL

    def __init__(self, command: Sequence[str], **settings: Any) -> None:
        """Start a process. `settings` are passed to `subprocess.Popen`."""
        self.command = command
        self.settings: dict[str, Any] = {"stderr": subprocess.DEVNULL, **settings}
        self.task: Any = None
        self.since = 0.0
        self.start()

    def start(self) -> None:
        """Start a process in place of the one before, which has ended."""
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(self.command, **pipes, **self.settings, text=True, bufsize=1)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input: IO[str] = self.process.stdin
        self.output: IO[str] = self.process.stdout
        self.done = 0

    def restart(self) -> None:
        """End the process and start another one."""
        self.end()
        self.start()

    def give(self, task: Any) -> None:
        """Have it do a task."""
        if self.done == self.most:
            self.restart()
        self.done += 1
        self.task, self.since = task, time.monotonic()
        self.ask(task)

    def ask(self, question: Any) -> None:
        """Send a line; one that a process does not live to read is answered by its end."""
        try:
            self.input.write(json.dumps(question) + "\n")
        except BrokenPipeError:
            self.process.wait()
            self.start()
            self.input.write(json.dumps(question) + "\n")

    def answer(self) -> tuple[Any, ...]:
        """Return what came of its task: the answer that is there, or a crash."""
        task, self.task = self.task, None
        line = self.output.readline()
        if line:
            return self.judge(task, json.loads(line))
        found = self.judge_crash(task, f"exit status {self.process.wait()}")
        self.start()
        return found

    def give_up(self) -> tuple[Any, ...]:
        """End the process, which takes too long, and return that."""
        task, self.task = self.task, None
        self.process.send_signal(self.ending)
        self.process.wait()
        found = self.judge_hang(task)
        self.start()
        return found

    def judge(self, task: Any, answer: Any) -> tuple[Any, ...]:
        """Return what came of a task that was answered."""
        raise NotImplementedError

    def judge_crash(self, task: Any, status: str) -> tuple[Any, ...]:
        """Return what came of a task at which the process ended."""
        raise NotImplementedError

    def judge_hang(self, task: Any) -> tuple[Any, ...]:
        """Return what came of a task that took too long."""
        raise NotImplementedError

    def end(self) -> None:
        """End the process."""
        self.input.close()
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def drive(
    tasks: Sequence[Any], workers: Sequence[Worker], timeout: float, record: Callable[..., None]
) -> None:
    """Give the tasks to workers and record what comes of each; a task may take `timeout` seconds."""
    pending = list(tasks[::-1])
    while pending or any(each.task for each in workers):
        for each in workers:
            if each.task is None and pending:
                each.give(pending.pop())
        busy = {each.output: each for each in workers if each.task}
        ready, _, _ = select.select(list(busy), [], [], 5)
        for output in ready:
            record(*busy[output].answer())
        for each in workers:
            if each.task and time.monotonic() - each.since > timeout:
                record(*each.give_up())
    for each in workers:
        each.end()
