"""Calls of the interpreter: the values of a call, with NumPy arrays in place of buffers and images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.derived_dtypes import Structure, as_structure, is_structure, leaves_of, strides_along
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.image import Image, Sampler
from vkdispatch.base.memory.data import component_dtype, from_bfloat16, pack, to_bfloat16
from vkdispatch.base.memory.images import Filter, HostSampler, SamplerSettings, host_dtype, mip_chain
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.compiler.interpreter.execution import run_kernel
from vkdispatch.compiler.interpreter.memory import (
    Array,
    Cells,
    Coder,
    Sampling,
    Texels,
    make_uniform,
    value_shape,
)
from vkdispatch.compiler.interpreter.program import Checks, Memory
from vkdispatch.compiler.ir import ImageBinding, Storage
from vkdispatch.compiler.passes.diagnostics import parse_checks
from vkdispatch.execution_pipeline.recordable import BoundVariable
from vkdispatch.shader.arguments import (
    WrongBufferError,
    check_apart,
    check_image,
    parse_number,
    take_elements,
)
from vkdispatch.shader.signature import BufferSlot, ImageSlot, Parameter, ValueSlot, describe, split_value
from vkdispatch.shader.size import Extent

# ---- Images for the interpreter: from the argument of a call to texels that are read and written ---------


_MAX_CHANNELS = 4
# By half the number of a `BorderColor`: floats and integers have the same colors.
_BORDERS = ((0, 0, 0, 0), (0, 0, 0, 1), (1, 1, 1, 1))


@dataclass(frozen=True, eq=False)
class HostImage:
    """An image without a device; launch sizes such as "(out.shape[1], out.shape[0])" see this.

    Attributes
    ----------
    shape
        Texels along each axis, the number of layers in front when there are several.
    dtype, channels, layers
        As of a `vd.Image`.
    extent
        Width, height and depth.
    texels
        The texels that the interpreter accesses.
    given
        The argument of the caller.
    whole
        Level 0, in the shape of the argument.
    """

    shape: tuple[int, ...]
    dtype: dt.DType
    channels: int
    layers: int
    extent: tuple[int, int, int]
    texels: Texels
    given: Any
    whole: Array

    @property
    def image(self) -> "HostImage":
        """The image itself, as of a sampler."""
        return self

    def write_back(self) -> None:
        """Write the texels of a storage image back to the argument, if `whole` is a copy."""
        if isinstance(self.given, Image):
            self.given.write(self.whole)
        elif self.whole is not self.given:
            self.given[...] = self.whole


def make_host_image(who: str, slot: ImageSlot, value: Any) -> HostImage:
    """Return a caller's NumPy array, `vd.HostSampler`, `vd.Image` or `vd.Sampler` as an image.

    Raises
    ------
    TypeError, ValueError
        It is none of these, or does not fit the declaration in the kernel.
    RuntimeError
        The image was destroyed.
    """
    label, binding = f"{who}: {slot.label}", slot.image
    if isinstance(value, (Image, Sampler)):
        image = check_image(who, slot, value)
        for handle in (value, image):
            if handle.destroyed:
                raise UsageError(f"{label}: the image was destroyed")
        settings = value.settings if isinstance(value, Sampler) else None
        levels = [image.read(level=level) for level in range(1 if settings is None else image.mip_levels)]
        levels[0] = levels[0] if levels[0].flags.writeable else levels[0].copy()
        shape = (image.layers, *image.shape[-binding.dimensions :], image.channels)
        parts = [_split_axes(level, image.layers, binding.dimensions, image.channels) for level in levels]
        return _make_host_image(slot, shape, parts, settings, image, levels[0])
    if isinstance(value, HostSampler) and not binding.storage:
        return _sample_host_image(label, slot, value)
    if not isinstance(value, np.ndarray):
        or_else = "vd.Image" if binding.storage else "vd.HostSampler or vd.Sampler"
        raise WrongBufferError(f"{label}: expected a NumPy array or a {or_else}, got {describe(value)}")
    if not binding.storage:
        _check_dtype(label, binding, value)
        return _sample_host_image(label, slot, HostSampler(value))
    shape = _find_shape(label, binding, value)
    _check_array(label, value, slot.writes)
    whole = value if value.flags.c_contiguous else value.copy()
    return _make_host_image(slot, shape, [whole.reshape(shape)], None, value, whole)


def _sample_host_image(label: str, slot: ImageSlot, sampler: HostSampler) -> HostImage:
    shape = _find_shape(label, slot.image, sampler.data)
    first = np.ascontiguousarray(sampler.data).reshape(shape)
    levels = [first]
    if sampler.enable_mipmaps:
        levels += mip_chain(first, tuple(range(1, len(shape) - 1)))
    return _make_host_image(slot, shape, levels, sampler.settings, sampler, first)


def _split_axes(level: Array, layers: int, dimensions: int, channels: int) -> Array:
    sizes = level.shape[1:] if layers > 1 else level.shape
    return level.reshape(layers, *sizes[:dimensions], channels)


def _check_dtype(label: str, binding: ImageBinding, array: Array) -> None:
    scalar = dt.component_type(binding.dtype)
    if array.dtype != host_dtype(scalar):
        raise ArgumentValueError(
            f"{label}: the kernel declares texels of {scalar.name}, the array is of {array.dtype}"
        )


def _find_shape(label: str, binding: ImageBinding, array: Array) -> tuple[int, ...]:
    """Return (layers, axes..., channels) of an array."""
    _check_dtype(label, binding, array)
    axes = "(layers, height, width)" if binding.arrayed else f"{binding.dimensions} axes"
    shape, rank = array.shape, binding.coordinates
    if len(shape) not in (rank, rank + 1) or not all(shape):
        raise ArgumentValueError(
            f"{label}: expected an array of {axes}, and one for the channels if there are several; "
            f"got one of shape {shape}"
        )
    channels = shape[rank] if len(shape) > rank else 1
    wanted = dt.component_count(binding.dtype) if binding.storage else channels
    if channels != wanted or channels > _MAX_CHANNELS:
        declared = f"{wanted} channels ({binding.dtype.name})" if binding.storage else "one to four channels"
        raise ArgumentValueError(f"{label}: expected {declared}, the array of shape {shape} has {channels}")
    return (*(() if binding.arrayed else (1,)), *shape[:rank], channels)


def _make_host_image(
    slot: ImageSlot,
    shape: tuple[int, ...],
    levels: list[Array],
    settings: SamplerSettings | None,
    value: Any,
    whole: Array,
) -> HostImage:
    binding = slot.image
    what = f"image {binding.label!r}"
    cells = None
    if binding.storage:
        rows = levels[0].reshape(-1, *value_shape(binding.dtype))
        cells = Cells(what, rows, None, len(rows))
    sampling = None if settings is None else _make_sampling(settings)
    texels = Texels(what, tuple(levels), binding.arrayed, sampling, cells)
    layers, *sizes, channels = shape
    width, height, depth = (*reversed(sizes), 1, 1)[:3]
    return HostImage(
        (layers, *sizes) if layers > 1 else tuple(sizes),
        dt.component_type(binding.dtype),
        channels,
        layers,
        (width, height, depth),
        texels,
        value,
        whole,
    )


def _make_sampling(settings: SamplerSettings) -> Sampling:
    return Sampling(
        settings.mag_filter is Filter.LINEAR,
        settings.min_filter is Filter.LINEAR,
        settings.mip_filter is Filter.LINEAR,
        settings.address_mode.name,
        settings.mip_lod_bias,
        settings.min_lod,
        settings.max_lod,
        _BORDERS[settings.border_color.value // 2],
    )


# ---- Calls of the interpreter: the values of a call, with NumPy arrays in place of buffers ---------------


_MAX_AXES = 3
_ROUNDS = 1_000_000
# Types of memory that kernels do not compute with: functions that load and store them.
_CODERS: dict[dt.DType, tuple[Coder, Coder]] = {
    dt.int8: (lambda value: value.astype(np.int32), lambda value: value.astype(np.int8)),
    dt.uint8: (lambda value: value.astype(np.uint32), lambda value: value.astype(np.uint8)),
    dt.bfloat16: (from_bfloat16, to_bfloat16),
}
# Devices compare invocation ids with 32 bits.
_LARGEST = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class HostBuffer:
    """A NumPy array as the elements of a buffer; launch sizes such as "data.size" see this.

    Attributes
    ----------
    shape
        Elements along each axis, without the axes of the components of an element.
    var_type
        dtype of an element.
    given
        The argument of the caller, an array or buffer.
    data
        Its components, one row for each element: a view of the caller's array if possible.
    whole
        The array that `data` views.
    """

    shape: tuple[int, ...]
    var_type: dt.DType
    given: Any
    data: Array
    whole: Array

    @property
    def size(self) -> int:
        """Count of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def write_back(self) -> None:
        """Write `data` back to the argument, if it is a copy."""
        if isinstance(self.given, Buffer):
            self.given.write(self.whole.data)
        elif self.whole is not self.given:
            self.given[...] = self.whole


