"""Mathematical functions written in GLSL that GLSL lacks, or has in lower precision only.

`f64_sin` and the others compute in float64, and `f32_sin` in float32; both come from one text. Intermediate
results are pairs of numbers where one has too few digits, and everything is `precise`. Errors are a few units
in the last place over the whole range of each function. Special values are those of C and NumPy.
"""
