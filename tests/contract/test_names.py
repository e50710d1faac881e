"""Keyword names and defaults of 0.1.0: programs that call by keyword, or leave an argument out."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.base.dtype as dt
import vkdispatch.codegen as vc
from tests.contract.signatures import signatures
from vkdispatch.base.dtype import DType
from vkdispatch.fft.functions import ensure_supported_complex_precision

ROWS = dict(signatures())
# Our defaults that have another form and the same meaning, which the tests below check.
OTHERWISE = {
    *(("vd.Sampler", name) for name in ("mag_filter", "min_filter", "mip_filter")),
    *(("vd.Image.sample", name) for name in ("mag_filter", "min_filter", "mip_filter")),
    ("vd.initialize", "log_level"),
    ("vc.print", "separator"),
    ("vd.CommandGraph.record_shader", "uniform_values"),
    ("vd.CommandGraph.record_shader", "pc_values"),
}


def _resolve(name: str) -> Callable[..., Any]:
    head, *path = name.split(".")
    value: Any = vd if head == "vd" else vc
    for part in path:
        if inspect.ismodule(value) and not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    assert callable(value)
    return value


def _text(default: object) -> str:
    return default.__name__ if isinstance(default, type) else default_text(default)


def default_text(default: object) -> str:
    """Write a default as the table does: enumerations by their names, the rest as Python would."""
    return str(default) if isinstance(default, tuple(ENUMERATIONS)) else repr(default)


ENUMERATIONS = (vd.Filter, vd.AddressMode, vd.BorderColor, vd.LogLevel)


@pytest.mark.parametrize("name", ROWS)
def test_parameters_of_0_1_0(name: str) -> None:
    """Each has its name and place, and its default; what we added is optional."""
    expected = ROWS[name].parameters
    ours = [p for p in inspect.signature(_resolve(name)).parameters.values() if p.name != "self"]
    by_name = {p.name: p for p in ours}
    variadic = {p.name for p in ours if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    named = [p.name for p in ours if p.name not in variadic]
    wanted = [p.name for p in expected.values() if p.kind is not p.VAR_POSITIONAL]
    assert [each for each in named if each in wanted] == wanted
    # `buffer, *more, graph=...` takes what follows `buffer` by position too: see the test of transforms
    places = [p for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD or p.name in wanted]
    if not variadic:
        assert [p.name for p in places][: len(wanted)] == wanted
    for parameter in expected.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            assert any(p.kind is p.VAR_POSITIONAL for p in ours)
            continue
        mine = by_name[parameter.name]
        assert mine.kind is not mine.POSITIONAL_ONLY
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not variadic:
            assert mine.kind is mine.POSITIONAL_OR_KEYWORD
        if parameter.default is parameter.empty or (name, parameter.name) in OTHERWISE:
            continue
        assert mine.default is not mine.empty
        if parameter.default != "...":
            assert _text(mine.default) == parameter.default
    assert all(by_name[each].default is not inspect.Parameter.empty for each in set(named) - set(wanted))


# ---- the kernel language ---------------------------------------------------------------------------

# What functions of GPU values are called with here; float32 where nothing is said.
TYPES: dict[str, DType] = {
    **dict.fromkeys(("determinant", "inverse", "transpose", "matrix_comp_mult"), vd.mat2),
    **dict.fromkeys(("outer_product", "length", "normalize", "distance", "dot"), vd.vec2),
    "cross": vd.vec3,
    "mult_complex": vd.complex64,
    "int_bits_to_float": vd.int32,
    "uint_bits_to_float": vd.uint32,
    **{name[3:]: vd.uint32 for name in ROWS if name.startswith("vc.subgroup_")},
}
# Those are called otherwise.
STATEMENTS = """atomic_add comment else_if_block if_block while_block print printf ravel_index unravel_index
return_statement scope_block set_builder set_codegen_backend set_shader_print_line_numbers shader_context
shared_buffer str_to_dtype to_dtype""".split()  # noqa: SIM905
OF_VALUES = [
    name[3:]
    for name in ROWS
    if name.startswith("vc.")
    and name[3:4].islower()
    and "register" not in name
    and name[3:] not in STATEMENTS
]


def _value(kind: DType, text: str) -> vc.ShaderVariable:
    return vc.str_to_dtype(var_type=kind, value=text, lexical_unit=True)


@pytest.mark.parametrize("name", OF_VALUES)
def test_values_by_keyword(name: str) -> None:
    """The same kernel comes of names and of places."""
    kind, function = TYPES.get(name, vd.float32), getattr(vc, name)
    texts = []
    for by_name in (True, False):
        with vc.shader_context() as context:
            values = {each: _value(kind, each) for each in ROWS[f"vc.{name}"].parameters}
            result = function(**values) if by_name else function(*values.values())
            vc.new_register(result.var_type)[:] = result
        texts.append(context.builder.contents)
    assert texts[0] == texts[1] and all(each in texts[0] for each in values)


def test_statements_by_keyword() -> None:
    with vc.shader_context() as context:
        (numbers,) = context.declare_input_arguments([vc.Buff[vc.u32]], names=["numbers"])
        count = vc.atomic_add(mem=numbers[0], y=2)
        with vc.if_block(arg=count == 3):
            vc.comment(comment="first", preceding_new_line=False)
        with vc.else_if_block(arg=count == 4):
            vc.printf(format="four")
        with vc.while_block(arg=numbers[1] < 5):
            vc.atomic_add(numbers[1], y=vc.to_dtype(vd.uint32, numbers[2]))
        shared = vc.shared_buffer(var_type=vd.float32, size=7, var_name="seven")
        shared[vc.unravel_index(index=vc.ravel_index(index=count, shape=(2, 3)), shape=(2, 3))] = 1.5
        context.builder.append_contents(contents="// raw")
        more = context.builder.shared_buffer(var_type=vd.uint32, size=2, var_name="more")
        more[0] = 1
        text = context.builder.contents
    for part in ("atomicAdd", "== 3", "first", "== 4", "while", "seven[", "// raw", "more["):
        assert part in text


def test_declarations_by_keyword() -> None:
    builder = vc.ShaderBuilder(flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    vc.set_builder(builder=builder)
    try:
        (a,) = builder.declare_shader_arguments(type_annotations=[vc.Buff[vc.f32]], names=["a"])
        a[0] = 2.0
        (binding,) = builder.binding_list
        assert (binding.dtype, binding.name, binding.dimension) == (vd.float32, "buf0", 0)
        kernel = vd.make_shader_function(description=builder.build(name="two"), local_size=(1, 1, 1))
    finally:
        vc.set_builder(builder=None)
    out = vd.Buffer(shape=(1,), var_type=vd.float32)
    kernel(out, workgroups=1)
    assert out.read(index=0)[0] == 2.0


def test_line_numbers_by_keyword() -> None:
    before = vc.get_shader_print_line_numbers()
    try:
        vc.set_shader_print_line_numbers(value=True)
        assert vc.get_shader_print_line_numbers()
    finally:
        vc.set_shader_print_line_numbers(value=before)


# ---- buffers, transforms, dtypes -------------------------------------------------------------------


def test_real_buffers_by_keyword() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    buffer = vd.asrfftbuffer(data=a, fourier_type=vd.complex64)
    buffer.write_real(data=2 * a, index=0)
    vd.fft.rfft(buffer=buffer)
    spectrum = buffer.read_fourier(index=0)
    assert np.allclose(spectrum, np.fft.rfft(2 * a), atol=1e-4)
    buffer.write_fourier(data=spectrum * 3)
    vd.fft.irfft(buffer=buffer, normalize=True)
    assert np.allclose(buffer.read_real(index=0), 6 * a, atol=1e-4)


@pytest.mark.parametrize("name", ["fft2", "fft3", "ifft", "ifft2", "ifft3"])
def test_transforms_by_keyword_and_by_position(name: str) -> None:
    shape = (4, 3, 8)
    a = (np.random.default_rng(3).standard_normal((2, *shape))).astype(np.float32)
    data = (a[0] + 1j * a[1]).astype(np.complex64)
    rule = {"fft3": np.fft.fftn, "ifft3": np.fft.ifftn}.get(name) or getattr(np.fft, name)
    buffer, graph = vd.asbuffer(data), vd.CommandGraph()
    function = getattr(vd.fft, name)
    function(buffer=buffer, graph=graph, print_shader=False)
    graph.submit()
    assert np.allclose(buffer.read(0), rule(data), atol=1e-4)
    again = vd.asbuffer(data)
    # by position, up to what is the same in all of them
    function(again, None, False)
    assert np.allclose(again.read(0), rule(data), atol=1e-4)


def test_precision_is_checked_by_keyword() -> None:
    with pytest.raises(ValueError, match="input_type: expected"):
        ensure_supported_complex_precision(dtype=vd.float32, role="input_type")


def test_dtypes_by_keyword() -> None:
    assert dt.to_vector(dtype=vd.float32, count=3) is vd.vec3
    assert dt.cross_type(dtype1=vd.int32, dtype2=vd.float32) is vd.float32
    assert dt.from_numpy_dtype(dtype=np.float16) is vd.float16
    assert dt.to_numpy_dtype(shader_type=vd.uint16) is np.uint16
    assert dt.is_dtype(in_type=vd.vec2) and not dt.is_dtype(in_type=int)
    assert dt.is_vector(dtype=vd.vec2) and dt.vector_size(dtype=vd.vec2) == 2
    assert dt.complex_from_float(dtype=vd.float64) is vd.complex128


# ---- defaults --------------------------------------------------------------------------------------


def test_filters_left_out_are_linear_for_floats() -> None:
    # halfway between two texels, where NEAREST gives one of them
    image = vd.Image1D(shape=4, dtype=vd.float32)
    image.write(data=np.array([0, 2, 8, 4], np.float32))

    @vd.shader(exec_size=1)
    def halfway(out: vc.Buff[vc.f32], texels: vc.Img1[vc.f32]) -> None:  # type: ignore[valid-type]
        out[0] = texels.sample(coord=vc.to_float(0.5)).x
        out[1] = texels.sample(coord=vc.to_float(1.5)).x

    linear = vd.Filter.LINEAR
    for sampler in (
        image.sample(),
        vd.Sampler(image),
        image.sample(mag_filter=linear, min_filter=linear, mip_filter=linear),
    ):
        out = vd.buffer_f32(shape=2)
        halfway(out, sampler)
        assert np.allclose(out.read(0), [1, 5], atol=0.05)


def test_the_separator_left_out_is_a_space(capsys: pytest.CaptureFixture[str]) -> None:
    @vd.shader(exec_size=1)
    def say(n: vc.Const[vc.u32]) -> None:  # type: ignore[valid-type]
        vc.print("a", n)
        vc.print("a", n, separator="-")

    say(3)
    vd.queue_wait_idle()
    assert capsys.readouterr().out.splitlines() == ["a 3", "a-3"]


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("vd.initialize()", "warning"),
        ("vd.initialize(log_level=vd.LogLevel.INFO)", "info warning"),
        ("vd.initialize(log_level=vd.LogLevel.INFO); vd.initialize()", "info warning"),
        ("vd.set_log_level(vd.LogLevel.INFO); vd.initialize()", "info warning"),
        ("vd.set_log_level(level=vd.LogLevel.ERROR); vd.get_devices()", ""),
    ],
)
def test_the_log_level_left_out_is_warning(run_python: Callable[..., Any], before: str, shown: str) -> None:
    said = run_python(
        f'import vkdispatch as vd; {before}; vd.log_info(text="info"); vd.log_warning("warning")'
    )
    assert not said.returncode
    assert [word for word in ("info", "warning") if f"] {word}" in said.stdout] == shown.split()
