"""What kernels are traced with: butterflies, tables, registers, workgroup memory, reads and writes."""
