# VkFFT: plans a transform as plain data, see libs/vkfft.hpp.

cdef bytes _to_bytes(const vector[byte]& contents):
    return (<const char*>contents.data())[: contents.size()] if contents.size() else b""


cdef tuple _fft_passes(const vector[CppFftPass]& passes):
    cdef size_t i, j
    found = []
    for i in range(passes.size()):
        numbers = tuple([passes[i].buffers[j] for j in range(passes[i].buffers.size())])
        groups = (fft_groups(passes[i], 0), fft_groups(passes[i], 1), fft_groups(passes[i], 2))
        found.append((passes[i].kernel, numbers, _to_bytes(passes[i].push_constants), groups))
    return tuple(found)


cdef tuple _fft_kernels(const CppFftProgram& program):
    cdef size_t i
    return tuple([(program.kernels[i].source.decode("utf-8", "replace"), program.kernels[i].binding_count,
                   program.kernels[i].push_constant_size) for i in range(program.kernels.size())])


cdef tuple _fft_buffers(const CppFftProgram& program):
    cdef size_t i
    return tuple([(program.buffers[i].size, _to_bytes(program.buffers[i].contents))
                  for i in range(program.buffers.size())])


cdef cbool _run_fft(void* context, CppFftProgram* program) noexcept with gil:
    cdef list state = <list>context  # the caller's function, and the exception it raises
    cdef size_t i
    cdef bytes contents
    try:
        results = state[0](_fft_kernels(program[0]), _fft_buffers(program[0]), _fft_passes(program.forward))
        if len(results) != program.buffers.size():
            raise ValueError(f"run: expected the contents of {program.buffers.size()} buffers, got {len(results)}")
        for i in range(program.buffers.size()):
            contents = results[i]
            if <uint64_t>len(contents) != program.buffers[i].size:
                raise ValueError(f"run: buffer {i} has {program.buffers[i].size} bytes, got {len(contents)}")
            program.buffers[i].contents.resize(len(contents))
            memcpy(program.buffers[i].contents.data(), <const char*>contents, len(contents))
    except BaseException as error:
        state.append(error)
        return False
    return True


def plan_fft(tuple device not None, axes not None, dict options not None, run not None):
    cdef CppFftRequest request
    cdef CppFftDevice limits
    cdef CppFftProgram program
    cdef uint32_t axis
    cdef list state = [run]
    options = dict(options)
    vendor, invocations, shared, counts, sizes = device
    limits.vendor, limits.most_invocations, limits.shared_memory = vendor, invocations, shared
    for axis in range(3):
        set_fft_groups(limits, axis, counts[axis], sizes[axis])
    if not 1 <= len(axes) <= FFT_AXES:
        raise ValueError(f"axes: expected 1 to {FFT_AXES}, got {len(axes)}")
    request.axes = len(axes)
    for axis in range(request.axes):
        size, omitted, padding, stride = axes[axis]
        if size < 1:
            raise ValueError(f"axes: expected positive sizes, got {size}")
        left, right = padding or (0, 0)
        set_fft_axis(request, axis, size, omitted, padding is not None, left, right, stride)
    request.batches = options.pop("batches", 1)
    request.precision = options.pop("precision", 1)
    request.real = options.pop("real", False)
    request.normalize = options.pop("normalize", False)
    request.forward = options.pop("forward", True)
    request.inverse = options.pop("inverse", True)
    request.pad_frequency = options.pop("pad_frequency", False)
    request.buffer_size = options.pop("buffer_size")
    request.input_size = options.pop("input_size", 0)
    request.kernel_size = options.pop("kernel_size", 0)
    request.features = options.pop("features", 0)
    request.conjugate = options.pop("conjugate", False)
    if options:
        raise ValueError(f"options: unknown {sorted(options)}")
    try:
        with nogil:
            program = plan_fft_with(request, limits, _run_fft, <void*>state)
    except BaseException:
        if len(state) > 1:
            raise state[1]
        raise
    return (_fft_kernels(program), _fft_buffers(program), _fft_passes(program.forward), _fft_passes(program.inverse))


def vkfft_version():
    number = cpp_vkfft_version()
    return (number // 10000, number // 100 % 100, number % 100)
