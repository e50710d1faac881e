"""C++ on the host: `cpp`, and with OpenMP, OpenACC and OpenMP's target regions; sources like C."""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from vkdispatch.orders.arguments import Parameter
from vkdispatch.orders.compilers import BuildFailure, Search
from vkdispatch.orders.models.native import Flags, HostProgram, NativeModel
from vkdispatch.orders.models.protocol import Task

# ---- What the sources of C++, CUDA and HIP have in common ------------------------------------------------


FILE = "accelpy.cpp"


TYPES = {
    "b1": "bool",
    **{f"i{size}": f"int{8 * size}_t" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"uint{8 * size}_t" for size in (1, 2, 4, 8)},
    "f2": "accelpy_float16",
    "f4": "float",
    "f8": "double",
    "c8": "accelpy_complex<float>",
    "c16": "accelpy_complex<double>",
}


ARRAY = """\
template <int N> struct accelpy_shape {
  int64_t sizes[N];
  ACCELPY_ROUTINE
  ACCELPY_BOTH operator const int64_t *() const { return sizes; }
  ACCELPY_ROUTINE
  ACCELPY_BOTH int64_t operator()(int axis) const { return sizes[axis]; }
};
template <typename T, int N> struct accelpy_array {
  T *data;
  accelpy_shape<N> shape;
  int64_t stride[N];
  int64_t size;
  enum { ndim = N };
  ACCELPY_BOTH accelpy_array() = default;
  ACCELPY_BOTH accelpy_array(void *place, const int64_t *extents) : data(static_cast<T *>(place)), size(1) {
    for (int d = 0; d < N; d++) {
      shape.sizes[d] = extents[d];
      stride[d] = extents[N + d];
      size *= shape[d];
    }
  }
  ACCELPY_ROUTINE
  template <typename... I> ACCELPY_BOTH T &operator()(I... index) const {
    static_assert(sizeof...(I) == N, "an element takes as many indices as its array has dimensions");
    int64_t at = 0;
    int d = 0;
    ((at = at * shape[d++] + static_cast<int64_t>(index)), ...);
    return data[at];
  }
};
"""


GRID = """\
struct accelpy_counts {
  int32_t worker[3], team[3], assign[3];
  int64_t run;
};
static accelpy_counts accelpy_make_counts(const int32_t *counts, int64_t run) {
  accelpy_counts made;
  for (int d = 0; d < 3; d++) {
    made.worker[d] = counts[d];
    made.team[d] = counts[3 + d];
    made.assign[d] = counts[6 + d];
  }
  made.run = run;
  return made;
}
"""


MACROS = "".join(
    [
        f"#define ACCELPY_{macro}_DIM{d} (accelpy_grid.{field}[{d}])\n"
        for macro, field in (("WORKER", "worker"), ("TEAM", "team"), ("ASSIGN", "assign"))
        for d in range(3)
    ]
    + ["#define ACCELPY_ACCEL_RUNID (accelpy_grid.run)\n"]
)


# Names that no argument can have: the compiler would report errors in generated lines.
_KEYWORDS = (
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr "
    "continue decltype default delete do double else enum explicit export extern false float for friend "
    "goto if inline int long mutable namespace new noexcept not nullptr operator or private protected "
    "public register return short signed sizeof static struct switch template this throw true try typedef "
    "typeid typename union unsigned using virtual void volatile while xor "
)


_RESERVED = frozenset(_KEYWORDS.split())


_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


def find_type(parameter: Parameter) -> str:
    """Return the C++ type of a parameter's elements."""
    return TYPES[parameter.code]


def needs_float16(parameters: Sequence[Parameter]) -> bool:
    """Whether a parameter has the dtype float16."""
    return any(parameter.dtype == np.float16 for parameter in parameters)


def needs_complex(task: Task) -> bool:
    """Whether a parameter or the body uses complex numbers."""
    return "complex" in task.section.body or any(p.dtype.kind == "c" for p in task.parameters)


def check_names(parameters: Sequence[Parameter]) -> None:
    """Raise BuildFailure if the name of a parameter is a keyword of C++."""
    for parameter in parameters:
        if parameter.name in _RESERVED:
            raise BuildFailure(f"the argument's name {parameter.name} is a keyword of C++; choose another")


def write_line_directive(line: int, name: str) -> str:
    """Return the directive that sets the number and file name of the next line."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{quoted}"\n'


def split_body(task: Task) -> tuple[str, str]:
    """Return the `#include` lines of a body and the body without them, both with the order's line numbers."""
    section = task.section
    body = section.body if section.body.endswith("\n") else section.body + "\n"
    label = task.order.label
    if body.endswith("\\\n"):
        body += "\n"  # the next line would continue it
    includes = ""
    for match in _INCLUDE.finditer(body):
        line = section.body_line + body.count("\n", 0, match.start())
        includes += write_line_directive(line, label) + match[0] + "\n"
    return includes, write_line_directive(section.body_line, label) + _INCLUDE.sub("", body)


