"""Arrays in files, in NumPy's formats: they are read and written by NumPy on the host."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from vkdispatch.numpy.basics.inputs import asnumpy
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.conversion import asarray

__all__ = [
    "fromfile",
    "genfromtxt",
    "load",
    "loadtxt",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
]


class ArchiveFile(Mapping[str, Array]):
    """The arrays of an .npz file by their names; each is read when it is asked for.

    Attributes
    ----------
    files
        The names.
    """

    def __init__(self, archive: Any) -> None:
        self._archive = archive
        self.files: list[str] = archive.files

    def __getitem__(self, name: str) -> Array:
        return asarray(self._archive[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = False, **options: Any) -> Any:
    """Return the array of an .npy file, or those of an .npz file by their names. See `numpy.load`.

    Raises
    ------
    TypeError
        Arrays cannot have the dtype.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> vnp.save(path, vnp.arange(3))
    >>> vnp.load(path)
    Array([0, 1, 2], dtype=int64)
    """
    found = np.load(file, mmap_mode, allow_pickle, **options)
    return asarray(found) if isinstance(found, np.ndarray) else ArchiveFile(found)


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Write an array to an .npy file. See `numpy.save`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.save(file, vnp.arange(3))
    >>> np.load(BytesIO(file.getvalue()))
    array([0, 1, 2])
    """
    np.save(file, asnumpy(arr), allow_pickle)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to an .npz file. See `numpy.savez`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.savez(file, a=vnp.arange(3), b=vnp.ones(2))
    >>> np.load(BytesIO(file.getvalue()))["a"]
    array([0, 1, 2])
    """
    named: Any = {name: asnumpy(each) for name, each in kwds.items()}
    np.savez(file, *map(asnumpy, args), **named)


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to a compressed .npz file. See `numpy.savez_compressed`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.savez_compressed(file, a=vnp.arange(3))
    >>> np.load(BytesIO(file.getvalue()))["a"]
    array([0, 1, 2])
    """
    named: Any = {name: asnumpy(each) for name, each in kwds.items()}
    np.savez_compressed(file, *map(asnumpy, args), **named)


def savetxt(fname: Any, X: Any, *args: Any, **options: Any) -> None:  # noqa: N803
    """Write an array to a file of text. See `numpy.savetxt`.

    Examples
    --------
    >>> import sys
    >>> vnp.savetxt(sys.stdout, vnp.asarray([[1, 2], [3, 4]]), fmt="%d")
    1 2
    3 4
    """
    np.savetxt(fname, asnumpy(X), *args, **options)


def loadtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    """Return the numbers of a file of text. See `numpy.loadtxt`.

    Examples
    --------
    >>> vnp.loadtxt(["1 2", "3 4"])
    Array([[1., 2.],
           [3., 4.]], dtype=float64)
    """
    return _upload(np.loadtxt(fname, dtype, *args, **options))


def genfromtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    """Return the numbers of a file of text, of which some may be missing. See `numpy.genfromtxt`.

    Examples
    --------
    >>> vnp.genfromtxt(["1,2", "3,"], delimiter=",")
    Array([[ 1.,  2.],
           [ 3., nan]], dtype=float64)
    """
    return _upload(np.genfromtxt(fname, dtype, *args, **options))


def _upload(found: Any) -> Any:
    # with unpack=True there may be several
    return [asarray(each) for each in found] if isinstance(found, list) else asarray(found)


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """Return the numbers of a binary file, or with `sep` of one of text. See `numpy.fromfile`.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.bin")
    >>> vnp.arange(3, dtype=vnp.float32).numpy().tofile(path)
    >>> vnp.fromfile(path, dtype=vnp.float32)
    Array([0., 1., 2.], dtype=float32)
    """
    return asarray(np.fromfile(file, dtype, count, sep, offset))
