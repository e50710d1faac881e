"""The options of a call."""

from collections.abc import Sequence

from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.arguments.norms import Norm
from vkdispatch.fft.arguments.shapes import SignalRange
from vkdispatch.shader.map import MappingFunction


@record(eq=False)
class Options:
    """The options of a transform or convolution, as the caller passed them; see `vkdispatch.fft.fft`.

    Attributes
    ----------
    graph, print_shader
        Where to record, and whether to print the kernels.
    input_map, output_map
        Maps that read and write.
    input_type, output_type, compute_type
        Complex types of the buffers and of the computation.
    buffer_shape, axis
        Shape of the data and the transformed axis; None: the buffer's, and the last one.
    inverse, normalize, norm
        Direction and normalization. `norm` overrides `normalize`.
    r2c
        Whether the buffer is an RFFTBuffer.
    signal_range
        Start and end of the values that are read.
    """

    graph: CommandGraph | None = None
    print_shader: bool = False
    input_map: MappingFunction | None = None
    output_map: MappingFunction | None = None
    input_type: DType | None = None
    output_type: DType | None = None
    compute_type: DType | None = None
    buffer_shape: int | Sequence[int] | None = None
    axis: int | None = None
    inverse: bool = False
    normalize: bool = True
    norm: Norm | None = None
    r2c: bool = False
    signal_range: SignalRange | None = None
