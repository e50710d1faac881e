"""An interpreter of the intermediate representation of kernels, with NumPy and without a device.

`run` takes a kernel and its memory. `execution` runs its statements for a batch of workgroups in lockstep,
`evaluation` computes their expressions by the rules of `operations`. `memory` detects accesses that
lockstep hides.
"""
