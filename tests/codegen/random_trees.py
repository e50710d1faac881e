"""Random expression trees, to be traced as kernels and computed by NumPy alike."""

import operator
from typing import Any

import numpy as np
from hypothesis import strategies as st

import vkdispatch.codegen as vc

# A tree is ("leaf", number of the input), ("number", value) or (name of an operation, subtrees...).
# Every subtree but a number holds a leaf, so that there is always something to trace.
Tree = tuple[Any, ...]

_FLOAT_OPERATIONS: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    "square": lambda x: x**2,
}
_INTEGER_OPERATIONS: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "invert": operator.invert,
    "neg": operator.neg,
    "shift": lambda x: x << 3,
    "half": lambda x: x // 2,
}
_TWO = frozenset(("add", "sub", "mul", "div", "and", "or", "xor", "min", "max"))
_NUMPY_EXTREMES = {"min": np.minimum, "max": np.maximum}


def trees(
    *, integer: bool, signed: bool = True, inputs: int = 2, leaves: int = 12
) -> st.SearchStrategy[Tree]:
    """Return trees over `inputs` values; with `signed` false their numbers suit unsigned types."""
    whole = st.integers(-9 if signed else 0, 9)
    number = (whole if integer else st.integers(-20, 20).map(lambda n: n / 4)).map(
        lambda value: ("number", value)
    )
    leaf = st.integers(0, inputs - 1).map(lambda i: ("leaf", i))
    names = [*(_INTEGER_OPERATIONS if integer else _FLOAT_OPERATIONS), *_NUMPY_EXTREMES]

    def extend(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        def operation(name: str) -> st.SearchStrategy[Tree]:
            if name not in _TWO:
                return st.tuples(st.just(name), children)
            return st.one_of(
                st.tuples(st.just(name), children, children),
                st.tuples(st.just(name), children, number),
                st.tuples(st.just(name), number, children),
            )

        return st.sampled_from(names).flatmap(operation)

    return st.recursive(leaf, extend, max_leaves=leaves)


def evaluate(tree: Tree, inputs: list[Any], *, integer: bool, gpu: bool) -> Any:
    """Compute a tree on GPU values while tracing, or on NumPy arrays of one dtype."""
    if tree[0] == "leaf":
        return inputs[tree[1]]
    if tree[0] == "number":
        return tree[1] if gpu else inputs[0].dtype.type(tree[1])
    args = [evaluate(each, inputs, integer=integer, gpu=gpu) for each in tree[1:]]
    if tree[0] in _NUMPY_EXTREMES:
        return getattr(vc, tree[0])(*args) if gpu else _NUMPY_EXTREMES[tree[0]](*args)
    return (_INTEGER_OPERATIONS if integer else _FLOAT_OPERATIONS)[tree[0]](*args)
