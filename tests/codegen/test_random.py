"""Random expression trees: always legal IR, always GLSL that compiles."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import Buff, Const, f16, f32, f64, i16, i32, i64, iv3, u32, uv2, v3

from .random_trees import evaluate, trees
from .tracing import compiled

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", [f32, f64, f16, v3])
@_SETTINGS
@given(tree=trees(integer=False))
def test_random_float_trees_compile(kind, tree):
    def body(data, x):
        r = data[0].to_register()
        value = evaluate(tree, [r, x], integer=False, gpu=True)
        assert value.var_type is kind
        data[1] = value
        with vc.while_block((value if dt.is_scalar(kind) else value.x) > 3):
            data[2] += value

    compiled(body, [Buff[kind], Const[kind]])


@pytest.mark.parametrize("kind", [i32, u32, i64, i16, iv3, uv2])
@_SETTINGS
@given(data=st.data())
def test_random_integer_trees_compile(kind, data):
    tree = data.draw(trees(integer=True, signed=dt.is_signed_dtype(kind)))

    def body(data, x):
        value = evaluate(tree, [data[0], x], integer=True, gpu=True)
        data[1] = value.to_dtype(kind)
        with vc.if_block((value if dt.is_scalar(value.var_type) else value[0]) > 3):
            data[2] += value.to_dtype(kind)

    compiled(body, [Buff[kind], Const[kind]])


_VALUES = st.sampled_from(
    [None, True, "x", 1, -1, 2.5, 1j, float("nan"), 1 << 70, (), [1], object(), b"", 1 << 31, f32]
)


@_SETTINGS
@given(
    st.sampled_from(
        [name for name in dir(vc) if callable(getattr(vc, name)) and name.islower() and name[0] != "_"]
    ),
    st.lists(st.one_of(_VALUES, st.sampled_from(["@s", "@v", "@b", "@c"])), max_size=4),
)
def test_wrong_calls_raise_documented_errors_only(name, args):
    skipped = {"shader_context", "set_builder", "get_builder", "set_codegen_backend", "get_codegen_backend"}
    if name in skipped or name.startswith("set_shader"):
        return
    function = getattr(vc, name)
    if isinstance(function, type):
        return
    with vc.shader_context() as context:
        b, v, s, c = context.declare_input_arguments([Buff[f32], Const[v3], Const[f32], Const[dt.complex64]])
        known = {"@s": s, "@v": v, "@b": b, "@c": c}
        values = [known.get(arg, arg) if isinstance(arg, str) else arg for arg in args]
        try:
            function(*values)
        except TypeError as error:
            own = type(error).__module__.startswith("vkdispatch")
            assert own or "argument" in str(error), f"{name}{tuple(values)}: {error}"
        except (ValueError, RuntimeError, IndexError, AttributeError) as error:
            assert type(error).__module__.startswith("vkdispatch"), f"{name}{tuple(values)}: {error!r}"
