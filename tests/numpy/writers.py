# ruff: noqa: E501
"""Templates of calls of each public function of `vkdispatch.numpy`, by family. `programs` says what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from vkdispatch.numpy.basics.elementwise import UFUNCS

from .programs import FILLS, TAME, Writer

Table = dict[str, Writer]


def table(text: str, prefix: str = "", call: str = "m.", **options: Any) -> Table:
    """Return writers of lines, each the names of functions and their template, in which $ is the function."""
    found = {}
    for line in text.strip().splitlines():
        names, _, template = line.strip().partition(": ")
        for name in names.split():
            found[f"{prefix}{name}"] = Writer(template.replace("$", f"{call}{name}"), **options)
    return found


# -- element by element

_ROUNDED = "arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos cosh exp exp2 expm1 hypot log log10 log1p log2"
_ROUNDED += " logaddexp logaddexp2 sin sinh tan tanh"
_ULPS = dict.fromkeys(
    ["absolute", "add", "subtract", "multiply", "divide", "square", "reciprocal", "sqrt"], 1.0
)
_ULPS |= dict.fromkeys(_ROUNDED.split(), 6.0) | {"power": 12.0, "float_power": 12.0}
# devices may round quotients otherwise, and NumPy's factor of degrees is rounded
_ULPS |= {"degrees": 2.0, "radians": 2.0, "absolute": 2.0, "divide": 2.0, "floor_divide": 2.0, "sign": 3.0}
_NARROW = {"left_shift": "i/small", "right_shift": "i/small", "power": "n/small"}
_ALIASES = (  # names that are another one's
    "abs=absolute acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atan2=arctan2 atanh=arctanh "
    "bitwise_invert=invert bitwise_left_shift=left_shift bitwise_not=invert bitwise_right_shift=right_shift "
    "conj=conjugate deg2rad=radians mod=remainder pow=power rad2deg=degrees true_divide=divide"
)


def _ufunc(name: str, own: str) -> Writer:
    second = f"{{y:{_NARROW.get(name, '')}}}"
    pairs = [f"{{x}}, {second}", f"{{x}}, {second}", "{x}, {number}", "{number}, {x}"]
    arguments = ["{x}"] if getattr(np, name).nin == 1 else pairs
    plain = [f"m.{own}({each}<, out=OUT><, dtype={{kind:g}}>)" for each in arguments]
    text = " || ".join([*plain, f"m.{own}({arguments[0]}, out=OUT, where={{where}})"])
    return Writer(
        text,
        _ULPS.get(name),
        # NumPy's magnitudes of subnormal complex numbers have few digits
        fills=tuple(each for each in FILLS if each != "tiny" or name != "sign"),
        signs=name not in _ULPS.keys() - {"floor_divide", "sign"} and "imum" not in name and "fm" not in name,
    )


ELEMENTWISE: Table = {name: _ufunc(name, name) for name in UFUNCS}
ELEMENTWISE |= {own: _ufunc(name, own) for own, name in (each.split("=") for each in _ALIASES.split())}
ELEMENTWISE |= table(
    """
    fix isneginf isposinf: $({x:r}<, out=OUT>)
    frexp spacing: $({x:f})
    modf: $({x:r})
    ldexp: $({x:f}, {y:j/small})
    iscomplex isreal real imag real_if_close: $({x})
    clip: $({x:r}, {number:r}, 3<, out=OUT>) || $({x:r}, {y:r}, {w:r0}) || $({x:r}, None, {y:r}<, out=OUT>)
    round: $({x}<, {i}>) || $({x:r}, out=OUT)
    around: $({x}<, {i}>) || $({x:f/small} / 2)
    nan_to_num: $({x}<, nan={number:r}><, posinf=1.0>)
    isclose: $({x}, {y}<, equal_nan=True>) || $({x:f}, {x:f} * 1.00001, rtol=1e-4)
    where: $({x:b}, {y}, {y}) || $({x}) || $({mask}, {x}, {number}) || $({mask}, {x}, {y})
    select: $([{mask}, {mask}], [{x}, {y}]<, {i}>)
    piecewise: $({x:r}, [{mask:e}], [{i}, {i}])
    """
)
_DIVMOD = "$({x:r}, {y:r}) || $({x:d}, {y:d}, out=(x, None)) || $({x:r}, {number}) || divmod({x:r}, {y:r})"
ELEMENTWISE |= table(f"divmod: {_DIVMOD}", ulps=2)
ELEMENTWISE |= table(
    """
    sinc i0: $({x:f})
    angle: $({x}<, deg=True>)
    unwrap: $({x:f1m}<, axis={axis}><, period=3.0>)
    """,
    ulps=24,
    scale="top",
    fills=TAME,
)
_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and": "&",
}
_SIGNS |= {"or": "|", "xor": "^", "lshift": "\0\0", "rshift": "\1\1"}  # < and > in templates
_COMPARISONS = {"lt": "\0", "le": "\0=", "gt": "\1", "ge": "\1=", "eq": "==", "ne": "!="}


def _operators() -> Table:
    found = {}
    for name, sign in {**_SIGNS, **_COMPARISONS}.items():
        ulps = (
            12.0
            if name == "pow"
            else 2.0
            if "div" in name
            else 1.0
            if name in ("add", "sub", "mul")
            else None
        )
        x, y = (
            ("{x:i}", "{y:i/small}")
            if "shift" in name
            else ("{x}", "{y:n/small}" if name == "pow" else "{y}")
        )
        found[f"Array.__{name}__"] = Writer(f"{x} {sign} {y} || {x} {sign} {{number}}", ulps)
        if name in _SIGNS:
            found[f"Array.__r{name}__"] = Writer(f"{{number}} {sign} {x}", ulps)
            found[f"Array.__i{name}__"] = Writer(f"{x} {sign}= {y} || {x} {sign}= {{number}}", ulps)
    return found


OPERATORS: Table = _operators() | table(
    """
    __neg__: -{x}
    __pos__: +{x}
    __invert__: ~{x}
    __contains__: {i} in {x}
    __getitem__: {x}[{index}] || {x}[{mask:e}] || {x}[{places:0}]
    __setitem__: {x}[{index}] = {number} || {x}[{mask:e}] = {number} || {x:n1}[:] = {y:ne} || {x}[{places:0}] = {number}
    __len__: len({x})
    __iter__: list({x:n1s})
    __bool__: bool({x:n1s}) || bool({x}.sum())
    __int__: int({x:r}.max()) || int({x})
    __float__: float({x:r}.max()) || float({x})
    __complex__: complex({x:n2s}[0, 0]) || complex({x})
    __index__: range(10)[{x:i1s/below}[0]] || [1, 2, 3][{x:j}]
    __round__: round({x:r1s}[0]) || round({x:f1s/small}[0], 1)
    __copy__: __import__('copy').copy({x})
    __deepcopy__: __import__('copy').deepcopy({x})
    __reduce__: __import__('pickle').loads(__import__('pickle').dumps({x}))
    __format__: format({x:i}) || format({x:r1s}[0], '.3')
    __repr__: repr({x:f/small}).lower()[:5]
    __str__: str({x:i})
    __array__: np.array({x}) || np.array({x}, dtype=np.complex64)
    """,
    "Array.",
)
OPERATORS |= table(
    """
    __abs__: abs({x})
    __divmod__: divmod({x:r}, {y:r})
    __rdivmod__: divmod({i}, {x:r})
    """,
    "Array.",
    ulps=2,
)
OPERATORS |= table(
    """
    __matmul__: {x:s2q/small} @ {y:se/small}
    __imatmul__: {x:s2q/small} @= {y:se/small}; r = x
    """,
    "Array.",
    ulps=4,
    scale="top * top * size",
)

# -- reductions and scans

_ANY = "{x}<, axis={axes}><, keepdims={bool}>"
REDUCTIONS: Table = table(
    f"""
    min max amin amax: $({_ANY}<, out=OUT><, initial={{i}}>) || $({_ANY}, initial={{i}}, where={{where}})
    nanmin nanmax ptp: $({_ANY.replace("{x}", "{x:r}")}<, out=OUT>)
    all any: $({_ANY}<, out=OUT><, where={{where}}>)
    count_nonzero: $({_ANY})
    argmin argmax nanargmin nanargmax: $({{x:r}}<, axis={{axis}}><, keepdims={{bool}}>) || $({{x:r}}, axis={{axis}}, out=OUT)
    """
)
REDUCTIONS |= table(
    f"""
    sum nansum: $({_ANY}<, dtype={{kind:s}}><, out=OUT><, where={{where}}><, initial={{i}}>)
    mean nanmean: $({_ANY}<, dtype={{kind:s}}><, out=OUT><, where={{where}}>)
    cumsum nancumsum: $({{x}}<, axis={{axis}}><, dtype={{kind:s}}><, out=OUT>)
    cumulative_sum: $({{x}}<, axis={{axis}}><, include_initial=True>) || $({{x:n1}})
    average: $({{x:g}}<, axis={{axis}}>) || $({{x:d1}}, weights={{y:de/near}})
    trace: $({{x:n2m}}<, {{i}}><, dtype={{kind:s}}><, out=OUT>)
    apply_over_axes: $(m.sum, {{x:n2m}}, {{axis}})
    """,
    ulps=8,
    scale="top * size",
    fills=TAME,
)
REDUCTIONS |= table(
    f"""
    prod nanprod: $({_ANY}<, where={{where}}><, initial={{i}}>)
    cumprod nancumprod: $({{x}}<, axis={{axis}}><, out=OUT>)
    cumulative_prod: $({{x:n1}}<, axis={{axis}}><, include_initial=True>)
    """,
    ulps=600,
    fills=("flags", "few", "flat"),
)
REDUCTIONS |= table(
    f"var std nanvar nanstd: $({_ANY}<, ddof=1><, out=OUT><, where={{where}}>)",
    ulps=64,
    scale="top * top * sqrt(size)",
    fills=TAME,
)

# -- what moves elements

MOVING: Table = table(
    """
    append: $({x:n1}, {y:n1}<, axis=0>)
    array_split: $({x:n1m}, {n}<, axis={axis}>) || $({x:n1m}, [1, 3])
    astype: $({x:o}, {kind}<, copy={bool}>) || $({x}, {kind:c}) || $({x:f/small}, {kind})
    atleast_1d: $({x}) || $({x}, {z})
    atleast_2d atleast_3d copy fliplr flipud matrix_transpose asnumpy asanyarray ascontiguousarray asfortranarray linalg.matrix_transpose: $({x})
    require: $({x:n1m}<, {kind:c}>) || $({x}, None, "C") || $({x}, None, ["W", "O"])
    asarray_chkfinite: $({x:f}) || $({x:n/small})
    block: $([{x:n1}, {y:n1}]) || $([[{x:n2}], [{x:n2}]])
    broadcast_arrays: $({x}, {y})
    broadcast_to: $({x}, (2, *{x}.shape)) || $({x}, {shape})
    choose: $({x:i1/below3}, [{y}, {y}, {i}]) || $({x:i1/index5}, [{y}, {i}], mode='wrap') || $({x:i1/index5}, [{y}, {i}], mode='clip')
    column_stack dstack vstack: $([{x}, {y:ne}])
    compress: $([True, False, True], {x}<, axis={axis}><, out=OUT>) || $({mask:e}, {x})
    concat: $([{x}, {y:ne}]<, axis={axis}>) || $([{x}, {z}], axis=None)
    concatenate: $([{x}, {y:ne}]<, axis={axis}><, out=OUT>) || $([{x}, {y:ne}]<, axis={axis}><, dtype={kind}>) || $([{x}, {z}], axis=None)
    delete: $({x}, {k}<, axis={axis}>) || $({x:n1}, {places}) || $({x:n1}, slice(None, None, 2)) || $({x:n1}, {mask:e})
    diag: $({x:n1}<, {i}>) || $({x:n2}<, {i}>)
    diagflat: $({x:n1s}<, {i}>)
    diagonal: $({x:n2m}<, {i}>) || $({x:n3}, {i}, 0, {axis})
    dsplit: $({x:n3}, [1])
    expand_dims: $({x}, {axis}) || $({x}, (0, -1))
    extract: $({mask:e}, {x})
    flip: $({x:n1m}<, axis={axes}>)
    hsplit: $({x:n1m}, [1])
    hstack: $([{x}, {y:ne}]<, dtype={kind}>)
    insert: $({x}, {k}, {number}<, axis={axis}>) || $({x:n1}, {places}, {number}) || $({x:n1s}, 1, {y:ne}, axis=0)
    moveaxis swapaxes: $({x}, {axis}, {axis})
    packbits: $({x:o}<, axis={axis}><, bitorder='little'>)
    pad: $({x:n1}, {pair}) || $({x:n1m}, 1, mode='edge') || $({x:n1m}, 2, mode='wrap') || $({x:n2}, ({pair}, {pair})) || $({x:n1}, {pair}, mode='reflect') || $({x:n1m}, 2, mode='symmetric') || $({x:r1}, 1, mode='maximum') || $({x:n1}, {pair}, constant_values={i}) || $({x:r1}, {pair}, mode='minimum') || $({x:d1}, {pair}, mode='reflect', reflect_type='odd')
    permute_dims transpose: $({x}<, {axes}>)
    ravel: $({x}<, order='F'>)
    repeat: $({x}, {n}<, axis={axis}>) || $({x:n1s}, {y:je/below})
    reshape: $({x}, {reshaped}<, order='F'>) || $({x}, {reshaped}, copy={bool})
    resize: $({x}, {shape})
    roll: $({x}, {i}<, axis={axis}>) || $({x:n2m}, m.asarray([1, 2]), axis=(0, 1)) || $({x:n2m}, (1, 2), axis=(0, 1))
    rollaxis: $({x}, {axis}<, {i}>)
    rot90: $({x:n2m}<, {i}>)
    sliding_window_view: $({x:n1}, 2) || $({x:n2}, (2, 1)) || $({x:n2}, 2, axis=1)
    split: $({x:n1m}, 2) || $({x:n1m}, [1, 3], axis={axis}) || $({x}, 1)
    squeeze: $({x}<, {axis}>)
    stack: $([{x}, {y:ne}]<, {axis}><, out=OUT>)
    take: $({x}, {places}, axis=-1<, out=OUT>) || $({x}, {places:flat}) || $({x:n1}, [5, -9, 1], mode='wrap') || $({x:n1}, [5, -9, 1], mode='clip')
    take_along_axis: $({x:n1}, {places}) || $({x:n2}, m.argsort(x.real, axis={axis}, stable=True), {axis}) || $({x}, {places:flat}, axis=None)
    tile: $({x}, {i}) || $({x}, (2, 1)) || $({x}, (2, 1, 3))
    tril triu: $({x:n1m}<, {i}>)
    trim_zeros: $({x:n1/flags}<, 'f'>)
    unpackbits: $({x:u}<, axis={axis}><, bitorder='little'>)
    unstack: $({x:n1m}<, axis={axis}>)
    vsplit: $({x:n2m}, [1])
    copyto: $({x}, {y}<, where={where}>); r = x || $({x}, {number}<, where={where}>); r = x
    fill_diagonal: $({x:n2}, {number}<, wrap=True>); r = x
    place: $({x}, {mask:e}, [1, 2, 3]); r = x
    put: $({x}, {places:flat}, {number:r}); r = x || $({x}, [0, 99, -7], [1, 2], mode='clip'); r = x || $({x}, [0, 99, -7], {i}, mode='wrap'); r = x
    put_along_axis: $({x:n1}, {places}, {i}, axis=0); r = x
    putmask: $({x}, {mask:e}, {number}); r = x || $({x}, {mask:e}, {y}); r = x
    to_device: $({x}, {x}.device)
    eval: $({x}); r = x
    asarray: $({x}<, dtype={kind}>) || $({x}, copy={bool})
    array: $({x}<, copy={bool}><, ndmin=2>) || $([{x:n1}, {x:n1}])
    linalg.diagonal: $({x:n2m}<, offset={i}>)
    """,
    signs=True,
)

MOVING |= table("vander: $({x:r1s/small}<, {n}>)", ulps=64)

# -- order, sets, logic, counts

SORTING: Table = table(
    """
    allclose: $({x}, {y}) || $({x:f}, {x:f} + 1e-9)
    array_equal: $({x}, {y}) || $({x}, {x}.copy()<, equal_nan=True>)
    array_equiv: $({x}, {y})
    argsort: $({x}<, axis={axis}>, stable=True)
    argpartition: m.sort(m.take_along_axis({x:r1}, $({x:r1}, {k}), -1))
    argwhere flatnonzero nonzero sort_complex: $({x})
    bincount: $({x:i1/below40}<, minlength={n}>) || $({x:i1/index3}) || $({x:i1/below40}, weights={y:re/small})
    digitize: $({x:r}, {y:r1/rising}<, right=True>)
    histogram: $({x:r/small}<, bins={n}><, range=(-5, 5)>) || $({x:r/small}, bins=[-3, 0, 2, 9])
    histogram2d: $({x:d1/small}, {y:de/small}, bins=4)[0]
    histogram_bin_edges: $({x:d/small}, bins=8, range=(0, 16))
    histogramdd: $({x:d2/small}[:, :2], bins=3, range=[(-9, 9), (-9, 9)])[0]
    lexsort: $(({x:r1}, {y:re}))
    partition: m.sort($({x:r1}, 0))
    searchsorted: $({x:r1/rising}, {z:r}<, side='right'>)
    union1d: $({x:r}, {z:r})
    sort: $({x}<, axis={axis}>)
    topk: $({x:r1m}, {n}<, largest={bool}><, axis={axis}>)
    unique: $({x:o}<, return_index=True><, return_inverse=True><, return_counts=True>) || $({x:r}<, return_counts=True>) || $({x:r/small}<, return_index=True><, return_inverse=True><, return_counts=True>)
    unique_all unique_inverse: list($({x:r/small}))
    unique_counts: list($({x}))
    unique_values: m.sort($({x}))
    median: $({x:o}<, axis={axes}><, keepdims={bool}>)
    linalg.matrix_rank: $({x:d2q/few})
    """
)

# NumPy takes integers that float64 cannot tell apart for equal
SORTING |= table(
    """
    intersect1d: $({x:r}, {z:r}<, return_indices=True>)
    isin: $({x}, {z}<, invert=True>)
    setdiff1d setxor1d: $({x:r}, {z:r})
    """,
    fills=TAME,
)

# -- statistics and signals

STATISTICS: Table = table(
    """
    convolve: $({x:s1}, {z:s1s}<, 'same'>) || $({x:s1}, {z:s1s}, 'valid')
    correlate: $({x:s1}, {z:s1s}<, 'same'>) || $({x:s1}, {z:s1s}, 'full')
    corrcoef: $({x:d2})
    cov: $({x:d2}<, bias=True><, rowvar=False>) || $({x:d1}, {y:de}, ddof=0)
    cross: $({x:s2s}[:, :1] * m.ones(3), {y:se}[:, :1] * m.ones(3))
    diff: $({x:n1m}<, {n}><, axis={axis}>) || $({x:n1}, prepend={i})
    ediff1d: $({x:r}<, to_begin={i}>)
    gradient: $({x:g1}) || $({x:d2}, axis={axis}) || $({x:d1}, 2.0, edge_order=2)
    interp: $({x:d}, {y:d1/rising}, {y:d1}) || $({x:f}, [0, 1, 4], [1.0, 2, -3])
    nanmedian: $({x:d}<, axis={axes}><, keepdims={bool}>)
    trapezoid: $({x:g1m}<, dx=0.5><, axis={axis}>)
    poly polyint: $({x:d1s})
    polyadd polymul polysub: $({x:d1s}, {z:d1s})
    polyder: $({x:d1s}<, {n}>)
    polydiv: $([1.0, 2, 3, 4], [1.0, 2])
    polyfit: $(m.arange(6.0), m.arange(6.0) ** 2, {pair}[0])
    polyval: $({x:d1s}, {z:d/few})
    roots: m.sort(m.abs($([1.0, -6, 11, -6])))
    bartlett blackman hamming hanning: $({n})
    kaiser: $({n}, 3.0)
    """,
    ulps=64,
    scale="top * top * size",
    fills=TAME,
)
STATISTICS |= table(
    """
    nanpercentile: $({x:d}, {number:r}<, axis={axes}>)
    nanquantile: $({x:d}, [0.25, 0.5]<, axis={axis}>)
    percentile: $({x:d}, [10, 50]<, axis={axes}><, keepdims={bool}>) || $({x:d1}, 30, method='lower')
    quantile: $({x:d}, 0.3<, axis={axes}><, method='nearest'>) || $({x:d1}, [0, 0.2, 1], method='hazen') || $({x:d1}, [0.1, 0.8], weights={y:de/near}, method='inverted_cdf')
    """,
    ulps=64,
    scale="top * loss",
    fills=TAME,
)

# -- products and matrices

LINALG: Table = table(
    """
    dot: $({x:s1}, {y:se}) || $({x:s2q}, {y:se}<, out=OUT>) || $({x:s}, {number:r})
    einsum: $('i,i->', {x:s1}, {y:se}) || $('ij->ji', {x:s2}) || $('ij,kj->ik', {x:s2}, {y:se}) || $('ii->i', {x:s2})
    inner: $({x:s1}, {y:se}) || $({x:s2}, {y:se})
    kron linalg.kron: $({x:s1s}, {z:s2s})
    matmul: $({x:s2q}, {y:se}<, out=OUT>) || $({x:s2}, {y:se}, axes=[(0, 1), (1, 0), (1, 0)]) || $({x:s2}, {y:se}.T) || $({x:i2q/small}, {y:ie/small}) || $({x:s1}, {y:se})
    matvec linalg.matvec: $({x:s2}, {x:s2}[0])
    outer linalg.outer: $({x:s1s}, {z:s1})
    tensordot: $({x:s2}, {y:se}, axes=([1], [1])) || $({x:s1}, {y:se}, 0)
    vdot linalg.vdot: $({x:s}, {y:se})
    vecdot linalg.vecdot: $({x:s1m}, {y:s})
    vecmat linalg.vecmat: $({x:s2}[:, 0], {x:s2})
    linalg.cross: $({x:s2}[..., :3], {x:s2}[..., :3])
    linalg.dot linalg.inner: $({x:s1}, {y:se})
    linalg.matmul: $({x:s2q}, {y:se})
    linalg.matrix_power: $({x:h2q/small}, {pair}[1])
    linalg.multi_dot: $([{x:s2}, {x:s2}.T, {x:s2}])
    linalg.tensordot: $({x:s2}, {y:se}, axes=([1], [1]))
    linalg.trace: $({x:n2q}<, offset={i}>)
    linalg.vector_norm: $({x:s}<, axis={axes}><, keepdims={bool}><, ord={ord:v}>)
    linalg.matrix_norm: $({x:s2}<, ord={ord}><, keepdims={bool}>)
    linalg.norm: $({x:s}<, axis={axis}><, keepdims={bool}>) || $({x:s2}, 1) || $({x:s1}, 3)
    """,
    ulps=16,
    scale="top * top * size",
    fills=TAME,
)
_REGULAR = "({x:h2q/few} + 40 * m.eye(x.shape[-1]))"
LINALG |= table(
    f"""
    linalg.cholesky: $({_REGULAR} @ m.conj({_REGULAR}).mT) || $(m.eye({{n}})[:17, :17] * 4.0)
    linalg.cond: $({_REGULAR})
    linalg.det: $({{x:h2q/few}} / 4)
    linalg.eig: m.sort(m.abs($({_REGULAR})[0]), axis=-1)
    linalg.eigh: $({_REGULAR} + m.conj({_REGULAR}).mT)[0]
    linalg.eigvals: m.sort(m.abs($({_REGULAR})), axis=-1)
    linalg.eigvalsh: $({_REGULAR} + m.conj({_REGULAR}).mT)
    linalg.inv: $({_REGULAR})
    linalg.lstsq: $({_REGULAR.replace("h2q", "d2")[:-1].split(" + ")[0][1:]}, {{y:de}})[0].shape
    linalg.pinv: $({_REGULAR})
    linalg.qr: [m.abs(each.sum(-1) * 0) for each in $({{x:h2}})] || m.matmul(*$({{x:h2}}))
    linalg.slogdet: list($({_REGULAR}))
    linalg.solve: $({_REGULAR}, {{y:he}}) || $({_REGULAR}, {{x:h2q/few}}[..., :1])
    linalg.svd: $({{x:h2}})[1] || $({{x:h2}}, compute_uv=False)
    linalg.svdvals: $({{x:h2}})
    linalg.tensorinv: $(m.eye(6).reshape(2, 3, 3, 2) * 2, ind=2)
    linalg.tensorsolve: $(m.eye(6).reshape(2, 3, 3, 2) * 2, {{x:d2s/few}}[:1, :1] + m.ones((2, 3)))
    """,
    ulps=1000,
    scale="top * top * size",
    fills=TAME,
)

# -- transforms

_ONCE = "$({x:s1m}<, n={n}><, axis={axis}><, norm={norm}>)"
_TWICE = "$({x:s2m}<, norm={norm}>) || $({x:s2}, s={pair})"
_OFTEN = "$({x:s1m}<, axes=({axis},)>) || $({x:s2}, s=(4, 5))"
TRANSFORMS: Table = table(
    f"""
    fft ifft: {_ONCE}
    hfft irfft: {_ONCE.replace("1m", "1p")}
    rfft ihfft: {_ONCE.replace(":s", ":d")}
    fft2 ifft2: {_TWICE}
    irfft2: {_TWICE.replace("2m", "2p")}
    rfft2: {_TWICE.replace(":s", ":d")}
    fftn ifftn: {_OFTEN}
    irfftn: {_OFTEN.replace("1m", "1p")}
    rfftn: {_OFTEN.replace(":s", ":d")}
    """,
    "fft.",
    "m.fft.",
    ulps=40,
    scale="top * size",
    fills=TAME,
)
TRANSFORMS |= table("fftshift ifftshift: $({x:n1m}<, axes={axes}>)", "fft.", "m.fft.")
TRANSFORMS |= table("fftfreq rfftfreq: $({n}<, 0.5>)", "fft.", "m.fft.")

# -- creation, and what is no array

CREATION: Table = table(
    """
    arange: $({n}) || $({i}, {n}, {i}<, dtype={kind:r}>) || $(0, 1, 0.125) || $({n}, dtype={kind})
    diag_indices: $({n}<, 3>)
    diag_indices_from: $(m.zeros((3, 3)))
    empty: $({shape}, {kind}).shape
    empty_like: $({x}).shape, $({x}).dtype
    eye: $({n}<, {n}><, k={i}><, dtype={kind}>)
    frombuffer: $(b'abcdefgh', np.uint8<, count=3>) || $(b'abcdefgh', np.int16, offset=2)
    fromfunction: $(lambda i, j: i * 2 + j, (3, 4))
    fromiter: $(range({n}), np.int64)
    fromstring: $('1 2 3', np.float64, sep=' ')
    from_numpy: $(np.arange({n}))
    from_dlpack: $({x:r1}.copy())
    full: $({shape}, {number}<, {kind}>)
    full_like: $({x}, {number}<, dtype={kind}><, shape={shape}>)
    identity: $({n}<, {kind}>)
    indices: $((2, {n})) || $((3, 2), sparse=True)
    ix_: $([0, 2], [1, 3, 4])
    mask_indices: $({n}, m.triu)
    meshgrid: list($({x:n1s}, {z:n1s}<, indexing='ij'><, sparse=True>))
    ones zeros: $({shape}<, {kind}>)
    ones_like: $({x}<, dtype={kind}>)
    ravel_multi_index: $((m.asarray([0, 1, 2]), m.asarray([1, 0, {i}])), (3, 4)<, mode='wrap'><, order='F'>)
    tri: $({n}<, {n}><, {i}><, dtype={kind}>)
    tril_indices triu_indices: $({n}<, {i}>)
    tril_indices_from triu_indices_from: $({x:n2s}<, {i}>)
    unravel_index: $({x:i1/below9}, (3, 3)<, order='F'>)
    zeros_like: $({x}<, dtype={kind}><, shape={shape}>)
    broadcast_shapes: $({shape}, {shape}) || $((3, 1), (4,))
    can_cast: $({kind}, {kind}<, 'same_kind'>)
    common_type: $({x}, {z})
    isdtype: $(np.dtype({kind}), ('integral', 'bool'))
    iscomplexobj isfortran isrealobj iterable ndim shape: $({x})
    isscalar min_scalar_type: $({number}) || $({x})
    issubdtype: $({kind}, np.integer)
    may_share_memory: $({x:n1s}, {x:n1s}) || $({x:n1s}, {z:n1s})
    promote_types: $({kind}, {kind})
    result_type: $({x}, {y}) || $({x}, {number})
    shares_memory: $({x:n1s}, {x:n1s}[:1]) || $({x:n1s}, {z:n1s})
    size: $({x}<, {axis}>)
    einsum_path: len($('ij,jk->ik', m.ones((2, 3)), m.ones((3, 4))))
    array2string array_str: $({x:i1s})
    array_repr: $({x:f1s/small})[:5].lower()
    """
)
CREATION |= table(
    """
    geomspace: $(1.0, 100.0<, {n}><, endpoint=False>)
    linspace: $({i}, {number:r}<, {n}><, endpoint=False><, dtype={kind:s}>) || $(0, 1, {n}, retstep=True)
    logspace: $(0, 2.0<, {n}><, base=2.0>)
    """,
    ulps=24,
    scale="100",
)

# -- methods

_FROM_FUNCTIONS = (
    "all any argmax argmin argsort astype choose clip copy cumprod cumsum diagonal dot max mean min prod ravel repeat "
    "reshape round squeeze std sum swapaxes take trace transpose var nonzero"
)


def _method(name: str) -> Writer:
    """Return the calls of a method, which are those of a function with the first argument before the dot."""
    source = {**MOVING, **REDUCTIONS, **ELEMENTWISE, **SORTING, **LINALG}[name]
    texts = []
    for text in source.template.split(" || "):
        head, _, rest = text.removeprefix(f"m.{name}(").partition("}")
        texts.append(f"{head}}}.{name}({rest}")
    return Writer(" || ".join(texts), source.ulps, source.scale, source.fills)


METHODS: Table = {f"Array.{name}": _method(name) for name in _FROM_FUNCTIONS.split()}
METHODS |= table(
    """
    argpartition: m.sort(m.take_along_axis({x:r1}, x.argpartition({k}), -1))
    compress: {x:n1}.compress([True, False, True]<, axis=0>)
    conj: {x}.conj()
    conjugate: {x}.conjugate()
    dump: {x}.dump(__import__('io').BytesIO())
    dumps: __import__('pickle').loads({x}.dumps())
    fill: {x}.fill({number}); r = x
    flatten: {x}.flatten(<, order='F'>)
    item: {x}.item({k}) || {x:n1s}.item(0) || {x}.max().item()
    partition: (lambda y: (y.partition({k}), m.sort(y))[1])({x:r1}.copy())
    put: {x}.put({places:flat}, {number:r}); r = x
    searchsorted: {x:r1/rising}.searchsorted({z:r}<, side='right'>)
    sort: {x}.sort(<, axis={axis}>); r = x
    tobytes: {x:o}.tobytes(<, order='F'>) || {x:g/normal}.tobytes(<, order='F'>)
    tolist: {x}.tolist()
    view: {x:o}.view({kind:o}) || {x:g/normal}.view({kind:o}) || {x:f1/small}.view(np.int32)
    T: {x}.T
    mT: {x}.mT
    real: {x}.real || {x}.real = {i}
    imag: {x}.imag || {x:c}.imag = {y:r}
    flat: list({x:r1s}.flat)
    shape: {x}.shape
    ndim: {x}.ndim
    size: {x}.size
    dtype: {x}.dtype
    itemsize: {x}.itemsize
    nbytes: {x}.nbytes
    strides: m.asarray({x:n2}[:]).strides == 0
    flags: {x:n1}[1:].flags['WRITEABLE']
    base: {x:n1}.copy().base
    as_integer_ratio: float({x:d1s}[:].max().as_integer_ratio()[0])
    is_integer: {x:d1s/normal}[:].max().is_integer()
    """,
    "Array.",
)

# -- random numbers: dtypes and shapes, and what is refused

_STREAM = "m.random.default_rng(3)."
DRAWS: Table = table(
    """
    beta f: $({positive}, {positive}, size={size})
    binomial negative_binomial: $({n}, {probability}, size={size})
    chisquare exponential pareto poisson power rayleigh standard_gamma standard_t weibull zipf: $({positive}, size={size})
    dirichlet: $([1.0, 2.0, {positive}]<, size={size}>)
    gamma: $({positive}<, 2.0>, size={size})
    geometric logseries: $({probability}, size={size})
    gumbel laplace logistic lognormal: $(1.0, {positive}, size={size})
    hypergeometric: $({n}, {n}, 3, size={size})
    integers: $({i}<, {n}>, size={size}) || $(0, {n}, size={size}, dtype={kind:i})
    multinomial: $({n}, [0.2, 0.3, 0.5]<, size={size}>)
    multivariate_hypergeometric: $([3, 4, 5], {n}<, size={size}>)
    multivariate_normal: $([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]<, size={size}>)
    noncentral_chisquare wald: $({positive}, 1.0, size={size})
    noncentral_f: $({positive}, {positive}, 1.0, size={size})
    normal: $(0.5, {positive}, size={size})
    random standard_exponential standard_normal: $({size}<, dtype={kind:d}>)
    standard_cauchy: $({size})
    triangular: $(0.0, {positive}, 5.0, size={size})
    uniform: $(-1.0, {positive}, size={size})
    vonmises: $(0.0, {positive}, size={size})
    choice: $({x:r1/normal}, {size}) || $({n}, size={n}, replace=False)
    """,
    "Generator.",
    _STREAM,
    random=True,
)
DRAWS |= table(
    """
    bytes: len($({n}))
    permutation: m.sort($({x:r1})) || m.sort($({n}))
    permuted: m.sort($({x:r2}, axis=1), axis=1)
    shuffle: $({x:r1}); x.sort(); r = x
    spawn: len($({pair}[1]))
    """,
    "Generator.",
    _STREAM,
)
DRAWS |= table(
    """
    default_rng: $({n}).random(3)
    rand randn: $({n}, 2)
    randint: $({i}, {n}, size={size})
    random_sample ranf sample: $({size})
    seed: $({n})
    """,
    "random.",
    "m.random.",
    random=True,
)

# -- special functions

SPECIAL: Table = table(
    """
    erf erfc exp10 expit log_expit logit ndtr entr gamma gammaln i0 i0e softplus: $({x:d})
    huber: $(1.5, {x:d})
    kl_div rel_entr xlog1py xlogy: $({x:d}, {y:d})
    """,
    "special.",
    "m.special.",
    ulps=64,
    scale="1",
    fills=("small", "normal", "few", "flags"),
)

FAMILIES: dict[str, Table] = {
    "elementwise": ELEMENTWISE,
    "operators": OPERATORS,
    "reductions": REDUCTIONS,
    "moving": MOVING,
    "sorting": SORTING,
    "statistics": STATISTICS,
    "linalg": LINALG,
    "transforms": TRANSFORMS,
    "creation": CREATION,
    "methods": METHODS,
    "random": DRAWS,
    "special": SPECIAL,
}
__all__ = ["FAMILIES"]
