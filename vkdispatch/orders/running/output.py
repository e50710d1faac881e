"""`Accel.output`: the results, which wait for the runs when used, and a method that copies them back."""

import operator
from collections.abc import Callable
from typing import Any

_UNARY = (abs, bool, complex, dir, float, format, hash, int, iter, len, repr, reversed, round, str)
_OPERATORS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
_OTHERS = "contains delitem eq ge getitem gt index invert le lt ne neg pos setitem"
_OF_ARRAYS = "__array"  # the protocols of NumPy; the supported ones are defined below


class Output:
    """Stands for the output of an `Accel`, or for the tuple of its outputs, and can be called.

    Every operation waits for all runs, copies their results back, and is then applied to that array, list,
    buffer or tuple. A call copies the results of one run; see `Accel.output`.
    """

    __slots__ = ("_output_copy", "_output_value", "_output_wait")

    def __init__(self, value: object, wait: Callable[[], None], copy: Callable[..., object]) -> None:
        object.__setattr__(self, "_output_value", value)
        object.__setattr__(self, "_output_wait", wait)
        object.__setattr__(self, "_output_copy", copy)

    def __call__(
        self,
        run_id: object = 0,
        output: object = None,
        force: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Copy the results of a run back, and return the outputs. See `Accel.output`."""
        return self._output_copy(run_id, output, force, timeout)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the value, for `isinstance`."""
        return type(self._output_value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_OF_ARRAYS):
            raise AttributeError(name)  # NumPy gets the array from `__array__`
        return getattr(_wait_for_value(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_wait_for_value(self), name, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        array = np.asarray(_wait_for_value(self), dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(function, method)(*_unwrap(inputs), **_unwrap(options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return function(*_unwrap(args), **_unwrap(options))


def _wait_for_value(output: Any) -> Any:
    """Wait for all runs, and return the value that an output stands for."""
    output._output_wait()
    return output._output_value


def _unwrap(value: Any) -> Any:
    """Replace outputs by their values, also in lists, tuples and dictionaries."""
    if type(value) is Output:
        return _wait_for_value(value)
    if type(value) in (list, tuple):
        return type(value)(_unwrap(each) for each in value)
    if type(value) is dict:
        return {name: _unwrap(each) for name, each in value.items()}
    return value


def _make_method(function: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    """Return a method that calls a function with the value as the first argument; the last if swapped."""

    def method(self: Output, *args: Any) -> Any:
        others = _unwrap(args)
        return (
            function(*others, _wait_for_value(self)) if swapped else function(_wait_for_value(self), *others)
        )

    return method


def _make_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods that Python looks up in the class instead of by `__getattr__`."""
    methods = {f"__{each.__name__}__": _make_method(each) for each in _UNARY}
    for name in f"{_OPERATORS} {_OTHERS}".split():
        methods[f"__{name}__"] = _make_method(getattr(operator, f"__{name}__"))
    for name in _OPERATORS.split():
        methods[f"__i{name}__"] = _make_method(getattr(operator, f"__i{name}__"))
        methods[f"__r{name}__"] = _make_method(getattr(operator, f"__{name}__"), swapped=True)
    methods["__divmod__"], methods["__rdivmod__"] = _make_method(divmod), _make_method(divmod, swapped=True)
    # Copies and pickles are those of the value.
    methods["__reduce_ex__"] = _make_method(lambda value, protocol: value.__reduce_ex__(protocol))
    return methods


for _name, _method in _make_methods().items():
    setattr(Output, _name, _method)
