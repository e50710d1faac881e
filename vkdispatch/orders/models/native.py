"""The models whose sections are compiled to shared libraries, and their arguments in host memory."""

import ctypes
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.orders import compilers
from vkdispatch.orders.arguments import Argument, Array, Grid, Parameter
from vkdispatch.orders.errors import Debugging, OrderRunError, drop_optimization
from vkdispatch.orders.library import Library, hash_library, is_stored, load_library, test_compiler
from vkdispatch.orders.models.protocol import Placement, Program, Task
from vkdispatch.orders.order import Order

# ---- The arguments of native code in host memory ---------------------------------------------------------


Layout = Literal["C", "F"]


class HostPlacement:
    """Contiguous arguments in host memory. Arrays that are contiguous already are not copied.

    Parameters
    ----------
    arguments
        The arguments to place.
    layout
        "C": the last index varies fastest. "F": the first one.

    Attributes
    ----------
    pointers
        The addresses, for native code.
    extents
        The shape and the strides, in elements, of each argument, as an array of int64.
    """

    def __init__(self, arguments: Sequence[Argument], layout: Layout) -> None:
        self.arguments = tuple(arguments)
        self.layouts = layout if any(len(argument.shape) > 1 for argument in arguments) else "CF"
        # Arguments that are the same array remain one, also when copied.
        known = {argument.memory: argument for argument in arguments}
        places = {memory: _make_contiguous(argument, layout) for memory, argument in known.items()}
        self.arrays = [places[argument.memory] for argument in arguments]
        # Not every compiler can map empty array sections, so each array has memory for one element.
        self._memory = [array if array.size else np.zeros(1, array.dtype) for array in self.arrays]
        self.pointers = (ctypes.c_void_p * max(1, len(arguments)))(
            *(array.ctypes.data for array in self._memory)
        )
        numbers: list[int] = []
        for array in self.arrays:
            # NumPy's strides may differ along axes of length 0 or 1.
            shape, axes = array.shape, range(array.ndim)
            strides = [math.prod(shape[d + 1 :] if layout == "C" else shape[:d]) for d in axes]
            numbers += [*shape, *strides]
        self.extents = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)

    def serves(self, layout: Layout) -> bool:
        """Whether native code with this layout can use the arguments."""
        return layout in self.layouts

    def fetch(self) -> None:
        """Copy outputs back to the caller's arrays."""
        for argument, array in zip(self.arguments, self.arrays, strict=True):
            if argument.parameter.is_output and array is not argument.value:
                argument.write(array)

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""


def _make_contiguous(argument: Argument, layout: Layout) -> Array:
    array = argument.read()
    dtype = argument.parameter.dtype
    is_contiguous = array.flags.c_contiguous if layout == "C" else array.flags.f_contiguous
    if is_contiguous and array.flags.aligned and array.dtype.isnative and array.dtype == dtype:
        return array
    return np.array(array, dtype=dtype, order=layout, copy=True)


# ---- The models whose sections are compiled to shared libraries ------------------------------------------


Flags = Mapping[str, tuple[str, ...]]
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
    search: compilers.Search
    flags: Flags
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
        failures: list[compilers.BuildFailure] = []
        for compiler in compilers.find_compilers(self.search, task.compile):
            try:
                flags = self.find_flags(compiler)
                obstacle = self.find_obstacle()
                if obstacle:
                    raise compilers.BuildFailure(f"{compiler.title} is available, but {obstacle}")
                test_compiler(compiler, flags, self.make_source(_make_copy_task(self)))
                if task.debugging is not None:
                    flags = drop_optimization(flags)
                    _report_build(task.debugging, self, compiler, flags, source)
                return self.program(self.name, compiler.title, load_library(compiler, flags, source))
            except compilers.BuildFailure as failure:
                failures.append(failure)
        is_rejected = any(isinstance(failure, compilers.CompileFailure) for failure in failures)
        reasons = "\n".join(dict.fromkeys(map(str, failures)))
        raise compilers.CompileFailure(reasons) if is_rejected else compilers.BuildFailure(reasons)

    def make_source(self, task: Task) -> compilers.Source:
        """Return the source of a section. Raises BuildFailure."""
        return compilers.Source(self.write(task), self.suffix, task.order.label, task.order.code)

    def find_flags(self, compiler: compilers.Compiler) -> tuple[str, ...]:
        """Return the options for a compiler. Raises BuildFailure if it cannot compile the model."""
        flags = self.flags.get(compiler.vendor)
        if flags is None:
            known = ", ".join(sorted(vendor for vendor in self.flags if vendor))
            raise compilers.BuildFailure(
                f"{compiler.title}: no known options for {self.name}; supported compilers: {known}"
            )
        return (*flags, *self.find_device_flags())


class NativeProgram:
    """A library that runs on arguments by their addresses."""

    def __init__(self, model: str, description: str, native: Library) -> None:
        self.model = model
        self.description = description
        self.native = native

    def devices(self) -> int:
        """Return the number of devices that the library finds."""
        return self.native.devices()[0]

    def run(self, placement: Any, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body in the calling thread."""
        failure = self.native.run(placement.pointers, placement.extents, grid, run_id, device)
        if failure:
            raise OrderRunError(f"{self.model}: {failure}")

    def check_device(self, device: int) -> None:
        """Raise ValueError if the device does not exist."""
        count, reason = self.native.devices()
        if device >= count:
            raise ArgumentValueError(
                f"device: {self.model} has {count} devices here{f' ({reason})' if reason else ''}, counted "
                f"from 0, got {device}"
            )


class HostProgram(NativeProgram):
    """A library that uses arguments in host memory."""

    def __init__(self, model: str, description: str, native: Library, layout: Layout) -> None:
        super().__init__(model, description, native)
        self.layout: Layout = layout

    def place(self, arguments: Sequence[Argument], device: int) -> HostPlacement:
        """Copy arrays that are not contiguous."""
        self.check_device(device)
        return HostPlacement(arguments, self.layout)

    def serves(self, placement: Placement, device: int) -> bool:
        """Whether the arrays are in host memory in the same layout."""
        return isinstance(placement, HostPlacement) and placement.serves(self.layout)

    def run(self, placement: Any, grid: Grid, run_id: int, device: int, channel: int) -> None:
        """Run the body in the calling thread, on a device that may be another one."""
        self.check_device(device)
        super().run(placement, grid, run_id, device, channel)


def _report_build(
    debugging: Debugging,
    model: NativeModel,
    compiler: compilers.Compiler,
    flags: Sequence[str],
    source: compilers.Source,
) -> None:
    """Print how a section is compiled, and write its source to a file."""
    state = "stored before" if is_stored(compiler, flags, source) else "compiled now"
    command = shlex.join(compilers.make_command(compiler, flags, model.suffix))
    debugging.print(f"{model.name}: {state}, by {compiler.title}\n{model.name}: {command}")
    debugging.write_file(
        f"{model.name}-{hash_library(compiler, flags, source)[:10]}{model.suffix}", source.text
    )


def _make_copy_task(model: NativeModel) -> Task:
    numbers = np.dtype(np.int32)
    parameters = (Parameter("x", numbers, 1, False), Parameter("y", numbers, 1, True))
    order = Order(f'set_argnames("x", "y")\n[{model.name}]\n{model.copy}\n')
    return Task(order, order.sections[0], parameters, None)
