"""The source lines of functions that are pickled by value. Rewriting and error messages need them."""

import hashlib
import linecache
import os
from itertools import zip_longest
from types import CodeType

from vkdispatch.base.record import field, record

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_DIGEST = 8


@record(frozen=False)
class Sources:
    """The source of pickled code objects.

    Attributes
    ----------
    texts
        The lines of each file, of which those of no pickled function are empty.
    own
        The paths, within this package, of its own files.
    """

    texts: dict[str, str] = field(factory=dict)
    own: dict[str, str] = field(factory=dict)


def collect_sources(codes: list[CodeType]) -> Sources:
    """Return the lines of code objects, as far as their files are found."""
    found = Sources()
    wanted: dict[str, set[int] | None] = {}
    for code in codes:
        file = code.co_filename
        if file.startswith(_PACKAGE):
            found.own[file] = file[len(_PACKAGE) :]
            continue
        numbers = wanted.setdefault(file, set())
        if code.co_name == "<lambda>" or "__class__" in code.co_freevars:
            wanted[file] = None  # such functions are found in the tree of the whole file only
        elif numbers is not None:
            numbers.update(_line_numbers(code))
    for file, numbers in sorted(wanted.items()):
        lines = linecache.getlines(file)
        if lines:
            kept = [line if numbers is None or at in numbers else "\n" for at, line in enumerate(lines, 1)]
            found.texts[file] = "".join(kept[: None if numbers is None else max(numbers)])
    return found


def _line_numbers(code: CodeType) -> range:
    """Return the numbers of the lines from the first decorator of a function to its end."""
    first = last = code.co_firstlineno
    pending = [code]
    while pending:
        inner = pending.pop()
        last = max([last, *(end for _, end, _, _ in inner.co_positions() if end is not None)])
        pending += [value for value in inner.co_consts if isinstance(value, CodeType)]
    return range(first, last + 1)


def install_sources(sources: Sources) -> dict[str, str]:
    """Make pickled lines known to this process. Return the file names to give to code objects, by old ones.

    A file that is the same here keeps its name. Other lines get a name of their own in `linecache`, which is
    where tracebacks, `inspect` and the rewriting of kernels read them.
    """
    names = {file: _PACKAGE + path for file, path in sources.own.items()}
    for file, text in sources.texts.items():
        if _has_lines(file, text):
            continue
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
        name = f"<pickled {digest}>/{file.lstrip('/')}"
        # Without a time, linecache does not look for the file.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names[file] = name
    return names


def _has_lines(file: str, text: str) -> bool:
    """Whether a file of this process has the lines of a text that are not empty."""
    local, pickled = linecache.getlines(file), text.splitlines(keepends=True)
    if len(local) < len(pickled):
        return False
    pairs = zip_longest(local[: len(pickled)], pickled)
    return all(mine == theirs for mine, theirs in pairs if theirs is not None and theirs.strip())
