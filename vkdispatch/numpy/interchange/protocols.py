"""NumPy's protocols: its ufuncs and functions with arrays, and the methods `at` and `reduceat`."""

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics import parts
from vkdispatch.numpy.basics.elementwise import UFUNCS, choose, finish
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import (
    broadcast_to,
    lines_last,
    moveaxis,
    parse_axes,
    parse_axis,
    reshape,
)
from vkdispatch.numpy.basics.reductions import accumulate, final_shape
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core.array import CONVERT, Array, check_cast, describe, namespace, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, asnumpy
from vkdispatch.numpy.core.memory import has_float64
from vkdispatch.numpy.counting import count_numbers
from vkdispatch.numpy.searching import argsort, searchsorted, sort

# ---- Updates at indices, and reductions between them: the methods `at` and `reduceat` of ufuncs ----------


# With what several values for one place are combined before.
_COMBINING = {"add": "add", "subtract": "add", "multiply": "multiply", "divide": "multiply"}
_COMBINING |= {name: name for name in ("maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or")}
_COMBINING |= {name: name for name in ("bitwise_xor", "logical_and", "logical_or", "logical_xor", "gcd")}
_COMBINING |= {name: name for name in ("lcm", "logaddexp", "hypot")}


# Ufuncs that combine truth values.
_TRUTHS = ("logical_and", "logical_or", "logical_xor")


def update_at(name: str, x: Array, index: Any, values: Any) -> None:
    """Set `x[index]` to a ufunc of it and of values; indices that occur several times count several times.

    See `numpy.ufunc.at`. Several values for one place are combined first: sums of real numbers exactly,
    others in pairs. Floats may differ from NumPy's in their last bits.

    Raises
    ------
    TypeError
        The ufunc is none whose values can be combined, or its result does not fit the dtype of `x`.
    """
    if name not in _COMBINING:
        raise ArgumentTypeError(
            f"np.{name}.at: arrays have it for {', '.join(_COMBINING)}; compute on the host with x.numpy()"
        )
    if not x.size:
        return
    function, combine = UFUNCS[name], UFUNCS[_COMBINING[name]]
    places = reshape(arange(x.size), x.shape)[index]
    is_weak = isinstance(values, (int, float, complex)) and not isinstance(values, bool)
    given = values if isinstance(values, Array) else asarray(values, x.dtype if is_weak else None)
    data = reshape(broadcast_to(given, places.shape), (-1,))
    places = reshape(places, (-1,))
    if not places.size:
        return
    if name not in _TRUTHS:
        data = data.astype(_computed_kind(name, x, given), copy=False)
    if _COMBINING[name] == "add" and _has_exact_sums(x, data, given):
        weights = data if given.size > 1 else None
        sums = count_numbers(places, weights, x.size).astype(data.dtype)
        if weights is None:
            sums = sums * data[0]
        with _open_flat(x) as flat:
            _set(name, flat, ..., function(flat, sums))
        return
    order = argsort(places)
    places, data = places[order], data[order]
    rank = _ranks(places)
    while int(rank.max()):
        # ranks 2k and 2k + 1 of a place become one
        is_first = rank % 2 == 0
        beside = concatenate([places[1:] == places[:-1], arange(1) > 0])
        following = concatenate([data[1:], data[:1]])
        data = choose(is_first & beside, combine(data, following), data)[is_first]
        places, rank = places[is_first], rank[is_first] // 2
    with _open_flat(x) as flat:
        _set(name, flat, places, function(flat[places], data))


def _computed_kind(name: str, x: Array, values: Array) -> "np.dtype[Any]":
    """Return the dtype with which a ufunc computes."""
    kinds = getattr(np, name).resolve_dtypes((x.dtype, values.dtype, None))
    return kinds[1]  # type: ignore[no-any-return]


# Histograms have a bin for every place: they are faster up to so many places per value.
_MAX_PLACES = 16
_MAX_EXACT = 1 << 21  # values of 32 bits of which float64 holds the sum


def _has_exact_sums(x: Array, data: Array, given: Array) -> bool:
    """Whether histograms add up the values of each place."""
    if data.dtype.kind not in "iuf" or x.size > _MAX_PLACES * data.size or not has_float64():
        return False
    if given.size == 1:
        return data.dtype.kind != "f" or math.isfinite(given.item())
    return data.dtype.kind == "f" or (given.dtype.itemsize <= 4 and data.size <= _MAX_EXACT)


