"""Maps called with their arguments: arrays that are computed where they are read."""

import pickle
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f16, f32, i8, i32, u32
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import parse_operand, parse_output

VALUES = np.linspace(-3, 3, 1003, dtype=np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal(1003).astype(np.float32)


@vd.map
def weighted(x: f32, w: f32) -> f32:
    return x * w


@vd.map
def moved(x: Buff[f32], by: Const[i32]) -> f32:
    return x[(vd.mapped_index() + by) % 1003]


@vd.map
def clipped(x: f32) -> f32:
    if x > 1.0:
        x[:] = 1.0
    return x


def evaluate(x, output_map=None):
    """Return what a plain copy kernel makes of an array, through Source and Sink."""
    source, to = parse_operand(x), None
    to = parse_output(output_map, x.var_type, x.shape)
    result = vd.Buffer(x.shape, to.out_type)
    count = len(source.source.annotations)

    def body(made, *rest):
        i = vc.global_invocation_id().x.to_register()
        value = source.source.value(rest[:count], i)
        to.sink.store(made, rest[count:], i, value)

    arguments = [
        ("made", Buff[to.out_type]),
        *zip(source.source.names, source.source.annotations, strict=True),
        *to.sink.parameters,
    ]
    kernel = trace_kernel("copy", body, arguments, 64, exec_size="made.size")
    kernel(result, *source.arguments, *to.arguments)
    return result.read(0)


def test_values_of_buffers_numbers_and_maps():
    x, w = vd.asbuffer(VALUES), vd.asbuffer(WEIGHTS)
    mapped = weighted(x, w)
    assert (mapped.shape, mapped.size, mapped.var_type, mapped.context) == (x.shape, 1003, f32, x.context)
    np.testing.assert_array_equal(evaluate(mapped), VALUES * WEIGHTS)
    np.testing.assert_array_equal(evaluate(weighted(x, 2.5)), VALUES * np.float32(2.5))
    np.testing.assert_array_equal(evaluate(weighted(weighted(x, w), x)), VALUES * WEIGHTS * VALUES)
    np.testing.assert_array_equal(evaluate(weighted(moved(x, 7), w)), np.roll(VALUES, -7) * WEIGHTS)
    np.testing.assert_array_equal(evaluate(clipped(x)), np.minimum(VALUES, 1))
    np.testing.assert_array_equal(evaluate(clipped(clipped(x))), np.minimum(VALUES, 1))


def test_arrays_of_one_element_broadcast():
    x, one = vd.asbuffer(VALUES), vd.asbuffer(np.float32([3]))
    assert weighted(one, x).shape == x.shape
    np.testing.assert_array_equal(evaluate(weighted(one, x)), 3 * VALUES)
    np.testing.assert_array_equal(evaluate(weighted(x, moved(one, 0))), 3 * VALUES)
    np.testing.assert_array_equal(evaluate(weighted(x, weighted(one, 2))), 6 * VALUES)
    np.testing.assert_array_equal(evaluate(weighted(one, one)), [9])


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.float16, np.uint8])
def test_elements_are_converted_to_the_parameters_type(kind):
    values = np.arange(1003).astype(kind)
    result = evaluate(weighted(vd.asbuffer(values), 0.5))
    np.testing.assert_array_equal(result, values.astype(np.float32) * 0.5)


def test_output_maps():
    @vd.map
    def relu(value: f32, bias: Buff[f32]) -> i32:
        return vc.max(value + bias[vd.mapped_index() % 3], 0.0).to_dtype(i32)

    @vd.map
    def plus(value: f32, other: f32) -> f32:
        return value + other

    @vd.map
    def halved(value: f32) -> f16:
        return (value / 2).to_dtype(f16)

    x, bias = vd.asbuffer(VALUES), vd.asbuffer(np.float32([0, 1, 2]))
    expected = np.maximum(VALUES + np.resize([0, 1, 2], 1003), 0).astype(np.int32)
    np.testing.assert_array_equal(evaluate(x, relu(bias)), expected)
    # Devices may round a product and a sum once or twice: whole numbers need no rounding.
    whole = np.arange(-501, 502, dtype=np.float32)
    n = vd.asbuffer(whole)
    np.testing.assert_array_equal(evaluate(n, plus(weighted(n, n))), whole + whole * whole)
    np.testing.assert_array_equal(evaluate(x, plus(1)), VALUES + 1)
    if vd.get_devices()[0].float_16_support:
        np.testing.assert_array_equal(evaluate(x, halved), (VALUES / 2).astype(np.float16))


