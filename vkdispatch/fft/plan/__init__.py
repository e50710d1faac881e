"""Plans: what a transform will do, decided before a kernel is traced.

`stages` has the split of a line, `passes` the record of a transform and kernels of one pass, `planes` those
of several passes and of planes. `tuning` has the measured numbers, `planner` what the kind of device decides.
"""
