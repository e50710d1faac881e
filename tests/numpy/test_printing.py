"""Arrays as text, against NumPy's, and as pictures, against Pillow's reading of them."""

from __future__ import annotations

import io
from base64 import b64decode
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from vkdispatch.numpy.interchange.inspection import encode_png, thumbnail

SHOWN = [
    np.array(3),
    np.array(1.5, np.float32),
    np.array([], np.int32),
    np.zeros((2, 0), np.float32),
    np.array([1.5, np.nan, -np.inf, -0.0, 1e-9]),
    np.array([[1 + 2j, -1j]], np.complex64),
    np.array([True, False]),
    np.arange(30) / 7,
    np.arange(2000),
    np.arange(700 * 3, dtype=np.float32).reshape(3, 700) / 8,
    np.arange(2 * 40 * 30, dtype=np.int16).reshape(2, 40, 30),
    np.arange(1007, dtype=np.uint8),
]


def as_numpy_writes(data: np.ndarray[Any, Any]) -> str:
    text = np.array2string(data, separator=", ", prefix="Array(")
    return text.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("data", SHOWN, ids=lambda data: f"{data.dtype}-{data.shape}")
def test_text_is_numpys(data: np.ndarray[Any, Any]) -> None:
    x = vnp.asarray(data)
    assert str(x) == str(data)
    assert np.array_str(x) == str(data)
    text = repr(x)
    assert text.startswith("Array(")
    assert text.endswith(f"dtype={data.dtype})")
    assert text.replace("\n", "").replace(" ", "").startswith("Array(" + as_numpy_writes(data))
    assert (f"shape={data.shape}" in text) == (data.size > 1000 or not data.size)
    assert max(map(len, text.splitlines())) <= 80


def test_text_follows_the_print_options() -> None:
    data = np.arange(60, dtype=np.float64) / 3
    x = vnp.asarray(data)
    with np.printoptions(threshold=20, edgeitems=2, precision=2):
        assert str(x) == str(data)
    text = np.array2string(x, precision=1, threshold=5, edgeitems=1, separator=";")
    assert text == np.array2string(data, precision=1, threshold=5, edgeitems=1, separator=";")
    assert np.array_repr(x, precision=2).startswith("Array([ 0.  ,  0.33")


def read_png(data: bytes) -> np.ndarray[Any, Any]:
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(data)))


@pytest.mark.parametrize("shape", [(13, 17), (5, 1), (4, 6, 3), (3, 3, 4)])
def test_pixels_come_out_of_a_png_as_they_went_in(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(read_png(encode_png(pixels)), pixels)


def test_thumbnails() -> None:
    rows, columns = np.mgrid[:600, :700]
    waves = np.sin(columns / 50) * 3
    small = thumbnail(vnp.asarray(waves))
    assert small.shape == (200, 234)
    wanted = (waves - waves.min()) / (waves.max() - waves.min()) * 255
    assert np.abs(small - wanted[::3, ::3]).max() <= 1
    colours = np.stack([columns / 700, rows / 600 / 2, 0 * rows], -1).astype(np.float32)
    assert np.abs(thumbnail(vnp.asarray(colours)) - colours[::3, ::3] * 255.0).max() <= 0.51
    holes = np.array([[np.nan, 0.0], [4.0, np.inf]])
    assert thumbnail(vnp.asarray(holes)).tolist() == [[0, 0], [255, 255]]
    assert thumbnail(vnp.asarray(holes > 1)).tolist() == [[0, 0], [255, 255]]
    assert thumbnail(vnp.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert thumbnail(vnp.full((2, 2), np.nan)).tolist() == [[0, 0], [0, 0]]


def test_notebooks_show_images_as_pictures() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    html = vnp.asarray(pixels)._repr_html_()
    assert "20 &times; 30 &times; 3, uint8, 1.758 KiB" in html
    encoded = html.partition("base64,")[2].partition('"')[0]
    np.testing.assert_array_equal(read_png(b64decode(encoded)), pixels)
    for other in (
        np.arange(4),
        np.eye(3),
        np.zeros((20, 20), np.complex64),
        np.zeros((20, 20, 2)),
        np.array(1),
    ):
        html = vnp.asarray(other)._repr_html_()
        assert "<img" not in html
        assert f"<pre>{other}</pre>" in html
