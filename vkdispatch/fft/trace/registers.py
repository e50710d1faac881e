"""The registers of an invocation."""

from collections.abc import Iterator, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.fft.plan.stages import Split


class FFTRegisters:
    """Complex registers: `registers[i]` reads one, `registers[i] = value` writes it.

    Butterfly number `turn` of a stage is in registers turn * radix ... turn * radix + radix - 1.

    Attributes
    ----------
    count
        Number of registers.
    """

    def __init__(self, split: Split, compute_type: DType, name: str = "register", count: int | None = None):
        self.split = split
        self.compute_type = compute_type
        self.count = split.registers if count is None else count
        self._values = [vc.new_register(compute_type, var_name=f"{name}{i}") for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._values[index][:] = value

    def register_slice(self, slc: slice) -> list[Any]:
        """Return some of the registers."""
        return self._values[slc]

    def slice_set(self, slc: slice, values: Sequence[Any]) -> None:
        """Store into some of the registers. Raises ValueError for another number of values."""
        targets = self._values[slc]
        if len(targets) != len(values):
            raise ArgumentValueError(f"values: expected {len(targets)}, got {len(values)}")
        # the value of one may depend on the target of another
        values = [value.to_register() for value in values]
        for target, value in zip(targets, values, strict=True):
            target[:] = value

    def clear(self) -> None:
        """Set all to zero."""
        for register in self._values:
            register[:] = 0

    def normalize(self) -> None:
        """Divide all by the length of the line."""
        self.scale(1.0 / self.split.length)

    def scale(self, factor: float) -> None:
        """Multiply all by a number."""
        for register in self._values:
            register[:] = register * factor

    def read_from_registers(self, other: "FFTRegisters") -> None:
        """Copy all registers of another set. Raises ValueError for another number of them."""
        if other.count != self.count:
            raise ArgumentValueError(f"other: expected {self.count} registers, got {other.count}")
        for register, value in zip(self._values, other, strict=True):
            register[:] = value
