"""Kernels in plain Python: a source rewrite that lets `if`, `while`, `for`... act on GPU values.

The path of one `while` loop:

1. `replacement.prepare_kernel` gets the kernel, `replacement.choose_callee` every function that it calls.
   Bytecode and source (`source`) tell which of them need a rewrite.
2. `statements` turns the loop's test and body into nested functions, and the loop into a call
   `frame.while_(test, body, orelse, names)`. `names.analyze_liveness` finds the names that are read later.
3. While the kernel is traced, `frame.enter` makes a `frame.Frame`. Its `while_` receives that call.
4. `loops.run_while` runs the rounds in Python as long as the test is a Python value. When the test is a GPU
   value, it discards that round (`tracer` rewinds) and records a loop of the GPU.
5. `loop_state.Loop` keeps the variables that the loop changes in registers; a `Retry` traces the body again
   when another variable or a wider type turns up. `values` reads and writes the variables by their cells.
6. An `if` in the body records both of its paths and joins their variables (`paths`). `break`, `continue` and
   `return` leave a block with a signal (`tracer.Signal`).
7. What `loops` recorded is an `ir.While`. `codegen.builder` ends the trace (`passes.order.finish_trace`),
   `shader.traced` suits it to the devices, and `compiler.glsl.writer` writes it as `while`.
"""

import typing as _typing

from vkdispatch.base import names_elsewhere as _names_elsewhere

if _typing.TYPE_CHECKING:
    from vkdispatch.control_flow.replacement import prepare_function as prepare_function
    from vkdispatch.control_flow.replacement import prepare_kernel as prepare_kernel
else:
    # imported when something is traced
    __getattr__ = _names_elsewhere(__name__, {"control_flow.replacement": "prepare_function prepare_kernel"})
