"""Fusing recorded launches in a row into one kernel: found, proven, and described as that kernel."""
