"""Linear algebra: `vkdispatch.numpy.linalg`.

Products, triangular factors and what they solve run on the device. What `HOST_FUNCTIONS` names runs by
LAPACK on the host, and warns once.
"""

from vkdispatch.base import list_public as _list_public
from vkdispatch.base import names_elsewhere as _names_elsewhere

# Where public names live. `make format` writes them to `__init__.pyi`, for type checkers and editors.
_NAMES = {
    "linalg.products": (
        "LinAlgError cross diagonal dot inner kron matmul matvec multi_dot outer tensordot trace vdot vecdot "
        "vecmat"
    ),
    "linalg.spectra": (
        "HOST_FUNCTIONS PerformanceWarning cond eig eigh eigvals eigvalsh lstsq matrix_norm matrix_rank norm "
        "pinv svd svdvals vector_norm"
    ),
    "linalg.solving": "cholesky det inv matrix_power qr slogdet solve tensorinv tensorsolve",
    "basics.manipulation": "matrix_transpose",
}

__all__ = sorted({name for names in _NAMES.values() for name in names.split()} - {"HOST_FUNCTIONS"})
__getattr__ = _names_elsewhere(__name__, {f"numpy.{home}": names for home, names in _NAMES.items()})
__dir__ = _list_public(__name__)
