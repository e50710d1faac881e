"""The values that calls give: checked against the parameters, and flattened to one for each slot."""

import itertools
import threading
from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer, cached_buffer, renew_contents
from vkdispatch.base.context import Context, Handle, wrong_context
from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError, UsageError
from vkdispatch.base.image import Image, Sampler
from vkdispatch.base.memory.data import pack, parse_dtype, plain_scalar
from vkdispatch.base.record import record, replace
from vkdispatch.codegen.annotations import is_buffer
from vkdispatch.codegen.constant_arrays import ConstantArray
from vkdispatch.compiler.ir.location import warn
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.recordable import BoundVariable
from vkdispatch.shader import signature

# ---- The values of a call: checked against the parameters, and flattened to one for each slot ------------


@record
class CheckedCall:
    """The values of a call, ready for a launcher.

    Attributes
    ----------
    slots
        One value for each slot; zero for a bound variable.
    resources
        The buffers, images and samplers among them.
    variables
        The slots that each bound variable fills, by name.
    is_mixed
        Whether the kernel writes to memory that it gets as elements of two dtypes.
    views
        The buffers whose components the kernel takes one by one, and their slots.
    """

    slots: tuple[Any, ...]
    resources: tuple[Handle, ...]
    variables: dict[str, list[signature.ValueSlot]]
    is_mixed: bool = False
    views: tuple[tuple[signature.BufferSlot, Buffer[Any]], ...] = ()

    def check_count(self, who: str, count: int) -> None:
        """Warn if a launch counts the complex numbers of an RFFTBuffer that the kernel takes as reals."""
        for slot, buffer in self.views:
            if count == buffer.size and _is_rows_of(slot.kind, buffer):
                _warn_of_words(f"{who}: {slot.label}", slot.kind, buffer)


def check_values(
    who: str,
    parameters: Sequence[signature.Parameter],
    values: Sequence[Any],
    context: Context,
    graph: CommandGraph | None,
) -> CheckedCall:
    """Check every value of a call and flatten them to one per slot.

    Parameters
    ----------
    who
        What messages call the kernel.
    context
        The context that the kernel runs in.
    graph
        The graph that records the call, or None for a launch now.

    Raises
    ------
    TypeError
        A value is of the wrong kind.
    ValueError
        A value has the wrong shape or does not fit, or a bound variable is not allowed.
    RuntimeError
        A buffer was destroyed.
    """
    slots: list[Any] = []
    resources: list[Handle] = []
    variables: dict[str, list[signature.ValueSlot]] = {}
    views: list[tuple[signature.BufferSlot, Buffer[Any]]] = []
    for parameter, value in zip(parameters, values, strict=True):
        for slot, part in signature.split_value(who, parameter, value):
            if isinstance(slot, signature.BufferSlot):
                slots.append(_parse_buffer(who, slot, part, context))
                resources.append(slots[-1])
                if slots[-1] is not part:
                    views.append((slot, part))
            elif isinstance(slot, signature.ImageSlot):
                slots.append(_parse_image(who, slot, part, context))
                resources.append(part)
            elif isinstance(part, BoundVariable):
                _check_variable(who, parameter, part, graph)
                variables.setdefault(part.name, []).append(slot)
                slots.append(signature.make_zero(slot.kind))
            else:
                slots.append(parse_number(who, slot, part, parameter.variable))
    is_mixed = check_apart(who, [slot for parameter in parameters for slot in parameter.slots], slots)
    return CheckedCall(tuple(slots), tuple(resources), variables, is_mixed, tuple(views))


def check_apart(who: str, slots: Sequence[signature.Slot], values: Sequence[Any]) -> bool:
    """Return whether a kernel writes to memory that it gets twice, as elements of two dtypes.

    Raises ValueError if their components differ, as kernels assume these to be apart.
    """
    is_mixed = False
    typed = [
        (slot, value._native)
        for slot, value in zip(slots, values, strict=True)
        if isinstance(slot, signature.BufferSlot) and slot.kind is not None and isinstance(value, Buffer)
    ]
    for (first, memory), (second, other) in itertools.combinations(typed, 2):
        if first.kind is second.kind or not (first.writes or second.writes) or not memory.overlaps(other):
            continue
        assert first.kind is not None and second.kind is not None
        is_mixed = True
        if dt.memory_type(first.kind) is not dt.memory_type(second.kind):
            raise ArgumentValueError(
                f"{who}: {first.label} and {second.label} share memory, as {first.kind.name} and as "
                f"{second.kind.name}, and the kernel writes to it; convert in the kernel, or pass a copy"
            )
    return is_mixed


