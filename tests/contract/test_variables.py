"""GPU values: what is symbolic, what is storage, which operands are refused."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, m2, u32, v2, v3


def results(
    body: Callable[..., None], types: list[Any], *values: Any, count: int = 16, kind: Any = f32
) -> Any:
    out = vd.Buffer(count, kind)
    out.write(bytes(out.mem_size))
    vd.shader(1, arg_type_annotations=[Buff[kind], *types])(body)(out, *values)
    return out.read(0)


SYMBOLIC = [9, 5, 10, 6, 10, 12, 14]
VALUES = [9, 0, 6, 6, 2, 2, 2]


@pytest.mark.parametrize(("rewrite", "expected"), [(False, SYMBOLIC), (True, VALUES)])
def test_values_are_symbolic_without_the_rewrite(rewrite: bool, expected: list[int]) -> None:
    # 0.1.0 evaluates a name at each use; now a read is a value, except with rewrite=False
    def body(o: Buff[f32]) -> None:
        element = o[0]
        o[0] = 5.0
        o[1] = element
        later = o[0] + 1
        kept = later.to_register()
        o[0] = 9.0
        o[2] = later
        o[3] = kept
        r = vc.new_float_register(1.0)
        double = r * 2
        r[:] = 5.0
        o[4] = double
        r += 1
        o[5] = double
        with vc.if_block(r > 0):
            r[:] = 7.0
            o[6] = double

    out = vd.Buffer((7,), f32)
    out.write(np.zeros(7, np.float32))
    vd.shader(1, rewrite=rewrite)(body)(out)
    assert out.read(0).tolist() == expected


NAMES = (
    "var_type name raw_name lexical_unit settable register parents can_index use_child_type is_complex "
    "is_conjugate resolve is_setable is_register read_callback write_callback printf_args"
)


def test_attributes() -> None:
    def body(o: Any, c: Any, v: Any, z: Any, m: Any) -> None:
        r = (c + 1).to_register("mine")
        for value in (o, c, v, z, m, r, o[0], c + 1):
            for name in NAMES.split():
                assert hasattr(value, name)
        assert (r.name, r.resolve(), r.is_register(), r.settable) == ("mine", "mine", True, True)
        assert (c + 1).resolve() == f"({(c + 1).name})" and not (c + 1).settable and not c.settable
        assert (
            o.binding == 0 and o.settable and o.shape.var_type is vd.ivec4 and isinstance(o.shape_name, str)
        )
        assert hasattr(o, "read_lambda") and hasattr(o, "write_lambda")
        assert z.is_complex and not z.is_conjugate and z.conjugate().is_conjugate
        assert [x.can_index for x in (o, v, z, m, c)] == [True, True, True, True, False]
        assert (m[0].var_type, m[0][1].var_type, z.real.var_type) == (vd.vec2, vd.float32, vd.float32)
        assert v.swizzle("zyx").var_type is vd.vec3 and c.swizzle("xx").var_type is vd.vec2
        assert c * 1 is c and o[np.int64(1)].var_type is v[(1,)].var_type is vd.float32
        x, y, w = v
        assert [part.var_type for part in (x, y, w)] == [vd.float32] * 3

    results(body, [Const[f32], Const[v3], Const[c64], Const[m2]], 1.0, (1, 2, 3), 1, [[1, 2], [3, 4]])


REFUSED: list[tuple[Any, Callable[..., Any]]] = [
    (ValueError, lambda c, v, z, m, u, o: c.conjugate()),
    (AttributeError, lambda c, v, z, m, u, o: z.x),
    (ValueError, lambda c, v, z, m, u, o: setattr(z, "x", 1)),
    (AttributeError, lambda c, v, z, m, u, o: v.w),
    (ValueError, lambda c, v, z, m, u, o: setattr(v, "w", 1)),
    (ValueError, lambda c, v, z, m, u, o: v.swizzle("w")),
    (ValueError, lambda c, v, z, m, u, o: v.swizzle("xyzxy")),
    (AttributeError, lambda c, v, z, m, u, o: c.x),
    (ValueError, lambda c, v, z, m, u, o: c[0]),
    (ValueError, lambda c, v, z, m, u, o: v["a"]),
    (ValueError, lambda c, v, z, m, u, o: v[0, 1]),
    (ValueError, lambda c, v, z, m, u, o: v[c]),
    (TypeError, lambda c, v, z, m, u, o: o["a"]),
    (TypeError, lambda c, v, z, m, u, o: o[1.5]),
    (TypeError, lambda c, v, z, m, u, o: o[c]),
    (ValueError, lambda c, v, z, m, u, o: operator.setitem(c, slice(None), 1.0)),
    (ValueError, lambda c, v, z, m, u, o: operator.setitem(o[0], slice(0, 1), 1.0)),
    (ValueError, lambda c, v, z, m, u, o: operator.setitem(o, 0, u)),
    (ValueError, lambda c, v, z, m, u, o: operator.setitem(o, 0, v)),
    (TypeError, lambda c, v, z, m, u, o: operator.setitem(o, 0, None)),
    (TypeError, lambda c, v, z, m, u, o: operator.setitem(o, 0, True)),
    (TypeError, lambda c, v, z, m, u, o: hash(c)),
    (TypeError, lambda c, v, z, m, u, o: c()),
    (TypeError, lambda c, v, z, m, u, o: len(c)),
    (TypeError, lambda c, v, z, m, u, o: c + "a"),
    (TypeError, lambda c, v, z, m, u, o: c - True),
    (TypeError, lambda c, v, z, m, u, o: 1j * c),
    (TypeError, lambda c, v, z, m, u, o: c == None),  # noqa: E711
    (TypeError, lambda c, v, z, m, u, o: c // 2),
    (TypeError, lambda c, v, z, m, u, o: u // 1.5),
    (TypeError, lambda c, v, z, m, u, o: c % 2),
    (TypeError, lambda c, v, z, m, u, o: c << 1),
    (TypeError, lambda c, v, z, m, u, o: ~c),
    (TypeError, lambda c, v, z, m, u, o: u & c),
    (ValueError, lambda c, v, z, m, u, o: v + z),
    (ValueError, lambda c, v, z, m, u, o: m + v),
    (ValueError, lambda c, v, z, m, u, o: m / m),
    (TypeError, lambda c, v, z, m, u, o: operator.iadd(vc.new_int_register(), c)),
    (ValueError, lambda c, v, z, m, u, o: operator.imul(vc.new_uint_register(), -1)),
    (TypeError, lambda c, v, z, m, u, o: operator.iadd(vc.new_uint_register(), vc.new_int_register())),
    (ValueError, lambda c, v, z, m, u, o: operator.itruediv(vc.new_int_register(), 2)),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case: int) -> None:
    error, use = REFUSED[case]
    with vc.shader_context() as context:
        types = [Const[f32], Const[v3], Const[c64], Const[m2], Const[u32], Buff[f32]]
        variables = context.declare_input_arguments(types)
        with pytest.raises(error):
            use(*variables)


def test_truth_values_outside_of_rewritten_code() -> None:
    def body(a: Buff[f32]) -> None:
        if a[0] > 1:
            a[0] = 2.0

    with pytest.raises(ValueError):
        vd.shader(1, rewrite=False)(body)
    with vc.shader_context() as context:
        (a,) = context.declare_input_arguments([Buff[f32]])
        for use in (lambda: bool(a[0]), lambda: a[0] in [1.0], lambda: min(a[0], 1.0)):
            with pytest.raises(ValueError):
                use()
        for number in (int, float, range):
            with pytest.raises(TypeError):
                number(a[0])


def test_operators_with_numbers_on_the_left() -> None:
    def body(o: Any, i: Any, u: Any, f: Any) -> None:
        values = (
            *(8 // i, 7 % i, vc.to_int(2**u), 1 << i, 0xFF & i, 0xF0 | i, 5 ^ i, 256 >> i, 1 - i),
            *(vc.to_int(7 / f), vc.to_int(3 * f), -i, ~i, i // 4, (i + 1) * 3),
        )
        for at, value in enumerate(values):
            o[at] = value

    got = results(body, [Const[i32], Const[u32], Const[f32]], 3, 4, 2.5, kind=i32)
    expected = [8 // 3, 7 % 3, 16, 8, 3, 0xF3, 6, 32, -2, 2, 7, -3, ~3, 0, 12]
    assert got[: len(expected)].tolist() == expected


def test_in_place() -> None:
    def body(o: Any) -> None:
        f, i = vc.new_float_register(1.0), vc.new_int_register(5)
        same = f
        f += i
        f *= vc.new_uint_register(3)
        f -= 2
        f /= 2
        f **= 2
        assert same is f
        i <<= 2
        i |= 1
        i ^= 3
        i &= 0x1F
        i %= 7
        i //= 2
        o[0] = f
        o[1] = vc.to_float(i)
        o[2] += 2.0
        o[2] *= 4

    i = ((((5 << 2) | 1) ^ 3) & 0x1F) % 7 // 2
    assert results(body, [])[:3].tolist() == [64, i, 8]


def test_complex_numbers() -> None:
    z, w = 1 + 2j, 3 - 4j

    def body(o: Any, z: Any, w: Any) -> None:
        kept = z.conjugate().to_register()
        changed = z.to_register()
        changed.real = 5
        changed.imag += 1
        values = (
            *(z.conjugate(), z.conjugate() * 2, kept, z + 1, 1 - z, z * w, z / w, 1 / z, -z, changed),
            *(vc.mult_complex(z.conjugate(), w), vc.mult_complex(1 + 1j, w), vc.new_complex_register(2)),
            *(vc.new_register(vd.complex64, 1), vc.to_complex(1 + 2j), vc.complex_from_euler_angle(z.real)),
        )
        for at, value in enumerate(values):
            o[at] = value

    got = results(body, [Const[c64], Const[c64]], z, w, kind=c64)
    expected = [1 - 2j, 2 - 4j, 1 - 2j, z + 1, 1 - z, z * w, z / w, 1 / z, -z, 5 + 3j]
    expected += [z.conjugate() * w, (1 + 1j) * w, 2, 1, 1 + 2j, np.exp(1j)]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_vectors_and_matrices() -> None:
    def body(o: Any, v: Any, m: Any) -> None:
        r = vc.new_vec2_register()
        r.x = v.y
        r[vc.new_int_register(1)] = 9
        o[0] = r
        r[:] = 3
        o[1] = r
        o[2][0] = 4
        o[2].y = v.x * 2
        o[3] = m * v
        o[4] = (m @ m)[1]
        n = vc.new_mat2_register()
        n[0][1] = 5
        n[1] = m[0]
        o[5] = n[0]
        o[6] = n[1]
        o[7] = vc.new_register(vd.mat2, 3)[1]

    matrix = np.array([[1, 2], [3, 4]])
    got = results(body, [Const[v2], Const[m2]], (5, 6), matrix, count=8, kind=v2)
    product = matrix.T @ matrix.T
    assert got.tolist() == [[6, 9], [3, 3], [4, 10], [23, 34], product[:, 1].tolist(), [0, 5], [1, 2], [0, 3]]
