"""Loops: run while tracing if Python decides, recorded if the GPU decides."""
