"""C++ on the host: `cpp`, and with OpenMP, OpenACC and OpenMP's target regions."""

from collections.abc import Sequence

from vkdispatch.orders.arguments.argument import Parameter
from vkdispatch.orders.compilation.compilers import Search
from vkdispatch.orders.compilation.library import Library
from vkdispatch.orders.models.c_source import (
    ARRAY,
    GRID,
    MACROS,
    RESUME,
    check_names,
    declare_parameter,
    find_type,
    needs_complex,
    needs_float16,
    pass_arguments,
    resume_lines,
    split_body,
)
from vkdispatch.orders.models.directives import find_first_directive, write_map_clauses
from vkdispatch.orders.models.native import HostProgram, NativeModel
from vkdispatch.orders.models.protocol import Task

_HEAD = """\
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <type_traits>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(_OPENACC)
#include <openacc.h>
#endif
"""


_COMPLEX = """\
#include <complex>
template <typename T> using accelpy_complex = std::complex<T>;
"""


_TYPES = """\
#define ACCELPY_BOTH
#define ACCELPY_ROUTINE
"""


_FLOAT16 = """\
#if !defined(__FLT16_MAX__)
#error "this compiler has no _Float16, which arrays of float16 need"
#endif
typedef _Float16 accelpy_float16;
"""


_REPORT = """\
static int32_t accelpy_report(const char *what, char *message, int64_t room) {
  if (room > 0) std::snprintf(message, static_cast<size_t>(room), "%s", what);
  return 1;
}
"""


_ONE_DEVICE = 'extern "C" int32_t accelpy_devices(char *, int64_t) { return 1; }\n'


_ACC_DEVICES = """\
extern "C" int32_t accelpy_devices(char *, int64_t) {
  const int count = acc_get_num_devices(acc_get_device_type());
  return count > 0 ? count : 1;
}
"""


_OMP_DEVICES = """\
extern "C" int32_t accelpy_devices(char *, int64_t) {
  const int count = omp_get_num_devices();
  return count > 0 ? count : 1;
}
"""


_RUN = """\
extern "C" int32_t accelpy_run(void *const *accelpy_data, const int64_t *accelpy_extents,
                               const int32_t *accelpy_given, int64_t accelpy_run_id, int32_t accelpy_device,
                               char *accelpy_message, int64_t accelpy_room) {
  const accelpy_counts accelpy_grid = accelpy_make_counts(accelpy_given, accelpy_run_id);
  (void)accelpy_data, (void)accelpy_extents, (void)accelpy_device;
"""


_FAILED = "  int32_t accelpy_failed = 0;\n"


_RETURNED = "  return accelpy_failed;\n"


def _write_function(task: Task, opening: str = "") -> str:
    _, body = split_body(task)
    parameters = "".join(f"{declare_parameter(parameter)}, " for parameter in task.parameters)
    return (
        f"static void accelpy_task({parameters}const accelpy_counts accelpy_grid) {{\n"
        f"(void)accelpy_grid;\n{opening}{{\n{body}{RESUME}\n}}\n}}\n"
    )


def _write_file(task: Task, devices: str, function: str, run: str) -> str:
    check_names(task.parameters)
    includes, _ = split_body(task)
    after = f"{includes}{RESUME}\n" if includes else ""
    # That header takes longer to compile than all the others.
    complex_ = _COMPLEX if needs_complex(task) else ""
    half = _FLOAT16 if needs_float16(task.parameters) else ""
    head = (_HEAD, complex_, after, _TYPES, half, ARRAY, GRID, MACROS, _REPORT)
    return resume_lines("".join((*head, devices, function, _RUN, run, "}\n")))


def _guard(call: str) -> str:
    """Return a call in any thread whose exceptions are reported in `accelpy_failed`."""

    def report(what: str) -> str:
        return (
            "#pragma omp critical(accelpy_failure)\n"
            f"    accelpy_failed = accelpy_report({what}, accelpy_message, accelpy_room);\n"
        )

    return (
        f"  try {{\n  {call}  }} catch (const std::exception &error) {{\n{report('error.what()')}"
        f"  }} catch (...) {{\n{report(f'{chr(34)}an exception of the body{chr(34)}')}  }}\n"
    )


def write_cpp(task: Task) -> str:
    """Write the source of a `cpp` section: the body runs once."""
    guarded = _guard(f"  accelpy_task({pass_arguments(task.parameters)});\n")
    return _write_file(task, _ONE_DEVICE, _write_function(task), f"{_FAILED}{guarded}{_RETURNED}")


