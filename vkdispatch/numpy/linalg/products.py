"""Products of matrices, vectors and arrays, and Einstein's summation."""

import math
import operator
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, MissingPackageError
from vkdispatch.matrices.product import matmul as multiply_matrices
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import zeros
from vkdispatch.numpy.basics.elementwise import conjugate, multiply
from vkdispatch.numpy.basics.joining import stack
from vkdispatch.numpy.basics.manipulation import diagonal as diagonal_of
from vkdispatch.numpy.basics.manipulation import moveaxis, reshape
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.application import broadcast_shapes
from vkdispatch.numpy.core.array import Array, array_from, check_cast, store_result, value_of, view_of
from vkdispatch.numpy.core.conversion import require_array, to_array
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import as_buffer, gather
from vkdispatch.numpy.core.memory import Kind, View, kernel_type, parse_dtype
from vkdispatch.numpy.core.repeating import repeat_calls, repeat_reductions

LinAlgError = np.linalg.LinAlgError


def _matrices(x: Array) -> tuple[Any, bool]:
    """Return matrices as a buffer, and whether rows and columns are swapped there."""
    view = evaluate(value_of(x))
    if view.is_whole:
        return as_buffer(view, view.shape), False
    lengths, strides = ((*sizes[:-2], sizes[-1], sizes[-2]) for sizes in (view.shape, view.strides))
    turned = View(view.storage, lengths, view.dtype, view.offset, strides)
    if turned.is_whole:
        return as_buffer(turned, lengths), True
    return as_buffer(gather(view), view.shape), False


