"""The backend: select it, load Vulkan once, list its devices; CUDA capture of 0.1.0."""

import os
from _thread import RLock
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from vkdispatch.base import errors, names_elsewhere, process
from vkdispatch.base.devices import DeviceInfo, matrix_product
from vkdispatch.base.native_module import native
from vkdispatch.base.record import field, record

# ---- The backend: select it, load Vulkan once, list its devices ------------------------------------------


_BACKENDS = ("vulkan", "cuda", "opencl", "dummy")
_NOT_BUILT = ("cuda", "opencl")
_BACKEND_VARIABLE = "VKDISPATCH_BACKEND"

# Functions to call before Vulkan is loaded, and after a context has ended. Optional modules add theirs.
before_loading: list[Callable[[], None]] = []
after_contexts: list[Callable[[], None]] = []

_lock = RLock()
_active_backend: str | None = None
_devices: list[DeviceInfo] | None = None
_debug = False


def initialize(
    debug_mode: bool = False,
    log_level: process.LogLevel | None = None,
    loader_debug_logs: bool = False,
    backend: str | None = None,
) -> None:
    """Load Vulkan. The first use of a device calls this; later calls do nothing.

    Parameters
    ----------
    debug_mode
        Enable the validation layer and vkdispatch's hazard checker. The environment variable
        VKDISPATCH_DEBUG=1 does the same.
    log_level
        The lowest level of messages to print from now on. None keeps the level, WARNING by default.
    loader_debug_logs
        Make the Vulkan loader log what it does (VK_LOADER_DEBUG=all).
    backend
        "vulkan", or "dummy": a simulated GPU on which kernels can be traced and their source be read, but not
        run. It does not need Vulkan. The default is that of the environment variable VKDISPATCH_BACKEND, or
        "vulkan".

    Raises
    ------
    ValueError
        There is no backend of that name.
    RuntimeError
        Another backend is already active.
    BackendUnavailableError
        The backend is "cuda" or "opencl", which are not part of this package, or this machine has no Vulkan
        driver.

    Examples
    --------
    >>> vd.initialize(log_level=vd.LogLevel.WARNING)
    """
    global _active_backend
    with _lock:
        name = _backend_name(backend)
        if _active_backend is not None:
            if name != _active_backend:
                hint = f"; {errors.explain_backend(name)}" if name in _NOT_BUILT else ""
                raise errors.UsageError(
                    f"backend: already initialised with {_active_backend!r}, cannot change to {name!r}{hint}"
                )
            return
        if name in _NOT_BUILT:
            raise errors.BackendUnavailableError(
                name,
                f"{_backend_source(backend)}: {errors.explain_backend(name)}; use 'vulkan', or 'dummy' to "
                "run nothing",
            )
        if log_level is not None:
            process.set_log_level(log_level)
        if loader_debug_logs:
            os.environ["VK_LOADER_DEBUG"] = "all"
        if name == "vulkan":
            _load_vulkan(process.read_switch("VKDISPATCH_DEBUG") or debug_mode)
        _active_backend = name


def is_debug_enabled() -> bool:
    """Whether Vulkan was initialised in debug mode."""
    return _debug


def is_staging_forced() -> bool:
    """Whether VKDISPATCH_FORCE_STAGING makes all transfers go through staging memory. Raises ValueError."""
    return process.read_switch("VKDISPATCH_FORCE_STAGING")


def _backend_name(backend: str | None) -> str:
    if backend is not None and not isinstance(backend, str):
        raise errors.ArgumentValueError(f"backend: expected one of {', '.join(_BACKENDS)}, got {backend!r}")
    chosen = backend or _active_backend or os.environ.get(_BACKEND_VARIABLE, "").strip() or "vulkan"
    name = chosen.strip().lower()
    if name not in _BACKENDS:
        raise errors.ArgumentValueError(
            f"{_backend_source(backend)}: expected one of {', '.join(_BACKENDS)}, got {chosen!r}"
        )
    return name


def _backend_source(backend: str | None) -> str:
    """Return the argument or variable that names the backend, for messages."""
    return "backend" if backend or _active_backend else _BACKEND_VARIABLE


def _load_vulkan(debug: bool) -> None:
    global _debug
    from vkdispatch.base.devices import explain_short_memory

    for function in before_loading:
        function()
    if short := explain_short_memory():
        raise errors.BackendUnavailableError(
            "vulkan", f"Vulkan cannot run in this process: {short}. Raise it."
        )
    try:
        native.initialize(debug)
    # The loader also reports that it is out of memory if it cannot read the manifest of a driver.
    except (errors.VulkanError, errors.OutOfDeviceMemoryError) as error:
        raise no_driver_error(str(error)) from error
    _debug = debug
    if debug and not native.validation_enabled():
        process.log_warning(
            "debug mode: the Khronos validation layer is not installed (Debian: vulkan-validationlayers)"
            + (
                f", or VK_LAYER_PATH={layers!r} hides it"
                if (layers := os.environ.get("VK_LAYER_PATH"))
                else ""
            )
        )


