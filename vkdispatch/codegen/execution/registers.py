"""Registers: variables of one invocation, and arrays of its own, of workgroups and of constants."""

import math
from collections.abc import Callable
from typing import Any

from vkdispatch.base.derived_dtypes import is_dataclass, is_structure, leaves_of, structure_of, wrap_array
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.arguments import ConstantArray
from vkdispatch.codegen.builder import get_builder
from vkdispatch.codegen.functions.complex_numbers import complex_type
from vkdispatch.codegen.functions.trigonometry import as_value, operands
from vkdispatch.codegen.functions.vectors import NAMED_TYPES
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.codegen.objects.structures import ItemArray, StructureBuffer, declare_arrays
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import check_dtype, parse_components
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

__all__ = [
    "ItemArray",
    "LocalArray",
    "constant_array",
    "local_array",
    "new_complex_register",
    "new_register",
    "precise",
    "shared_buffer",
]


# ---- Arrays of one invocation as a kernel's Python body sees them ----------------------------------------


_MAX_ELEMENTS = 1 << 16


class LocalArray(ItemArray):
    """An array of one invocation, made by `vc.local_array`; it is used as any `ItemArray`.

    Names share an array as Python's names share a list; `a[:]` is a copy. The elements of a structure,
    `a[i].x`, are read and written as those of a buffer; `a[i]` by itself is a copy of the whole element.

    Attributes
    ----------
    var_type
        dtype of an element: a structure where the elements are dataclasses.
    """

    __slots__ = ()

    def __init__(
        self, kind: DType, shape: tuple[int, ...], name: str | None = None, owner: type[Any] | None = None
    ) -> None:
        """Declare an array of zeros; `owner` is the dataclass of its elements, if any."""
        array = wrap_array(kind, shape)
        super().__init__(declare_arrays(array, name), (), (), array, owner)

    def _copy(self, name: str | None = None) -> "LocalArray":
        copy = LocalArray(self.var_type, self.shape, name, self._owner)
        copy._take(self)
        return copy


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a local array. Raises TypeError or ValueError for what is none."""
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for count in axes:
        if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)):
            raise located(
                ArgumentTypeError,
                f"local_array: the count of elements must be an int of Python's, or a tuple of them, got "
                f"{count!r}",
            )
    if not axes or min(axes) < 1 or math.prod(map(int, axes)) > _MAX_ELEMENTS:
        raise located(ArgumentValueError, f"local_array: expected 1 to {_MAX_ELEMENTS} elements, got {shape}")
    return tuple(map(int, axes))


# ---- Registers -------------------------------------------------------------------------------------------
#
# Variables of one invocation; arrays of its own, in workgroup memory, and constant ones.


def new_register(var_type: DType, *args: Any, var_name: str | None = None) -> ShaderVariable:
    """Declare a register that starts as `vc.to_dtype(var_type, *args)`, by default as zero.

    Raises TypeError or ValueError for arguments that do not make one, RuntimeError outside tracing.
    """
    check_dtype(var_type, "new_register")
    value = ex.construct(var_type, parse_components(args, f"new_register({var_type.name})"))
    return ShaderVariable(current().declare(var_type, value, var_name))


def new_complex_register(*args: Any, var_name: str | None = None) -> ShaderVariable:
    """Declare a complex register as wide as its arguments; complex64 zero by default."""
    kind = complex_type(parse_components(args, "new_complex_register"), "new_complex_register")
    return new_register(kind, *args, var_name=var_name)


def precise(x: Any) -> ShaderVariable:
    """Compute a value as it is written: each operation rounds, so that all devices give the same bits.

    Devices may otherwise take a product and a sum together, and round once, or take (x + c) - c for x. It
    holds for all that x is made of, in this kernel; `precise_math=True` does the same for a whole kernel. Of
    operations these are sums, differences and products (those of float32 and float64 round alike everywhere;
    quotients, roots and functions do not). Returns a register. A number is returned as it is.

    Raises TypeError or ValueError for what is neither, RuntimeError outside tracing.
    """
    (value,) = operands("precise", (x,))
    if not isinstance(value, Expr):
        return as_value(value)
    return ShaderVariable(current().declare(value.dtype, value, precise=True))


def shared_buffer(var_type: DType | type[Any], size: Any, var_name: str | None = None) -> BufferVariable:
    """Declare an array that the workgroup shares: of `size` elements, or of up to three axes of these sizes.

    The elements are of a dtype, or of a dataclass as in `Buff[SomeDataclass]`. Several axes lie in row-major
    order. A size is a Python int, or an integer made of `Const` arguments such as `2 * n`: then the kernel is
    compiled for each size that calls ask for, and each call is checked in full, which takes longer than other
    calls. A kernel keeps the last 64 sizes.

    Raises TypeError or ValueError for a bad type or size, RuntimeError outside tracing. A call raises
    ValueError for a size below 1, or more than the device has.
    """
    kind, owner = _element_type(var_type, "shared_buffer")
    if not is_structure(kind):
        return BufferVariable(current().add_shared(kind, size, var_name))
    assert owner is not None
    fields = {
        path: current().add_shared(compute_type(leaf), size, "_".join((var_name or "shared", *path)))
        for path, leaf, _ in leaves_of(kind)
    }
    return StructureBuffer(next(iter(fields.values())), owner, kind, fields)


def local_array(
    var_type: DType | type[Any], count: int | tuple[int, ...], var_name: str | None = None
) -> LocalArray:
    """Declare an array of this invocation: of `count` elements, or of axes of these sizes, all zero.

    The elements are of a dtype, or of a dataclass as in `Buff[SomeDataclass]`. It is read and written by
    Python ints and by integers of the GPU; see `LocalArray`. Where it does not fit in registers, as with
    indices that only the GPU knows, devices keep it in memory of their own. In a loop of the GPU each round
    makes its array anew.

    Raises TypeError or ValueError for a bad type or count, RuntimeError outside tracing.
    """
    kind, owner = _element_type(var_type, "local_array")
    return LocalArray(kind, checked_shape(count), var_name, owner)


def _element_type(var_type: Any, what: str) -> tuple[DType, type[Any] | None]:
    """Return the dtype of the elements of an array, and the dataclass that it was made from."""
    if is_dataclass(var_type):
        try:
            return structure_of(var_type), var_type
        except ArgumentValueError as error:
            raise located(ArgumentValueError, f"{what}: {error}") from None
    check_dtype(var_type, what)
    return var_type, None


def constant_array(
    array: "np.ndarray[Any, Any] | ConstantArray", var_name: str | None = None
) -> BufferVariable:
    """Make an array of numbers part of the kernel: `table[i]` reads an element of it.

    The numbers lie in device memory, and go there before the kernel's first launch. Calls of the kernel do
    not mention them. Whoever asks for the same object again, in one kernel, gets the same array.

    Parameters
    ----------
    array
        A NumPy array of a dtype that buffers have; what it holds now is copied. Or a
        `vc.ConstantArray`, of which all kernels that use it share one copy.
    var_name
        What the generated code and messages call it.

    Returns
    -------
    A buffer that can only be read: by its flat index, or by an index for each of up to three axes.

    Raises
    ------
    TypeError
        `array` is neither of them.
    ValueError
        It is empty, or of another dtype.
    RuntimeError
        No kernel is being traced.
    """
    return get_builder().constant_array(array, var_name)


def _make_register_maker(kind: DType) -> Callable[..., ShaderVariable]:
    def declare(*args: Any, var_name: str | None = None) -> ShaderVariable:
        return new_register(kind, *args, var_name=var_name)

    declare.__doc__ = f"Declare a {kind.name} register that starts as the arguments say, by default as zero."
    return declare


for _name, _kind in NAMED_TYPES.items():
    globals()[f"new_{_name}_register"] = _make_register_maker(_kind)
__all__ += [f"new_{name}_register" for name in NAMED_TYPES]