def make_host_resources(
    who: str, description: ShaderDescription, parameters: Sequence[Parameter], values: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the values of a call with a `HostBuffer` for each buffer and a `HostImage` for each image.

    Raises
    ------
    ValueError
        The argument for a buffer or image is not an array of its dtype, has the wrong axes, or is
        read-only.
    """
    kinds = {
        resource.index: resource.dtype
        for resource in description.kernel.resources
        if isinstance(resource, Storage)
    }
    base = description.resource_binding_base
    resources: list[Any] = []
    # Two arguments, perhaps views, may be the same memory.
    read: dict[int, Array] = {}
    check_apart(who, [slot for parameter in parameters for slot in parameter.slots[:1]], values)
    for parameter, value in zip(parameters, values, strict=True):
        slot = parameter.slots[0] if parameter.slots else None
        if isinstance(value, (Buffer, Image, Sampler)) and value.context.queue_count > 1:
            raise ArgumentValueError(
                f"{who}: argument {parameter.name!r}: it has {value.context.queue_count} copies, and the "
                "interpreter takes one; pass an array, such as read(0)"
            )
        if isinstance(slot, BufferSlot):
            kind = kinds[slot.binding - base]
            label, host = f"{who}: {slot.label}", slot.kind or kind
            buffer = _make_host_buffer(label, kind, host, value, slot.writes, read)
            if isinstance(value, Buffer):
                take_elements(f"{who}: {slot.label}", slot.kind, value)
            axes = value.shape if isinstance(value, Buffer) else buffer.shape
            if slot.planar and (len(axes) > 3 or (*axes, 1, 1, 1)[2] != 1):
                raise ArgumentValueError(
                    f"{who}: {slot.label}: the kernel indexes it by two axes, "
                    f"the buffer has the shape {tuple(axes)}"
                )
            resources.append(buffer)
        elif isinstance(slot, ImageSlot):
            resources.append(make_host_image(who, slot, value))
        else:
            resources.append(value)
    return tuple(resources)


def parse_host_checks(value: object) -> Checks:
    """Parse the `check` option of a call, as `vd.shader` does. Raises TypeError or ValueError."""
    checks = parse_checks(value)
    return Checks(
        checks.bounds, checks.nan, (checks.rounds or _ROUNDS) if checks.loops else None, checks.asserts
    )


def _make_host_buffer(
    label: str, kind: dt.DType, host: dt.DType, value: Any, written: bool, read: dict[int, Array]
) -> HostBuffer:
    """Return a buffer with elements of `kind`, as the kernel sees them. Arrays have elements of `host`."""
    if isinstance(value, Buffer):
        if value.destroyed:
            raise UsageError(f"{label}: the buffer was destroyed")
        memory = id(value._native)
        if memory not in read:
            read[memory] = _read_bytes(value)
        whole = read[memory]
        return HostBuffer(_shape_in_kernels(value.shape), kind, value, _view_rows(kind, whole), whole)
    if is_structure(kind):
        return _make_host_structures(label, kind, value, written)
    trailing = _find_element_axes(host)
    wanted = (
        np.dtype(dt.to_numpy_dtype(host)) if dt.is_complex(host) and not trailing else component_dtype(host)
    )
    text = f"a NumPy array of {wanted}" + (f" whose last axes are {trailing}" if trailing else "")
    if not isinstance(value, np.ndarray):
        raise WrongBufferError(f"{label}: expected {text}, or a vd.Buffer, got {describe(value)}")
    axes = value.ndim - len(trailing)
    if host is dt.bfloat16 and value.dtype.name == "bfloat16":
        value = value.view(np.uint16)
    if value.dtype != wanted or axes < 0 or value.shape[axes:] != trailing:
        raise WrongBufferError(
            f"{label}: expected {text} for {host.name}, got one of {value.dtype} and shape {value.shape}"
        )
    _check_array(label, value, written)
    whole = value if value.flags.c_contiguous else value.copy()
    return HostBuffer(_shape_in_kernels(value.shape[:axes]), kind, value, _view_rows(kind, whole), whole)


def _shape_in_kernels(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) <= _MAX_AXES else (math.prod(shape),)


def _check_array(label: str, array: Array, written: bool) -> None:
    """Raise ValueError for an array that cannot be written but would be."""
    if written and not array.flags.writeable:
        raise ArgumentValueError(f"{label}: the kernel writes to it, and the array is read-only")


def _make_host_structures(label: str, kind: type[Structure], value: Any, written: bool) -> HostBuffer:
    if not isinstance(value, np.ndarray):
        raise WrongBufferError(
            f"{label}: expected a structured NumPy array, or a vd.Buffer, got {describe(value)}"
        )
    _check_array(label, value, written)
    if value.dtype.names is None:
        raise WrongBufferError(f"{label}: expected an array of {kind.host}, got one of {value.dtype}")
    whole = np.ascontiguousarray(as_structure(kind, value, label))
    return HostBuffer(_shape_in_kernels(value.shape), kind, value, _view_rows(kind, whole), whole)


def _read_bytes(buffer: Buffer[Any]) -> Array:
    """Return the bytes of a buffer. `Buffer.read` would return complex32 and bfloat16 as wider numbers."""
    octets = np.empty(buffer.mem_size, np.uint8)
    buffer._native.read_into(0, octets.data, 0)
    return octets


def _view_rows(kind: dt.DType, whole: Array) -> Array:
    count = whole.nbytes // kind.item_size
    octets = whole.reshape(-1).view(np.uint8)[: count * kind.item_size]
    if is_structure(kind):
        return octets.reshape(count, kind.item_size)
    return octets.view(component_dtype(kind)).reshape(count, *value_shape(kind))


def _make_cells(what: str, buffer: HostBuffer) -> Cells:
    """Describe a buffer's memory, and that of the fields of its elements, for the interpreter."""
    coders = _CODERS.get(buffer.var_type, (None, None))
    cells = Cells(what, buffer.data, buffer.shape, len(buffer.data), *coders)
    if is_structure(buffer.var_type):
        for path, kind, offset in leaves_of(buffer.var_type):
            item, strides = dt.item_of(kind), strides_along(buffer.var_type, path)
            octets = np.lib.stride_tricks.as_strided(
                buffer.data[:, offset:],
                (len(buffer.data), *dt.array_shape(kind), item.item_size),
                (buffer.data.strides[0], *strides, 1),
            )
            rows = octets.view(component_dtype(item)).reshape(*octets.shape[:-1], *value_shape(item))
            cells.fields[path] = Cells(what, rows, buffer.shape, len(rows), *_CODERS.get(item, (None, None)))
    return cells


def _find_element_axes(kind: dt.DType) -> tuple[int, ...]:
    """Return the axes that an element adds to a host array: none for NumPy's complex numbers."""
    if dt.is_complex(kind) and isinstance(dt.to_numpy_dtype(kind), type):
        return ()
    return value_shape(kind)


def interpret_call(
    who: str,
    description: ShaderDescription,
    parameters: Sequence[Parameter],
    values: Sequence[Any],
    extent: Extent,
    *,
    in_groups: bool,
    local_size: Extent,
    **options: Any,
) -> None:
    """Run a kernel on checked values; see `ShaderFunction.interpret`.

    Raises
    ------
    TypeError, ValueError
        A value is of the wrong kind or does not fit.
    """
    kernel = description.asserting or description.kernel
    base = description.resource_binding_base
    groups = extent if in_groups else tuple(-(-n // size) for n, size in zip(extent, local_size, strict=True))
    arguments: dict[str, Array] = {}
    buffers: dict[int, Cells] = {}
    images: dict[int, Texels] = {}
    written: list[HostBuffer | HostImage] = []
    if kernel.exec_count is not None:
        limit = [n * size for n, size in zip(extent, local_size, strict=True)] if in_groups else extent
        arguments[kernel.exec_count.name] = make_uniform([min(n, _LARGEST) for n in limit], dt.uvec3)
    for parameter, value in zip(parameters, values, strict=True):
        for slot, part in split_value(who, parameter, value):
            if isinstance(slot, ValueSlot):
                arguments[slot.member] = _pack_argument(who, slot, part)
                continue
            if slot.writes:
                written.append(part)
            if isinstance(slot, ImageSlot):
                images[slot.binding - base] = part.texels
                continue
            buffers[slot.binding - base] = _make_cells(f"buffer {parameter.name!r}", part)
            if slot.shape_member is not None:
                shape = (*part.shape, 1, 1, 1)[:3]
                arguments[slot.shape_member] = make_uniform(np.array((*shape, part.size)), dt.ivec4)
    try:
        run_kernel(
            who,
            kernel,
            Memory(arguments, buffers, images),
            groups=(groups[0], groups[1], groups[2]),
            local_size=local_size,
            **options,
        )
    finally:
        for resource in written:
            resource.write_back()


def _pack_argument(who: str, slot: ValueSlot, value: Any) -> Array:
    label = f"{who}: {slot.label}"
    if isinstance(value, BoundVariable):
        raise ArgumentValueError(f"{label}: a bound variable has no value here; pass a {slot.kind.name}")
    return make_uniform(
        np.frombuffer(pack(slot.kind, parse_number(who, slot, value), label), component_dtype(slot.kind)),
        slot.kind,
    )
