"""Factors of matrices on the device: LU with partial pivoting, Cholesky, QR, and solutions by triangles.

All work on matrices that lie one behind the other, block column by block column: one workgroup for each
matrix factors a panel, an invocation for each column or row solves with its triangle, and `vd.matmul` does
the rest. The panels of QR become Householder reflectors, whose product is I - V T V^H (Schreiber and Van Loan
1989). Of tall matrices blocks of rows are factored at the same time, and then their triangles (TSQR: Demmel,
Grigori, Hoemmen, Langou 2012).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType, component_type, is_complex
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.matrices.product import matmul
from vkdispatch.numpy.basics.sequences import eye
from vkdispatch.numpy.core.application import apply_ufunc, assign
from vkdispatch.numpy.core.array import read_view, value_of
from vkdispatch.numpy.core.complex_operations import divide as divide_complex
from vkdispatch.numpy.core.expressions import evaluate, evaluate_into
from vkdispatch.numpy.core.kernels import as_buffer, gather, new_view, whole_view
from vkdispatch.numpy.core.memory import Storage, View, device_of, kernel_type
from vkdispatch.shader.shader_function import ShaderFunction

# Matrices of so few rows are factored in shared memory, by one invocation for each row.
_SMALL = 32
# The columns of a panel.
_PANEL = 32
_GROUP = 256
_MAX_GROUPS = 32768

_UINT32 = np.dtype(np.uint32)


class Numbers(NamedTuple):
    """Numbers that all kernels get: see `launch`. The last one is how many workgroups there are."""

    n: Any
    first: Any
    end: Any
    start: Any
    columns: Any
    blocks: Any
    groups: Any


def _magnitude(x: Any) -> Any:
    """Return what pivots are compared by, as LAPACK has it."""
    return vc.abs(x.real) + vc.abs(x.imag) if is_complex(x.var_type) else vc.abs(x)


def divide(x: Any, y: Any) -> Any:
    """Return a quotient of real or complex numbers."""
    return divide_complex(x, y) if is_complex(x.var_type) else x / y


def conjugate(x: Any) -> Any:
    """Return the conjugate of a real or complex number."""
    return vc.to_complex(x.real, -x.imag) if is_complex(x.var_type) else x


def real_part(x: Any) -> Any:
    """Return the real part of a real or complex number."""
    return x.real if is_complex(x.var_type) else x


def from_real(kind: DType, x: Any) -> Any:
    """Return a real number in a real or complex type."""
    return vc.to_complex(x, vc.to_dtype(x.var_type, 0)) if is_complex(kind) else x


def _swap(numbers: Any, first: Any, second: Any) -> None:
    """Exchange two elements, which may be one."""
    first, second = first.to_register(), second.to_register()
    upper, lower = numbers[first].to_register(), numbers[second].to_register()
    numbers[first] = lower
    numbers[second] = upper


def trace_factoring(
    name: str, body: Callable[..., None], buffers: list[tuple[str, DType]], group: int
) -> ShaderFunction:
    """Trace a kernel with buffers and `Numbers` as arguments."""

    def unpack(*variables: Any) -> None:
        body(*variables[: len(buffers)], Numbers(*variables[len(buffers) :]))

    arguments: list[tuple[str, Any]] = [(argument, buffer[kind]) for argument, kind in buffers]
    arguments += [(argument, constant[dt.uint32]) for argument in Numbers._fields]
    return trace_kernel(name, unpack, arguments, group, "groups")


def wait_for_shared() -> None:
    """Let the invocations of a workgroup see what all of them wrote to shared memory."""
    vc.memory_barrier_shared()
    vc.barrier()


def wait_for_buffers() -> None:
    """Let the invocations of a workgroup see what all of them wrote to buffers."""
    vc.memory_barrier()
    vc.barrier()


def launch(kernel: ShaderFunction, views: list[View], sizes: dict[str, int], count: int, across: int) -> None:
    """Launch a kernel for `count` matrices, each with workgroups for `across` invocations."""
    blocks = max(1, -(-across // _GROUP))
    step = max(1, _MAX_GROUPS // blocks)
    buffers = [view.storage.buffer for view in views]
    for start in range(0, count, step):
        numbers = {**sizes, "start": start, "blocks": blocks}
        groups = min(step, count - start) * blocks
        kernel(*buffers, *(numbers.get(name, 0) for name in Numbers._fields[:-1]), groups)


# ---- kernels of LU and Cholesky ------------------------------------------------------------------


@store_results
def _lu_kernel(kind: DType, group: int) -> ShaderFunction:
    """Return the kernel that factors matrices, or panels of them.

    A panel has the columns `first` to `end` from row `first` on, and lies transposed, so that invocations,
    which have a row each, load neighbours.
    """
    small = group == _SMALL
    together = 1 if small else 4
    real = component_type(kind)

    def lu(a: Any, pivots: Any, singular: Any, numbers: Numbers) -> None:
        n, first, end, start = numbers[:4]
        t = vc.local_invocation_index().to_register()
        matrix = (vc.workgroup_id().x + start).to_register()
        rows, width = (n - first).to_register(), (end - first).to_register()
        base = (matrix * rows * width).to_register()
        sizes = vc.shared_buffer(real, group)
        places = vc.shared_buffer(dt.uint32, group)
        if small:
            held = vc.shared_buffer(kind, _SMALL * _SMALL)
            with vc.for_block(t, n * n, group) as at:
                held[at] = a[base + at]
            wait_for_shared()
        else:
            held = a

        def place_of(row: Any, column: Any) -> Any:
            return row * width + column if small else base + column * rows + row

        with vc.for_block(width) as j:
            best = vc.to_dtype(real, -1).to_register()
            place = j.to_register()
            with vc.for_block(j + t, rows, group) as row:
                size = _magnitude(held[place_of(row, j)].to_register()).to_register()
                with vc.if_block(size > best):
                    best[:] = size
                    place[:] = row
            sizes[t] = best
            places[t] = place
            wait_for_shared()
            step = group // 2
            while step:
                with vc.if_block(t < step):
                    own, other = sizes[t].to_register(), sizes[t + step].to_register()
                    here, there = places[t].to_register(), places[t + step].to_register()
                    # the first one of equal ones
                    with vc.if_block(vc.logical_or(other > own, vc.logical_and(other == own, there < here))):
                        sizes[t] = other
                        places[t] = there
                wait_for_shared()
                step //= 2
            chosen = places[0].to_register()
            largest = sizes[0].to_register()
            with vc.if_block(t == 0):
                pivots[matrix * n + first + j] = first + chosen
                with vc.if_block(largest == 0):
                    singular[matrix] = 1
            with vc.if_block(chosen != j), vc.for_block(t, width, group) as column:
                _swap(held, place_of(j, column), place_of(chosen, column))
            wait_for_buffers()
            with vc.if_block(largest != 0):
                pivot = held[place_of(j, j)].to_register()
                with vc.for_block(j + 1 + t, rows, group) as below:
                    factor = divide(held[place_of(below, j)].to_register(), pivot).to_register()
                    held[place_of(below, j)] = factor
                    with vc.for_block(j + 1, width, together) as along:
                        # several loads under way at a time
                        beside = [vc.min(along + i, width - 1).to_register() for i in range(together)]
                        values = [held[place_of(below, each)].to_register() for each in beside]
                        top = [held[place_of(j, each)].to_register() for each in beside]
                        for i in range(together):
                            with vc.if_block(along + i < width):
                                held[place_of(below, along + i)] = values[i] - factor * top[i]
            wait_for_buffers()
        if small:
            with vc.for_block(t, n * n, group) as back:
                a[base + back] = held[back]

    buffers: list[tuple[str, DType]] = [("a", kind), ("pivots", dt.uint32), ("singular", dt.uint32)]
    return trace_factoring("lu_small" if small else "lu_panel", lu, buffers, group)


@store_results
def _columns_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that swaps rows beside a panel, and solves right of it with its unit triangle."""

    def lu_columns(a: Any, pivots: Any, numbers: Numbers) -> None:
        n, first, end, start, _, blocks, _ = numbers
        number = vc.workgroup_id().x
        matrix = (number // blocks + start).to_register()
        base = (matrix * n * n).to_register()
        column = (number % blocks * _GROUP + vc.local_invocation_index()).to_register()
        with vc.if_block(vc.logical_and(column < n, vc.logical_or(column < first, column >= end))):
            with vc.for_block(first, end) as j:
                _swap(a, base + j * n + column, base + pivots[matrix * n + j] * n + column)
            with vc.if_block(column >= end), vc.for_block((first + 1), end) as row:
                value = a[base + row * n + column].to_register()
                with vc.for_block(first, row) as k:
                    value -= a[base + row * n + k] * a[base + k * n + column]
                a[base + row * n + column] = value

    return trace_factoring("lu_columns", lu_columns, [("a", kind), ("pivots", dt.uint32)], _GROUP)


@store_results
def _swap_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that swaps the rows of right sides as those of their matrices."""

    def swap_rows(b: Any, pivots: Any, numbers: Numbers) -> None:
        n, first, end, start, columns, blocks, _ = numbers
        number = vc.workgroup_id().x
        matrix = (number // blocks + start).to_register()
        base = (matrix * n * columns).to_register()
        column = (number % blocks * _GROUP + vc.local_invocation_index()).to_register()
        with vc.if_block(column < columns), vc.for_block(first, end) as j:
            _swap(b, base + j * columns + column, base + pivots[matrix * n + j] * columns + column)

    return trace_factoring("swap_rows", swap_rows, [("b", kind), ("pivots", dt.uint32)], _GROUP)


@store_results
def _triangle_kernel(kind: DType, lower: bool) -> ShaderFunction:
    """Return the kernel that solves with rows `first` to `end`, of the unit lower or the upper triangle."""

    def solve_triangle(b: Any, a: Any, numbers: Numbers) -> None:
        n, first, end, start, columns, blocks, _ = numbers
        number = vc.workgroup_id().x
        matrix = (number // blocks + start).to_register()
        base, own = (matrix * n * n).to_register(), (matrix * n * columns).to_register()
        column = (number % blocks * _GROUP + vc.local_invocation_index()).to_register()
        with vc.if_block(column < columns), vc.for_block((first - first), end - first) as done:
            row = (first + done if lower else end - 1 - done).to_register()
            value = b[own + row * columns + column].to_register()
            last = (row if lower else end).to_register()
            with vc.for_block((first if lower else row + 1), last) as k:
                value -= a[base + row * n + k] * b[own + k * columns + column]
            if not lower:
                value = divide(value, a[base + row * n + row].to_register())
            b[own + row * columns + column] = value

    name = "solve_lower" if lower else "solve_upper"
    return trace_factoring(name, solve_triangle, [("b", kind), ("a", kind)], _GROUP)


@store_results
def _cholesky_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that factors the square from `first` to `end`."""
    group = _PANEL
    real = component_type(kind)

    def cholesky_block(a: Any, indefinite: Any, numbers: Numbers) -> None:
        n, first, end, start = numbers[:4]
        t = vc.local_invocation_index().to_register()
        matrix = (vc.workgroup_id().x + start).to_register()
        base = (matrix * n * n).to_register()
        memory = vc.shared_buffer(kind, _PANEL * _PANEL)
        width = (end - first).to_register()
        with vc.for_block(t, width * width, group) as at:
            memory[at] = a[base + (first + at // width) * n + first + at % width]
        wait_for_shared()
        with vc.for_block((first - first), width) as j:
            left = real_part(memory[j * width + j].to_register()).to_register()
            vc.barrier()
            with vc.if_block(t == 0):
                with vc.if_block(~(left > 0)):
                    indefinite[matrix] = 1
                memory[j * width + j] = from_real(kind, vc.sqrt(left))
            root = vc.sqrt(left).to_register()
            with vc.for_block((j + 1 + t), width, group) as row:
                inverse = from_real(kind, (vc.to_dtype(real, 1) / root).to_register())
                memory[row * width + j] = memory[row * width + j] * inverse
            wait_for_shared()
            with vc.for_block((j + 1 + t), width, group) as below:
                factor = memory[below * width + j].to_register()
                with vc.for_block((j + 1), below + 1) as k:
                    other = conjugate(memory[k * width + j].to_register())
                    memory[below * width + k] = memory[below * width + k] - factor * other
            wait_for_shared()
        with vc.for_block(t, width * width, group) as back:
            a[base + (first + back // width) * n + first + back % width] = memory[back]

    return trace_factoring("cholesky_block", cholesky_block, [("a", kind), ("indefinite", dt.uint32)], group)


@store_results
def _rows_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that solves the rows below a factored square with it."""

    def cholesky_rows(a: Any, numbers: Numbers) -> None:
        n, first, end, start, _, blocks, _ = numbers
        number = vc.workgroup_id().x
        base = ((number // blocks + start) * n * n).to_register()
        row = (end + number % blocks * _GROUP + vc.local_invocation_index()).to_register()
        with vc.if_block(row < n):
            line = (base + row * n).to_register()
            with vc.for_block(first, end) as j:
                value = a[line + j].to_register()
                with vc.for_block(first, j) as k:
                    value -= a[line + k] * conjugate(a[base + j * n + k].to_register())
                a[line + j] = divide(value, a[base + j * n + j].to_register())

    return trace_factoring("cholesky_rows", cholesky_rows, [("a", kind)], _GROUP)


# ---- LU and Cholesky on views --------------------------------------------------------------------


def block_of(a: View, rows: tuple[int, int], columns: tuple[int, int]) -> View:
    """Return the view of a block of each matrix."""
    offset = rows[0] * a.strides[1] + columns[0] * a.strides[2]
    shape = (a.shape[0], rows[1] - rows[0], columns[1] - columns[0])
    return View(a.storage, shape, a.dtype, offset, a.strides)


def turn_matrices(a: View) -> View:
    """Return the view of transposed matrices."""
    count, rows, columns = a.shape
    strides = (a.strides[0], a.strides[2], a.strides[1])
    return View(a.storage, (count, columns, rows), a.dtype, a.offset, strides)


def _multiply(left: View, right: View, *, turn_left: bool = False, turn_right: bool = False) -> View:
    a, b = as_buffer(whole_view(left), left.shape), as_buffer(whole_view(right), right.shape)
    product = matmul(a, b, transpose_a=turn_left, transpose_b=turn_right)
    shape = (left.shape[0], left.shape[2 if turn_left else 1], right.shape[1 if turn_right else 2])
    return View(Storage(product), shape, left.dtype)


def _subtract_product(target: View, left: View, right: View, **turns: bool) -> None:
    """Subtract products from matrices; see `_multiply`."""
    if target.size:
        evaluate_into(apply_ufunc("subtract", (target, _multiply(left, right, **turns))), target)


def _conjugate(a: View) -> View:
    return evaluate(apply_ufunc("conjugate", (a,))) if a.dtype.kind == "c" else a


def _flags(count: int, context: Context) -> View:
    flags = new_view((count,), _UINT32, context)
    assign(flags, 0)
    return flags


def any_flag(flags: View) -> bool:
    """Whether a flag is not 0: waits for the device."""
    return bool(read_view(flags).any())


def choose_group(groups: Sequence[int], rows: int, a: View) -> int:
    """Return how many invocations factor a panel: few rows each, for the panel has one workgroup only."""
    most = device_facts(a.storage.context).max_group
    return next((group for group in groups if rows <= 4 * group or group * 4 > most), groups[-1])


def factor_lu(a: View) -> tuple[View, View]:
    """Factor square matrices in place: `(count, n, n)` become L, whose diagonal is 1, below, and U.

    Returns
    -------
    pivots
        uint32 of the shape (count, n): the row with which each row was swapped, one after the other.
    singular
        uint32 of the shape (count,): 1 where a pivot is 0.
    """
    count, n, _ = a.shape
    kind = kernel_type(a.dtype)
    context = a.storage.context
    pivots, singular = new_view((count, n), _UINT32, context), _flags(count, context)
    if n <= _SMALL:
        if n:
            launch(_lu_kernel(kind, _SMALL), [a, pivots, singular], {"n": n, "end": n}, count, 0)
        return pivots, singular
    for first in range(0, n, _PANEL):
        end = min(first + _PANEL, n)
        sizes = {"n": n, "first": first, "end": end}
        block = block_of(a, (first, n), (first, end))
        panel = gather(turn_matrices(block))
        group = choose_group((_GROUP, 4 * _GROUP), n - first, a)
        launch(_lu_kernel(kind, group), [panel, pivots, singular], sizes, count, 0)
        assign(block, turn_matrices(panel))
        launch(_columns_kernel(kind), [a, pivots], sizes, count, n)
        rest, own = (end, n), (first, end)
        _subtract_product(block_of(a, rest, rest), block_of(a, rest, own), block_of(a, own, rest))
    return pivots, singular


def solve_lu(a: View, pivots: View, b: View) -> None:
    """Solve with factored matrices in place: `b` of the shape (count, n, columns) becomes the solutions."""
    count, n, columns = b.shape
    if not b.size:
        return
    kind = kernel_type(a.dtype)
    sizes = {"n": n, "columns": columns}
    launch(_swap_kernel(kind), [b, pivots], {**sizes, "end": n}, count, columns)
    panels = [(first, min(first + _PANEL, n)) for first in range(0, n, _PANEL)]
    whole = (0, columns)
    for first, end in panels:
        part = {**sizes, "first": first, "end": end}
        launch(_triangle_kernel(kind, True), [b, a], part, count, columns)
        left = block_of(a, (end, n), (first, end))
        _subtract_product(block_of(b, (end, n), whole), left, block_of(b, (first, end), whole))
    for first, end in reversed(panels):
        part = {**sizes, "first": first, "end": end}
        launch(_triangle_kernel(kind, False), [b, a], part, count, columns)
        left = block_of(a, (0, first), (first, end))
        _subtract_product(block_of(b, (0, first), whole), left, block_of(b, (first, end), whole))


def factor_cholesky(a: View) -> View:
    """Factor Hermitian matrices in place: the lower triangles of `(count, n, n)` become L.

    What is above the diagonal is neither read nor defined afterwards. Returns uint32 of the shape (count,): 1
    where a matrix is not positive definite.
    """
    count, n, _ = a.shape
    kind = kernel_type(a.dtype)
    indefinite = _flags(count, a.storage.context)
    for first in range(0, n, _PANEL):
        end = min(first + _PANEL, n)
        sizes = {"n": n, "first": first, "end": end}
        launch(_cholesky_kernel(kind), [a, indefinite], sizes, count, 0)
        if end < n:
            launch(_rows_kernel(kind), [a], sizes, count, n - end)
            left = block_of(a, (end, n), (first, end))
            _subtract_product(block_of(a, (end, n), (end, n)), left, _conjugate(left), turn_right=True)
    return indefinite


_GROUPS = (64, 256, 1024)
# Matrices of so many rows for each column are tall; blocks of so many rows are factored at a time.
_TALL, _MIN_TALL, _ROWS = 8, 4096, 512


class Panel(NamedTuple):
    """Reflectors: I - V T V^H on the rows from `first` on.

    Attributes
    ----------
    first
        The first row that they change.
    turned
        V of the shape (count, columns, rows), so that a reflector is a row.
    triangle
        T of the shape (count, columns, columns).
    """

    first: int
    turned: View
    triangle: View


# ---- kernels of reflectors -----------------------------------------------------------------------


def _square_ratio(x: Any, scale: Any) -> Any:
    """Return the squared size of x / scale."""
    parts = (x.real, x.imag) if is_complex(x.var_type) else (x,)
    ratios = [(part / scale).to_register() for part in parts]
    return sum((ratio * ratio for ratio in ratios[1:]), ratios[0] * ratios[0])


def _largest_part(x: Any) -> Any:
    return vc.max(vc.abs(x.real), vc.abs(x.imag)) if is_complex(x.var_type) else vc.abs(x)


def _imaginary_part(x: Any) -> Any:
    return x.imag if is_complex(x.var_type) else vc.to_dtype(x.var_type, 0)


def _reduce_group(parts: Any, t: Any, group: int, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the values of all invocations of a workgroup, by halves in shared memory."""
    parts[t] = value
    wait_for_shared()
    step = group // 2
    while step:
        with vc.if_block(t < step):
            parts[t] = combine(parts[t].to_register(), parts[t + step].to_register())
        wait_for_shared()
        step //= 2
    result = parts[0].to_register()
    vc.barrier()
    return result


@store_results
def _panel_kernel(kind: DType, group: int) -> ShaderFunction:
    """Return the kernel that factors panels: the columns `first` to `end` from row `first` on.

    Panels lie transposed, so that invocations load neighbours. They become R; reflectors are written apart.
    """
    real = component_type(kind)
    # how many invocations have one column
    lanes = group // _PANEL

    def qr_panel(a: Any, v: Any, scales: Any, numbers: Numbers) -> None:
        n, first, end, start = numbers[:4]
        t = vc.local_invocation_index().to_register()
        matrix = (vc.workgroup_id().x + start).to_register()
        rows, width = (n - first).to_register(), (end - first).to_register()
        base = (matrix * rows * width).to_register()
        parts = vc.shared_buffer(real, group)
        sums = vc.shared_buffer(kind, group)
        own_column, lane = (t // lanes).to_register(), (t % lanes).to_register()
        zero, one = vc.to_dtype(real, 0), vc.to_dtype(real, 1)

        def reduce(value: Any, combine: Any) -> Any:
            return _reduce_group(parts, t, group, value, combine)

        with vc.for_block(width) as j:
            line = (base + j * rows).to_register()
            alpha = a[line + j].to_register()
            best = vc.new_register(real, _largest_part(alpha))
            with vc.for_block(j + 1 + t, rows, group) as row:
                best[:] = vc.max(best, _largest_part(a[line + row].to_register()))
            largest = reduce(best, vc.max)
            # lines are scaled: squares of their numbers may be none
            scale = vc.select(largest > 0, largest, one).to_register()
            part = vc.new_register(real, 0)
            with vc.for_block(j + 1 + t, rows, group) as row:
                part[:] = part + _square_ratio(a[line + row].to_register(), scale)
            below = reduce(part, lambda x, y: x + y)
            length = scale * vc.sqrt(_square_ratio(alpha, scale) + below)
            head = real_part(alpha).to_register()
            beta = vc.select(head < 0, length, -length).to_register()
            # nothing is left to reflect; a NaN is not nothing
            is_left = vc.logical_or(below != 0, _imaginary_part(alpha) != 0).to_register()
            tau = vc.new_register(kind, from_real(kind, zero))
            with vc.if_block(is_left):
                tau[:] = divide(from_real(kind, beta) - alpha, from_real(kind, beta))
                pivot = (alpha - from_real(kind, beta)).to_register()
                with vc.for_block(j + 1 + t, rows, group) as row:
                    a[line + row] = divide(a[line + row].to_register(), pivot)
            wait_for_buffers()
            with vc.if_block(t == 0):
                scales[matrix * width + j] = tau
                with vc.if_block(is_left):
                    a[line + j] = from_real(kind, beta)
            other = (j + 1 + own_column).to_register()
            beside = (base + other * rows).to_register()
            has_column = vc.logical_and(other < width, is_left).to_register()
            product = vc.new_register(kind, from_real(kind, zero))
            with vc.if_block(has_column), vc.for_block(j + 1 + lane, rows, lanes) as row:
                turned = conjugate(a[line + row].to_register())
                product[:] = product + turned * a[beside + row].to_register()
            sums[t] = product
            wait_for_shared()
            whole = vc.new_register(kind, from_real(kind, zero))
            with vc.if_block(has_column):
                whole[:] = a[beside + j]
                with vc.for_block(own_column * lanes, own_column * lanes + lanes) as each:
                    whole[:] = whole + sums[each].to_register()
                whole[:] = whole * conjugate(tau)
                with vc.for_block(j + 1 + lane, rows, lanes) as row:
                    a[beside + row] = a[beside + row].to_register() - a[line + row].to_register() * whole
            # all lanes of a column read the number that one of them changes
            vc.barrier()
            with vc.if_block(vc.logical_and(has_column, lane == 0)):
                a[beside + j] = a[beside + j].to_register() - whole
            wait_for_buffers()
        with vc.for_block(width) as column, vc.for_block(t, rows, group) as row:
            place = (base + column * rows + row).to_register()
            value = a[place].to_register()
            unit = vc.select(row == column, from_real(kind, one), from_real(kind, zero))
            v[place] = vc.select(row > column, value, unit)
            with vc.if_block(row > column):
                a[place] = from_real(kind, zero)

    return trace_factoring("qr_panel", qr_panel, [("a", kind), ("v", kind), ("scales", kind)], group)


@store_results
def _reflections_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that makes T of products and scales of reflectors: an invocation for each row."""

    def qr_triangle(triangle: Any, products: Any, scales: Any, numbers: Numbers) -> None:
        _, first, end, start = numbers[:4]
        matrix = (vc.workgroup_id().x + start).to_register()
        width = (end - first).to_register()
        base = (matrix * width * width).to_register()
        row = vc.local_invocation_index().to_register()
        line = (base + row * width).to_register()
        with vc.if_block(row < width), vc.for_block(width) as column:
            tau = scales[matrix * width + column].to_register()
            value = vc.new_register(kind, vc.select(row == column, tau, tau - tau))
            with vc.if_block(row < column):
                with vc.for_block(row, column) as k:
                    value[:] = value - triangle[line + k] * products[base + k * width + column]
                value[:] = value * tau
            triangle[line + column] = value

    buffers = [("triangle", kind), ("products", kind), ("scales", kind)]
    return trace_factoring("qr_triangle", qr_triangle, buffers, _PANEL)


# ---- QR on views ---------------------------------------------------------------------------------


def _reflect(target: View, panel: Panel, *, adjoint: bool) -> None:
    """Apply the reflections of a panel to matrices in place, or with `adjoint` those in reverse order."""
    if not target.size:
        return
    products = _multiply(_conjugate(panel.turned), target)
    triangle = _conjugate(panel.triangle) if adjoint else panel.triangle
    scaled = _multiply(triangle, products, turn_left=adjoint)
    _subtract_product(target, panel.turned, scaled, turn_left=True)


def _factor_panels(a: View) -> list[Panel]:
    """Factor matrices in place: `(count, m, n)` become R, with zeros below. Return the reflectors."""
    count, m, n = a.shape
    kind = kernel_type(a.dtype)
    context = a.storage.buffer.context
    panels = []
    last = min(m, n)
    for first in range(0, last, _PANEL):
        end = min(first + _PANEL, last)
        width, sizes = end - first, {"n": m, "first": first, "end": end}
        block = block_of(a, (first, m), (first, end))
        columns = gather(turn_matrices(block))
        turned = new_view(columns.shape, a.dtype, context)
        scales = new_view((count, width), a.dtype, context)
        group = choose_group(_GROUPS, m - first, a)
        launch(_panel_kernel(kind, group), [columns, turned, scales], sizes, count, 0)
        assign(block, turn_matrices(columns))
        products = _multiply(_conjugate(turned), turned, turn_right=True)
        triangle = new_view((count, width, width), a.dtype, context)
        launch(_reflections_kernel(kind), [triangle, products, scales], sizes, count, 0)
        panels.append(Panel(first, turned, triangle))
        _reflect(block_of(a, (first, m), (end, n)), panels[-1], adjoint=True)
    return panels


def _form_q(panels: list[Panel], a: View, columns: int) -> View:
    """Return the first columns of Q of the matrices `a`."""
    count, m, _ = a.shape
    q = new_view((count, m, columns), a.dtype, a.storage.buffer.context)
    if q.size:
        assign(q, value_of(eye(m, columns, dtype=a.dtype, device=device_of(a))))
    for panel in reversed(panels):
        # earlier columns still equal the unit matrix, which it does not change
        _reflect(block_of(q, (panel.first, m), (panel.first, columns)), panel, adjoint=False)
    return q


def factor_qr(a: View, columns: int | None) -> tuple[View | None, View]:
    """Return so many columns of Q, or None for None, and R of matrices `(count, m, n)`.

    R has as many rows; without Q as many as the smaller side of the matrices, which are overwritten.
    """
    _, m, n = a.shape
    least = min(m, n)
    if a.size and (columns is None or columns <= least) and m >= max(_MIN_TALL, _TALL * n):
        return _factor_tall(a, columns)
    panels = _factor_panels(a) if a.size else []
    q = None if columns is None else _form_q(panels, a, columns)
    return q, gather(block_of(a, (0, least if columns is None else columns), (0, n)))


def _factor_tall(a: View, columns: int | None) -> tuple[View | None, View]:
    """Factor matrices by blocks of rows: the triangles of the blocks above the rows left have the same R."""
    count, m, n = a.shape
    context = a.storage.buffer.context
    rows = max(_ROWS, _TALL // 2 * n)
    parts = m // rows
    own, height = parts * rows, parts * n
    whole, split = (0, n), (count * parts, rows, n)
    blocks = View(gather(block_of(a, (0, own), whole)).storage, split, a.dtype)
    first, triangles = factor_qr(blocks, columns)
    stacked = new_view((count, height + m - own, n), a.dtype, context)
    assign(block_of(stacked, (0, height), whole), View(triangles.storage, (count, height, n), a.dtype))
    assign(block_of(stacked, (height, height + m - own), whole), block_of(a, (own, m), whole))
    second, r = factor_qr(stacked, columns)
    if first is None or second is None:
        return None, r
    upper = gather(block_of(second, (0, height), whole))
    product = _multiply(first, View(upper.storage, (count * parts, n, n), a.dtype))
    q = new_view((count, m, n), a.dtype, context)
    assign(block_of(q, (0, own), whole), View(product.storage, (count, own, n), a.dtype))
    assign(block_of(q, (own, m), whole), block_of(second, (height, height + m - own), whole))
    return q, r
