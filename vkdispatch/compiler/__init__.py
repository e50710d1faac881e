"""The compiler: a kernel as a typed program, what is known about it, rewrites of it, and its GLSL.

`ir` holds programs: expressions and statements. `analyses` find facts about a program, `passes` rewrite it,
`glsl` writes it, and `interpreter` runs it with NumPy. `lints` warns about probable mistakes.
"""
