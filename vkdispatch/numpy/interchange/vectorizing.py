"""Python functions of numbers as element-wise functions of arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import compute_type, is_complex, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.codegen.annotations import constant
from vkdispatch.codegen.trace.current import compute_by, is_tracing, precise_math
from vkdispatch.codegen.trace.operators import floor_quotient, floor_remainder
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir.location import located
from vkdispatch.control_flow.replacement import prepare_function, prepare_kernel
from vkdispatch.numpy.core import application, memory
from vkdispatch.numpy.core.application import broadcast_shapes, make_values, number_as, promote
from vkdispatch.numpy.core.array import array_of, bound_integer, describe, parse_operand, value_of
from vkdispatch.numpy.core.conversion import asarray
from vkdispatch.numpy.core.expressions import Loop, Node, Operation, make_node
from vkdispatch.numpy.core.kernels import convert
from vkdispatch.numpy.core.operations import OPERATIONS
from vkdispatch.shader.dependencies import Edition
from vkdispatch.shader.pickling import Home, Referenced, find_home

_LETTERS = {bool: "b", int: "biu", float: "f", complex: "c"}


# NumPy's functions behind Python's operators, of one operand and of two.
_UFUNCS = {
    1: {"-": "negative", "~": "invert", "abs": "absolute"},
    2: {
        "+": "add",
        "-": "subtract",
        "*": "multiply",
        "/": "divide",
        "//": "floor_divide",
        "%": "remainder",
        "**": "power",
        "<<": "left_shift",
        ">>": "right_shift",
        "&": "bitwise_and",
        "|": "bitwise_or",
        "^": "bitwise_xor",
        "<": "less",
        "<=": "less_equal",
        ">": "greater",
        ">=": "greater_equal",
        "==": "equal",
        "!=": "not_equal",
    },
}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _identity(expr: Expr) -> object:
    """Return what stays the same each time that a value is read."""
    return expr.value if expr.op is Op.REGISTER else expr


class _NumpyArithmetic:
    """Operators with the dtypes and the values of NumPy's: those of arrays. See `Arithmetic`.

    Values in kernels have fewer types: small integers are int32. So dtypes are kept beside the expressions.
    """

    def __init__(self) -> None:
        self.integer, self.real = memory.kernel_type(memory.int64), memory.kernel_type(memory.default_real())
        self._kinds: dict[int, tuple[object, memory.Kind]] = {}  # the first of each pair keeps the key alive

    def note(self, value: vc.ShaderVariable, kind: memory.Kind) -> vc.ShaderVariable:
        """Remember the dtype of a variable, and return it."""
        key = _identity(value.expr)
        self._kinds[id(key)] = key, kind
        return value

    def kind_of(self, value: Any) -> Any:
        """Return the dtype of an expression, or of a number what promotion takes for it."""
        if not isinstance(value, Expr):
            return application.describe_operand(value)
        known = self._kinds.get(id(_identity(value)))
        return memory.numpy_type(value.dtype) if known is None else known[1]

    def apply(self, symbol: str, *operands: Any) -> Expr | None:
        """Return the result of an operator of numbers; None for vectors and matrices."""
        exprs = [operand for operand in operands if isinstance(operand, Expr)]
        if not all(is_scalar(expr.dtype) or is_complex(expr.dtype) for expr in exprs):
            return None
        if symbol in _COMPARISONS:
            own = self.kind_of(exprs[0])
            operands = tuple(bound_integer(each, own) if type(each) is int else each for each in operands)
        name = _UFUNCS[len(operands)][symbol]
        kinds = tuple(map(self.kind_of, operands))
        try:
            loop = memory.resolve(getattr(np, name), kinds, self._is_wide(kinds))
        except TypeError as error:
            raise located(ArgumentTypeError, f"{symbol}: {error}") from None
        with compute_by(None):
            values = [self._convert(*each, symbol) for each in zip(operands, kinds, loop, strict=False)]
            divides = symbol in ("//", "%") and loop[-1].kind in "iu"
            if divides and type(operands[1]) is int and operands[1] > 0:
                divide = floor_quotient if symbol == "//" else floor_remainder
                result = vc.ShaderVariable(divide(values[0].expr, operands[1]))
            else:
                result = OPERATIONS[name].compute(*values, loop[-1])
        return self.note(result, loop[-1]).expr

    def unify(self, *operands: Any) -> list[Any]:
        """Return variables and numbers as variables of their common dtype."""
        parts = [operand._value() if hasattr(operand, "var_type") else operand for operand in operands]
        kinds = tuple(map(self.kind_of, parts))
        if len(kinds) == 2:
            common = memory.resolve(np.add, kinds, self._is_wide(kinds))[0]
        else:
            common = np.result_type(*(0 if k is int else 0.0 if k is float else k for k in kinds))
        with compute_by(None):
            return [
                self.note(self._convert(part, kind, common, "min, max"), common)
                for part, kind in zip(parts, kinds, strict=True)
            ]

    def _is_wide(self, kinds: Sequence[Any]) -> bool:
        is_inexact = any(isinstance(kind, np.dtype) and kind.kind in "fc" for kind in kinds)
        return is_inexact or memory.default_real() == memory.float64

    def _convert(self, value: Any, source: Any, target: memory.Kind, name: str) -> vc.ShaderVariable:
        if not isinstance(value, Expr):
            return vc.to_dtype(compute_type(memory.kernel_type(target)), number_as(value, target, name))
        variable = vc.ShaderVariable(value)
        if source == memory.bool_ and variable.var_type is not memory.kernel_type(memory.bool_):
            variable = variable != 0  # registers hold truth values as 0 and 1
        found: vc.ShaderVariable = convert(variable, source, target, None)
        return found


class VectorizedFunction(Referenced):
    """A function of numbers that computes arrays element by element; `vectorize` makes it.

    It is pickled by module and name, as Python functions are, or by value if no module has it.

    Attributes
    ----------
    pyfunc
        The Python function.
    """

    __name__: str

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Sequence[memory.Kind] | None,
        doc: str | None,
        signature: inspect.Signature | None = None,
    ) -> None:
        signature = inspect.signature(pyfunc, eval_str=True) if signature is None else signature
        self.pyfunc = pyfunc
        self._results = otypes
        self._doc = doc
        self._signature = signature
        self._wanted = [_parse_annotation(parameter) for parameter in signature.parameters.values()]
        self._loops: dict[tuple[Any, ...], tuple[tuple[Loop, ...], bool]] = {}
        self._edition = Edition(pyfunc, first=None)
        update_wrapper(self, pyfunc)
        self.__name__ = getattr(pyfunc, "__name__", "vectorized")
        if doc is not None:
            self.__doc__ = doc

    def _home(self) -> Home | None:
        return find_home(self.pyfunc)

    def _describe(self) -> str:
        return f"vectorized function {self.__name__!r}"

    def _get_state(self) -> tuple[Any, ...]:
        # the names in annotations given as text are not pickled with a function
        return self.pyfunc, self._results, self._doc, self._signature

    def _set_state(self, *state: Any) -> None:
        VectorizedFunction.__init__(self, *state)

    def __repr__(self) -> str:
        return f"<vnp.vectorize of {self.__name__}{self._signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array of results, or a tuple of arrays if the function returns a tuple.

        Arguments are arrays that broadcast, and numbers. In a kernel, the function is called as it is.

        Raises
        ------
        TypeError
            The arguments are not those of the function, or are neither arrays nor numbers.
        ValueError
            Shapes do not broadcast.
        """
        if is_tracing():
            return prepare_function(self.pyfunc)(*args, **kwargs)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        values = [parse_operand(each, f"{self.__name__}: {key}") for key, each in bound.arguments.items()]
        if not any(type(each) is Node or type(each) is memory.View for each in values):
            values[:1] = [value_of(asarray(each)) for each in values[:1]]
        kinds = self._kinds_of(values)
        key = (*kinds, memory.default_real(), self._edition.find())
        found = self._loops.get(key)
        if found is None:
            found = self._loops.setdefault(key, self._make_loops(kinds))
            self._edition.settle()
        loops, is_tuple = found
        shapes = [value.shape for value in values if type(value) is Node or type(value) is memory.View]
        shape = broadcast_shapes(shapes, self.__name__)
        operands = make_values(values, kinds, self.__name__)
        results = [array_of(make_node(loop, operands, shape, math.prod(shape))) for loop in loops]
        return tuple(results) if is_tuple else results[0]

    def _kinds_of(self, values: Sequence[Any]) -> tuple[memory.Kind, ...]:
        given = [each.dtype for each in values if type(each) is Node or type(each) is memory.View]
        kinds = []
        for value, wanted in zip(values, self._wanted, strict=True):
            if isinstance(wanted, np.dtype):
                kinds.append(wanted)
                continue
            kind: memory.Kind = value.dtype if hasattr(value, "dtype") else promote(*given, value)
            if wanted is not None and kind.kind not in _LETTERS[wanted]:
                kind = _usual_kind(wanted)
            kinds.append(kind)
        return tuple(kinds)

    def _make_loops(self, kinds: tuple[memory.Kind, ...]) -> tuple[tuple[Loop, ...], bool]:
        found, is_tuple = _infer(self.pyfunc, self.__name__, kinds)
        results = self._results
        if results is None and self._signature.return_annotation is not inspect.Signature.empty:
            wanted = _parse_type(self._signature.return_annotation, "return annotation")
            if not is_tuple and wanted is not None:
                keeps = not isinstance(wanted, np.dtype) and found[0].kind in _LETTERS[wanted]
                results = [found[0] if keeps else _usual_kind(wanted)]
        if results is None:
            results = found
        if len(results) != len(found):
            raise ArgumentValueError(
                f"otypes: {len(results)} dtypes were given, and {self.__name__} returns {len(found)} values"
            )
        loops = [
            Loop(Operation(self.__name__, self._computer(at, is_tuple, kinds)), kinds, kind)
            for at, kind in enumerate(results)
        ]
        return tuple(loops), is_tuple

    def _computer(self, at: int, is_tuple: bool, kinds: Sequence[memory.Kind]) -> Callable[..., Any]:
        function, edition, version = self.pyfunc, self._edition, self._edition.find()

        def compute(*values: Any) -> Any:
            *operands, kind = values
            if edition.find() != version:
                raise UsageError(
                    f"{self.__name__}: what the function reads has changed since the call, whose result "
                    "was not computed yet; read the result before the change"
                )
            register = vc.new_register(compute_type(memory.kernel_type(kind)))
            with vc.scope_block():
                # `x += 1` in the function changes a register, and the operands belong to others too
                own = [vc.new_register(operand.var_type, operand) for operand in operands]
                arithmetic = _NumpyArithmetic()
                for each, own_kind in zip(own, kinds, strict=True):
                    arithmetic.note(each, own_kind)
                with compute_by(arithmetic):
                    result = prepare_function(function)(*own)
                value = result[at] if is_tuple else result
                if hasattr(value, "var_type"):
                    value = convert(value, arithmetic.kind_of(value._value()), kind, None)
                register[:] = value
            return register

        return compute


