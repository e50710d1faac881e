"""What the attributes of GPU values may be called, and what to say about others."""

COMPONENTS = "xyzw"


def is_swizzle(name: str) -> bool:
    """Whether a name is written with the letters of components."""
    return 1 <= len(name) <= 4 and all(letter in COMPONENTS for letter in name)


_ADVICE = {
    "dtype": ".var_type is its type",
    "astype": ".to_dtype(vd.float32) converts",
    "conj": "use .conjugate()",
    **dict.fromkeys("rgba", "components are .x, .y, .z and .w"),
    "normalize": "vc.normalize(v)",
    "dot": "vc.dot(v, w)",
    "length": "vc.length(v)",
    "norm": "vc.length(v)",
    "normalized": "vc.normalize(v)",
    "atomic_add": "vc.atomic_add(buf[i], value)",
    "T": "vc.transpose(m)",
    "sum": "vc.dot(v, 1) adds components",
    "copy": ".to_register() copies",
}


_REDUCTION = "a kernel reads single elements; vd.sum(x), vd.max(x) and their like are called outside"
_BUFFER_ADVICE = {
    "dtype": ".var_type is the type of its elements",
    **dict.fromkeys(("sum", "mean", "max", "min", "argmax", "argmin", "any", "all"), _REDUCTION),
    **dict.fromkeys(("read", "write", "data", "numpy", "item"), "x[i] is an element"),
    "copy": "x[i] is an element; buffers are copied outside",
    "ndim": "x.shape has three axes and the size",
    "atomic_add": "vc.atomic_add(buf[i], value)",
}


# Attributes that programs of 0.1.0 may read, and that are no help to anybody who looks for one.
_SELDOM_MEANT = frozenset(
    (
        "binding",
        "can_index",
        "expr",
        "image",
        "is_conjugate",
        "is_register",
        "is_setable",
        "lexical_unit",
        "parents",
        "printf_args",
        "raw_name",
        "read_callback",
        "read_lambda",
        "register",
        "resolve",
        "settable",
        "shape_name",
        "storage",
        "use_child_type",
        "write_callback",
        "write_lambda",
    )
)


def unknown_attribute(name: str, owner: str, offered: list[str]) -> str:
    """Say that something has no such attribute, what was probably meant, and what there is."""
    import difflib

    offered = [each for each in offered if each not in _SELDOM_MEANT]
    meant = difflib.get_close_matches(name, offered, 1)
    known = _BUFFER_ADVICE if "buffer" in owner else _ADVICE
    advice = known.get(name) or (f"did you mean .{meant[0]}?" if meant else "")
    return f"{owner} has no .{name}{'; ' + advice if advice else ''}; it has {', '.join(offered)}"
