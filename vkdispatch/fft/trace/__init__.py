"""Parts of kernels: butterflies, tables, registers, exchanges through workgroup memory, reads and writes."""
