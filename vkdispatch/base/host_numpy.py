"""NumPy as `np`, or what takes its place, see `absent`; for all modules that a kernel's text needs."""

from typing import TYPE_CHECKING

from vkdispatch.base.absent import import_or_stand_in
from vkdispatch.base.errors import MissingPackageError

if TYPE_CHECKING:
    import numpy as np
else:
    np = import_or_stand_in(
        "numpy",
        lambda: MissingPackageError(
            "NumPy is not installed, and only the text of kernels does without it; install it with "
            "`pip install numpy`"
        ),
    )

__all__ = ["np"]
