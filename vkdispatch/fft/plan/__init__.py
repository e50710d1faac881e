"""Plans: what a transform will do, decided before a kernel is traced.

`transforms` has the record of a transform, `stages` the split of a line, `grids` and `memory` what a
workgroup does, `passes` a kernel of one pass. `tuning` has the measured numbers.
"""