def vectorize(
    pyfunc: Callable[..., Any] | None = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Any = None,
    cache: bool = False,
    signature: str | None = None,
) -> Any:
    """Make an element-wise function of arrays from a Python function of numbers. See `numpy.vectorize`.

    The function is traced as kernels are: `if`, `while`, `for` and `math` may depend on its arguments. It is
    an operation of an expression like any other, and runs in one kernel with those around it. Operators have
    the dtypes and values of those of arrays: `//` rounds down, and int32 with float32 is float64. Integers
    that control flow joins, such as counts of rounds, have 32 bits, or 64 if one of them has. The function is
    traced once for each combination of dtypes, and again after a change of what it reads from outside.

    Parameters
    ----------
    pyfunc
        The function. A parameter that is annotated with a dtype, such as `vd.float32` or `np.float32`, is
        converted to it, one with `float` to a real dtype if it has none; others have the dtypes of the
        arguments. None returns a decorator.
    otypes
        Dtypes of the results, in a sequence or as NumPy's letters. None: the return annotation, else the type
        of what the function returns.
    doc
        The docstring of what is returned.
    excluded, signature
        For NumPy's interface; they have to be None.
    cache
        Ignored: the function is never called for a value.

    Raises
    ------
    TypeError
        `pyfunc` is no function, or an annotation is no dtype.
    ValueError
        `excluded` or `signature` is given.

    Examples
    --------
    >>> add_one = vnp.vectorize(lambda x: x + 1)
    >>> add_one(vnp.arange(3))
    Array([1, 2, 3], dtype=int64)
    """
    if excluded is not None or signature is not None:
        raise ArgumentValueError("excluded, signature: leave them out; functools.partial can fix arguments")
    if pyfunc is None:
        return lambda function: vectorize(function, otypes, doc)
    if not callable(pyfunc):
        raise ArgumentTypeError(f"pyfunc: expected a function, got {describe(pyfunc)}")
    if otypes is not None:
        given = otypes if isinstance(otypes, (str, list, tuple)) else [otypes]
        otypes = [memory.parse_dtype(dtype, "otypes") for dtype in given]
    return VectorizedFunction(pyfunc, otypes, doc)


