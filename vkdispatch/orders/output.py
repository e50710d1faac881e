"""`Accel.output`: the results, waited for at their first use, and a method that copies them back."""

import operator
from collections.abc import Callable
from typing import Any

_ALONE = (abs, bool, complex, dir, float, format, hash, int, iter, len, repr, reversed, round, str)
_OPERATORS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
_OTHERS = "contains delitem eq ge getitem gt index invert le lt ne neg pos setitem"
_OF_ARRAYS = "__array"  # the protocols of NumPy: those that there are, are written below


class Output:
    """Stands for the output of an `Accel`, or for the tuple of its outputs, and can be called.

    Every operation waits for all runs, copies their results back, and is then applied to that array, list,
    buffer or tuple. A call copies the results of one run; see `Accel.output`.
    """

    __slots__ = ("_output_bring", "_output_given", "_output_settle")

    def __init__(self, given: object, settle: Callable[[], None], bring: Callable[..., object]) -> None:
        object.__setattr__(self, "_output_given", given)
        object.__setattr__(self, "_output_settle", settle)
        object.__setattr__(self, "_output_bring", bring)

    def __call__(
        self,
        run_id: object = 0,
        output: object = None,
        force: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Copy the results of a run back, and return the outputs. See `Accel.output`."""
        return self._output_bring(run_id, output, force, timeout)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of what it stands for, as isinstance has it."""
        return type(self._output_given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_OF_ARRAYS):
            raise AttributeError(name)  # NumPy asks for the array by `__array__`
        return getattr(_settle(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_settle(self), name, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        made = np.asarray(_settle(self), dtype)
        return made.copy() if copy else made

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(function, method)(*_unwrap(inputs), **_unwrap(options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return function(*_unwrap(args), **_unwrap(options))


def _settle(output: Any) -> Any:
    """Return what an output stands for, with the results of all runs in it."""
    output._output_settle()
    return output._output_given


def _unwrap(given: Any) -> Any:
    """Return arguments with arrays in place of outputs, in lists, tuples and dictionaries too."""
    if type(given) is Output:
        return _settle(given)
    if type(given) in (list, tuple):
        return type(given)(_unwrap(each) for each in given)
    if type(given) is dict:
        return {name: _unwrap(each) for name, each in given.items()}
    return given


def _make_method(function: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    """Return a method that calls a function with what the output stands for; the last argument if swapped."""

    def method(self: Output, *args: Any) -> Any:
        others = _unwrap(args)
        return function(*others, _settle(self)) if swapped else function(_settle(self), *others)

    return method


def _make_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods that Python looks for in a class, and not by `__getattr__`."""
    found = {f"__{each.__name__}__": _make_method(each) for each in _ALONE}
    for name in f"{_OPERATORS} {_OTHERS}".split():
        found[f"__{name}__"] = _make_method(getattr(operator, f"__{name}__"))
    for name in _OPERATORS.split():
        found[f"__i{name}__"] = _make_method(getattr(operator, f"__i{name}__"))
        found[f"__r{name}__"] = _make_method(getattr(operator, f"__{name}__"), swapped=True)
    found["__divmod__"], found["__rdivmod__"] = _make_method(divmod), _make_method(divmod, swapped=True)
    # copies and pickles are those of the array
    found["__reduce_ex__"] = _make_method(lambda value, protocol: value.__reduce_ex__(protocol))
    return found


for _name, _made in _make_methods().items():
    setattr(Output, _name, _made)
