"""Random calls of the functions and methods of `vkdispatch.numpy`, beside NumPy.

    python -m tests.numpy.random_calls --count 1000 --seed 0 --jobs 2 --only moving,sorting

A call is a few lines: arrays of random dtypes, shapes, layouts and values, some of them not computed yet, the
call, what is done with its result, and a write to its sources. With NumPy and with `vkdispatch.numpy` all
variables are equal then, or both raise exceptions of the same class. What differs is made smaller and written
as lines of Python.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

import vkdispatch.numpy as vnp
from tests.calls import running
from tests.calls.choices import Choices
from tests.calls.random_calls import Tool, main

from .programs import Draft, Program, Writer, run
from .writers import FAMILIES

# Functions and methods without calls, by why.
LEFT_OUT: dict[str, str] = {
    "they refuse all arguments": (
        "apply_along_axis asmatrix bmat broadcast frompyfunc memmap ndenumerate ndindex nditer poly1d"
    ),
    "devices, memory and settings": (
        "asbuffer explain set_default_dtype get_printoptions set_printoptions printoptions Array.device "
        "Array.to_device Array.numpy Generator.bit_generator"
    ),
    "files": "fromfile genfromtxt load loadtxt save savetxt savez savez_compressed Array.tofile",
    "it compiles its argument": "vectorize",
}
# Differences: function, what is said of it, and where it is documented.
DOCUMENTED: tuple[tuple[str, str, str], ...] = (
    ("pad", "OverflowError: constant_values", "numbers that a dtype cannot hold raise"),
    ("prod", "value .*nan.*right is .*0.0", "the order of factors decides whether they overflow"),
    ("require", "^r: value", "a view of all elements owns its data, in flags also"),
    ("insert", "IndexError: obj: ", "NumPy does not check several indices"),
    ("view", "accepted what NumPy.*last axis must be contiguous", "results of ufuncs are in C order"),
    ("view", "lines of # elements|lines of \\d+ elements", "views begin at multiples of their items"),
    ("", "exceeds the [#\\d]+ bytes that the device allocates", "devices limit the size of buffers"),
    ("__i", "raised OverflowError where NumPy raises ValueError: .*read-only", "of two one is named"),
    (r"^fft\.", "raised ValueError where NumPy raises IndexError: norm", "the same"),
    ("real|imag", "raised ValueError where NumPy raises OverflowError: .*read-only", "of two one is named"),
    (r"^fft\.", "raised TypeError where NumPy raises IndexError: axes: expected an int", "the same"),
    ("around|round", r"value np.uint", "beyond the largest number, NumPy's own depends on the processor"),
    ("choose", "accepted what NumPy refuses.*Cannot cast array data", "indices may have any integer dtype"),
    ("choose", "raised ValueError where NumPy raises TypeError", "the same"),
    ("mean", "dtype: mean of complex", "numbers are not made real in silence"),
    ("full", "OverflowError: |cannot convert NaN|a complex number", "numbers that a dtype cannot hold raise"),
    (
        "sum|prod|mean|var|std|min|max|trace",
        "ArgumentTypeError: out: cannot cast",
        "nor are they rounded in silence",
    ),
    ("putmask", "ArgumentTypeError: values: cannot cast", "the same"),
    ("view", "bool has no view|has no view as bool", "bytes are no truth values"),
    ("mean|var|std", r"right is np.float16\(inf\)", "sums of float16 are float32"),
    (
        "average",
        "accepted what NumPy refuses.*(Weights sum to|division by) zero",
        "no warnings: divisions by zero are NaN",
    ),
    ("nan(quantile|percentile)", "^r: (dtype|shape)", "of no elements, NumPy forgets the axes of q"),
    ("quantile|percentile|median", "accepted what NumPy refuses.*cannot reshape", "the same"),
    ("bincount", "^r: dtype float.*right is int64", "of no elements, NumPy forgets the weights"),
    ("interp", "ArgumentValueError: xp: expected at least one", "so has NumPy 2.4"),
    ("cross", "ArgumentValueError: axis: expected vectors of three", "vectors of two are deprecated"),
    ("arg(min|max)|cum", "Argument.*: out: ", "out has the shape of the result, and holds its dtype"),
    ("log1p|exp2", "value np.complex", "NumPy's own loses digits: of small real parts, of large ones"),
    ("pow", r"value np.complex\d+\(nan", "infinite complex exponents, of which C libraries differ"),
    ("spacing", r"value np.float16\(-", "NumPy's own of float16 has no sign"),
    ("__i", "raised TypeError where NumPy raises ValueError: .*read-only", "of two mistakes one is named"),
    ("__i", "raised ValueError where NumPy raises TypeError: .*broadcast .*Cannot cast", "the same"),
    ("min|max", "raised OverflowError where NumPy raises IndexError: initial: ", "the same"),
    (r"^fft\.", "raised ValueError where NumPy raises TypeError: norm: ", "the same"),
    ("from_dlpack", "BufferError: Unsupported device", "NumPy reads memory of the host only"),
    (
        "reciprocal",
        r"value np.u?int\d+\(0\) .*right is np.u?int\d+\((?!-?1\))",
        "dividing an integer by zero gives 0",
    ),
    ("sign", r"value np.complex\d+\(.*\d[+-].* is np.complex\d+\(-?1j\)", "NumPy's magnitudes overflow"),
    ("apply_over_axes", r"axis -\d+ is out of bounds", "NumPy counts these from the end twice"),
    ("isfortran", "^r: False .*in place of True", "arrays are made in C order"),
    ("_along_axis", "accepted what NumPy refuses.*AttributeError", "sequences are indices too"),
    ("dot", "accepted what NumPy refuses.*output array", "out may be a view, and of a wider dtype"),
    ("polyder", "accepted what NumPy refuses.*RecursionError", "NumPy's calls itself for each order"),
    (r"^fft\.", "list index out of range", "the exception names the argument"),
)


def public_functions() -> set[str]:
    """Return the names of all functions and methods."""
    found = set()
    for home in (vnp, vnp.linalg, vnp.fft, vnp.random, vnp.special):
        prefix = "" if home is vnp else f"{home.__name__.rpartition('.')[2]}."
        found |= {f"{prefix}{name}" for name in home.__all__ if inspect.isroutine(getattr(home, name))}
    for name, home in (("Array", vnp.Array), ("Generator", vnp.random.Generator)):
        found |= {f"{name}.{each}" for each in dir(home) if not each.startswith("_")}
    return found


def write(choices: Choices, function: str) -> Program:
    """Return the call of a function that choices make."""
    writer = next(family[function] for family in FAMILIES.values() if function in family)
    return Draft(choices, function, writer).write()


def check(
    function: str, choices: Choices, known: set[str], seconds: float, repeat: int = 1
) -> tuple[running.Outcome, list[int]]:
    """Make a call by choices; a failure that is not known is made smaller first."""
    return running.check(
        write, lambda program: run(program, DOCUMENTED, repeat), function, choices, known, seconds
    )


def writers(family: str) -> Mapping[str, Writer]:
    """Return how calls of each function of a family are written."""
    return FAMILIES[family]


def _show(choices: Choices, function: str) -> str:
    return write(choices, function).describe()


TOOL = Tool("tests.numpy.random_calls", tuple(FAMILIES), writers, check, _show)
__all__ = ["DOCUMENTED", "LEFT_OUT", "TOOL", "check", "public_functions"]

if __name__ == "__main__":
    sys.exit(main(TOOL, __doc__))
