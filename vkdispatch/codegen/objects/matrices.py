"""Cooperative matrices: small matrices that a subgroup, or a workgroup, holds and multiplies together.

    a    m x k        each invocation holds some of the elements, and only the device knows which;
    b    k x n        what is done to a matrix is done by all of its invocations, in step
    c    m x n        c += a b is one operation, on devices with matrix units one instruction

Which sizes and types there are is the device's to say: `DeviceInfo.cooperative_matrices`.
"""

from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import cooperative_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_index, parse_stored_value
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, MatrixLoad, MatrixStore, Op
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

__all__ = ["CooperativeMatrix", "cooperative_matrix", "matrix_multiply_add"]

_USES = ("a", "b", "accumulator")
_SCOPES = ("subgroup", "workgroup")


class CooperativeMatrix:
    """A matrix that a subgroup or workgroup holds together; made by `vc.cooperative_matrix`.

    `+ - * /` of two matrices of one type work element by element, `*` and `/` also with a number or a GPU
    value of the component type, and give a new matrix. `m[:] = other` assigns. `m[i]` is the i-th of the
    `m.length()` elements that this invocation holds: which these are, only the device knows, so all elements
    are to be treated alike.
    """

    __array_ufunc__ = None
    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    @property
    def var_type(self) -> dt.DType:
        """Data type of the whole matrix."""
        return self.expr.dtype

    @property
    def component(self) -> dt.DType:
        """Data type of an element."""
        return dt.component_type(self.expr.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.expr.dtype.shape
        return rows, columns

    @property
    def use(self) -> str:
        """What it is in a product: "a", "b" or "accumulator"."""
        use: str = self.expr.dtype.use  # type: ignore[attr-defined]
        return use

    def __repr__(self) -> str:
        return f"<{self.var_type.name}>"

    # -- memory

    def load(
        self, array: BufferVariable, index: Any, stride: Any, layout: str = "row", window: Any = None
    ) -> None:
        """Fill the matrix from a buffer or shared buffer.

        Parameters
        ----------
        array
            Its elements are scalars or vectors, of any type: their bytes are taken as the matrix's type.
        index, stride
            Where element (0, 0) lies, and how far apart rows are, in elements of `array`.
        layout
            "row": element (r, c) lies at `index + r * stride + c`. "column": r and c are swapped.
        window
            (rows, columns, first row, first column): the matrix is this part of one of so many rows and
            columns that begins at `index`. What lies outside is 0. Needs the feature
            cooperativeMatrixTensorAddressing of VK_NV_cooperative_matrix2.

        Raises
        ------
        TypeError, ValueError
            Something else was given.
        """
        element, distance, transposed, part = self._transfer("load", array, index, stride, layout, window)
        current().emit(MatrixLoad(self.expr, element, distance, transposed, part, here()))

    def store(
        self, array: BufferVariable, index: Any, stride: Any, layout: str = "row", window: Any = None
    ) -> None:
        """Write the matrix to a buffer or shared buffer; arguments and errors are those of `load`.

        With a `window`, what lies outside of it is left alone.
        """
        element, distance, transposed, part = self._transfer("store", array, index, stride, layout, window)
        if not array.settable:
            raise located(ArgumentValueError, "store: the elements of a constant array cannot be assigned to")
        current().emit(MatrixStore(element, self.expr, distance, transposed, part, here()))

    def _transfer(
        self, what: str, array: Any, index: Any, stride: Any, layout: Any, window: Any
    ) -> tuple[Expr, Expr, bool, tuple[Expr, ...]]:
        if not isinstance(array, BufferVariable):
            raise located(ArgumentTypeError, f"{what}: expected a buffer or shared buffer, got {array!r}")
        if array.storage.dtype is dt.bool_ or dt.is_complex(array.storage.dtype):
            raise located(
                ArgumentTypeError,
                f"{what}: a matrix cannot be loaded from or stored to a buffer of {array.storage.dtype.name}",
            )
        if layout not in ("row", "column"):
            raise located(ArgumentValueError, f'{what}: layout is "row" or "column", got {layout!r}')
        part: tuple[Expr, ...] = ()
        if window is not None:
            if not isinstance(window, tuple) or len(window) != 4:
                raise located(
                    ArgumentTypeError,
                    f"{what}: window is (rows, columns, first row, first column), got {window!r}",
                )
            part = tuple(_number(entry, f"{what}: window") for entry in window)
        return array._at(index), _number(stride, f"{what}: stride"), layout == "column", part

    # -- elements

    def length(self) -> ShaderVariable:
        """How many elements this invocation holds (uint32)."""
        return ShaderVariable(Expr(Op.LENGTH, dt.uint32, (), self._register().value, here()))

    def __getitem__(self, index: Any) -> ShaderVariable:
        return ShaderVariable(self._element(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice) and index == slice(None):
            current().store(self._register(), self._operand(value, "assignment"))
            return
        place = self._element(index)
        if not (isinstance(value, ShaderVariable) and value.expr is place):
            current().store(place, parse_stored_value(value, place.dtype))

    def _element(self, index: Any) -> Expr:
        if dt.is_buffer_only(self.component):
            raise located(
                ArgumentTypeError,
                f"elements of {self.component.name} are not computed with; convert the matrix",
            )
        position = parse_index(index, self.var_type.name, ArgumentTypeError)
        if not isinstance(position, Expr):
            if position < 0:
                raise located(
                    ArgumentValueError, f"index {position} is out of range for {self.var_type.name}"
                )
            position = ex.literal(position, dt.uint32)
        return Expr(Op.INDEX, self.component, (self._register(), ex.index_value(position)), None, here())

    def _register(self) -> Expr:
        """Return the register that holds the matrix, which is made where there is none yet."""
        if self.expr.op is not Op.REGISTER:
            self.expr = current().declare(self.var_type, self.expr)
        return self.expr

    # -- arithmetic

    def _operand(self, value: Any, what: str) -> Expr:
        """Return a matrix of this type; a scalar becomes one that is filled with it."""
        kind = self.var_type
        if isinstance(value, CooperativeMatrix):
            if value.var_type is not kind:
                raise located(
                    ArgumentTypeError,
                    f"{what}: expected a {kind.name}, got a {value.var_type.name}; see to_dtype",
                )
            return value.expr
        return Expr(Op.CONSTRUCT, kind, (self._scalar(value),), None, here())

    def _scalar(self, value: Any) -> Expr:
        if dt.is_buffer_only(self.component):
            if value != 0 or isinstance(value, ShaderVariable):
                raise located(
                    ArgumentTypeError, f"a matrix of {self.component.name} can be filled with 0 only"
                )
            return ex.literal(0, dt.uint32 if dt.is_integer_dtype(self.component) else dt.float32)
        return parse_stored_value(value, self.component)

    def _combine(self, symbol: str, left: Expr, right: Expr) -> "CooperativeMatrix":
        return _declare(self.var_type, Expr(Op.BINARY, self.var_type, (left, right), symbol, here()))

    def __add__(self, other: Any) -> "CooperativeMatrix":
        return self._combine("+", self.expr, self._operand(other, "+"))

    def __radd__(self, other: Any) -> "CooperativeMatrix":
        return self._combine("+", self._operand(other, "+"), self.expr)

    def __sub__(self, other: Any) -> "CooperativeMatrix":
        return self._combine("-", self.expr, self._operand(other, "-"))

    def __rsub__(self, other: Any) -> "CooperativeMatrix":
        return self._combine("-", self._operand(other, "-"), self.expr)

    def __mul__(self, other: Any) -> "CooperativeMatrix":
        if isinstance(other, CooperativeMatrix):
            return self._combine("*", self.expr, self._operand(other, "*"))
        return self._combine("*", self.expr, self._scalar(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "CooperativeMatrix":
        return self._combine("/", self.expr, self._operand(other, "/"))

    def __neg__(self) -> "CooperativeMatrix":
        return _declare(self.var_type, Expr(Op.UNARY, self.var_type, (self.expr,), "-", here()))

    def to_register(self) -> "CooperativeMatrix":
        """Copy the matrix."""
        return _declare(self.var_type, self.expr)

    def to_dtype(self, dtype: dt.DType) -> "CooperativeMatrix":
        """Return the matrix with its components converted. Raises TypeError for what is no such type."""
        kind = _matrix_type("to_dtype", dtype, *self.shape, self.use, _scope(self))
        return _declare(kind, Expr(Op.CONSTRUCT, kind, (self.expr,), None, here()))


def _declare(kind: dt.DType, value: Expr) -> CooperativeMatrix:
    return CooperativeMatrix(current().declare(kind, value))


def _scope(matrix: CooperativeMatrix) -> str:
    scope: str = matrix.var_type.scope  # type: ignore[attr-defined]
    return scope


def _number(value: Any, what: str) -> Expr:
    """Return an integer as an index has it."""
    number = parse_index(value, what, ArgumentTypeError)
    if not isinstance(number, Expr):
        if not 0 <= number < 1 << 32:
            raise located(ArgumentValueError, f"{what}: {number} is out of range for uint32")
        return ex.literal(number, dt.uint32)
    return ex.index_value(number)


def _matrix_type(what: str, dtype: Any, rows: Any, columns: Any, use: Any, scope: Any) -> dt.DType:
    if not isinstance(dtype, type) or not dt.is_dtype(dtype) or not dt.is_scalar(dtype) or dtype is dt.bool_:
        raise located(ArgumentTypeError, f"{what}: expected a scalar dtype such as f16, got {dtype!r}")
    for size in (rows, columns):
        if not ex.is_integer_number(size) or not 0 < size <= 65536:
            raise located(ArgumentValueError, f"{what}: rows and columns are positive ints, got {size!r}")
    if use not in _USES:
        raise located(ArgumentValueError, f'{what}: use is "a", "b" or "accumulator", got {use!r}')
    if scope not in _SCOPES:
        raise located(ArgumentValueError, f'{what}: scope is "subgroup" or "workgroup", got {scope!r}')
    return cooperative_type(dtype, int(rows), int(columns), use, scope)


def cooperative_matrix(
    dtype: dt.DType,
    rows: int,
    columns: int,
    use: str = "accumulator",
    scope: str = "subgroup",
    value: Any = 0,
) -> CooperativeMatrix:
    """Declare a matrix that the subgroup (or workgroup) holds together, filled with `value`.

    Parameters
    ----------
    dtype
        Type of its elements, such as f16.
    rows, columns
        Its sizes: of a product that the device has, see `DeviceInfo.cooperative_matrices`.
    use
        What it is in a product: "a" (m x k), "b" (k x n) or "accumulator" (m x n).
    scope
        Who holds it: the "subgroup", or the "workgroup" where the device has VK_NV_cooperative_matrix2.

    Raises
    ------
    ValueError, TypeError
        Something else was given. That the device lacks such a matrix is an UnsupportedError when the kernel
        is built.
    """
    kind = _matrix_type("cooperative_matrix", dtype, rows, columns, use, scope)
    shell = CooperativeMatrix(Expr(Op.CONSTRUCT, kind, (), None, here()))
    return _declare(kind, Expr(Op.CONSTRUCT, kind, (shell._scalar(value),), None, here()))


def matrix_multiply_add(
    a: CooperativeMatrix, b: CooperativeMatrix, c: CooperativeMatrix
) -> CooperativeMatrix:
    """Return a b + c of cooperative matrices; `c[:] = vc.matrix_multiply_add(a, b, c)` adds to c.

    Raises
    ------
    TypeError, ValueError
        They are no matrices, or of uses, sizes or scopes that do not fit.
    """
    for matrix, use in ((a, "a"), (b, "b"), (c, "accumulator")):
        if not isinstance(matrix, CooperativeMatrix):
            raise located(
                ArgumentTypeError, f"matrix_multiply_add: expected a cooperative matrix, got {matrix!r}"
            )
        if matrix.use != use:
            raise located(
                ArgumentValueError,
                f'matrix_multiply_add: expected a matrix of use "{use}", got "{matrix.use}"',
            )
    (m, k), (inner, n) = a.shape, b.shape
    scopes = set(map(_scope, (a, b, c)))
    if inner != k or c.shape != (m, n) or len(scopes) > 1:
        raise located(
            ArgumentValueError,
            f"matrix_multiply_add: {a.var_type.name}, {b.var_type.name} and {c.var_type.name} do not fit",
        )
    return CooperativeMatrix(ex.call("coopMatMulAdd", c.var_type, a.expr, b.expr, c.expr))