def resume_lines(text: str, name: str = FILE) -> str:
    """Replace each RESUME line by a directive that restores the line numbers of the generated text."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(f'#line {len(lines) + 2} "{name}"' if line == RESUME else line)
    return "\n".join(lines)


RESUME = "//resume"


def declare_parameter(parameter: Parameter) -> str:
    """Return the declaration of a parameter of the function with the body."""
    const = "" if parameter.is_output else "const "
    kind = find_type(parameter)
    if parameter.ndim == 0:
        return f"{const}{kind} {'&' if parameter.is_output else ''}{parameter.name}"
    return f"const accelpy_array<{const}{kind}, {parameter.ndim}> {parameter.name}"


def pass_arguments(parameters: Sequence[Parameter], place: str = "accelpy_data[{i}]") -> str:
    """Return the arguments of a call of that function."""
    words, offset = [], 0
    for i, parameter in enumerate(parameters):
        kind = ("" if parameter.is_output else "const ") + find_type(parameter)
        at = place.format(i=i)
        if parameter.ndim == 0:
            words.append(f"*static_cast<{kind} *>(accelpy_data[{i}])")
        else:
            words.append(f"accelpy_array<{kind}, {parameter.ndim}>({at}, accelpy_extents + {offset})")
        offset += 2 * parameter.ndim
    return "".join(f"{word}, " for word in words) + "accelpy_grid"


# ---- Directives of OpenMP and OpenACC: the first one of a body, and data clauses -------------------------


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


def write_scalar_clause(parameters: Sequence[Parameter], copy_both: str) -> str:
    """Return the data clause of outputs that are scalars."""
    return write_map_clauses((), [p.name for p in parameters if p.is_output and not p.ndim], "", copy_both)


# ---- C++ on the host: `cpp`, and with OpenMP, OpenACC and OpenMP's target regions ------------------------


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
    first = find_first_directive(task.section.body, "omp", fortran=False)
    count = (
        "  int64_t accelpy_threads = 1;\n"
        "  for (int d = 0; d < 6; d++) accelpy_threads *= accelpy_given[d];\n"
        "  accelpy_threads = std::min<int64_t>(accelpy_threads, omp_get_max_threads());\n"
    )
    call = _guard(f"  accelpy_task({pass_arguments(task.parameters)});\n")
    if first in ("parallel", "target", "teams"):
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
    opening = (
        "const int accelpy_gangs = accelpy_grid.team[0] * accelpy_grid.team[1] * accelpy_grid.team[2];\n"
        "const int accelpy_lanes = accelpy_grid.worker[0] * accelpy_grid.worker[1] * "
        "accelpy_grid.worker[2];\n"
        "#pragma acc parallel num_gangs(accelpy_gangs) num_workers(1) vector_length(accelpy_lanes)"
        f"{write_scalar_clause(task.parameters, 'copy(')}\n"
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
    mapped = write_scalar_clause(task.parameters, "map(tofrom: ")
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


_GNU = ("-O3", "-std=c++17", "-fPIC", "-shared", "-w")
# With the warnings that `compile_library` treats as errors.
_GNU_WARNING = (*(word for word in _GNU if word != "-w"), "-Wunknown-pragmas")
_FLAGS = {"gnu": _GNU_WARNING, "clang": _GNU, "intel": _GNU, "nvhpc": _GNU}
_PACKAGE = "Debian's package g++"
_CPP = Search("CXX", ("g++", "clang++", "nvc++", "icpx", "c++"), package=_PACKAGE)
_LOOP = "for (int i = 0; i < x.shape[0]; i++) y(i) = x(i);"


def _make_model(
    name: str, search: Search, write: Callable[[Task], str], flags: Flags, directive: str
) -> NativeModel:
    program = partial(HostProgram, layout="C")
    return NativeModel(name, search, flags, write, ".cpp", directive + _LOOP, program)


def _extend_flags(**options: str) -> Flags:
    """Return the options of vendors with further ones."""
    return {vendor: (*_FLAGS[vendor], *text.split()) for vendor, text in options.items()}


MODELS = (
    _make_model("cpp", _CPP, write_cpp, dict.fromkeys(("gnu", "clang", "intel", "nvhpc", ""), _GNU), ""),
    _make_model(
        "openmp_cpp",
        _CPP,
        write_openmp,
        _extend_flags(gnu="-fopenmp", clang="-fopenmp", intel="-qopenmp", nvhpc="-mp"),
        "#pragma omp for\n",
    ),
    _make_model(
        "openacc_cpp",
        Search("CXX", ("nvc++", "g++"), package=f"{_PACKAGE}, or NVIDIA's HPC SDK"),
        write_openacc,
        _extend_flags(gnu="-fopenacc", nvhpc="-acc"),
        "#pragma acc loop gang worker vector\n",
    ),
    _make_model(
        "omptarget_cpp",
        Search("CXX", ("nvc++", "icpx", "g++", "clang++"), package=_PACKAGE),
        write_omptarget,
        _extend_flags(
            gnu="-fopenmp", clang="-fopenmp", intel="-qopenmp -fopenmp-targets=spir64", nvhpc="-mp=gpu"
        ),
        "#pragma omp teams distribute parallel for\n",
    ),
)
