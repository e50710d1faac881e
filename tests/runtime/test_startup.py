"""What an import brings along: each of these modules would show in the time that it takes."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import vkdispatch as vd
import vkdispatch.kompute as kp

RunPython = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = ("dataclasses", "difflib", "hashlib", "numpy.typing", "pathlib", "platformdirs", "sysconfig", "uuid")
SELDOM = (
    "vkdispatch.compiler.interpreter",
    "vkdispatch.shader.raw.kernel",
    "vkdispatch.shader.map",
    "vkdispatch.cli",
    "click",
)

IMPORT = f"""
import sys
import numpy
before = set(sys.modules)
compiled = []
import re
re._compiler.compile, compile = lambda *args: compiled.append(args[0]) or compile(*args), re._compiler.compile
import vkdispatch as vd, vkdispatch.codegen
vd.shader, vd.Buffer, vd.CommandGraph, vd.float32
new = set(sys.modules) - before
print(sorted(new & set({HEAVY + SELDOM!r})), compiled)
"""


def test_import_loads_no_heavy_modules(run_python: RunPython) -> None:
    done = run_python(IMPORT)
    assert (done.stdout, done.stderr) == ("[] []\n", "")


def test_late_imports_are_available(run_python: RunPython) -> None:
    done = run_python("import vkdispatch as vd; print(all(hasattr(vd, name) for name in vd.__all__))")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_package_alone_imports_next_to_nothing(run_python: RunPython) -> None:
    done = run_python(
        "import sys; import numpy; before = set(sys.modules); import vkdispatch; "
        "print(sorted(set(sys.modules) - before))"
    )
    assert (done.stdout, done.stderr) == ("['vkdispatch']\n", "")


# What stands on SPIR-V of its own: neither the kernel language nor what starts other programs.
NATIVE = """
import sys
import numpy
before = set(sys.modules)
import vkdispatch.base.context, vkdispatch.base.buffer, vkdispatch.base.spirv.reflection
import vkdispatch.base.command_list
heavy = ("threading", "logging", "subprocess", "shutil", "asyncio", "inspect", "vkdispatch.codegen",
         "vkdispatch.shader")
