"""Linear algebra: `vkdispatch.numpy.linalg`.

Products, triangular factors and what they solve run on the device. What `HOST_FUNCTIONS` names runs by
LAPACK on the host, and warns once.
"""

from vkdispatch.numpy.basics.manipulation import matrix_transpose
from vkdispatch.numpy.linalg.host import HOST_FUNCTIONS as HOST_FUNCTIONS
from vkdispatch.numpy.linalg.host import (
    PerformanceWarning,
    cond,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    matrix_rank,
    pinv,
    svd,
    svdvals,
)
from vkdispatch.numpy.linalg.norms import matrix_norm, norm, vector_norm
from vkdispatch.numpy.linalg.products import (
    LinAlgError,
    cross,
    diagonal,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    multi_dot,
    outer,
    tensordot,
    trace,
    vdot,
    vecdot,
    vecmat,
)
from vkdispatch.numpy.linalg.solving import (
    cholesky,
    det,
    inv,
    matrix_power,
    qr,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "LinAlgError",
    "PerformanceWarning",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inner",
    "inv",
    "kron",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "vector_norm",
]
