"""Parts of kernels: butterflies, tables, registers, exchanges through workgroup memory, reads and writes.

They are called while a kernel is traced, and know plans, but no particular kernel.
"""
