"""Fortran on the host: `fortran`, and with OpenMP, OpenACC and OpenMP's target regions.

A body is a `block` of a subroutine: its variables are local, and in a parallel region private to each thread.
The placement passes arrays in Fortran's layout, with the first index varying fastest.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from vkdispatch.orders.arguments import Parameter
from vkdispatch.orders.compilers import BuildFailure, Search
from vkdispatch.orders.models.cpp import find_first_directive, write_map_clauses, write_scalar_clause
from vkdispatch.orders.models.native import HostProgram, NativeModel
from vkdispatch.orders.models.protocol import Task

FILE = "accelpy.F90"
RESUME = "!resume"

# Fortran has no unsigned integers: they are signed ones of the same size.
TYPES = {
    "b1": "logical(c_bool)",
    **{f"{kind}{size}": f"integer(c_int{8 * size}_t)" for kind in "iu" for size in (1, 2, 4, 8)},
    "f4": "real(c_float)",
    "f8": "real(c_double)",
    "c8": "complex(c_float_complex)",
    "c16": "complex(c_double_complex)",
}

_MAX_DIMENSIONS = 15
_LONGEST_NAME = 58  # the limit of 63 without the suffix _attr
_IMPLICIT = re.compile(r"^[ \t]*implicit[ \t]+none\b[^\n]*$", re.MULTILINE | re.IGNORECASE)
# In the order of the array of counts.
_COUNTS = [f"accelpy_{what}_dim{d}" for what in ("worker", "team", "assign") for d in range(3)]
_SIZES = ("accelpy_gangs", "accelpy_lanes", "accelpy_threads", "accelpy_device")


def write_fortran(task: Task) -> str:
    """Write the source of a `fortran` section: the body runs once."""
    return _write_file(task, "", "", "")


def write_openmp(task: Task) -> str:
    """Write the source of an `openmp_fortran` section: the body is inside a parallel region.

    There are as many threads as members of all teams, but no more than `omp_get_max_threads()`. A body that
    opens parallel regions runs once.
    """
    uses = "use omp_lib\n"
    if find_first_directive(task.section.body, "omp", fortran=True) in ("parallel", "target", "teams"):
        before = "accelpy_before = omp_get_max_threads()\ncall omp_set_num_threads(accelpy_threads)\n"
        return _write_file(
            task, uses, before, "call omp_set_num_threads(accelpy_before)\n", threads=_count_threads()
        )
    opening = "!$omp parallel num_threads(accelpy_threads)\n"
    return _write_file(task, uses, opening, "!$omp end parallel\n", threads=_count_threads())


def write_openacc(task: Task) -> str:
    """Write the source of an `openacc_fortran` section: the body is inside a parallel region.

    Teams are gangs, and members the vector length. The data is mapped around it. A body that opens compute
    regions gets only the data.
    """
    inputs, outputs = _map_arrays(task.parameters)
    clauses = write_map_clauses(inputs, outputs, "copyin(", "copy(")
    opening = f"!$acc data{clauses}\n" if clauses else ""
    closing = "!$acc end data\n" if clauses else ""
    if find_first_directive(task.section.body, "acc", fortran=True) not in ("parallel", "kernels", "serial"):
        sizes = "num_gangs(accelpy_gangs) num_workers(1) vector_length(accelpy_lanes)"
        opening += f"!$acc parallel {sizes}{write_scalar_clause(task.parameters, 'copy(')}\n"
        closing = f"!$acc end parallel\n{closing}"
    choose = (
        "if (acc_get_num_devices(acc_get_device_type()) > 0) "
        "call acc_set_device_num(accelpy_device, acc_get_device_type())\n"
    )
    count = "max(1, acc_get_num_devices(acc_get_device_type()))"
    return _write_file(task, "use openacc\n", choose + opening, closing, count)


def write_omptarget(task: Task) -> str:
    """Write the source of an `omptarget_fortran` section: the body is inside a target region.

    The data is mapped around it. A body that opens target regions gets only the data. A body that begins with
    `distribute` is inside `target teams`.
    """
    inputs, outputs = _map_arrays(task.parameters)
    clauses = write_map_clauses(inputs, outputs, "map(to: ", "map(tofrom: ")
    opening = f"!$omp target data{clauses}\n" if clauses else ""
    closing = "!$omp end target data\n" if clauses else ""
    mapped = write_scalar_clause(task.parameters, "map(tofrom: ")
    first = find_first_directive(task.section.body, "omp", fortran=True)
    if first == "distribute":
        opening += f"!$omp target teams num_teams(accelpy_gangs) thread_limit(accelpy_threads){mapped}\n"
        closing = f"!$omp end target teams\n{closing}"
    elif first != "target":
        opening += f"!$omp target{mapped}\n"
        closing = f"!$omp end target\n{closing}"
    choose = "if (omp_get_num_devices() > 0) call omp_set_default_device(accelpy_device)\n"
    count = "max(1, omp_get_num_devices())"
    return _write_file(task, "use omp_lib\n", choose + opening, closing, count, _count_threads(teams=False))


def _count_threads(*, teams: bool = True) -> str:
    """Return the number of threads, computed in the entry: arguments may be named `min` or `int`."""
    product = "int(accelpy_lanes, c_int64_t)" + (" * accelpy_gangs" if teams else "")
    return f"int(min(int(omp_get_max_threads(), c_int64_t), {product}))"


def _map_arrays(parameters: Sequence[Parameter]) -> tuple[list[str], list[str]]:
    """Return the arrays among inputs and outputs. Their attributes are inputs."""
    inputs = [name for p in parameters if p.ndim and not p.is_output for name in (p.name, f"{p.name}_attr")]
    inputs += [f"{p.name}_attr" for p in parameters if p.ndim and p.is_output]
    return inputs, [p.name for p in parameters if p.ndim and p.is_output]


def _check_parameters(parameters: Sequence[Parameter]) -> None:
    seen: dict[str, str] = {}
    for parameter in parameters:
        name = parameter.name
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise BuildFailure(
                f"the arguments {other} and {name} have the same name in Fortran; rename one of them"
            )
        if not name[0].isalpha() or len(name) > _LONGEST_NAME:
            raise BuildFailure(
                f"the argument's name {name} is not valid in Fortran: expected an initial letter, and "
                f"at most {_LONGEST_NAME} characters"
            )
        if parameter.ndim > _MAX_DIMENSIONS:
            raise BuildFailure(
                f"{name} has {parameter.ndim} dimensions, but Fortran supports at most {_MAX_DIMENSIONS}"
            )
        if parameter.dtype == np.float16:
            raise BuildFailure(f"{name} has the dtype float16, which Fortran does not support; use float32")


def _join_names(names: Sequence[str]) -> str:
    """Return names as arguments, one on each line: Fortran limits the length of lines."""
    return ", &\n  ".join(names)


def _write_attribute_types(parameters: Sequence[Parameter]) -> str:
    return "".join(
        f"type :: accelpy_attr_{n}\n"
        f"  integer(c_int64_t) :: shape({n}), stride({n}), size\n"
        f"  integer(c_int64_t) :: ndim\n"
        f"end type\n"
        for n in sorted({parameter.ndim for parameter in parameters})
    )


def _write_declarations(parameters: Sequence[Parameter]) -> str:
    # before the arrays, whose bounds refer to them
    lines = [f"type(accelpy_attr_{p.ndim}), intent(in) :: {p.name}_attr\n" for p in parameters]
    for p in parameters:
        bounds = ", ".join(f"{p.name}_attr%shape({d + 1})" for d in range(p.ndim))
        intent = "inout" if p.is_output else "in"
        lines.append(f"{TYPES[p.code]}, intent({intent}) :: {p.name}" + (f"({bounds})\n" if p.ndim else "\n"))
    return "".join(lines)


def _write_body(task: Task) -> str:
    section = task.section
    body = section.body if section.body.endswith("\n") else section.body + "\n"
    # A block cannot contain `implicit none`; the subroutine has it.
    body = _IMPLICIT.sub("", body)
    label = task.order.label.replace("\\", "\\\\").replace('"', '\\"')
    # Errors at the end of a body are reported at its last line.
    last = section.body_line + body.rstrip().count("\n")
    return f'# {section.body_line} "{label}"\n{body}# {last} "{label}"\nend block\n{RESUME}\n'


def _write_task(task: Task, uses: str, opening: str, closing: str) -> str:
    names = [name for p in task.parameters for name in (p.name, f"{p.name}_attr")]
    counts = ", &\n  ".join(_COUNTS)
    return (
        f"subroutine accelpy_task({_join_names([*names, *_COUNTS, 'accelpy_accel_runid', *_SIZES])})\n"
        f"use, intrinsic :: iso_c_binding\n{uses}implicit none\n"
        f"integer(c_int32_t), intent(in) :: {counts}\n"
        "integer(c_int64_t), intent(in) :: accelpy_accel_runid\n"
        f"integer(c_int32_t), intent(in) :: {', '.join(_SIZES)}\n"
        f"{_write_declarations(task.parameters)}"
        "integer :: accelpy_before\n"
        f"{opening}block\n{_write_body(task)}{closing}"
        "end subroutine\n"
    )


def _write_entry(task: Task, uses: str, threads: str) -> str:
    declared, pointed, passed, offset = "", "", [], 1
    for i, p in enumerate(task.parameters):
        colons = ", ".join(":" * p.ndim)
        target = f"accelpy_p{i}"
        array = f", contiguous :: {target}({colons})" if p.ndim else f" :: {target}"
        declared += f"{TYPES[p.code]}, pointer{array}\ntype(accelpy_attr_{p.ndim}) :: accelpy_a{i}\n"
        shape, end = f"{offset}:{offset + p.ndim - 1}", offset + 2 * p.ndim - 1
        if p.ndim:
            pointed += (
                f"accelpy_a{i}%shape = accelpy_extents({shape})\n"
                f"accelpy_a{i}%stride = accelpy_extents({offset + p.ndim}:{end})\n"
            )
        bounds = f", accelpy_a{i}%shape" if p.ndim else ""
        pointed += (
            f"accelpy_a{i}%size = product(accelpy_a{i}%shape)\naccelpy_a{i}%ndim = {p.ndim}\n"
            f"call c_f_pointer(accelpy_data({i + 1}), {target}{bounds})\n"
        )
        passed += [target, f"accelpy_a{i}"]
        offset += 2 * p.ndim
    counts = [f"accelpy_counts({d + 1})" for d in range(9)]
    return (
        "function accelpy_run(accelpy_data, accelpy_extents, accelpy_counts, accelpy_runid, &\n"
        "  accelpy_device, accelpy_message, accelpy_room) &\n"
        "  bind(c, name='accelpy_run') result(accelpy_status)\n"
        f"use, intrinsic :: iso_c_binding\n{uses}implicit none\n"
        "type(c_ptr), intent(in) :: accelpy_data(*)\n"
        "integer(c_int64_t), intent(in) :: accelpy_extents(*)\n"
        "integer(c_int32_t), intent(in) :: accelpy_counts(*)\n"
        "integer(c_int64_t), value :: accelpy_runid, accelpy_room\n"
        "integer(c_int32_t), value :: accelpy_device\n"
        "character(kind=c_char) :: accelpy_message(*)\n"
        "integer(c_int32_t) :: accelpy_status\n"
        "integer(c_int32_t) :: accelpy_gangs, accelpy_lanes, accelpy_threads\n"
        f"{declared}{pointed}"
        "accelpy_lanes = accelpy_counts(1) * accelpy_counts(2) * accelpy_counts(3)\n"
        "accelpy_gangs = accelpy_counts(4) * accelpy_counts(5) * accelpy_counts(6)\n"
        f"accelpy_threads = {threads}\n"
        f"call accelpy_task({_join_names([*passed, *counts, 'accelpy_runid', *_SIZES])})\n"
        "accelpy_status = 0\n"
        "end function\n"
    )


def _write_devices(uses: str, count: str) -> str:
    return (
        "function accelpy_devices(accelpy_message, accelpy_room) bind(c, name='accelpy_devices') &\n"
        "  result(accelpy_count)\n"
        f"use, intrinsic :: iso_c_binding\n{uses}implicit none\n"
        "character(kind=c_char) :: accelpy_message(*)\n"
        "integer(c_int64_t), value :: accelpy_room\n"
        "integer(c_int32_t) :: accelpy_count\n"
        f"accelpy_count = {count}\n"
        "end function\n"
    )


def _write_file(
    task: Task, uses: str, opening: str, closing: str, devices: str = "1", threads: str = "1"
) -> str:
    _check_parameters(task.parameters)
    text = (
        "module accelpy_module\nuse, intrinsic :: iso_c_binding\nimplicit none\n"
        f"{_write_attribute_types(task.parameters)}contains\n"
        f"{_write_task(task, uses, opening, closing)}"
        f"{_write_entry(task, uses, threads)}{_write_devices(uses, devices)}"
        "end module\n"
    )
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(f'# {len(lines) + 2} "{FILE}"' if line == RESUME else line)
    return "\n".join(lines)


_FLAGS = {
    "gnu": ("-O3", "-cpp", "-ffree-form", "-ffree-line-length-none", "-fPIC", "-shared", "-w"),
    "flang": ("-O3", "-cpp", "-ffree-form", "-fPIC", "-shared"),
    "nvhpc": ("-O3", "-Mpreprocess", "-Mfree", "-fPIC", "-shared", "-w"),
    "intel": ("-O3", "-fpp", "-free", "-fPIC", "-shared", "-w"),
    "cray": ("-O3", "-eZ", "-ffree", "-fPIC", "-shared"),
    "ibm": ("-O3", "-qsuffix=cpp=F90", "-qfree=f90", "-qpic", "-qmkshrobj", "-w"),
}
_OPENMP = {"gnu": "-fopenmp", "flang": "-fopenmp", "cray": "-h omp,noacc"}
_NAMES = ("gfortran", "flang", "flang-new", "nvfortran", "ifx")
_PACKAGE = "Debian's package gfortran"


def _make_model(
    name: str,
    write: Callable[[Task], str],
    options: Mapping[str, str],
    directive: str,
    programs: tuple[str, ...] = _NAMES,
    package: str = _PACKAGE,
) -> NativeModel:
    """Return a model. `options` are flags that a vendor's compiler gets besides its usual ones."""
    flags = {vendor: (*_FLAGS[vendor], *text.split()) for vendor, text in options.items()}
    search = Search("FC", programs, package=package, language="fortran")
    copy = f"integer :: i\n{directive}do i = 1, x_attr%shape(1)\n  y(i) = x(i)\nend do\n"
    return NativeModel(name, search, flags, write, ".F90", copy, partial(HostProgram, layout="F"))


MODELS = (
    _make_model("fortran", write_fortran, dict.fromkeys(_FLAGS, ""), ""),
    _make_model(
        "openmp_fortran",
        write_openmp,
        {**_OPENMP, "nvhpc": "-mp", "intel": "-qopenmp", "ibm": "-qsmp=omp"},
        "!$omp do\n",
    ),
    _make_model(
        "openacc_fortran",
        write_openacc,
        {"gnu": "-fopenacc", "nvhpc": "-acc", "cray": "-h acc,noomp"},
        "!$acc loop gang worker vector\n",
        ("nvfortran", "gfortran"),
        f"{_PACKAGE}, or NVIDIA's HPC SDK",
    ),
    _make_model(
        "omptarget_fortran",
        write_omptarget,
        {
            **_OPENMP,
            "nvhpc": "-mp=gpu",
            "intel": "-qopenmp -fopenmp-targets=spir64",
            "ibm": "-qsmp=omp -qoffload",
        },
        "!$omp teams distribute parallel do\n",
        ("nvfortran", "ifx", "gfortran", "flang"),
    ),
)
