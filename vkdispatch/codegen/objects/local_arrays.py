"""Arrays of one invocation as a kernel's Python body sees them."""

from typing import Any

from vkdispatch.base.dtype import DType, int32
from vkdispatch.base.dtypes.composite import array_type
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.codegen.trace.assignment import assign
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_index, parse_stored_value
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.ir import Expr, Op
from vkdispatch.ir import expressions as ex
from vkdispatch.ir.location import here, located

__all__ = ["LocalArray"]

# Beyond, filling an array is a loop of the GPU.
_MOST_STORES = 16
_MOST_ELEMENTS = 1 << 16


class LocalArray:
    """An array of one invocation, made by `vc.local_array`: `a[i]`, `a[i] = v`, `a[:] = v`, `len(a)`.

    Indices are Python ints, negative ones from the end, or integers of the GPU. What is read is the value of
    then. Names share an array as Python's names share a list; `a[:]` is a copy.

    Attributes
    ----------
    var_type
        dtype of an element.
    """

    __slots__ = ("_register", "var_type")

    var_type: DType
    _register: Expr

    def __init__(self, kind: DType, count: int, name: str | None = None) -> None:
        """Declare an array of zeros."""
        array = array_type(kind, count)
        self.var_type = kind
        self._register = current().declare_array(array, Expr(Op.CONSTRUCT, array, (), None, here()), name)

    def __len__(self) -> int:
        return self._register.dtype.child_count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self._check_whole(index)
            copy = LocalArray(self.var_type, len(self))
            current().store(copy._register, self._register)
            return copy
        return ShaderVariable(current().read(self._at(index)))

    def __setitem__(self, index: Any, value: object) -> None:
        if isinstance(index, slice):
            self._check_whole(index)
            self._fill(value)
        else:
            assign(self._at(index), value)

    def _fill(self, value: Any) -> None:
        """Assign one value to all elements, or copy a sequence or another array."""
        recorder, count = current(), len(self)
        if isinstance(value, LocalArray):
            if value._register.dtype is not self._register.dtype:
                mine, other = self._register.dtype.name, value._register.dtype.name
                raise located(ArgumentValueError, f"a local array of {mine} takes no array of {other}")
            recorder.store(self._register, value._register)
            return
        if isinstance(value, (list, tuple, np.ndarray)):
            if len(value) != count:
                raise located(
                    ArgumentValueError, f"a local array of {count} elements takes no {len(value)} values"
                )
            for position, stored in enumerate([parse_stored_value(each, self.var_type) for each in value]):
                recorder.store(self._at(position), stored)
            return
        stored = parse_stored_value(value, self.var_type)
        if isinstance(value, ShaderVariable):
            stored = current().declare_around(stored.dtype, stored, f"{self._name}_value")
        if count <= _MOST_STORES:
            for position in range(count):
                recorder.store(self._at(position), stored)
            return
        start, stop, step = (ex.literal(number, int32) for number in (0, count, 1))
        counter = recorder.open_for(start, stop, step)
        recorder.store(self._element(counter), stored)
        recorder.close()

    @property
    def _name(self) -> str:
        return str(getattr(self._register.value, "name", "array"))

    @staticmethod
    def _check_whole(index: slice) -> None:
        if index != slice(None):
            raise located(ArgumentValueError, "the only valid slice of a local array is a[:]")

    def _at(self, index: Any) -> Expr:
        position = parse_index(index, "a local array", ArgumentTypeError)
        if isinstance(position, Expr):
            return self._element(position)
        count = len(self)
        if not -count <= position < count:
            raise located(
                ArgumentIndexError, f"index {position} is out of range for a local array of {count} elements"
            )
        return self._element(ex.literal(position % count, int32))

    def _element(self, position: Expr) -> Expr:
        return Expr(Op.INDEX, self.var_type, (self._register, ex.index_value(position)), None, here())

    def __repr__(self) -> str:
        return f"<local array {self._name} of {len(self)} {self.var_type.name}>"


def checked_count(count: Any) -> int:
    """Return the count of elements of a local array. Raises TypeError or ValueError for what is none."""
    if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)):
        raise located(
            ArgumentTypeError, f"local_array: the count of elements must be an int of Python's, got {count!r}"
        )
    if not 1 <= count <= _MOST_ELEMENTS:
        raise located(
            ArgumentValueError, f"local_array: expected 1 to {_MOST_ELEMENTS} elements, got {count}"
        )
    return int(count)