def _parse_annotation(parameter: inspect.Parameter) -> Any:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise ArgumentTypeError(f"pyfunc: the parameter *{parameter.name} takes any number of arguments")
    if parameter.annotation is inspect.Parameter.empty:
        return None
    return _parse_type(parameter.annotation, f"parameter {parameter.name!r}")


def _parse_type(annotation: Any, name: str) -> Any:
    """Return a dtype, or one of Python's types of numbers, or None if the annotation says nothing."""
    if annotation in (Any, None) or isinstance(annotation, str):
        return None
    return annotation if annotation in _LETTERS else memory.parse_dtype(annotation, name)


def _usual_kind(wanted: Any) -> memory.Kind:
    if isinstance(wanted, np.dtype):
        return wanted
    if wanted in (bool, int):
        return memory.bool_ if wanted is bool else memory.int64
    return memory.default_real() if wanted is float else memory.default_complex()


def _infer(
    function: Callable[..., Any], name: str, kinds: Sequence[memory.Kind]
) -> tuple[list[memory.Kind], bool]:
    """Return the dtypes of the results of a function for these dtypes, and whether it returns a tuple."""
    traced: list[Any] = []
    arithmetic = _NumpyArithmetic()

    def body(*variables: Any) -> None:
        own = [arithmetic.note(each.to_register(), kind) for each, kind in zip(variables, kinds, strict=True)]
        with compute_by(arithmetic):
            traced[:] = [prepare_function(function)(*own)]

    types = [constant[compute_type(memory.kernel_type(kind))] for kind in kinds]
    with vc.shader_context(vc.ShaderFlags.NO_EXEC_BOUNDS) as context, precise_math():
        variables = context.declare_input_arguments(types, [f"x{i}" for i in range(len(types))])
        prepare_kernel(body, rewrite=True)(*variables)
        result = traced[0]
        parts = list(result) if isinstance(result, tuple) else [result]
        return [_kind_of_result(part, name, arithmetic) for part in parts], isinstance(result, tuple)


def _kind_of_result(value: Any, name: str, arithmetic: _NumpyArithmetic) -> memory.Kind:
    if hasattr(value, "var_type"):
        return arithmetic.kind_of(value._value())  # type: ignore[no-any-return]
    if isinstance(value, np.generic):
        return memory.parse_dtype(value.dtype)
    for kind in (bool, int, float, complex):
        if isinstance(value, kind):
            return _usual_kind(kind)
    raise ArgumentTypeError(f"{name}: expected it to return a number or a tuple of numbers, got {value!r}")
