"""Memory shared with other libraries: DLPack, and Python's and NumPy's protocols of memory on the host."""
