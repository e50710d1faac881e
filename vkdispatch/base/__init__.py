"""Runtime objects: devices, contexts, buffers and what runs on them."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

# ---- What other libraries call things, and what they are called here -------------------------------------
#
# Advice for names that a module lacks.


def _each(advice: dict[str, str]) -> dict[str, str]:
    """Return the advice for each name; the keys are names separated by spaces."""
    return {name: text for names, text in advice.items() for name in names.split()}


_ARRAYS = "vkdispatch.numpy has it; vd.asbuffer(array) makes a buffer of a NumPy array"

IN_PACKAGE = _each(
    {
        "arange array asarray empty full linspace ones zeros": _ARRAYS,
        "empty_like full_like ones_like zeros_like": _ARRAYS,
        "cos exp sin sqrt tan": "vkdispatch.numpy has it for arrays, vc for values in kernels",
        "compute_kernel func jit kernel": "@vd.shader makes a kernel of a function",
        "amax": "vd.max",
        "amin": "vd.min",
        "device_synchronize finish synchronize wait": "vd.queue_wait_idle() waits for the device",
        "from_numpy to_device": "vd.asbuffer(array) copies to the device",
        "copy_to_host from_device to_numpy": "buf.read(0) copies to the host",
        "bool": "the type is vd.bool_",
        "complex": "the type is vd.complex64",
        "device": "vd.get_devices() lists devices, vd.make_context(device_ids=0) chooses one",
        "double": "the type is vd.float64",
        "float": "the type is vd.float32",
        "int": "the type is vd.int32",
        "uint": "the type is vd.uint32",
    }
)
_TYPE = "types are in vd, for example vd.float32; vc.to_float(x), vc.to_vec3(x, y, z) and others make values"

IN_CODEGEN = _each(
    {
        "bool_ complex64 complex128 double float float16 float32 float64 half": _TYPE,
        "int int16 int32 int64 uint uint16 uint32 uint64": _TYPE,
        "mat2 mat3 mat4 vec2 vec3 vec4": _TYPE,
        "grid grid_id thread_id tid": "vc.global_invocation_id() is the position of an invocation",
        "blockIdx block_id block_idx group_id program_id": "vc.workgroup_id() is the position of a workgroup",
        "lid local_id threadIdx thread_idx": "vc.local_invocation_id() is the position in the workgroup",
        "blockDim block_dim local_size": "vc.workgroup_size() is the size of a workgroup",
        "sync sync_threads syncthreads workgroup_barrier": "vc.barrier() waits for the workgroup",
        "shared shared_array shared_memory": "vc.shared_buffer(type, size)",
        "array empty zeros": "vc.local_array(type, count) is an array of one invocation",
        "rand randn random_float random_normal uniform": "vc.random.Philox(seed, sequence=i) is a generator",
        "absolute fabs": "vc.abs",
        "arange": "vc.range, or Python's range",
        "arccos": "vc.acos",
        "arcsin": "vc.asin",
        "arctan": "vc.atan",
        "arctan2": "vc.atan2",
        "arccosh": "vc.acosh",
        "arcsinh": "vc.asinh",
        "arctanh": "vc.atanh",
        "atomicAdd": "vc.atomic_add(buf[i], value)",
        "conj conjugate": "z.conjugate()",
        "deg2rad": "vc.radians",
        "rad2deg": "vc.degrees",
        "gid": "vc.global_invocation_id()",
        "heaviside": "vc.step(0, x)",
        "reciprocal": "1 / x",
        "square": "x * x",
        "frac": "vc.fract",
        "lerp": "vc.mix",
        "fmax maximum": "vc.max",
        "fmin minimum": "vc.min",
        "norm": "vc.length",
        "popcount": "vc.bit_count",
        "float_power power": "vc.pow",
        "remainder": "vc.floor_mod",
        "add divide multiply negative subtract": "Python's operators compute with GPU values",
        "rint": "vc.round",
        "rsqrt": "vc.inversesqrt",
        "to_float32": "vc.to_float",
        "to_int32": "vc.to_int",
        "to_uint32": "vc.to_uint",
        "subgroup_sum": "vc.subgroup_add",
        "sum": "Python's sum adds values; vd.sum is for buffers",
        "where": "vc.select(condition, a, b), or a if condition else b",
    }
)


def make_getattr(module: str, advice: dict[str, str], owner: object) -> Callable[[str], NoReturn]:
    """Return a module's `__getattr__`, which raises AttributeError with advice."""

    def refuse(name: str) -> NoReturn:
        known = f"; {advice[name]}" if name in advice else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{known}", name=name, obj=owner)

    return refuse


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package that imports its submodules when they are used as attributes."""

    def get(name: str) -> ModuleType:
        if not name.startswith("_"):
            path = f"{package}.{name}"
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


# Why on first use: one thread may import a package, and another one of its modules. If the package imported
# the module, each thread would wait for the lock that the other one holds.


def names_elsewhere(module: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module whose names other modules define, which are imported on first use.

    `homes` maps modules, relative to `vkdispatch`, to the names they define, separated by spaces. `*` means
    the names of the module's `__all__`, or all its public ones; an empty text means the module itself.
    `__all__` is found, too: all these names.
    """
    places = {name: home for home, names in homes.items() if names != "*" for name in names.split()}
    places |= {home.rpartition(".")[2]: home for home, names in homes.items() if not names}
    modules = [home for home, names in homes.items() if names == "*"]

    def find(name: str) -> Any:
        if name not in places and modules and (name == "__all__" or not name.startswith("__")):
            path = f"{module}.{name}"
            if PathFinder.find_spec(path, sys.modules[module].__path__) is not None:
                return import_module(path)  # which the modules below may be about to import
            for home in modules:
                other = import_module(f"vkdispatch.{home}")
                names = getattr(other, "__all__", None) or [key for key in vars(other) if key[0] != "_"]
                places.update(dict.fromkeys(names, home))
            modules.clear()
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        other = import_module(f"vkdispatch.{places[name]}")
        value = getattr(other, name) if homes[places[name]] else other
        setattr(sys.modules[module], name, value)
        return value

    return find


def list_public(module: str) -> Callable[[], list[str]]:
    """Return a `__dir__` for a package of whose names `__all__` lists the public ones."""

    def list_names() -> list[str]:
        package = sys.modules[module]
        python = {name for name in vars(package) if name.startswith("__")} - {"__getattr__", "__dir__"}
        return sorted({*python, *package.__all__})

    return list_names


if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__ = submodules_of(__name__)
