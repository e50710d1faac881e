"""Images and samplers of the engine: copies, order, lifetimes, misuse."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .conftest import first_device
from .kernels import HEADER

R32_UINT, R32_SFLOAT, RGBA32_SFLOAT = 98, 100, 109
D1, D2, D3, D2_ARRAY = 0, 1, 2, 5
NEAREST_REPEAT = (0, 0, 0, 0, 0.0, 0.0, 0.0, 0)
SAMPLER, STORAGE_IMAGE = 5, 4

# target[x] = source[x + 1], with wrap-around
ROTATE = (
    HEADER
    + """
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, r32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = textureSize(source, 0);
    if (any(greaterThanEqual(at, size))) return;
    vec4 texel = textureLod(source, (vec2(at) + vec2(1.5, 0.5)) / vec2(size), 0.0);
    imageStore(target, at, texel);
}
"""
)

# image += 1, many times
ADD = (
    HEADER
    + """
layout(push_constant, scalar) uniform Arguments { uint rounds; } PC;
layout(set = 0, binding = 0, r32f) uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    float value = imageLoad(target, at).x;
    for (uint i = 0; i < PC.rounds; ++i) value += 1.0;
    imageStore(target, at, vec4(value));
}
"""
)


class Picture:
    """A native image of (height, width) floats with the attribute that a launcher uses."""

    def __init__(self, engine: native.Engine, values: np.ndarray[Any, Any]) -> None:
        height, width = self.shape = values.shape
        self._native = native.Image(engine, D2, R32_SFLOAT, (width, height, 1), 1, 1, True)
        self._native.write(-1, np.ascontiguousarray(values, np.float32))

    def read(self, queue: int = 0) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, np.float32)
        self._native.read_into(queue, out)
        return out


class SampledPicture:
    """A native sampler of a picture."""

    def __init__(self, picture: Picture) -> None:
        self._native = native.Sampler(picture._native, *NEAREST_REPEAT)


def launcher(
    engine: native.Engine, source: str, slots: list[native.ArgumentSlot], size: int
) -> native.Launcher:
    descriptors = {native.SamplerSlot: SAMPLER, native.ImageSlot: STORAGE_IMAGE}
    kinds = [descriptors[type(slot)] for slot in slots if type(slot) in descriptors]
    plan = native.Plan(engine, native.compile_glsl(source), kinds, size, "image kernel")
    return native.Launcher(engine, plan, slots, size, -1, -1, -1, (64, 1, 1), (65535,) * 3, None)


def rotation(engine: native.Engine) -> native.Launcher:
    slots = [
        native.SamplerSlot(binding=0, view_type=D2, texels=0),
        native.ImageSlot(binding=1, view_type=D2, format=R32_SFLOAT, reads=False),
    ]
    return launcher(engine, ROTATE, slots, 0)


def addition(engine: native.Engine) -> native.Launcher:
    slots = [
        native.ImageSlot(binding=0, view_type=D2, format=R32_SFLOAT),
        native.ScalarSlot(offset=0, code="I"),
    ]
    return launcher(engine, ADD, slots, 4)


@pytest.fixture(params=["push", "sets"])
def descriptors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[native.Engine]:
    """Yield an engine that uses push descriptors or descriptor sets."""
    if request.param == "sets":
        monkeypatch.setenv("VKDISPATCH_NO_PUSH_DESCRIPTORS", "1")
    engine = native.Engine([first_device()], [[0]], True, False)
    native.take_messages()
    yield engine
    engine.close()
    assert native.take_messages() == []


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "extent", "layers"),
    [
        (D1, (1, 1, 1), 1),
        (D1, (997, 1, 1), 1),
        (D2, (1, 1, 1), 1),
        (D2, (31, 7, 1), 1),
        (D2, (1021, 2053, 1), 1),  # one plane needs two blocks of staging
        (D2_ARRAY, (13, 9, 1), 5),
        (D2_ARRAY, (512, 1500, 1), 4),  # two layers to a block
        (D3, (5, 3, 2), 1),
        (D3, (257, 129, 67), 1),  # slices that do not divide a block
    ],
)
def test_copies(engine: native.Engine, kind: int, extent: tuple[int, int, int], layers: int) -> None:
    image = native.Image(engine, kind, R32_UINT, extent, layers, 1, False)
    width, height, depth = extent
    values = np.random.default_rng(0).integers(0, 2**32, (layers, depth, height, width), np.uint32)
    image.write(-1, values)
    out = np.zeros_like(values)
    image.read_into(0, out)
    np.testing.assert_array_equal(out, values)


def test_copies_of_levels(engine: native.Engine) -> None:
    image = native.Image(engine, D3, RGBA32_SFLOAT, (13, 6, 5), 1, 4, False)
    levels = [(5, 6, 13, 4), (2, 3, 6, 4), (1, 1, 3, 4), (1, 1, 1, 4)]
    values = [np.random.default_rng(i).random(shape, np.float32) for i, shape in enumerate(levels)]
    for level, data in enumerate(values):
        image.write(-1, data, level)
    for level, data in enumerate(values):
        out = np.zeros_like(data)
        image.read_into(0, out, level)
        np.testing.assert_array_equal(out, data)
    for level, size in ((4, 16), (0, 16), (1, 0)):
        with pytest.raises(ValueError, match=r"level|bytes"):
            image.write(-1, bytes(size), level)
        with pytest.raises(ValueError, match=r"level|bytes"):
            image.read_into(0, bytearray(size), level)


def test_each_queue_has_its_copy() -> None:
    engine = native.Engine([first_device()], [[0, 0]], True, False)
    picture = Picture(engine, np.zeros((4, 5)))
    picture._native.write(1, np.ones((4, 5), np.float32))
    assert (picture.read(0) == 0).all()
    assert (picture.read(1) == 1).all()
    assert addition(engine).launch((picture, 1), (5, 4), False)
    assert (picture.read(0) == 1).all()
    assert (picture.read(1) == 2).all()
    with pytest.raises(ValueError, match="queue"):
        picture._native.write(2, bytes(80))
    engine.close()
    assert native.take_messages() == []


# ---- order ---------------------------------------------------------------------------------------


def test_dependent_launches_run_in_order(descriptors: native.Engine) -> None:
    values = np.random.default_rng(0).random((5, 150)).astype(np.float32)
    a, b = Picture(descriptors, values), Picture(descriptors, np.zeros((5, 150)))
    rotate, add = rotation(descriptors), addition(descriptors)
    seen_a, seen_b = SampledPicture(a), SampledPicture(b)
    for _ in range(40):
        assert rotate.launch((seen_a, b), (150, 5), False)
        assert rotate.launch((seen_b, a), (150, 5), False)
    np.testing.assert_array_equal(a.read(), np.roll(values, -80, 1))
    a._native.write(-1, np.zeros((5, 150), np.float32))
    assert add.launch((a, 3), (150, 5), False)
    np.testing.assert_array_equal(a.read(), 3)


def test_replays_run_in_order(descriptors: native.Engine) -> None:
    values = np.random.default_rng(0).random((5, 150)).astype(np.float32)
    a, b = Picture(descriptors, values), Picture(descriptors, np.zeros((5, 150)))
    rotate, commands = rotation(descriptors), native.CommandList(descriptors)
    assert rotate.record(commands, (SampledPicture(a), b), (150, 5), False) == (0, b"")
    assert rotate.record(commands, (SampledPicture(b), a), (150, 5), False) == (0, b"")
    gc.collect()  # the list keeps the samplers
    for _ in range(100):
        commands.submit(-2, b"", 1)
    np.testing.assert_array_equal(a.read(), np.roll(values, -200, 1))


def test_loads_need_no_barriers(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 64)))
    targets = [Picture(engine, np.zeros((4, 64))) for _ in range(10)]
    rotate = rotation(engine)
    seen = SampledPicture(picture)
    for target in targets:  # each first launch waits for its own upload
        rotate.launch((seen, target), (64, 4), False)
    engine.wait_idle()
    before = engine.statistics()["barriers"]
    for target in targets:  # the first launch starts an epoch, which includes all others
        rotate.launch((seen, target), (64, 4), False)
    engine.wait_idle()
    assert engine.statistics()["barriers"] - before == 1


def test_checker_finds_missing_barriers(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 64)))
    add = addition(engine)
    engine.wait_idle()
    engine.set_barriers_enabled(False)
    for _ in range(3):
        add.launch((picture, 1), (64, 4), False)
    engine.wait_idle()
    engine.set_barriers_enabled(True)
    messages = [text for _, text in native.take_messages()]
    assert any("'image kernel' reads an image that kernel 'image kernel' writes" in text for text in messages)


# ---- lifetimes -----------------------------------------------------------------------------------


def test_dropping_images_in_use(engine: native.Engine) -> None:
    rotate, add = rotation(engine), addition(engine)
    last = Picture(engine, np.zeros((50, 200)))
    before = engine.statistics()["live_objects"]
    for _ in range(30):
        picture = Picture(engine, np.ones((50, 200)))
        add.launch((picture, 50), (200, 50), False)
        rotate.launch((SampledPicture(picture), last), (200, 50), False)
        del picture
    assert (last.read() == 51).all()
    engine.wait_idle()
    deadline = time.monotonic() + 100
    while engine.statistics()["waiting_frees"] and time.monotonic() < deadline:
        time.sleep(0.001)
    statistics = engine.statistics()
    assert statistics["waiting_frees"] == 0
    assert statistics["live_objects"] == before


def test_samplers_with_the_same_settings_are_shared(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 4)))
    before = engine.statistics()["live_objects"]
    kept = [SampledPicture(picture) for _ in range(10_000)]
    assert engine.statistics()["live_objects"] == before + 1
    del kept
    assert engine.statistics()["live_objects"] == before


def test_memory_is_freed(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((512, 512)))
    engine.wait_idle()
    before = engine.statistics()["device_memory"]
    for _ in range(100):
        picture = Picture(engine, np.zeros((512, 512)))
    engine.wait_idle()
    assert engine.statistics()["device_memory"] <= before + (
        48 << 20
    )  # the staging blocks; a hundred images take 100 MiB
    assert picture.shape == (512, 512)


def test_close_with_everything_alive() -> None:
    engine = native.Engine([first_device()], [[0]], True, False)
    picture = Picture(engine, np.zeros((64, 64)))
    seen, commands, add = SampledPicture(picture), native.CommandList(engine), addition(engine)
    add.record(commands, (picture, 1), (64, 64), False)
    for _ in range(50):
        add.launch((picture, 1), (64, 64), False)
    engine.close()
    for use in (
        lambda: picture.read(),
        lambda: picture._native.write(-1, bytes(64 * 64 * 4)),
        lambda: native.Sampler(picture._native, *NEAREST_REPEAT),
        lambda: add.launch((picture, 1), (64, 64), False),
        lambda: Picture(engine, np.zeros((2, 2))),
        lambda: engine.image_features(R32_SFLOAT),
    ):
        with pytest.raises(RuntimeError, match="context was closed"):
            use()
    assert native.take_messages() == []
    assert seen is not None


# ---- misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["image", "sampler"])
def test_garbage_in_a_cycle(engine: native.Engine, kind: str) -> None:
    class CyclicImage(native.Image):
        pass

    class CyclicSampler(native.Sampler):
        pass

    for _ in range(50):
        kept: Any = CyclicImage(engine, D2, R32_SFLOAT, (4, 4, 1), 1, 1, True)
        if kind == "sampler":
            kept = CyclicSampler(kept, *NEAREST_REPEAT)
        kept.itself = kept
    del kept
    gc.collect()
    engine.wait_idle()


def test_destroyed_images_are_refused(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 4)))
    seen, add, rotate = SampledPicture(picture), addition(engine), rotation(engine)
    commands = native.CommandList(engine)
    assert rotate.record(commands, (seen, Picture(engine, np.zeros((4, 4)))), (4, 4), False)
    picture._native.destroy()
    picture._native.destroy()
    assert add.launch((picture, 1), (4, 4), False) is False
    assert rotate.launch((seen, Picture(engine, np.zeros((4, 4)))), (4, 4), False) is False
    for use in (
        lambda: picture.read(),
        lambda: SampledPicture(picture),
        lambda: picture._native.storable,
        lambda: commands.submit(-2, b"", 1),
    ):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()


def test_launchers_decline_other_images(engine: native.Engine) -> None:
    rotate, add = rotation(engine), addition(engine)
    picture = Picture(engine, np.zeros((4, 4)))
    other = native.Engine([first_device()], [[0]], True, False)

    def holding(*arguments: Any) -> Picture:
        bare = Picture.__new__(Picture)
        bare._native = native.Image(engine, *arguments)
        return bare

    volume = holding(D3, R32_SFLOAT, (4, 4, 4), 1, 1, True)
    whole = holding(D2, R32_UINT, (4, 4, 1), 1, 1, True)
    locked = holding(D2, R32_SFLOAT, (4, 4, 1), 1, 1, False)
    foreign = Picture(other, np.zeros((4, 4)))
    for image in (
        volume,
        whole,
        locked,
        foreign,
        SampledPicture(picture),
        native.Buffer(engine, 64),
        None,
        1,
    ):
        assert add.launch((image, 1), (4, 4), False) is False
        assert rotate.launch((SampledPicture(picture), image), (4, 4), False) is False
    for sampler in (picture, SampledPicture(volume), SampledPicture(whole), SampledPicture(foreign), None):
        assert rotate.launch((sampler, picture), (4, 4), False) is False
    assert rotate.launch((SampledPicture(locked), picture), (4, 4), False)
    other.close()


def test_bindings_of_the_wrong_kind(engine: native.Engine) -> None:
    picture, buffer = Picture(engine, np.zeros((4, 4))), native.Buffer(engine, 64)
    locked = native.Image(engine, D2, R32_SFLOAT, (4, 4, 1), 1, 1, False)
    other = native.Engine([first_device()], [[0]], True, False)
    foreign = Picture(other, np.zeros((4, 4)))
    plan = native.Plan(engine, native.compile_glsl(ROTATE), [SAMPLER, STORAGE_IMAGE], 0, "rotate")
    sampler = SampledPicture(picture)._native

    def record(first: Any, second: Any, index: int = 1) -> None:
        bindings = [(first, 0, 0, 0, True, False), (second, index, 0, 0, False, True)]
        native.CommandList(engine).record(plan, bindings, (1, 1, 1), 0)

    record(sampler, picture._native)
    for first, second, message in (
        (buffer, picture._native, "expects a sampler"),
        (picture._native, picture._native, "does not expect a storage image"),
        (sampler, buffer, "expects a storage image"),
        (sampler, sampler, "does not expect a sampler"),
        (sampler, locked, "does not support stores"),
        (sampler, foreign._native, "another context"),
        (SampledPicture(foreign)._native, picture._native, "another context"),
    ):
        with pytest.raises(ValueError, match=message):
            record(first, second)
    with pytest.raises(TypeError, match="NoneType"):
        record(sampler, None)
    for index in (0, 2, -1):
        with pytest.raises(ValueError, match="binding"):
            record(sampler, sampler if index == 0 else picture._native, index)
    other.close()


def test_objects_that_were_never_initialized(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 4)))
    image, sampler = native.Image.__new__(native.Image), native.Sampler.__new__(native.Sampler)
    plan = native.Plan(engine, native.compile_glsl(ROTATE), [SAMPLER, STORAGE_IMAGE], 0, "rotate")
    bare = Picture.__new__(Picture)
    bare._native = image
    unseen = SampledPicture.__new__(SampledPicture)
    unseen._native = sampler
    for use in (
        lambda: image.read_into(0, bytearray(64)),
        lambda: image.storable,
        lambda: native.Sampler(image, *NEAREST_REPEAT),
        lambda: native.Image(native.Engine.__new__(native.Engine), D2, R32_SFLOAT, (4, 4, 1), 1, 1, True),
        lambda: native.CommandList(engine).record(
            plan, [(sampler, 0, 0, 0, True, False), (image, 1, 0, 0, True, True)], (1, 1, 1), 0
        ),
        lambda: picture._native.__init__(engine, D2, R32_SFLOAT, (4, 4, 1), 1, 1, True),  # type: ignore[misc]
    ):
        with pytest.raises((RuntimeError, ValueError)):
            use()
    image.destroy()
    assert rotation(engine).launch((unseen, picture), (4, 4), False) is False
    assert rotation(engine).launch((SampledPicture(picture), bare), (4, 4), False) is False


@pytest.mark.parametrize(
    "changes",
    [
        {"view_type": 3},
        {"view_type": 7},
        {"format": 0},
        {"format": 37},  # a format without plain channels
        {"format": -1},
        {"format": 10**6},
        {"extent": (0, 4, 1)},
        {"extent": (4, 4, 4)},
        {"extent": (2**31, 4, 1)},
        {"extent": (2**31, 2**31, 1)},
        {"extent": (2**40, 4, 1)},
        {"extent": (4, 4)},
        {"layers": 0},
        {"layers": 3},
        {"levels": 0},
        {"levels": 4},
        {"view_type": D1},
        {"view_type": D2_ARRAY, "layers": 10**9},
    ],
)
def test_invalid_images(engine: native.Engine, changes: dict[str, Any]) -> None:
    wanted = {"view_type": D2, "format": R32_SFLOAT, "extent": (4, 4, 1), "layers": 1, "levels": 1}
    native.Image(engine, **wanted, storage=False)
    with pytest.raises((ValueError, OverflowError, MemoryError)):
        native.Image(engine, **(wanted | changes), storage=False)


@pytest.mark.parametrize(
    "settings",
    [
        (2, 0, 0, 0, 0.0, 0.0, 0.0, 0),
        (2**32 - 1, 0, 0, 0, 0.0, 0.0, 0.0, 0),
        (0, 2, 0, 0, 0.0, 0.0, 0.0, 0),
        (0, 0, 2, 0, 0.0, 0.0, 0.0, 0),
        (0, 0, 0, 5, 0.0, 0.0, 0.0, 0),
        (0, 0, 0, 0, 0.0, 0.0, 0.0, 6),
        (0, 0, 0, 0, 1e6, 0.0, 0.0, 0),
        (0, 0, 0, 0, float("nan"), 0.0, 0.0, 0),
        (0, 0, 0, 0, 0.0, 1.0, 0.0, 0),
        (0, 0, 0, 0, 0.0, float("nan"), 0.0, 0),
        (-1, 0, 0, 0, 0.0, 0.0, 0.0, 0),
    ],
)
def test_invalid_samplers(engine: native.Engine, settings: tuple[Any, ...]) -> None:
    picture = Picture(engine, np.zeros((4, 4)))
    with pytest.raises((ValueError, OverflowError)):
        native.Sampler(picture._native, *settings)
    with pytest.raises(TypeError):
        native.Sampler(None, *NEAREST_REPEAT)


def test_nothing_is_copied_or_pickled(engine: native.Engine) -> None:
    picture = Picture(engine, np.zeros((4, 4)))
    for thing in (picture._native, SampledPicture(picture)._native):
        with pytest.raises(TypeError):
            copy.copy(thing)


def test_python_code_inside_a_call(engine: native.Engine) -> None:
    add = addition(engine)
    picture = Picture(engine, np.zeros((8, 8)))

    class Drops:
        def __index__(self) -> int:
            picture._native = None  # type: ignore[assignment]
            gc.collect(0)
            return 1

    for _ in range(50):
        picture._native = Picture(engine, np.zeros((8, 8)))._native
        add.launch((picture, Drops()), (8, 8), False)  # the image stays alive during the call
        picture._native = Picture(engine, np.zeros((8, 8)))._native
        add.record(native.CommandList(engine), (picture, Drops()), (8, 8), False)
    engine.wait_idle()


def test_features_of_formats(engine: native.Engine) -> None:
    assert engine.image_features(R32_SFLOAT) & 0x1  # sampling: supported by every device
    for unknown in (-1, 0, 37, 10**6):
        with pytest.raises(ValueError, match="format"):
            engine.image_features(unknown)
