"""Types of parameters that are annotated with Any, by their names.

Functions on arrays take what is like an array, so their annotations say little. Their parameters have NumPy's
names, and the name tells the type.
"""


def _each(names: str, kind: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


# vkdispatch.numpy; its index page says what the types are
ARRAYS = {
    **_each(
        "a a1 a2 ar1 ar2 arr ary array arrays b f fp m mask p q u v val vals value values w weights x x1",
        "ArrayLike",
    ),
    **_each(
        "x2 xp y z X filt condition where fill_value default choices ind indices indices_or_sections",
        "ArrayLike",
    ),
    **_each(
        "*operands *arrays *varargs *arrays_and_dtypes src initial prepend append to_begin to_end",
        "ArrayLike",
    ),
    **_each(
        "min max a_min a_max left right nan posinf neginf start stop step seq_of_zeros sorter bins",
        "ArrayLike",
    ),
    **_each(
        "sample test_elements keys repeats obj pad_width index fweights aweights kth multi_index", "ArrayLike"
    ),
    # distributions
    **_each(
        "low high loc scale mean sigma lam df dfnum dfden nonc mu kappa alpha mode n pvals colors",
        "ArrayLike",
    ),
    **_each("cov ngood nbad nsample", "ArrayLike"),
    **_each("axis axes source destination shift", "AxisLike"),
    **_each("shape s size new_shape window_shape dimensions dims reps", "ShapeLike"),
    **_each("dtype from_ to type1 type2", "DTypeLike"),
    **_each("rtol atol rcond tol dx base discont period delta r", "float"),
    **_each("order norm casting mmap_mode", "str"),
    **_each("seed k max_work precision *index *shape *axes", "int"),
    **_each("file fname fid", "str | PathLike | IO"),
    **_each("condlist range", "Sequence"),
    "buffer": "bytes",
    "device": "DeviceLike",
    "dst": "Array",
    "element": "object",
    "excluded": "Collection[int | str]",
    "iter": "Iterable",
    "kind": "str",
    "mask_func": "Callable",
    "optimize": "bool | str | Sequence",
    "ord": "float | str",
    "otypes": "Sequence[DTypeLike]",
    "out": "Array",
    "stable": "bool",
    "stream": "int",
}
# the kernel language
VALUES = {
    **_each(
        "*args mem start stop step x y a b value expected desired coord lod texel index stride seed", "Value"
    ),
    **_each("sequence offset low high loc scale key counter arg", "Value"),
    **_each("window shape", "Sequence"),
    "array": "ArrayLike",
    "parents": "Sequence[ShaderVariable]",
}
# everything else
BUFFERS = {
    **_each("*buffers *arguments buffer kernel in_buffer out_buffer values out x", "Buffer"),
    **_each("register *variables", "ShaderVariable"),
    **_each("fill_value constant_values identity", "float"),
    **_each("seed key counter stream cuda_stream", "int"),
    **_each("axis axes", "AxisLike"),
    **_each("shape buffer_shape input_shape", "ShapeLike"),
    **_each("padding pad_width", "Sequence"),
    "dtype": "DTypeLike",
    "function": "Callable",
    "io_index": "Value",
}
OF_FUNCTION = {
    "vkdispatch.numpy.array": {"obj": "ArrayLike"},
    "vkdispatch.numpy.asarray": {"obj": "ArrayLike"},
    "vkdispatch.numpy.einsum": {"*operands": ""},
    "vkdispatch.numpy.einsum_path": {"*operands": ""},
    "vkdispatch.numpy.isdtype": {"kind": "DTypeLike | tuple"},
    "vkdispatch.numpy.linalg.cond": {"p": "int | float | str"},
    "vkdispatch.numpy.polyfit": {"cov": "bool | str"},
    "vkdispatch.numpy.ravel_multi_index": {"mode": "str | tuple[str, ...]"},
    "vkdispatch.numpy.choose": {"choices": "Sequence"},
    "vkdispatch.from_dlpack": {"x": "object"},
    "vkdispatch.share": {"x": "object"},
    "vkdispatch.SharedMemory": {"source": "object"},
    "vkdispatch.cuda.stream": {"s": "object"},
    "vkdispatch.explain": {"subject": "object"},
    "vkdispatch.glsl_kernel": {"include": "Mapping[str, str] | Callable"},
}


def types_of(function: str) -> dict[str, str]:
    """Return the types by the names of parameters, for a function."""
    if function.startswith("vkdispatch.codegen."):
        known = VALUES
    elif function.startswith("vkdispatch.numpy."):
        known = ARRAYS
    else:
        known = BUFFERS
    return known | OF_FUNCTION.get(function, {})
