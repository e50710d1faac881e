"""Einstein's summation: products of arrays, summed over axes that have the same label.

Operands are contracted pair by pair: axes of one operand alone are summed first, and the rest is one product
of matrices, or of elements if no axis is summed.
"""

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, MissingPackageError
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.elementwise import multiply
from vkdispatch.numpy.basics.inputs import to_array
from vkdispatch.numpy.basics.reductions import any as any_of
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core.array import Array, check_cast, store_result, view_of
from vkdispatch.numpy.core.memory import Kind, parse_dtype
from vkdispatch.numpy.linalg.products import matmul

__all__ = ["einsum", "einsum_path"]

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
