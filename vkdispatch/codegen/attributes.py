"""What the attributes of GPU values may be called, and what to say about others."""

import difflib

COMPONENTS = "xyzw"


def is_swizzle(name: str) -> bool:
    """Whether a name is written with the letters of components."""
    return 1 <= len(name) <= 4 and all(letter in COMPONENTS for letter in name)


_ADVICE = {
    "size": "a buffer's .shape.w is its count of elements",
    "dtype": ".var_type is its type",
    "astype": ".to_dtype(vd.float32) converts",
    "conj": ".conjugate()",
    "T": "vc.transpose(m)",
    "sum": "vc.dot(v, 1) adds components",
    "copy": ".to_register() copies",
}


def unknown_attribute(name: str, owner: str, offered: list[str]) -> str:
    """Say that something has no such attribute, what was probably meant, and what there is."""
    meant = difflib.get_close_matches(name, offered, 1)
    advice = _ADVICE.get(name) or (f"did you mean .{meant[0]}?" if meant else "")
    return f"{owner} has no .{name}{'; ' + advice if advice else ''}; it has {', '.join(offered)}"
