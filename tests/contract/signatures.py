"""The keyword names of vkdispatch 0.1.0: what each of its public functions, classes and methods takes.

Read off the published package. Left out are those without parameters, and constructors of what only the
package itself makes (GPU values, places in a line of a transform).
"""

import ast
import inspect
from collections.abc import Iterator

# One row each; functions that take the same share one, and indented lines go on. `...` is a default that
# has no literal.
_TABLE = r"""
vd.BackendUnavailableError(backend_name, message)
vd.Buffer(shape, var_type, external_buffer=None)
vd.Buffer.read(index=None)
vd.Buffer.write(data, index=None)
vd.BufferBindInfo(buffer, binding, shape_name, read_access, write_access)
vd.CUDAGraphCapture.add_uniform_buffer(buffer)
vd.CommandGraph(reset_on_submit=False, submit_on_record=False)
vd.CommandGraph.bind_var(name)
vd.CommandGraph.prepare_for_cuda_graph_capture(instance_count=None)
vd.CommandGraph.prepare_submission_state(instance_count)
vd.CommandGraph.record_shader(plan, shader_description, exec_limits, blocks, bound_buffers, bound_samplers,
    uniform_values={}, pc_values={}, shader_uuid=None)
vd.CommandGraph.set_var(name, value)
vd.CommandGraph.submit(instance_count=None, queue_index=-2)
vd.CommandGraph.submit_any(instance_count=None)
vd.DeviceInfo(dev_index, version_variant, version_major, version_minor, version_patch, driver_version,
    vendor_id, device_id, device_type, device_name, shader_buffer_float32_atomics,
    shader_buffer_float32_atomic_add, float_64_support, float_16_support, int_64_support, int_16_support,
    storage_buffer_16_bit_access, uniform_and_storage_buffer_16_bit_access, storage_push_constant_16,
    storage_input_output_16, max_workgroup_size, max_workgroup_invocations, max_workgroup_count,
    max_bound_descriptor_sets, max_push_constant_size, max_storage_buffer_range, max_uniform_buffer_range,
    uniform_buffer_alignment, sub_group_size, supported_stages, supported_operations,
    quad_operations_in_all_stages, max_compute_shared_memory_size, queue_properties, scalar_block_layout,
    timeline_semaphores, uuid)
vd.DeviceInfo.get_info_string(verbose=False)
vd.Image(shape, layers, dtype, channels, view_type, enable_mipmaps=False)
vd.Image.read(device_index=0)
vd.Image.sample(mag_filter=Filter.LINEAR, min_filter=Filter.LINEAR, mip_filter=Filter.LINEAR,
    address_mode=AddressMode.CLAMP_TO_EDGE, mip_lod_bias=0.0, min_lod=0.0, max_lod=0.0,
    border_color=BorderColor.FLOAT_OPAQUE_WHITE)
vd.Image.write(data, device_index=-1)
vd.Image1D(shape, dtype, channels=1, enable_mipmaps=False)
vd.Image2D Image3D(shape, dtype=float32, channels=1, enable_mipmaps=False)
vd.Image2DArray(shape, layers, dtype=float32, channels=1, enable_mipmaps=False)
vd.ImageBindInfo(sampler, binding, read_access, write_access)
vd.MappingFunction(buffer_types, return_type, mapping_function, instance_id=...)
vd.RFFTBuffer(shape, fourier_type=complex64)
vd.RFFTBuffer.read_fourier(index=None)
vd.RFFTBuffer.read_real(index=None)
vd.RFFTBuffer.write_fourier(data, index=None)
vd.RFFTBuffer.write_real(data, index=None)
vd.Sampler(image, mag_filter=Filter.LINEAR, min_filter=Filter.LINEAR, mip_filter=Filter.LINEAR,
    address_mode=AddressMode.CLAMP_TO_EDGE, mip_lod_bias=0.0, min_lod=0.0, max_lod=0.0,
    border_color=BorderColor.FLOAT_OPAQUE_WHITE)
vd.ShaderBuildError(message, *, shader_source, compiler_log=None)
vd.ShaderFunction(shader_description, local_size=None, workgroups=None, exec_count=None)
vd.ShaderFunction.get_src(line_numbers=None, build=True)
vd.ShaderFunction.print_src(line_numbers=None)
vd.ShaderSource(name, code, local_size)
vd.Signal(ptr_addr=None)
vd.Signal.try_wait(wait_for_timestamp, queue_index)
vd.Signal.wait(wait_for_timestamp, queue_index)
vd.asbuffer(array)
vd.asrfftbuffer(data, fourier_type=None)
vd.buffer_c64 buffer_dv2 buffer_dv3 buffer_dv4 buffer_f16 buffer_f32 buffer_f64 buffer_hv2 buffer_hv3
    buffer_hv4 buffer_i16 buffer_i32 buffer_ihv2 buffer_ihv3 buffer_ihv4 buffer_iv2 buffer_iv3 buffer_iv4
    buffer_u16 buffer_u32 buffer_uhv2 buffer_uhv3 buffer_uhv4 buffer_uv2 buffer_uv3 buffer_uv4 buffer_v2
    buffer_v3 buffer_v4(shape)
vd.cuda_graph_capture(cuda_stream=None)
vd.from_cuda_array(obj, var_type=None, require_contiguous=True, writable=None, keepalive=True)
vd.initialize(debug_mode=False, log_level=LogLevel.WARNING, loader_debug_logs=False, backend=None)
vd.log(text, end='\n', level=LogLevel.ERROR, stack_offset=1)
vd.log_error log_info log_verbose log_warning(text, end='\n')
vd.make_context(device_ids=None, device_count=None, queue_counts=None, queue_families=None, use_cpu=False,
    multi_device=False, multi_queue=False)
vd.make_shader_function(description, local_size=None, workgroups=None, exec_count=None)
vd.map(func, return_type=None, input_types=None)
vd.queue_wait_idle(queue_index=None, context=None)
vd.select_queue_families(device_index, queue_count=None)
vd.set_dummy_context_params(subgroup_size=None, subgroup_enabled=None, max_workgroup_size=None,
    max_workgroup_invocations=None, max_workgroup_count=None, max_shared_memory=None)
vd.set_global_graph(graph=None)
vd.set_log_level(level)
vd.shader(exec_size=None, local_size=None, workgroups=None, flags=..., arg_type_annotations=None,
    arg_names=None, arg_defaults=None)
vc.ImageVariable.sample(coord, lod=None)
vc.ShaderArgumentInfo(name, arg_type, default_value, shader_name, shader_shape_name=None, binding=None)
vc.ShaderBinding(dtype, name, dimension, binding_type)
vc.ShaderBuilder shader_context(flags=...)
vc.ShaderBuilder.append_contents(contents)
vc.ShaderBuilder.build(name)
vc.ShaderBuilder.declare_shader_arguments(type_annotations, names=None, defaults=None)
vc.ShaderBuilder.shared_buffer(var_type, size, var_name=None)
vc.ShaderContext.declare_input_arguments(type_annotations, names=None, defaults=None)
vc.ShaderContext.get_description(name=None)
vc.ShaderDescription.make_source(x, y, z)
vc.ShaderVariable.swizzle(components)
vc.ShaderVariable.to_dtype(var_type)
vc.ShaderVariable.to_register(var_name=None)
vc.StructElement(name, dtype, count)
vc.abs acos acosh asin asinh atan atanh ceil cos cosh degrees determinant exp exp2 float_bits_to_int
    float_bits_to_uint floor fract int_bits_to_float inverse inversesqrt isinf isnan length log log2
    normalize radians round round_even sign sin sinh sqrt tan tanh transpose trunc uint_bits_to_float(var)
vc.atan2(y, x)
vc.atomic_add(mem, y)
vc.clamp clip(x, min_val, max_val)
vc.comment(comment, preceding_new_line=True)
vc.complex_from_euler_angle(angle)
vc.cross distance dot matrix_comp_mult max min mod modf outer_product pow(x, y)
vc.else_if_block if_block while_block(arg)
vc.fma(a, b, c)
vc.mix(x, y, a)
vc.mult_complex(arg1, arg2)
vc.new_complex128_register new_complex32_register new_complex64_register new_complex_register
    new_dvec2_register new_dvec3_register new_dvec4_register new_float16_register new_float64_register
    new_float_register new_hvec2_register new_hvec3_register new_hvec4_register new_ihvec2_register
    new_ihvec3_register new_ihvec4_register new_int16_register new_int64_register new_int_register
    new_ivec2_register new_ivec3_register new_ivec4_register new_mat2_register new_mat3_register
    new_mat4_register new_uhvec2_register new_uhvec3_register new_uhvec4_register new_uint16_register
    new_uint64_register new_uint_register new_uvec2_register new_uvec3_register new_uvec4_register
    new_vec2_register new_vec3_register new_vec4_register(*args, var_name=None)
vc.new_register(var_type, *args, var_name=None)
vc.print(*args, separator=' ')
vc.printf(format, *args)
vc.ravel_index unravel_index(index, shape)
vc.return_statement(arg=None)
vc.scope_block(indent=True, comment=None)
vc.set_builder(builder)
vc.set_codegen_backend(backend)
vc.set_shader_print_line_numbers(value)
vc.shared_buffer(var_type, size, var_name=None)
vc.smoothstep(edge0, edge1, x)
vc.step(edge, x)
vc.str_to_dtype(var_type, value, parents=None, lexical_unit=False, settable=False, register=False)
vc.subgroup_add subgroup_and subgroup_max subgroup_min subgroup_mul subgroup_or subgroup_xor(arg1)
vc.to_dtype(var_type, *args)
vd.fft.FFTConfig(buffer_shape, axis=None, max_register_count=None, compute_type=complex64)
vd.fft.FFTRegisters.read_from_registers(other)
vd.fft.FFTRegisters.register_slice(slc)
vd.fft.FFTRegisters.slice_set(slc, values)
vd.fft.GlobalReadOp.read_from_buffer(buffer, register=None, io_index=None)
vd.fft.GlobalWriteOp.write_to_buffer(buffer, register=None, io_index=None)
vd.fft.IOManager.read_input(registers=None, r2c=False, inverse=None, signal_range=None)
vd.fft.IOManager.read_kernel(registers=None, format_transposed=False, inner_only=False)
vd.fft.IOManager.write_output(registers=None, r2c=False, inverse=None)
vd.fft.IOProxy(obj, name)
vd.fft.convolve(*buffers, kernel_map=None, kernel_num=1, buffer_shape=None, graph=None, print_shader=False,
    axis=None, normalize=True, name=None, transposed_kernel=False, kernel_inner_only=False, input_map=None,
    output_map=None, output_type=None, input_type=None, kernel_type=None, compute_type=None,
    input_signal_range=None)
vd.fft.convolve2D(buffer, kernel, kernel_map=None, buffer_shape=None, graph=None, print_shader=False,
    normalize=True, transposed_kernel=False, kernel_inner_only=False, input_map=None, output_map=None,
    output_type=None, input_type=None, kernel_type=None, compute_type=None)
vd.fft.convolve2DR(buffer, kernel, kernel_map=None, buffer_shape=None, transposed_kernel=False,
    kernel_inner_only=False, graph=None, print_shader=False, normalize=True, compute_type=None)
vd.fft.convolve2DR_print_src convolve2DR_src(buffer_shape, kernel_map=None, transposed_kernel=False,
    kernel_inner_only=False, normalize=True)
vd.fft.convolve2D_print_src convolve2D_src(buffer_shape, kernel_map=None, normalize=True,
    transposed_kernel=False, kernel_inner_only=False, input_map=None, output_map=None)
vd.fft.convolve_print_src convolve_src(buffer_shape, kernel_map=None, kernel_num=1, axis=None,
    normalize=True, transposed_kernel=False, kernel_inner_only=False, input_map=None, output_map=None,
    input_signal_range=None, line_numbers=False)
vd.fft.fft(*buffers, buffer_shape=None, graph=None, print_shader=False, axis=None, name=None, inverse=False,
    normalize_inverse=True, r2c=False, input_map=None, output_map=None, output_type=None, input_type=None,
    compute_type=None, input_signal_range=None)
vd.fft.fft2 fft3(buffer, graph=None, print_shader=False, input_map=None, output_map=None, output_type=None,
    input_type=None, compute_type=None)
vd.fft.fft2_print_src fft2_src fft3_print_src fft3_src(buffer_shape, input_map=None, output_map=None)
vd.fft.fft_context(buffer_shape, axis=None, max_register_count=None, compute_type=complex64, name=None)
vd.fft.fft_print_src fft_src(buffer_shape, axis=None, inverse=False, normalize_inverse=True, r2c=False,
    input_map=None, output_map=None, input_signal_range=None, line_numbers=False)
vd.fft.get_transposed_size(buffer_shape, axis=None, compute_type=complex64)
vd.fft.global_reads_iterator(registers, r2c=False, inverse=None, format_transposed=False, inner_only=False,
    signal_range=None)
vd.fft.global_trasposed_write_iterator(registers, inner_only=False)
vd.fft.global_writes_iterator(registers, r2c=False, inverse=None)
vd.fft.ifft(buffer, graph=None, print_shader=False, axis=None, name=None, normalize=True, input_map=None,
    output_map=None, output_type=None, input_type=None, compute_type=None)
vd.fft.ifft2 ifft3(buffer, graph=None, print_shader=False, normalize=True, input_map=None, output_map=None,
    output_type=None, input_type=None, compute_type=None)
vd.fft.ifft2_print_src ifft2_src ifft3_print_src ifft3_src(buffer_shape, normalize=True, input_map=None,
    output_map=None)
vd.fft.ifft_print_src ifft_src(buffer_shape, axis=None, normalize=True, input_map=None, output_map=None)
vd.fft.irfft(buffer, graph=None, print_shader=False, name=None, normalize=True, compute_type=None)
vd.fft.irfft2 irfft3(buffer, graph=None, print_shader=False, normalize=True, compute_type=None)
vd.fft.irfft2_print_src irfft2_src irfft3_print_src irfft3_src irfft_print_src irfft_src(buffer_shape,
    normalize=True)
vd.fft.make_convolution_shader(buffer_shape, kernel_map=None, kernel_num=1, axis=None, normalize=True,
    transposed_kernel=False, kernel_inner_only=False, input_map=None, output_map=None, input_type=None,
    output_type=None, kernel_type=None, compute_type=None, input_signal_range=None)
vd.fft.make_fft_shader(buffer_shape, axis=None, inverse=False, normalize_inverse=True, r2c=False,
    input_map=None, output_map=None, input_type=None, output_type=None, compute_type=None,
    input_signal_range=None)
vd.fft.make_transpose_shader(buffer_shape, axis=None, kernel_inner_only=False, input_type=complex64,
    output_type=complex64, compute_type=complex64)
vd.fft.memory_reads_iterator(resources, stage_index=0)
vd.fft.memory_writes_iterator(resources, stage_index=-1)
vd.fft.pad_dim(dim, max_register_count=None)
vd.fft.rfft(buffer, graph=None, print_shader=False, name=None, compute_type=None)
vd.fft.rfft2 rfft3(buffer, graph=None, print_shader=False, compute_type=None)
vd.fft.rfft2_print_src rfft2_src rfft3_print_src rfft3_src rfft_print_src rfft_src(buffer_shape)
vd.fft.transpose(in_buffer, conv_shape=None, axis=None, out_buffer=None, graph=None,
    kernel_inner_only=False, print_shader=False, input_type=None, output_type=None, compute_type=None)
vd.fft.transpose_src(buffer_shape, axis=None, kernel_inner_only=False, line_numbers=False)
vd.reduce.ReduceFunction(reduction, group_size=None, axes=None, mapping_function=None)
vd.reduce.ReduceFunction.get_src(line_numbers=None)
vd.reduce.ReduceFunction.print_src(line_numbers=None)
vd.reduce.ReduceOp(name, reduction, identity, subgroup_reduction=None)
vd.reduce.make_reduction_stage(reduction, out_type, group_size, output_is_input, map_func=None,
    input_types=None)
vd.reduce.map_reduce(reduction, axes=None, group_size=None)
vd.reduce.reduce(identity, axes=None, group_size=None, mapping_function=None)
vd.vkfft.VkFFTPlan(shape, do_r2c=False, axes=None, normalize=False, padding=None,
    pad_frequency_domain=False, kernel_count=0, input_shape=None, input_type=None, kernel_convolution=False,
    conjugate_convolution=False, convolution_features=0, num_batches=1,
    single_kernel_multiple_batches=False, keep_shader_code=False)
vd.vkfft.VkFFTPlan.record(graph, buffer, inverse=False, kernel=None, input=None)
vd.vkfft.VkFFTPlan.record_forward(graph, buffer)
vd.vkfft.VkFFTPlan.record_inverse(graph, buffer)
vd.vkfft.convolve2D(buffer, kernel, normalize=False, conjugate_kernel=False, graph=None,
    keep_shader_code=False, padding=None)
vd.vkfft.fft(buffer, input_buffer=None, buffer_shape=None, graph=None, print_shader=False, axis=None,
    inverse=False, normalize_inverse=True, r2c=False)
vd.vkfft.fft2 fft3 ifft2 ifft3 irfft2 irfft3 rfft2 rfft3(buffer, graph=None, print_shader=False)
vd.vkfft.ifft(buffer, graph=None, print_shader=False, axis=None, normalize=True)
vd.vkfft.irfft(buffer, graph=None, print_shader=False, normalize=True, axis=None)
vd.vkfft.rfft(buffer, graph=None, print_shader=False, axis=None)
vd.vkfft.transpose_kernel2D(kernel, shape=None, graph=None, keep_shader_code=False)
vd.base.command_list.CommandList.record_compute_plan(plan, descriptor_set, blocks)
vd.base.command_list.CommandList.submit(data=None, queue_index=-2, instance_count=None, cuda_stream=None)
vd.base.compute_plan.ComputePlan(shader_source, binding_type_list, pc_size, shader_name)
vd.base.descriptor_set.DescriptorSet(compute_plan)
vd.base.descriptor_set.DescriptorSet.bind_buffer(buffer, binding, offset=0, range=0, uniform=False,
    read_access=True, write_access=True)
vd.base.descriptor_set.DescriptorSet.bind_sampler(sampler, binding, read_access=True, write_access=True)
vd.base.descriptor_set.DescriptorSet.set_inline_uniform_payload(payload)
vd.base.dtype.complex_from_float from_numpy_dtype is_complex is_float_dtype is_integer_dtype is_matrix
    is_scalar is_vector make_floating_dtype vector_size(dtype)
vd.base.dtype.cross_matrix cross_multiply_type cross_scalar_scalar cross_type cross_vector
    cross_vector_scalar cross_vector_vector(dtype1, dtype2)
vd.base.dtype.is_dtype(in_type)
vd.base.dtype.to_numpy_dtype(shader_type)
vd.base.dtype.to_vector(dtype, count)
vd.execution_pipeline.buffer_builder.BufferBuilder(struct_alignment=None, usage=None)
vd.execution_pipeline.buffer_builder.BufferBuilder.prepare(instance_count)
vd.execution_pipeline.buffer_builder.BufferBuilder.register_struct(name, elements)
vd.execution_pipeline.buffer_builder.BufferBuilder.set_item(key, value)
vd.fft.src_functions.transpose_print_src(buffer_shape, axis=None, kernel_inner_only=False,
    line_numbers=False)
"""


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield each name, as `vd.Buffer.read`, with its parameters; defaults are their source text."""
    rows: list[str] = []
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            rows[-1] += line
        else:
            rows.append(line)
    for row in rows:
        head, _, parameters = row.partition("(")
        first, *others = head.split()
        module = first.rpartition(".")[0]
        for name in (first, *(f"{module}.{other}" for other in others)):
            yield name, _signature(parameters.removesuffix(")"))


def _signature(parameters: str) -> inspect.Signature:
    (function,) = ast.parse(f"def function({parameters}): ...").body
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    kind = inspect.Parameter
    # without a default: as many as there are more names than defaults
    defaults: list[ast.expr | None] = [*[None] * (len(given.args) - len(given.defaults)), *given.defaults]
    found = [
        _parameter(arg, kind.POSITIONAL_OR_KEYWORD, at) for arg, at in zip(given.args, defaults, strict=True)
    ]
    if given.vararg is not None:
        found.append(_parameter(given.vararg, kind.VAR_POSITIONAL, None))
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return inspect.Signature([*found, *(_parameter(arg, kind.KEYWORD_ONLY, at) for arg, at in named)])


def _parameter(arg: ast.arg, kind: "inspect._ParameterKind", default: ast.expr | None) -> inspect.Parameter:
    shown = inspect.Parameter.empty if default is None else ast.unparse(default)
    return inspect.Parameter(arg.arg, kind, default=shown)
