"""Kernels in plain Python: a source rewrite that lets `if`, `while`, `for`... act on GPU values.

The path of one `while` loop:

1. `functions.prepare_kernel` gets the kernel, `callees` every function that it calls. `replacement` decides
   by bytecode and source (`syntax.bytecode`, `syntax.source`) which of them need a rewrite.
2. `syntax.statements` turns the loop's test and body into nested functions, and the loop into a call
   `frame.while_(test, body, orelse, names)`. `syntax.liveness` finds the names that are read later.
3. While the kernel is traced, `interface.enter` makes a `calls.frame.Frame`. Its `while_` receives that call.
4. `loops.while_loops` runs the rounds in Python as long as the test is a Python value. When the test is a GPU
   value, it discards that round (`state.tracer` rewinds) and records a loop of the GPU.
5. `loops.loop` keeps the variables that the loop changes in registers; a `Retry` traces the body again when
   another variable or a wider type turns up. `state.variables` reads and writes the variables by their cells.
6. An `if` in the body records both of its paths (`branches.paths`) and joins their variables
   (`branches.joins`). `break`, `continue` and `return` leave a block with a signal (`state.signals`).
"""
