"""Devices: their properties, the order of preference, and the drivers that provide them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vkdispatch.base.record import field, record

# ---- The properties of devices as plain data, and the order of preference. Calls no driver ---------------


CPU_DEVICE = 4
_TYPE_NAMES = {0: "Other", 1: "Integrated GPU", 2: "Discrete GPU", 3: "Virtual GPU", 4: "CPU driver (no GPU)"}
_TYPE_ORDER = {2: 0, 1: 1, 3: 2, 0: 3, 4: 4}
_QUEUE_FLAGS = ((0x1, "graphics"), (0x2, "compute"), (0x4, "transfer"), (0x8, "sparse"))

_COMPUTE_STAGE = 0x20
_BASIC_OPERATIONS = 0x1
_ARITHMETIC_OPERATIONS = 0x4

# Vulkan's numbers of component types and scopes -> names of dtypes and of scopes of the kernel language.
_COMPONENTS = {
    **dict(enumerate(("float16", "float32", "float64", "int8", "int16", "int32", "int64"))),
    **dict(enumerate(("uint8", "uint16", "uint32", "uint64"), 7)),
    1000141000: "bfloat16",
    1000491002: "float8_e4m3",
    1000491003: "float8_e5m2",
}
_SCOPES = {1: "device", 2: "workgroup", 3: "subgroup", 5: "queue_family"}


@record
class MatrixProduct:
    """A product of cooperative matrices that a device supports: a (m x k) times b (k x n), plus c.

    `a`, `b`, `c` and `result` are names of component types, such as "float16"; `scope` is "subgroup" or
    "workgroup". A `saturating` product clamps sums of integers to the range of their type. A `flexible` one
    (VK_NV_cooperative_matrix2) stands for all multiples of its three sizes. If its scope is the workgroup, it
    needs workgroups of `invocations`.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    result: str
    saturating: bool = False
    scope: str = "subgroup"
    flexible: bool = False
    invocations: int = 0


def matrix_product(numbers: tuple[int, ...]) -> MatrixProduct:
    """Return a product from the engine's description: Vulkan's numbers, in the order of the fields."""
    m, n, k, *types, saturating, scope, flexible, invocations = numbers
    a, b, c, result = (_COMPONENTS.get(number, f"type {number}") for number in types)
    where = _SCOPES.get(scope, f"scope {scope}")
    return MatrixProduct(m, n, k, a, b, c, result, bool(saturating), where, bool(flexible), invocations)


