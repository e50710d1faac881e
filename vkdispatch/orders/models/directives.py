"""Directives of OpenMP and OpenACC: the first one of a body, and data clauses."""

import re
from collections.abc import Sequence

_C = r"^[ \t]*#[ \t]*pragma[ \t]+{}[ \t]+(\w+)"
_FORTRAN = r"^[ \t]*!\${}[ \t]+(\w+)"


def find_first_directive(body: str, family: str, *, fortran: bool) -> str:
    """Return the name of the first directive of a family ("omp" or "acc") in a body, or an empty string.

    Directives for declarations and data are skipped: they do not start a region.
    """
    pattern = (_FORTRAN if fortran else _C).format(family)
    for match in re.finditer(pattern, body, re.MULTILINE | re.IGNORECASE):
        word = match[1].lower()
        if word not in ("declare", "data", "enter", "exit", "routine", "update", "threadprivate", "requires"):
            return word
    return ""


def write_map_clauses(inputs: Sequence[str], outputs: Sequence[str], copy_in: str, copy_both: str) -> str:
    """Return data clauses. `copy_in` and `copy_both` are the beginnings of those for inputs and outputs."""
    text = f" {copy_in}{', '.join(inputs)})" if inputs else ""
    return text + (f" {copy_both}{', '.join(outputs)})" if outputs else "")