def test_variables_of_graphs():
    graph = vd.CommandGraph()
    x = vd.asbuffer(VALUES)
    made = parse_operand(weighted(x, graph.bind_var("factor")))
    result = vd.Buffer(x.shape, f32)

    def body(into, *rest):
        i = vc.global_invocation_id().x.to_register()
        into[i] = made.source.value(rest, i)

    arguments = [("into", Buff[f32]), *zip(made.source.names, made.source.annotations, strict=True)]
    trace_kernel("scaled", body, arguments, 64, exec_size="into.size")(result, *made.arguments, graph=graph)
    for factor in (2.0, 3.0):
        graph.set_var("factor", factor)
        graph.submit()
        np.testing.assert_array_equal(result.read(0), VALUES * np.float32(factor))


def test_one_source_for_equal_maps():
    x, w = vd.asbuffer(VALUES), vd.asbuffer(WEIGHTS)
    assert parse_operand(weighted(x, w)).source is parse_operand(weighted(w, x)).source
    assert parse_operand(x).source is parse_operand(w).source
    assert hash(parse_operand(x).source) != hash(parse_operand(weighted(x, w)).source)
    assert parse_output(clipped, f32).sink is parse_output(clipped, f32).sink


def test_wrong_calls():
    @vd.map
    def real(x: f32) -> f32:
        return x

    @vd.map
    def nothing(x: f32):
        vc.comment("")

    @vd.map
    def constant(a: Const[f32]) -> f32:
        return a

    x = vd.asbuffer(VALUES)
    for call, error, words in [
        (lambda: weighted(x, x, x), TypeError, "takes 2 arguments by position, got 3"),
        (lambda: weighted(x, [1.0]), TypeError, r"argument 2: expected a vd.Buffer, a map"),
        (lambda: weighted(x, np.zeros(2006, np.float32)[::2]), TypeError, "from_dlpack"),
        (lambda: weighted(x, vd.Buffer(5, f32)), ValueError, r"argument 2: .*\(1003,\).* got \(5,\)"),
        (lambda: real(vd.Buffer(5, c64)), ValueError, "expected float32, got complex64"),
        (lambda: nothing(x), ValueError, "return annotation"),
        (lambda: constant(1.0), ValueError, "needs a buffer among its arguments"),
        (lambda: moved(weighted(x, x), 1), TypeError, "only a value parameter"),
        (lambda: parse_operand(VALUES), TypeError, r"x: expected a vd.Buffer .* vd.asbuffer"),
        (lambda: parse_output(weighted, f32), TypeError, r"output_map=weighted\(\.\.\.\)"),
        (lambda: parse_output(moved, f32), TypeError, "gets the value"),
        (lambda: parse_output(weighted(x, x), f32), TypeError, "output_map: expected a vd.map"),
        (lambda: parse_output(nothing, f32), ValueError, "return annotation"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_a_kernel_applies_a_map_by_calling_it():
    @vd.shader("data.size")
    def apply(data: Buff[f32]):
        i = vc.global_invocation_id().x
        data[i] = weighted(data[i], 2.0) + clipped(data[i].to_register())

    x = vd.asbuffer(VALUES)
    apply(x)
    np.testing.assert_array_equal(x.read(0), VALUES * 2 + np.minimum(VALUES, 1))


def test_buffers_of_no_elements():
    for shape in [(0,), (3, 0), (0, 2, 5)]:
        made = vd.asbuffer(np.zeros(shape, np.float32))
        assert (made.shape, made.size, made.mem_size) == (shape, 0, 0)
        assert made.read(0).shape == shape
        made.write(np.zeros(shape, np.float32))
        made.write_async(np.zeros(shape, np.float32)).wait()
        assert made.read_async(0).result().shape == shape

        @vd.shader("x.size")
        def fill(x: Buff[f32]):
            x[vc.global_invocation_id().x] = 1

        fill(made)  # a launch of no invocations
        assert made.read(0).shape == shape


def test_storage_only_types():
    @vd.map
    def narrow(x: i8, y: u32) -> i8:
        return x + y.to_dtype(i32)

    x = vd.asbuffer(np.arange(-50, 50, dtype=np.int8))
    np.testing.assert_array_equal(evaluate(narrow(x, 3)), np.arange(-47, 53))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
def test_small_integers_wrap_around_stored_or_not(kind: str) -> None:
    dtype: Any = getattr(vd, kind)
    info = np.iinfo(kind)
    host = np.array([info.max, info.max - 3, info.min, 1], kind)
    doubled = vd.map(lambda value: value + value, dtype, [dtype])
    mapped, right = doubled(vd.asbuffer(host)), host + host
    assert np.array_equal(vd.asbuffer(mapped).read(0), right)
    assert vd.sum(mapped).read(0) == right.sum()
    assert np.array_equal(vd.sort(mapped).read(0), np.sort(right))
    again = vd.map(lambda value: value + 0, vd.int32, [vd.int32])
    assert vd.sum(again(mapped)).read(0) == right.sum()
    # parameters convert as NumPy does
    wide = np.array([300, -5, 70_000, 2], np.int32)
    narrowed = vd.map(lambda value: value.to_dtype(vd.int32), vd.int32, [dtype])
    assert vd.asbuffer(narrowed(vd.asbuffer(wide))).read(0).tolist() == wide.astype(kind).tolist()
    total = vd.sum(vd.asbuffer(host), output_map=narrowed).read(0)
    assert total == host.sum().astype(kind)


# -- functions of mathematics

# of such arguments no device's own exponential has all digits
POWERS = np.random.default_rng(4).uniform(-80, 80, 300).astype(np.float32)
EXPONENTIALS = np.exp(POWERS.astype(np.float64))


@vd.map(precise_math=True)
def exponential(x: f32) -> f32:
    return vc.exp(x)


@vd.map
def half(x: f32) -> f32:
    return x / 2


@vd.map
def loose_cosine(x: f32) -> f32:
    return vc.cos(x)


def test_maps_are_precise_wherever_they_are_traced() -> None:
    x = vd.asbuffer(POWERS)

    def check(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found.read(0), expected, rtol=2.0**-22, atol=0)

    check(exponential(x), EXPONENTIALS)
    check(half(exponential(x)), EXPONENTIALS / 2)
    check(vd.flip(x, output_map=exponential()), EXPONENTIALS[::-1])
    check(vd.max(exponential(vd.asbuffer(POWERS.reshape(-1, 3))), axis=1), EXPONENTIALS.reshape(-1, 3).max(1))

    @vd.reduce.map_reduce(vd.reduce.SubgroupMax)
    @vd.map(precise_math=True)
    def largest(x: Buff[f32]) -> f32:
        return vc.exp(x[vd.mapped_index()])

    check(largest(x), EXPONENTIALS.max())

    @vd.map(precise_math=True)
    def wave(x: Buff[f32]) -> None:
        op = vd.fft.read_op()
        op.register[:] = vc.to_complex(vc.exp(x[op.io_index]), 0.0)

    out = vd.Buffer((300, 1), c64)
    vd.fft.fft(out, x, input_map=wave)
    check(out, EXPONENTIALS[:, None])


def test_precise_map_does_not_affect_the_rest_of_a_kernel() -> None:
    @vd.shader("x.size")
    def both(y: Buff[f32], x: Buff[f32]):
        i = vc.global_invocation_id().x
        y[i] = exponential(x[i]) + loose_cosine(x[i])

    code = both.get_src().code
    assert "f32_exp(" in code and "f32_cos(" not in code

    @vd.shader("x.size", precise_math=True)
    def precise(y: Buff[f32], x: Buff[f32]):
        y[vc.global_invocation_id().x] = loose_cosine(x[vc.global_invocation_id().x])

    assert "f32_cos(" in precise.get_src().code


def test_options_of_a_map() -> None:
    with pytest.raises(TypeError, match="precise_math: expected True or False, got 1"):
        vd.map(precise_math=1)  # type: ignore[call-overload]
    made = vd.map(return_type=f32, input_types=[f32])(lambda x: x * 2)
    assert made.return_type is f32 and not made.precise_math
    assert made(vd.asbuffer(VALUES)).read(0).tolist() == (VALUES * 2).tolist()
    assert pickle.loads(pickle.dumps(exponential)) is exponential


@vd.map
def of_the_invocation(x: f32) -> f32:
    return x * vc.global_invocation_id().x


def test_invocations_of_a_map_are_not_its_elements() -> None:
    x = vd.asbuffer(VALUES)
    for compute in (lambda m: m.read(0), vd.sum, vd.sort):
        with pytest.raises(vd.UsageError, match=r"vd.mapped_index\(\) is the index of the element"):
            compute(of_the_invocation(x))

    @vd.shader("x.size")
    def kernel(x: Buff[f32]):  # here it is the invocation of the kernel
        i = vc.global_invocation_id().x
        x[i] = of_the_invocation(x[i])

    kernel(x)
    assert x.read(0).tolist() == (VALUES * np.arange(1003, dtype=np.float32)).tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda x: weighted(x), "map 'weighted' takes 2 arguments, got 1; .* a map for an output_map="),
        (lambda x: weighted, "got the map 'weighted'; call it with its arguments"),
        (lambda x: evaluate, "got the function 'evaluate'; decorate it by @vd.map"),
    ],
)
def test_maps_that_are_not_called_in_full(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        vd.sum(given(vd.asbuffer(VALUES)))
