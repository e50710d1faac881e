"""Integers as arguments of functions on arrays: one rule, whatever the function."""

import re

import numpy as np
import pytest

import vkdispatch as vd

FLOATS = np.arange(12, dtype=np.float32)
INTS = np.arange(12, dtype=np.uint32)

# argument, least, most, and a call with it
ARGUMENTS = [
    ("k", 0, 12, lambda k: vd.topk(vd.asbuffer(FLOATS), k)),
    ("minlength", 0, None, lambda n: vd.bincount(vd.asbuffer(INTS), minlength=n)),
    ("size", 0, None, lambda n: vd.bincount(vd.asbuffer(INTS), size=n)),
    ("size", 0, None, lambda n: vd.unique(vd.asbuffer(INTS), size=n)),
    ("size", 0, None, lambda n: vd.nonzero(vd.asbuffer(INTS), size=n)),
    ("bins", 1, 2**31 - 1, lambda n: vd.histogram(vd.asbuffer(FLOATS), n)),
    ("shift", None, None, lambda n: vd.roll(vd.asbuffer(FLOATS), n)),
    ("reps", 0, None, lambda n: vd.tile(vd.asbuffer(FLOATS), n)),
    ("repeats", 0, None, lambda n: vd.repeat(vd.asbuffer(FLOATS), n)),
    ("pad_width", 0, None, lambda n: vd.pad(vd.asbuffer(FLOATS), n)),
    ("axis", None, None, lambda n: vd.sum(vd.asbuffer(FLOATS), axis=n)),
    ("axis", None, None, lambda n: vd.cumsum(vd.asbuffer(FLOATS), axis=n)),
    ("axis", None, None, lambda n: vd.sort(vd.asbuffer(FLOATS), axis=n)),
    ("low", None, None, lambda n: vd.random.Generator(1).integers(n, 10**6, 3)),
    ("n", 1, None, lambda n: vd.fft.fftfreq(n)),
]


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(1), np.array([1, 2]), object()])
@pytest.mark.parametrize(("argument", "least", "most", "call"), ARGUMENTS)
def test_values_that_are_not_integers_are_refused(argument, least, most, call, value):
    if argument in ("shift", "reps", "axis", "pad_width", "bins") and isinstance(value, np.ndarray):
        pytest.skip("takes several")
    with pytest.raises(TypeError, match=f"^{argument}: expected "):
        call(value)


@pytest.mark.parametrize(("argument", "least", "most", "call"), ARGUMENTS)
def test_integers_of_numpy_are_taken(argument, least, most, call):
    value = 1 if least else 0
    plain = call(value)
    for kind in (np.int8, np.uint64, lambda number: np.array(number, np.int16)):
        for one, two in zip(several(call(kind(value))), several(plain), strict=True):
            np.testing.assert_array_equal(one, two)


def several(results):
    """Return what a function has returned, as arrays."""
    many = results if isinstance(results, tuple) else (results,)
    return [each.read(0) if isinstance(each, vd.Buffer) else each for each in many]


@pytest.mark.parametrize(("argument", "least", "most", "call"), ARGUMENTS)
def test_limits_are_named(argument, least, most, call):
    for beyond in [] if least is None else [least - 1, *([] if most is None else [most + 1])]:
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        message = rf"^{argument}: expected an int {re.escape(limits)}.*, got {beyond}$"
        with pytest.raises(ValueError, match=message):
            call(beyond)