@contextmanager
def _open_flat(x: Array) -> Iterator[Array]:
    """Give the elements of an array along one axis; what is written to them goes to the array."""
    target = x if view_of(x).is_contiguous else x.copy()
    yield reshape(target, (-1,))
    if target is not x:
        x[...] = target


def _ranks(places: Array) -> Array:
    """Return how many equal numbers come before each of sorted ones."""
    return arange(places.size) - searchsorted(places, places)


def apply_at(name: str, x: Array, index: Any) -> None:
    """Set `x[index]` to a ufunc of it, as often as each index occurs. See `numpy.ufunc.at`.

    Raises TypeError if the result does not fit the dtype of `x`.
    """
    function = UFUNCS.get(name)
    if function is None:
        raise ArgumentTypeError(f"np.{name}.at: arrays do not have this function; use x[i] = f(x[i])")
    if not x.size:
        return
    places = reshape(reshape(arange(x.size), x.shape)[index], (-1,))
    if not places.size:
        return
    places = sort(places)
    rank = _ranks(places)
    with _open_flat(x) as flat:
        for turn in range(int(rank.max()) + 1):
            chosen = places[rank == turn]
            _set(name, flat, chosen, function(flat[chosen]))


def reduce_parts(name: str, x: Array, indices: Any, axis: Any = 0, dtype: Any = None) -> Array:
    """Return reductions of the parts of an axis from each index up to the next. See `numpy.ufunc.reduceat`.

    Where an index is not less than the next, the part is one element. Elements are combined in pairs.

    Raises
    ------
    TypeError
        Indices are no integers.
    IndexError
        An index is out of bounds.
    ValueError
        Indices have not one axis.
    """
    starts = asnumpy(indices)
    starts = starts.astype(np.int64) if not starts.size else starts
    place = parse_axis(axis, x.ndim)
    length = x.shape[place]
    if starts.dtype.kind not in "iu":
        raise ArgumentTypeError(f"indices: expected integers, got {starts.dtype}")
    if starts.ndim != 1:
        raise ArgumentValueError(f"indices: expected one axis, got the shape {starts.shape}")
    wrong = starts[(starts < 0) | (starts >= length)]
    if wrong.size:
        raise ArgumentIndexError(f"indices: {wrong[0]} is out of bounds for an axis of {length} elements")
    function = UFUNCS[name]
    kind = getattr(np, name).reduce(np.ones(1, x.dtype), dtype=dtype).dtype
    data = moveaxis(x.astype(kind if name not in _TRUTHS else x.dtype, copy=False), place, 0)
    ends = np.append(starts[1:], length)
    counts = np.where(ends > starts, ends - starts, 1) if starts.size else starts
    rows = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    data = data[asarray(rows.astype(np.int64))]
    if name in _TRUTHS:
        data = data != 0
    while counts.size and counts.max() > 1:
        first = np.cumsum(counts) - counts
        halves = (counts + 1) // 2
        ranks = np.arange(halves.sum()) - np.repeat(np.cumsum(halves) - halves, halves)
        left = np.repeat(first, halves) + 2 * ranks
        single = 2 * ranks + 1 == np.repeat(counts, halves)
        low, high = data[asarray(left)], data[asarray(np.where(single, left, left + 1))]
        alone = asarray(single.reshape(-1, *(1,) * (x.ndim - 1)))
        data, counts = choose(alone, low, function(low, high)), halves
    return moveaxis(data.astype(kind, copy=False), 0, place)


def _set(name: str, flat: Array, places: Any, result: Array) -> None:
    check_cast(result.dtype, flat.dtype, f"np.{name}.at")
    flat[places] = result


# ---- NumPy's protocols: its ufuncs and functions, called with arrays, are those of this namespace --------


# Reductions and running results that have kernels of their own.
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_RUNNING = ("add", "multiply", "maximum", "minimum")
# Others that may be computed in any order, with what they start from.
_ASSOCIATIVE: dict[str, Any] = {
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logical_xor": False,
    "fmax": None,
    "fmin": None,
    "gcd": 0,
    "lcm": 1,
    "hypot": 0,
    "logaddexp": -np.inf,
    "logaddexp2": -np.inf,
}
# Keywords that do not change what is computed here, and the values that they may have.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "order": ("K", "C", "A"),
    "subok": (True, False),
    "casting": ("same_kind",),
}
# Ufuncs that compute what another one does.
_SAME = {"rad2deg": "degrees", "deg2rad": "radians"}
# Ufuncs that take numbers apart.
_PARTS = ("divmod", "frexp", "ldexp", "modf", "spacing")
# Ufuncs that are functions of linear algebra here.
_PRODUCTS = ("matmul", "vecdot", "matvec", "vecmat")


