"""QR factors on the device, by blocked Householder reflections.

One workgroup for each matrix factors a panel of columns into reflectors, whose product is I - V T V^H
(Schreiber and Van Loan 1989); `vd.matmul` applies it to the columns beside the panel. Of tall matrices blocks
of rows are factored at the same time, and then their triangles (TSQR: Demmel, Grigori, Hoemmen, Langou 2012).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, component_type, is_complex
from vkdispatch.families.stored import store_results
from vkdispatch.matrices.product import matmul
from vkdispatch.numpy.basics.sequences import eye
from vkdispatch.numpy.core.application import apply_ufunc, assign
from vkdispatch.numpy.core.array import value_of
from vkdispatch.numpy.core.expressions import evaluate, evaluate_into
from vkdispatch.numpy.core.kernels import as_buffer, gather, new_view
from vkdispatch.numpy.core.memory import Storage, View, device_of, kernel_type
from vkdispatch.numpy.linalg import factors
from vkdispatch.shader.shader_function import ShaderFunction

# The columns of a panel: an invocation, or several, for each.
_PANEL = 32
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


# ---- kernels -------------------------------------------------------------------------------------


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
    factors.wait_for_shared()
    step = group // 2
    while step:
        with vc.if_block(t < step):
            parts[t] = combine(parts[t].to_register(), parts[t + step].to_register())
        factors.wait_for_shared()
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

    def qr_panel(a: Any, v: Any, scales: Any, numbers: factors.Numbers) -> None:
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
            head = factors.real_part(alpha).to_register()
            beta = vc.select(head < 0, length, -length).to_register()
            # nothing is left to reflect; a NaN is not nothing
            is_left = vc.logical_or(below != 0, _imaginary_part(alpha) != 0).to_register()
            tau = vc.new_register(kind, factors.from_real(kind, zero))
            with vc.if_block(is_left):
                tau[:] = factors.divide(factors.from_real(kind, beta) - alpha, factors.from_real(kind, beta))
                pivot = (alpha - factors.from_real(kind, beta)).to_register()
                with vc.for_block(j + 1 + t, rows, group) as row:
                    a[line + row] = factors.divide(a[line + row].to_register(), pivot)
            factors.wait_for_buffers()
            with vc.if_block(t == 0):
                scales[matrix * width + j] = tau
                with vc.if_block(is_left):
                    a[line + j] = factors.from_real(kind, beta)
            other = (j + 1 + own_column).to_register()
            beside = (base + other * rows).to_register()
            has_column = vc.logical_and(other < width, is_left).to_register()
            product = vc.new_register(kind, factors.from_real(kind, zero))
            with vc.if_block(has_column), vc.for_block(j + 1 + lane, rows, lanes) as row:
                turned = factors.conjugate(a[line + row].to_register())
                product[:] = product + turned * a[beside + row].to_register()
            sums[t] = product
            factors.wait_for_shared()
            whole = vc.new_register(kind, factors.from_real(kind, zero))
            with vc.if_block(has_column):
                whole[:] = a[beside + j]
                with vc.for_block(own_column * lanes, own_column * lanes + lanes) as each:
                    whole[:] = whole + sums[each].to_register()
                whole[:] = whole * factors.conjugate(tau)
                with vc.for_block(j + 1 + lane, rows, lanes) as row:
                    a[beside + row] = a[beside + row].to_register() - a[line + row].to_register() * whole
            # all lanes of a column read the number that one of them changes
            vc.barrier()
            with vc.if_block(vc.logical_and(has_column, lane == 0)):
                a[beside + j] = a[beside + j].to_register() - whole
            factors.wait_for_buffers()
        with vc.for_block(width) as column, vc.for_block(t, rows, group) as row:
            place = (base + column * rows + row).to_register()
            value = a[place].to_register()
            unit = vc.select(row == column, factors.from_real(kind, one), factors.from_real(kind, zero))
            v[place] = vc.select(row > column, value, unit)
            with vc.if_block(row > column):
                a[place] = factors.from_real(kind, zero)

    return factors.trace_factoring("qr_panel", qr_panel, [("a", kind), ("v", kind), ("scales", kind)], group)


@store_results
def _triangle_kernel(kind: DType) -> ShaderFunction:
    """Return the kernel that makes T of products and scales of reflectors: an invocation for each row."""

    def qr_triangle(triangle: Any, products: Any, scales: Any, numbers: factors.Numbers) -> None:
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
    return factors.trace_factoring("qr_triangle", qr_triangle, buffers, _PANEL)


# ---- on views ------------------------------------------------------------------------------------


def _multiply(left: View, right: View, *, turn_left: bool = False, turn_right: bool = False) -> View:
    kind = left.dtype
    a, b = as_buffer(gather(left), left.shape), as_buffer(gather(right), right.shape)
    product = matmul(a, b, transpose_a=turn_left, transpose_b=turn_right)
    shape = (left.shape[0], left.shape[2 if turn_left else 1], right.shape[1 if turn_right else 2])
    return View(Storage(product), shape, kind)


def _conjugate(a: View) -> View:
    return evaluate(apply_ufunc("conjugate", (a,))) if a.dtype.kind == "c" else a


def _reflect(target: View, panel: Panel, *, adjoint: bool) -> None:
    """Apply the reflections of a panel to matrices in place, or with `adjoint` those in reverse order."""
    if not target.size:
        return
    products = _multiply(_conjugate(panel.turned), target)
    triangle = _conjugate(panel.triangle) if adjoint else panel.triangle
    scaled = _multiply(triangle, products, turn_left=adjoint)
    change = _multiply(panel.turned, scaled, turn_left=True)
    evaluate_into(apply_ufunc("subtract", (target, change)), target)


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
        block = factors.block_of(a, (first, m), (first, end))
        columns = gather(factors.turn_matrices(block))
        turned = new_view(columns.shape, a.dtype, context)
        scales = new_view((count, width), a.dtype, context)
        group = factors.choose_group(_GROUPS, m - first, a)
        factors.launch(_panel_kernel(kind, group), [columns, turned, scales], sizes, count, 0)
        assign(block, factors.turn_matrices(columns))
        products = _multiply(_conjugate(turned), turned, turn_right=True)
        triangle = new_view((count, width, width), a.dtype, context)
        factors.launch(_triangle_kernel(kind), [triangle, products, scales], sizes, count, 0)
        panels.append(Panel(first, turned, triangle))
        _reflect(factors.block_of(a, (first, m), (end, n)), panels[-1], adjoint=True)
    return panels


def _form_q(panels: list[Panel], a: View, columns: int) -> View:
    """Return the first columns of Q of the matrices `a`."""
    count, m, _ = a.shape
    q = new_view((count, m, columns), a.dtype, a.storage.buffer.context)
    if q.size:
        assign(q, value_of(eye(m, columns, dtype=a.dtype, device=device_of(a))))
    for panel in reversed(panels):
        # earlier columns still equal the unit matrix, which it does not change
        _reflect(factors.block_of(q, (panel.first, m), (panel.first, columns)), panel, adjoint=False)
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
    return q, gather(factors.block_of(a, (0, least if columns is None else columns), (0, n)))


def _factor_tall(a: View, columns: int | None) -> tuple[View | None, View]:
    """Factor matrices by blocks of rows: the triangles of the blocks above the rows left have the same R."""
    count, m, n = a.shape
    context = a.storage.buffer.context
    rows = max(_ROWS, _TALL // 2 * n)
    parts = m // rows
    own, height = parts * rows, parts * n
    whole, split = (0, n), (count * parts, rows, n)
    blocks = View(gather(factors.block_of(a, (0, own), whole)).storage, split, a.dtype)
    first, triangles = factor_qr(blocks, columns)
    stacked = new_view((count, height + m - own, n), a.dtype, context)
    assign(
        factors.block_of(stacked, (0, height), whole), View(triangles.storage, (count, height, n), a.dtype)
    )
    assign(factors.block_of(stacked, (height, height + m - own), whole), factors.block_of(a, (own, m), whole))
    second, r = factor_qr(stacked, columns)
    if first is None or second is None:
        return None, r
    upper = gather(factors.block_of(second, (0, height), whole))
    product = _multiply(first, View(upper.storage, (count * parts, n, n), a.dtype))
    q = new_view((count, m, n), a.dtype, context)
    assign(factors.block_of(q, (0, own), whole), View(product.storage, (count, own, n), a.dtype))
    assign(factors.block_of(q, (own, m), whole), factors.block_of(second, (height, height + m - own), whole))
    return q, r
