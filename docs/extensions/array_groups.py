"""Which page and section of the reference each function of `vkdispatch.numpy` is in: NumPy's groups.

A page has sections, a section the names of its functions. `tests/examples/test_docstrings.py` finds
functions that are in no group or in two.
"""

GROUPS: dict[str, dict[str, str]] = {
    "creation": {
        "From shape or value": (
            "empty empty_like eye full full_like identity ones ones_like zeros zeros_like"
        ),
        "From existing data": (
            "array asarray asarray_chkfinite ascontiguousarray asfortranarray copy from_dlpack from_numpy "
            "frombuffer fromfunction fromiter fromstring require"
        ),
        "Numerical ranges": "arange geomspace linspace logspace meshgrid mgrid ogrid",
        "Matrices": "diag diagflat tri tril triu vander",
    },
    "manipulation": {
        "Basic operations": "astype copyto ndim shape size",
        "Shape": "ravel reshape",
        "Transposing": "matrix_transpose moveaxis permute_dims rollaxis swapaxes transpose",
        "Number of dimensions": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims "
            "lib.stride_tricks.as_strided lib.stride_tricks.sliding_window_view sliding_window_view squeeze"
        ),
        "Joining": "block c_ column_stack concatenate dstack hstack r_ stack vstack",
        "Splitting": "array_split dsplit hsplit split unstack vsplit",
        "Repeating": "repeat tile",
        "Adding and removing elements": "append delete insert pad resize trim_zeros",
        "Rearranging": "flip fliplr flipud roll rot90",
    },
    "indexing": {
        "Index arrays": (
            "diag_indices diag_indices_from index_exp indices ix_ mask_indices ravel_multi_index s_ "
            "tril_indices tril_indices_from triu_indices triu_indices_from unravel_index"
        ),
        "Reading elements": "choose compress diagonal select take take_along_axis",
        "Writing elements": "fill_diagonal place put put_along_axis putmask",
    },
    "logic": {
        "Truth": "all any",
        "Contents": "isfinite isinf isnan isneginf isposinf",
        "Types of values": "iscomplex iscomplexobj isfortran isreal isrealobj isscalar",
        "Logical operations": "logical_and logical_not logical_or logical_xor",
        "Comparison": (
            "allclose array_equal array_equiv equal greater greater_equal isclose less less_equal not_equal"
        ),
    },
    "math": {
        "Trigonometric functions": "arccos arcsin arctan arctan2 cos degrees hypot radians sin tan unwrap",
        "Hyperbolic functions": "arccosh arcsinh arctanh cosh sinh tanh",
        "Rounding": "ceil fix floor rint round trunc",
        "Sums and products": (
            "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum nanprod nansum prod sum"
        ),
        "Differences and integrals": "diff ediff1d gradient trapezoid",
        "Exponents and logarithms": "exp exp2 expm1 log log10 log1p log2 logaddexp logaddexp2",
        "Parts of floats": "copysign frexp ldexp nextafter signbit spacing",
        "Rational numbers": "gcd lcm",
        "Arithmetic": (
            "add divide divmod float_power floor_divide fmod modf multiply negative positive power "
            "reciprocal remainder subtract"
        ),
        "Complex numbers": "angle conjugate imag real real_if_close",
        "Extrema": "fmax fmin max maximum min minimum nanmax nanmin",
        "Others": "absolute cbrt clip convolve fabs heaviside i0 interp nan_to_num sign sinc sqrt square",
    },
    "bitwise": {
        "Element by element": (
            "bitwise_and bitwise_count bitwise_or bitwise_xor invert left_shift right_shift"
        ),
        "Packing": "packbits unpackbits",
    },
    "linalg": {
        "Products of matrices and vectors": (
            "einsum einsum_path linalg.cross linalg.dot linalg.inner linalg.kron linalg.matmul "
            "linalg.matrix_power linalg.matvec linalg.multi_dot linalg.outer linalg.tensordot linalg.vdot "
            "linalg.vecdot linalg.vecmat"
        ),
        "Decompositions": "linalg.cholesky linalg.qr linalg.svd linalg.svdvals",
        "Eigenvalues": "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh",
        "Norms and other numbers": (
            "linalg.cond linalg.det linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.slogdet "
            "linalg.trace linalg.vector_norm trace"
        ),
        "Solving equations and inverting matrices": (
            "linalg.inv linalg.lstsq linalg.pinv linalg.solve linalg.tensorinv linalg.tensorsolve"
        ),
        "Parts of matrices": "linalg.diagonal linalg.matrix_transpose",
        "Errors and warnings": "linalg.LinAlgError linalg.PerformanceWarning",
    },
    "random": {
        "Generators": "random.default_rng random.Generator",
        "One generator for the program": (
            "random.rand random.randint random.randn random.random_sample random.seed"
        ),
    },
    "fft": {
        "Complex transforms": "fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn",
        "Real transforms": (
            "fft.hfft fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn"
        ),
        "Frequencies": "fft.fftfreq fft.fftshift fft.ifftshift fft.rfftfreq",
    },
    "sorting": {
        "Sorting": "argpartition argsort lexsort partition sort sort_complex topk",
        "Searching": (
            "argmax argmin argwhere extract flatnonzero nanargmax nanargmin nonzero searchsorted where"
        ),
        "Counting": "count_nonzero",
    },
    "statistics": {
        "Order statistics": "median nanmedian nanpercentile nanquantile percentile ptp quantile",
        "Averages and variances": "average mean nanmean nanstd nanvar std var",
        "Correlating": "corrcoef correlate cov",
        "Histograms": "bincount digitize histogram histogram2d histogram_bin_edges histogramdd",
    },
    "sets": {
        "Unique elements": "unique unique_all unique_counts unique_inverse unique_values",
        "Sets": "intersect1d isin setdiff1d setxor1d union1d",
    },
    "polynomials": {
        "Values and roots": "poly polyfit polyval roots",
        "Arithmetic": "polyadd polydiv polymul polysub",
        "Calculus": "polyder polyint",
    },
    "windows": {"Windows": "bartlett blackman hamming hanning kaiser"},
    "special": {
        "Error functions and gamma functions": (
            "special.erf special.erfc special.gamma special.gammaln special.ndtr"
        ),
        "Bessel functions": "special.i0 special.i0e",
        "Logistic functions": "special.expit special.log_expit special.logit special.softplus",
        "Entropy and losses": (
            "special.entr special.huber special.kl_div special.rel_entr special.xlog1py special.xlogy"
        ),
        "Powers": "special.exp10",
    },
    "io": {
        "Files": "fromfile genfromtxt load loadtxt save savetxt savez savez_compressed",
        "Text": "array2string array_repr array_str",
    },
    "dtypes": {
        "Promotion": "can_cast common_type min_scalar_type promote_types result_type",
        "Questions": "__array_namespace_info__ finfo isdtype",
    },
    "functional": {"Functions of your own": "apply_over_axes piecewise vectorize"},
    "devices": {
        "Devices": "Device to_device",
        "Memory": "asbuffer asnumpy may_share_memory shares_memory",
        "Lazy evaluation": "eval explain",
    },
    "refusals": {
        "Functions that raise": (
            "apply_along_axis asmatrix bmat broadcast frompyfunc memmap ndenumerate ndindex nditer poly1d"
        )
    },
}
