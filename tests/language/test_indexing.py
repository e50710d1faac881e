"""Buffers and shared arrays of several axes, swizzles, and attributes that do not exist."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    c64,
    f32,
    i16,
    i32,
    i64,
    iv2,
    iv4,
    m2,
    u32,
    uv3,
    v3,
    v4,
)

from .running import buffer_of, evaluate, filled, same


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (5, 9), (33, 65)])
def test_two_axes(shape: tuple[int, int]) -> None:
    @vd.shader("(source.shape[1], source.shape[0])", local_size=(8, 4))
    def turn(out: Buff[f32], source: Buff[f32]) -> None:
        at = vc.global_invocation_id()
        out[at.x, at.y] = source[at.y, at.x] * 2
        out[at.x, at.y] += 1

    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    out = vd.Buffer(shape[::-1], vd.float32)
    turn(out, vd.asbuffer(values))
    same(out.read(0), values.T * 2 + 1)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 1, 7), (3, 4, 1)])
def test_three_axes(shape: tuple[int, int, int]) -> None:
    @vd.shader("out.size")
    def number(out: Buff[i32], flat: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        at = vc.ravel_index(i, out.shape)
        out[at.x.to_dtype(i32), at.y, at.z.to_dtype(i16)] = (at.x * 10000 + at.y * 100 + at.z).to_dtype(i32)
        flat[i] = out[at].to_dtype(u32)

    out, flat = vd.Buffer(shape, vd.int32), vd.Buffer((np.prod(shape),), vd.uint32)
    number(out, flat)
    a, b, c = np.indices(shape)
    same(out.read(0), a * 10000 + b * 100 + c)
    same(flat.read(0), out.read(0).ravel())


def test_kinds_of_indices() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[i32], a: Buff[i32], row: Const[i64], column: Const[i32], at: Const[iv2]) -> None:
        out[0] = a[row, column]
        out[1] = a[1, column]
        out[2] = a[column, 2]
        out[3] = a[at]
        out[4] = a[np.int32(1), 1]
        out[5] = a[(row, 0)]
        out[6] = a[5]
        vc.atomic_add(a[0, 1], 1000)
        a[1, column] -= 7

    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    out, a = filled(7, i32), vd.asbuffer(data)
    kernel(out, a, 1, 0, (1, 2))
    same(out.read(0), [3, 3, 2, 5, 4, 3, 5])
    same(a.read(0), [[0, 1001, 2], [-4, 4, 5]])


def test_a_buffer_of_three_axes_is_not_indexed_by_two() -> None:
    @vd.shader("a.size")
    def kernel(a: Buff[f32]) -> None:
        a[vc.global_invocation_id().x, 0] = 1.0

    for _ in range(2):
        kernel(vd.Buffer((4, 1, 1), vd.float32), exec_size=4)
        for shape in ((2, 3, 4), (2, 3, 2, 2), (4, 1, 1, 1)):
            buffer = vd.Buffer(shape, vd.float32)
            with pytest.raises(ValueError, match=rf"kernel.*argument 'a'.*two axes.*{re.escape(str(shape))}"):
                kernel(buffer, exec_size=2)
            buffer.write(np.zeros(shape, np.float32))
            with pytest.raises(ValueError, match=rf"kernel.*argument 'a'.*two axes.*{re.escape(str(shape))}"):
                kernel.interpret(buffer, exec_size=2)


@pytest.mark.parametrize("padding", [0, 1])
def test_shared_arrays_of_two_axes(padding: int) -> None:
    @vd.shader("(out.shape[0], out.shape[1])", local_size=(8, 8), flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    def transpose(out: Buff[f32], source: Buff[f32]) -> None:
        tile = vc.shared_buffer(f32, (8, 8 + padding), "tile")
        local, at = vc.local_invocation_id(), vc.global_invocation_id()
        tile[local.y, local.x] = source[at.y, at.x]
        vc.barrier()
        corner = vc.workgroup_id() * 8
        out[corner.x + local.y, corner.y + local.x] = tile[local.x, local.y]

    values = np.random.default_rng(2).normal(size=(16, 24)).astype(np.float32)
    out = vd.Buffer((24, 16), vd.float32)
    transpose(out, vd.asbuffer(values))
    same(out.read(0), values.T)


def test_shared_arrays_of_three_axes_and_their_shape() -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[iv4], numbers: Buff[i32]) -> None:
        cube = vc.shared_buffer(i32, (2, 3, 4))
        with vc.for_block(24) as n:
            cube[n] = n
        numbers[0] = cube[1, 2, 3]
        numbers[1] = cube[vc.new_uint_register(1), 0, 2]
        out[0] = cube.shape
        out[1] = vc.shared_buffer(i32, 5).shape

    out, numbers = filled(2, iv4), filled(2, i32)
    kernel(out, numbers)
    same(numbers.read(0), [23, 14])
    same(out.read(0), [[2, 3, 4, 24], [5, 1, 1, 5]])


def test_wrong_indices_are_refused() -> None:
    with vc.shader_context() as context:
        a, f, x = context.declare_input_arguments([Buff[f32], Const[f32], Const[i32]])
        tile = vc.shared_buffer(f32, (4, 5))
        for error, message, index, buffer in (
            (IndexError, "index -1 is out of range for axis 0", (-1, 0), a),
            (IndexError, "index -2 is out of range for axis 1", (x, -2), a),
            (IndexError, "index -1 is out of range", -1, a),
            (ValueError, "one to three indices, got 4", (0, 0, 0, 0), a),
            (ValueError, "one to three indices, got 0", (), a),
            (TypeError, "must be an integer scalar, got float32", (x, f), a),
            (TypeError, "must be an integer, got 1.5", (x, 1.5), a),
            (TypeError, "must be an integer, got True", (x, True), a),
            (ValueError, "not by a slice", slice(None), a),
            (IndexError, "index 4 is out of range for axis 0 of 4", (4, 0), tile),
            (IndexError, "index 5 is out of range for axis 1 of 5", (x, 5), tile),
            (IndexError, "index 20 is out of range", 20, tile),
            (ValueError, r"3 indices do not fit .* \(4, 5\)", (1, 2, 3), tile),
            (TypeError, "got ivec4", vc.to_ivec4(1), a),
        ):
            with pytest.raises(error, match=message) as raised:
                buffer[index]
            assert "test_indexing.py:" in str(raised.value)
        for size in ((), (1, 2, 3, 4), (1.5, 2), (True, 2)):
            with pytest.raises(TypeError, match="shared_buffer"):
                vc.shared_buffer(f32, size)
        with pytest.raises(ValueError, match="at least 1"):
            vc.shared_buffer(f32, (3, 0))


# -- components


def test_swizzles_as_attributes() -> None:
    def body(v: Any) -> list[Any]:
        w = v.to_register()
        w.xy = v.yx
        w.zx = w.xz
        u = vc.new_vec4_register(0)
        u.yw = 5
        u.xyz = v + 1
        return [v.zyx, v.xx.x + v.y, w, u, v.zzzz]

    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    reversed_, total, swapped, partly, spread = evaluate(body, (v3, values))
    same(reversed_, values[:, ::-1])
    same(total, values[:, 0] + values[:, 1])
    same(swapped, values[:, [2, 0, 1]])
    same(partly, np.column_stack([values + 1, np.full(4, 5)]))
    same(spread, values[:, [2, 2, 2, 2]])


def test_size_is_the_count_of_elements() -> None:
    @vd.shader("out.size", local_size=8)
    def sizes(matrix: Buff[f32], out: Buff[i32], own: Const[i32]) -> None:
        i = vc.global_invocation_id().x
        tile = vc.shared_buffer(f32, (3, 5), "tile")
        tile[own] = 1.0
        table = vc.constant_array(np.zeros((2, 4), np.float32))
        out[i] = matrix.size * 10000 + tile.size * 100 + table.size

    out = vd.Buffer(9, vd.int32)
    for shape in ((7,), (3, 5), (2, 3, 4)):
        sizes(vd.Buffer(shape, vd.float32), out, 0)
        assert (out.read(0) == math.prod(shape) * 10000 + 1508).all()


def test_unknown_attributes_list_the_existing_ones() -> None:
    with vc.shader_context() as context:
        v, z, buffer, x = context.declare_input_arguments([Const[v3], Const[c64], Buff[v4], Const[f32]])
        for value, name, message in (
            (v, "w", "no component .w"),
            (v, "xw", "vec3 has no .xw; its components are xyz"),
            (v, "swizle", "did you mean .swizzle"),
            (v, "to_registr", "did you mean .to_register"),
            (v, "dtype", ".var_type is its type"),
            (x, "x", "no component .x"),
            (x, "xx", "float32 has no .xx; it has .*to_dtype"),
            (z, "re", "complex64 has no .re; did you mean .real"),
            (z, "x", "no component"),
            (v, "real", "only complex values have"),
            (buffer, "shap", "did you mean .shape"),
            (buffer, "x", "a whole buffer is not a value|no .x"),
        ):
            with pytest.raises((AttributeError, TypeError), match=message) as raised:
                getattr(value, name)
            assert "test_indexing.py:" in str(raised.value)
        assert not hasattr(v, "__array_interface__")
        assert not hasattr(v, "_private")
        register = v.to_register()
        for name, number, error in (("xx", 1, ValueError), ("xw", 1, ValueError), ("xy", v, ValueError)):
            with pytest.raises(error):
                setattr(register, name, number)
        with pytest.raises(AttributeError, match="'swizle'"):
            register.swizle = 1
        with pytest.raises(ValueError, match="cannot be assigned to"):
            v.xy = 1


def test_indices_by_vectors_of_every_integer_type() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], cube: Buff[f32], where: Buff[uv3]) -> None:
        i = vc.global_invocation_id().x
        out[i] = cube[where[i]]

    cube = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    where = np.random.default_rng(4).integers(0, (3, 4, 5), (50, 3))
    out = filled(50, f32)
    kernel(out, vd.asbuffer(cube), buffer_of(uv3, where))
    same(out.read(0), cube[tuple(where.T)])


TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
INDEXING: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("one index", lambda at, x: TABLE[at.x]),
    ("one of two", lambda at, x: TABLE[0, at.y]),
    ("the other of two", lambda at, x: TABLE[at.x, 0]),
    ("a vector", lambda at, x: TABLE[at.xy]),
    ("a float", lambda at, x: TABLE[x[0]]),
    ("a mask", lambda at, x: TABLE[at.x > 1]),
    ("a store", lambda at, x: TABLE.__setitem__(at.x, 1)),
    ("a list", lambda at, x: [1.0, 2.0, 3.0][at.x]),
    ("a tuple", lambda at, x: (1.0, 2.0)[at.x]),
    ("a slice of an array", lambda at, x: TABLE[at.x :]),
    ("a slice of a list", lambda at, x: [1.0, 2.0][: at.x]),
]


@pytest.mark.parametrize(("name", "use"), INDEXING, ids=[name for name, _ in INDEXING])
def test_arrays_of_the_host_are_not_indexed_by_gpu_values(name: str, use: Callable[[Any, Any], Any]) -> None:
    with vc.shader_context() as context:
        (x,) = context.declare_input_arguments([Buff[f32]])
        with pytest.raises((IndexError, TypeError), match="as a buffer") as caught:
            use(vc.global_invocation_id(), x)
        assert "vc.constant_array(" in str(caught.value)
        assert "test_indexing.py:" in str(caught.value)


def test_arrays_of_gpu_values() -> None:
    turn = np.array([[0, -1], [1, 0]])

    @vd.shader(1)
    def kernel(out: Buff[f32], x: Buff[f32], v: Const[v3], m: Const[m2]) -> None:
        pair = np.array([x[0], x[1]])
        out[0], out[1] = turn @ pair
        components = np.asarray(v)
        assert components.shape == (3,) and np.asarray(x[0]).shape == ()
        out[2] = components.sum()
        whole = np.empty((2, 3), object)
        whole[0] = v
        whole[1:] = x[1]
        out[3] = (whole[0] * whole[1])[2]
        assert np.asarray(m).shape == (2, 2)
        out[4] = np.trace(np.asarray(m))
        assert np.asarray(x).shape == ()

    out = filled(5, f32)
    kernel(out, vd.asbuffer(np.array([3, 5], np.float32)), (1, 2, 4), np.array([[1, 2], [3, 4]]))
    same(out.read(0), [-5, 3, 7, 20, 5])


TRANSPOSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("gid.y, gid.x", lambda x: x[vc.global_invocation_id().xy]),
    ("gid.y, gid.x", lambda x: x[vc.global_invocation_id().xy.to_dtype(iv2)]),
    ("gid.z, gid.y, gid.x", lambda x: x[vc.global_invocation_id()]),
    ("gid.z, gid.y, gid.x", lambda x: x[vc.global_invocation_id().xyz]),
    ("lid.y, lid.x", lambda x: vc.shared_buffer(f32, (8, 8))[vc.local_invocation_id().xy]),
    ("group.y, group.x", lambda x: x.__setitem__(vc.workgroup_id().xy, 1)),
]


@pytest.mark.parametrize(("meant", "use"), TRANSPOSED)
def test_position_vector_as_index_warns(meant: str, use: Callable[[Any], Any]) -> None:
    with pytest.warns(vd.KernelWarning, match=re.escape(f"Write buf[{meant}]")) as caught:
        vd.shader((2, 2), arg_type_annotations=[Buff[f32]])(lambda x: [use(x), None][1])
    assert caught[0].filename == __file__


def test_positions_that_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @vd.shader((2, 2))
        def kernel(x: Buff[f32], where: Buff[uv3]) -> None:
            at = vc.global_invocation_id()
            x[at.y, at.x] = 1
            x[at.x, at.y] = 1
            x[at.yx] = 1
            x[at.xz] = 1
            x[(at.xy + 1) // 2] = 1
            x[where[0].xy] = 1
            x[at.x] = 1


@pytest.mark.parametrize(
    "name",
    [
        *("global_invocation_id", "local_invocation_id", "local_invocation_index", "workgroup_id"),
        *("workgroup_size", "num_workgroups", "num_subgroups", "subgroup_id", "subgroup_size"),
        *("subgroup_invocation_id", "subgroup_eq_mask", "subgroup_ge_mask"),
    ],
)
def test_ids_cannot_be_used_in_another_kernel(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"only possible while a kernel is traced.*\(test_indexing\.py"):
        getattr(vc, name)()
