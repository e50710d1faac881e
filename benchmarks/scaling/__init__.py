"""Scaling over several devices under Dask: ``python -m benchmarks.scaling``.

Each number of workers, one for each device, has a cluster of its own on this machine. Strong scaling keeps
the size of a problem; weak scaling gives every worker as much as one has alone. The efficiency of n workers
is t(1) / (n t(n)) for strong scaling, and t(1) / t(n) for weak scaling. Inputs are made on the workers before
the clock starts, the first run is not timed, and small results end up in the client. ``--peer cupy`` runs the
same programs on chunks of CuPy.
"""
