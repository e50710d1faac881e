"""The models whose sections are compiled to shared libraries."""

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.orders.arguments.argument import Argument, Parameter
from vkdispatch.orders.arguments.grid import Grid
from vkdispatch.orders.compilation.compilers import (
    BuildFailure,
    CompileFailure,
    Compiler,
    Search,
    Source,
    find_compilers,
    make_command,
)
from vkdispatch.orders.compilation.library import (
    Library,
    hash_library,
    is_stored,
    load_library,
    test_compiler,
)
from vkdispatch.orders.debugging import Debugging, drop_optimization
from vkdispatch.orders.errors import OrderRunError
from vkdispatch.orders.models.host_placement import HostPlacement, Layout
from vkdispatch.orders.models.protocol import Placement, Program, Task
from vkdispatch.orders.text.order import Order

MakeProgram = Callable[[str, str, Library], Program]


@record
class NativeModel:
    """A model whose sections are compiled to shared libraries.

    Attributes
    ----------
    name
        Its name.
    search
        The search for its compilers.
    flags
        Compiler options by vendor. Other vendors cannot compile this model.
    write
        Writes the source around a section.
    suffix
        The suffix of source files.
    copy
        A body that copies the array x to the array y, for the self-test.
    program
        Makes a program from the model's name, the compiler's title and a library.
    find_obstacle
        Returns the reason why this machine cannot run the model, or None.
    find_device_flags
        Returns compiler options for the devices of this machine.
    """

    name: str
    search: Search
    flags: Mapping[str, tuple[str, ...]]
    write: Callable[[Task], str]
    suffix: str
    copy: str
    program: MakeProgram
    find_obstacle: Callable[[], str | None] = lambda: None
    find_device_flags: Callable[[], tuple[str, ...]] = lambda: ()

    @property
    def options(self) -> frozenset[str]:
        """The options of its sections: none."""
        return frozenset()

    def build(self, task: Task) -> Program:
        """Build a section with the first compiler that works. Raises BuildFailure."""
        source = self.make_source(task)
        failures: list[BuildFailure] = []
        for compiler in find_compilers(self.search, task.compile):
            try:
                flags = self.find_flags(compiler)
                obstacle = self.find_obstacle()
                if obstacle:
                    raise BuildFailure(f"{compiler.title} is available, but {obstacle}")
                test_compiler(compiler, flags, self.make_source(_make_copy_task(self)))
                if task.debugging is not None:
                    flags = drop_optimization(flags)
                    _report_build(task.debugging, self, compiler, flags, source)
                return self.program(self.name, compiler.title, load_library(compiler, flags, source))
            except BuildFailure as failure:
                failures.append(failure)
        is_rejected = any(isinstance(failure, CompileFailure) for failure in failures)
        reasons = "\n".join(dict.fromkeys(map(str, failures)))
        raise CompileFailure(reasons) if is_rejected else BuildFailure(reasons)

    def make_source(self, task: Task) -> Source:
        """Return the source of a section. Raises BuildFailure."""
        return Source(self.write(task), self.suffix, task.order.label, task.order.code)

    def find_flags(self, compiler: Compiler) -> tuple[str, ...]:
        """Return the options for a compiler. Raises BuildFailure if it cannot compile the model."""
        flags = self.flags.get(compiler.vendor)
        if flags is None:
            known = ", ".join(sorted(vendor for vendor in self.flags if vendor))
            raise BuildFailure(
                f"{compiler.title}: no known options for {self.name}; supported compilers: {known}"
            )
        return (*flags, *self.find_device_flags())


class HostProgram:
    """A library that uses arguments in host memory."""

    def __init__(self, model: str, description: str, native: Library, layout: Layout) -> None:
        self.model = model
        self.description = description
        self.native = native
        self.layout: Layout = layout

    def devices(self) -> int:
        """Return the number of devices that the library finds."""
        return self.native.devices()[0]

    def place(self, arguments: Sequence[Argument], device: int) -> HostPlacement:
        """Copy arrays that are not contiguous."""
        check_device(self.native, device, self.model)
        return HostPlacement(arguments, self.layout)

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arrays are in host memory in the same layout."""
        return isinstance(placement, HostPlacement) and placement.serves(self.layout)

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body in the calling thread."""
        assert isinstance(placement, HostPlacement)
        check_device(self.native, device, self.model)
        failure = self.native.run(placement.pointers, placement.extents, grid, run_id, device)
        if failure:
            raise OrderRunError(f"{self.model}: {failure}")


def check_device(native: Library, device: int, model: str) -> None:
    """Raise ValueError if the device does not exist."""
    count, reason = native.devices()
    if device >= count:
        raise ArgumentValueError(
            f"device: {model} has {count} devices here{f' ({reason})' if reason else ''}, counted from "
            f"0, got {device}"
        )


def _report_build(
    debugging: Debugging, model: NativeModel, compiler: Compiler, flags: Sequence[str], source: Source
) -> None:
    """Print how a section is compiled, and write its source to a file."""
    state = "stored before" if is_stored(compiler, flags, source) else "compiled now"
    command = shlex.join(make_command(compiler, flags, model.suffix))
    debugging.print(f"{model.name}: {state}, by {compiler.title}\n{model.name}: {command}")
    debugging.write_file(
        f"{model.name}-{hash_library(compiler, flags, source)[:10]}{model.suffix}", source.text
    )


def _make_copy_task(model: NativeModel) -> Task:
    numbers = np.dtype(np.int32)
    parameters = (Parameter("x", numbers, 1, False), Parameter("y", numbers, 1, True))
    order = Order(f'set_argnames("x", "y")\n[{model.name}]\n{model.copy}\n')
    return Task(order, order.sections[0], parameters, None)
