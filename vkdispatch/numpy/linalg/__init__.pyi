"""Linear algebra: the names, for type checkers and editors.

`docs/stubs.py` writes this file.
"""

from vkdispatch.numpy.basics.manipulation import matrix_transpose as matrix_transpose
from vkdispatch.numpy.linalg.products import LinAlgError as LinAlgError
from vkdispatch.numpy.linalg.products import cross as cross
from vkdispatch.numpy.linalg.products import diagonal as diagonal
from vkdispatch.numpy.linalg.products import dot as dot
from vkdispatch.numpy.linalg.products import inner as inner
from vkdispatch.numpy.linalg.products import kron as kron
from vkdispatch.numpy.linalg.products import matmul as matmul
from vkdispatch.numpy.linalg.products import matvec as matvec
from vkdispatch.numpy.linalg.products import multi_dot as multi_dot
from vkdispatch.numpy.linalg.products import outer as outer
from vkdispatch.numpy.linalg.products import tensordot as tensordot
from vkdispatch.numpy.linalg.products import trace as trace
from vkdispatch.numpy.linalg.products import vdot as vdot
from vkdispatch.numpy.linalg.products import vecdot as vecdot
from vkdispatch.numpy.linalg.products import vecmat as vecmat
from vkdispatch.numpy.linalg.solving import cholesky as cholesky
from vkdispatch.numpy.linalg.solving import det as det
from vkdispatch.numpy.linalg.solving import inv as inv
from vkdispatch.numpy.linalg.solving import matrix_power as matrix_power
from vkdispatch.numpy.linalg.solving import qr as qr
from vkdispatch.numpy.linalg.solving import slogdet as slogdet
from vkdispatch.numpy.linalg.solving import solve as solve
from vkdispatch.numpy.linalg.solving import tensorinv as tensorinv
from vkdispatch.numpy.linalg.solving import tensorsolve as tensorsolve
from vkdispatch.numpy.linalg.spectra import HOST_FUNCTIONS as HOST_FUNCTIONS
from vkdispatch.numpy.linalg.spectra import PerformanceWarning as PerformanceWarning
from vkdispatch.numpy.linalg.spectra import cond as cond
from vkdispatch.numpy.linalg.spectra import eig as eig
from vkdispatch.numpy.linalg.spectra import eigh as eigh
from vkdispatch.numpy.linalg.spectra import eigvals as eigvals
from vkdispatch.numpy.linalg.spectra import eigvalsh as eigvalsh
from vkdispatch.numpy.linalg.spectra import lstsq as lstsq
from vkdispatch.numpy.linalg.spectra import matrix_norm as matrix_norm
from vkdispatch.numpy.linalg.spectra import matrix_rank as matrix_rank
from vkdispatch.numpy.linalg.spectra import norm as norm
from vkdispatch.numpy.linalg.spectra import pinv as pinv
from vkdispatch.numpy.linalg.spectra import svd as svd
from vkdispatch.numpy.linalg.spectra import svdvals as svdvals
from vkdispatch.numpy.linalg.spectra import vector_norm as vector_norm

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