# Compared and hashed by identity: programs store devices in sets and use them as keys.
@record(eq=False, frozen=False)
class DeviceInfo:
    """One physical device: identity, features (0 or 1), limits (elements or bytes), queue families.

    `timestamp_period` is the nanoseconds per tick of timestamps, or 0 if some queue has no timestamps.
    `device_type` is 0 other, 1 integrated, 2 discrete, 3 virtual, 4 CPU. `missing` lists what vkdispatch
    needs and the device lacks; such a device is listed but cannot be used. `features` has the Vulkan names of
    the supported features that vkdispatch or its kernels may use, such as "shaderBufferInt64Atomics";
    `extensions` has the names of the supported extensions. For a device of another library, both list what is
    enabled. `cooperative_matrices` are the supported products of matrices; see `vc.cooperative_matrix`.
    """

    dev_index: int
    version_variant: int
    version_major: int
    version_minor: int
    version_patch: int
    driver_version: int
    vendor_id: int
    device_id: int
    device_type: int
    device_name: str
    shader_buffer_float32_atomics: int
    shader_buffer_float32_atomic_add: int
    float_64_support: int
    float_16_support: int
    int_64_support: int
    int_16_support: int
    storage_buffer_16_bit_access: int
    uniform_and_storage_buffer_16_bit_access: int
    storage_push_constant_16: int
    storage_input_output_16: int
    max_workgroup_size: tuple[int, int, int]
    max_workgroup_invocations: int
    max_workgroup_count: tuple[int, int, int]
    max_bound_descriptor_sets: int
    max_push_constant_size: int
    max_storage_buffer_range: int
    max_uniform_buffer_range: int
    uniform_buffer_alignment: int
    sub_group_size: int
    supported_stages: int
    supported_operations: int
    quad_operations_in_all_stages: int
    max_compute_shared_memory_size: int
    queue_properties: list[tuple[int, int]]
    scalar_block_layout: int
    timeline_semaphores: int
    uuid: bytes | None = None
    sorted_index: int = -1
    storage_buffer_8_bit_access: int = 0
    storage_image_extended_formats: int = 0
    sampler_mirror_clamp_to_edge: int = 0
    max_bound_storage_buffers: int = 4
    missing: list[str] = field(factory=list)
    features: frozenset[str] = frozenset()
    extensions: tuple[str, ...] = ()
    timestamp_period: float = 0.0
    cooperative_matrices: tuple[MatrixProduct, ...] = ()

    def is_nvidia(self) -> bool:
        """Whether this is an NVIDIA device."""
        return "NVIDIA" in self.device_name

    def is_apple(self) -> bool:
        """Whether this is an Apple device."""
        return "Apple" in self.device_name

    def is_llvmpipe(self) -> bool:
        """Whether this is llvmpipe, Mesa's driver that runs kernels on the processor."""
        return self.is_cpu() and self.device_name.startswith("llvmpipe")

    def is_cpu(self) -> bool:
        """Whether this is a driver that runs kernels on the processor."""
        return self.device_type == CPU_DEVICE

    @property
    def subgroup_enabled(self) -> bool:
        """Whether compute kernels may use subgroup operations at all."""
        return bool(self.supported_stages & _COMPUTE_STAGE and self.supported_operations & _BASIC_OPERATIONS)

    @property
    def subgroup_arithmetic(self) -> bool:
        """Whether compute kernels may add, multiply and compare across a subgroup."""
        return self.subgroup_enabled and bool(self.supported_operations & _ARITHMETIC_OPERATIONS)

    def get_info_string(self, verbose: bool = False) -> str:
        """Return a description of several lines. `verbose` adds driver, ids and limits."""
        lines = [f"Device {self.sorted_index}: {self.device_name}", *self._summary_lines()]
        if verbose:
            lines += self._detail_lines()
        return "\n".join(lines) + "\n"

    def _summary_lines(self) -> list[str]:
        version = f"{self.version_major}.{self.version_minor}.{self.version_patch}"
        lines = [
            f"\tVulkan Version: {version}",
            f"\tDevice Type: {_TYPE_NAMES.get(self.device_type, 'Unknown')}",
            "",
            "\tFeatures:",
            f"\t\tFloat32 Atomics: {_yes(self.shader_buffer_float32_atomics)}",
            f"\t\tFloat32 Atomic Add: {_yes(self.shader_buffer_float32_atomic_add)}",
            f"\t\tFloat64: {_yes(self.float_64_support)}   Float16: {_yes(self.float_16_support)}",
            f"\t\tInt64: {_yes(self.int_64_support)}   Int16: {_yes(self.int_16_support)}",
            f"\t\t16-bit Buffers: {_yes(self.storage_buffer_16_bit_access)}",
            "",
            "\tProperties:",
            f"\t\tSubgroup Size: {self.sub_group_size}",
            f"\t\tMax Workgroup Size: {self.max_workgroup_size} ({self.max_workgroup_invocations} in all)",
            f"\t\tMax Workgroup Count: {self.max_workgroup_count}",
            f"\t\tShared Memory: {self.max_compute_shared_memory_size // 1024} KiB",
            "",
            "\tQueues:",
        ]
        lines += [
            f"\t\t{family} (count={count}, flags={flags:#x}): "
            + (", ".join(name for bit, name in _QUEUE_FLAGS if flags & bit) or "other")
            for family, (count, flags) in enumerate(self.queue_properties)
        ]
        if self.missing:
            lines += ["", f"\tCannot be used; it lacks: {', '.join(self.missing)}"]
        return lines

    def _detail_lines(self) -> list[str]:
        products = ", ".join(map(_describe_product, self.cooperative_matrices))
        return [
            "",
            "\tDetails:",
            f"\t\tDriver Version: {self.driver_version:#x}",
            f"\t\tVendor ID: {self.vendor_id:#x}   Device ID: {self.device_id:#x}",
            f"\t\tUUID: {self.uuid.hex() if self.uuid else 'none'}",
            f"\t\tMax Push Constants: {self.max_push_constant_size} bytes",
            f"\t\tMax Storage Buffer Range: {self.max_storage_buffer_range} bytes",
            f"\t\tMax Uniform Buffer Range: {self.max_uniform_buffer_range} bytes",
            f"\t\tUniform Buffer Alignment: {self.uniform_buffer_alignment} bytes",
            f"\t\tMax Bound Descriptor Sets: {self.max_bound_descriptor_sets}",
            f"\t\tSubgroup Stages: {self.supported_stages:#x}   Operations: {self.supported_operations:#x}",
            f"\t\tFeatures: {', '.join(sorted(self.features)) or 'none'}",
            f"\t\tCooperative Matrices: {products or 'none'}",
            f"\t\tExtensions: {', '.join(sorted(self.extensions)) or 'none'}",
        ]

    def __repr__(self) -> str:
        return self.get_info_string()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print one line in IPython and notebooks, where `repr` has many."""
        version = f"Vulkan {self.version_major}.{self.version_minor}.{self.version_patch}"
        state = f", lacks {', '.join(self.missing)}" if self.missing else ""
        printer.text(f"<vd.DeviceInfo {self.dev_index}: {self.device_name}, {version}{state}>")


def _yes(flag: int) -> str:
    return "yes" if flag else "no"


def _describe_product(product: MatrixProduct) -> str:
    sizes = f"{product.m}x{product.n}x{product.k}{'+' if product.flexible else ''}"
    workgroup = f" {product.scope} of {product.invocations}" if product.scope != "subgroup" else ""
    return f"{sizes} {product.a}*{product.b}->{product.result}{workgroup}"


def identify_devices(devices: Iterable[DeviceInfo]) -> str:
    """Return what tells devices and their drivers from others, for keys of the disk cache."""
    return "\n".join(
        f"{info.uuid.hex() if info.uuid else ''} {info.device_name} {info.driver_version}" for info in devices
    )


def by_preference(devices: Sequence[DeviceInfo]) -> list[int]:
    """Return the positions of the usable devices: discrete, integrated, virtual, other, then CPU."""
    usable = [index for index, device in enumerate(devices) if not device.missing]
    return sorted(usable, key=lambda index: _TYPE_ORDER.get(devices[index].device_type, 3))


# ---- Reasons why the Vulkan loader found no driver: faults in its environment variables ------------------


# VK_DRIVER_FILES takes precedence over VK_ICD_FILENAMES, the only one that old loaders know. Both replace
# the installed drivers; the last variable adds to them.
# A context on llvmpipe takes 0.8 GiB, and 70 MiB more for each core: malloc reserves it for threads.
_ADDRESS_SPACE = 1 << 30
_ADDRESS_SPACE_PER_CORE = 64 << 20
_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES")
_FILTERS = ("VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE")
_ENTRY_POINTS = (
    "vk_icdGetInstanceProcAddr",
    "vk_icdNegotiateLoaderICDInterfaceVersion",
    "vkGetInstanceProcAddr",
)


def explain_variables() -> str:
    """Return what is wrong with the manifests that the loader's variables name, and how to fix it.

    The text starts with a space; it is empty if no variable is set. The libraries of the manifests are
    loaded, which the loader has done before.
    """
    faults = {name: list(_find_faults(os.environ.get(name, ""))) for name in _VARIABLES}
    said = [f"{name}: {fault}" for name in _VARIABLES for fault in faults[name]]
    if said:
        wrong = " and ".join(name for name in _VARIABLES if faults[name])
        hint = "Name a driver's manifest, such as one of /usr/share/vulkan/icd.d"
        return f" {'. '.join(said)}. {hint}, or unset {wrong}."
    named = [f"{name}={os.environ[name]!r}" for name in (*_VARIABLES, *_FILTERS) if os.environ.get(name)]
    if named:
        return f" {' and '.join(named)} may hide the drivers that are installed."
    return ""


def explain_short_memory() -> str:
    """Return that a limit leaves too little address space for a Vulkan driver, or an empty text.

    Drivers that cannot start a thread or map memory crash or wait forever, so nobody should load one then.
    """
    try:
        import resource
    except ImportError:  # there is none on Windows
        return ""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        used = 0
    needed = _ADDRESS_SPACE + (os.cpu_count() or 1) * _ADDRESS_SPACE_PER_CORE
    if limit - used >= needed:
        return ""
    return (
        f"the limit of {limit >> 20} MiB of address space (ulimit -v) leaves "
        f"{max(limit - used, 0) >> 20} MiB, and a driver needs about {needed >> 20} MiB"
    )


def _find_faults(value: str) -> Iterator[str]:
    for path in filter(None, value.split(os.pathsep)):
        import glob

        manifests = glob.glob(os.path.join(glob.escape(path), "*.json")) if os.path.isdir(path) else [path]
        if not manifests:
            yield f"the folder {path!r} holds no manifest (*.json)"
        for manifest in sorted(manifests):
            fault = find_fault(manifest)
            if fault:
                yield f"{manifest!r} {fault}"


def find_fault(manifest: str) -> str | None:
    """Return what is wrong with the manifest of a driver, or None. Its library is loaded."""
    import ctypes  # imported here, with others, as only a fault needs them
    import json

    try:
        with open(manifest, "rb") as file:
            content = json.load(file)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except ValueError:
        return "is not JSON"
    try:
        library = content["ICD"]["library_path"]
    except (KeyError, TypeError):
        library = None
    if not isinstance(library, str):
        return "is no driver's manifest: it has no ICD.library_path"
    # A name without a slash is searched for like any library.
    place = os.path.join(os.path.dirname(os.path.abspath(manifest)), library) if "/" in library else library
    try:
        loaded = ctypes.CDLL(place)
    except OSError as error:
        return f"names a library that cannot be loaded ({error})"
    if not any(hasattr(loaded, name) for name in _ENTRY_POINTS):
        return f"names the library {library!r}, which is no Vulkan driver"
    return None


# ---- The device of the dummy backend, which describes a GPU and runs nothing -----------------------------


MAX_WORKGROUP_COUNT = 65535
_ALL_STAGES = 0x7FFFFFFF
_ALL_OPERATIONS = 0xFF
_DUMMY_FEATURES = (
    *("shader_buffer_float32_atomics", "shader_buffer_float32_atomic_add", "float_64_support"),
    *("float_16_support", "int_64_support", "int_16_support", "storage_buffer_8_bit_access"),
    *("storage_buffer_16_bit_access", "uniform_and_storage_buffer_16_bit_access", "storage_push_constant_16"),
    *(
        "storage_input_output_16",
        "quad_operations_in_all_stages",
        "scalar_block_layout",
        "timeline_semaphores",
    ),
)


def dummy_device() -> DeviceInfo:
    """Return a discrete GPU with all features and common limits."""
    return DeviceInfo(
        dev_index=0,
        version_variant=0,
        version_major=1,
        version_minor=2,
        version_patch=0,
        driver_version=1,
        vendor_id=0,
        device_id=0,
        device_type=2,
        device_name="Dummy Device",
        max_workgroup_size=(1024, 1024, 64),
        max_workgroup_invocations=1024,
        max_workgroup_count=(MAX_WORKGROUP_COUNT,) * 3,
        max_bound_descriptor_sets=8,
        max_push_constant_size=256,
        max_storage_buffer_range=(1 << 31) - 1,
        max_uniform_buffer_range=65536,
        uniform_buffer_alignment=256,
        sub_group_size=32,
        supported_stages=_ALL_STAGES,
        supported_operations=_ALL_OPERATIONS,
        max_compute_shared_memory_size=65536,
        queue_properties=[(8, 0x6), (4, 0x7)],
        sorted_index=0,
        **dict.fromkeys(_DUMMY_FEATURES, 1),  # type: ignore[arg-type]
    )
