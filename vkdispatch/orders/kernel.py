"""Kernels: the calls of accelpy 0.4 to 0.6, whose arguments are in one list.

A text of these versions is a `Spec`: `set_argnames("x", "y", "z")`, or `[cpp: x, y, z]`. In C++ an element is
`x[i][j]`, and `SHAPE(x, 0)`, `SIZE(x)` and `TYPE(x)` describe an array.
"""

import copy
import ctypes
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import replace
from vkdispatch.orders.accel import Accel
from vkdispatch.orders.compilers import TIMEOUT_SECONDS, BuildFailure, find_compilers, run_program
from vkdispatch.orders.errors import Attempt, OrderBuildError
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.cpp import TYPES, write_line_directive
from vkdispatch.orders.models.native import NativeModel
from vkdispatch.orders.order import MODELS, Header, Order, Section, parse_names, read_source

_GPU = ("cuda", "hip")  # their sections were programs of the host
_HOST_KINDS = ("omptarget", "openacc", "openmp", "fortran", "cpp")
_HELPER = "kernel"  # the section with their kernels
_CHOICES = tuple(model for model in MODELS if model not in (*_GPU, "vkdispatch", "glsl"))
_MACROS = """\
#define SHAPE(name, axis) shape_##name[axis]
#define SIZE(name) size_##name
#define TYPE(name) type_##name
"""
_PREFIX = "apy_"  # of the arguments of the order, beside which C++ has arrays of the plain names

Names = str | Sequence[str] | None


class Spec:
    """The text of a kernel in one or more programming models. Each launch runs its preamble.

    Parameters
    ----------
    source
        A text, the path of a file with a text, or a `Spec`.

    Raises
    ------
    TypeError, ValueError, OSError
        As for `Order`, but for errors in the text, which the launch raises.
    """

    def __init__(self, source: "str | os.PathLike[str] | Order | Spec") -> None:
        self.text: str
        self.path: str | None
        if isinstance(source, Spec):
            self.text, self.path = source.text, source.path
        else:
            self.text, self.path = read_source(source)


class _KernelOrder(Order):
    """The order that a `Spec` is with the names of `environ`. `arguments` are those of `set_argnames`."""

    def __init__(self, spec: Spec, environ: Mapping[str, Any]) -> None:
        self.arguments: tuple[str, ...] = ()
        self._environ = environ
        super().__init__(spec)  # type: ignore[arg-type]

    def _read(self, source: Spec) -> tuple[str, str | None]:
        return source.text, source.path

    def _make_namespace(self) -> dict[str, Any]:
        def set_argnames(*names: str) -> None:
            """Name the arguments."""
            self.arguments += parse_names(names, "names")

        return {**self._environ, "set_argnames": set_argnames}

    def _make_section(self, header: Header, line: int, body: str, body_line: int) -> Section:
        if header.models == (_HELPER,) or all(model in _GPU for model in header.models):
            # their options are about launches, with names that only programs for GPUs set
            return Section(
                header.models, {}, None, header.models != (_HELPER,), line + 1, body, body_line + 1
            )
        section = self._make_checked_section(header, line, body, body_line)
        for name, bounds in section.options.get("attrspec", {}).items():
            for bound in str(bounds.get("dimension", "1:")).split(","):
                if bound.split(":")[0].strip() not in ("", "1"):
                    raise self._make_error(
                        line, 0, f"attrspec: the dimensions of {name} begin at 1, got {bounds['dimension']!r}"
                    )
        return replace(section, options={})

    def make_order(self, section: Section, model: str, values: Sequence[object], macros: str) -> Order:
        """Return an order with one section, which names the values. Raises ValueError for too few names."""
        names = section.arguments or self.arguments
        if len(names) < len(values):
            raise ArgumentValueError(
                f"{self.label}:{section.line}: {len(values)} arguments, and names for {len(names)}: "
                f"{', '.join(names) or 'none'}; set_argnames names them"
            )
        order = copy.copy(self)
        pairs = list(zip(names, values, strict=False))
        body, line = section.body, section.body_line
        if "fortran" not in model:
            head = _MACROS + macros + "".join(_declare(name, value) for name, value in pairs)
            body, line = head + write_line_directive(line, self.label) + body, 1
            pairs = [(_PREFIX + name, value) for name, value in pairs]
        elif macros:
            body, line = macros + body, max(1, line - macros.count("\n"))
        order.inputs = tuple(name for name, value in pairs if not is_result(value))
        order.outputs = tuple(name for name, value in pairs if is_result(value))
        order.sections = (replace(section, models=(model,), body=body, body_line=line),)
        return order