def write_openmp(task: Task) -> str:
    """Write the source of an `openmp_cpp` section: the body is inside a parallel region.

    There are as many threads as members of all teams, but no more than `omp_get_max_threads()`. A body that
    opens parallel regions runs once.
    """
    has_region = find_first_directive(task.section.body, "omp", fortran=False) in (
        "parallel",
        "target",
        "teams",
    )
    count = (
        "  int64_t accelpy_threads = 1;\n"
        "  for (int d = 0; d < 6; d++) accelpy_threads *= accelpy_given[d];\n"
        "  accelpy_threads = std::min<int64_t>(accelpy_threads, omp_get_max_threads());\n"
    )
    call = _guard(f"  accelpy_task({pass_arguments(task.parameters)});\n")
    if has_region:
        # The number of threads is a setting of the calling thread.
        run = (
            "  const int accelpy_before = omp_get_max_threads();\n"
            "  omp_set_num_threads(static_cast<int>(accelpy_threads));\n"
            f"{call}  omp_set_num_threads(accelpy_before);\n"
        )
    else:
        # an exception must not leave the region: it would end the process
        run = f"#pragma omp parallel num_threads(static_cast<int>(accelpy_threads))\n  {{\n{call}  }}\n"
    return _write_file(task, _ONE_DEVICE, _write_function(task), f"{count}{_FAILED}{run}{_RETURNED}")


def _map_arrays(parameters: Sequence[Parameter]) -> tuple[str, list[str], list[str]]:
    """Return declarations of pointers, and the array sections of inputs and outputs."""
    lines, offset = "", 0
    inputs: list[str] = []
    outputs: list[str] = []
    for i, parameter in enumerate(parameters):
        if parameter.ndim:
            const = "" if parameter.is_output else "const "
            kind = const + find_type(parameter)
            sizes = "".join(f" * accelpy_extents[{offset + d}]" for d in range(parameter.ndim))
            lines += f"  {kind} *accelpy_p{i} = static_cast<{kind} *>(accelpy_data[{i}]);\n"
            lines += f"  const int64_t accelpy_n{i} = std::max<int64_t>(1, 1{sizes});\n"
            (outputs if parameter.is_output else inputs).append(f"accelpy_p{i}[0:accelpy_n{i}]")
        offset += 2 * parameter.ndim
    return lines, inputs, outputs


def _list_pointers(parameters: Sequence[Parameter]) -> str:
    return ", ".join(f"accelpy_p{i}" for i, parameter in enumerate(parameters) if parameter.ndim)


def _write_device_call(task: Task) -> str:
    place = "const_cast<void *>(static_cast<const void *>(accelpy_p{i}))"
    return f"  accelpy_task({pass_arguments(task.parameters, place)});\n"


def write_openacc(task: Task) -> str:
    """Write the source of an `openacc_cpp` section: the body is inside a parallel region.

    Teams are gangs, and members the vector length. The data is mapped around it. A body that opens compute
    regions gets only the data.
    """
    lines, inputs, outputs = _map_arrays(task.parameters)
    scalars = [parameter.name for parameter in task.parameters if parameter.is_output and not parameter.ndim]
    opening = (
        "const int accelpy_gangs = accelpy_grid.team[0] * accelpy_grid.team[1] * accelpy_grid.team[2];\n"
        "const int accelpy_lanes = accelpy_grid.worker[0] * accelpy_grid.worker[1] * "
        "accelpy_grid.worker[2];\n"
        "#pragma acc parallel num_gangs(accelpy_gangs) num_workers(1) vector_length(accelpy_lanes)"
        + (f" copy({', '.join(scalars)})" if scalars else "")
        + "\n"
    )
    if find_first_directive(task.section.body, "acc", fortran=False) in ("parallel", "kernels", "serial"):
        opening = ""
    choose = (
        "  if (acc_get_num_devices(acc_get_device_type()) > 0)\n"
        "    acc_set_device_num(accelpy_device, acc_get_device_type());\n"
    )
    clauses = write_map_clauses(inputs, outputs, "copyin(", "copy(")
    call = _write_device_call(task)
    if clauses:
        call = (
            f"#pragma acc data{clauses}\n  {{\n"
            f"#pragma acc host_data use_device({_list_pointers(task.parameters)})\n  {{\n{call}  }}\n  }}\n"
        )
    return _write_file(
        task, _ACC_DEVICES, _write_function(task, opening), f"{choose}{lines}{call}  return 0;\n"
    )


