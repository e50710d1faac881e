"""Compilation of untrusted code in a child process."""
