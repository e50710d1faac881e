"""Handwritten digits are named by those that are most like them: a product, a sort of each row, and a vote.

The distances of all pictures to all known ones are a product of matrices, whose output map adds the squared
lengths; the nearest are the first of each row. Run as a program it fails if device and CPU disagree.
"""

import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import Buff, f32

Array = npt.NDArray[Any]

NEIGHBOURS = 5
KNOWN = 1200  # of the 1,797 pictures; the others are to be named
CLASSES = 10


@vd.map
def square(x: f32) -> f32:
    """Return the square of an element."""
    return x * x


@vd.map
def distance(product: f32, pictures: Buff[f32], known: Buff[f32]) -> f32:
    """Return the squared distance of two pictures from their product and the squares of their lengths."""
    at = vd.mapped_index()
    return pictures[at // known.size] + known[at % known.size] - 2 * product


def nearest(pictures: Array, known: Array, count: int) -> tuple[Array, Array]:
    """Return squared distances and indices of the `count` known pictures nearest to each, nearest first."""
    rows, others = vd.asbuffer(pictures), vd.asbuffer(known)
    lengths = [vd.sum(square(each), axis=1) for each in (rows, others)]
    distances = vd.matmul(rows, others, transpose_b=True, output_map=distance(*lengths))
    values, indices = vd.topk(distances, count, largest=False)
    return values.read(0), indices.read(0)


def named(labels: Array, indices: Array) -> Array:
    """Return the label that most of each row's indices have, of several the lowest."""
    votes = np.zeros((len(indices), CLASSES), np.int64)
    np.add.at(votes, (np.arange(len(indices))[:, None], labels[indices]), 1)
    winners: Array = votes.argmax(axis=1)
    return winners


def process() -> bool:
    """Name the pictures on the device and by scikit-learn; print both; return whether they agree."""
    digits = load_digits()
    pictures = digits.data.astype(np.float32)
    known, unknown = pictures[:KNOWN], pictures[KNOWN:]
    labels, truth = digits.target[:KNOWN], digits.target[KNOWN:]
    print(f"{len(unknown)} pictures of 8 x 8, {KNOWN} known ones, {NEIGHBOURS} neighbours.")
    nearest(unknown, known, NEIGHBOURS)  # makes the kernels
    start = time.perf_counter()
    distances, indices = nearest(unknown, known, NEIGHBOURS)
    ours = time.perf_counter() - start
    found = named(labels, indices)

    start = time.perf_counter()
    reference = KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(known, labels)
    expected = reference.predict(unknown)
    theirs = time.perf_counter() - start
    far, _ = reference.kneighbors(unknown)
    # pictures are whole numbers: the squares are exact
    same = np.array_equal(distances, np.rint(far**2)) and np.array_equal(found, expected)
    print(f"  named as by scikit-learn: {'ok' if same else 'FAILED'}; right: {np.mean(found == truth):.1%}")
    print(f"  vkdispatch, transfers included {ours * 1e3:.1f} ms; scikit-learn {theirs * 1e3:.1f} ms")
    return same


def main() -> int:
    """Run everything; return the exit status."""
    return 0 if process() else 1


if __name__ == "__main__":
    sys.exit(main())