@repeat_calls
def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind", axes: Any = None
) -> Array:
    """Return products of matrices. See `numpy.matmul`.

    Parameters
    ----------
    casting
        By which of NumPy's rules the product may be converted to `dtype` and to that of `out`.
    axes
        Three pairs of axes: those of the matrices of `x1` and `x2`, and those of the products in the
        result; of a vector one axis, of a number none.

    Raises
    ------
    ValueError
        An operand has no axes, or the shapes do not fit.
    TypeError
        The product does not go into `dtype`, or into that of `out`, by the rule `casting`.

    Examples
    --------
    >>> vnp.matmul(vnp.asarray([[1, 2], [3, 4]]), vnp.asarray([[1, 0], [0, 2]]))
    Array([[1, 4],
           [3, 8]], dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError(f"matmul: operands need at least one axis, got {a.shape} and {b.shape}")
    kind = a.dtype if a.dtype == b.dtype else manipulation.result_type(a, b)
    if dtype is not None:
        wanted = parse_dtype(dtype)
        check_cast(kind, wanted, "dtype", casting)
        kind = wanted
    if axes is not None:
        a, b, places = _matrices_last(a, b, axes)
        product = matmul(a, b, dtype=kind, casting=casting)
        product = moveaxis(product, tuple(range(-len(places), 0)), places) if places else product
        return _store_product(out, product, casting)
    first = manipulation.expand_dims(a, 0) if a.ndim == 1 else a
    second = manipulation.expand_dims(b, 1) if b.ndim == 1 else b
    if first.shape[-1] != second.shape[-2]:
        raise ArgumentValueError(
            f"matmul: the last axis of x1 of the shape {a.shape} has {first.shape[-1]} elements, and the "
            f"{'only' if b.ndim == 1 else 'second last'} one of x2 of the shape {b.shape} {second.shape[-2]}"
        )
    result = _multiply(first, second, kind)
    shape = result.shape
    if b.ndim == 1:
        shape = shape[:-1]
    if a.ndim == 1:
        shape = (*shape[:-2], shape[-1]) if b.ndim > 1 else shape[:-1]
    product = result if shape == result.shape else reshape(result, shape)
    return _store_product(out, product, casting)


def _store_product(out: Any, product: Array, casting: Any) -> Array:
    if isinstance(out, Array):
        check_cast(product.dtype, out.dtype, "out", casting)
        product = product.astype(out.dtype, copy=False)
    return store_result(out, product)


def _matrices_last(a: Array, b: Array, axes: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """Return operands whose last axes are those of matrices, and the axes of the product."""
    sizes = [min(a.ndim, 2), min(b.ndim, 2)]
    sizes.append(sum(sizes) - 2)
    try:
        given = [(axis,) if isinstance(axis, int) else tuple(map(operator.index, axis)) for axis in axes]
    except TypeError:
        raise ArgumentTypeError(f"axes: expected three tuples of ints, got {axes!r}") from None
    if [len(places) for places in given] != sizes:
        raise ArgumentValueError(f"axes: expected tuples of {sizes} axes, got {axes!r}")
    first = moveaxis(a, given[0], tuple(range(-sizes[0], 0)))
    return first, moveaxis(b, given[1], tuple(range(-sizes[1], 0))), given[2]


def _multiply(first: Array, second: Array, kind: Kind) -> Array:
    rows, length, columns = first.shape[-2], first.shape[-1], second.shape[-1]
    batch = broadcast_shapes([first.shape[:-2], second.shape[:-2]], "matmul")
    final = (*batch, rows, columns)
    if 0 in final or length == 0:
        return zeros(final, dtype=kind, device=first.device)
    if first.dtype != kind:
        first = first.astype(kind)
    if second.dtype != kind:
        second = second.astype(kind)
    is_one = math.prod(second.shape[:-2]) == 1
    if first.ndim > 2 and is_one and evaluate(value_of(first)).is_contiguous:
        # one tall matrix
        first, second = reshape(first, (-1, length)), reshape(second, second.shape[-2:])
    left, left_turned = _matrices(first)
    right, right_turned = _matrices(second)
    own = kernel_type(kind)
    product = multiply_matrices(left, right, transpose_a=left_turned, transpose_b=right_turned, dtype=own)
    return array_from(product, final)


@repeat_calls
def matvec(x1: Any, x2: Any, /) -> Array:
    """Return products of matrices and vectors. See `numpy.matvec`.

    Examples
    --------
    >>> vnp.matvec(vnp.asarray([[1, 2], [3, 4]]), vnp.asarray([1, 1]))
    Array([3, 7], dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim < 2 or b.ndim < 1:
        raise ArgumentValueError(f"matvec: expected matrices and vectors, got {a.shape} and {b.shape}")
    return matmul(a, manipulation.expand_dims(b, -1))[..., 0]


@repeat_calls
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Return products of vectors, which are conjugated, and matrices. See `numpy.vecmat`.

    Examples
    --------
    >>> vnp.vecmat(vnp.asarray([1, 1]), vnp.asarray([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim < 1 or b.ndim < 2:
        raise ArgumentValueError(f"vecmat: expected vectors and matrices, got {a.shape} and {b.shape}")
    left: Array = conjugate(a) if a.dtype.kind == "c" else a
    return matmul(manipulation.expand_dims(left, -2), b)[..., 0, :]


@repeat_reductions
def dot(x1: Any, x2: Any, /, out: Any = None) -> Array:
    """Return the dot product. See `numpy.dot`.

    Examples
    --------
    >>> vnp.dot(vnp.asarray([1, 2]), vnp.asarray([3, 4]))
    Array(11, dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        return store_result(out, multiply(a, b))
    if b.ndim <= 2:
        return matmul(a, b, out)
    return store_result(out, tensordot(a, b, axes=((-1,), (-2,))))


@repeat_reductions
def inner(x1: Any, x2: Any, /) -> Array:
    """Return the inner product over the last axes. See `numpy.inner`.

    Examples
    --------
    >>> vnp.inner(vnp.asarray([1, 2]), vnp.asarray([3, 4]))
    Array(11, dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=((-1,), (-1,)))


@repeat_reductions
def vdot(x1: Any, x2: Any, /) -> Array:
    """Return the dot product of flattened arrays, the first one conjugated. See `numpy.vdot`.

    Examples
    --------
    >>> vnp.vdot(vnp.asarray([1j, 2]), vnp.asarray([1j, 3]))
    Array(7.+0.j, dtype=complex128)
    """
    return vecdot(reshape(require_array(x1, "x1"), -1), reshape(require_array(x2, "x2"), -1))


def outer(x1: Any, x2: Any, /, out: Any = None) -> Array:
    """Return products of all pairs of elements. See `numpy.outer`.

    Examples
    --------
    >>> vnp.outer(vnp.asarray([1, 2]), vnp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int64)
    """
    column, row = reshape(require_array(x1, "x1"), (-1, 1)), reshape(require_array(x2, "x2"), (1, -1))
    return store_result(out, multiply(column, row))


@repeat_reductions
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return dot products along an axis, the first operand conjugated. See `numpy.vecdot`.

    Examples
    --------
    >>> vnp.vecdot(vnp.asarray([[1, 2], [3, 4]]), vnp.asarray([1, 1]))
    Array([3, 7], dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if not (a.ndim and b.ndim):
        raise ArgumentValueError("vecdot: operands need at least one axis")
    if axis != -1:
        a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentValueError(f"vecdot: the axis has {a.shape[-1]} elements in x1, {b.shape[-1]} in x2")
    kind = manipulation.result_type(a, b)
    left: Array = conjugate(a) if a.dtype.kind == "c" else a
    product = left.astype(kind, copy=False) * b.astype(kind, copy=False)
    return any_of(product, axis=-1) if kind.kind == "b" else total(product, axis=-1, dtype=kind)


@repeat_calls
def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Array:
    """Return sums of products over axes. See `numpy.tensordot`.

    Examples
    --------
    >>> vnp.tensordot(vnp.ones((2, 3)), vnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        if count < 0 or count > min(a.ndim, b.ndim):
            raise ArgumentValueError(f"axes: expected 0 to {min(a.ndim, b.ndim)}, got {count}")
        first, second = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        given = [tuple(side) if hasattr(side, "__iter__") else side for side in (axes[0], axes[1])]
        first = manipulation.parse_axes(given[0], a.ndim, "axes[0]")
        second = manipulation.parse_axes(given[1], b.ndim, "axes[1]")
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise ArgumentValueError(f"axes: shapes {a.shape} and {b.shape} do not agree along {axes}")
    kept_a = [i for i in range(a.ndim) if i not in first]
    kept_b = [i for i in range(b.ndim) if i not in second]
    length = math.prod(a.shape[i] for i in first)
    rows = tuple(a.shape[i] for i in kept_a)
    columns = tuple(b.shape[i] for i in kept_b)
    left = reshape(manipulation.permute_dims(a, (*kept_a, *first)), (math.prod(rows), length))
    right = reshape(manipulation.permute_dims(b, (*second, *kept_b)), (length, math.prod(columns)))
    return reshape(matmul(left, right), (*rows, *columns))


@repeat_calls
def cross(
    x1: Any, x2: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return cross products of vectors of three elements. See `numpy.cross`. Raises ValueError for others.

    Examples
    --------
    >>> vnp.linalg.cross(vnp.asarray([1, 0, 0]), vnp.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64)
    """
    a, b = require_array(x1, "x1"), require_array(x2, "x2")
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ArgumentValueError(
            f"axis: expected vectors of three elements, got {a.shape[-1]} and {b.shape[-1]}"
        )
    u, v, w = (a[..., i] for i in range(3))
    x, y, z = (b[..., i] for i in range(3))
    return moveaxis(stack([v * z - w * y, w * x - u * z, u * y - v * x], axis=-1), -1, axisc)


@repeat_reductions
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return sums of diagonals of matrices, the last two axes. See `numpy.linalg.trace`.

    Examples
    --------
    >>> vnp.linalg.trace(vnp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64)
    """
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return diagonals of matrices, the last two axes: a view. See `numpy.linalg.diagonal`.

    Examples
    --------
    >>> vnp.linalg.diagonal(vnp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64)
    """
    return diagonal_of(x, offset, -2, -1)


@repeat_calls
def kron(x1: Any, x2: Any) -> Array:
    """Return the Kronecker product. See `numpy.kron`.

    Examples
    --------
    >>> vnp.kron(vnp.asarray([1, 10]), vnp.asarray([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int64)
    """
    a, b = require_array(x1), require_array(x2)
    ndim = max(a.ndim, b.ndim)
    left = (1,) * (ndim - a.ndim) + a.shape
    right = (1,) * (ndim - b.ndim) + b.shape
    rows = reshape(a, tuple(n for length in left for n in (length, 1)))
    columns = reshape(b, tuple(n for length in right for n in (1, length)))
    return reshape(multiply(rows, columns), tuple(m * n for m, n in zip(left, right, strict=True)))


@repeat_calls
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Array:
    """Return the product of several matrices, in the cheapest order. See `numpy.linalg.multi_dot`.

    Raises
    ------
    ValueError
        There are fewer than two, or the shapes do not fit.
    LinAlgError
        Others than the first and the last one have no two axes.

    Examples
    --------
    >>> vnp.linalg.multi_dot([vnp.ones((2, 3)), vnp.ones((3, 4)), vnp.ones((4, 1))])
    Array([[12.],
           [12.]], dtype=float64)
    """
    given = [require_array(each, f"arrays[{i}]") for i, each in enumerate(arrays)]
    if len(given) < 2:
        raise ArgumentValueError(f"arrays: expected at least two arrays, got {len(given)}")
    matrices = list(given)
    if given[0].ndim == 1:
        matrices[0] = manipulation.expand_dims(given[0], 0)
    if given[-1].ndim == 1:
        matrices[-1] = manipulation.expand_dims(given[-1], 1)
    if any(matrix.ndim != 2 for matrix in matrices):
        raise LinAlgError("multi_dot: expected matrices, and vectors as the first and the last array only")
    sides = [matrices[0].shape[0], *(each.shape[1] for each in matrices)]
    result = _multiply_chain(matrices, _split_chain(sides), 0, len(matrices) - 1)
    shape = result.shape[given[0].ndim == 1 : 2 - (given[-1].ndim == 1)]
    return store_result(out, reshape(result, shape))


def _split_chain(sides: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain of matrices, so that the products cost least."""
    count = len(sides) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs[first, last], splits[first, last] = min(
                (costs[first, k] + costs[k + 1, last] + sides[first] * sides[k + 1] * sides[last + 1], k)
                for k in range(first, last)
            )
    return splits


def _multiply_chain(
    matrices: Sequence[Array], splits: dict[tuple[int, int], int], first: int, last: int
) -> Array:
    if first == last:
        return matrices[first]
    at = splits[first, last]
    left = _multiply_chain(matrices, splits, first, at)
    return matmul(left, _multiply_chain(matrices, splits, at + 1, last))


_LETTERS = string.ascii_letters

Labels = tuple[str, ...]


# ---- equations -----------------------------------------------------------------------------------


def _from_sublists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the equation of operands that are followed by lists of ints."""
    arrays, terms = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    output = operands[-1] if len(operands) % 2 else None
    lists = [*terms, *([] if output is None else [output])]
    numbers = sorted({label for one in lists for label in one if label is not Ellipsis})
    if len(numbers) > len(_LETTERS) or not all(isinstance(number, (int, np.integer)) for number in numbers):
        raise ArgumentTypeError("operands: expected lists of ints and of ... as subscripts")
    names = dict(zip(numbers, _LETTERS, strict=False))
    texts = ["".join("..." if each is Ellipsis else names[each] for each in one) for one in lists]
    return ",".join(texts[: len(terms)]) + ("" if output is None else "->" + texts[-1]), arrays


def _split(term: str) -> list[str]:
    """Return the labels of a term; "..." stands for axes without labels."""
    bare = term.replace("...", "", 1)
    if not all(letter in _LETTERS for letter in bare):
        wrong = next(each for each in bare if each not in _LETTERS)
        raise ArgumentValueError(f"subscripts: expected letters, ',', '->' and '...', got {wrong!r}")
    if "..." not in term:
        return list(term)
    low, high = term.split("...", 1)
    return [*low, "...", *high]


def _parse(operands: Sequence[Any]) -> tuple[list[Labels], Labels, list[Any]]:
    """Return the labels of each operand's axes, those of the result, and the operands.

    Axes that are written "..." get the labels "...0" (the last one), "...1" and so on.
    """
    if not operands:
        raise ArgumentValueError("subscripts: expected an equation and operands")
    if isinstance(operands[0], str):
        equation, arrays = operands[0], list(operands[1:])
    else:
        equation, arrays = _from_sublists(operands)
    equation = equation.replace(" ", "")
    if equation.count("->") > 1 or set("->") & set(equation.replace("->", "")):
        raise ArgumentValueError(f"subscripts: expected one '->', got {equation!r}")
    left, arrow, right = equation.partition("->")
    terms = [_split(each) for each in left.split(",")]
    if len(terms) != len(arrays):
        raise ArgumentValueError(
            f"subscripts: {equation!r} has {len(terms)} terms for {len(arrays)} operands"
        )
    inputs: list[Labels] = []
    most = 0
    for number, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        ndim = np.ndim(array) if not isinstance(array, Array) else array.ndim
        extra = ndim - len(term) + ("..." in term)
        if extra < 0 or (extra and "..." not in term):
            raise ArgumentValueError(
                f"subscripts: term {number} of {equation!r} does not fit an operand of {ndim} axes"
            )
        most = max(most, extra if "..." in term else 0)
        inputs.append(_expand(term, extra))
    if arrow:
        output = _expand(_split(right), most)
    else:
        letters = [each for term in terms for each in term if each != "..."]
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        output = (*_expand(["..."], most), *once)
    known = {label for term in inputs for label in term}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ArgumentValueError(
            f"subscripts: labels of the result must be different ones of the operands, got {equation!r}"
        )
    return inputs, output, arrays


def _expand(term: Sequence[str], count: int) -> Labels:
    found: list[str] = []
    for label in term:
        found += [f"...{i}" for i in reversed(range(count))] if label == "..." else [label]
    return tuple(found)


# ---- contraction of one and of two operands ------------------------------------------------------


def _take_diagonals(x: Array, labels: Labels) -> tuple[Array, Labels]:
    """Return a view with each label once: axes with the same one go along together."""
    if len(set(labels)) == len(labels):
        return x, labels
    view = view_of(x)
    names = tuple(dict.fromkeys(labels))
    shape, strides = [], []
    for name in names:
        axes = [i for i, each in enumerate(labels) if each == name]
        if len({view.shape[i] for i in axes}) > 1:
            raise ArgumentValueError(
                f"einsum: axes {axes} of shape {view.shape} share a label and differ in length"
            )
        length = max(view.shape[i] for i in axes)
        shape.append(length)
        strides.append(sum(view.strides[i] for i in axes if view.shape[i] != 1 or length == 1))
    return manipulation.view_with(view, tuple(shape), tuple(strides)), names


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    if not axes:
        return x
    return any_of(x, axis=axes) if x.dtype.kind == "b" else total(x, axis=axes, dtype=x.dtype)


def _sum_away(x: Array, labels: Labels, kept: set[str]) -> tuple[Array, Labels]:
    """Sum over the axes whose labels nothing else has."""
    axes = tuple(i for i, each in enumerate(labels) if each not in kept)
    return _sum(x, axes), tuple(label for label in labels if label in kept)


def _turn(x: Array, labels: Labels, order: Sequence[str]) -> Array:
    """Return the array with its axes in the order of labels; those that it lacks have length one."""
    present = [label for label in order if label in labels]
    turned = manipulation.permute_dims(x, [labels.index(each) for each in present]) if x.ndim > 1 else x
    missing = tuple(i for i, each in enumerate(order) if each not in labels)
    return manipulation.expand_dims(turned, missing) if missing else turned


def _contract_pair(
    a: Array, own: Labels, b: Array, other: Labels, kept: set[str], sizes: dict[str, int], kind: Kind
) -> tuple[Array, Labels]:
    """Return the product of two operands, summed over the labels that are not kept."""
    a, own = _sum_away(a, own, kept | set(other))
    b, other = _sum_away(b, other, kept | set(own))
    summed = [label for label in own if label in other and label not in kept]
    batch = [each for each in own if each in other and each in kept]
    rows = [each for each in own if each not in other]
    columns = [each for each in other if each not in own]
    order = (*batch, *rows, *columns)
    if not summed or kind.kind == "b":
        whole = (*order, *summed)
        product = multiply(_turn(a, own, whole), _turn(b, other, whole))
        return _sum(product, tuple(range(len(order), len(whole)))), order

    def count(labels: Sequence[str]) -> int:
        return math.prod(sizes[label] for label in labels)

    lengths = [count(batch)] if batch else []
    left, right = _turn(a, own, (*batch, *rows, *summed)), _turn(b, other, (*batch, *summed, *columns))
    left = manipulation.reshape(left, (*lengths, count(rows), count(summed)))
    right = manipulation.reshape(right, (*lengths, count(summed), count(columns)))
    return manipulation.reshape(matmul(left, right), tuple(sizes[each] for each in order)), order


def _find_sizes(arrays: Sequence[Array], inputs: Sequence[Labels]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for array, labels in zip(arrays, inputs, strict=True):
        for length, each in zip(array.shape, labels, strict=True):
            known = sizes.setdefault(each, length)
            if known == 1:
                sizes[each] = length
            elif length not in (1, known):
                raise ArgumentValueError(f"operands: the label {each!r} has the lengths {known} and {length}")
    return sizes


# ---- functions -----------------------------------------------------------------------------------


def _find_path(inputs: Sequence[Labels], output: Labels, arrays: Sequence[Any], optimize: Any) -> Any:
    """Return opt_einsum's path, with its description. Raises MissingPackageError without the package."""
    try:
        import opt_einsum
    except ImportError:
        raise MissingPackageError(
            "einsum: opt_einsum, which finds the order of contractions, is not installed; install it with "
            "`pip install 'vkdispatch-gpu[arrays]'`, or pass optimize=False, for contractions from left to "
            "right"
        ) from None
    labels = dict.fromkeys(label for term in inputs for label in term)
    names = {label: opt_einsum.get_symbol(i) for i, label in enumerate(labels)}
    terms = ",".join("".join(names[label] for label in term) for term in inputs)
    equation = terms + "->" + "".join(names[each] for each in output)
    chosen = "auto" if optimize is True else optimize
    if isinstance(chosen, (list, tuple)) and chosen and chosen[0] == "einsum_path":
        chosen = list(chosen[1:])
    limit = None
    if isinstance(chosen, (list, tuple)) and len(chosen) == 2 and isinstance(chosen[0], str):
        chosen, limit = chosen
    shapes = [np.shape(array) if not isinstance(array, Array) else array.shape for array in arrays]
    return opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=chosen, memory_limit=limit)


@repeat_calls
def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, casting: Any = "safe", optimize: Any = True
) -> Array:
    """Return sums of products of elements, by Einstein's convention. See `numpy.einsum`.

    Parameters
    ----------
    operands
        An equation such as "ij,jk->ik" and arrays; or arrays, each followed by a list of ints.
    dtype
        The dtype with which to compute; None: that to which the operands promote.
    optimize
        How opt_einsum finds the order of contractions of three or more operands: True, the name of one of its
        methods, or a path. False: from left to right, for which opt_einsum is not needed.

    Raises
    ------
    ValueError
        The equation does not fit the operands, or there is no such method.
    TypeError
        `casting` does not allow the dtype.
    ImportError
        There are three or more operands, and opt_einsum is not installed.

    Examples
    --------
    >>> x = vnp.asarray([[1, 2], [3, 4]])
    >>> vnp.einsum("ij->ji", x)
    Array([[1, 3],
           [2, 4]], dtype=int64)
    >>> vnp.einsum("ij,ij->", x, x)
    Array(30, dtype=int64)
    """
    inputs, output, given = _parse(operands)
    arrays = [to_array(each, f"operands[{i}]") for i, each in enumerate(given)]
    kind = manipulation.result_type(*arrays) if dtype is None else parse_dtype(dtype)
    for each in arrays:
        check_cast(each.dtype, kind, "dtype", casting)
    sizes = _find_sizes(arrays, inputs)
    terms = []
    for array, labels in zip(arrays, inputs, strict=True):
        diagonal, names = _take_diagonals(array.astype(kind, copy=False), labels)
        # axes of length one are repeated where the label is longer
        shape = tuple(sizes[name] for name in names)
        wide = diagonal if diagonal.shape == shape else manipulation.broadcast_to(diagonal, shape)
        terms.append((wide, names))
    count = len(terms)
    if count > 2 and optimize is not False:
        path: Sequence[tuple[int, ...]] = _find_path(inputs, output, arrays, optimize)[0]
    else:  # results are the last terms
        path = [(0, 1) if i == 0 else (count - 1 - i, 0) for i in range(count - 1)]
    for places in path:
        chosen = [terms[place] for place in places]
        terms = [each for place, each in enumerate(terms) if place not in places]
        kept = set(output).union(*(names for _, names in terms)) if terms else set(output)
        a, own = chosen[0]
        for position, (b, other) in enumerate(chosen[1:]):
            later = kept.union(*(names for _, names in chosen[position + 2 :]))
            a, own = _contract_pair(a, own, b, other, later, sizes, kind)
        terms.append((a, own))
    (found, labels) = terms[0]
    found, labels = _sum_away(found, labels, set(output))
    result = _turn(found, labels, output)
    if out is not None:
        return store_result(out, result)
    return result.copy() if len(arrays) == 1 and result is arrays[0] else result


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> tuple[list[Any], str]:
    """Return the order of contractions of `einsum`, and a description of its cost. See `numpy.einsum_path`.

    Raises
    ------
    ImportError
        opt_einsum is not installed.

    Examples
    --------
    >>> path, text = vnp.einsum_path("ij,jk,kl", vnp.ones((2, 3)), vnp.ones((3, 4)), vnp.ones((4, 2)))
    >>> path
    ['einsum_path', (1, 2), (0, 1)]
    """
    inputs, output, arrays = _parse(operands)
    path, information = _find_path(inputs, output, arrays, "auto" if optimize is False else optimize)
    return ["einsum_path", *path], str(information)
