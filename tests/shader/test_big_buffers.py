"""Buffers beyond what a binding reaches, and beyond what 32 bits count."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Img2, Var, f32, i32, m4, u8, u32, u64, uv4
from vkdispatch.codegen.annotations import buffer
from vkdispatch.compiler.forms import Variant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.shader import building

_ROOM = 512 << 20
_ADDRESSED = {Variant(addressed=True), Variant(addressed=True, folded=True)}


def _beyond() -> int:
    """Bytes, a multiple of 64, that no binding reaches; skips where those are too many for a test."""
    limit = vd.get_context().max_storage_buffer_range
    if limit > _ROOM:
        pytest.skip(f"this device binds {limit} bytes")
    return (limit + (64 << 20)) // 64 * 64


@pytest.fixture(autouse=True)
def _as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every launch get the form that it asks for, whatever the environment says."""
    monkeypatch.setattr(building, "_FORCED", frozenset())


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that gives every launch of new kernels these forms."""

    def force(text: str) -> None:
        forms = frozenset(text.split(","))
        if forms & {"wide", "addressed"}:
            _need_addresses()
        monkeypatch.setattr(building, "_FORCED", forms)

    yield force


def _need_addresses() -> None:
    if not building.can_address(vd.get_context()):
        pytest.skip("the device lacks bufferDeviceAddress or 64-bit integers")


def _forms(kernel: Any) -> set[Variant]:
    return {variant for _, variant in kernel._built}


@pytest.mark.parametrize(
    "kind",
    [
        vd.float32,
        vd.uint8,
        vd.int8,
        vd.bool_,
        vd.bfloat16,
        vd.vec3,
        vd.vec4,
        vd.float64,
        vd.complex64,
        vd.int64,
    ],
    ids=lambda kind: kind.name,
)
def test_far_elements_of_every_kind(kind: Any) -> None:
    count = _beyond() // kind.item_size

    @vd.shader("places.size")
    def move(data: Buff[kind], places: Buff[u32], step: Const[u32]) -> None:  # type: ignore[valid-type]
        tid = vc.global_invocation_id().x
        data[places[tid] + step] = data[places[tid]]

    buffer = vd.Buffer(count, kind)
    rng = np.random.default_rng(1)
    places = np.array([0, 7, count // 2, count - 40, count - 1 - 16], np.uint32)
    written = []
    for place in places:
        value = buffer.read_range(int(place), int(place) + 1, 0)
        value = rng.integers(1, 100, value.shape).astype(value.dtype)
        if kind is vd.bool_:
            value = np.ones_like(value)
        buffer.write_range(value, int(place))
        written.append(buffer.read_range(int(place), int(place) + 1, 0))
    move(buffer, vd.asbuffer(places), 16)
    for place, value in zip(places, written, strict=True):
        np.testing.assert_array_equal(buffer.read_range(int(place) + 16, int(place) + 17, 0), value)
    assert _forms(move) <= _ADDRESSED


def test_all_elements_by_index() -> None:
    count = _beyond() // 16

    @vd.shader("data.size")
    def fill(data: Buff[uv4], factor: Const[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid] = vc.to_dtype(uv4, tid * factor) + vc.to_uvec4(0, 1, 2, 3)

    data = vd.Buffer(count, vd.uvec4)
    fill(data, 2654435761)
    expected = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    for axis in range(4):
        np.testing.assert_array_equal(data.read(0)[:, axis], expected + np.uint32(axis))


def test_small_and_large_take_turns() -> None:
    @vd.shader(8)
    def count_up(data: Buff[u32], add: Const[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[data.shape.w - 8 + tid] += tid + add

    small, large = vd.asbuffer(np.zeros(8, np.uint32)), vd.Buffer(_beyond() // 4, vd.uint32)
    large.write_range(np.zeros(8, np.uint32), large.size - 8)
    for turn in range(3):
        count_up(small, turn)
        count_up(large, turn)
    expected = 3 * np.arange(8) + 3
    np.testing.assert_array_equal(small.read(0), expected)
    np.testing.assert_array_equal(large.read_range(large.size - 8, large.size, 0), expected)
    assert _forms(count_up) == {Variant(), Variant(addressed=True)}
    # both are launched without a look at the arguments from now on
    assert count_up._kernel.latest().fast_paths["exec_size"].run((large, 1), count_up._kernel.size, None)
    assert count_up._kernel.latest().fast_paths["exec_size"].run((small, 1), count_up._kernel.size, None)
    np.testing.assert_array_equal(
        large.read_range(large.size - 8, large.size, 0), expected + np.arange(8) + 1
    )


def test_dependent_launches_are_ordered_and_atomics_count() -> None:
    large = vd.Buffer(_beyond() // 4, vd.uint32)
    far = large.size - 5

    @vd.shader(1000)
    def add(data: Buff[u32], place: Const[u32]) -> None:
        vc.atomic_add(data[place], 1)

    @vd.shader(1)
    def double(data: Buff[u32], place: Const[u32]) -> None:
        data[place] = data[place] * 2

    large.write_range(np.zeros(1, np.uint32), far)
    before = vd.get_context()._native.statistics()["barriers"]
    for _ in range(3):
        add(large, far)
        double(large, far)
    assert large.read_range(far, far + 1, 0) == 2000 + 4000 + 8000
    assert vd.get_context()._native.statistics()["barriers"] - before >= 5


def test_graphs_replay_with_large_buffers() -> None:
    large = vd.Buffer(_beyond() // 4, vd.float32)
    other = vd.asbuffer(np.arange(4, dtype=np.float32))

    @vd.shader(4)
    def store(data: Buff[f32], values: Buff[f32], scale: Var[f32]) -> None:
        tid = vc.global_invocation_id().x
        data[data.shape.w - 4 + tid] = values[tid] * scale

    @vd.shader(4)
    def add(data: Buff[f32], amount: Const[f32]) -> None:
        data[data.shape.w - 4 + vc.global_invocation_id().x] += amount

    graph = vd.CommandGraph()
    store(large, other, graph.bind_var("scale"), graph=graph)
    add(large, 0.5, graph=graph)
    for scale in (1.0, 2.0, 2.0, 2.0, 3.0):
        graph.set_var("scale", scale)
        graph.submit()
        np.testing.assert_array_equal(
            large.read_range(large.size - 4, large.size, 0), np.arange(4) * scale + 0.5
        )


def test_images_and_large_buffers_together() -> None:
    picture = np.arange(24, dtype=np.float32).reshape(6, 4)
    image = vd.Image2D(picture.shape, vd.float32)
    image.write(picture)
    large = vd.Buffer(_beyond() // 4, vd.float32)

    @vd.shader(24)
    def gather(data: Buff[f32], picture: Img2[f32]) -> None:
        tid = vc.global_invocation_id().x
        texel = picture.sample(vc.to_vec2(tid % 4, tid // 4)).x
        data[data.shape.w - 24 + tid] = texel

    gather(large, image.sample(mag_filter=vd.Filter.NEAREST))
    np.testing.assert_array_equal(large.read_range(large.size - 24, large.size, 0), picture.reshape(-1))


def test_checks_and_prints_know_large_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    large = vd.Buffer((_beyond() // 4096, 1024), vd.float32)

    @vd.shader(2, check="bounds")
    def reach(data: Buff[f32], beyond: Const[u32]) -> None:
        tid = vc.global_invocation_id().x
        data[data.shape.w - 2 + tid + beyond] = 1.5
        vc.print("stored at", data.shape.w - 2 + tid + beyond)

    reach(large, 0)
    assert capsys.readouterr().out == f"stored at {large.size - 2}\nstored at {large.size - 1}\n"
    with pytest.raises(IndexError, match=rf"index {large.size} is out of bounds .*invocation \(1, 0, 0\)"):
        reach(large, 1)
    assert (large.read_range(large.size - 2, large.size, 0) == 1.5).all()


def test_copies_of_large_buffers() -> None:
    count = _beyond() // 16
    source, target = vd.Buffer(count, vd.uvec4), vd.Buffer(count, vd.uvec4)
    data = np.arange(count * 4, dtype=np.uint32).reshape(count, 4)
    source.write(data)
    vd.copyto(target, source)
    np.testing.assert_array_equal(target.read(0), data)


def test_hand_written_kernels_say_what_they_reach() -> None:
    large = vd.Buffer(_beyond() // 4, vd.float32)
    kernel = vd.glsl_kernel(
        "#version 450\nlayout(local_size_x = 1) in;\n"
        "layout(set = 0, binding = 0) buffer Data { float data[]; };\nvoid main() { data[0] = 1.0; }",
        {"data": Buff[f32]},
        exec_size=1,
    )
    with pytest.raises(ValueError, match=r"argument 'data'.*hand-written kernels .* reach \d+ bytes"):
        kernel(large)


def test_a_device_without_addresses_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    @vd.shader(1)
    def touch(data: Buff[f32]) -> None:
        data[0] = 1.0

    monkeypatch.setattr(building, "can_address", lambda context: False)
    with pytest.raises(ValueError, match=r"argument 'data'.*bytes; kernels .* reach"):
        touch(vd.Buffer(_beyond() // 4, vd.float32))


def test_two_queues_have_their_own_addresses(run_python: Callable[..., Any]) -> None:
    done = run_python(
        "import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc, tempfile, os, sys, importlib.util\n"
        "from pathlib import Path\n"
        "vd.make_context(queue_counts=2)\n"
        "path = Path(tempfile.mkdtemp()) / 'kernels.py'\n"
        "path.write_text('''\n"
        "import vkdispatch as vd, vkdispatch.codegen as vc\n"
        "from vkdispatch.codegen.abbreviations import Buff, Const, Img2, Var, f32, i32, u8, u32, u64, uv4\n"
        "@vd.shader('data.size')\n"
        "def add(data: Buff[u32], more: Const[u32]):\n"
        "    data[vc.global_invocation_id().x] += more\n"
        "''')\n"
        "spec = importlib.util.spec_from_file_location('kernels', path)\n"
        "kernels = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(kernels)\n"
        "data = vd.Buffer(5, vd.uint32)\n"
        "data.write(np.arange(5, dtype=np.uint32), 0)\n"
        "data.write(np.arange(5, dtype=np.uint32) * 10, 1)\n"
        "kernels.add(data, 3)\n"
        "print(data.read().tolist())\n",
        VKDISPATCH_FORCE_VARIANT="addressed",
        VKDISPATCH_DEBUG="1",
    )
    assert done.stdout.strip().endswith("[[3, 4, 5, 6, 7], [3, 13, 23, 33, 43]]"), done.stderr


# -- 64-bit positions ------------------------------------------------------------------------------


def test_2_to_the_31_elements() -> None:
    count = 1 << 31
    try:
        data = vd.Buffer(count, vd.uint8)
    except MemoryError as error:
        pytest.skip(str(error))

    @vd.shader(6)
    def mark(data: Buff[u8], lengths: Buff[u64]) -> None:
        tid = vc.global_invocation_id().x
        data[data.shape.w - 1 - tid] = tid + 100
        lengths[tid] = data.shape.w.to_dtype(vd.uint64)

    lengths = vd.Buffer(6, vd.uint64)
    mark(data, lengths)
    np.testing.assert_array_equal(data.read_range(count - 6, count, 0), 105 - np.arange(6))
    np.testing.assert_array_equal(lengths.read(0), count)
    assert _forms(mark) == {Variant(addressed=True, wide=True)}


def test_ids_beyond_32_bits_ask_for_wide_ids() -> None:
    _need_addresses()
    context = vd.get_context()

    def choose(extent: Any, in_groups: bool = False) -> Variant:
        return building.choose_variant(
            "kernel", extent, in_groups, (256, 1, 1), building.UNCOARSENED, context
        )

    assert not choose(((1 << 32) - 256, 1, 1)).wide
    for extent in ((1 << 32) + 1, 1 << 35):
        wide = choose((extent, 1, 1))
        assert wide.wide and wide.addressed
    assert choose((1 << 28, 1, 1), in_groups=True).wide
    with pytest.raises(ValueError, match="a launch has at most"):
        choose((1 << 44, 1, 1))
    with pytest.raises(ValueError, match="more invocations"):
        choose((1 << 50, 1, 1))


@pytest.mark.parametrize("form", ["wide", "wide,coarse"])
def test_wide_kernels_of_small_buffers(forced: Callable[[str], None], form: str) -> None:
    forced(form)

    @vd.shader("data.size")
    def mix(data: Buff[u32], other: Buff[i32], steps: Const[i32]) -> None:
        tid = vc.global_invocation_id().x
        i = tid.to_dtype(vd.int32) - 2
        hashed = (tid * 2654435761) ^ (tid >> 3)
        data[tid] = hashed + other[vc.clamp(i * steps, 0, other.shape.w - 1)].to_dtype(vd.uint32)

    for count in (1, 7, 256, 1000, 4099):
        data, other = vd.Buffer(count, vd.uint32), np.arange(5, dtype=np.int32) * 11
        mix(data, vd.asbuffer(other), 3)
        ids = np.arange(count, dtype=np.uint32)
        hashed = (ids * np.uint32(2654435761)) ^ (ids >> np.uint32(3))
        reached = other[np.clip((np.arange(count) - 2) * 3, 0, 4)].astype(np.uint32)
        np.testing.assert_array_equal(data.read(0), hashed + reached)
    assert all(variant.wide for variant in _forms(mix))
    assert any(variant.coarse > 1 for variant in _forms(mix)) == ("coarse" in form)


# -- parts of buffers ------------------------------------------------------------------------------


def test_parts_are_read_and_written() -> None:
    data = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    buffer = vd.asbuffer(data)
    np.testing.assert_array_equal(buffer.read_range(7, 19, 0), np.arange(7, 19))
    assert buffer.read_range(5, 5, 0).shape == (0,)
    assert buffer.read_range(0, 60).shape == (vd.get_context().queue_count, 60)
    buffer.write_range(np.array([[1, 2], [3, 4]], np.float32), 58 - 2)
    buffer.write_range(b"", 60)
    buffer.write_range(np.float32([9]).tobytes())
    data.reshape(-1)[[0, 56, 57, 58, 59]] = 9, 1, 2, 3, 4
    np.testing.assert_array_equal(buffer.read(0), data)
    out = np.empty(3, np.float32)
    assert buffer.read_range(56, 59, 0, out) is out and out.tolist() == [1, 2, 3]


def test_parts_of_elements_with_components() -> None:
    vectors = vd.asbuffer(np.zeros(8, np.complex64))
    vectors.write_range(np.array([1 + 2j, 3 - 1j], np.complex64), 3)
    np.testing.assert_array_equal(vectors.read_range(2, 6, 0), [0, 1 + 2j, 3 - 1j, 0])
    brain = vd.Buffer(6, vd.bfloat16)
    brain.write(np.zeros(6, np.float32))
    brain.write_range(np.array([1.5, -2], np.float32), 2)
    np.testing.assert_array_equal(brain.read_range(1, 5, 0), [0, 1.5, -2, 0])
    triples = vd.Buffer(4, vd.vec3)
    triples.write(np.zeros((4, 3), np.float32))
    triples.write_range(np.ones((2, 3), np.float32), 1)
    np.testing.assert_array_equal(triples.read_range(0, 4, 0)[:, 0], [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("start", "stop", "error"),
    [(-1, 2, ValueError), (3, 2, ValueError), (0, 9, ValueError), (0.5, 2, TypeError)],
)
def test_ranges_that_are_none(start: Any, stop: Any, error: type[Exception]) -> None:
    buffer = vd.asbuffer(np.zeros(8, np.float32))
    with pytest.raises(error, match="start, stop"):
        buffer.read_range(start, stop, 0)


def test_parts_that_do_not_fit() -> None:
    buffer = vd.asbuffer(np.zeros(8, np.float32))
    with pytest.raises(ValueError, match="start, stop"):
        buffer.write_range(np.zeros(3, np.float32), 6)
    with pytest.raises(ValueError, match="not a whole number of"):
        buffer.write_range(b"12345")
    with pytest.raises(TypeError, match="data"):
        buffer.write_range([1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="index"):
        buffer.write_range(np.zeros(1, np.float32), 0, 99)
    with pytest.raises(ValueError, match="out"):
        buffer.read_range(0, 2, 0, np.zeros(3, np.float32))
    buffer.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        buffer.read_range(0, 1, 0)


def test_bounds_of_wide_kernels_are_told_in_64_bits(forced: Callable[[str], None]) -> None:
    forced("wide")

    @vd.shader(3, check="bounds,nan")
    def reach(data: Buff[f32], far: Const[u32], back: Const[i32]) -> None:
        tid = vc.global_invocation_id().x
        data[tid * far * 4] = 1.0
        data[vc.clamp(tid.to_dtype(vd.int32), 0, 2) + back] = 2.0
        vc.print("here", tid)

    data = vd.asbuffer(np.zeros(9, np.float32))
    reach(data, 1, 0)
    assert data.read(0).tolist() == [2, 2, 2, 0, 1, 0, 0, 0, 1]
    with pytest.raises(IndexError, match=rf"index {4 * 3_000_000_000} is out of bounds for buffer 'data' of"):
        reach(data, 3_000_000_000, 0)
    with pytest.raises(
        IndexError, match=r"index -2 is out of bounds .* of shape \(9,\).*invocation \(0, 0, 0\)"
    ):
        reach(data, 1, -2)

    graph = vd.CommandGraph()
    reach(data, 1, 0, graph=graph)
    reach(data, 3_000_000_000, 0, graph=graph)
    with pytest.raises(IndexError, match="index 12000000000"):
        graph.submit()


def test_many_arguments_travel_in_a_uniform_block_with_the_addresses(forced: Callable[[str], None]) -> None:
    forced("wide")

    @vd.shader("a.size")
    def combine(
        a: Buff[f32], b: Buff[f32], c: Buff[f32], d: Buff[f32], m: Const[m4], n: Const[m4], k: Const[u32]
    ) -> None:
        tid = vc.global_invocation_id().x
        total = b[tid % b.shape.w] + c[tid % c.shape.w] + d[tid % d.shape.w]
        a[tid] = total + m[1][2] + n[3][3] + k

    rng = np.random.default_rng(2)
    a, (b, c, d) = vd.Buffer(11, vd.float32), (rng.integers(0, 9, n).astype(np.float32) for n in (3, 5, 7))
    m, n = (rng.integers(0, 9, (4, 4)).astype(np.float32) for _ in range(2))
    combine(a, *map(vd.asbuffer, (b, c, d)), m, n, 5)
    plain = vd.Buffer(11, vd.float32)
    forced("")
    combine.interpret(plain, b, c, d, m, n, 5)
    np.testing.assert_array_equal(a.read(0), plain.read(0))
    assert combine.shader_description.layout(Variant(addressed=True, wide=True)).uniform


def test_kernels_of_unsigned_indices_count_further_in_32_bits() -> None:
    context = vd.get_context()
    if not building.can_address(context):
        pytest.skip("this device reaches no buffers by address")

    def form(elements: int, *, unsigned: bool) -> Variant:
        kernel = trace_kernel("mark", _mark, [("data", buffer[u8])], 64, "1", unsigned=unsigned)
        value = SimpleNamespace(mem_size=elements, shader_shape=(elements, 1, 1, elements))
        return building.choose_addressing("mark", kernel._kernel.slots, [value], context, is_traced=True)

    wide, addressed = Variant(addressed=True, wide=True), Variant(addressed=True)
    for elements, plainly, unsigned in (
        (1 << 31, wide, addressed),
        ((1 << 32) - (1 << 16) - 1, wide, addressed),
        ((1 << 32) - (1 << 16), wide, wide),
        (1 << 33, wide, wide),
    ):
        assert form(elements, unsigned=False) == plainly
        assert form(elements, unsigned=True) == unsigned
    assert form(1 << 20, unsigned=True) == Variant()


def _mark(data: Any) -> None:
    data[vc.global_invocation_id().x] = 1
