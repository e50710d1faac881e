"""NumPy as `np`, or its stand-in (see `absent`), for all modules that tracing needs; `AxisError`."""

from typing import TYPE_CHECKING

from vkdispatch.base.absent import import_or_stand_in, is_absent
from vkdispatch.base.errors import ArgumentIndexError, ArgumentValueError, MissingPackageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.exceptions import AxisError as _NumpyAxisError
else:
    np = import_or_stand_in(
        "numpy",
        lambda: MissingPackageError(
            "NumPy is not installed, and everything but the text of kernels needs it; install it with "
            "`pip install numpy`"
        ),
    )
    _NumpyAxisError = IndexError if is_absent(np) else getattr(np, "exceptions", np).AxisError

__all__ = ["AxisError", "np"]


class AxisError(ArgumentValueError, ArgumentIndexError, _NumpyAxisError):
    """An axis is out of range or appears twice; it is a `numpy.exceptions.AxisError`, too."""

    __str__ = Exception.__str__  # NumPy's would not show what is added to the message
