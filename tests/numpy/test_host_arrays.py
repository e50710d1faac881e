"""NumPy arrays as arguments: one error where elements are read; welcome as data, indices and parameters."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import compare
from vkdispatch.numpy.basics.elementwise import UFUNCS

MATRIX = np.array([[4, 1, 0, 2], [1, 5, 3, 0], [0, 3, 6, 1], [2, 0, 1, 7]], np.float32)
# A NumPy array in place of a small letter is refused, in place of a capital letter it is welcome.
VALUES: dict[str, np.ndarray[Any, Any]] = {
    "a": MATRIX,
    "b": MATRIX > 2,
    "c": np.array([True, False, True, True]),
    "n": np.array([0, 1, 1, 3]),
    "o": np.array([[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, 1, 1], [0, 0, 2, 2]]),
    "s": np.array([0, 0.25, 0.5, 1], np.float32),
    "u": np.array([3, 200, 17, 0], np.uint8),
    "v": np.array([1, 2, 4, 8], np.float32),
    "z": np.array([1 + 2j, 3, 1j, 2 - 1j], np.complex64),
    "A": MATRIX,
    "I": np.array([0, 2, 1, 3]),
    "J": np.array([[0, 1, 2, 0]]),
    "Q": np.array([0.25, 0.5]),
    "S": np.array([0, 0.25, 0.5, 1], np.float32),
    "V": np.array([1, 2, 4, 8], np.float32),
}
# Functions whose first argument must be an Array for another reason: it is written, or its memory returned.
WRITTEN = ("asbuffer", "fill_diagonal", "copyto", "put", "put_along_axis", "place", "putmask")
CALLS = """
all(b)  any(b)  max(a)  min(a)  amax(a)  amin(a)  ptp(a)  sum(a)  prod(a)  mean(a)  std(a)  var(a)
median(a)  sum(a, where=b)  max(a, where=b, initial=0)  mean(a, where=b)  std(a, where=b)  all(b, where=b)
sum(a, axis=0, out=v)  max(a, axis=0, out=v)  cumsum(a, 0, out=a)  argmax(a)  argmin(a)  count_nonzero(a)
cumsum(a)  cumprod(a)  cumulative_sum(v)  cumulative_prod(v)  average(a, weights=a)  cov(a, v)
cov(a, fweights=n)  cov(a, aweights=v)  corrcoef(a, a)  nanmax(a)  nanmin(a)  nansum(a)  nanprod(a)
nanmean(a)  nanstd(a)  nanvar(a)  nanmedian(a)  nanargmax(a)  nanargmin(a)  nancumsum(a)  nancumprod(a)
nansum(a, where=b)  quantile(a, Q)  percentile(a, Q)  nanquantile(a, Q)  nanpercentile(a, Q)
isclose(a, v)  allclose(a, v)  isclose(a, v, rtol=v)  isclose(a, v, atol=v)  array_equal(a, v)
array_equiv(a, v)  nan_to_num(a)  isposinf(a)  isneginf(a)  fix(v)  sinc(v)  angle(z)  real(z)  imag(z)
iscomplex(z)  isreal(z)  round(a)  around(a)  clip(a, v, v)  clip(a, 1, 2, out=a)  real_if_close(z)
unwrap(v)  i0(v)  floor(v)  ceil(v)  trunc(v)  abs(v)  divmod(v, v)  modf(v)  frexp(v)  ldexp(v, n)
spacing(v)  where(b, a, v)  where(b)  select([b, b], [a, a], v)  piecewise(v, [c], [1])
choose(o, [a, a, a])  nonzero(a)  flatnonzero(a)  argwhere(a)  extract(b, a)  compress(c, a, 0)  sort(a)
argsort(a)  partition(v, 2)  argpartition(v, 2)  lexsort([v, n])  sort_complex(z)  topk(v, 2)
searchsorted(s, v)  searchsorted(s, v, sorter=I)  digitize(v, S)  isin(a, V)  unique(v)  unique_all(v)
unique_counts(v)  unique_inverse(v)  unique_values(v)  union1d(v, s)  intersect1d(v, s)  setdiff1d(v, s)
setxor1d(v, s)  take(a, I, 0)  take(a, I)  take_along_axis(a, J, 0)  diff(v)  diff(v, prepend=s)
diff(v, append=s)  ediff1d(v)  ediff1d(v, to_end=s)  ediff1d(v, to_begin=s)  gradient(a)  gradient(v, s)
trapezoid(v)  trapezoid(v, s)  interp(v, s, v)  convolve(v, s)  correlate(v, s)  bincount(n)
bincount(n, weights=v)  histogram(v)  histogram(v, S)  histogram(v, weights=v)  histogram_bin_edges(v)
histogram_bin_edges(v, S)  histogram2d(v, v)  histogram2d(v, v, weights=v)  histogramdd(a)
histogramdd(a, weights=v)  meshgrid(v, s)  ix_(n, n)  broadcast_to(v, (4, 4))  broadcast_arrays(v, a)
sliding_window_view(v, 2)
reshape(a, 16)  ravel(a)  transpose(a)  permute_dims(a, (1, 0))  matrix_transpose(a)  swapaxes(a, 0, 1)
moveaxis(a, 0, 1)  rollaxis(a, 1)  expand_dims(a, 0)  squeeze(a)  flip(a)  fliplr(a)  flipud(a)  rot90(a)
roll(a, 1)  tile(v, 2)  repeat(v, 2)  repeat(v, I)  resize(v, 6)  pad(v, 1)  pad(v, 1, constant_values=Q)
atleast_1d(v)  atleast_2d(v)  atleast_3d(v)  unstack(a)  split(v, 2)  split(a, I)  array_split(v, 2)
hsplit(a, 2)  vsplit(a, 2)  dsplit(m.reshape(a, (2, 2, 4)), 2)  concat([v, s])  concatenate([v, s])
stack([v, s])  hstack([v, s])  vstack([v, s])  dstack([v, s])  column_stack([v, s])  block([v, s])
append(v, s)  insert(v, I, v)  delete(v, I)  trim_zeros(v)  diag(v)  diagflat(v)  diagonal(a)  tril(a)
triu(a)  tril_indices_from(a)  triu_indices_from(a)  diag_indices_from(a)  trace(a)  vander(v)
packbits(u)  unpackbits(u)  astype(v, 'f8')  fill_diagonal(a, v)  copyto(a, v)  copyto(a, v, where=b)
put(v, I, s)  put_along_axis(a, J, v, 0)  place(a, b, v)  putmask(a, b, v)
ravel_multi_index((n, n), (4, 4))  unravel_index(n, (4, 4))  dot(a, v)  inner(a, v)  vdot(v, s)
outer(v, s)  vecdot(a, v)  matmul(a, a)  matvec(a, v)  vecmat(v, a)  tensordot(a, v, 1)  kron(v, s)
cross(v[:3], s[:3])  einsum('ij,j', a, v)  dot(a, a, out=a)  poly(v)  polyadd(v, s)  polysub(v, s)
polymul(v, s)  polydiv(v, v)  polyder(v)  polyint(v)  polyval(v, s)  polyfit(s, v, 1)
polyfit(s, v, 1, w=v)  roots(v)  apply_over_axes(m.sum, a, [0])  linalg.cholesky(a)  linalg.cond(a)
linalg.det(a)  linalg.diagonal(a)  linalg.eig(a)  linalg.eigh(a)  linalg.eigvals(a)  linalg.eigvalsh(a)
linalg.inv(a)  linalg.lstsq(a, v)  linalg.matrix_norm(a)  linalg.matrix_power(a, 2)  linalg.matrix_rank(a)
linalg.multi_dot([a, a, v])  linalg.norm(a)  linalg.pinv(a)  linalg.qr(a)  linalg.slogdet(a)
linalg.solve(a, v)  linalg.svd(a)  linalg.svdvals(a)  linalg.tensorinv(a, 1)  linalg.tensorsolve(a, v)
linalg.trace(a)  linalg.vector_norm(v)  linalg.cross(v[:3], s[:3])  linalg.outer(v, s)  fft.fft(v)
fft.fft2(a)  fft.fftn(a)  fft.fftshift(v)  fft.hfft(v)  fft.ifft(v)  fft.ifft2(a)  fft.ifftn(a)
fft.ifftshift(v)  fft.ihfft(v)  fft.irfft(v)  fft.irfft2(a)  fft.irfftn(a)  fft.rfft(v)  fft.rfft2(a)
fft.rfftn(a)  special.entr(v)  special.erf(v)  special.erfc(v)  special.exp10(v)  special.expit(v)
special.gamma(v)  special.gammaln(v)  special.huber(v, s)  special.i0(v)  special.i0e(v)
special.kl_div(v, s)  special.log_expit(v)  special.logit(s)  special.ndtr(v)  special.rel_entr(v, s)
special.softplus(v)  special.xlog1py(v, s)  special.xlogy(v, s)  array(A)  asarray(A)  asanyarray(A)
ascontiguousarray(A)  asfortranarray(A)
copy(A)  asnumpy(V)  full(4, V)  full_like(V, V)  zeros_like(V)  ones_like(V)
linspace(V, 9, 3)  geomspace(V, 9, 3)  logspace(V, 9, 3)
fromfunction(lambda i: i + v, (4,))  to_device(v, m.zeros(1).device)  asbuffer(v)  isfortran(a)
"""

# Functions without arguments that hold elements, and those whose arguments may be anything.
OTHERS = """
arange empty_like eye identity tri zeros ones empty indices fromiter frombuffer fromfile fromstring loadtxt
genfromtxt load bartlett blackman hamming hanning kaiser fftfreq rfftfreq diag_indices tril_indices
triu_indices mask_indices broadcast_shapes can_cast promote_types result_type common_type min_scalar_type
isdtype issubdtype iscomplexobj isrealobj isscalar iterable ndim shape size may_share_memory
shares_memory set_default_dtype array2string array_repr array_str save savez savetxt savez_compressed
get_printoptions set_printoptions printoptions eval explain from_dlpack from_numpy einsum_path
vectorize apply_along_axis asmatrix bmat broadcast frompyfunc memmap ndenumerate ndindex
nditer poly1d errstate finfo iinfo asarray_chkfinite require
"""


def calls(texts: str) -> list[str]:
    return [call for line in texts.strip().splitlines() for call in line.split("  ")]


def names_in(call: str) -> list[str]:
    """Return the names of arrays in the text of a call, each once."""
    return [name for name in VALUES if re.search(rf"\b{name}\b(?!=)", call)]


def evaluate(call: str, m: Any, on_host: str | None) -> Any:
    values: dict[str, Any] = {name: vnp.asarray(VALUES[name]) for name in names_in(call)}
    if on_host is not None:
        values[on_host] = VALUES[on_host].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"m.{call}", {"m": m, **values})


def expect_refusal(call: str, name: str) -> None:
    with pytest.raises(TypeError, match=r"got a NumPy array of shape .* and dtype ") as caught:
        evaluate(call, vnp, name)
    is_written = f"out={name}" in call or call.startswith(tuple(f"{each}({name}" for each in WRITTEN))
    assert is_written or "convert it with vnp.asarray" in str(caught.value), (call, name, caught.value)
    # NumPy's function of the same name refuses, too, or computes on the host
    if len(names_in(call)) > 1 and hasattr(np, call.partition("(")[0]):
        try:
            found = evaluate(call, np, name)
        except TypeError:
            return
        assert not isinstance(found, vnp.Array), (call, name)


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_elements_come_from_arrays_only(line: str) -> None:
    for call in calls(line):
        for name in names_in(call):
            if name.islower():
                expect_refusal(call, name)


def test_data_indices_and_parameters_may_be_numpy_arrays() -> None:
    for call in calls(CALLS):
        for name in names_in(call):
            if name.isupper():
                found, expected = (evaluate(call, vnp, each) for each in (name, None))
                compare(found, expected)


@pytest.mark.parametrize("name", UFUNCS)
def test_elementwise_functions_refuse_numpy_arrays(name: str) -> None:
    ufunc = getattr(np, name)
    kind = np.float32 if any(each.startswith("f") for each in ufunc.types) else np.int32
    host, array = np.ones(3, kind), vnp.ones(3, kind)
    for position in range(ufunc.nin):
        operands = [host if i == position else array for i in range(ufunc.nin)]
        with pytest.raises(TypeError, match=r"x\d?: .*NumPy array of shape .* with vnp\.asarray"):
            UFUNCS[name](*operands)
    out = UFUNCS[name](*[array] * ufunc.nin)
    for options in ({"out": host}, {"out": out, "where": host > 0}):
        with pytest.raises(TypeError, match="NumPy array of shape"):
            UFUNCS[name](*[array] * ufunc.nin, **options)


def test_the_table_has_all_functions() -> None:
    there = {call.partition("(")[0].rpartition(".")[2] for call in calls(CALLS)}
    there |= {*OTHERS.split(), *UFUNCS, *(each.__name__ for each in UFUNCS.values())}
    for module in (vnp, vnp.linalg, vnp.fft, vnp.special):
        for name in module.__all__:
            value = getattr(module, name)
            same = {each for each in there if getattr(module, each, None) is value}
            if callable(value) and not isinstance(value, type):
                assert name in there or same, (module.__name__, name)


def test_elements_may_be_set_to_numpy_arrays() -> None:
    x = vnp.zeros((3, 4), np.float32)
    x[1:] = MATRIX[:2]
    x[vnp.asarray([0])] = np.arange(4)
    np.testing.assert_array_equal(x.numpy(), [[0, 1, 2, 3], *MATRIX[:2]])
    assert x[np.array([2, 0]), np.array([True, False, True, False])].shape == (2,)