def no_driver_error(reason: str) -> errors.BackendUnavailableError:
    """Return the error that says why Vulkan cannot run on this machine and what to install."""
    from vkdispatch.base.devices import explain_variables

    return errors.BackendUnavailableError(
        "vulkan",
        f"Vulkan cannot run on this machine: {reason}.{explain_variables()} Install the "
        "GPU vendor's Vulkan driver, or a CPU driver, which needs no GPU (Debian, Ubuntu: apt install "
        "libvulkan1 mesa-vulkan-drivers). If one is installed, set VK_LOADER_DEBUG=error,driver to see why "
        "the loader does not use it.",
    )


def is_initialized() -> bool:
    """Whether `initialize` has succeeded.

    Examples
    --------
    >>> context = vd.get_context()
    >>> vd.is_initialized()
    True
    """
    return _active_backend is not None


def get_backend() -> str:
    """Return the name of the active backend, or of the one that `initialize()` would select.

    Examples
    --------
    >>> vd.get_backend()
    'vulkan'
    """
    return _backend_name(None)


def is_vulkan() -> bool:
    """Whether the backend is Vulkan.

    Examples
    --------
    >>> vd.is_vulkan()
    True
    """
    return get_backend() == "vulkan"


def is_cuda() -> bool:
    """Whether the backend is CUDA.

    Examples
    --------
    >>> vd.is_cuda()
    False
    """
    return get_backend() == "cuda"


def is_opencl() -> bool:
    """Whether the backend is OpenCL.

    Examples
    --------
    >>> vd.is_opencl()
    False
    """
    return get_backend() == "opencl"


def is_dummy() -> bool:
    """Whether the backend is the dummy one.

    Examples
    --------
    >>> vd.is_dummy()
    False
    """
    return (_active_backend or get_backend()) == "dummy"


def get_devices() -> list[DeviceInfo]:
    """Return every Vulkan device of this machine, or that of the dummy backend. Initialises on first use.

    Examples
    --------
    >>> device = vd.get_devices()[0]
    >>> device.float_64_support == 1
    True
    """
    global _devices
    initialize()
    with _lock:
        if _devices is None and _active_backend == "dummy":
            from vkdispatch.base.devices import dummy_device

            _devices = [dummy_device()]
        elif _devices is None:
            _devices = [device_info(index, entry) for index, entry in enumerate(native.device_properties())]
        return list(_devices)


def get_cuda_device_map() -> dict[int, int]:
    """Return the device of each CUDA ordinal: an empty dict, as there is no CUDA backend."""
    return {}


def device_info(index: int, entry: dict[str, object]) -> DeviceInfo:
    """Return the information of the device `index` from the properties that the engine reports."""
    known = {name: entry[name] for name in DeviceInfo.__match_args__ if name in entry}
    products: Any = entry.get("cooperative_matrices", ())
    known["cooperative_matrices"] = tuple(map(matrix_product, products))
    return DeviceInfo(**{**known, "dev_index": index, "sorted_index": index})  # type: ignore[arg-type]


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.errors": "BackendUnavailableError",
            "base.process": "LogLevel log log_error log_info log_verbose log_warning set_log_level",
        },
    )


# ---- CUDA graph capture: part of 0.1.0's interface, which needs its CUDA backend -------------------------


@record(frozen=False)
class CUDAGraphCapture:
    """A capture in progress.

    Attributes
    ----------
    cuda_stream
        The stream of the submissions.
    uniform_buffers
        Buffers that the captured graph uses.
    """

    cuda_stream: Any = None
    uniform_buffers: list[Any] = field(factory=list)

    def add_uniform_buffer(self, buffer: Any) -> None:
        """Keep `buffer` alive with the capture."""
        self.uniform_buffers.append(buffer)


def require_cuda(what: str, instead: str) -> errors.UsageError:
    """Return the error for a use of CUDA, for which there is no backend."""
    return errors.UsageError(f"{what}: {errors.explain_backend('cuda')}; {instead}")


def cuda_graph_capture(cuda_stream: Any = None) -> AbstractContextManager[CUDAGraphCapture]:
    """Capture the submissions of a `with` block in a CUDA graph.

    Raises
    ------
    RuntimeError
        Always: a CUDA graph cannot replay what the host submits to Vulkan. `vd.CommandGraph` can.
    """
    raise errors.UsageError(
        "cuda_graph_capture: a CUDA graph does not replay work that the host submits to Vulkan; record a "
        "vd.CommandGraph instead"
    )


def get_cuda_capture() -> CUDAGraphCapture | None:
    """Return the capture of this thread: always None, as there is no CUDA backend."""
    return None