def _parse_buffer(who: str, slot: signature.BufferSlot, value: Any, context: Context) -> Buffer[Any]:
    if not isinstance(value, Buffer):
        # A ValueError by contract, and also a TypeError.
        raise WrongBufferError(
            f"{who}: {slot.label}: expected a vd.Buffer, got {signature.describe(value)}; make one with "
            "vd.asbuffer(...)"
        )
    _check_usable(f"{who}: {slot.label}: the buffer", value, context)
    if slot.planar and (value.shader_shape[2] != 1 or len(value.shape) > 3):
        raise ArgumentValueError(
            f"{who}: {slot.label}: the kernel indexes it by two axes, the buffer has the shape {value.shape}"
        )
    buffer = take_elements(f"{who}: {slot.label}", slot.kind, value)
    if buffer.mem_size < slot.least_bytes:
        what = "the uniform block" if slot.uniform else "what precedes the last array of the block"
        raise ArgumentValueError(
            f"{who}: {slot.label}: the buffer has {buffer.mem_size} bytes, {what} in the code takes "
            f"{slot.least_bytes}"
        )
    if slot.writes:
        try:
            buffer._native.settle()  # launchers refuse to write what an expression waits to read
        except ArgumentValueError as error:
            raise ArgumentValueError(f"{who}: {slot.label}: {error}") from None
    return buffer


def take_elements(label: str, wanted: DType | None, buffer: Buffer[Any]) -> Buffer[Any]:
    """Return a buffer with the elements that a kernel takes, perhaps a view.

    Programs for vkdispatch 0.1.0 also take components one by one, rows of reals above all.

    Raises
    ------
    WrongBufferError
        The elements have neither the dtype `wanted` nor such components.
    """
    kind = buffer.var_type
    if wanted is None or not _are_words(wanted, kind):
        check_element(label, wanted, kind)
        return buffer
    if not _is_rows_of(wanted, buffer):
        _warn_of_words(label, wanted, buffer)
    return buffer._as_words(wanted)


def _is_rows_of(wanted: DType | None, buffer: Buffer[Any]) -> bool:
    """Whether a buffer is an RFFTBuffer, with rows of reals of the dtype `wanted`."""
    return wanted is not None and getattr(buffer, "real_type", None) is wanted


def _warn_of_words(label: str, wanted: DType | None, buffer: Buffer[Any]) -> None:
    assert wanted is not None
    kind = buffer.var_type.name
    warn(
        f"{label}: the kernel takes components of {kind} one by one, as {wanted.name}, while the buffer's "
        f"size and shape count {kind}; if that is meant, pass .view(vd.{wanted.__name__})"
    )


def check_element(label: str, wanted: DType | None, kind: DType) -> None:
    """Raise WrongBufferError if a buffer's elements do not have the dtype that a kernel takes.

    A complex type and the vector of its two components are the same in memory, and interchangeable.
    """
    if wanted is None or kind is wanted or kind is dt.pair_twin(wanted):
        return
    hint = ""
    if not (is_structure(wanted) or is_structure(kind)):
        hint = f"; convert data by vd.asbuffer(data, vd.{wanted.__name__})"
        if dt.is_scalar(wanted) and dt.is_scalar(kind):
            hint += f", an Array by x.astype(vnp.{wanted.__name__})"
        sizes = [dt.component_type(dtype).item_size for dtype in (wanted, kind)]
        if sizes[0] == sizes[1]:  # others would give numbers that mean nothing
            hint += f", or reinterpret the memory by .view(vd.{wanted.__name__})"
    raise WrongBufferError(f"{label}: expected elements of {wanted.name}, the buffer has {kind.name}{hint}")


def _are_words(wanted: DType, kind: DType) -> bool:
    """Whether `wanted` is the type of the components of `kind`, or an integer of their size."""
    if is_structure(wanted) or is_structure(kind) or dt.is_scalar(kind) or not dt.is_scalar(wanted):
        return False
    part = dt.component_type(kind)
    fits = wanted is part or (dt.is_integer_dtype(wanted) and wanted.item_size == part.item_size)
    return fits and kind.item_size == dt.component_count(kind) * part.item_size


def _check_usable(what: str, value: Handle, context: Context) -> None:
    if value.context is not context:
        raise wrong_context(what, value.context)
    if value.destroyed:
        raise UsageError(f"{what} was destroyed")


def _parse_image(who: str, slot: signature.ImageSlot, value: Any, context: Context) -> Image | Sampler:
    where = f"{who}: {slot.label}"
    image = check_image(who, slot, value)
    if isinstance(value, Sampler):
        _check_usable(f"{where}: the sampler", value, context)
    _check_usable(f"{where}: the image", image, context)
    if slot.image.storage and not image.is_storable:
        raise UnsupportedError(f"{where}: the device cannot store to {image!r}")
    return image if slot.image.storage else value


