"""Vendors of compilers, which a compiler command can name instead of a program."""

from collections.abc import Mapping

from vkdispatch.base.record import record


@record
class Vendor:
    """The compilers of one vendor.

    Attributes
    ----------
    marks
        Words that identify its compilers: one of them is in the output of `--version`.
    programs
        Names of programs by language ("cpp", "fortran", "cuda" or "hip"), in order of preference.
    """

    marks: tuple[str, ...]
    programs: Mapping[str, tuple[str, ...]]


_XLF = tuple(f"xlf{year}{threads}" for year in ("2008", "2003", "95", "90") for threads in ("_r", ""))

VENDORS = {
    "gnu": Vendor(("Free Software Foundation",), {"cpp": ("g++",), "fortran": ("gfortran",)}),
    "cray": Vendor(("Cray",), {"cpp": ("CC", "crayCC"), "fortran": ("ftn", "crayftn")}),
    "amd": Vendor(
        ("AMD", "AOCC", "HIP", "clang", "flang"),
        {"cpp": ("amdclang++", "clang++"), "fortran": ("amdflang", "flang"), "hip": ("hipcc",)},
    ),
    "ibm": Vendor(("IBM",), {"cpp": ("ibm-clang++_r", "xlc++_r", "xlc++"), "fortran": _XLF}),
    "nvidia": Vendor(
        ("NVIDIA",), {"cuda": ("nvcc",), "cpp": ("nvc++", "pgc++"), "fortran": ("nvfortran", "pgfortran")}
    ),
    "pgi": Vendor(("PGI", "NVIDIA"), {"cpp": ("pgc++", "nvc++"), "fortran": ("pgfortran", "nvfortran")}),
    "intel": Vendor(("Intel",), {"cpp": ("icpx", "icpc"), "fortran": ("ifx", "ifort")}),
}
"""The vendors of accelpy."""