print([name for name in heavy if name in set(sys.modules) - before])
"""


def test_the_runtime_objects_import_little(run_python: RunPython) -> None:
    done = run_python(NATIVE)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_stub_and_package_name_the_same() -> None:
    stub = ast.parse(Path(vd.__file__).with_suffix(".pyi").read_text())
    homes = {}
    names: list[str] = []
    modules = set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module == "vkdispatch":
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            homes |= {alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Assign):
            names = ast.literal_eval(node.value)
    assert homes == {name: f"vkdispatch.{home}" for name, home in vd._HOMES.items()}
    assert modules == set(vd._MODULES)
    assert sorted(names) == sorted(vd.__all__)
    own = {*homes} - vd._SHADOWING
    assert set(names) == {*own, "__version__", "fft", "orders", "random", "reduce", "vkfft"}


def test_stub_and_kompute_name_the_same() -> None:
    stub = ast.parse(Path(kp.__file__).with_suffix(".pyi").read_text())
    homes, older, members = {}, {}, {}
    names: list[str] = []
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            homes |= {alias.name: node.module for alias in node.names if not alias.asname}
            older |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.AnnAssign):
            members[ast.unparse(node.target)] = ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            names = ast.literal_eval(node.value)
    assert members.pop("__version__") == "str"
    assert homes == {name: f"vkdispatch.kompute.{home}" for name, home in kp._HOMES.items()}
    assert (older, members) == (kp._OLDER, kp._CLASSES)
    assert sorted(names) == sorted(kp.__all__) == sorted({*homes, *older, *members, "__version__"})
    assert all(getattr(kp, name).name == name for name in members)
    assert all(getattr(kp, name) is getattr(kp, now) for name, now in older.items())
    assert set(kp.__all__) <= set(dir(kp))


def test_kompute_imports_what_a_manager_needs(run_python: RunPython) -> None:
    done = run_python(
        "import sys, gc; import numpy; before = set(sys.modules)\n"
        "import vkdispatch.kompute as kp\n"
        "heavy = ('logging', 'pathlib', 'threading', 'vkdispatch.base.dtype', 'vkdispatch.base.buffer',\n"
        "         'vkdispatch.base.image', 'vkdispatch.execution_pipeline', 'vkdispatch.kompute.sequences')\n"
        "print([name for name in heavy if name in set(sys.modules) - before])\n"
        "print('Manager' in vars(kp), gc.isenabled())"
    )
    assert (done.stdout, done.stderr) == ("[]\nTrue True\n", "")


def test_kompute_import_keeps_garbage_collection_disabled(run_python: RunPython) -> None:
    done = run_python("import gc; gc.disable(); import vkdispatch.kompute; print(gc.isenabled())")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_program_for_kompute_never_imports_the_kernel_language(run_python: RunPython) -> None:
    done = run_python(
        "import sys; import numpy; before = set(sys.modules)\n"
        "import vkdispatch.kompute as kp\n"
        "m = kp.Manager(); t = m.tensor([1, 2, 3]); s = m.sequence()\n"
        "s.record(kp.OpSyncDevice([t])).record(kp.OpSyncLocal([t])).eval(); print(t.data())\n"
        "heavy = ('logging', 'threading', 'pathlib', 'vkdispatch.codegen', 'vkdispatch.shader', 'hashlib')\n"
        "print([name for name in heavy if name in set(sys.modules) - before])"
    )
    assert (done.stdout, done.stderr) == ("[1. 2. 3.]\n[]\n", "")


LOGGED = """
import sys, numpy
{first}
import vkdispatch.kompute as kp
import logging
assert bool(logging.getLogger().handlers) == bool({first!r})
{then}
kp.Manager()
"""


@pytest.mark.parametrize("first", ["", "import logging"])
def test_kompute_logger_is_named_kp(first: str, run_python: RunPython) -> None:
    level = "logging.getLogger('kp').setLevel(logging.INFO)"
    for then, lines in (("", 0), (level, 1), ("kp.log_level(2)", 1), ("kp.log_level(3)", 0)):
        done = run_python(LOGGED.format(first=first, then=then))
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == lines, done.stderr
        assert done.stderr.startswith("INFO:kp:using device 0") == bool(lines)


def test_lazy_names_come_from_the_listed_modules(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd, importlib\n"
        "for name, home in vd._HOMES.items():\n"
        "    assert name in dir(vd) and name not in vars(vd), name\n"
        "    value = getattr(vd, name)\n"
        "    module = importlib.import_module(f'vkdispatch.{home}')\n"
        "    assert vars(vd)[name] is value is getattr(module, name), name\n"
        "for name in vd._MODULES:\n"
        "    assert getattr(vd, name).__name__ == f'vkdispatch.{name}'\n"
        "try:\n"
        "    vd.nothing\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    assert (done.stdout, done.stderr) == ("module 'vkdispatch' has no attribute 'nothing'\n", "")


def test_decorator_is_not_hidden_by_the_folder(run_python: RunPython) -> None:
    # The import system sets a folder as an attribute of the package, at the latest moment.
    done = run_python(
        "import vkdispatch.shader.map, vkdispatch.reduce, vkdispatch as vd\n"
        "from vkdispatch import shader\n"
        "import vkdispatch.shader.decorator\n"
        "print(shader is vd.shader is vkdispatch.shader, shader.__module__)"
    )
    assert (done.stdout, done.stderr) == ("True vkdispatch.shader.decorator\n", "")


def test_star_import_gives_all_names(run_python: RunPython) -> None:
    done = run_python(
        "from vkdispatch import *; import vkdispatch; print(set(vkdispatch.__all__) <= set(dir()))"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_modules_are_reached_as_attributes(run_python: RunPython) -> None:
    done = run_python(
        "import vkdispatch as vd\n"
        "print(vd.base.command_list.CommandList.__name__)\n"
        "print(vd.execution_pipeline.command_graph.CommandGraph.__name__)\n"
        "print(hasattr(vd.base, 'nothing'), hasattr(vd.base, '__path__'), hasattr(vd.base, '_nothing'))"
    )
    assert (done.stdout, done.stderr) == ("CommandList\nCommandGraph\nFalse True False\n", "")


_THREADS = """
import importlib, random, sys, threading, time
import numpy as np

class Slow:
    @staticmethod
    def find_spec(name, path, target=None):
        if name.startswith("vkdispatch."):
            time.sleep(random.random() * 0.004)

def load(name):
    return importlib.import_module(f"vkdispatch.{name}")

def run(calls):
    def ask(call):
        start.wait()
        results.append(call())

    sys.meta_path.insert(0, Slow)
    start, results = threading.Barrier(len(calls)), []
    threads = [threading.Thread(target=ask, args=(call,)) for call in calls]
    [thread.start() for thread in threads]; [thread.join() for thread in threads]
    return results

