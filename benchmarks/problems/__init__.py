"""What the functions on arrays are given, by the names that cases have as their work."""

from benchmarks.problems import matrices, rearrange, reductions, sorting
from benchmarks.problems.problem import Maker

PROBLEMS: dict[str, Maker] = {
    **reductions.PROBLEMS,
    **sorting.PROBLEMS,
    **matrices.PROBLEMS,
    **rearrange.PROBLEMS,
}