class Task:
    """A launch of a kernel."""

    def __init__(self, accel: Accel) -> None:
        self.accel = accel

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the results are in the arrays. Raises the errors of `Accel.stop`."""
        self.accel.stop(timeout=timeout)

    stop = wait


class Kernel:
    r"""A kernel with the calls of accelpy 0.4 to 0.6.

    Parameters
    ----------
    spec
        A text, the path of a file with a text, or a `Spec`.
    accel
        The name of a programming model, or a list of names in order of preference. None: all.
    compile
        As for `Accel`.
    debug
        As for `Accel`. A number above 0 means True.
    acctype
        Another name for `accel`.
    cache, profile
        Have no effect: libraries are always cached.

    Examples
    --------
    >>> x, y = np.arange(3.0), np.zeros(3)
    >>> text = 'set_argnames("x", "y")\n[cpp]\n for (int i = 0; i < SHAPE(x, 0); i++) y[i] = 2 * x[i];\n'
    >>> Kernel(text).launch(x, y).wait()
    >>> y
    array([0., 2., 4.])
    """

    def __init__(
        self,
        spec: "str | os.PathLike[str] | Order | Spec",
        accel: Names = None,
        compile: Names = None,
        debug: int = False,
        acctype: Names = None,
        cache: int = 2,
        profile: int = 0,
    ) -> None:
        self.spec = Spec(spec)
        self._models = _list_names(accel) or _list_names(acctype) or _CHOICES
        self._compile, self._debug = compile, bool(debug)
        self._tasks: list[Task] = []

    def launch(
        self,
        *data: object,
        environ: Mapping[str, Any] | None = None,
        macro: Mapping[str, object] | None = None,
    ) -> Task:
        """Start the kernel, and return immediately. Writable arrays can be changed by it.

        Parameters
        ----------
        data
            The arguments, in the order of their names.
        environ
            Names that the preamble and the options of sections can use.
        macro
            Macros of the preprocessor by name. True defines one as 1; None and False leave it out.

        Raises
        ------
        OrderBuildError
            No section can be built.
        TypeError, ValueError
            The arguments do not match the names.
        """
        spec = _KernelOrder(self.spec, environ or {})
        defined = {name: int(value) if value is True else value for name, value in (macro or {}).items()}
        macros = "".join(
            f"#define {name} {value}\n" for name, value in defined.items() if value not in (None, False)
        )
        attempts: list[Attempt] = []
        for model in self._models:
            for section in spec.sections:
                if not section.enabled or model not in section.models:
                    continue
                if model in _GPU:
                    attempts.append(Attempt(model, section.line, f"kernels in {model} are not supported"))
                    continue
                order = spec.make_order(section, model, data, macros)
                options: dict[str, Any] = {"compile": self._compile, "debug": self._debug}
                inputs = [value for value in data if not is_result(value)]
                outputs = [value for value in data if is_result(value)]
                try:
                    task = Task(Accel(*inputs, order, *outputs, **options))
                except OrderBuildError as error:
                    attempts += error.attempts
                    continue
                task.accel.run()
                self._tasks.append(task)
                return task
        first = f"{spec.label}: no section for {', '.join(self._models)} could be built here."
        raise OrderBuildError(
            "\n".join([first, *(attempt.describe() for attempt in attempts)]), tuple(attempts)
        )

    def wait(self, *tasks: Task, timeout: float | None = None) -> None:
        """Wait for launches, without arguments for all of them. Raises the errors of `Accel.stop`."""
        for task in tasks or tuple(self._tasks):
            task.wait(timeout)
            if task in self._tasks:
                self._tasks.remove(task)

    def stop(self, timeout: float | None = None) -> None:
        """Wait for all launches. Raises the errors of `Accel.stop`."""
        self.wait(timeout=timeout)


class Region:
    """Data for launches: what `Accel(copyin=..., copyout=...)` makes, as in accelpy 0.6, and `AccelData`.

    Each launch moves its arrays, so the lists have no effect. `accel`, `lang` and `vendor` choose among the
    programming models: `accel="openacc"` and `lang="fortran"` are `openacc_fortran`.
    """

    def __init__(self, kernels: Sequence[Kernel] = (), **options: Any) -> None:
        languages = _list_names(options.get("lang")) or ("fortran", "cpp")
        kinds = _list_names(options.get("accel")) or _HOST_KINDS
        names = [f"{kind}_{lang}" for kind in kinds for lang in languages]
        names += [kind for kind in kinds if kind in (*languages, *_GPU) or "_" in kind]
        self._models = [name for name in names if name in MODELS]
        if not self._models:
            raise ArgumentValueError(f"accel: {', '.join(kinds)} in {', '.join(languages)} is no model")
        self._compile = options.get("compile") or _list_names(options.get("vendor")) or None
        self._kernels = list(kernels)

    def launch(
        self,
        kernel: Kernel,
        *data: object,
        updateto: Sequence[object] | None = None,
        updatefrom: Sequence[object] | None = None,
        macro: Mapping[str, object] | None = None,
        environ: Mapping[str, Any] | None = None,
    ) -> None:
        """Run a kernel, and wait for it. Raises the errors of `Kernel.launch`."""
        if not isinstance(kernel, Kernel):
            raise ArgumentTypeError(f"kernel: expected a Kernel, got {type(kernel).__name__}")
        chosen = Kernel(kernel.spec, self._models, self._compile)
        chosen.launch(*data, macro=macro, environ=environ).wait()

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the kernels of `AccelData`."""
        for kernel in self._kernels:
            kernel.wait(timeout=timeout)

    stop = wait


