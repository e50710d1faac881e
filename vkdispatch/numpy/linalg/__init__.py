"""Linear algebra: `vkdispatch.numpy.linalg`.

Products, triangular factors and what they solve run on the device. What `HOST_FUNCTIONS` names runs by
LAPACK on the host, and warns once.
"""

from importlib import import_module
from typing import Any

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
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES.keys() - {"HOST_FUNCTIONS"})


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"vkdispatch.numpy.{home}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
