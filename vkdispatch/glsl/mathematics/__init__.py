"""Functions of mathematics in GLSL, which GLSL has not, or not in this precision.

`f64_sin` and the others are written in float64, `f32_sin` in float32, both from one text: pairs of numbers
where one has too few digits, `precise` everywhere. Errors are a few units in the last place over each
function's whole range; special values are those of C and NumPy.
"""