Accel.make_region = Region


def AccelData(*kernels: Kernel, **lists: object) -> Region:  # noqa: N802  (accelpy's name)
    """Return data for kernels: `mapto=`, `maptofrom=`, `mapfrom=`, `mapalloc=` of accelpy 0.4.

    Each launch moves its arrays, so the lists have no effect. `stop` waits for the kernels.
    """
    return Region(kernels)


def build_sharedlib(
    srcfile: str,
    outfile: str,
    workdir: str,
    compile: str | None = None,
    opts: str = "",
    vendor: Names = None,
    lang: Names = None,
    accel: Names = None,
) -> str:
    """Compile a source file to a shared library, and return the path of the library.

    Parameters
    ----------
    srcfile, outfile
        Source and library, relative to `workdir`.
    workdir
        A folder. Modules of Fortran are written there.
    compile
        A command without the names of files. `{outpath}` and `{moddir}` stand for the library and its folder.
    opts
        More options.
    vendor, lang, accel
        Names, or lists of names: gnu, intel, ...; cpp or fortran; openmp, openacc, omptarget, cuda, hip, cpp
        or fortran. None: all; the name of the file tells the language.

    Raises
    ------
    ValueError
        There is no such source file.
    OrderBuildError
        No compiler takes it. The message has what each says.
    """
    source, target = (os.path.abspath(os.path.join(workdir, name)) for name in (srcfile, outfile))
    if not os.path.isfile(source):
        raise ArgumentValueError(f"srcfile: there is no file {source}")
    if compile is not None:
        words = shlex.split(compile.format(outpath=target, moddir=os.path.dirname(source)))
        commands = [[*words, *shlex.split(opts), source]]
    else:
        commands = list(_list_commands(source, target, shlex.split(opts), vendor, lang, accel))
    messages = []
    for command in commands:
        done = run_program(command, TIMEOUT_SECONDS, workdir)
        if done.returncode == 0 and os.path.isfile(target):
            return target
        messages.append(f"{shlex.join(command)}\n{done.stderr or done.stdout}")
    raise OrderBuildError(
        f"build_sharedlib: no compiler built {source}.\n" + ("\n".join(messages) or "There is none here.")
    )


