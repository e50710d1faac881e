"""What all models have in common whose sections a compiler makes a shared library of."""

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.orders.arguments import Argument, Parameter
from vkdispatch.orders.compilers import (
    BuildFailure,
    CompileFailure,
    Compiler,
    Search,
    Source,
    find_compilers,
    make_command,
)
from vkdispatch.orders.debugging import Debugging, drop_optimization
from vkdispatch.orders.errors import OrderRunError
from vkdispatch.orders.grid import Grid
from vkdispatch.orders.library import Library, is_stored, library_key, load_library, test_compiler
from vkdispatch.orders.models.protocol import Placement, Program, Task
from vkdispatch.orders.order import Order
from vkdispatch.orders.staging import HostPlacement, Layout

MakeProgram = Callable[[str, str, Library], Program]


@record
class NativeModel:
    """A model whose sections are compiled.

    Attributes
    ----------
    name
        Its name.
    search
        Where its compilers are.
    flags
        What they are told, by vendor; a vendor that is not there cannot compile this model.
    write
        Writes the source around a section.
    suffix
        Of source files.
    copy
        The body that copies the array x to the array y: the self-test.
    program
        Makes a program of the model's name, the compiler's title and a library.
    ready
        Says why compiling would be in vain on this machine, or None.
    target
        Flags that depend on the devices of this machine.
    """

    name: str
    search: Search
    flags: Mapping[str, tuple[str, ...]]
    write: Callable[[Task], str]
    suffix: str
    copy: str
    program: MakeProgram
    ready: Callable[[], str | None] = lambda: None
    target: Callable[[], tuple[str, ...]] = lambda: ()

    @property
    def options(self) -> frozenset[str]:
        """No options of its own."""
        return frozenset()

    def build(self, task: Task) -> Program:
        """Build a section with the first compiler that works. Raises BuildFailure."""
        source = self.source(task)
        failures: list[BuildFailure] = []
        for compiler in find_compilers(self.search, task.compile):
            try:
                flags = self.find_flags(compiler)
                idle = self.ready()
                if idle:
                    raise BuildFailure(f"{compiler.title} is here, but {idle}")
                test_compiler(compiler, flags, self.source(_copy_task(self)))
                if task.debugging is not None:
                    flags = drop_optimization(flags)
                    _tell(task.debugging, self, compiler, flags, source)
                return self.program(self.name, compiler.title, load_library(compiler, flags, source))
            except BuildFailure as failure:
                failures.append(failure)
        refused = any(isinstance(failure, CompileFailure) for failure in failures)
        said = "\n".join(dict.fromkeys(map(str, failures)))
        raise CompileFailure(said) if refused else BuildFailure(said)

    def source(self, task: Task) -> Source:
        """Write what the compiler is given. Raises BuildFailure."""
        return Source(self.write(task), self.suffix, task.order.label, task.order.code)

    def find_flags(self, compiler: Compiler) -> tuple[str, ...]:
        """Return what this compiler is told. Raises BuildFailure if it cannot compile the model."""
        flags = self.flags.get(compiler.vendor)
        if flags is None:
            known = ", ".join(sorted(vendor for vendor in self.flags if vendor))
            raise BuildFailure(f"{compiler.title}: no compiler known for {self.name}; those are: {known}")
        return (*flags, *self.target())


class HostProgram:
    """A library whose code takes the arguments from the host's memory."""

    def __init__(self, model: str, description: str, native: Library, layout: Layout) -> None:
        self.model = model
        self.description = description
        self.native = native
        self.layout: Layout = layout

    def devices(self) -> int:
        """How many devices the library finds."""
        return self.native.devices()[0]

    def place(self, arguments: Sequence[Argument], device: int) -> HostPlacement:
        """Make arrays contiguous that are not."""
        check_device(self.native, device, self.model)
        return HostPlacement(arguments, self.layout)

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arrays are in the host's memory, in the same layout."""
        return isinstance(placement, HostPlacement) and placement.serves(self.layout)

    def run(self, placement: Placement, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body in the calling thread."""
        assert isinstance(placement, HostPlacement)
        check_device(self.native, device, self.model)
        said = self.native.run(placement.pointers, placement.extents, grid, run_id, device)
        if said:
            raise OrderRunError(f"{self.model}: {said}")


def check_device(native: Library, device: int, model: str) -> None:
    """Raise ValueError unless there is such a device."""
    count, said = native.devices()
    if device >= count:
        raise ArgumentValueError(
            f"device: {model} has {count} of them here{f' ({said})' if said else ''}, got {device}; "
            f"they count from 0"
        )


def _tell(
    debugging: Debugging, model: NativeModel, compiler: Compiler, flags: Sequence[str], source: Source
) -> None:
    """Say how a section is compiled, and keep its source."""
    done = "kept from before" if is_stored(compiler, flags, source) else "compiled now"
    command = shlex.join(make_command(compiler, flags, model.suffix))
    debugging.say(f"{model.name}: {done}, by {compiler.title}\n{model.name}: {command}")
    debugging.keep(f"{model.name}-{library_key(compiler, flags, source)[:10]}{model.suffix}", source.text)


def _copy_task(model: NativeModel) -> Task:
    numbers = np.dtype(np.int32)
    parameters = (Parameter("x", numbers, 1, False), Parameter("y", numbers, 1, True))
    order = Order(f'set_argnames("x", "y")\n[{model.name}]\n{model.copy}\n')
    return Task(order, order.sections[0], parameters, None)
