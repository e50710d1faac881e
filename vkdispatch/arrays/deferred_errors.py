"""What kernels of functions on arrays do about errors: see `base.kernel_errors`."""

import vkdispatch.codegen as vc
from vkdispatch.base.buffers.kernel_errors import NOTES
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import int64, uint32, uint64
from vkdispatch.shader.observation import parse_check


def raise_if_checked(context: Context) -> None:
    """Wait for the device and raise errors, if checks are on (VKDISPATCH_CHECK)."""
    if parse_check(None):
        context._native.wait_idle()


def note_error(
    journal: vc.BufferVariable,
    ticket: vc.ShaderVariable,
    place: vc.ShaderVariable,
    values: list[vc.ShaderVariable],
) -> None:
    """Note, in a kernel being traced, a wrong place with up to three integers in registers."""
    position = place.to_dtype(uint32).to_register()
    with vc.if_block(position < journal[ticket]):
        before = vc.atomic_min(journal[ticket], position).to_register()
        # the first place counts, whose note is written last
        with vc.if_block(position < before):
            number = vc.atomic_add(journal[0], 1).to_register()
            at = ((number & (len(NOTES) - 1)) * NOTES.step + NOTES.start).to_register()
            journal[at] = ticket
            journal[at + 1] = position
            for index, value in enumerate(values):
                journal[at + 2 + 2 * index] = value.to_dtype(uint32)
                if value.var_type in (int64, uint64):
                    journal[at + 3 + 2 * index] = (value >> 32).to_dtype(uint32)