def _list_commands(
    source: str, target: str, options: Sequence[str], vendor: Names, lang: Names, accel: Names
) -> list[list[str]]:
    is_fortran = os.path.splitext(source)[1].lower().startswith(".f")
    languages = _list_names(lang) or ("fortran" if is_fortran else "cpp",)
    kinds = _list_names(accel) or (*_HOST_KINDS, *(_GPU if source.endswith((".cu", ".hip")) else ()))
    commands = []
    for kind in kinds:
        for model in (TABLE.get(name) for name in (kind, *(f"{kind}_{language}" for language in languages))):
            is_other = isinstance(model, NativeModel) and model.search.language not in (*languages, *_GPU)
            if not isinstance(model, NativeModel) or is_other:
                continue
            try:
                for compiler in find_compilers(model.search, _list_names(vendor) or None):
                    flags = model.find_flags(compiler)
                    commands.append([compiler.path, *flags, *compiler.words, *options, source, "-o", target])
            except BuildFailure:
                continue
    return commands


def load_sharedlib(libpath: str) -> ctypes.CDLL:
    """Load a shared library whose names other libraries can use."""
    return ctypes.CDLL(os.path.abspath(libpath), mode=ctypes.RTLD_GLOBAL)


def invoke_sharedlib(lang: str, libobj: ctypes.CDLL, funcname: str, *args: "np.ndarray[Any, Any]") -> int:
    """Call a function of a library with pointers to arrays, and return its result, an int.

    The arrays are contiguous: in C's order for `lang="cpp"`, in Fortran's for `"fortran"`.

    Raises
    ------
    TypeError, ValueError
        `lang` is neither, or an array is not contiguous in its order.
    """
    if lang not in ("cpp", "fortran"):
        raise ArgumentValueError(f"lang: expected 'cpp' or 'fortran', got {lang!r}")
    for i, value in enumerate(args):
        if not isinstance(value, np.ndarray):
            raise ArgumentTypeError(f"args[{i}]: expected an array, got {type(value).__name__}")
        if not (value.flags.c_contiguous if lang == "cpp" else value.flags.f_contiguous):
            order = "C" if lang == "cpp" else "F"
            raise ArgumentTypeError(f"args[{i}]: expected an array that is contiguous in order {order}")
    function = getattr(libobj, funcname)
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p] * len(args)
    return int(function(*(value.ctypes.data for value in args)))


def _declare(name: str, value: object) -> str:
    """Return the declarations of an array of C++, or of a number, which its argument holds."""
    array = np.asarray(value)
    code = f"{array.dtype.kind}{array.dtype.itemsize}"
    if code not in TYPES:
        return ""  # Accel names the argument in its error
    kind = ("" if is_result(value) else "const ") + TYPES[code]
    lines = f"typedef {TYPES[code]} type_{name}; const int64_t size_{name} = {array.size};\n"
    if not array.ndim:
        return f"{lines}{kind} &{name} = {_PREFIX}{name};\n"
    rows = "".join(f"[{size}]" for size in array.shape[1:])
    place = f"reinterpret_cast<{kind} (*){rows}>({_PREFIX}{name}.data)"
    sizes = ", ".join(str(size) for size in array.shape)
    return f"{lines}const int64_t shape_{name}[] = {{{sizes}}};\n{kind} (*const {name}){rows} = {place};\n"


def is_result(value: object) -> bool:
    """Whether a kernel can change a value."""
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable)
    return isinstance(value, (list, Buffer))


def _list_names(names: Names) -> tuple[str, ...]:
    words = (names,) if isinstance(names, str) else tuple(names or ())
    return () if "*" in words else words
