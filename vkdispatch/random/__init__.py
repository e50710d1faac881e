"""Random numbers in bulk: the same streams on every device, and, of Philox4x64, the same as NumPy's."""

import typing as _typing

from vkdispatch.base import list_public as _list_public
from vkdispatch.base import names_elsewhere as _names_elsewhere

__all__ = ["Generator"]

if _typing.TYPE_CHECKING:
    from vkdispatch.random.generator import Generator as Generator
else:
    # Dask takes `default_rng` from the package that a bit generator is of
    __getattr__ = _names_elsewhere(__name__, {"random.generator": "Generator", "numpy.random": "default_rng"})
    __dir__ = _list_public(__name__)