# ---- ufuncs --------------------------------------------------------------------------------------


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a ufunc of NumPy gives for arrays: `Array.__array_ufunc__`.

    NotImplemented where an operand has a protocol of its own, so that its library computes.

    Raises
    ------
    TypeError
        An operand is an array of NumPy, or the ufunc or its method is none of those that arrays have.
    """
    if not kwargs and method == "__call__":
        function = _FUNCTIONS.get(ufunc)
        if function is not None and all(isinstance(each, _PLAIN) for each in inputs):
            return function(*inputs)
    # operators of NumPy's scalars make such arrays
    inputs = [each[()] if isinstance(each, np.ndarray) and not each.ndim else each for each in inputs]
    outputs = kwargs.get("out", ())
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if any(_is_foreign(operand) for operand in (*inputs, *outputs)):
        return NotImplemented
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    elements = (*inputs[:1], *inputs[2:]) if method == "at" else inputs  # without the indices
    _refuse_host_arrays(f"np.{name}", (*elements, *outputs, kwargs.get("where")))
    compute = _METHODS.get(method)
    if compute is None:
        raise ArgumentTypeError(f"np.{name}: arrays do not have this method; {_ON_HOST}")
    if getattr(np, ufunc.__name__, None) is not ufunc:
        return _call_special(ufunc, method, inputs, kwargs)
    return compute(ufunc, inputs, kwargs)


def _call_special(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Compute a ufunc that is not one of NumPy's: those of `scipy.special` that arrays have."""
    name = ufunc.__name__
    scipy = sys.modules.get("scipy.special._ufuncs")
    special = namespace().special
    if method != "__call__" or getattr(scipy, name, None) is not ufunc or name not in special.__all__:
        raise ArgumentTypeError(
            f"{name}: arrays do not have this ufunc, which is not one of NumPy's; {_ON_HOST}"
        )
    options = _options(name, kwargs, ("out",))
    out = options.get("out")
    result = getattr(special, name)(*inputs)
    return result if out is None else finish(value_of(result), out, None, name)


_FUNCTIONS = {getattr(np, name): function for name, function in UFUNCS.items()}
_PLAIN = (Array, float, int, complex, np.number, np.bool_)
_ON_HOST = "compute on the host with x.numpy()"


def _is_foreign(value: Any) -> bool:
    """Whether the library of an operand computes instead of this one."""
    if value is None or isinstance(value, (Array, np.ndarray, np.generic, Buffer)):
        return False
    return getattr(type(value), "__array_ufunc__", None) is not None


def _refuse_host_arrays(name: str, values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, Buffer) or (isinstance(value, np.ndarray) and value.ndim):
            shown = describe(value) if isinstance(value, np.ndarray) else "a vd.Buffer"
            raise ArgumentTypeError(
                f"{name}: got {shown} together with an Array; convert it with vnp.asarray, or read the Array "
                "with x.numpy()"
            )


