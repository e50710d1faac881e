"""What a kernel declares: names, arguments, resources and shared arrays."""

import math
import operator
from typing import Any

from vkdispatch.base.derived_dtypes import leaf_type
from vkdispatch.base.dtype import DType, float32, ivec4
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.codegen.trace.operands import GpuValue, refuse_placeholders
from vkdispatch.compiler.analyses.launch_values import may_size
from vkdispatch.compiler.ir import Argument, Expr, ImageBinding, SharedArray, Storage, nodes
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.names import legal_name


class Declarations:
    """Names, arguments and resources of the kernel being traced."""

    def _clear(self) -> None:
        self._names: set[str] = set()
        # the names in order, so that `rewind` can remove the last ones
        self._named: list[str] = []
        # by name: the last number appended to it
        self._copies: dict[str, int] = {}
        self._counter = 0
        self._arguments: list[Argument] = []
        self._resources: list[Storage | ImageBinding] = []
        self._shared: list[SharedArray] = []
        self._shapes: dict[int, Argument] = {}
        self._fields: dict[tuple[int, tuple[str, ...]], Storage] = {}
        self._planar: set[int] = set()
        # arguments that may change between submissions of a graph
        self._unfixed: set[object] = set()

    # -- names

    def new_name(self) -> str:
        """Return an unused name: var0, var1..."""
        while (name := f"var{self._counter}") in self._names:
            self._counter += 1
        self._add_name(name)
        return name

    def claim_name(self, wanted: str | None, *, member: bool = False) -> str:
        """Return `wanted`, made legal and unique, or a new name. Raises TypeError if it is not a str."""
        if wanted is None:
            return self.new_name()
        if not wanted or not isinstance(wanted, str):
            raise located(ArgumentTypeError, f"var_name: expected a non-empty str, got {wanted!r}")
        refuse_placeholders(wanted, "var_name")
        name = legal_name(wanted, member=member)
        if name in self._names:
            # two underscores in a row are GLSL's own
            base = name.rstrip("_")
            copies = self._copies.get(base, 0)
            while name in self._names:
                copies += 1
                name = f"{base}_{copies}"
            self._copies[base] = copies
        self._add_name(name)
        return name

    def reserve_name(self, name: str) -> None:
        """Keep a name that was claimed before a `rewind`."""
        if name not in self._names:
            self._add_name(name)

    def _add_name(self, name: str) -> None:
        self._names.add(name)
        self._named.append(name)

    # -- arguments and resources

    def add_argument(self, name: str, kind: DType, *, shape: bool = False) -> Argument:
        """Add a member to the argument block."""
        argument = Argument(self.claim_name(name, member=True), kind, shape)
        self._arguments.append(argument)
        return argument

    def note_variable(self, argument: Argument) -> None:
        """Note that an argument may change after a call was recorded."""
        self._unfixed.add(argument)

    def add_storage(self, kind: DType, label: str, constant: tuple[int, ...] | None = None) -> Storage:
        """Add a storage buffer, or a constant array of a shape, after the existing resources."""
        storage = Storage(len(self._resources), kind, label, constant)
        self._resources.append(storage)
        return storage

    def field_of(self, storage: Storage, path: tuple[str, ...]) -> Storage:
        """Return the storage of a field of a buffer of structures."""
        key = (storage.index, path)
        if key not in self._fields:
            kind = leaf_type(storage.dtype, path)
            self._fields[key] = Storage(storage.index, kind, storage.label, None, storage, path)
        return self._fields[key]

    def add_image(
        self,
        dimensions: int,
        label: str,
        kind: DType = float32,
        *,
        storage: bool = False,
        arrayed: bool = False,
    ) -> ImageBinding:
        """Add an image after the existing resources; see `ImageBinding`."""
        image = ImageBinding(len(self._resources), dimensions, label, kind, storage, arrayed)
        self._resources.append(image)
        return image

    def add_shared(self, kind: DType, size: Any, name: str | None = None) -> SharedArray:
        """Add an array in workgroup memory. Raises TypeError or ValueError for a bad size."""
        axes = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        shape = tuple(self._parse_axis(axis, size) for axis in axes)
        if not 1 <= len(axes) <= 3:
            raise _wrong_size(size)
        known = [axis for axis in shape if isinstance(axis, int)]
        if min(known, default=1) < 1:
            raise located(ArgumentValueError, f"shared_buffer: size must be at least 1, got {size}")
        count = math.prod(known) if len(known) == len(shape) else None
        array = SharedArray(self.claim_name(name), kind, count, shape)
        self._shared.append(array)
        return array

    def _parse_axis(self, axis: object, size: object) -> int | Expr:
        """Return an axis of shared memory: an int, or an integer of arguments that a call fixes."""
        if isinstance(axis, GpuValue) and not axis._extremes():
            value = axis._value()
            variable = next((node for node in nodes((value,)) if node.value in self._unfixed), None)
            if variable is not None:
                raise located(
                    ArgumentTypeError,
                    "shared_buffer: a Var may change after the call was recorded; make the size a Const",
                )
            if may_size(value):
                return value
        elif not isinstance(axis, (bool, GpuValue)) and hasattr(axis, "__index__"):
            return operator.index(axis)
        raise _wrong_size(size)

    def shape_of(self, storage: Storage) -> Argument:
        """Return the argument (ivec4) that holds a buffer's shape; the first call adds it."""
        if storage not in self._resources:
            raise located(UsageError, f"the buffer {storage.label!r} belongs to another kernel")
        if storage.index not in self._shapes:
            self._shapes[storage.index] = self.add_argument(f"{storage.name}_shape", ivec4, shape=True)
        return self._shapes[storage.index]

    def require_planar(self, storage: Storage) -> None:
        """Note that the kernel indexes a buffer by two axes: its shape must not have a third."""
        self._planar.add(storage.index)


def _wrong_size(size: object) -> ArgumentTypeError:
    return located(
        ArgumentTypeError,
        "shared_buffer: size must be a Python int or a tuple of 1 to 3 of them, or integers made of Const "
        f"arguments by + - * // and %, got {size!r}",
    )