def write_omptarget(task: Task) -> str:
    """Write the source of an `omptarget_cpp` section: the body is inside a target region.

    The data is mapped around it. A body that opens target regions gets only the data. A body that begins with
    `distribute` is inside `target teams`.
    """
    lines, inputs, outputs = _map_arrays(task.parameters)
    scalars = [parameter.name for parameter in task.parameters if parameter.is_output and not parameter.ndim]
    mapped = f" map(tofrom: {', '.join(scalars)})" if scalars else ""
    first = find_first_directive(task.section.body, "omp", fortran=False)
    opening = f"#pragma omp target{mapped}\n"
    if first == "distribute":
        opening = (
            "const int accelpy_teams = accelpy_grid.team[0] * accelpy_grid.team[1] * accelpy_grid.team[2];\n"
            "const int accelpy_limit = std::min(omp_get_max_threads(), accelpy_grid.worker[0] * "
            "accelpy_grid.worker[1] * accelpy_grid.worker[2]);\n"
            "(void)accelpy_limit;\n"
            f"#pragma omp target teams num_teams(accelpy_teams) thread_limit(accelpy_limit){mapped}\n"
        )
    elif first == "target":
        opening = ""
    choose = "  if (omp_get_num_devices() > 0) omp_set_default_device(accelpy_device);\n"
    clauses = write_map_clauses(inputs, outputs, "map(to: ", "map(tofrom: ")
    call = _write_device_call(task)
    if clauses:
        pointers = _list_pointers(task.parameters)
        call = (
            f"#pragma omp target data{clauses}\n  {{\n"
            f"#pragma omp target data use_device_ptr({pointers})\n  {{\n{call}  }}\n  }}\n"
        )
    return _write_file(
        task, _OMP_DEVICES, _write_function(task, opening), f"{choose}{lines}{call}  return 0;\n"
    )


def _make_program(model: str, description: str, native: Library) -> HostProgram:
    return HostProgram(model, description, native, "C")


_GNU = ("-O3", "-std=c++17", "-fPIC", "-shared", "-w")


# With the warnings that `compile_library` treats as errors.
_GNU_WARNING = (*(word for word in _GNU if word != "-w"), "-Wunknown-pragmas")


_NVHPC = ("-O3", "-std=c++17", "-fPIC", "-shared", "-w")


_NAMES = ("g++", "clang++", "nvc++", "icpx", "c++")


_CPP = Search("CXX", _NAMES, package="Debian's package g++")


_LOOP = "for (int i = 0; i < x.shape[0]; i++) y(i) = x(i);"


MODELS = (
    NativeModel(
        name="cpp",
        search=_CPP,
        flags={"gnu": _GNU, "clang": _GNU, "intel": _GNU, "nvhpc": _NVHPC, "": _GNU},
        write=write_cpp,
        suffix=".cpp",
        copy=_LOOP,
        program=_make_program,
    ),
    NativeModel(
        name="openmp_cpp",
        search=_CPP,
        flags={
            "gnu": (*_GNU_WARNING, "-fopenmp"),
            "clang": (*_GNU, "-fopenmp"),
            "intel": (*_GNU, "-qopenmp"),
            "nvhpc": (*_NVHPC, "-mp"),
        },
        write=write_openmp,
        suffix=".cpp",
        copy=f"#pragma omp for\n{_LOOP}",
        program=_make_program,
    ),
    NativeModel(
        name="openacc_cpp",
        search=Search("CXX", ("nvc++", "g++"), package="Debian's package g++, or NVIDIA's HPC SDK"),
        flags={"gnu": (*_GNU_WARNING, "-fopenacc"), "nvhpc": (*_NVHPC, "-acc")},
        write=write_openacc,
        suffix=".cpp",
        copy=f"#pragma acc loop gang worker vector\n{_LOOP}",
        program=_make_program,
    ),
    NativeModel(
        name="omptarget_cpp",
        search=Search("CXX", ("nvc++", "icpx", "g++", "clang++"), package="Debian's package g++"),
        flags={
            "gnu": (*_GNU_WARNING, "-fopenmp"),
            "clang": (*_GNU, "-fopenmp"),
            "intel": (*_GNU, "-qopenmp", "-fopenmp-targets=spir64"),
            "nvhpc": (*_NVHPC, "-mp=gpu"),
        },
        write=write_omptarget,
        suffix=".cpp",
        copy=f"#pragma omp teams distribute parallel for\n{_LOOP}",
        program=_make_program,
    ),
)