def _options(name: str, kwargs: dict[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """Return the keyword arguments that a function takes. Raises TypeError for others that matter."""
    found = {}
    for key, value in kwargs.items():
        if key in allowed:
            found[key] = value
        elif value is not None and not _is_neutral(key, value):
            raise ArgumentTypeError(f"np.{name}: {key}={value!r} is not for arrays; {_ON_HOST}")
    if isinstance(found.get("out"), tuple) and len(found["out"]) == 1:
        (found["out"],) = found["out"]
    return found


def _call(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if name in _PARTS:
        outputs = _options(name, kwargs, ("out",)).get("out")
        if ufunc.nout == 2:
            return getattr(parts, name)(*inputs, out=outputs)
        result = getattr(parts, name)(*inputs)
        return result if outputs is None else finish(value_of(result), outputs, None, name)
    if name in _PRODUCTS:
        options = _options(name, kwargs, ("out", "dtype", "casting", "axis", "axes"))
        return getattr(namespace(), name)(*inputs, **options)
    function = UFUNCS.get(_SAME.get(name, name))
    if function is None:
        raise ArgumentTypeError(f"np.{name}: arrays do not have this function; {_ON_HOST}")
    return function(*inputs, **_options(name, kwargs, ("out", "where", "dtype")))


def _reduce(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    allowed = ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {"axis": 0, **_options(f"{name}.reduce", kwargs, allowed)}
    if options.get("initial", 0) is np._NoValue:
        del options["initial"]
    (x,) = inputs
    if name in _REDUCTIONS:
        if name not in ("add", "multiply") and options.pop("dtype", None) is not None:
            raise ArgumentTypeError(f"np.{name}.reduce: dtype= is not for arrays; use astype before")
        if name.startswith("logical") and options.pop("initial", None) is not None:
            raise ArgumentTypeError(
                f"np.{name}.reduce: initial= is not for arrays; combine it with the result"
            )
        return getattr(namespace(), _REDUCTIONS[name])(x, **options)
    if name not in _ASSOCIATIVE:
        raise ArgumentTypeError(
            f"np.{name}.reduce: arrays reduce with {', '.join((*_REDUCTIONS, *_ASSOCIATIVE))}; {_ON_HOST}"
        )
    if options.pop("where", True) is not True or options.pop("dtype", None) is not None:
        raise ArgumentTypeError(f"np.{name}.reduce: where= and dtype= are not for arrays; {_ON_HOST}")
    return _reduce_by_halves(name, x, **options)


def _reduce_by_halves(
    name: str, x: Array, axis: Any, out: Any = None, keepdims: bool = False, initial: Any = None
) -> Array:
    """Reduce by combining the halves of the array along an axis, again and again."""
    vnp = namespace()
    function = UFUNCS[name]
    lines, places = lines_last(x, sorted(parse_axes(axis, x.ndim)))
    *rest, count = lines.shape
    if count == 0:
        start = _ASSOCIATIVE[name] if initial is None else initial
        if start is None:
            raise ArgumentValueError(
                f"np.{name}.reduce: zero-size array to reduction operation which has no identity"
            )
        kind = function(vnp.zeros((1,), x.dtype), vnp.zeros((1,), x.dtype)).dtype
        lines, count = vnp.full((*rest, 1), kind.type(start), kind), 1
    if count == 1 and name != "fmax" and name != "fmin":
        lines = function(lines, lines.dtype.type(_ASSOCIATIVE[name]))
    while count > 1:
        half = count // 2
        joined = function(lines[..., :half], lines[..., half : 2 * half])
        lines = vnp.concatenate([joined, lines[..., 2 * half :]], axis=-1) if count % 2 else joined
        count = lines.shape[-1]
    result = lines[..., 0]
    if initial is not None:
        result = function(result, initial)
    if keepdims:
        result = reshape(result, final_shape(x.shape, places, keepdims))
    return result if out is None else finish(value_of(result), out, None, name)


def _accumulate(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if name not in _RUNNING:
        raise ArgumentTypeError(
            f"np.{name}.accumulate: arrays accumulate with {', '.join(_RUNNING)}; {_ON_HOST}"
        )
    options = {"axis": 0, **_options(f"{name}.accumulate", kwargs, ("axis", "dtype", "out"))}
    return accumulate(name, inputs[0], **options)


def _outer(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    first, second = (asarray(operand) for operand in inputs)
    grown = namespace().reshape(first, (*first.shape, *(1,) * second.ndim))
    return _call(ufunc, (grown, second), kwargs)


def _at(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> None:
    _options(f"{ufunc.__name__}.at", kwargs, ())
    if not isinstance(inputs[0], Array):
        raise ArgumentTypeError(
            f"np.{ufunc.__name__}.at: expected an Array to change, got {describe(inputs[0])}"
        )
    if len(inputs) != ufunc.nin + 1:
        values = " and values" if ufunc.nin == 2 else ""
        raise ArgumentTypeError(f"np.{ufunc.__name__}.at: needs an array, indices{values}")
    if ufunc.nin == 1:
        apply_at(ufunc.__name__, *inputs)
    else:
        update_at(ufunc.__name__, *inputs)


def _reduceat(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if name not in _REDUCTIONS and name not in _ASSOCIATIVE:
        raise ArgumentTypeError(
            f"np.{name}.reduceat: arrays have it for {', '.join((*_REDUCTIONS, *_ASSOCIATIVE))}; {_ON_HOST}"
        )
    x, indices = inputs
    options = {"axis": 0, **_options(f"{name}.reduceat", kwargs, ("axis", "dtype", "out"))}
    out = options.pop("out", None)
    result = reduce_parts(name, asarray(x), indices, **options)
    return result if out is None else finish(value_of(result), out, None, f"{name}.reduceat")


_METHODS: dict[str, Callable[[np.ufunc, Sequence[Any], dict[str, Any]], Any]] = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
    "reduceat": _reduceat,
}


# ---- functions -----------------------------------------------------------------------------------


def call_function(func: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a function of NumPy gives for arrays: `Array.__array_function__`.

    NotImplemented where an argument has a protocol of its own, so that its library computes.

    Raises
    ------
    TypeError
        This namespace lacks the function or one of the arguments, or the function refuses an argument.
    """
    if not all(issubclass(kind, (Array, np.ndarray, Buffer)) for kind in types):
        return NotImplemented
    name = f"{(func.__module__ or 'numpy').replace('numpy', 'np', 1)}.{func.__name__}"
    own = find_function(func)
    if own is None:
        raise ArgumentTypeError(f"{name}: arrays do not have this function; {_ON_HOST}")
    positional, named = bind_arguments(name, func, own, args, kwargs)
    try:
        return own(*positional, **named)
    except ArgumentTypeError as error:
        if CONVERT not in str(error):
            raise
        raise ArgumentTypeError(f"{name}: {error}, or read the Arrays with x.numpy()") from None


@lru_cache(1024)
def find_function(func: Any) -> Callable[..., Any] | None:
    """Return the function of the namespace that has the name and the module of one of NumPy's."""
    module, name = func.__module__ or "numpy", func.__name__
    space = namespace()
    if module in ("numpy.linalg", "numpy.fft"):
        space = getattr(space, module.rpartition(".")[2])
    elif module not in ("numpy", "numpy.lib.stride_tricks"):
        return None
    found = getattr(space, name, None)
    return found if inspect.isfunction(found) else None


# Parameters that have another name here.
_RENAMED = {"clip": {"a_min": "min", "a_max": "max"}}


@lru_cache(1024)
def _parameters(func: Any) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return None


def bind_arguments(
    name: str, func: Any, own: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of `own` for those that a function of NumPy was given.

    Raises TypeError for one that `own` lacks, unless it has NumPy's default value.
    """
    theirs, ours = _parameters(func), _parameters(own)
    if theirs is None or ours is None or any(p.kind is p.VAR_POSITIONAL for p in theirs.values()):
        return list(args), dict(kwargs)
    names = list(theirs)
    given = dict(zip(names, args, strict=False)) | kwargs
    given = {key: value for key, value in given.items() if value is not np._NoValue}
    for key, other in _RENAMED.get(func.__name__, {}).items():
        if key in given:
            given[other] = given.pop(key)
    leading = [p for p in ours.values() if p.kind is not p.KEYWORD_ONLY]
    positional: list[Any] = []
    # the first arguments have names of their own in both: they go by their places
    for place, parameter in enumerate(leading):
        key = names[place] if place < len(names) else ""
        if key not in given:
            break
        is_same = key == parameter.name
        if is_same and parameter.kind is not parameter.POSITIONAL_ONLY:
            break
        if not is_same and (key in ours or theirs[key].default is not inspect.Parameter.empty):
            break
        positional.append(given.pop(key))
    accepted = {p.name for p in ours.values() if p.kind is not p.POSITIONAL_ONLY}
    accepted -= {p.name for p in leading[: len(positional)]}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    named = {}
    for key, value in given.items():
        if key in accepted or takes_all:
            named[key] = value
        elif not _is_default(theirs.get(key), value) and not _is_neutral(key, value):
            raise ArgumentTypeError(f"{name}: {key}= is not for arrays; {_ON_HOST}")
    return positional, named


def _is_neutral(key: str, value: Any) -> bool:
    return isinstance(value, (str, bool)) and value in _NEUTRAL.get(key, ())


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    if parameter is None:
        return False
    default = parameter.default
    return value is default or (isinstance(value, (str, int, float)) and bool(value == default))
