"""Explanations of kernels and of calls: which kernels run, and what becomes of each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from os import PathLike
from typing import Any

from vkdispatch.base.compilation.compiler import can_compile
from vkdispatch.base.context import get_context
from vkdispatch.base.errors import BackendUnavailableError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.record import replace
from vkdispatch.base.synchronization import TimedCommand
from vkdispatch.compiler.forms import PLAIN
from vkdispatch.compiler.passes.order import keep_steps
from vkdispatch.execution_pipeline.timings import KernelFacts, Recording
from vkdispatch.shader.explaining.kernels import KernelExplanation, explain_build
from vkdispatch.shader.explaining.page import write_page
from vkdispatch.shader.program import Build
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.size import Extent


class Explanation:
    """What `vd.explain` returns: kernels, and what becomes of each. `print` shows it, notebooks show a page.

    Attributes
    ----------
    title
        What is explained.
    plan
        What a call launched, in order, as text; empty for a kernel.
    kernels
        The kernels, each a `KernelExplanation`.
    """

    def __init__(self, title: str, plan: str, kernels: Sequence[KernelExplanation]) -> None:
        self.title = title
        self.plan = plan
        self.kernels = tuple(kernels)

    def __str__(self) -> str:
        parts = [self.plan] if self.plan else []
        return "\n\n".join([*parts, *map(str, self.kernels)])

    __repr__ = __str__

    @property
    def html(self) -> str:
        """The page that `save` writes."""
        return write_page(self.title, self.plan, self.kernels)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def save(self, path: "str | PathLike[str]") -> None:
        """Write a page that needs no network. A click on a line marks those that it comes from and becomes.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)


def explain_kernel(kernel: ShaderFunction) -> Explanation:
    """Explain the forms of a kernel that were built here. It is built if there is none."""
    launchable, context, builds = kernel._follow(), None, []
    if can_compile() and not is_dummy():
        with suppress(BackendUnavailableError):  # no driver: the kernel as any device has it
            context = get_context()
    if context is not None:
        if not launchable.is_sized_by_calls:
            kernel.build()
        launchable = kernel._follow()
        built = launchable.enter(context).built.values()
        builds = [facts.build for variant in built if isinstance(facts := variant.plan.facts, KernelFacts)]
    if not builds:
        size = launchable.assume_group(launchable.is_sized_in_groups)
        builds = [Build(lambda: launchable.program, launchable.who, PLAIN, size, ())]
    explained = (explain_build(build, context) for build in builds)
    return Explanation(launchable.who, "", list(filter(None, explained)))


def explain_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Explanation:
    """Call a function and wait, and explain the kernels that ran or were built."""
    context = get_context()
    recording = Recording(context)
    facts, known = recording.facts, set(recording.facts)
    try:
        with keep_steps():
            function(*args, **kwargs)
        commands = [command for command in recording.timing.finish()[0] if command.kind == 0]
    finally:
        recording.stop()
    launches: dict[int, list[Extent]] = {}
    for command in commands:
        launches.setdefault(command.plan, []).append(command.groups)
    kernels: list[KernelExplanation] = []
    for number in dict.fromkeys([*launches, *sorted(facts.keys() - known)]):
        known_facts = facts.get(number)
        if known_facts is None or known_facts.build is None:
            continue
        explained = explain_build(known_facts.build, context)
        if explained is not None:
            place = explained.place or known_facts.source
            kernels.append(replace(explained, place=place, launches=tuple(launches.get(number, ()))))
    title = getattr(function, "__name__", None) or repr(function)
    return Explanation(title, _describe_launches(title, commands), kernels)


def _describe_launches(title: str, commands: Sequence[TimedCommand]) -> str:
    if not commands:
        return f"{title} launched nothing"
    lines = [f"{title} launched {len(commands)} kernel{'s' * (len(commands) > 1)}:"]
    for number, command in enumerate(commands, 1):
        seconds = command.end - command.begin
        lines.append(f"  {number}. {command.name}: workgroups {command.groups}, {seconds * 1e6:.1f} us")
    return "\n".join(lines)
