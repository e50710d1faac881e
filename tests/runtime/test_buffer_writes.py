"""What buffers and images take from the host: dtype and shape fit, or a cast is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

Write = Callable[..., Any]
SHAPE = (2, 3)


def write(buffer: Any, data: Any, **options: Any) -> None:
    buffer.write(data, **options)


def write_async(buffer: Any, data: Any, **options: Any) -> None:
    buffer.write_async(data, **options).wait()


def write_range(buffer: Any, data: Any, **options: Any) -> None:
    buffer.write_range(data, 0, **options)


WRITERS = [write, write_async, write_range]
WHOLE = [write, write_async]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("host", ["i4", "u4", "f8", "i8", "f2", "?", "M8[s]", "c8", "S4", ">i4"])
def test_another_dtype_is_refused(writer: Write, host: str) -> None:
    buffer = vd.asbuffer(np.full(SHAPE, 7, np.float32))
    with pytest.raises(ValueError, match=r"^data: expected .* of float32.*, got shape \(2, 3\) of "):
        writer(buffer, np.zeros(SHAPE, host))
    assert (buffer.read(0) == 7).all()


@pytest.mark.parametrize("writer", WHOLE)
@pytest.mark.parametrize("shape", [(3, 2), (1, 6), (6, 1), (2, 3, 1), (1, 2, 3), (5,), (7,), (), (2, 2)])
def test_another_shape_is_refused(writer: Write, shape: tuple[int, ...]) -> None:
    buffer = vd.Buffer(SHAPE, vd.float32)
    with pytest.raises(ValueError, match=r"^data: expected shape \(2, 3\) of float32, got shape \("):
        writer(buffer, np.zeros(shape, np.float32))


def test_refusals_name_an_alternative() -> None:
    buffer = vd.Buffer(SHAPE, vd.float32)
    for data, advice in (
        (np.zeros(SHAPE, np.int32), r'casting="same_kind" converts it, and data\.tobytes\(\) writes'),
        (np.zeros(SHAPE, np.float64), r'casting="same_kind" converts it$'),
        (np.zeros(SHAPE, np.complex64), r"data\.astype\(np\.float32\) converts it$"),
        (np.zeros((3, 2), np.float32), r"use data\.reshape\(\(2, 3\)\)$"),
    ):
        with pytest.raises(ValueError, match=advice):
            buffer.write(data)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("host", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_byte_order_is_converted(writer: Write, host: str) -> None:
    values = np.arange(6).reshape(SHAPE).astype(host)
    buffer: Any = vd.Buffer(SHAPE, values.dtype)
    writer(buffer, values.astype(values.dtype.newbyteorder(">")))
    assert buffer.read(0).dtype == values.dtype
    np.testing.assert_array_equal(buffer.read(0), values)
    with pytest.raises(ValueError, match="data: expected"):
        writer(buffer, values.astype(values.dtype.newbyteorder(">")), casting="no")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind"])
@pytest.mark.parametrize("kind", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16", "?"])
def test_casting_rules_are_numpys(writer: Write, casting: Any, kind: str) -> None:
    buffer: Any = vd.Buffer(SHAPE, np.dtype(kind))
    for host in ("i1", "u2", "i4", "i8", "f2", "f4", ">f8", "c8", "c16", "?"):
        values = (np.arange(6).reshape(SHAPE) % 2 + 1).astype(host)
        if np.can_cast(values.dtype, np.dtype(kind), casting):
            writer(buffer, values, casting=casting)
            np.testing.assert_array_equal(buffer.read(0), values.astype(kind))
        else:
            with pytest.raises(ValueError, match="data: expected"):
                writer(buffer, values, casting=casting)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("casting", ["unsafe", "bogus", None, 3])
def test_unknown_castings_are_refused(writer: Write, casting: Any) -> None:
    buffer = vd.Buffer(SHAPE, vd.float32)
    for data in (np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.int32), bytes(24)):
        with pytest.raises(ValueError, match=r"casting: expected one of .*astype"):
            writer(buffer, data, casting=casting)


@pytest.mark.parametrize("writer", WHOLE)
def test_layouts(writer: Write) -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    buffer = vd.Buffer(SHAPE, vd.float32)
    for data in (
        values[::2, ::2],
        values[:3, :2].T,
        values[1::-1, 2::-1],
        np.asfortranarray(values[:2, :3]),
        np.broadcast_to(values[0, :3], SHAPE),
        values[:2, :3].view(np.recarray),
        np.ndarray(SHAPE, np.float32, b"x" + values.tobytes()[:24], 1),
    ):
        writer(buffer, data)
        np.testing.assert_array_equal(buffer.read(0), data)


@pytest.mark.parametrize("writer", WRITERS)
def test_one_axis_has_all_elements(writer: Write) -> None:
    values = np.arange(6, dtype=np.float32)
    buffer = vd.Buffer(SHAPE, vd.float32)
    writer(buffer, values)
    np.testing.assert_array_equal(buffer.read(0), values.reshape(SHAPE))
    vectors = vd.Buffer(2, vd.vec3)
    writer(vectors, values)
    np.testing.assert_array_equal(vectors.read(0), values.reshape(2, 3))


@pytest.mark.parametrize("writer", WRITERS)
def test_elements_of_several_components(writer: Write) -> None:
    rng = np.random.default_rng(5)
    for kind, tail in ((vd.vec4, (4,)), (vd.mat3, (3, 3)), (vd.vec2, (2,))):
        values = rng.random((*SHAPE, *tail)).astype(np.float32)
        buffer: Any = vd.Buffer(SHAPE, kind)
        writer(buffer, values)
        np.testing.assert_array_equal(buffer.read(0), values)
        writer(buffer, values.astype(np.float64), casting="same_kind")
        np.testing.assert_array_equal(buffer.read(0), values)
        for wrong in (values.view(np.int32), values.astype(np.float64), values[..., :1]):
            with pytest.raises(ValueError, match="data: expected"):
                writer(buffer, wrong)


@pytest.mark.parametrize("writer", WRITERS)
def test_complex_numbers_are_pairs(writer: Write) -> None:
    values = (np.arange(6) - 2j).reshape(SHAPE).astype(np.complex64)
    pairs = values.view(np.float32).reshape(*SHAPE, 2)
    for kind in (vd.complex64, vd.vec2):
        for data in (values, pairs, values.astype(">c8")):
            buffer: Any = vd.Buffer(SHAPE, kind)
            writer(buffer, data)
            assert buffer.read(0).tobytes() == values.tobytes()
        with pytest.raises(ValueError, match=r"shape .* of float32"):
            writer(buffer, values.astype(np.complex128))
        writer(buffer, values.astype(np.complex128) * 2, casting="same_kind")
        assert buffer.read(0).tobytes() == (2 * values).tobytes()
    for kind, host in ((vd.ivec2, np.complex64), (vd.dvec2, np.complex64), (vd.vec4, np.complex64)):
        with pytest.raises(ValueError, match="data: expected"):
            writer(vd.Buffer(SHAPE, kind), np.zeros(SHAPE, host))
    with pytest.raises(ValueError, match=r"shape .* of float32"):  # which would be first components
        writer(vd.Buffer(SHAPE, vd.vec2), np.zeros(SHAPE, np.float64), casting="same_kind")


@pytest.mark.parametrize("writer", WRITERS)
def test_read_arrays_can_be_written_back(writer: Write) -> None:
    """Of complex32 and bfloat16, which NumPy lacks, it is rounded again."""
    step = 2.0**-7
    floats = np.array([[1, 1 + step / 2, 1 + step * 1.5], [-2, 2.0**127, 1 + 0.6 * step]], np.float32)
    rounded = np.array([[1, 1, 1 + 2 * step], [-2, 2.0**127, 1 + step]], np.float32)
    buffer = vd.Buffer(SHAPE, vd.bfloat16)
    for data in (floats, rounded, (rounded.view(np.uint32) >> 16).astype(np.uint16), floats.astype(">f4")):
        buffer.write(bytes(12))
        writer(buffer, data)
        np.testing.assert_array_equal(buffer.read(0), rounded)
    with pytest.raises(ValueError, match=r"float32 to be rounded or .* of uint16 with its bits"):
        writer(buffer, floats.astype(np.float64))
    writer(buffer, np.arange(6).reshape(SHAPE), casting="same_kind")
    np.testing.assert_array_equal(buffer.read(0), np.arange(6).reshape(SHAPE))
    halves = vd.Buffer(SHAPE, vd.complex32)
    numbers = (np.arange(6) / 3 - 2j).reshape(SHAPE).astype(np.complex64)
    pairs = np.stack([numbers.real, numbers.imag], -1).astype(np.float16)
    for given in (numbers, pairs):
        halves.write(bytes(24))
        writer(halves, given)
        np.testing.assert_array_equal(halves.read(0), pairs[..., 0] + 1j * pairs[..., 1].astype(np.float32))


def test_bfloat16_of_another_package() -> None:
    kind = pytest.importorskip("ml_dtypes").bfloat16
    values = np.arange(6).reshape(SHAPE).astype(kind)
    buffer = vd.asbuffer(values)
    assert buffer.var_type is vd.bfloat16
    np.testing.assert_array_equal(buffer.read(0), values.astype(np.float32))


@pytest.mark.parametrize("writer", WRITERS)
def test_data_that_is_not_numeric_is_refused(writer: Write) -> None:
    buffer = vd.Buffer(SHAPE, vd.float32)
    for data in ([[0.0] * 3] * 2, 1.0, np.float32(1), None, "text", vd.Buffer(SHAPE, vd.float32)):
        with pytest.raises(TypeError, match=r"data: expected a NumPy array or bytes.*np\.asarray"):
            writer(buffer, data)
    with pytest.raises(TypeError, match=r"data: .*Python objects"):
        writer(buffer, np.full(SHAPE, None))
    masked = np.ma.array(np.zeros(SHAPE, np.float32), mask=[[0, 1, 0], [0, 0, 0]])
    with pytest.raises(TypeError, match=r"data: .*mask.*filled"):
        writer(buffer, masked)
    with pytest.raises(TypeError, match=r"array: .*mask.*filled"):
        vd.asbuffer(masked)


def test_bytes_are_written_as_bytes() -> None:
    values = np.arange(6, dtype=np.float32)
    buffer = vd.Buffer(SHAPE, vd.float32)
    for data in (values.tobytes(), bytearray(values), memoryview(values), memoryview(values.view(np.int32))):
        buffer.write(bytes(24))
        buffer.write(data)
        np.testing.assert_array_equal(buffer.read(0).ravel(), values)
    with pytest.raises(ValueError, match="data: expected at most 24 bytes"):
        buffer.write(bytes(25))


def test_ranges() -> None:
    buffer = vd.asbuffer(np.zeros((4, 3), np.float32))
    buffer.write_range(np.arange(6, dtype=np.float32).reshape(2, 3), 3)  # two rows
    np.testing.assert_array_equal(buffer.read(0).ravel(), [0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0])
    buffer.write_range(np.array(9, np.float32), 11)
    assert buffer.read(0)[3, 2] == 9
    buffer.write_range(np.array([7, 8]), casting="same_kind")
    assert buffer.read(0)[0].tolist() == [7, 8, 0]
    vectors = vd.Buffer(4, vd.vec3)
    for wrong in (np.zeros((2, 2), np.float32), np.zeros(4, np.float32), np.zeros((3, 1), np.float32)):
        with pytest.raises(ValueError, match=r"data: expected shape \(n, 3\) of float32, got shape"):
            vectors.write_range(wrong)


def test_signals_and_spectra() -> None:
    """`write_real` and `write_fourier` cast, as they say; `write` takes the spectrum."""
    buffer = vd.RFFTBuffer((3, 6))
    real = np.arange(18, dtype=">i8").reshape(3, 6)
    buffer.write_real(real)
    np.testing.assert_array_equal(buffer.read_real(0), real)
    spectrum = (np.arange(12).reshape(3, 4) - 1j).astype(np.complex64)
    buffer.write(spectrum)
    np.testing.assert_array_equal(buffer.read_fourier(0), spectrum)
    for wrong in (spectrum.T, spectrum.astype(np.complex128), real.astype(np.float32)):
        with pytest.raises(ValueError, match="data: expected"):
            buffer.write(wrong)


def test_images() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    image = vd.Image2D((4, 6))
    for data in (values, values.astype(">f4"), values.reshape(-1), values[..., None], values.T.copy().T):
        image.write(np.zeros((4, 6), np.float32))
        image.write(data)
        np.testing.assert_array_equal(image.read(), values)
    pixels = (values * 10).astype(np.uint8)
    image.write(pixels, casting="safe")
    np.testing.assert_array_equal(image.read(), pixels)
    for wrong in (
        pixels,
        values.astype(np.int32),
        values.T,
        values.reshape(2, 12),
        values.astype(np.float64),
    ):
        with pytest.raises(ValueError, match=r"data: expected shape \(4, 6\) of float32, got shape"):
            image.write(wrong)
    with pytest.raises(ValueError, match="casting"):
        image.write(values, casting="unsafe")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "out",
    [
        np.empty(SHAPE, ">f4"),
        np.empty(SHAPE, np.int32),
        np.empty((3, 2), np.float32),
        np.empty(6, np.float32),
        np.empty((2, 6), np.float32)[:, ::2],
    ],
)
def test_read_checks_its_out_array(out: Any) -> None:
    buffer = vd.asbuffer(np.zeros(SHAPE, np.float32))
    for read in (lambda: buffer.read(0, out=out), lambda: buffer.read_range(0, 4, 0, out=out)):
        with pytest.raises(ValueError, match="out: expected"):
            read()


# ---- no elements


@pytest.mark.parametrize("shape", [0, (0,), (3, 0), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("kind", [vd.float32, vd.vec3, vd.complex64, vd.bfloat16, vd.complex32])
def test_empty_buffers(shape: Any, kind: Any) -> None:
    buffer = vd.Buffer(shape, kind)
    axes = (shape,) if isinstance(shape, int) else shape
    assert (buffer.shape, buffer.size, buffer.mem_size) == (axes, 0, 0)
    read = buffer.read(0)
    assert read.shape[: len(axes)] == axes and not read.size
    assert buffer.read().shape == (buffer.context.queue_count, *read.shape)
    for data in (read, b""):
        buffer.write(data)
        buffer.write_async(data).wait()
        buffer.write_range(data)
    assert buffer.read_async().result().shape == read.shape
    assert buffer.read_range(0, 0, 0).size == 0
    with pytest.raises(ValueError, match="at most 0 bytes"):
        buffer.write(bytes(kind.item_size))
    with pytest.raises(ValueError, match="data: expected shape"):
        buffer.write(np.zeros(1, np.float32))


def test_asbuffer_of_empty_arrays() -> None:
    array = np.zeros((0, 3), np.float32)
    for buffer in (vd.asbuffer(array), vd.Buffer((0, 3), vd.float32)):
        assert vd.sum(buffer).read(0) == 0
        assert vd.cumsum(buffer, 0).shape == (0, 3)
    assert vd.RFFTBuffer((0, 8)).read_real(0).shape == (0, 8)


@pytest.mark.parametrize(
    ("host", "shape", "var_type", "elements"),
    [
        ("f4", (5, 3), vd.vec3, (5,)),
        ("f8", (2, 5, 4), vd.vec4, (2, 5)),
        ("f4", (7, 2), vd.vec2, (7,)),
        ("c8", (7,), vd.vec2, (7,)),
        ("i4", (4, 3), vd.ivec3, (4,)),
        ("i8", (4, 3), vd.ivec3, (4,)),
        ("f4", (2, 3, 3), vd.mat3, (2,)),
        ("f4", (3,), vd.vec3, ()),
        ("f8", (2, 3), vd.float32, (2, 3)),
        ("i8", (2, 3), np.float32, (2, 3)),
        ("f4", (6,), vd.complex64, (6,)),
    ],
)
def test_a_buffer_of_the_dtype_that_is_asked_for(
    host: str, shape: tuple[int, ...], var_type: Any, elements: tuple[int, ...]
) -> None:
    values = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(host)
    buffer = vd.asbuffer(values, var_type)
    assert buffer.shape == elements
    assert buffer.var_type is vd.Buffer(1, var_type).var_type
    expected = np.stack([values.real, values.imag], -1) if host == "c8" and var_type is vd.vec2 else values
    np.testing.assert_array_equal(buffer.read(0), expected)


@pytest.mark.parametrize(
    ("values", "var_type", "message"),
    [
        (
            np.zeros((5, 4), "f4"),
            vd.vec3,
            r"array: elements of vec3 need last axes of shape \(3,\), got .*\(5, 4\)",
        ),
        (
            np.zeros(3, "f4"),
            vd.mat3,
            r"array: elements of mat3 need last axes of shape \(3, 3\), got .*\(3,\)",
        ),
        (np.zeros(3, "f4"), vd.int32, "data: expected shape .* of int32"),
    ],
)
def test_arrays_that_do_not_fit_the_dtype(values: Any, var_type: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vd.asbuffer(values, var_type)


def test_a_map_has_a_dtype_of_its_own() -> None:
    @vd.map
    def doubled(x: vd.float32) -> vd.float32:
        return x * 2

    mapped: Any = doubled(vd.asbuffer(np.ones(3, np.float32)))
    with pytest.raises(ValueError, match=r"^var_type: the dtype of a map is its return annotation"):
        vd.asbuffer(mapped, vd.float16)