import vkdispatch as vd
"""


_ALL_NAMES = """
names = vd.__all__
results = run([lambda i=i: [getattr(vd, x) for x in names[i * 9:] + names[:i * 9]] for i in range(8)])
print(len(results), len({frozenset(map(id, values)) for values in results}))
"""
_FIRST_CALLS = """
x, z, m = np.ones(64, np.float32), np.ones(64, np.complex64), np.eye(8, dtype=np.float32)
vnp = lambda: load("numpy")
calls = [
    lambda: vd.sum(vd.asbuffer(x)), lambda: vd.sort(vd.asbuffer(x)), lambda: vd.cumsum(vd.asbuffer(x)),
    lambda: vd.fft.fft(vd.asbuffer(z)), lambda: vd.matmul(vd.asbuffer(m), vd.asbuffer(m)),
    lambda: vd.histogram(vd.asbuffer(x), 4), lambda: vnp().asarray(x).sum(),
    lambda: vnp().fft.fft(vnp().asarray(x)), lambda: vnp().linalg.norm(vnp().asarray(x)),
    lambda: load("numpy.random").default_rng(1), lambda: load("kompute").Manager,
    lambda: vd.vkfft, lambda: vd.orders.Order, lambda: vd.reduce.ReduceOp, lambda: vd.explain,
    lambda: vd.random.Generator, lambda: vd.codegen.Buff,
]
print(len(run(calls)) == len(calls))
"""


@pytest.mark.parametrize(("calls", "printed"), [(_ALL_NAMES, "8 1\n"), (_FIRST_CALLS, "True\n")])
def test_threads_may_import_at_once(calls: str, printed: str, run_python: RunPython) -> None:
    done = run_python(_THREADS + calls)
    assert (done.stdout, done.stderr) == (printed, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each module takes long otherwise")
def test_each_module_may_be_imported_first(run_python: RunPython) -> None:
    """By programs, and by threads beside the import of another module."""
    done = run_python(
        "import importlib, os, pkgutil, sys\n"
        f"root = {str(Path(vd.__file__).parent)!r}\n"
        "names = [m.name for m in pkgutil.walk_packages([root], 'vkdispatch.', lambda _: None)]\n"
        "wrong = []\n"
        "for name in names:\n"
        "    if name.endswith('__main__'):\n"
        "        continue\n"
        "    if (child := os.fork()) == 0:\n"
        "        try:\n"
        "            importlib.import_module(name)\n"
        "        except BaseException as error:\n"
        "            print(name, error, flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "print(len(names) > 300)\n",
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_subinterpreters_are_refused(run_python: RunPython) -> None:
    """A process that had used the module in one never ended."""
    modules = pytest.importorskip("_xxsubinterpreters", reason="Python 3.13 calls it otherwise").__name__
    done = run_python(
        f"import {modules} as interpreters\n"
        "try: interpreters.run_string(interpreters.create(), 'import vkdispatch_native')\n"
        "except interpreters.RunFailedError as error: print(error)\n"
    )
    assert "ImportError" in done.stdout, done.stdout + done.stderr
    # from Python 3.12 on the interpreter itself refuses
    assert "main interpreter only" in done.stdout or "not support loading in subinterpreters" in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_limit_of_threads_is_named(run_python: RunPython) -> None:
    """Root has no such limit."""
    done = _run_limited(run_python, "resource.RLIMIT_NPROC, (1, 1)")
    assert "ulimit" in done.stdout or done.stdout == "[1. 1.]\n", done.stdout + done.stderr


@pytest.mark.parametrize("mebibytes", [150, 430, 500, 900])
def test_no_driver_is_loaded_with_too_little_address_space(run_python: RunPython, mebibytes: int) -> None:
    """Drivers crash or wait forever where a thread cannot start."""
    done = _run_limited(run_python, f"resource.RLIMIT_AS, ({mebibytes} << 20,) * 2")
    assert re.fullmatch(
        rf"Vulkan cannot run in this process: the limit of {mebibytes} MiB of address space \(ulimit -v\) "
        r"leaves \d+ MiB, and a driver needs about \d+ MiB\. Raise it\.\n",
        done.stdout,
    ), done.stdout + done.stderr


def test_enough_address_space(run_python: RunPython) -> None:
    assert _run_limited(run_python, "resource.RLIMIT_AS, (64 << 30,) * 2").stdout == "[1. 1.]\n"


def _run_limited(run_python: RunPython, limit: str) -> subprocess.CompletedProcess[str]:
    return run_python(
        "import resource\n"
        "import numpy as np, vkdispatch as vd\n"
        f"resource.setrlimit({limit})\n"
        "try: print(vd.asbuffer(np.ones(2, np.float32)).read(0))\n"
        "except vd.VkDispatchError as error: print(error)\n",
        OPENBLAS_NUM_THREADS="1",
    )