def check_image(who: str, slot: signature.ImageSlot, value: Any) -> Image:
    """Return the image of an argument. Raises TypeError or ValueError if it does not fit."""
    where = f"{who}: {slot.label}"
    if slot.image.storage:
        if not isinstance(value, Image):
            hint = "; pass the image itself, not a sampler" if isinstance(value, Sampler) else ""
            raise WrongBufferError(f"{where}: expected a vd.Image, got {signature.describe(value)}{hint}")
        image = value
    else:
        if not isinstance(value, Sampler):
            hint = "; call .sample() of the image" if isinstance(value, Image) else ""
            raise WrongBufferError(f"{where}: expected a vd.Sampler, got {signature.describe(value)}{hint}")
        image = value.image
    if image.view_type is not slot.view_type:
        raise ArgumentValueError(
            f"{where}: the kernel declares an image of {slot.view_type.name}, this one is of "
            f"{image.view_type.name}"
        )
    wanted = slot.image.dtype
    scalar, channels = dt.component_type(wanted), dt.component_count(wanted)
    if image.dtype is not scalar:
        raise ArgumentValueError(
            f"{where}: the kernel declares texels of {scalar.name}, this image has {image.dtype.name}; "
            "annotation and image must agree"
        )
    if slot.image.storage and image.channels != channels:
        raise ArgumentValueError(
            f"{where}: the kernel declares texels of {wanted.name}, {channels} channels, this image has "
            f"{image.channels}"
        )
    return image


class WrongBufferError(ArgumentValueError, TypeError):
    """An argument is not the buffer, image or sampler that a kernel needs."""


def _check_variable(
    who: str, parameter: signature.Parameter, value: BoundVariable, graph: CommandGraph | None
) -> None:
    where = f"{who}: argument {parameter.name!r}"
    if not parameter.variable:
        raise ArgumentValueError(
            f"{where}: bind_var needs a Var[...] argument; this one is fixed when recorded"
        )
    if graph is None or graph.submit_on_record:
        raise ArgumentValueError(
            f"{where}: bind_var needs graph=, a CommandGraph that does not submit on record"
        )
    if value.graph is not graph:
        raise ArgumentValueError(f"{where}: {value!r} was bound by another graph")


def parse_number(who: str, slot: signature.ValueSlot, value: Any, variable: bool = False) -> Any:
    """Return a host value in the form that launchers take. Raises TypeError or ValueError if it does not fit.

    `variable` says whether the argument could be a bound variable of a graph.
    """
    label = f"{who}: {slot.label}"
    if variable and isinstance(value, str):
        raise ArgumentTypeError(
            f"{label}: expected a value of {slot.kind.name}, got {signature.describe(value)}; a variable "
            f"of a graph is graph.bind_var({value!r})"
        )
    if callable(value) and not hasattr(value, "__array__"):
        raise ArgumentValueError(
            f"{label}: expected a value of {slot.kind.name}, got {signature.describe(value)}"
        )
    if slot.scalar_code is not None:
        return plain_scalar(slot.kind, value, label)
    pack(slot.kind, value, label)
    return value


# ---- Annotations of the parameters of maps ---------------------------------------------------------------


# The names that annotations are usually written with.
_SHORT = {"Buffer": "Buff", "Constant": "Const", "Variable": "Var"}


def format_annotation(annotation: Any) -> str:
    """Return an annotation as text, such as "Buff[f32]"."""
    if signature.is_value(annotation):
        return str(annotation.name)
    inner = ", ".join(format_annotation(argument) for argument in getattr(annotation, "__args__", ()))
    origin = getattr(annotation, "__origin__", annotation)
    is_ours = origin.__module__.startswith("vkdispatch.codegen")
    name = _SHORT.get(origin.__name__, origin.__name__) if is_ours else origin.__name__
    return f"{name}[{inner}]" if inner else name


def parse_elements(label: str, annotation: Any, argument: Any) -> Any:
    """Return the argument of a parameter; for `Buff[...]` a buffer as `take_elements` does."""
    if isinstance(argument, Buffer) and is_buffer(annotation):
        return take_elements(label, parse_dtype(annotation.__args__[0]), argument)
    return argument


def check_elements(label: str, annotation: Any, argument: Any) -> None:
    """Raise WrongBufferError where a parameter annotated `Buff[...]` gets a buffer of another dtype."""
    if isinstance(argument, Buffer) and is_buffer(annotation):
        check_element(label, parse_dtype(annotation.__args__[0]), argument.var_type)


# ---- The constant arrays of kernels in device memory -----------------------------------------------------
#
# One copy in each context, which all kernels share.


# Launchers and recordings hold the buffers that they use, which may outlive the arrays.
_lock = threading.Lock()


def upload_constants(constants: Sequence[ConstantArray], context: Context) -> tuple[Buffer[Any], ...]:
    """Return the buffers of constant arrays; make and write those that do not exist yet. Thread-safe.

    Raises
    ------
    MemoryError
        The device is out of memory.
    """
    return tuple(_upload(constant, context) for constant in constants)


def _upload(constant: ConstantArray, context: Context) -> Buffer[Any]:
    with _lock:
        known: Buffer[Any] | None = context._states.get(constant)
        if known is not None and not known.destroyed:
            renew_contents(known)
            return known
        array = constant.array  # the buffer must not refer to the constant, its key
        buffer = cached_buffer(constant.shape, constant.var_type, lambda: array, context)
        context._states[constant] = buffer
        return buffer


def add_constants(call: CheckedCall, constants: Sequence[ConstantArray], context: Context) -> CheckedCall:
    """Append a kernel's constant arrays to the arguments of a call."""
    if not constants:
        return call
    buffers = upload_constants(constants, context)
    return replace(call, slots=(*call.slots, *buffers), resources=(*call.resources, *buffers))
