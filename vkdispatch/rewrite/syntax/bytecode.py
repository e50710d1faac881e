"""What bytecode tells: functions that have nothing to rewrite except calls, and the variables that are read.

Most kernels are of this kind, and reading their source would take longer than the rest of the trace.
"""

import opcode
import sys
import types
from functools import lru_cache

from vkdispatch.base.record import record

Call = tuple[str, ...]

# What the instructions of functions without control flow take from the stack and put there; None: as many as
# their argument says. A function with any other instruction is judged by its source.
_EFFECTS: dict[str, tuple[int | None, int | None]] = {
    **dict.fromkeys(("RESUME", "NOP", "COPY_FREE_VARS", "MAKE_CELL", "PRECALL", "KW_NAMES"), (0, 0)),
    **dict.fromkeys(("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_CHECK"), (0, 1)),
    **dict.fromkeys(("LOAD_FAST_BORROW",), (0, 1)),
    **dict.fromkeys(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"), (0, 2)),
    **dict.fromkeys(("POP_TOP", "STORE_FAST", "STORE_DEREF", "RETURN_VALUE"), (1, 0)),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "FORMAT_SIMPLE"), (1, 1)),
    **dict.fromkeys(("CONVERT_VALUE", "STORE_FAST_LOAD_FAST"), (1, 1)),
    **dict.fromkeys(("STORE_ATTR", "STORE_FAST_STORE_FAST"), (2, 0)),
    **dict.fromkeys(("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "IS_OP", "FORMAT_WITH_SPEC"), (2, 1)),
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_STRING", "BUILD_SLICE"), (None, 1)),
    "BINARY_SLICE": (3, 1),
    "RETURN_CONST": (0, 0),
    "STORE_SUBSCR": (3, 0),
    "UNPACK_SEQUENCE": (1, None),
}
# Instructions that matter here one by one.
_SPECIAL = (
    *("CACHE", "EXTENDED_ARG", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD", "PUSH_NULL"),
    *("COPY", "SWAP", "CALL", "CALL_KW"),
)
_NAMES = {opcode.opmap[name]: name for name in (*_EFFECTS, *_SPECIAL) if name in opcode.opmap}
_KNOWN = frozenset(_NAMES)
# `BINARY_OP` of `+=` and its like.
_IN_PLACE = range(13, 26)
# From Python 3.12 on, the lowest bit of an attribute's number says whether it is a method to be called; from
# 3.13 on, NULL comes after what is called without an object.
_FLAGGED = sys.version_info >= (3, 12)
_NULL_AFTER = sys.version_info >= (3, 13)
_NULL: Call = ("NULL", "")
# An element of what a local variable holds.
_PART: Call = ("", "[]")
# Instructions that assign to a part of something, and where that lies on the stack.
_STORES = {"STORE_SUBSCR": -2, "STORE_ATTR": -1}
# What reads and assigns variables, and what reads an attribute of the value before.
_EXTENDED, _GLOBAL, _STORE_GLOBAL, _STORE_FREE, _IMPORT = (
    opcode.opmap[name]
    for name in ("EXTENDED_ARG", "LOAD_GLOBAL", "STORE_GLOBAL", "STORE_DEREF", "IMPORT_NAME")
)
_ATTRIBUTES, _FREE = (
    frozenset(opcode.opmap[name] for name in names if name in opcode.opmap)
    for names in (
        ("LOAD_ATTR", "LOAD_METHOD"),
        ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"),
    )
)
_MOST_READS = 1024


def find_calls(code: types.CodeType) -> frozenset[Call] | None:
    """Return the dotted names that a function without control flow calls; None where that is not certain.

    Of a method of a local variable or of the value of an expression, the first name is ""; where these
    themselves are called, there are no names. Of functions that assign `x += y`, that assign to a part of
    what a local variable holds, or that hold other functions it is never certain.
    """
    if code.co_exceptiontable or any(isinstance(value, types.CodeType) for value in code.co_consts):
        return None
    units = code.co_code
    # asserts may have been left out
    if sys.flags.optimize or not _KNOWN.issuperset(units[::2]):
        return None
    try:
        return _find_calls(code, units)
    except IndexError:
        return None


def _find_calls(code: types.CodeType, units: bytes) -> frozenset[Call] | None:
    found: set[Call] = set()
    # the names that led to each value, if any did
    stack: list[Call] = []
    extended = 0
    # local variables that may hold a vector: what functions return is a register or an array
    held: set[str] = set()
    before, in_place = "", False
    for op, low in zip(units[::2], units[1::2], strict=True):
        name = _NAMES[op]
        if name == "CACHE":
            continue
        argument, extended = extended | low, 0
        if name == "EXTENDED_ARG":
            extended = argument << 8
            continue
        if in_place and name != "SWAP":
            # x += y
            return None
        in_place = False
        if name in _EFFECTS:
            taken, put = _EFFECTS[name]
            taken = argument if taken is None else taken
            if taken > len(stack):
                return None
            if name in _STORES and _is_held(stack[_STORES[name]], held, attribute=name == "STORE_ATTR"):
                return None
            owner = stack[-2] if name == "BINARY_SUBSCR" else ()
            if taken:
                del stack[-taken:]
            loaded, stored = _variables(code, name, argument)
            held.update(stored if before not in ("CALL", "CALL_KW") else ())
            stack += [(variable,) for variable in loaded]
            part = _PART if _is_held(owner, held, attribute=False) else ()
            stack += [part] * ((argument if put is None else put) - len(loaded))
            in_place = name == "BINARY_OP" and argument in _IN_PLACE
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            names = stack.pop()
            attribute = code.co_names[argument >> 1 if _FLAGGED else argument]
            stack.append((*names, attribute) if names and names[0] else ("", attribute))
            if argument & 1 if _FLAGGED else name == "LOAD_METHOD":
                stack.append(())
        elif name == "LOAD_GLOBAL":
            values: list[Call] = [(code.co_names[argument >> 1],)]
            if argument & 1:
                values.insert(1 if _NULL_AFTER else 0, _NULL)
            stack += values
        elif name == "LOAD_DEREF":
            stack.append((_cell_names(code)[argument],))
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "COPY":
            stack.append(stack[-argument])
        elif name == "SWAP":
            stack[-1], stack[-argument] = stack[-argument], stack[-1]
        else:
            taken = argument + (2 if name == "CALL" else 3)
            first, second = stack[-taken], stack[1 - taken]
            found.add(second if first is _NULL else first)
            del stack[-taken:]
            stack.append(())
        before = name
    return frozenset(found)


def _is_held(owner: Call, held: set[str], *, attribute: bool) -> bool:
    """Whether what is assigned to is a part of what a variable holds, and not of an array that is passed."""
    if len(owner) == 1 and not attribute:
        return owner[0] in held
    return owner != ()


def _variables(code: types.CodeType, name: str, argument: int) -> tuple[list[str], list[str]]:
    """Return the local variables that an instruction reads and assigns."""
    if "_FAST" not in name or name == "COPY_FREE_VARS":
        return [], []
    own = code.co_varnames
    words = name.removesuffix("_CHECK").replace("_BORROW", "").split("_FAST")
    variables = [own[argument]] if len(words) == 2 else [own[argument >> 4], own[argument & 15]]
    kinds = [word.strip("_") for word in words[:-1]]
    pairs = list(zip(kinds, variables, strict=True))
    return [v for kind, v in pairs if kind == "LOAD"], [v for kind, v in pairs if kind == "STORE"]


def _cell_names(code: types.CodeType) -> Call:
    """Names of local variables, of those shared with inner functions, and of those of outer ones."""
    own = code.co_varnames
    return (*own, *(name for name in code.co_cellvars if name not in own), *code.co_freevars)


@record
class Reads:
    """What a function and the functions inside of it read by name.

    Attributes
    ----------
    variables
        Global and free variables, and the chains of attributes that are read of each: () is the value itself.
    assigned
        Those that are assigned to.
    names
        All names of variables and attributes.
    imports
        Whether it imports modules.
    """

    variables: dict[str, set[tuple[str, ...]]]
    assigned: frozenset[str]
    names: frozenset[str]
    imports: bool = False


@lru_cache(maxsize=_MOST_READS)
def find_reads(code: types.CodeType) -> Reads:
    """Find what a function reads from outside."""
    variables: dict[str, set[tuple[str, ...]]] = {}
    assigned: set[str] = set()
    names: set[str] = set()
    imports = False
    pending = [code]
    while pending:
        inner = pending.pop()
        pending += [value for value in inner.co_consts if isinstance(value, types.CodeType)]
        names.update(inner.co_names)
        cells = _cell_names(inner)
        chain: tuple[str, ...] = ()
        extended = 0
        units = inner.co_code
        for op, low in zip(units[::2], units[1::2], strict=True):
            if not op:  # CACHE
                continue
            argument, extended = extended | low, 0
            if op == _EXTENDED:
                extended = argument << 8
                continue
            if op in _ATTRIBUTES:
                if chain:
                    chain += (inner.co_names[argument >> 1 if _FLAGGED else argument],)
                continue
            if chain:
                variables.setdefault(chain[0], set()).add(chain[1:])
                chain = ()
            if op == _GLOBAL:
                chain = (inner.co_names[argument >> 1],)
            elif op in _FREE:
                name = cells[argument]
                chain = (name,) if name in code.co_freevars else ()
            elif op == _IMPORT:
                imports = True
            elif op == _STORE_GLOBAL:
                assigned.add(inner.co_names[argument])
            elif op == _STORE_FREE and cells[argument] in code.co_freevars:
                assigned.add(cells[argument])
    return Reads(variables, frozenset(assigned), frozenset(names), imports)
