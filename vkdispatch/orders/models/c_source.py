"""What the sources of C++, CUDA and HIP have in common."""

import re
from collections.abc import Sequence

import numpy as np

from vkdispatch.orders.arguments.argument import Parameter
from vkdispatch.orders.compilation.compilers import BuildFailure
from vkdispatch.orders.models.protocol import Task

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
