"""NumPy as `np`, or its stand-in (see `absent`), for all modules that tracing needs."""

from typing import TYPE_CHECKING

from vkdispatch.base.absent import import_or_stand_in
from vkdispatch.base.errors import MissingPackageError

if TYPE_CHECKING:
    import numpy as np
else:
    np = import_or_stand_in(
        "numpy",
        lambda: MissingPackageError(
            "NumPy is not installed, and everything but the text of kernels needs it; install it with "
            "`pip install numpy`"
        ),
    )

__all__ = ["np"]
